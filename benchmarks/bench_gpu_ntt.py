# SPDX-License-Identifier: Apache-2.0
"""The transforms on a GPU: checked against the CPU backend in the same run, then timed.

    python benchmarks/bench_gpu_ntt.py [--max 26] [--json FILE]

To 2^20 the forward transform equals the CPU's element by element; above, it equals that of another schedule (narrower
passes, smaller tiles) element by element, and one value is evaluated from the coefficients. The way back restores the input.
Milliseconds are medians between events on the device, data and tables resident, without permutation. `bound` is the time of
the products alone at the rate that `--rate` names.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable

import numpy as np

import pinzk
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk.curves import Curve, Field, Words
from pinzk.stages.device_ntt import DeviceNtt, plan

KINDS = [(pinzk.BN254, "snarkjs"), (pinzk.BLS12_381, "snarkjs"), (pinzk.BLS12_381, "bellman")]


def products(log_n: int) -> float:
    """Products of one transform, an element: 4/8 a radix-8 step, 2/8 radix 4; 7/8 behind a step, 1 behind a pass."""
    total = 0.0
    levels = plan(log_n)
    for i, pass_levels in enumerate(levels):
        narrow = (pass_levels - 1) % 3 + 1
        steps = -(-pass_levels // 3)
        total += (steps - 1) * 0.5 + {1: 0, 2: 0.25, 3: 0.5}[narrow]
        if steps > 1:  # behind a first step of b levels 1 - 1/2^b
            total += 1 - 0.5**narrow + (steps - 2) * 0.875
        total += i + 1 < len(levels)
    return total


def other_plan(log_n: int) -> list[int]:
    """A second schedule: passes of at most seven levels, as even as can be."""
    passes = -(-log_n // 7)
    return [log_n // passes + (i < log_n % passes) for i in range(passes)]


def milliseconds(run: Callable[[], None], stream: Stream, repeats: int = 9) -> float:
    run()
    times = []
    for _ in range(repeats):
        begin = stream.record()
        run()
        end = stream.record()
        end.synchronize()
        times.append(end.elapsed_ms(begin))
    return statistics.median(times)


def random_rows(curve: Curve, n: int) -> Words:
    rows = np.random.default_rng(n).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    rows[:, 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    return rows


def horner(fr: Field, rows: Words, point: int) -> int:
    """The polynomial's value, the same residue as its coefficients: products natively, the sum by columns of words."""
    halves = (
        cpu.multiply(fr, rows, cpu.powers(fr, point, len(rows))).view(np.uint32).sum(axis=0, dtype=np.uint64)
    )
    return sum(int(h) << 32 * i for i, h in enumerate(halves)) % fr.modulus


class Bench:
    """One curve and root on one device."""

    def __init__(self, curve: Curve, root: str, rate: float) -> None:
        self.curve, self.root, self.rate = curve, root, rate
        self.device = Device("cuda")
        self.stream = Stream(self.device)

    def down(self, v: DeviceVec) -> Words:
        pinned = PinnedVec(self.curve.fr, len(v))
        pinned.resize(len(v))
        pinned.borrow_mut().numpy()[...] = 0xA5A5A5A5A5A5A5A5
        v.download(pinned, self.stream)
        self.stream.synchronize()
        out = np.array(pinned.borrow().numpy())
        pinned.release()
        return out

    def up(self, rows: Words) -> DeviceVec:
        v = DeviceVec(self.curve.fr, len(rows), self.device)
        pinned = PinnedVec.from_array(self.curve.fr, rows)
        v.upload(pinned, self.stream)
        pinned.release()
        return v

    def size(self, log_n: int, timed: bool) -> dict:
        """Check one size, then time it."""
        fr, n, stream = self.curve.fr, 1 << log_n, self.stream
        domain = pinzk.Domain(self.curve, log_n, root=self.root, device="cpu")
        ntt = DeviceNtt(self.curve, log_n, domain.omega, self.device)
        rows = random_rows(self.curve, n)
        v = self.up(rows)
        ntt.dif(v, stream)
        got = self.down(v)
        assert cpu.first_unreduced(fr, got) is None, "a result is not below the modulus"
        if log_n <= 20:
            want = domain.ntt(rows)
            cpu.bit_reverse(fr, want)
            assert np.array_equal(got, want), f"{self.curve.name} 2^{log_n}: differs from the CPU"
        else:
            k = n // 3
            place = int(format(k, f"0{log_n}b")[::-1], 2)
            value = fr.decode_canonical(got[place : place + 1])[0]
            assert horner(fr, rows, pow(domain.omega, k, fr.modulus)) == value, f"{self.curve.name} 2^{log_n}"
            second = DeviceNtt(
                self.curve, log_n, domain.omega, self.device, passes=other_plan(log_n), tile_log=9
            )
            u = self.up(rows)
            second.dif(u, stream)
            assert np.array_equal(self.down(u), got), f"{self.curve.name} 2^{log_n}: the schedules differ"
            u.release()
            second.close()
        ntt.dit(v, stream, inverse=True)
        scaled = cpu.multiply(fr, rows, cpu.powers(fr, 1, n, first=n))
        assert np.array_equal(self.down(v), scaled), f"{self.curve.name} 2^{log_n}: the way back"
        result = {"curve": self.curve.name, "root": self.root, "log_n": log_n, "passes": plan(log_n)}
        if timed:
            result["dif_ms"] = milliseconds(lambda: ntt.dif(v, stream), stream)
            result["dit_ms"] = milliseconds(lambda: ntt.dit(v, stream, inverse=True), stream)
            result["bound_ms"] = products(log_n) * n / self.rate / 1e6
        if log_n < min(25, fr.two_adicity):
            v.release()
            v = self.up(rows)
            ntt.to_coset(v, stream, shift=domain.default_shift)
            want = rows.copy()
            domain.to_coset(want)
            assert np.array_equal(self.down(v), want), f"{self.curve.name} 2^{log_n}: to the coset"
            if timed:
                result["to_coset_ms"] = milliseconds(
                    lambda: ntt.to_coset(v, stream, shift=domain.default_shift), stream
                )
        v.release()
        ntt.close()
        return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--max", type=int, default=26, help="largest log2 of the size")
    parser.add_argument(
        "--rate", type=float, default=79.0, help="products by a fixed operand, G/s of the whole GPU"
    )
    parser.add_argument("--json")
    args = parser.parse_args()
    results = []
    for curve, root in KINDS:
        bench = Bench(curve, root, args.rate)
        print(f"{bench.device.name}, sm_{bench.device.sm}: {curve.name}, root of {root}")
        for log_n in range(args.max + 1):
            timed = log_n >= 16 and (log_n % 2 == 0 or log_n == 27)
            result = bench.size(log_n, timed)
            results.append(result)
            if timed:
                print(
                    f"2^{log_n} {result['passes']} checked; DIF {result['dif_ms']:.3f} ms, DIT {result['dit_ms']:.3f}, "
                    f"to coset {result.get('to_coset_ms', float('nan')):.3f}, bound {result['bound_ms']:.3f}, "
                    f"ratio {result['dif_ms'] / result['bound_ms']:.2f}",
                    flush=True,
                )
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": bench.device.name, "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
