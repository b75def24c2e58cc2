# SPDX-License-Identifier: Apache-2.0
"""`pinzk doctor`: what pinzk finds on this machine, and why something it could use is not there."""

from __future__ import annotations

import argparse
import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import re
import resource
import sys
from collections.abc import Callable, Iterable
from typing import Any

from . import backend, cli_devices, kernel_cache, kernels
from ._core import control_group, cpu
from .cli_report import Reporter, environment_problems, print_json, print_table
from .errors import DeviceError, PinzkError

VARIABLES = ("PINZK_DEVICE", "PINZK_NUM_THREADS", "PINZK_CACHE_DIR", "PINZK_MAX_PINNED", "PINZK_LOG")
CPU_FEATURES = (
    "bmi2",
    "adx",
    "avx2",
    "avx512f",
    "avx512ifma",
    "asimd",
    "sve",
)  # what field arithmetic can gain from


def add_arguments_doctor(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk doctor`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_doctor(options: argparse.Namespace, reporter: Reporter) -> int:
    """Print the findings; always succeeds, because a machine without a GPU is a good machine."""
    found = examine()
    if options.json:
        print_json(found)
        return 0
    print_table({name: _text(value) for name, value in found.items()})
    return 0


def examine() -> dict[str, Any]:
    """Facts by name; a value is a string, a number, None or a list of strings."""
    return {
        "pinzk": _version("pinzk"),
        "python": f"{platform.python_version()} ({sys.executable})",
        "numpy": _version("numpy"),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": _cpu_model(),
        "cpu_features": _cpu_features(),
        "cores": os.cpu_count(),
        "cores_allowed": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "cgroup_cpus": _cgroup_cpus(),
        "threads": _threads(),
        "memory": _bytes(_meminfo("MemTotal")),
        "memory_available": _bytes(_meminfo("MemAvailable")),
        "cgroup_memory_limit": _bytes(control_group.memory_limit()),
        "page_locking_limit": _memlock(),
        "cache_folder": _cache_folder(),
        "kernels": _kernels(),
        "backend": _backend(),
        "cuda_driver": _cuda_driver(),
        "nvrtc": _nvrtc(),
        "cuda_bindings": _version("cuda-bindings"),
        "devices": _devices(),
        "settings": [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ],
        "problems": environment_problems(),
    }


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value) or "none"
    return "not known" if value is None else str(value)


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


# ---- processor and memory ----


def _cpu_model() -> str | None:
    return _first_match("/proc/cpuinfo", r"^model name\s*:\s*(.+)$") or platform.processor() or None


def _cpu_features() -> list[str]:
    flags = set((_first_match("/proc/cpuinfo", r"^(?:flags|Features)\s*:\s*(.+)$") or "").split())
    return [name for name in CPU_FEATURES if name in flags]


def _cgroup_cpus() -> str:
    quota = control_group.cpu_quota()  # what num_threads goes by
    return "no limit" if quota is None else f"{quota:g}"


def _threads() -> str:
    try:
        return str(cpu.num_threads())
    except ValueError as error:
        return str(error)


def _meminfo(name: str) -> int | None:
    kib = _first_match("/proc/meminfo", rf"^{name}:\s*(\d+) kB$")
    return int(kib) * 1024 if kib else None


def _memlock() -> str:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return "no limit" if soft == resource.RLIM_INFINITY else str(_bytes(soft))


def _bytes(n: int | None) -> str:
    if n is None:
        return "no limit"
    return f"{n / 2**30:.1f} GiB" if n >= 1 << 30 else f"{n / 2**20:.1f} MiB"


def _first_match(path: str, pattern: str) -> str | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            found = re.search(pattern, f.read(1 << 20), re.MULTILINE)
    except OSError:
        return None
    return found.group(1).strip() if found else None


# ---- cache and GPU ----


def _backend() -> str:
    """What a proof would run on now."""
    try:
        return backend.name_of(backend.select())
    except (ValueError, PinzkError) as error:
        return str(error)


def _cache_folder() -> str:
    folder = kernel_cache.default_folder()
    there = folder
    while not there.exists() and there.parent != there:
        there = there.parent
    if there.is_dir() and os.access(there, os.W_OK | os.X_OK):
        return str(folder) if there == folder else f"{folder} (will be made when needed)"
    return f"{folder} (cannot be written, so compiled kernels are not kept: set PINZK_CACHE_DIR)"


def _kernels() -> str:
    """Compiled kernels that are at hand."""
    shipped, cached = kernels.shipped(), kernel_cache.Cache().entries()
    return (
        f"{len(shipped)} with pinzk, {len(cached)} in the cache ({_bytes(sum(size for _, size in cached))})"
    )


def _load(names: Iterable[str]) -> tuple[ctypes.CDLL | None, str]:
    """The first library that loads, or why the last one did not."""
    why = "not found"
    for name in names:
        try:
            return ctypes.CDLL(name), name
        except OSError as error:
            why = str(error)
    return None, why


def _cuda_driver() -> str:
    try:
        return cli_devices.driver()
    except DeviceError as error:
        return str(error)


def _devices() -> list[str]:
    return [
        f"cuda:{d.index} {d.name}, sm_{d.sm}, {'usable' if d.usable else f'cannot be used: {d.why_not}'}"
        for d in cli_devices.look()[0]
    ]


def _nvrtc() -> str:
    folders: list[str] = []
    spec = importlib.util.find_spec("nvidia")
    for root in spec.submodule_search_locations or [] if spec else []:
        for part in ("cu13", "cu12", "cuda_nvrtc"):
            folders.append(os.path.join(root, part, "lib"))
    files = [
        os.path.join(f, n) for f in folders if os.path.isdir(f) for n in sorted(os.listdir(f)) if _is_nvrtc(n)
    ]
    library, name = _load([*files, "libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"])
    if library is None:
        return f"not there ({name}): needed for a GPU only, pip install nvidia-cuda-nvrtc"
    major, minor = ctypes.c_int(0), ctypes.c_int(0)
    ask: Callable[..., int] = library.nvrtcVersion
    if ask(ctypes.byref(major), ctypes.byref(minor)) != 0:
        return f"{name} does not answer"
    return f"{major.value}.{minor.value} ({name})"


def _is_nvrtc(name: str) -> bool:
    return re.fullmatch(r"libnvrtc\.so(\.\d+)*", name) is not None
