# SPDX-License-Identifier: Apache-2.0
"""Number-theoretic transforms, pinzk beside zksnake, in one run on one machine.

    python benchmarks/bench_ntt.py [--log-n 20] [--curves bn254 bls12_381] [--runs 3] [--threads N]

Natural order in and out on both sides (`Domain.ntt`). The result is checked against the defining sum at some places, then
against the peer's in full, before any time counts. zksnake takes and gives lists of ints inside its call. What that costs is
measured and taken off: a list out by the transform of a constant (hardly any arithmetic), a list in by its pointwise sum of
two (two lists in, one out). pinzk's own in-place transforms, without the permutation, follow. A peer that is not installed
(pip install zksnake) is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254, Curve
from pinzk.stages.ntt import Domain

CURVES = {c.name: c for c in (BN254, BLS12_381)}
ZKSNAKE_ROOT = {"bn254": "snarkjs", "bls12_381": "bellman"}  # whose root it takes


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log-n", type=int, nargs="+", default=[20])
    parser.add_argument("--curves", nargs="+", choices=CURVES, default=list(CURVES))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of pinzk; the peer uses every core")
    options = parser.parse_args()
    print(f"{cpu.num_threads(options.threads)} threads; smallest of {options.runs} runs, in ms")
    for name in options.curves:
        for log_n in options.log_n:
            measure(CURVES[name], log_n, options.runs, options.threads)


def measure(curve: Curve, log_n: int, runs: int, threads: int | None) -> None:
    """Print the times of one field and size."""
    fr, n = curve.fr, 1 << log_n
    domain = Domain(curve, log_n, root=ZKSNAKE_ROOT[curve.name], device="cpu", threads=threads)
    values = random_ints(fr.modulus, n, 1)
    rows = fr.encode(values)
    result = fr.decode(domain.ntt(rows))
    for k in (0, 1, n // 3, n - 1):
        check("pinzk", result[k], horner(values, pow(domain.omega, k, fr.modulus), fr.modulus))
    ours = smallest(lambda: domain.ntt(rows), runs)
    print(f"\n{fr.name}, n = 2^{log_n}\n  pinzk, ntt           {ours:9.1f}")
    if importlib.util.find_spec("zksnake"):
        from zksnake import polynomial

        r, ring = fr.modulus, polynomial.POLY_OBJECT[fr.modulus]
        check("zksnake", polynomial.fft(values, r, n), result)
        out = smallest(lambda: polynomial.fft([1], r, n), runs)
        packing = (smallest(lambda: ring.add_over_evaluation_domain(n, values, result), runs) + out) / 2
        total = smallest(lambda: polynomial.fft(values, r, n), runs)
        theirs = total - packing
        print(
            f"  zksnake, fft         {theirs:9.1f}  + {packing:.1f} of packing; {theirs / ours:.1f} times pinzk's"
        )
    work = rows.copy()
    for what, call in (("dif", domain.dif), ("dit", domain.dit), ("to_coset", domain.to_coset)):
        call(work)  # makes its tables
        print(f"  pinzk, {what:13} {smallest(partial(call, work), runs):9.1f}")


def horner(coefficients: list[int], x: int, p: int) -> int:
    """The polynomial's value at x."""
    y = 0
    for c in reversed(coefficients):
        y = (y * x + c) % p
    return y


def random_ints(modulus: int, n: int, seed: int) -> list[int]:
    """n ints below the modulus, the same ones every time."""
    raw = np.random.default_rng(seed).bytes(48 * n)
    return [int.from_bytes(raw[48 * i : 48 * i + 48], "little") % modulus for i in range(n)]


def check(what: str, got: Any, expected: Any) -> None:
    if got != expected:
        raise SystemExit(f"{what}: wrong result")


def smallest(call: Callable[[], Any], runs: int) -> float:
    """Milliseconds of the fastest run."""
    best = float("inf")
    for _ in range(runs):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


if __name__ == "__main__":
    main()
