# SPDX-License-Identifier: Apache-2.0
"""Rates of field and point arithmetic on a GPU, from registers, each result checked, each rate beside its bound.

    python benchmarks/bench_field.py [--json FILE]

The kernels are in ``field.cu``; results are compared with Python integers and with the CPU backend's multiples of the
generator in the same run. Rates are thousands of millions of operations a second on the whole GPU, median of 5. The bound
counts multiplier instructions alone: 31.5 of the wide kind and 64 of the narrow kind a clock and multiprocessor on sm_90
(docs/kernels.md, 6), at the clock that `--ghz` names.
"""

from __future__ import annotations

import argparse
import importlib.resources
import json
import statistics
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pinzk
from pinzk import kernels
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Module, Stream, launch
from pinzk._core.memory import PinnedVec
from pinzk.curves import Curve, Field, Group, Words

BLOCK = 128
WAVES = 4
CHECKED = 200  # results of a kernel


def module(curve: Curve, device: Device) -> tuple[Module, kernels.Cubin]:
    """``field.cu`` beside the package's headers."""
    with tempfile.TemporaryDirectory() as folder:
        for file in (importlib.resources.files("pinzk") / "cuda").iterdir():
            Path(folder, file.name).write_bytes(file.read_bytes())
        Path(folder, "field.cu").write_bytes(Path(__file__).with_name("field.cu").read_bytes())
        cubin = kernels.Builder(sources=Path(folder)).build(kernels.Unit("field", curve.name), device.sm)
    return Module(device, cubin.image), cubin


# ---- bounds: instructions of a product of w words of 32 bits ----


def clocks(w: int, fixed: float | None = None) -> dict[str, float]:
    """Clocks of a multiprocessor that the multiplier instructions of each operation take, a thread.

    ``_2``: over Fp2. `fixed`: a product by a fixed operand, from its count.
    """

    def of(wide: int, narrow: int = w) -> float:
        return wide / 31.5 + narrow / 64

    out = {"mul": of(2 * w * w), "sqr": of(w * w + w * (w + 1) // 2), "dot": of(3 * w * w)}
    # a product of Fp2 is two sums of two products, a square two products, the last sum of an addition four and four
    out["mul_2"], out["sqr_2"] = 2 * out["dot"], 2 * out["mul"]
    out["dot_2"] = 2 * of(5 * w * w) if w == 12 else 4 * out["dot"]
    for s in ("", "_2"):
        out["add" + s] = 6 * out["mul" + s] + 2 * out["sqr" + s] + out["dot" + s]
        out["general" + s] = out["add" + s] + 4 * out["mul" + s]
    if fixed is not None:
        out["fixed"] = fixed
    return out


class Bench:
    """One curve on one device."""

    def __init__(self, curve: Curve, ghz: float) -> None:
        self.curve, self.ghz = curve, ghz
        self.device = Device("cuda")
        self.stream = Stream(self.device)
        self.module, self.cubin = module(curve, self.device)
        self.results: list[dict] = []
        self.only = ""

    def up(self, rows: Words) -> DeviceVec:
        raw = np.ascontiguousarray(rows).view(np.uint8).reshape(-1)
        v = DeviceVec("bytes", len(raw), self.device)
        pinned = PinnedVec.from_array("bytes", raw)
        v.upload(pinned, self.stream)
        self.stream.synchronize()
        pinned.release()
        return v

    def down(self, v: DeviceVec, columns: int) -> Words:
        pinned = PinnedVec("bytes", len(v))
        pinned.resize(len(v))
        v.download(pinned, self.stream)
        self.stream.synchronize()
        out = np.array(pinned.borrow().numpy()).view(np.uint64).reshape(-1, columns)
        pinned.release()
        return out

    def seconds(self, run: Callable[[], None]) -> float:
        run()
        times = []
        for _ in range(5):
            begin = self.stream.record()
            run()
            end = self.stream.record()
            end.synchronize()
            times.append(end.elapsed_ms(begin) / 1e3)
        return statistics.median(times)

    def report(self, name: str, operations: int, seconds: float, count: float) -> None:
        rate = operations / seconds / 1e9
        bound = self.device.multiprocessors * self.ghz / count
        usage = self.cubin.usage[name]
        self.results.append(
            {
                "curve": self.curve.name,
                "kernel": name,
                "rate": rate,
                "bound": bound,
                "registers": usage.registers,
                "spill_bytes": usage.spill_stores,
            }
        )
        print(
            f"{self.curve.name} {name:16} {rate:7.2f} G/s, bound {bound:7.2f}, {rate / bound:5.1%}; "
            f"{usage.registers} registers, {usage.spill_stores} bytes spilled",
            flush=True,
        )

    # ---- fields ----

    def field(
        self, kernel: str, field: Field, count: float, want: Callable[[int, int, int, int], int]
    ) -> None:
        if not kernel.startswith(self.only):
            return
        n, rounds, p = self.device.multiprocessors * 16 * BLOCK * WAVES, 2000, field.modulus
        rng = np.random.default_rng(7)
        rows = rng.integers(0, 1 << 64, size=(2, n + 1, field.limbs), dtype=np.uint64)
        rows[:, :, -1] &= np.uint64((1 << ((p.bit_length() - 1) % 64)) - 1)  # below p
        x, y = self.up(rows[0]), self.up(rows[1])
        function = self.module.function(kernel)

        def run() -> None:
            launch(function, n // BLOCK, BLOCK, (x, y, rounds), stream=self.stream)

        run()
        chosen = rng.integers(0, n, CHECKED)
        got = field.decode(self.down(x, field.limbs)[chosen])
        a, b, c = (field.decode(v) for v in (rows[0][chosen], rows[1][chosen], rows[1][chosen + 1]))
        assert got == [want(*v, rounds) % p for v in zip(a, b, c, strict=True)], f"{kernel}: wrong"
        self.report(kernel, n * rounds, self.seconds(run), count)
        x.release()
        y.release()

    # ---- points ----

    def sums(self, kernel: str, group: Group, table: DeviceVec, entries: int, count: float) -> None:
        if not kernel.startswith(self.only):
            return
        n, rounds = self.device.multiprocessors * 4 * BLOCK * WAVES // group.number, 400
        out = DeviceVec("bytes", n * 2 * group.nbytes, self.device)
        out.commit(n * 2 * group.nbytes)
        function = self.module.function(kernel)

        def run() -> None:
            launch(function, n // BLOCK, BLOCK, (out, table, entries, rounds), stream=self.stream)

        run()
        chosen = np.random.default_rng(8).integers(0, n, CHECKED)
        got = self.down(out, 2 * group.limbs)[chosen]
        assert affine(group, got) == group.decode(self.expected(kernel, group, chosen, entries, rounds)), (
            f"{kernel}: wrong"
        )
        self.report(kernel, n * rounds, self.seconds(run), count)
        out.release()

    def expected(self, kernel: str, group: Group, chosen: np.ndarray, entries: int, rounds: int) -> Words:
        """Multiples of the generator: entry i of the table is (i + 1) G."""
        first, second = chosen % entries + 1, (chosen + 1) % entries + 1
        if kernel.endswith("gathered"):
            k = np.arange(rounds, dtype=np.uint32)
            h = chosen.astype(np.uint32)[:, None] * np.uint32(0x9E3779B1) + k * np.uint32(0x85EBCA77)
            h = (h ^ h >> np.uint32(15)) * np.uint32(0xC2B2AE3D)
            h ^= h >> np.uint32(13)
            entry = (h & np.uint32(entries - 1)).astype(np.int64) + 1
            total = first + np.where(h >> np.uint32(31), -entry, entry).sum(axis=1)
        else:
            total = first + second * rounds * (2 if kernel.endswith("general") else 1)
        order = group.scalar.modulus
        scalars = group.scalar.encode_canonical(int(v) % order for v in total)
        return cpu.fixed_base(group, cpu.generator(group), scalars)

    def run(self, log_entries: int, only: str) -> None:
        fr, fp, self.only = self.curve.fr, self.curve.fp, only
        # high half, low half, and the multiple of the modulus, which is shorter for BLS12-381
        small = clocks(2 * fr.limbs, 2.96 if self.curve.name == "bls12_381" else 3.46)
        c = clocks(2 * fp.limbs)
        r, p = fr.modulus, fp.modulus
        self.field("fr_mul", fr, small["mul"], lambda x, y, z, k: x * pow(y, k, r))
        self.field("fr_sqr", fr, small["sqr"], lambda x, y, z, k: pow(x, 1 << k, r))
        self.field("fr_fixed", fr, small["fixed"], lambda x, y, z, k: x * pow(y, k, r))
        self.field("fp_mul", fp, c["mul"], lambda x, y, z, k: x * pow(y, k, p))
        self.field("fp_sqr", fp, c["sqr"], lambda x, y, z, k: pow(x, 1 << k, p))
        self.field("fp_dot", fp, c["dot"], lambda x, y, z, k: x * pow(y - z, k, p))
        entries = 1 << log_entries
        scalars = np.zeros((entries, 4), dtype=np.uint64)
        scalars[:, 0] = np.arange(1, entries + 1)
        for group in (self.curve.g1, self.curve.g2):
            table = self.up(cpu.fixed_base(group, cpu.generator(group), scalars))
            of = f"g{group.number}"
            suffix = "" if group.number == 1 else "_2"
            self.sums(f"{of}_add", group, table, entries, c["add" + suffix])
            self.sums(f"{of}_add_gathered", group, table, entries, c["add" + suffix])
            self.sums(f"{of}_add_general", group, table, entries, c["general" + suffix])
            table.release()


def affine(group: Group, rows: Words) -> list:
    """Points of rows X, Y, ZZ, ZZZ."""
    p, flat = group.base.modulus, group.base.decode(rows)

    def divided(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
        norm = pow(sum(v * v for v in b), -1, p)
        if len(a) == 1:
            return (a[0] * b[0] * norm % p,)
        return (a[0] * b[0] + a[1] * b[1]) * norm % p, (a[1] * b[0] - a[0] * b[1]) * norm % p

    out = []
    width = group.number
    for i in range(0, len(flat), 4 * width):
        x, y, zz, zzz = (tuple(flat[i + k * width : i + (k + 1) * width]) for k in range(4))
        point = divided(x, zz), divided(y, zzz)
        out.append((point[0][0], point[1][0]) if width == 1 else point)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--ghz", type=float, default=1.97, help="clock under load, for the bounds")
    parser.add_argument("--entries", type=int, default=20, help="log2 of the table that gathers read")
    parser.add_argument("--only", default="", help="kernels whose names begin so")
    parser.add_argument("--json")
    args = parser.parse_args()
    results = []
    for curve in (pinzk.BLS12_381, pinzk.BN254):
        bench = Bench(curve, args.ghz)
        bench.run(args.entries, args.only)
        results += bench.results
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": bench.device.name, "ghz": args.ghz, "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
