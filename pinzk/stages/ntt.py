# SPDX-License-Identifier: Apache-2.0
"""Domain: the n-th roots of unity of a scalar field and the transforms over them.

The root belongs to the file format, not to the curve: snarkjs raises the smallest non-residue to (r - 1) / 2^s, bellman the
generator of its field record. They agree on BN254 (5, 5) and differ on BLS12-381 (5, 7); with the wrong one a domain of
2 still gives valid proofs and every larger one does not.
"""

from __future__ import annotations

import operator
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import backend
from .._core import cpu
from .._core.device import Device, DeviceVec
from .._core.memory import PinnedVec
from ..curves import Curve, Words
from .arrays import check_rows, check_vector, expected

if TYPE_CHECKING:
    from .device_domain import DeviceDomain


_ROOT_BASE: dict[str, dict[str, int]] = {
    "snarkjs": {},
    "bellman": {"bls12_381": 7},
}  # 5 elsewhere


class Domain:
    """The subgroup of order n = 2**log_n in a curve's scalar field.

    Transforms take one vector of n elements or a batch of k, Montgomery form, natural order, leave it as it was, and answer
    in kind:

    ==========================================  ===================  ===================================================
    argument                                    shape or length      answer
    ==========================================  ===================  ===================================================
    ndarray of uint64                           (n, 4), (k, n, 4)    ndarray of that shape
    `PinnedVec` of the scalar field             n, k n               `PinnedVec` of that length, of the same pool
    `DeviceVec` of the scalar field             n, k n               `DeviceVec` of that length
    device array of uint64 or int64, by DLPack  (n, 4), (k, n, 4)    `DeviceVec` of k n, to be taken back without a copy:
    or ``__cuda_array_interface__``                                  ``cupy.asarray(out)``, ``torch.from_dlpack(out)``
    ==========================================  ===================  ===================================================

    The first two do on any device, the others with a domain on their GPU. Tables of roots are made at their first use and
    kept: at most n elements on the CPU, 64 n bytes for each direction on a GPU. Safe to use from several threads.

    Parameters
    ----------
    curve : Curve
    log_n : int
        From 0 to the two-adicity of the field: 28 on BN254, 32 on BLS12-381.
    root : {"snarkjs", "bellman"}
        Whose 2**s-th root of unity; it belongs to the key file's format and has no default.
    device : str or Device, default "auto"
        See `pinzk.backend.select`. On a GPU the kernels are loaded now, and compiled where that was never done.
    threads : int, optional
        Threads of each transform on the CPU; by default what `PINZK_NUM_THREADS` or the machine says.

    Attributes
    ----------
    size : int
        n.
    omega : int
        The primitive n-th root, canonical.
    device : "cpu" or Device

    Raises
    ------
    ValueError
        `log_n` is out of range, or `root` is not a name above.
    BackendUnavailable
        The device that was asked for cannot be used.

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
        device: str | Device = "auto",
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
        cpu.num_threads(threads)
        self.device = backend.select(device)
        self.curve, self.log_n, self.root, self.threads = curve, log_n, root, threads
        self.size = 1 << log_n
        self._base = _ROOT_BASE[root].get(curve.name, 5)
        self.omega = self._root_of_order(log_n)
        self._on_device: DeviceDomain | None = None
        if isinstance(self.device, Device):
            from .device_domain import DeviceDomain  # a process without a GPU has no use for it

            self._on_device = DeviceDomain(curve, log_n, self.omega, self.device)

    def __repr__(self) -> str:
        where = backend.name_of(self.device)
        return f"<Domain {self.curve.name} 2^{self.log_n}, root of {self.root}, on {where}>"

    def ntt(self, v: Any, *, stream: Any = None) -> Any:
        """Values at the roots of the polynomial with coefficients `v`: sum_j v_j omega**(j k).

        Parameters
        ----------
        v : ndarray, PinnedVec, DeviceVec or device array
            As the class says.
        stream : Stream, int or object with ``__cuda_stream__``, optional
            For device arrays: the call enqueues its work and returns; that work is behind what is on `stream` now, and
            what comes to `stream` later is behind it.

        Raises
        ------
        TypeError, ValueError
            Not an array of this domain, or on another device.
        BudgetExceeded
            The answer does not fit on the device.
        """
        return self._transform(v, 1, False, stream)

    def intt(self, v: Any, *, stream: Any = None) -> Any:
        """Coefficients of the polynomial with values `v` at the roots; the inverse of `ntt`."""
        return self._transform(v, 1, True, stream)

    def coset_ntt(self, v: Any, shift: int | None = None, *, stream: Any = None) -> Any:
        """Values at shift * omega**k of the polynomial with coefficients `v`.

        Parameters
        ----------
        v, stream
            As in `ntt`.
        shift : int, optional
            Canonical, not zero. By default `default_shift`.
        """
        return self._transform(v, self._checked_shift(shift), False, stream)

    def coset_intt(self, v: Any, shift: int | None = None, *, stream: Any = None) -> Any:
        """Coefficients of the polynomial with values `v` at shift * omega**k; the inverse of `coset_ntt`."""
        return self._transform(v, self._checked_shift(shift), True, stream)

    @cached_property
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

    def _transform(self, v: Any, shift: int, inverse: bool, stream: Any) -> Any:
        if self._on_device is not None:
            return self._on_device.transform(v, shift, inverse=inverse, stream=stream)
        if stream is not None:
            raise ValueError("stream: the CPU backend has no streams")
        if isinstance(v, PinnedVec):
            check_vector(v, self.curve.fr, self.size)
            out = PinnedVec(self.curve.fr, len(v), pool=v.pool)
            out.extend(v.borrow())
            self._in_place(out.borrow_mut().numpy(), shift, inverse)
            return out
        if isinstance(v, np.ndarray):
            check_rows(v, self.size)
            answer = np.array(v, order="C")
            self._in_place(answer, shift, inverse)
            return answer
        if isinstance(v, DeviceVec) or hasattr(v, "__cuda_array_interface__"):
            raise ValueError(
                "the array is on a GPU and the domain on the CPU: make the domain with device='cuda'"
            )
        raise expected(self.size, v)

    def _in_place(self, rows: Words, shift: int, inverse: bool) -> None:
        r = self.curve.fr.modulus
        for v in rows.reshape(-1, self.size, 4):
            if inverse:
                self.dif_inverse(v)
            else:
                if shift != 1:
                    self._scale(v, shift, 1)
                self.dif(v)
            cpu.bit_reverse(self.curve.fr, v, threads=self.threads)
            if inverse:
                self._scale(v, pow(shift, -1, r), pow(self.size, -1, r))
