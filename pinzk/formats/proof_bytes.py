# SPDX-License-Identifier: Apache-2.0
"""Proofs as compressed bytes: one encoding per curve, each the one its provers publish.

BLS12-381: 192 bytes, the form of Zcash and bellman. A 48, B 96, C 48 bytes; x big-endian, of B as c1, c0. Flags in the
first byte: 0x80 always, 0x40 infinity, 0x20 where y is the larger of y and -y.

BN254: 128 bytes, the form of arkworks (``CanonicalSerialize``, compressed). A 32, B 64, C 32 bytes; x little-endian, of B as
c0, c1. Flags in the last byte: 0x80 where y is the larger of y and -y, 0x40 infinity.

In Fp2 the larger one is told by c1, by c0 where c1 = 0.
"""

from __future__ import annotations

from typing import Any

from ..curves import BLS12_381, BN254, Group, Point
from ..errors import FormatError
from .proof import ProofRecord

CURVE_OF_SIZE = {128: BN254, 192: BLS12_381}
_INFINITY, _LARGER_ZCASH, _LARGER_ARKWORKS, _COMPRESSED = 0x40, 0x20, 0x80, 0x80


def proof_bytes(proof: ProofRecord) -> bytes:
    """The compressed encoding of a proof, 128 or 192 bytes."""
    curve = proof.curve
    return b"".join(
        _encode(group, group.decode(row)[0])
        for group, row in ((curve.g1, proof.a), (curve.g2, proof.b), (curve.g1, proof.c))
    )


def proof_of_bytes(data: bytes, name: str = "<proof>") -> ProofRecord:
    """The proof of a compressed encoding; the length tells the curve. Subgroups are not checked.

    Raises
    ------
    FormatError
        Wrong length or flags, a coordinate not below q, or one that no point of the curve has.
    """
    curve = CURVE_OF_SIZE.get(len(data))
    if curve is None:
        raise FormatError(
            f"{len(data)} bytes are no proof: 128 are one on bn254, 192 one on bls12_381", path=name
        )
    size = curve.fp.nbytes
    rows, at = [], 0
    for field, group in (("a", curve.g1), ("b", curve.g2), ("c", curve.g1)):
        part = data[at : at + group.number * size]
        at += len(part)
        try:
            rows.append(group.encode([_decode(group, part)]))
        except FormatError as error:
            raise FormatError(error.reason, path=name, section=field) from None
    return ProofRecord(curve, *rows)


def _encode(group: Group, point: Point) -> bytes:
    size, zcash = group.base.nbytes, group.curve_name == "bls12_381"
    x = [0] * group.number if point is None else _parts(point[0])
    larger = point is not None and _is_larger(group, point[1])
    raw = bytearray(b"".join(v.to_bytes(size, "little") for v in x))
    raw[-1] |= _INFINITY if point is None else 0
    raw[-1] |= (_LARGER_ZCASH if zcash else _LARGER_ARKWORKS) if larger else 0
    if zcash:
        raw[-1] |= _COMPRESSED
        raw.reverse()
    return bytes(raw)


def _decode(group: Group, part: bytes) -> Point:
    size, zcash, q = group.base.nbytes, group.curve_name == "bls12_381", group.base.modulus
    raw = bytearray(reversed(part) if zcash else part)
    top = raw[-1]
    if zcash and not top & _COMPRESSED:
        raise FormatError("the point is not compressed: bit 0x80 of its first byte is clear")
    larger = bool(top & (_LARGER_ZCASH if zcash else _LARGER_ARKWORKS))
    raw[-1] &= 0x1F if zcash else 0x3F
    x = [int.from_bytes(raw[i : i + size], "little") for i in range(0, len(raw), size)]
    if top & _INFINITY:
        if larger or any(x):
            raise FormatError("the point is marked as infinity, but other bits are set")
        return None
    if any(v >= q for v in x):
        raise FormatError("the coordinate x is not below q")
    y = _sqrt(_right_side(group, x), q)
    if y is None:
        raise FormatError("the coordinate x belongs to no point of the curve")
    out = _whole(y)
    if _is_larger(group, out) != larger:
        out = _whole([-v % q for v in y])
    return _whole(x), out


# Elements of Fp and Fp2 = Fp[u] / (u^2 + 1) as lists of one or two ints.


def _parts(v: Any) -> list[int]:
    return [v] if isinstance(v, int) else list(v)


def _whole(v: list[int]) -> Any:
    return v[0] if len(v) == 1 else tuple(v)


def _is_larger(group: Group, y: Any) -> bool:
    half = (group.base.modulus - 1) // 2
    decisive = next((v for v in reversed(_parts(y)) if v), 0)
    return decisive > half


def _multiply(a: list[int], b: list[int], q: int) -> list[int]:
    if len(a) == 1:
        return [a[0] * b[0] % q]
    return [(a[0] * b[0] - a[1] * b[1]) % q, (a[0] * b[1] + a[1] * b[0]) % q]


def _right_side(group: Group, x: list[int]) -> list[int]:
    # x^3 + b, with b from the generator: b = y^2 - x^3
    q = group.base.modulus

    def cube(v: list[int]) -> list[int]:
        return _multiply(v, _multiply(v, v, q), q)

    gx, gy = (_parts(v) for v in group.generator())
    b = [s - c for s, c in zip(_multiply(gy, gy, q), cube(gx), strict=True)]
    return [(c + s) % q for c, s in zip(cube(x), b, strict=True)]


def _sqrt(v: list[int], q: int) -> list[int] | None:
    # a root of v, or None; q = 3 mod 4
    def root(a: int) -> int | None:
        r = pow(a, (q + 1) // 4, q)
        return r if r * r % q == a else None

    if len(v) == 1:
        real = root(v[0])
        return None if real is None else [real]
    # (s + t u)^2 = v: s^2 = (v0 + n) / 2 with n^2 = v0^2 + v1^2, for one sign of n, and t = v1 / 2s
    norm = root((v[0] * v[0] + v[1] * v[1]) % q)
    if norm is None:
        return None
    half = (q + 1) // 2
    for n in (norm, -norm):
        s = root((v[0] + n) * half % q)
        if s is None:
            continue
        if s:
            return [s, v[1] * half * pow(s, -1, q) % q]
        t = root(-v[0] % q)  # v = v0 with v0 = -n: a square of t u
        if t is not None:
            return [0, t]
    return None
