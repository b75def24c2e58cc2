# SPDX-License-Identifier: Apache-2.0
"""Arguments that several commands share, and what they mean."""

from __future__ import annotations

import argparse
import os
import re

from . import VerifyingKey
from .backend import SELECTORS
from .cli_report import SIZES
from .curves import Curve
from .formats.zkey import read_zkey_header


def device_name(text: str) -> str:
    """A value of ``--device``."""
    if not SELECTORS.fullmatch(text):
        raise argparse.ArgumentTypeError(f"must be auto, cpu, cuda, cuda:N or GPU-<uuid>, not {text!r}")
    return text


def byte_count(text: str) -> int:
    """A size: bytes, or a number with KiB, MiB, GiB or TiB."""
    found = SIZES.fullmatch(text)
    if found is None or int(found[1]) == 0:
        raise argparse.ArgumentTypeError(
            f"must be bytes, or a number with KiB, MiB, GiB or TiB, not {text!r}"
        )
    return int(found[1]) << 10 * ["B", "KiB", "MiB", "GiB", "TiB"].index(found[2] or "B")


def curve_name(text: str) -> Curve:
    """A value of ``--curve``."""
    try:
        return Curve.named(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_threads(parser: argparse.ArgumentParser) -> None:
    """``--threads``, for commands that compute."""
    parser.add_argument(
        "--threads",
        type=_thread_count,
        metavar="N",
        help="default: PINZK_NUM_THREADS, else the cores allowed",
    )


def use_threads(threads: int | None) -> None:
    """Let ``--threads`` hold for everything this process does."""
    if threads is not None:
        os.environ["PINZK_NUM_THREADS"] = str(threads)


def load_vk(data: str | bytes) -> VerifyingKey:
    """The verification key of a path or bytes: a file of its own, or a proving key, of which only the beginning is read."""
    if not begins_with(data, b"zkey"):
        return VerifyingKey.load(data)
    header = read_zkey_header(data)
    return VerifyingKey(
        header.curve,
        alpha_1=header.alpha_1,
        beta_2=header.beta_2,
        gamma_2=header.gamma_2,
        delta_2=header.delta_2,
        ic=header.ic,
    )


def begins_with(data: str | bytes, magic: bytes) -> bool:
    """Whether a file, or these bytes, begin so."""
    if isinstance(data, bytes):
        return data[: len(magic)] == magic
    with open(data, "rb") as f:
        return f.read(len(magic)) == magic


def _thread_count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text, re.ASCII) or not 1 <= int(text) <= 1024:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 1024, not {text!r}")
    return int(text)
