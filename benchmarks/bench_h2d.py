# SPDX-License-Identifier: Apache-2.0
"""Copies from the host to a GPU: a `PinnedVec` beside the raw driver, `cuMemHostAlloc` and pageable memory, idle and busy.

    python benchmarks/bench_h2d.py [--max 8GiB] [--threads 15] [--json FILE] [--plot FILE.png]

What is uploaded is downloaded and compared before anything is timed. GB/s (1e9 bytes) are medians of wall time from before
the call until the stream is done; the sources take turns, so that all meet the same machine. `raw` is `cuMemcpyHtoDAsync` of
the vector's own memory: the ceiling. The threads copy host memory all the while; what they move is told too.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from cuda.bindings import driver as cu

from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec

MIB = 1 << 20
UNITS = {"MiB": MIB, "GiB": 1 << 30}
_memcpy = ctypes.CDLL(None).memcpy
_memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]
_memcpy.restype = ctypes.c_void_p


def size(text: str) -> int:
    """Bytes of e.g. ``8GiB``."""
    return int(float(text[:-3]) * UNITS[text[-3:]])


def check(result: tuple) -> Any:
    if int(result[0]):
        raise RuntimeError(f"driver: {result[0]}")
    return result[1] if len(result) == 2 else None


@contextmanager
def busy(threads: int) -> Iterator[list[int]]:
    """Threads that copy 64 MiB again and again (ctypes drops the GIL); counts the bytes of each."""
    stop, moved = threading.Event(), [0] * threads
    if threads == 0:
        yield moved
        return
    ready = threading.Barrier(threads + 1)

    def hammer(i: int) -> None:
        a, b = np.ones(64 * MIB, np.uint8), np.zeros(64 * MIB, np.uint8)
        ready.wait()
        while not stop.is_set():
            _memcpy(b.ctypes.data, a.ctypes.data, a.nbytes)
            moved[i] += a.nbytes

    workers = [threading.Thread(target=hammer, args=(i,)) for i in range(threads)]
    for w in workers:
        w.start()
    ready.wait()
    try:
        yield moved
    finally:
        stop.set()
        for w in workers:
            w.join()


def fill(view: np.ndarray) -> None:
    tile = np.random.default_rng(1).integers(0, 256, 16 * MIB, np.uint8)
    for i in range(0, len(view), len(tile)):
        view[i : i + len(tile)] = tile[: len(view) - i]


def check_copy(pool: PinnedPool, device: Device, stream: Stream, nbytes: int) -> None:
    """Up and down again is the identity."""
    with (
        PinnedVec("bytes", nbytes, pool=pool) as v,
        PinnedVec("bytes", nbytes, pool=pool) as w,
        DeviceVec("bytes", nbytes, device) as d,
    ):
        v.resize(nbytes)
        fill(v.borrow_mut().numpy())
        d.upload(v, stream)
        d.download(w, stream)
        stream.synchronize()
        assert np.array_equal(v.borrow().numpy(), w.borrow().numpy()), "the copy is wrong"


def measure(
    copies: dict[str, Callable[[], None]], stream: Stream, nbytes: int, repeats: int
) -> dict[str, dict[str, float]]:
    """Median and best GB/s of each source."""
    seconds: dict[str, list[float]] = {name: [] for name in copies}
    for i in range(repeats + 1):
        for name, copy in copies.items():
            if name == "pageable" and i > 3:
                continue
            start = time.perf_counter()
            copy()
            stream.synchronize()
            if i:  # the first is warming up
                seconds[name].append(time.perf_counter() - start)
    return {
        name: {"median": nbytes / statistics.median(s) / 1e9, "best": nbytes / min(s) / 1e9}
        for name, s in seconds.items()
    }


def plot(results: list[dict[str, Any]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for axis, threads in zip(axes, sorted({r["threads"] for r in results}), strict=False):
        rows = [r for r in results if r["threads"] == threads]
        for name in rows[0]["GB/s"]:
            axis.plot(
                [r["nbytes"] / MIB for r in rows], [r["GB/s"][name]["median"] for r in rows], "o-", label=name
            )
        axis.set(title="idle" if threads == 0 else f"{threads} threads of memcpy", xlabel="MiB", xscale="log")
        axis.grid(alpha=0.3)
    axes[0].set(ylabel="GB/s, host to device", ylim=(0, None))
    axes[0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--max", type=size, default=size("8GiB"), metavar="SIZE")
    parser.add_argument("--threads", type=int, default=15, help="of the busy rows")
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="PNG")
    options = parser.parse_args()

    device = Device(options.device)
    context = check(cu.cuDevicePrimaryCtxRetain(check(cu.cuDeviceGet(device.index))))
    check(cu.cuCtxSetCurrent(context))
    sizes = [n * MIB for n in (64, 256, 1024, 2048, 4096, 8192) if n * MIB <= options.max] or [options.max]
    top = sizes[-1]
    pool = PinnedPool(MemoryBudget(2 * top + 1024 * MIB), kind="pinned", wipe=False)
    stream = Stream(device)
    check_copy(pool, device, stream, min(top, 256 * MIB))
    pool.trim()

    raw_stream = cu.CUstream(stream.handle)
    allocated = check(cu.cuMemHostAlloc(top, 0))
    pageable = np.empty(top, np.uint8)
    vec, target = PinnedVec("bytes", top, pool=pool), DeviceVec("bytes", top, device)
    vec.resize(top)
    lease = vec.borrow_mut()
    fill(lease.numpy())
    pageable[:] = lease.numpy()
    ctypes.memmove(int(allocated), pageable.ctypes.data, top)
    del lease

    results: list[dict[str, Any]] = []
    print(f"{device.name}; GB/s, medians\n{'MiB':>6} {'threads':>7} {'PinnedVec':>10} {'raw':>7} {'HostAlloc':>9} "
          f"{'pageable':>8} {'PinnedVec/raw':>13} {'memcpy':>7}")  # fmt: skip
    for n in reversed(sizes):
        vec.truncate(n)
        copies: dict[str, Callable[[], None]] = {
            "PinnedVec": lambda: target.upload(vec, stream),
            "raw": lambda n=n: check(cu.cuMemcpyHtoDAsync(target.ptr, vec.ptr, n, raw_stream)),  # type: ignore[misc]
            "cuMemHostAlloc": lambda n=n: check(  # type: ignore[misc]
                cu.cuMemcpyHtoDAsync(target.ptr, int(allocated), n, raw_stream)
            ),
            "pageable": lambda n=n: check(  # type: ignore[misc]
                cu.cuMemcpyHtoDAsync(target.ptr, pageable.ctypes.data, n, raw_stream)
            ),
        }
        for threads in sorted({0, options.threads}):
            with busy(threads) as moved:
                start = time.perf_counter()
                rates = measure(copies, stream, n, options.repeats)
                memcpy = sum(moved) / (time.perf_counter() - start) / 1e9
            ratio = rates["PinnedVec"]["median"] / rates["raw"]["median"]
            row = {"nbytes": n, "threads": threads, "GB/s": rates, "ratio": ratio, "memcpy GB/s": memcpy}
            results.insert(0, row)
            print(f"{n // MIB:6} {threads:7} " + " ".join(f"{rates[k]['median']:{w}.1f}" for k, w in
                  (("PinnedVec", 10), ("raw", 7), ("cuMemHostAlloc", 9), ("pageable", 8))) + f" {ratio:13.3f} {memcpy:7.1f}",
                  flush=True)  # fmt: skip
    vec.release()
    target.release()
    check(cu.cuMemFreeHost(allocated))
    if options.json:
        with open(options.json, "w") as f:
            json.dump({"device": device.name, "rows": results}, f, indent=1)
    if options.plot:
        plot(results, options.plot)


if __name__ == "__main__":
    main()
