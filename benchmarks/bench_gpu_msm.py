# SPDX-License-Identifier: Apache-2.0
"""Multi-scalar sums on a GPU: each size checked by known discrete logarithms in the same run, then timed.

    python benchmarks/bench_gpu_msm.py [--groups bn254.g1,..] [--sizes 20,22] [--width C] [--most M] [--json FILE]

Bases are 2^12 known multiples of the generator, again and again; their multiples come from the same logarithms. Scalars are
uniform below a power of two, one bit less than the order, canonical, in pinned memory; `sparse` has 95 % zeros and ones. A
time is from the call until the affine point is there, the upload included, bases and their multiples on the device:
medians, milliseconds. `parts` are times on the device, one after the other. `bound` is the time of the additions
alone at the rate that `RATES` names, with nothing for the sort, the join and the fold.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk.curves import Curve, Group, Words
from pinzk.stages.device_msm import DeviceMsm, resident_blocks
from pinzk.stages.device_sort import DigitSorter, Windows

DISTINCT = 1 << 12
# additions of affine points, G/s: what the multiplications of an H200 allow (docs/kernels.md, 7)
RATES = {"bls12_381.g1": 3.08, "bn254.g1": 6.84, "bls12_381.g2": 1.04, "bn254.g2": 2.24}
WIDTHS = {14: 12, 16: 13, 18: 15, 20: 17, 22: 20, 23: 20, 24: 22, 26: 24}


def group_named(name: str) -> tuple[Curve, Group]:
    curve = Curve.named(name.split(".")[0])
    return curve, curve.g1 if name.endswith("g1") else curve.g2


def random_rows(curve: Curve, n: int, sparse: bool) -> Words:
    rng = np.random.default_rng(n)
    rows = rng.integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    rows[:, 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    if sparse:
        small = rng.random(n) < 0.95
        rows[small] = 0
        rows[small, 0] = rng.integers(0, 2, size=int(small.sum()), dtype=np.uint64)
    return rows


class Bench:
    """One group on one device, n bases."""

    def __init__(
        self, curve: Curve, group: Group, log_n: int, windows: Windows, waves: int, cut: list[int]
    ) -> None:
        self.curve, self.group, self.windows, self.n = curve, group, windows, 1 << log_n
        self.device = Device("cuda")
        chunks = [self.n * part // sum(cut) for part in cut] if cut else None
        self.sorter = DigitSorter(curve, windows, self.n, self.device, chunks=chunks)
        blocks = waves * resident_blocks(group) * self.device.multiprocessors
        self.msm = DeviceMsm(curve, group, windows, self.device, blocks=blocks)
        r = curve.fr.modulus
        distinct = min(DISTINCT, self.n)
        self.logs = [(i * 0x9E3779B97F4A7C15F39CC0605CEDC834 + 7) ** 3 % r for i in range(distinct)]
        self.table = DeviceVec(group, windows.multiples * self.n, self.device)
        stream = Stream(self.device)
        for j in range(windows.multiples):
            shift = pow(2, j * windows.spacing, r)
            scalars = curve.fr.encode_canonical([k * shift % r for k in self.logs])
            pinned = PinnedVec.from_array(group, cpu.fixed_base(group, cpu.generator(group), scalars))
            for i in range(self.n // distinct):
                self.table.upload(pinned, stream, start=j * self.n + i * distinct)
            stream.synchronize()
            pinned.release()

    def expected(self, rows: Words) -> Words:
        r, distinct = self.curve.fr.modulus, len(self.logs)
        halves = rows.reshape(-1, distinct, 4).view(np.uint32).sum(axis=0, dtype=np.uint64)
        total = sum(
            k * sum(int(h) << 32 * i for i, h in enumerate(row))
            for k, row in zip(self.logs, halves, strict=True)
        )
        scalar = self.curve.fr.encode_canonical([total % r])
        return cpu.fixed_base(self.group, cpu.generator(self.group), scalar)

    def run(self, rows: Words, repeats: int) -> dict:
        pinned = PinnedVec.from_array(self.curve.fr, rows)
        want = self.expected(rows)
        times = []
        for i in range(repeats + 2):
            since = time.perf_counter()
            got = self.msm.start(self.table, self.sorter.sort(pinned)).finish()
            times.append(1e3 * (time.perf_counter() - since))
            assert np.array_equal(got, want), (
                f"{self.group.name} n = {self.n}, {self.windows}: wrong sum in round {i}"
            )
        parts: list = []
        stream = self.sorter.stream
        begin = stream.record()
        digits = self.sorter.sort(self.sorter._scalars)  # they are there from the rounds before
        sorted_at = stream.record()
        digits.check()  # so that parts are times of one stream alone
        assert np.array_equal(self.msm.start(self.table, digits, parts=parts).finish(), want)
        named: dict[str, float] = {"sort": sorted_at.elapsed_ms(begin)}
        for name, a, b in parts:
            named[name] = named.get(name, 0) + b.elapsed_ms(a)
        pinned.release()
        return {"ms": statistics.median(times[2:]), "least_ms": min(times[2:]), "parts": named}

    def close(self) -> None:
        for owner in (self.sorter, self.msm):
            owner.close()
        self.table.release()
        self.device.settle()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", default="bls12_381.g1,bn254.g1,bls12_381.g2,bn254.g2")
    parser.add_argument("--sizes", default="20,22")
    parser.add_argument("--width", type=int)
    parser.add_argument("--most", type=int, default=1 << 10, help="multiples of the bases at most")
    parser.add_argument("--waves", type=int, default=1, help="of blocks that accumulate")
    parser.add_argument(
        "--chunks", type=lambda s: [int(x) for x in s.split(",")], default=[], help="parts, e.g. 1,3"
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--json")
    args = parser.parse_args()
    results = []
    for name in args.groups.split(","):
        curve, group = group_named(name)
        for log_n in map(int, args.sizes.split(",")):
            windows = Windows(curve.fr.modulus.bit_length(), args.width or WIDTHS[log_n], args.most)
            bench = Bench(curve, group, log_n, windows, args.waves, args.chunks)
            bound = windows.windows * (1 << log_n) / RATES[name] / 1e6
            for sparse in (False, True):
                result = bench.run(random_rows(curve, 1 << log_n, sparse), args.repeats)
                result |= {"group": name, "log_n": log_n, "sparse": sparse, "width": windows.width}
                result |= {"windows": windows.windows, "multiples": windows.multiples, "sets": windows.sets}
                result |= {"chunks": bench.sorter.chunks, "waves": args.waves}
                if not sparse:
                    result["bound_ms"] = bound
                results.append(result)
                parts = ", ".join(f"{k} {v:.3f}" for k, v in result["parts"].items())
                print(
                    f"{name} 2^{log_n}{' sparse' if sparse else ''} c={windows.width} x{windows.multiples}: "
                    f"{result['ms']:.3f} ms (least {result['least_ms']:.3f}), bound {bound:.3f}; {parts}",
                    flush=True,
                )
            bench.close()
            if args.json:  # what there is so far
                Path(args.json).write_text(
                    json.dumps({"device": bench.device.name, "results": results}, indent=1)
                )


if __name__ == "__main__":
    main()
