# SPDX-License-Identifier: Apache-2.0
"""Curve records: names, sizes, moduli as Python ints, and the encoding of ints and points into word arrays.

Arrays hold little-endian ``uint64`` words, Montgomery form (x * 2**(64 * limbs) mod p) unless a name says
canonical. Encoding here is done in Python integers: plain, slow, and the reference for the native
conversions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .errors import FormatError

Words = NDArray[np.uint64]
Point = Any  # (x, y) of ints, or of pairs of ints for G2; None is infinity


def _ints_to_words(values: Iterable[int], limbs: int) -> Words:
    raw = b"".join(v.to_bytes(8 * limbs, "little") for v in values)
    return np.frombuffer(raw, dtype="<u8").astype(np.uint64).reshape(-1, limbs)


def _words_to_ints(array: Words, limbs: int) -> list[int]:
    raw = np.ascontiguousarray(array, dtype="<u8").reshape(-1, limbs).tobytes()
    step = 8 * limbs
    return [int.from_bytes(raw[i : i + step], "little") for i in range(0, len(raw), step)]


@dataclass(frozen=True)
class Field:
    """A prime field.

    Attributes
    ----------
    name : str
        For messages, e.g. ``"bn254.fr"``.
    modulus : int
    limbs : int
        64-bit words of one element.
    """

    name: str
    modulus: int
    limbs: int
    curve_name: str = field(repr=False)
    is_scalar: bool = field(repr=False)

    @property
    def nbytes(self) -> int:
        """Bytes of one element."""
        return 8 * self.limbs

    @property
    def two_adicity(self) -> int:
        """Largest s such that 2**s divides modulus - 1."""
        return ((self.modulus - 1) & -(self.modulus - 1)).bit_length() - 1

    def encode(self, ints: Iterable[int]) -> Words:
        """Encode canonical ints.

        Parameters
        ----------
        ints : iterable of int
            Each in [0, modulus).

        Returns
        -------
        ndarray of uint64, shape (n, limbs)
            Montgomery form.

        Raises
        ------
        FormatError
            A value is negative or not below the modulus.
        """
        shift, p = 64 * self.limbs, self.modulus
        return _ints_to_words(((v << shift) % p for v in self._checked(ints)), self.limbs)

    def decode(self, array: Words) -> list[int]:
        """Canonical ints of Montgomery rows; the inverse of `encode`."""
        inverse = pow(1 << 64 * self.limbs, -1, self.modulus)
        return [v * inverse % self.modulus for v in _words_to_ints(array, self.limbs)]

    def encode_canonical(self, ints: Iterable[int]) -> Words:
        """Like `encode`, without Montgomery's factor."""
        return _ints_to_words(self._checked(ints), self.limbs)

    def decode_canonical(self, array: Words) -> list[int]:
        """Ints of canonical rows; the inverse of `encode_canonical`."""
        return _words_to_ints(array, self.limbs)

    def _checked(self, ints: Iterable[int]) -> Iterable[int]:
        for i, v in enumerate(ints):
            if not 0 <= v < self.modulus:
                raise FormatError(f"value {i} is not in [0, modulus of {self.name})", index=i)
            yield v


@dataclass(frozen=True)
class Group:
    """G1 or G2 of a curve; points are affine rows, infinity is all zeros.

    Attributes
    ----------
    name : str
        ``"bn254.g1"`` and so on.
    limbs : int
        64-bit words of one point.
    """

    name: str
    number: int
    base: Field = field(repr=False)
    scalar: Field = field(repr=False)
    curve_name: str = field(repr=False)
    generator_point: Point = field(repr=False)

    @property
    def limbs(self) -> int:
        """64-bit words of one affine point."""
        return 2 * self.number * self.base.limbs

    @property
    def nbytes(self) -> int:
        """Bytes of one affine point."""
        return 8 * self.limbs

    def encode(self, points: Iterable[Point]) -> Words:
        """Encode points.

        Parameters
        ----------
        points : iterable
            ``(x, y)`` of ints (G1) or of pairs ``(c0, c1)`` (G2); ``None`` is infinity.

        Returns
        -------
        ndarray of uint64, shape (n, limbs)
        """
        flat: list[int] = []
        for p in points:
            flat.extend([0] * (2 * self.number) if p is None else self._coordinates(p))
        return self.base.encode(flat).reshape(-1, self.limbs)

    def decode(self, array: Words) -> list[Point]:
        """Points of affine rows; the inverse of `encode`."""
        flat = self.base.decode(np.asarray(array).reshape(-1, self.base.limbs))
        out: list[Point] = []
        for i in range(0, len(flat), 2 * self.number):
            c = flat[i : i + 2 * self.number]
            if not any(c):
                out.append(None)
            elif self.number == 1:
                out.append((c[0], c[1]))
            else:
                out.append(((c[0], c[1]), (c[2], c[3])))
        return out

    def generator(self) -> Point:
        """The standard generator."""
        return self.generator_point

    def _coordinates(self, p: Any) -> Sequence[int]:
        (x, y) = p
        return [x, y] if self.number == 1 else [*x, *y]


@dataclass(frozen=True)
class Curve:
    """A pairing-friendly curve.

    Attributes
    ----------
    name : str
        ``"bn254"`` or ``"bls12_381"``.
    snarkjs_name : str
        The name in JSON files: ``"bn128"`` or ``"bls12381"``.
    fr, fp : Field
        Scalar and base field.
    g1, g2 : Group
    """

    name: str
    snarkjs_name: str
    fr: Field
    fp: Field
    g1: Group
    g2: Group

    _ALIASES: ClassVar[dict[str, str]] = {
        "bn254": "bn254",
        "bn128": "bn254",
        "alt_bn128": "bn254",
        "altbn128": "bn254",
        "alt-bn128": "bn254",
        "altbn-128": "bn254",
        "bls12_381": "bls12_381",
        "bls12381": "bls12_381",
        "bls12-381": "bls12_381",
    }

    @staticmethod
    def named(name: str) -> Curve:
        """The curve of that name; every spelling the field uses is read.

        Raises
        ------
        ValueError
            No such curve.
        """
        key = Curve._ALIASES.get(name.lower()) if isinstance(name, str) else None
        if key is None:
            raise ValueError(f"unknown curve {name!r}: use bn254 or bls12_381")
        return BN254 if key == "bn254" else BLS12_381

    def __repr__(self) -> str:
        return f"<Curve {self.name}>"


def _curve(name: str, snarkjs_name: str, r: int, q: int, g1: Point, g2: Point) -> Curve:
    fr = Field(f"{name}.fr", r, 4, name, True)
    fp = Field(f"{name}.fp", q, (q.bit_length() + 63) // 64, name, False)
    return Curve(
        name,
        snarkjs_name,
        fr,
        fp,
        Group(f"{name}.g1", 1, fp, fr, name, g1),
        Group(f"{name}.g2", 2, fp, fr, name, g2),
    )


BN254 = _curve(
    "bn254",
    "bn128",
    0x30644E72E131A029B85045B68181585D2833E84879B9709143E1F593F0000001,
    0x30644E72E131A029B85045B68181585D97816A916871CA8D3C208C16D87CFD47,
    (1, 2),
    (
        (
            0x1800DEEF121F1E76426A00665E5C4479674322D4F75EDADD46DEBD5CD992F6ED,
            0x198E9393920D483A7260BFB731FB5D25F1AA493335A9E71297E485B7AEF312C2,
        ),
        (
            0x12C85EA5DB8C6DEB4AAB71808DCB408FE3D1E7690C43D37B4CE6CC0166FA7DAA,
            0x090689D0585FF075EC9E99AD690C3395BC4B313370B38EF355ACDADCD122975B,
        ),
    ),
)

BLS12_381 = _curve(
    "bls12_381",
    "bls12381",
    0x73EDA753299D7D483339D80809A1D80553BDA402FFFE5BFEFFFFFFFF00000001,
    0x1A0111EA397FE69A4B1BA7B6434BACD764774B84F38512BF6730D2A0F6B0F6241EABFFFEB153FFFFB9FEFFFFFFFFAAAB,
    (
        0x17F1D3A73197D7942695638C4FA9AC0FC3688C4F9774B905A14E3A3F171BAC586C55E83FF97A1AEFFB3AF00ADB22C6BB,
        0x08B3F481E3AAA0F1A09E30ED741D8AE4FCF5E095D5D00AF600DB18CB2C04B3EDD03CC744A2888AE40CAA232946C5E7E1,
    ),
    (
        (
            0x024AA2B2F08F0A91260805272DC51051C6E47AD4FA403B02B4510B647AE3D1770BAC0326A805BBEFD48056C8C121BDB8,
            0x13E02B6052719F607DACD3A088274F65596BD0D09920B61AB5DA61BBDC7F5049334CF11213945D57E5AC7D055D042B7E,
        ),
        (
            0x0CE5D527727D6E118CC9CDC6DA2E351AADFD9BAA8CBDD3A76D429A695160D12C923AC9CC3BACA289E193548608B82801,
            0x0606C4A02EA734CC32ACD2B02BC28B99CB3E287E85A763AF267492AB572E99AB3F370D275CEC1DA1AAA9075FF05F79BE,
        ),
    ),
)
