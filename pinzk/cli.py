# SPDX-License-Identifier: Apache-2.0
"""The command `pinzk`: words to functions, errors to one line and an exit code. All work is done by the public API."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import Any, NoReturn

from .cli_files import UsageError
from .cli_report import Reporter, check_environment, log_level, one_line
from .errors import PinzkError

# command words -> (module with `add_arguments_<name>` and `run_<name>`, name, what it does)
COMMANDS: dict[tuple[str, ...], tuple[str, str, str]] = {
    ("prove",): ("cli_prove", "prove", "make a proof from a key and a witness"),
    ("verify",): ("cli_prove", "verify", "check a proof"),
    ("zkey", "info"): ("cli_inspect", "zkey_info", "say what a proving key is for"),
    ("zkey", "check"): ("cli_inspect", "zkey_check", "check every point of a proving key, subgroups too"),
    ("zkey", "export-vk"): ("cli_inspect", "zkey_export_vk", "write the verification key of a proving key"),
    ("wtns", "info"): ("cli_inspect", "wtns_info", "say what a witness is for; shows no value"),
    ("wtns", "check"): ("cli_inspect", "wtns_check", "check a witness against its circuit or proving key"),
    ("proof", "calldata"): (
        "cli_inspect",
        "proof_calldata",
        "print a proof as arguments of a Solidity verifier",
    ),
    ("estimate",): ("cli_estimate", "estimate", "say what memory proofs with a key take"),
    ("warmup",): (
        "cli_warmup",
        "warmup",
        "compile the kernels for a GPU, so that the first proof does not wait",
    ),
    ("devices",): (
        "cli_devices",
        "devices",
        "say which GPUs are here, and whether pinzk can use them",
    ),
    ("doctor",): ("cli_doctor", "doctor", "say what pinzk finds on this machine"),
}
CUT_OFF = 128 + signal.SIGPIPE  # what a shell shows for a command whose reader went away
INTERNAL = 70  # EX_SOFTWARE: an error that has no class, so a bug of pinzk


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; ``sys.argv[1:]`` by default.

    Returns
    -------
    int
        The exit code: 0 done, 1 the proof is invalid (`verify` only), 2 usage, 3 device, 4 self-check, 5 key, 6 malformed
        file, 7 witness, 8 memory, 9 time-out, 130 Ctrl-C.
    """
    try:
        # a kill or a hang-up unwinds like Ctrl-C, so that temporary files go
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, _terminate)
    except ValueError:  # called from another thread: its owner handles signals
        pass
    try:
        return _run(list(sys.argv[1:] if argv is None else argv))
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0
    except KeyboardInterrupt:
        return _fail("stopped by Ctrl-C", 130)
    except BrokenPipeError:
        _silence_stdout()
        return CUT_OFF
    except UsageError as error:
        return _fail(str(error), 2)
    except PinzkError as error:
        return _fail(str(error), error.exit_code)
    except MemoryError as error:
        return _fail(
            f"out of memory{': ' if str(error) else ''}{error}: use a machine with more, or close programs", 8
        )
    except OSError as error:
        what = error.strerror or str(error)
        return _fail(f"{error.filename}: {what}" if error.filename else what, 2)
    except Exception as error:
        kind = type(error).__name__
        return _fail(
            f"internal error, {kind}: {error}: run again with PINZK_LOG=debug and report what it prints",
            INTERNAL,
        )


def _run(argv: list[str]) -> int:
    words, rest = _split(argv)
    if words is None:
        return _general(rest)
    module, name, summary = COMMANDS[words]
    parser = _Parser(
        prog=" ".join(("pinzk", *words)),
        description=f"{summary[0].upper()}{summary[1:]}.",
        allow_abbrev=False,
    )
    code = importlib.import_module(f".{module}", __package__)
    getattr(code, f"add_arguments_{name}")(parser)
    _add_common(parser)
    options = parser.parse_intermixed_args(rest)
    if name != "doctor":  # which reports junk instead
        check_environment()
    reporter = Reporter(options.verbose, options.quiet)
    return int(getattr(code, f"run_{name}")(options, reporter))


def _split(argv: list[str]) -> tuple[tuple[str, ...] | None, list[str]]:
    for n in (2, 1):
        words = tuple(argv[:n])
        if len(words) == n and words in COMMANDS:
            return words, argv[n:]
    return None, argv


def _general(argv: list[str]) -> int:
    """What is asked without a command: help, the version; or a word that is no command."""
    first = argv[0] if argv else ""
    groups = {words[0] for words in COMMANDS if len(words) == 2}
    if first == "--version" and len(argv) == 1:
        from . import __version__

        print(f"pinzk {__version__}", flush=True)
        return 0
    if first in ("-h", "--help", "help") or (first in groups and argv[1:2] in (["-h"], ["--help"])):
        print(_help(), flush=True)
        return 0
    if first in groups:
        names = " or ".join(" ".join(words) for words in COMMANDS if words[0] == first)
        raise UsageError(f"{' '.join(argv[:2])!r} is no command: use {names}")
    if not first:
        raise UsageError("no command given: see pinzk --help")
    raise UsageError(f"{first!r} is no command: see pinzk --help")


def _help() -> str:
    width = max(len(" ".join(words)) for words in COMMANDS)
    lines = [f"  pinzk {' '.join(words):{width}}  {summary}" for words, (_, _, summary) in COMMANDS.items()]
    return "\n".join(
        [
            "usage: pinzk COMMAND ... [--help]",
            "",
            "Groth16 proofs from snarkjs files.",
            "",
            *lines,
            "",
            "A file may be - for standard input or output. Exit codes: 0 done, 1 the proof is invalid (verify only),",
            "2 usage or a file that cannot be read or written, 3 device, 4 self-check failed, 5 insecure or other key,",
            "6 malformed file, 7 witness, 8 memory, 9 time-out, 130 Ctrl-C.",
        ]
    )


class _Parser(argparse.ArgumentParser):
    """Errors are one line, as everywhere; help that nobody reads ends like any other output that nobody reads."""

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        if sys.stdout is not None:
            sys.stdout.flush()
        raise SystemExit(status)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}: see {self.prog} --help")


def _add_common(parser: argparse.ArgumentParser) -> None:
    loud = parser.add_mutually_exclusive_group()
    loud.add_argument(
        "-v", "--verbose", action="count", default=0, help="say what is done on stderr; -vv says more"
    )
    loud.add_argument("-q", "--quiet", action="store_true", help="no progress and no warnings")


def _fail(message: str, code: int) -> int:
    """Say on stderr what went wrong; return `code`."""
    try:
        if sys.exc_info()[0] is not None and log_level() <= logging.DEBUG:
            traceback.print_exc()
        print(f"pinzk: error: {one_line(message)}", file=sys.stderr, flush=True)
    except (OSError, AttributeError):  # stderr is closed: the code still tells
        pass
    return code


def _terminate(number: int, frame: Any) -> NoReturn:
    raise SystemExit(128 + number)


def _silence_stdout() -> None:
    """Let the interpreter flush its buffers at exit into nothing, instead of complaining."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
