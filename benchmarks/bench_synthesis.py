# SPDX-License-Identifier: Apache-2.0
"""Synthesis into pinned memory beside copies to a GPU, and the pool's hot path while long kernels run.

    python benchmarks/bench_synthesis.py [--log-n 27] [--rounds 4] [--json FILE]

Two `ProvingAssignment`s of 2^n constraints take turns: a, b, c of one are filled from prepared rows by `extend_rows` (a
synthesis that only copies) while those of the other are on their way. Each alone comes first, for the ratio. What arrived is
compared in three places. Then transforms keep the device busy for about a second while blocks are checked out, written and
released: the slowest of those calls is told beside the slowest without the kernels.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from pinzk import BN254
from pinzk._core.assignment import ProvingAssignment
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import Words
from pinzk.stages.device_ntt import DeviceNtt

FR = BN254.fr
CHUNK_LOG = 22


def prepared(n: int) -> list[Words]:
    out = []
    for seed in range(3):
        rows = np.random.default_rng(seed).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
        rows[:, 3] >>= np.uint64(3)
        out.append(rows)
    return out


class Lane:
    """One assignment and the device memory it goes to."""

    def __init__(self, n: int, pool: PinnedPool, device: Device) -> None:
        self.n, self.pool = n, pool
        self.target = [DeviceVec(FR, n, device) for _ in range(3)]

    def synthesise(self, rows: list[Words]) -> None:
        self.assignment = ProvingAssignment(BN254, constraints=self.n, pool=self.pool)
        for _ in range(self.n // len(rows[0])):
            self.assignment.extend_rows(*rows)

    def copy(self, stream: Stream) -> None:
        """Enqueue the copies and give a, b, c back: the pool takes them when the copies are done."""
        for vec, target in zip(
            (self.assignment.a, self.assignment.b, self.assignment.c), self.target, strict=True
        ):
            assert vec is not None
            target.upload(vec, stream)
        self.assignment.release_abc()


def check(lane: Lane, rows: list[Words], stream: Stream) -> None:
    for target, want in zip(lane.target, rows, strict=True):
        pinned = PinnedVec(FR, lane.n, pool=lane.pool)
        pinned.resize(lane.n)
        target.download(pinned, stream)
        stream.synchronize()
        got = pinned.borrow().numpy()
        for at in (0, lane.n // 2 // len(want) * len(want), lane.n - len(want)):
            assert np.array_equal(got[at : at + len(want)], want), "what arrived is not what was written"
        del got
        pinned.release()


def slowest(pool: PinnedPool, seconds: float) -> dict[str, float]:
    """Microseconds of the slowest checkout and release of 64 MiB in that time."""
    worst, end = {"checkout": 0.0, "release": 0.0, "calls": 0.0}, time.perf_counter() + seconds
    while time.perf_counter() < end:
        begin = time.perf_counter()
        block = pool.checkout(64 << 20)
        middle = time.perf_counter()
        block.release()
        after = time.perf_counter()
        worst["checkout"] = max(worst["checkout"], 1e6 * (middle - begin))
        worst["release"] = max(worst["release"], 1e6 * (after - middle))
        worst["calls"] += 1
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log-n", type=int, default=27)
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--json")
    options = parser.parse_args()
    n, device = 1 << options.log_n, Device("cuda")
    stream, nbytes = Stream(device), 3 * 32 << options.log_n
    pool = PinnedPool(MemoryBudget(3 * nbytes + (2 << 30)), kind="pinned", wipe=False)
    rows = prepared(min(n, 1 << CHUNK_LOG))
    lanes = [Lane(n, pool, device) for _ in range(2)]
    result: dict = {"device": device.name, "log_n": options.log_n, "bytes": nbytes}

    for lane in lanes:  # pins the memory
        lane.synthesise(rows)
        lane.copy(stream)
    stream.synchronize()
    check(lanes[0], rows, stream)
    begin = time.perf_counter()
    lanes[0].synthesise(rows)
    result["synthesis alone GB/s"] = nbytes / (time.perf_counter() - begin) / 1e9
    begin = time.perf_counter()
    lanes[0].copy(stream)
    stream.synchronize()
    result["copy alone GB/s"] = nbytes / (time.perf_counter() - begin) / 1e9

    writing, copies = 0.0, []
    lanes[0].synthesise(rows)
    begin = time.perf_counter()
    for i in range(options.rounds):
        first = stream.record()
        lanes[i % 2].copy(stream)
        copies.append((first, stream.record()))
        at = time.perf_counter()
        lanes[(i + 1) % 2].synthesise(rows)
        writing += time.perf_counter() - at
        copies[-1][1].synchronize()
    wall = time.perf_counter() - begin
    milliseconds = [end.elapsed_ms(first) for first, end in copies]
    result["together: synthesis GB/s"] = options.rounds * nbytes / writing / 1e9
    result["together: copy GB/s"] = nbytes / (sum(milliseconds) / len(milliseconds)) / 1e6
    result["together: wall / larger of the two"] = wall / max(writing, sum(milliseconds) / 1e3)
    lanes[options.rounds % 2].copy(stream)
    stream.synchronize()
    for lane in lanes:
        check(lane, rows, stream)

    result["slowest us, idle device"] = slowest(pool, 0.5)
    ntt = DeviceNtt(BN254, 24, pow(5, (FR.modulus - 1) >> 24, FR.modulus), device)
    v = lanes[0].target[0]
    v.truncate(min(len(v), 1 << 24))
    if len(v) == 1 << 24:
        ntt.dif(v, stream)
        stream.synchronize()
        begin = time.perf_counter()
        first = stream.record()
        for _ in range(300):
            ntt.dif(v, stream)
        last = stream.record()
        result["slowest us, kernels running"] = slowest(pool, 0.6)
        assert not last.done(), "the kernels ended before the measurement"
        last.synchronize()
        result["kernels ms"] = last.elapsed_ms(first)
    print(json.dumps(result, indent=1))
    if options.json:
        with open(options.json, "w") as f:
            json.dump(result, f, indent=1)


if __name__ == "__main__":
    main()
