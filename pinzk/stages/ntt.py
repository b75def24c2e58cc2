# SPDX-License-Identifier: Apache-2.0
"""Domain: the n-th roots of unity of a scalar field and the transforms over them.

The root belongs to the file format, not to the curve: snarkjs raises the smallest non-residue to (r - 1) / 2^s, bellman the
generator of its field record. They agree on BN254 (5, 5) and differ on BLS12-381 (5, 7); with the wrong one a domain of
2 still gives valid proofs and every larger one does not.
"""

from __future__ import annotations

import operator
from functools import cached_property
from typing import Any

import numpy as np

from .. import backend
from .._core import cpu
from ..curves import Curve, Words

_ROOT_BASE: dict[str, dict[str, int]] = {
    "snarkjs": {},
    "bellman": {"bls12_381": 7},
}  # 5 elsewhere


class Domain:
    """The subgroup of order n = 2**log_n in a curve's scalar field.

    Transforms take and return arrays of shape (n, 4), Montgomery form, natural order; the argument is left as it was. Tables
    of roots are made at their first use and kept: at most n elements. Safe to use from several threads.

    Parameters
    ----------
    curve : Curve
    log_n : int
        From 0 to the two-adicity of the field: 28 on BN254, 32 on BLS12-381.
    root : {"snarkjs", "bellman"}
        Whose 2**s-th root of unity; it belongs to the key file's format and has no default.
    device : str, default "auto"
    threads : int, optional
        Threads of each transform; by default what `PINZK_NUM_THREADS` or the machine says.

    Attributes
    ----------
    size : int
        n.
    omega : int
        The primitive n-th root, canonical.

    Raises
    ------
    ValueError
        `log_n` is out of range, or `root` is not a name above.

    Examples
    --------
    >>> from pinzk import BN254, Domain
    >>> domain = Domain(BN254, 2, root="snarkjs")
    >>> values = domain.ntt(BN254.fr.encode([5, 1, 0, 0]))
    >>> BN254.fr.decode(values)[0]
    6
    >>> BN254.fr.decode(domain.intt(values))
    [5, 1, 0, 0]
    """

    def __init__(
        self,
        curve: Curve,
        log_n: int,
        *,
        root: str,
        device: str = "auto",
        threads: int | None = None,
    ) -> None:
        if root not in _ROOT_BASE:
            raise ValueError(f"root must be 'snarkjs' or 'bellman', not {root!r}")
        log_n = operator.index(log_n)
        fr = curve.fr
        if not 0 <= log_n <= fr.two_adicity:
            raise ValueError(
                f"log_n must be in [0, {fr.two_adicity}], the two-adicity of {fr.name}, not {log_n}"
            )
        backend.select(device)
        cpu.num_threads(threads)
        self.curve, self.log_n, self.root, self.threads = curve, log_n, root, threads
        self.size = 1 << log_n
        self._base = _ROOT_BASE[root].get(curve.name, 5)
        self.omega = self._root_of_order(log_n)

    def __repr__(self) -> str:
        return f"<Domain {self.curve.name} 2^{self.log_n}, root of {self.root}>"

    def ntt(self, v: Words) -> Words:
        """Values at the roots of the polynomial with coefficients `v`: sum_j v_j omega**(j k)."""
        out = self._copy(v)
        self.dif(out)
        cpu.bit_reverse(self.curve.fr, out, threads=self.threads)
        return out

    def intt(self, v: Words) -> Words:
        """Coefficients of the polynomial with values `v` at the roots; the inverse of `ntt`."""
        return self.coset_intt(v, 1)

    def coset_ntt(self, v: Words, shift: int | None = None) -> Words:
        """Values at shift * omega**k of the polynomial with coefficients `v`.

        Parameters
        ----------
        v : ndarray of uint64, shape (n, 4)
        shift : int, optional
            Canonical, not zero. By default `default_shift`.
        """
        out = self._copy(v)
        self._scale(out, self._checked_shift(shift), 1)
        self.dif(out)
        cpu.bit_reverse(self.curve.fr, out, threads=self.threads)
        return out

    def coset_intt(self, v: Words, shift: int | None = None) -> Words:
        """Coefficients of the polynomial with values `v` at shift * omega**k; the inverse of `coset_ntt`."""
        r = self.curve.fr.modulus
        out = self._copy(v)
        self.dif_inverse(out)
        cpu.bit_reverse(self.curve.fr, out, threads=self.threads)
        self._scale(out, pow(self._checked_shift(shift), -1, r), pow(self.size, -1, r))
        return out

    @property
    def default_shift(self) -> int:
        """Where the coset starts: the primitive 2n-th root (snarkjs) or the field's generator (bellman).

        Raises
        ------
        ValueError
            Root "snarkjs" and n already is the two-adic limit: there is no 2n-th root.
        """
        if self.root == "bellman":
            return self._base
        if self.log_n >= self.curve.fr.two_adicity:
            limit = self.curve.fr.two_adicity - 1
            raise ValueError(
                f"{self.curve.fr.name} has no primitive 2^{self.log_n + 1}-th root: log_n is at most {limit}"
            )
        return self._root_of_order(self.log_n + 1)

    # ---- in place, for the quotient: bit-reversed order in between, so nothing is permuted ----

    def dif(self, v: Words) -> None:
        """`ntt` in place, natural order in, bit-reversed order out."""
        cpu.dif(self.curve.fr, v, self._twiddles, threads=self.threads)

    def dif_inverse(self, v: Words) -> None:
        """n times `intt`, in place, natural order in, bit-reversed order out."""
        cpu.dif(self.curve.fr, v, self._inverse_twiddles, threads=self.threads)

    def dit(self, v: Words) -> None:
        """`ntt` in place, bit-reversed order in, natural order out."""
        cpu.dit(self.curve.fr, v, self._twiddles, threads=self.threads)

    def to_coset(self, v: Words) -> None:
        """Values at the roots become values at default_shift * the roots: `intt`, then `coset_ntt`, in place."""
        self.dif_inverse(v)
        cpu.multiply(self.curve.fr, v, self._coset_factors, v, threads=self.threads)
        self.dit(v)

    def from_coset(self, v: Words, factor: int = 1) -> None:
        """Values at default_shift * the roots become coefficients times `factor`: `coset_intt` in place."""
        r = self.curve.fr.modulus
        self.dif_inverse(v)
        cpu.bit_reverse(self.curve.fr, v, threads=self.threads)
        self._scale(v, pow(self.default_shift, -1, r), factor * pow(self.size, -1, r) % r)

    # ---- tables ----

    @cached_property
    def _twiddles(self) -> Words:
        return cpu.twiddles(self.curve.fr, self.omega, self.size, threads=self.threads)

    @cached_property
    def _inverse_twiddles(self) -> Words:
        inverse = pow(self.omega, -1, self.curve.fr.modulus)
        return cpu.twiddles(self.curve.fr, inverse, self.size, threads=self.threads)

    @cached_property
    def _coset_factors(self) -> Words:
        # shift**i / n, in bit-reversed order
        n_inverse = pow(self.size, -1, self.curve.fr.modulus)
        out = cpu.powers(
            self.curve.fr,
            self.default_shift,
            self.size,
            first=n_inverse,
            threads=self.threads,
        )
        cpu.bit_reverse(self.curve.fr, out, threads=self.threads)
        return out

    # ---- helpers ----

    def _root_of_order(self, log_order: int) -> int:
        r = self.curve.fr.modulus
        return pow(self._base, (r - 1) >> log_order, r)

    def _scale(self, v: Words, base: int, first: int) -> None:
        # v_i *= first * base**i
        factors = cpu.powers(self.curve.fr, base, self.size, first=first, threads=self.threads)
        cpu.multiply(self.curve.fr, v, factors, v, threads=self.threads)

    def _checked_shift(self, shift: int | None) -> int:
        if shift is None:
            return self.default_shift
        shift = operator.index(shift)
        if not 0 < shift < self.curve.fr.modulus:
            raise ValueError(f"shift must be in (0, modulus of {self.curve.fr.name})")
        return shift

    def _copy(self, v: Any) -> Words:
        if not isinstance(v, np.ndarray) or v.dtype != np.uint64 or v.shape != (self.size, 4):
            got = f"{v.dtype}{list(v.shape)}" if isinstance(v, np.ndarray) else type(v).__name__
            raise ValueError(f"expected an array uint64[{self.size}, 4], not {got}")
        return np.array(v, order="C")
