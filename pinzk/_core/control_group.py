# SPDX-License-Identifier: Apache-2.0
"""What this process's control group, and those above it, allow: cores and memory (cgroup versions 2 and 1)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

PROC, ROOT = "/proc/self/cgroup", "/sys/fs/cgroup"


def cpu_quota(proc: str = PROC, root: str = ROOT) -> float | None:
    """The smallest quota, in cores; None where there is no limit."""
    quotas = []
    for folder, version in _folders("cpu", proc, root):
        if version == 2:
            words = (_text(folder / "cpu.max") or "").split()
        else:
            words = [_text(folder / f"cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
        try:
            quota, period = map(int, words)
        except ValueError:  # not there, or "max"
            continue
        if quota > 0 and period > 0:
            quotas.append(quota / period)
    return min(quotas, default=None)


def memory_limit(proc: str = PROC, root: str = ROOT) -> int | None:
    """The smallest limit in bytes; None where there is none."""
    limits = []
    for folder, version in _folders("memory", proc, root):
        text = _text(folder / ("memory.max" if version == 2 else "memory.limit_in_bytes"))
        try:
            limits.append(int(text or ""))
        except ValueError:
            continue
    return min((n for n in limits if 0 < n < 1 << 60), default=None)  # version 1 writes almost 2^63 for none


def _folders(controller: str, proc: str, root: str) -> Iterator[tuple[Path, int]]:
    # In a container the paths in `proc` may be those of the host: the mount's own folder is always read.
    for line in ["0::/", f"1:{controller}:/", *(_text(Path(proc)) or "").splitlines()]:
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        folder, version = (Path(root, controller), 1) if controllers else (Path(root), 2)
        yield folder, version
        for name in filter(None, path.split("/")):
            folder /= name
            yield folder, version


def _text(path: Path) -> str | None:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return None
