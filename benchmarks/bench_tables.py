# SPDX-License-Identifier: Apache-2.0
"""Tables of multiples and products of one base on a GPU: checked against the CPU backend in the same run, then timed.

    python benchmarks/bench_tables.py [--log 20] [--json FILE]

Points are known multiples of the generator. Of each result 500 rows are compared with the CPU's. Milliseconds are medians
of 3 between events. Bounds count multiplier instructions alone (bench_field.py): of a table its doublings, of products
their additions.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable

import numpy as np
from bench_field import clocks

import pinzk
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk.curves import Group, Words
from pinzk.stages.device_tables import DeviceTables, FixedBase

CHECKED = 500


class Bench:
    """One group on one device."""

    def __init__(self, group: Group, ghz: float) -> None:
        self.group, self.device = group, Device("cuda")
        self.stream = Stream(self.device)
        self.per_second = self.device.multiprocessors * ghz * 1e9
        of = clocks(2 * group.base.limbs)
        suffix = "" if group.number == 1 else "_2"
        mul, sqr = of["mul" + suffix], of["sqr" + suffix]
        self.doubling, self.addition = 2 * mul + 5 * sqr, of["add" + suffix]

    def milliseconds(self, run: Callable[[], None]) -> float:
        times = []
        for _ in range(3):
            begin = self.stream.record()
            run()
            end = self.stream.record()
            end.synchronize()
            times.append(end.elapsed_ms(begin))
        return statistics.median(times)

    def check(self, got: Words, logs: np.ndarray | list[int], what: str) -> None:
        order = self.group.scalar.modulus
        scalars = self.group.scalar.encode_canonical(int(k) % order for k in logs)
        want = cpu.fixed_base(self.group, cpu.generator(self.group), scalars)
        assert np.array_equal(got, want), f"{self.group.name}: {what}"

    def down(self, v: DeviceVec) -> Words:
        pinned = PinnedVec(v.elem, len(v))
        pinned.resize(len(v))
        v.download(pinned, self.stream)
        self.stream.synchronize()
        rows = np.array(pinned.borrow().numpy())
        pinned.release()
        return rows

    def run(self, log_n: int, window: int, multiples: int) -> dict:
        group, stream, n = self.group, self.stream, 1 << log_n
        rng = np.random.default_rng(3)
        scalars = rng.integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
        scalars[:, 3] &= np.uint64((1 << (group.scalar.modulus.bit_length() - 193)) - 1)
        pinned = PinnedVec.from_array(group.scalar, scalars)
        k = DeviceVec(group.scalar, n, self.device)
        k.upload(pinned, stream)
        fixed = FixedBase(group, cpu.generator(group), self.device, stream)
        logs = group.scalar.decode_canonical(scalars)
        table = DeviceVec(group, n * multiples, self.device)
        table.commit(n)
        fixed.multiply(table, k, stream)
        chosen = rng.integers(0, n, CHECKED)
        self.check(self.down(table)[chosen], [logs[i] for i in chosen], "products of the generator")
        products = self.milliseconds(lambda: fixed.multiply(table, k, stream))
        tables = DeviceTables(group, self.device)

        def extend() -> None:
            table.truncate(n)
            tables.extend(table, window, multiples, stream)

        extend()
        chosen = rng.integers(0, n * multiples, CHECKED)
        self.check(
            self.down(table)[chosen], [logs[i % n] << window * (i // n) for i in chosen.tolist()], "a table"
        )
        extended = self.milliseconds(extend)
        doublings = n * (multiples - 1) * window
        result = {
            "group": group.name,
            "log_n": log_n,
            "products_ms": products,
            "products_bound_ms": 1e3 * n * fixed.windows * self.addition / self.per_second,
            "window": window,
            "multiples": multiples,
            "table_ms": extended,
            "table_bound_ms": 1e3 * doublings * self.doubling / self.per_second,
        }
        print(
            f"{group.name} 2^{log_n}: products of one base {products:.1f} ms, bound {result['products_bound_ms']:.1f}; "
            f"table of {multiples} times 2^{window} {extended:.1f} ms, bound {result['table_bound_ms']:.1f}",
            flush=True,
        )
        for v in (table, k):
            v.release()
        fixed.close()
        return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log", type=int, default=20, help="log2 of the number of points in G1; G2 has half")
    parser.add_argument("--ghz", type=float, default=1.97, help="clock under load, for the bounds")
    parser.add_argument("--json")
    args = parser.parse_args()
    results = []
    for curve in (pinzk.BLS12_381, pinzk.BN254):
        for group in (curve.g1, curve.g2):
            results.append(Bench(group, args.ghz).run(args.log + 1 - group.number, 17, 15))
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": Device("cuda").name, "ghz": args.ghz, "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
