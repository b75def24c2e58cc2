# SPDX-License-Identifier: Apache-2.0
"""Kernels without a GPU: a unit becomes a shared object by g++, which the fake driver runs. `tests/simt/README.md`."""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from pinzk import kernels
from pinzk.errors import CompileError

ROOT = Path(__file__).resolve().parent.parent
HERE = ROOT / "tests" / "simt"
BUILD = ROOT / "build" / "simt"
FLAGS = ["-std=c++17", "-O1", "-g1", "-fPIC", "-fvisibility=hidden", "-fno-threadsafe-statics", "-Werror"]
# what a GPU may punish or not: indices out of range, misaligned accesses; by a trap, so that no library is needed
FLAGS += ["-fsanitize=bounds,alignment", "-fsanitize-undefined-trap-on-error", "-Wno-pragmas"]
# tell of every access, to tests/simt/races.c
FLAGS += [
    "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    "--param=tsan-instrument-func-entry-exit=0",
]
LINK = ["-nodefaultlibs", "-lc", "-lgcc"]  # without the runtime of -fsanitize=thread


@functools.cache
def real_gpu() -> bool:
    """Whether there is a GPU; asked of the driver itself, so that pinzk has not looked yet."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    n = ctypes.c_int()
    return driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(n)) == 0 and n.value > 0


# the GPU tests of this run are on the simulator: sizes must be small
SIMULATED = bool(os.environ.get("PINZK_SIMULATOR")) or not real_gpu()


# ---- building ----


def build(name: str, key: Sequence[str], command: Sequence[str], text: str | None = None) -> Path:
    """The file ``build/simt/<key>/<name>``: found, or made by `command` (``{out}`` is the file) from `text`."""
    digest = hashlib.sha256("\0".join([*key, *command, text or ""]).encode()).hexdigest()[:16]
    path = BUILD / digest / name
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path.parent / "lock", "w") as lock:  # other processes want the same file at the same time
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
                made = Path(scratch) / name
                words = [w.format(out=made) for w in command]
                done = subprocess.run(words, input=text, text=True, capture_output=True, check=False)
                if done.returncode:
                    raise CompileError(f"{name} does not compile:\n{done.stderr[:4000]}", log=done.stderr)
                made.replace(path)
    return path


def build_driver() -> Path:
    """Folder with the fake ``libcuda.so.1``."""
    compiler = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]
    if shutil.which(compiler) is None:
        compiler = "cc"
    sources = [ROOT / "tests/fakecuda/fakecuda.c", *sorted(HERE.glob("*.c"))]
    headers = [HERE / "simt.h", HERE / "state.h"]
    command = [
        compiler,
        "-std=gnu11",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-O2",
        "-g",
        "-shared",
        "-fPIC",
        "-pthread",
    ]
    command += ["-Wl,-soname,libcuda.so.1", f"-I{HERE}", "-o", "{out}", *map(str, sources), "-ldl"]
    return build("libcuda.so.1", [p.read_text() for p in [*sources, *headers]], command).parent


def compile_unit(unit: kernels.Unit, builder: kernels.Builder) -> Path:
    """The shared object of a unit, from the files that NVRTC would be given."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in builder.closure(unit).items():
            (Path(folder) / name).write_text(text)
        command = [*_compiler(), "-E", "-std=c++17", "-x", "c++", f"-I{folder}", "-"]
        done = subprocess.run(command, input=unit.source, capture_output=True, text=True, check=False)
    if done.returncode:
        raise CompileError(f"{unit} cannot be preprocessed:\n{done.stderr[:4000]}", log=done.stderr)
    text = translate(done.stdout.replace(f"{folder}/", ""))
    command = [*_compiler(), *FLAGS, "-shared", f"-I{HERE}", "-x", "c++", "-o", "{out}", "-", *LINK]
    return build(f"{unit}.so", [p.read_text() for p in (HERE / "simt.hpp", HERE / "state.h")], command, text)


def _compiler() -> list[str]:
    return shlex.split(os.environ.get("CXX", "c++"))


_KERNEL = re.compile(
    r'extern\s+"C"\s+__global__\s+(?:__launch_bounds__\s*\(([^()]*(?:\([^()]*\)[^()]*)*)\)\s*)?void\s+(\w+)\s*\('
)


def translate(text: str) -> str:
    """Preprocessed CUDA C++ as C++: shared memory, and a table of the kernels."""
    # long functions are to be compiled once, loops to stay loops: seconds instead of minutes
    text = text.replace("__attribute__((always_inline))", "")
    text = re.sub(r"^\s*#pragma (GCC )?unroll.*$", "", text, flags=re.M)
    text = text.replace("thread_local", "")  # one thread at a time
    # the carry flag is nobody else's: no access to be told of
    unchecked = r'inline __attribute__((no_sanitize("thread"))) \1 '
    text = re.sub(r"^inline (u32|void) (?=\w+\(u32)", unchecked, text, flags=re.M)
    text = re.sub(
        r"extern\s+__shared__\s+((?:alignas\([^)]*\)\s*)?)([^;\[]+?)\s*\b(\w+)\s*\[\s*\]\s*;",
        r"\2* const \3 = reinterpret_cast<\2*>(::simt::state->dynamic);",
        text,
    )
    text = re.sub(
        r"(?<!\w)(?:static\s+)?__shared__\s+(?:alignas\([^)]*\)\s*)?([^;]*?)\b(\w+)((?:\s*\[[^;]*\])*)\s*;",
        r"static auto& \2 = *::simt::place<\1 \3>();",
        text,
    )
    found = _KERNEL.findall(text)
    rows = [f'::simt::Entry<&::{name}>::make("{name}", ::simt::bounds({bounds})),' for bounds, name in found]
    return "\n".join(
        [
            '#include "simt.hpp"',
            text,
            '# 1 "table of kernels"',
            "static const simt_kernel simt_kernels[] = {",
            *rows,
            "};",
            'extern "C" __attribute__((visibility("default"))) const simt_image* simt_attach(simt_state* state) {',
            "  ::simt::state = state;",
            f"  ::simt::image.kernels = simt_kernels, ::simt::image.kernels_n = {len(found)};",
            "  return &::simt::image;",
            "}",
            "",
        ]
    )


class Builder(kernels.Builder):
    """Makes images for the fake driver instead of machine code."""

    def find(self, unit: kernels.Unit, sm: int) -> kernels.Cubin | None:
        return None

    def _make(self, unit: kernels.Unit, sm: int) -> kernels.Cubin:
        start = time.perf_counter()
        path = compile_unit(unit, self)
        image = b"simt;" + os.fsencode(path) + b"\0"
        seconds = time.perf_counter() - start
        return kernels.Cubin(unit, f"sm_{sm}", image, "", path.parent.name, "g++", "compiled", seconds)


# ---- use ----


def install(memory: int = 1 << 30, multiprocessors: int = 4) -> None:
    """Make this process's driver the fake one, its device one that runs kernels. Before pinzk asks for the driver."""
    # whoever opens libcuda.so.1 later gets this one, by its name
    ctypes.CDLL(str(build_driver() / "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
    from fake_cuda import FAKE

    FAKE.device(memory, multiprocessors)
    kernels._process_builder = Builder()


def begin(seed: int) -> None:
    """Choose the order of threads and blocks, and how late streams run; 0: as numbered, at once."""
    from fake_cuda import FAKE

    FAKE.order(seed)
    FAKE.late(min(seed, 2))


def fault() -> str | None:
    """What simulated kernels did wrong since this was last asked, all enqueued work done."""
    from fake_cuda import FAKE

    FAKE.late(0)
    said = FAKE.fault()
    if said and (place := re.search(r" at (\S+)\+(0x[0-9a-f]+)$", said)) and shutil.which("addr2line"):
        command = ["addr2line", "-i", "-e", place[1], place[2]]
        lines = subprocess.run(command, capture_output=True, text=True, check=False).stdout.split()
        said += f" ({', '.join(Path(line).name for line in lines if not line.startswith(str(HERE)))})"
    return said
