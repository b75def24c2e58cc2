# SPDX-License-Identifier: Apache-2.0
"""The compiler: NVRTC, called here and nowhere else; what it can make code for, and what it says of the code it made."""

from __future__ import annotations

import ctypes
import importlib.metadata
import importlib.util
import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .errors import BackendUnavailable, CompileError

log = logging.getLogger(__name__)

OLDEST = 75
OPTIONS = ("-default-device", "--std=c++17", "--ptxas-options=-v", "--split-compile=0")


def options_for(arch: str) -> list[str]:
    """NVRTC's options for that architecture; part of the key of what it makes."""
    return [*OPTIONS, f"--gpu-architecture={arch}"]


def architecture(sm: int, known: Sequence[int]) -> str:
    """What to compile for, for a device of compute capability `sm`, by an NVRTC that knows `known`.

    The device's own architecture; else the nearest older one of its generation, whose machine code it runs; else PTX for the
    newest older one, which the driver, younger than this NVRTC, finishes.

    Raises
    ------
    BackendUnavailable
        The device is too old.
    """
    older = [k for k in known if OLDEST <= k <= sm]
    if sm < OLDEST or not older:
        raise BackendUnavailable(f"the device is sm_{sm}; pinzk needs sm_{OLDEST} or newer")
    nearest = max(older)
    arch = f"sm_{nearest}" if nearest // 10 == sm // 10 else f"compute_{nearest}"
    if nearest != sm:
        log.info(
            "NVRTC does not know sm_%d, compiling for %s: a newer nvidia-cuda-nvrtc may know it", sm, arch
        )
    return arch


@cache
def _nvrtc() -> Any:
    """The bindings, with the library loaded."""
    try:
        from cuda.bindings import nvrtc

        try:
            nvrtc.nvrtcVersion()
        except RuntimeError:
            _preload()
            nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError, OSError) as error:
        raise BackendUnavailable(
            "kernels have to be compiled and NVRTC is not installed: pip install 'pinzk[cuda]'"
        ) from error
    return nvrtc


def _preload() -> None:
    """Load the library of the wheel from wherever the module path has it; the bindings look in site-packages alone."""
    spec = importlib.util.find_spec("nvidia")
    for root in (spec.submodule_search_locations or []) if spec else []:
        folder = Path(root) / "cu13" / "lib"
        for file in [*folder.glob("libnvrtc-builtins.so.*"), *folder.glob("libnvrtc.so.*")]:
            ctypes.CDLL(str(file))


def _ask(function: Any, *arguments: Any) -> Any:
    """Call NVRTC; what it returns beside the status."""
    status, *values = function(*arguments)
    if int(status):
        raise CompileError(f"NVRTC: {function.__name__} says {status.name}")
    return values[0] if len(values) == 1 else tuple(values)


@cache
def compiler_version() -> str:
    """NVRTC's version, and that of its wheel, where there is one.

    Raises
    ------
    BackendUnavailable
        NVRTC is not installed.
    """
    major, minor = _ask(_nvrtc().nvrtcVersion)
    try:
        return f"{major}.{minor} ({importlib.metadata.version('nvidia-cuda-nvrtc')})"
    except importlib.metadata.PackageNotFoundError:
        return f"{major}.{minor}"


@cache
def known_architectures() -> tuple[int, ...]:
    """Compute capabilities that NVRTC makes code for."""
    return tuple(_ask(_nvrtc().nvrtcGetSupportedArchs))


def compile_program(name: str, source: str, files: dict[str, str], arch: str) -> tuple[bytes, str]:
    """Compile one source text, with `files` to include.

    Returns
    -------
    image : bytes
        Machine code, or PTX where `arch` is a ``compute_`` one.
    log : str

    Raises
    ------
    CompileError
        The source was refused; the error has the log.
    """
    nvrtc = _nvrtc()
    texts, names = [t.encode() for t in files.values()], [n.encode() for n in files]
    program = _ask(nvrtc.nvrtcCreateProgram, source.encode(), name.encode(), len(files), texts, names)
    try:
        options = [o.encode() for o in options_for(arch)]
        (status,) = nvrtc.nvrtcCompileProgram(program, len(options), options)
        text = (
            _bytes(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).rstrip(b"\0 \n").decode()
        )
        if int(status):
            first = next((line for line in text.splitlines() if "error" in line), status.name)
            raise CompileError(f"NVRTC cannot compile {name} for {arch}: {first}", log=text)
        if arch.startswith("sm_"):
            return _bytes(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program), text
        return _bytes(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program), text
    finally:
        nvrtc.nvrtcDestroyProgram(program)


def _bytes(size: Any, get: Any, program: Any) -> bytes:
    data = bytes(_ask(size, program))  # the bindings fill it in place; at least the closing zero
    _ask(get, program, data)
    return data


# ---- what the code takes ----


@dataclass(frozen=True)
class Usage:
    """What a kernel takes of a multiprocessor, as the assembler reports it.

    Attributes
    ----------
    registers : int
        Of a thread; 0 for a function that kernels call.
    spill_stores, spill_loads, stack : int
        Bytes of a thread.
    shared : int
        Bytes of a block, without those given at launch.
    """

    registers: int
    spill_stores: int
    spill_loads: int
    stack: int
    shared: int


def parse_usage(text: str) -> dict[str, Usage]:
    """The assembler's report on each function in NVRTC's log."""
    patterns = [
        r"Used (\d+) registers",
        r"(\d+) bytes spill stores",
        r"(\d+) bytes spill loads",
        r"(\d+) bytes stack frame",
        r"(\d+) bytes smem",
    ]
    found = {}
    for part in text.split("Function properties for ")[1:]:
        numbers = [int(match[1]) if (match := re.search(p, part)) else 0 for p in patterns]
        found[part.split(maxsplit=1)[0]] = Usage(*numbers)
    return found
