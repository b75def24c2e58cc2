# SPDX-License-Identifier: Apache-2.0
"""From `.cu` files to code for the GPU that is present: translation units, NVRTC, and who compiled what before.

A unit is one `.cu` file for one curve: three lines made in memory. `build` looks for its machine code among the files that
came with pinzk, then in the user's cache, and compiles it otherwise, once in a process. All is found by a key over what the
code depends on, so nothing is ever out of date. No GPU, driver or toolkit is needed to compile. docs/kernels.md, 1.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import logging
import os
import re
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from typing import TYPE_CHECKING

from .errors import BackendUnavailable, CompileError
from .kernel_cache import Cache, unpack
from .kernel_compiler import (
    Usage,
    architecture,
    compile_program,
    compiler_version,
    known_architectures,
    options_for,
    parse_usage,
)

if TYPE_CHECKING:  # the build compiles kernels before there is a compiled module
    from ._core.device import Device, Module

log = logging.getLogger(__name__)

CURVES = {"bn254": "Bn254On", "bls12_381": "Bls12_381On", "toy": "ToyOn"}  # the last for tests
# files of kernels; what takes longest to compile comes first
NAMES = ("msm_g2", "tables", "msm_g1", "ntt", "sparse", "sort", "vec")


@dataclass(frozen=True)
class Unit:
    """A translation unit: the kernels of one `.cu` file for one curve.

    Attributes
    ----------
    name : str
        The file's name without its ending, e.g. ``"ntt"``.
    curve : str
        ``"bn254"``, ``"bls12_381"``, or ``"toy"`` for tests.
    """

    name: str
    curve: str

    @property
    def source(self) -> str:
        """The three lines."""
        return (
            f'#include "{self.curve}.cuh"\n'
            f"namespace pinzk {{ struct Chains; using Curve = {CURVES[self.curve]}<Chains>; }}\n"
            f'#include "{self.name}.cu"\n'
        )

    def __str__(self) -> str:
        return f"{self.name}-{self.curve}"


@dataclass(frozen=True)
class Cubin:
    """A unit's code for one architecture.

    Attributes
    ----------
    unit : Unit
    arch : str
        What it was compiled for: ``"sm_90"``, or ``"compute_90"`` where `image` is PTX for the driver to finish.
    image : bytes
        To be loaded by the driver.
    log : str
        NVRTC's log.
    key : str
        The hash of all that the code depends on.
    compiler : str
        NVRTC's version.
    origin : str
        ``"shipped"``, ``"cache"`` or ``"compiled"``.
    seconds : float
        What it took to compile or find.
    """

    unit: Unit
    arch: str
    image: bytes = field(repr=False)
    log: str = field(repr=False)
    key: str = field(repr=False)
    compiler: str
    origin: str
    seconds: float = field(compare=False)

    @property
    def usage(self) -> dict[str, Usage]:
        """Registers, spills, stack and shared memory by kernel; empty for PTX."""
        return parse_usage(self.log)


def default_units(curve: str) -> list[Unit]:
    """The units a prover on that curve needs, longest to compile first."""
    return [Unit(name, curve) for name in NAMES]


# ---- building ----


class Builder:
    """Builds units, each once; the module's functions use one for the process.

    Parameters
    ----------
    sources : Traversable, optional
        Folder of `.cu` and `.cuh` files; the package's own by default.
    shipped : Traversable, optional
        Folder of compiled kernels that came with the sources.
    disk : Cache, optional
        The user's cache by default.
    """

    def __init__(
        self,
        sources: Traversable | None = None,
        shipped: Traversable | None = None,
        disk: Cache | None = None,
    ) -> None:
        self.sources = _package_folder("cuda") if sources is None else sources
        self.shipped = _package_folder("cubins") if shipped is None else shipped
        self.disk = Cache() if disk is None else disk
        self._made: dict[tuple[Unit, int], Future[Cubin]] = {}
        self._lock = threading.Lock()

    def build(self, unit: Unit, sm: int) -> Cubin:
        """See the module's `build`."""
        with self._lock:
            mine = (unit, sm) not in self._made
            result = self._made.setdefault((unit, sm), Future())
        if mine:  # other threads that ask for it wait for this one
            try:
                result.set_result(self._make(unit, sm))
            except BaseException as error:
                with self._lock:
                    del self._made[unit, sm]  # the next one tries again
                result.set_exception(error)
        return result.result()

    def build_all(self, units: Iterable[Unit], sm: int, threads: int | None = None) -> list[Cubin]:
        """See the module's `build_all`."""
        units = list(units)
        longest_first = sorted(units, key=lambda unit: NAMES.index(unit.name))
        pool = ThreadPoolExecutor(threads or len(os.sched_getaffinity(0)), "pinzk-nvrtc")
        try:
            list(pool.map(lambda unit: self.build(unit, sm), longest_first))
        finally:
            pool.shutdown(cancel_futures=True)
        return [self.build(unit, sm) for unit in units]

    def closure(self, unit: Unit) -> dict[str, str]:
        """Text of every file that the unit includes, by name."""
        found: dict[str, str] = {}
        waiting = _included(unit.source)
        while waiting:
            name = waiting.pop()
            if name not in found:
                try:
                    found[name] = (self.sources / name).read_text(encoding="utf-8")
                except OSError as error:
                    raise CompileError(f"unit {unit} needs {name}, which is not in {self.sources}") from error
                waiting += _included(found[name])
        return dict(sorted(found.items()))

    def key(self, unit: Unit, arch: str, compiler: str) -> str:
        """Hash over all that the unit's code depends on."""
        parts = [unit.source, self.closure(unit), arch, options_for(arch), compiler]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def find_shipped(self, unit: Unit, sm: int) -> Cubin | None:
        """The code that came with these very sources, for exactly that architecture."""
        start = time.perf_counter()
        try:
            found = unpack((self.shipped / shipped_name(unit, sm)).read_bytes())
        except OSError:
            return None
        # made by another NVRTC than the one here, or where there is none: its own version is part of its key
        if found is None or found[0]["key"] != self.key(unit, f"sm_{sm}", found[0]["compiler"]):
            return None
        return _cubin(unit, *found, "shipped", start)

    def find(self, unit: Unit, sm: int) -> Cubin | None:
        """See the module's `find`."""
        return self._look(unit, sm)[0]

    def _look(self, unit: Unit, sm: int) -> tuple[Cubin | None, str, str, str]:
        """What there is, and for what to compile: architecture, compiler, key."""
        start = time.perf_counter()
        if came := self.find_shipped(unit, sm):
            return came, came.arch, came.compiler, came.key
        try:
            compiler, known = compiler_version(), known_architectures()
        except BackendUnavailable:
            # machine code runs on later chips of one generation
            for older in range(sm - 1, sm // 10 * 10 - 1, -1):
                if came := self.find_shipped(unit, older):
                    log.info("%s for sm_%d: no NVRTC, using the code for %s", unit, sm, came.arch)
                    return came, came.arch, came.compiler, came.key
            raise
        arch = architecture(sm, known)
        key = self.key(unit, arch, compiler)
        found = self.disk.get(_cached_name(unit, arch, key), key)
        return _cubin(unit, *found, "cache", start) if found else None, arch, compiler, key

    def _make(self, unit: Unit, sm: int) -> Cubin:
        start = time.perf_counter()
        found, arch, compiler, key = self._look(unit, sm)
        if found:
            return found
        image, text = compile_program(f"{unit}.cu", unit.source, self.closure(unit), arch)
        header = {"unit": str(unit), "arch": arch, "compiler": compiler, "key": key, "log": text}
        self.disk.put(_cached_name(unit, arch, key), header, image)
        made = _cubin(unit, header, image, "compiled", start)
        log.info("compiled %s for %s by NVRTC %s in %.1f s", unit, arch, compiler, made.seconds)
        return made


def _cubin(unit: Unit, header: dict[str, str], image: bytes, origin: str, start: float) -> Cubin:
    seconds = time.perf_counter() - start
    return Cubin(
        unit, header["arch"], image, header["log"], header["key"], header["compiler"], origin, seconds
    )


def _included(text: str) -> list[str]:
    return re.findall(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', text, re.M)


def _package_folder(name: str) -> Traversable:
    return importlib.resources.files(__package__) / name


def _cached_name(unit: Unit, arch: str, key: str) -> str:
    return f"{unit}-{arch}-{key[:16]}.kernel"


def shipped_name(unit: Unit, sm: int) -> str:
    """Name of the file of a unit's code, among those that come with pinzk."""
    return f"{unit}-sm_{sm}.kernel"


_process_builder: Builder | None = None
_process_lock = threading.Lock()


def _process() -> Builder:
    global _process_builder
    with _process_lock:
        if _process_builder is None:
            _process_builder = Builder()
        return _process_builder


def _forget() -> None:
    global _process_builder, _process_lock, _loading
    _process_builder, _process_lock, _loading = None, threading.Lock(), threading.Lock()


os.register_at_fork(after_in_child=_forget)  # what another thread was compiling is never ready in a child


def build(unit: Unit, sm: int) -> Cubin:
    """Machine code of a unit: found, or compiled without holding the interpreter's lock; once in a process.

    Parameters
    ----------
    unit : Unit
    sm : int
        Compute capability of the device, 10 major + minor: 90 for an H200.

    Raises
    ------
    CompileError
        NVRTC refused the source; the error has its log.
    BackendUnavailable
        The device is too old; or the code has to be compiled and NVRTC is not installed.
    """
    return _process().build(unit, sm)


def find(unit: Unit, sm: int) -> Cubin | None:
    """What `build` would not have to compile: the unit's code among the files of pinzk or in the cache; None otherwise.

    Raises
    ------
    BackendUnavailable
        As `build`: there could be no code for that device.
    """
    return _process().find(unit, sm)


_loaded: dict[tuple[Unit, Device], Module] = {}
_loading = threading.Lock()


def load(unit: Unit, device: Device) -> Module:
    """A unit's kernels on a device: built, and loaded once in a process.

    Loading waits for running kernels, so it belongs before the work starts.

    Raises
    ------
    CompileError, BackendUnavailable
        As `build`.
    DeviceError
        The driver refused the code.
    """
    from ._core.device import Module

    module = _loaded.get((unit, device))
    if module is None:
        image = build(unit, device.sm).image
        with _loading:
            module = _loaded.get((unit, device))
            if module is None:
                module = _loaded[unit, device] = Module(device, image)
    return module


def build_all(units: Iterable[Unit], sm: int, threads: int | None = None) -> list[Cubin]:
    """Build several units at once, those that take longest first.

    Parameters
    ----------
    units : iterable of Unit
    sm : int
        As in `build`.
    threads : int, optional
        The processors this process may use, by default.

    Returns
    -------
    list of Cubin
        In the order of `units`.
    """
    return _process().build_all(units, sm, threads)


def warm_up(
    sm: int, curves: Sequence[str] = ("bn254", "bls12_381"), threads: int | None = None
) -> list[Cubin]:
    """Build everything that provers on these curves need, so that the first proof does not wait. Same errors as `build`."""
    return build_all([unit for curve in curves for unit in default_units(curve)], sm, threads)


def shipped() -> list[str]:
    """Names of the compiled kernels that came with pinzk, sorted; none in a build without them."""
    folder = _process().shipped
    return sorted(f.name for f in folder.iterdir() if f.name.endswith(".kernel")) if folder.is_dir() else []


def report(cubins: Iterable[Cubin]) -> str:
    """A table of what each kernel takes: registers, spilled bytes, stack, shared memory."""
    rows = [
        (str(c.unit), c.arch, name, u.registers, u.spill_stores, u.spill_loads, u.stack, u.shared)
        for c in cubins
        for name, u in sorted(c.usage.items())
    ]
    titles = ("unit", "arch", "kernel", "registers", "spill stores", "spill loads", "stack", "shared")
    widths = [max(len(str(row[i])) for row in [titles, *rows]) for i in range(len(titles))]
    return "\n".join(
        "  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in [titles, *rows]
    )
