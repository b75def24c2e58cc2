# SPDX-License-Identifier: Apache-2.0
"""What the command line says and when: progress on a terminal, warnings, the environment's settings."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from ._core import cpu
from .backend import SELECTORS
from .cli_files import UsageError, write_stdout

LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}
SIZES = re.compile(r"([0-9]+)(B|KiB|MiB|GiB|TiB)?", re.ASCII)


class Reporter:
    """Everything a command says besides its result.

    Parameters
    ----------
    verbose : int
        How often ``-v`` was given.
    quiet : bool
        Errors only.
    """

    def __init__(self, verbose: int = 0, quiet: bool = False) -> None:
        level = logging.ERROR if quiet else {0: log_level(), 1: logging.INFO}.get(verbose, logging.DEBUG)
        self.shows_progress = not quiet and (level <= logging.INFO or _is_terminal())
        self.seconds: dict[str, float] = {}
        handler = logging.StreamHandler(sys.stderr) if sys.stderr is not None else logging.NullHandler()
        handler.setFormatter(_OneLine())
        logger = logging.getLogger("pinzk")
        logger.handlers[:] = [handler]
        logger.setLevel(level)
        logger.propagate = False
        warnings.showwarning = lambda message, *where: logger.warning("%s", message)

    @contextlib.contextmanager
    def step(self, name: str, what: str) -> Iterator[None]:
        """One step of a command: its seconds go into the stats as `name`, and on a terminal a line says `what`."""
        start = time.perf_counter()
        yield
        self.seconds[name] = round(time.perf_counter() - start, 6)
        self.say(f"{what}, {self.seconds[name]:.2f} s")

    def say(self, line: str) -> None:
        """A line of progress."""
        if self.shows_progress and sys.stderr is not None:
            with contextlib.suppress(OSError):
                print(f"pinzk: {one_line(line)}", file=sys.stderr, flush=True)


def print_result(text: str) -> None:
    """Print the result of a command on stdout."""
    write_stdout(text.encode("utf-8", "surrogateescape") + b"\n")


def print_table(rows: Mapping[str, Any]) -> None:
    """Print names and values in two columns on stdout."""
    width = max(map(len, rows))
    print_result("\n".join(f"{name.replace('_', ' '):{width}}  {value}" for name, value in rows.items()))


def print_json(document: dict[str, Any]) -> None:
    """Print a result or the stats as one line of JSON on stdout."""
    print_result(json.dumps(document))


def one_line(text: str) -> str:
    """`text` without line breaks and other characters that a terminal would act on."""
    return "".join(c if c.isprintable() or "\udc80" <= c <= "\udcff" else repr(c)[1:-1] for c in text)


def log_level() -> int:
    """Level of PINZK_LOG, a warning's where it says nothing."""
    return LEVELS.get(os.environ.get("PINZK_LOG", "").strip(), logging.WARNING)


def check_environment() -> None:
    """Refuse settings that mean nothing.

    Raises
    ------
    UsageError
        Names the first variable that has no meaning, and what it may be.
    """
    for problem in environment_problems():
        raise UsageError(problem)


def environment_problems() -> list[str]:
    """One line for each of pinzk's variables that has no meaning."""
    found = []
    device = os.environ.get("PINZK_DEVICE", "").strip()
    if device and not SELECTORS.fullmatch(device):
        found.append(f"PINZK_DEVICE must be auto, cpu, cuda, cuda:N or GPU-<uuid>, not {device!r}")
    try:
        cpu.num_threads()
    except ValueError as error:
        found.append(str(error))
    pinned = os.environ.get("PINZK_MAX_PINNED", "").strip()
    if pinned and not SIZES.fullmatch(pinned):
        found.append(f"PINZK_MAX_PINNED must be bytes, or a number with KiB, MiB, GiB or TiB, not {pinned!r}")
    cache = os.environ.get("PINZK_CACHE_DIR", "").strip()
    if cache and os.path.exists(cache) and not os.path.isdir(cache):
        found.append(f"PINZK_CACHE_DIR must be a folder, and {cache!r} is not one")
    level = os.environ.get("PINZK_LOG", "").strip()
    if level and level not in LEVELS:
        found.append(f"PINZK_LOG must be one of {', '.join(LEVELS)}, not {level!r}")
    return found


def _is_terminal() -> bool:
    return sys.stderr is not None and sys.stderr.isatty()


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"pinzk: {record.levelname.lower()}: {one_line(record.getMessage())}"
