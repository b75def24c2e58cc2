# SPDX-License-Identifier: Apache-2.0
"""The oracle: fields, curves, transforms and multi-scalar products in Python integers, slow and obvious.

Nothing here knows words, Montgomery form or windows. A field element is an int, an element of Fp2 = Fp[u]/(u^2 + 1) a
pair, a point a pair of coordinates, infinity `None`. Curves are short Weierstrass, y^2 = x^3 + b.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pinzk.curves import Curve, Group


class PrimeField:
    """F_p on ints."""

    zero: Any = 0
    one: Any = 1

    def __init__(self, p: int) -> None:
        self.p = p

    def add(self, a, b):
        return (a + b) % self.p

    def sub(self, a, b):
        return (a - b) % self.p

    def mul(self, a, b):
        return a * b % self.p

    def neg(self, a):
        return -a % self.p

    def inverse(self, a):
        """1 / a; ZeroDivisionError for 0."""
        if a % self.p == 0:
            raise ZeroDivisionError
        return pow(a, -1, self.p)

    def power(self, a, k: int):
        out = self.one
        for digit in bin(k)[2:]:
            out = self.mul(out, out)
            if digit == "1":
                out = self.mul(out, a)
        return out

    def sqrt(self, a):
        """A square root of a (p = 3 mod 4), or None."""
        root = pow(a, (self.p + 1) // 4, self.p)
        return root if root * root % self.p == a % self.p else None


class QuadraticField(PrimeField):
    """F_p[u] / (u^2 + 1) on pairs."""

    zero = (0, 0)
    one = (1, 0)

    def add(self, a, b):
        return ((a[0] + b[0]) % self.p, (a[1] + b[1]) % self.p)

    def sub(self, a, b):
        return ((a[0] - b[0]) % self.p, (a[1] - b[1]) % self.p)

    def mul(self, a, b):
        return ((a[0] * b[0] - a[1] * b[1]) % self.p, (a[0] * b[1] + a[1] * b[0]) % self.p)

    def neg(self, a):
        return (-a[0] % self.p, -a[1] % self.p)

    def inverse(self, a):
        i = PrimeField(self.p).inverse(a[0] * a[0] + a[1] * a[1])
        return (a[0] * i % self.p, -a[1] * i % self.p)

    def sqrt(self, a):
        """A square root of a, or None, by the complex method over p = 3 mod 4."""
        base = PrimeField(self.p)
        norm = base.sqrt(a[0] * a[0] + a[1] * a[1])
        if norm is None:
            return None
        for n in (norm, -norm):
            c0 = base.sqrt((a[0] + n) * pow(2, -1, self.p))
            if c0:
                root = (c0, a[1] * pow(2 * c0, -1, self.p) % self.p)
            elif c0 == 0:  # a = -s^2, so its root is s u
                root = (0, base.sqrt(-a[0]) or 0)
            else:
                continue
            if self.mul(root, root) == (a[0] % self.p, a[1] % self.p):
                return root
        return None


class Weierstrass:
    """The group of y^2 = x^3 + b over `field`, all of it."""

    def __init__(self, field: PrimeField, b) -> None:
        self.field = field
        self.b = b

    def right_side(self, x):
        f = self.field
        return f.add(f.mul(f.mul(x, x), x), self.b)

    def contains(self, p) -> bool:
        return p is None or self.field.mul(p[1], p[1]) == self.right_side(p[0])

    def neg(self, p):
        return None if p is None else (p[0], self.field.neg(p[1]))

    def add(self, p, q):
        """p + q by chord and tangent."""
        f = self.field
        if p is None:
            return q
        if q is None:
            return p
        if p[0] == q[0]:
            if p[1] != q[1] or p[1] == f.zero:
                return None
            xx = f.mul(p[0], p[0])
            slope = f.mul(f.add(f.add(xx, xx), xx), f.inverse(f.add(p[1], p[1])))
        else:
            slope = f.mul(f.sub(q[1], p[1]), f.inverse(f.sub(q[0], p[0])))
        x = f.sub(f.sub(f.mul(slope, slope), p[0]), q[0])
        return (x, f.sub(f.mul(slope, f.sub(p[0], x)), p[1]))

    def mul(self, k: int, p):
        """k p for any k, k not reduced by any order."""
        if k < 0:
            return self.mul(-k, self.neg(p))
        out = None
        for digit in bin(k)[2:]:
            out = self.add(out, out)
            if digit == "1":
                out = self.add(out, p)
        return out

    def msm(self, bases: Iterable, scalars: Iterable[int]):
        """sum scalars[i] bases[i], one product after the other."""
        total = None
        for p, k in zip(bases, scalars, strict=True):
            total = self.add(total, self.mul(k, p))
        return total

    def points_near(self, x0: int) -> Iterator:
        """Points of the whole curve with x = x0, x0 + 1, ... (pairs: (x0, 1), ...), one of each two signs."""
        while True:
            x = (x0, 1) if isinstance(self.field, QuadraticField) else x0
            y = self.field.sqrt(self.right_side(x))
            if y is not None:
                yield (x, y)
            x0 += 1


COEFFICIENTS = {
    "bn254.g1": 3,
    "bls12_381.g1": 4,
    "bls12_381.g2": (4, 4),
    "toy.g1": 3,
    "toy.g2": (0, 2),
}


def base_field(group: Group) -> PrimeField:
    return (PrimeField if group.number == 1 else QuadraticField)(group.base.modulus)


def weierstrass(group: Group) -> Weierstrass:
    """The curve that holds a group of pinzk."""
    field = base_field(group)
    if group.name == "bn254.g2":  # 3 / (9 + u)
        return Weierstrass(field, field.mul((3, 0), field.inverse((9, 1))))
    return Weierstrass(field, COEFFICIENTS[group.name])


def root_of_unity(p: int, generator: int, log_n: int) -> int:
    """The primitive 2^log_n-th root g^((p-1) / 2^log_n)."""
    return pow(generator, (p - 1) >> log_n, p)


def dft(values: Sequence[int], root: int, p: int) -> list[int]:
    """X_k = sum_j x_j root^(jk) mod p, by the definition."""
    n = len(values)
    powers = [1]
    for _ in range(n - 1):
        powers.append(powers[-1] * root % p)
    return [sum(x * powers[j * k % n] for j, x in enumerate(values)) % p for k in range(n)]


def bit_reversed(values: Sequence) -> list:
    bits = len(values).bit_length() - 1
    return [values[int(bin(i)[2:].zfill(bits)[::-1], 2) if bits else 0] for i in range(len(values))]


def edge_values(p: int, limbs: int) -> list[int]:
    """0, 1, p - 1, ..., and 2^k and its neighbours around every word boundary, reduced and without repetition."""
    ks = {1, 2, 31, 32, 33, p.bit_length() - 1, p.bit_length() - 2}
    for i in range(1, limbs + 1):
        ks |= {64 * i - 1, 64 * i, 64 * i + 1}
    values = [0, 1, 2, 3, p - 1, p - 2, p // 2, p // 2 + 1, pow(2, 64 * limbs, p), pow(2, -64 * limbs, p)]
    for k in sorted(ks):
        values += [(1 << k) - 1, 1 << k, (1 << k) + 1, p - (1 << k)]
    return list(dict.fromkeys(v % p for v in values))


def groups(curve: Curve) -> tuple[Group, Group]:
    return (curve.g1, curve.g2)
