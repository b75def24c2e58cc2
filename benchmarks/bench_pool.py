# SPDX-License-Identifier: Apache-2.0
"""Getting and giving back pinned memory: pinzk beside PyTorch, CuPy and cuda.core where they are installed.

    python benchmarks/bench_pool.py [--max 12GiB] [--json FILE] [--plot FILE.png]

What a checkout and a release of 64 MiB cost in steady state, from Python (µs, the best mean of many rounds). What pinning
costs (s/GiB), the first time and, after everything was given back, the second: the machine backs fresh pages the first time.
And what wiping takes from a copy that runs beside it (GB/s host to device).
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import threading
import time
from collections.abc import Callable
from typing import Any

from bench_h2d import MIB, check, size
from cuda.bindings import driver as cu

from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec

BLOCK = 64 * MIB
COPY = 256 * MIB


def best_us(work: Callable[[], object], loops: int = 2000, rounds: int = 15) -> float:
    """Microseconds of one call: the best mean of the rounds."""
    best = float("inf")
    work()
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(loops):
            work()
        best = min(best, (time.perf_counter() - start) / loops)
    return best * 1e6


def pinzk_unwiped() -> float:
    pool = PinnedPool(MemoryBudget(4 * BLOCK), kind="pinned", wipe=False)
    pool.warm(BLOCK)
    checkout = pool.checkout
    before = pool.stats().allocations
    us = best_us(lambda: checkout(BLOCK).release())
    assert pool.stats().allocations == before, "steady state must not pin"
    pool.close()
    return us


def pinzk_wiped_release() -> float:
    """The release alone, of blocks written from end to end."""
    pool = PinnedPool(MemoryBudget(20 * BLOCK), kind="pinned")
    pool.warm(BLOCK, count=16)
    best = float("inf")
    for _ in range(10):
        blocks = pool.checkout_many([BLOCK] * 16)
        for b in blocks:
            b.borrow_mut()  # all of it counts as written
        start = time.perf_counter()
        for b in blocks:
            b.release()
        best = min(best, (time.perf_counter() - start) / len(blocks))
        pool.settle()
    pool.close()
    return best * 1e6


def torch_pinned() -> float:
    import torch

    return best_us(lambda: torch.empty(BLOCK, dtype=torch.uint8, pin_memory=True))


def cupy_pinned() -> float:
    import cupy

    return best_us(lambda: cupy.cuda.alloc_pinned_memory(BLOCK))


def cuda_core_pinned() -> float:
    from cuda import core

    if not hasattr(core, "PinnedMemoryResource"):
        from cuda.core import experimental as core
    device = core.Device()
    device.set_current()
    stream = device.create_stream()
    resource = core.PinnedMemoryResource()

    def work() -> None:
        resource.allocate(BLOCK, stream=stream).close(stream)

    return best_us(work, loops=500)


def steady() -> dict[str, float | str]:
    """µs by library, or why there is no figure."""
    out: dict[str, float | str] = {
        "pinzk, wipe=False": pinzk_unwiped(),
        "pinzk, wipe=True, release alone": pinzk_wiped_release(),
    }
    for name, module, work in (
        ("PyTorch", "torch", torch_pinned),
        ("CuPy", "cupy", cupy_pinned),
        ("cuda.core", "cuda.core", cuda_core_pinned),
    ):
        if importlib.util.find_spec(module) is None:
            out[name] = "not installed"
            continue
        try:
            out[name] = work()
        except Exception as e:  # a peer of another version: say so, go on
            out[name] = f"{type(e).__name__}: {e}"
    return out


def pinning(nbytes: int) -> dict[str, float]:
    """s/GiB to pin, and to give back, twice; and `cuMemHostAlloc` beside it."""
    out = {}
    gib = nbytes / (1 << 30)
    pool = PinnedPool(MemoryBudget(nbytes + 1024 * MIB), kind="pinned", wipe=False)
    for time_of in ("first", "second"):
        start = time.perf_counter()
        block = pool.checkout(nbytes)
        out[f"pin, {time_of}"] = (time.perf_counter() - start) / gib
        block.release()
        start = time.perf_counter()
        pool.trim()
        out[f"give back, {time_of}"] = (time.perf_counter() - start) / gib
    pool.close()
    small = min(nbytes, 2 << 30)
    start = time.perf_counter()
    pointer = check(cu.cuMemHostAlloc(small, 0))
    out["cuMemHostAlloc"] = (time.perf_counter() - start) / (small / (1 << 30))
    check(cu.cuMemFreeHost(pointer))
    return out


def beside(device: Device, wipe: bool | None, seconds: float = 2.0) -> dict[str, float]:
    """GB/s host to device while blocks are written and released; `wipe` None: nothing runs beside."""
    n = COPY
    source = PinnedPool(MemoryBudget(2 * n), kind="pinned", wipe=False)
    other = PinnedPool(MemoryBudget(8 * n), kind="pinned", wipe=bool(wipe))
    stop = threading.Event()
    turns = [0]

    def churn() -> None:
        while not stop.is_set():
            block = other.checkout(n)
            block.borrow_mut()
            block.release()
            turns[0] += 1
            time.sleep(0.005)

    other.warm(n, count=4)
    with (
        PinnedVec("bytes", n, pool=source) as v,
        Stream(device) as stream,
        DeviceVec("bytes", n, device) as d,
    ):
        v.resize(n)
        d.upload(v, stream)
        stream.synchronize()
        thread = threading.Thread(target=churn)
        if wipe is not None:
            thread.start()
        start, copies = time.perf_counter(), 0
        while time.perf_counter() - start < seconds:
            d.upload(v, stream)
            stream.synchronize()
            copies += 1
        rate = copies * n / (time.perf_counter() - start) / 1e9
        stop.set()
        if wipe is not None:
            thread.join()
    wiped = other.stats().wiped / seconds / 1e9
    other.close()
    source.close()
    return {"copy GB/s": rate, "wiped GB/s": wiped, "releases a second": turns[0] / seconds}


def plot(results: dict[str, Any], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 3.6))
    for axis, title, rows in (
        (axes[0], "checkout + release of 64 MiB, µs", results["steady µs"]),
        (axes[1], "s/GiB", results["pinning s/GiB"]),
    ):
        rows = {k: v for k, v in rows.items() if isinstance(v, float)}
        axis.barh(list(rows), list(rows.values()))
        axis.invert_yaxis()
        axis.set(title=title)
        for i, v in enumerate(rows.values()):
            axis.text(v, i, f" {v:.3g}", va="center")
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max", type=size, default=size("12GiB"), metavar="SIZE", help="pinned at once")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="PNG")
    options = parser.parse_args()

    device = Device(options.device)
    check(cu.cuCtxSetCurrent(check(cu.cuDevicePrimaryCtxRetain(check(cu.cuDeviceGet(device.index))))))
    results: dict[str, Any] = {"device": device.name, "pinned bytes": options.max}
    results["pinning s/GiB"] = pinning(options.max)
    results["steady µs"] = steady()
    results["copy beside"] = {
        "nothing": beside(device, None),
        "releases, wipe=False": beside(device, False),
        "releases, wipe=True": beside(device, True),
    }
    print(json.dumps(results, indent=1, ensure_ascii=False))
    if options.json:
        with open(options.json, "w") as f:
            json.dump(results, f, indent=1, ensure_ascii=False)
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
