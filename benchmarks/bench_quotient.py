# SPDX-License-Identifier: Apache-2.0
"""The quotient on a GPU, from pinned a, b (and c): checked against the CPU backend in the same run, then timed.

    python benchmarks/bench_quotient.py [--sizes 20,22,24] [--curves bn254] [--pipelines prepared] [--json FILE] [--plot PNG]

Every result is compared with the CPU's element by element. Milliseconds, medians:

alone       from before the call until the scalars are on the device, on an idle device
in a row    between the ends of quotients that are enqueued one behind the other, without waiting
transfer    the same uploads, nothing else running
compute     the same kernels, nothing being uploaded

and the ratios of the first two to the larger of the last two. `parts` are from events, in the runs that stand alone.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import pinzk
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk.curves import Curve, Words
from pinzk.stages import quotient
from pinzk.stages.device_quotient import DeviceQuotient, bit_reversed

PIPELINES = {"snarkjs": ("snarkjs", 2, 6), "bellman": ("bellman", 3, 6), "prepared": ("bellman", 2, 4)}


def random_rows(curve: Curve, n: int, seed: int) -> Words:
    rows = np.random.default_rng(seed).integers(0, 1 << 64, size=(n, 4), dtype=np.uint64)
    rows[:, 3] &= np.uint64((1 << (curve.fr.modulus.bit_length() - 193)) - 1)
    return rows


def on_cpu(domain: pinzk.Domain, pipeline: str, vecs: list[PinnedVec]) -> Words:
    arrays = [np.array(v.borrow().numpy()) for v in vecs]
    out = cpu.from_montgomery(domain.curve.fr, getattr(quotient, pipeline)(domain, *arrays))
    return out[bit_reversed(domain.log_n)] if pipeline == "bellman" else out


def milliseconds(run: Callable[[], None], repeats: int) -> float:
    times = []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        run()
        times.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(times[1:])


class Bench:
    """One curve and size on one device."""

    def __init__(self, curve: Curve, log_n: int, repeats: int) -> None:
        self.curve, self.log_n, self.repeats = curve, log_n, repeats
        self.device, self.n = Device("cuda"), 1 << log_n
        self.pool = PinnedPool(MemoryBudget(4 * 32 * self.n + (1 << 24)), kind="pinned", wipe=False)
        self.vecs = [
            PinnedVec.from_array(curve.fr, random_rows(curve, self.n, i), self.pool) for i in range(3)
        ]

    def close(self) -> None:
        for v in self.vecs:
            v.release()
        self.pool.close()

    def check(self, h: DeviceQuotient, domain: pinzk.Domain, pipeline: str, vecs: list[PinnedVec]) -> None:
        out = getattr(h, pipeline)(*vecs)
        host = PinnedVec(self.curve.fr, len(out), pool=self.pool)
        out.download(host, h.stream)
        h.stream.synchronize()
        same = np.array_equal(host.borrow().numpy(), on_cpu(domain, pipeline, vecs))
        assert same, f"{self.curve.name} 2^{self.log_n}, {pipeline}: differs from the CPU"
        host.release()
        out.release()

    def transfer(self, vecs: list[PinnedVec]) -> float:
        stream = Stream(self.device)
        targets = [DeviceVec(self.curve.fr, self.n, self.device) for _ in vecs]

        def run() -> None:
            for v, target in zip(vecs, targets, strict=True):
                target.upload(v, stream)
            stream.synchronize()

        out = milliseconds(run, self.repeats)
        for target in targets:
            target.release()
        return out

    def row(self, h: DeviceQuotient, start: Callable[[], DeviceVec], count: int) -> float:
        ends = []
        for _ in range(count):
            start().release()  # its memory is free when the device is past it
            ends.append(h.stream.record())
        ends[-1].synchronize()
        return ends[-1].elapsed_ms(ends[1]) / (count - 2)

    def pipeline(self, name: str) -> dict[str, Any]:
        """Check a pipeline, then time it."""
        root, count, transforms = PIPELINES[name]
        domain = pinzk.Domain(self.curve, self.log_n, root=root, device="cpu")
        h, vecs = DeviceQuotient(domain, self.device), self.vecs[:count]
        self.check(h, domain, name, vecs)
        start, all_parts = getattr(h, name), []

        def alone() -> None:
            start(*vecs).release()
            h.stream.synchronize()

        def with_parts() -> None:
            parts: list = []
            start(*vecs, parts=parts).release()
            h.stream.synchronize()
            all_parts.append(parts)

        there = [lambda out, first, stream: self.n] * count  # whatever the memory holds

        def computed() -> None:
            start(*there).release()
            h.stream.synchronize()

        result: dict[str, Any] = {"curve": self.curve.name, "log_n": self.log_n, "pipeline": name}
        result["transforms"] = transforms
        result["alone_ms"] = milliseconds(alone, self.repeats)
        rows = [self.row(h, lambda: start(*vecs), 12) for _ in range(3)]
        result["in_a_row_ms"] = statistics.median(rows)
        result["transfer_ms"] = self.transfer(vecs)
        result["compute_ms"] = milliseconds(computed, self.repeats)
        milliseconds(with_parts, self.repeats)
        result["parts_ms"] = {
            part[0]: statistics.median(p[i][2].elapsed_ms(p[i][1]) for p in all_parts)
            for i, part in enumerate(all_parts[0])
        }
        bound = max(result["transfer_ms"], result["compute_ms"])
        result["alone_ratio"] = result["alone_ms"] / bound
        result["in_a_row_ratio"] = result["in_a_row_ms"] / bound
        h.close()
        return result


def plot(results: list[dict[str, Any]], path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    curves = sorted({r["curve"] for r in results})
    sizes = sorted({r["log_n"] for r in results})
    figure, axes = pyplot.subplots(
        len(curves), len(sizes), figsize=(3.4 * len(sizes) + 1, 3.2 * len(curves)), squeeze=False
    )
    for axes_of, curve in zip(axes, curves, strict=True):
        for axis, log_n in zip(axes_of, sizes, strict=True):
            found = [r for r in results if (r["curve"], r["log_n"]) == (curve, log_n)]
            for i, key in enumerate(("transfer_ms", "compute_ms", "in_a_row_ms", "alone_ms")):
                places = [j + 0.2 * (i - 1.5) for j in range(len(found))]
                axis.bar(places, [r[key] for r in found], 0.2, label=key[:-3].replace("_", " "))
            axis.set(
                title=f"{curve}, 2^{log_n}",
                xticks=range(len(found)),
                xticklabels=[r["pipeline"] for r in found],
            )
            axis.grid(axis="y", alpha=0.3)
        axes_of[0].set(ylabel="ms")
    axes[0][0].legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", default="20,22,24", help="log2 of domains")
    parser.add_argument("--curves", default="bn254,bls12_381")
    parser.add_argument("--pipelines", default=",".join(PIPELINES))
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("--plot", metavar="PNG")
    args = parser.parse_args()
    results = []
    print(
        f"{Device('cuda').name}; ms\n{'':31} {'alone':>8} {'in a row':>8} {'transfer':>8} {'compute':>8} {'ratios':>11}"
    )
    for curve in (pinzk.curves.Curve.named(name) for name in args.curves.split(",")):
        for log_n in map(int, args.sizes.split(",")):
            bench = Bench(curve, log_n, args.repeats)
            for name in args.pipelines.split(","):
                r = bench.pipeline(name)
                results.append(r)
                print(
                    f"{curve.name:>9} 2^{log_n} {name:>8}, checked: {r['alone_ms']:8.2f} {r['in_a_row_ms']:8.2f} "
                    f"{r['transfer_ms']:8.2f} {r['compute_ms']:8.2f} {r['alone_ratio']:5.2f} {r['in_a_row_ratio']:5.2f}",
                    flush=True,
                )
                print("   ", ", ".join(f"{k} {v:.2f}" for k, v in r["parts_ms"].items()), flush=True)
            bench.close()
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": Device("cuda").name, "results": results}, f, indent=1)
    if args.plot:
        plot(results, args.plot)


if __name__ == "__main__":
    main()
