# SPDX-License-Identifier: Apache-2.0
"""Multi-scalar products, pinzk beside zksnake and py_arkworks_bls12381, in one run on one machine.

    python benchmarks/bench_msm.py [--log-n 18] [--groups bn254.g1 ...] [--runs 3] [--threads N]

Bases are multiples of the generator with known logarithms, so every result is checked (pinzk's too) before its time counts:
sum s_i (k_i G) = (sum s_i k_i) G. Python objects are made outside the clock. What a peer spends inside its call on unpacking
them is measured by the same call with zero scalars and taken off: the ratio is arithmetic against arithmetic. Then pinzk
alone on skewed scalars. Peers that are not installed (pip install zksnake py_arkworks_bls12381) are left out.
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
from pinzk.curves import BLS12_381, BN254, Group, Words

GROUPS = {g.name: g for c in (BN254, BLS12_381) for g in (c.g1, c.g2)}
CHUNK = 1 << 14


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--log-n", type=int, nargs="+", default=[18])
    parser.add_argument("--groups", nargs="+", choices=GROUPS, default=["bn254.g1", "bls12_381.g1"])
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--threads", type=int, help="of pinzk; peers use every core")
    options = parser.parse_args()
    print(f"{cpu.num_threads(options.threads)} threads; smallest of {options.runs} runs, in ms")
    for name in options.groups:
        for log_n in options.log_n:
            measure(GROUPS[name], 1 << log_n, options.runs, options.threads)


def measure(group: Group, n: int, runs: int, threads: int | None) -> None:
    """Print the times of one group and size."""
    r = group.scalar.modulus
    logs, scalars = random_ints(r, n, 1), random_ints(r, n, 2)
    rows = cpu.fixed_base(
        group, group.encode([group.generator()]), group.scalar.encode_canonical(logs), threads=threads
    )
    expected = multiple_of_generator(group, sum(k * s for k, s in zip(logs, scalars, strict=True)) % r)
    encoded = group.scalar.encode_canonical(scalars)

    def pinzk_msm(k: Words) -> Words:
        return cpu.msm(group, rows, k, threads=threads)

    check("pinzk", group.decode(pinzk_msm(encoded))[0], expected)
    ours = smallest(lambda: pinzk_msm(encoded), runs)
    print(f"\n{group.name}, n = {n}\n  pinzk                {ours:9.1f}")
    for peer, call, convert in peers(group, rows, scalars):
        check(peer, convert(call(False)), expected)
        unpacking = smallest(partial(call, True), runs)
        total = smallest(partial(call, False), runs)
        theirs = total - unpacking
        print(f"  {peer:20} {theirs:9.1f}  + {unpacking:.1f} of unpacking; {theirs / ours:.1f} times pinzk's")
    for what, values in skewed(r, n, scalars):
        total = sum(k * s for k, s in zip(logs, values, strict=True)) % r
        k = group.scalar.encode_canonical(values)
        check(f"pinzk, {what}", group.decode(pinzk_msm(k))[0], multiple_of_generator(group, total))
        print(f"  pinzk, {what:13} {smallest(partial(pinzk_msm, k), runs):9.1f}")


def skewed(r: int, n: int, scalars: list[int]) -> list[tuple[str, list[int]]]:
    """Scalars as circuits have them, and the worst a bucket method can meet."""
    mixed = [s if i % 10 == 0 else s & 1 for i, s in enumerate(scalars)]
    return [
        ("0 and 1", [s & 1 for s in scalars]),
        ("10 % full", mixed),
        ("32 bits", [s & 0xFFFFFFFF for s in scalars]),
        ("all r - 1", [r - 1] * n),
        ("all equal", [scalars[0]] * n),
    ]


def peers(
    group: Group, rows: Words, scalars: list[int]
) -> list[tuple[str, Callable[[bool], Any], Callable[[Any], Any]]]:
    """Name, call (True: with zero scalars), and what makes its result a point of pinzk's plain form."""
    found: list[tuple[str, Callable[[bool], Any], Callable[[Any], Any]]] = []
    points = group.decode(rows)
    zeros = [0] * len(scalars)
    if importlib.util.find_spec("zksnake"):
        from zksnake.ecc import EllipticCurve

        curve = EllipticCurve(group.curve_name.upper())
        bases = [curve(*p) for p in points]
        found.append(("zksnake", lambda zero: curve.multiexp(bases, zeros if zero else scalars), plain))
    if group.curve_name == "bls12_381" and importlib.util.find_spec("py_arkworks_bls12381"):
        import py_arkworks_bls12381 as ark

        kind: Any = ark.G1Point if group.number == 1 else ark.G2Point
        flat = [p if group.number == 1 else (*p[0], *p[1]) for p in points]
        ark_bases = [
            kind.from_xy_bytes_unchecked_be(b"".join(v.to_bytes(48, "big") for v in p)) for p in flat
        ]
        ark_scalars = [ark.Scalar.from_le_bytes(s.to_bytes(32, "little")) for s in scalars]
        ark_zeros = [ark.Scalar.from_le_bytes(bytes(32))] * len(scalars)
        found.append(
            (
                "py_arkworks_bls12381",
                lambda zero: kind.multiexp_unchecked(ark_bases, ark_zeros if zero else ark_scalars),
                from_arkworks,
            )
        )
    return found


def plain(p: Any) -> Any:
    """A zksnake point."""
    if p.is_zero():
        return None
    return (p.x, p.y) if isinstance(p.x, int) else (tuple(p.x), tuple(p.y))


def from_arkworks(p: Any) -> Any:
    """A py_arkworks_bls12381 point."""
    raw = bytes(p.to_xy_bytes_be())
    c = [int.from_bytes(raw[i : i + 48], "big") for i in range(0, len(raw), 48)]
    if not any(c):
        return None
    return (c[0], c[1]) if len(c) == 2 else ((c[0], c[1]), (c[2], c[3]))


def multiple_of_generator(group: Group, k: int) -> Any:
    """k G by zksnake where it is there, else by pinzk's own doubling chain (an MSM of one point)."""
    if importlib.util.find_spec("zksnake"):
        from zksnake.ecc import EllipticCurve

        curve = EllipticCurve(group.curve_name.upper())
        return plain((curve.G1() if group.number == 1 else curve.G2()) * k)
    one = cpu.msm(group, group.encode([group.generator()]), group.scalar.encode_canonical([k]))
    return group.decode(one)[0]


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
