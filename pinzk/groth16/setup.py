# SPDX-License-Identifier: Apache-2.0
"""A set-up made by one party, for tests and benchmarks only: whoever ran it could forge proofs.

Both kinds of key have gamma = 1 and, after the circuit's own constraints, one row w_s * 0 = 0 for the one and every public
wire. They differ in the roots of unity, in H (a snarkjs key has it at the odd 2N-th roots, a bellman key in powers of tau)
and in what they leave out: a bellman key holds no point at infinity.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import backend
from .._core import cpu
from .._core.device import Device
from ..curves import BLS12_381, Curve, Group, Words
from ..formats.bellman import BellmanKey
from ..formats.sparse import SparseRows
from ..formats.zkey import Zkey
from ..stages.fixed_base import fixed_base
from ..stages.ntt import Domain
from .constraints import R1cs
from .keys import ProvingKey

log = logging.getLogger(__name__)


def setup(r1cs: R1cs, *, kind: str = "snarkjs", device: str | Device = "auto") -> ProvingKey:
    """Make a proving key for tests and benchmarks. **Never for real proofs**: this process knew the toxic waste.

    Parameters
    ----------
    r1cs : R1cs
    kind : {"snarkjs", "bellman"}
        Whose mathematics and file format the key follows.
    device : str or Device, default "auto"
        Makes the points; the rest is done by the CPU.

    Returns
    -------
    ProvingKey
        ``key.save(path)`` writes it. The secrets come from the operating system and are dropped.

    Raises
    ------
    ValueError
        `kind` is not a name above, or the circuit is too large for the curve's roots of unity. Of kind "bellman" also: the
        curve is not BLS12-381, or a private wire occurs in no constraint.
    """
    if kind not in _KINDS:
        raise ValueError(f"kind must be 'snarkjs' or 'bellman', not {kind!r}")
    chosen = backend.select(device)
    log.warning("set-up by a single party: the key is for tests and benchmarks only")
    return _setup(r1cs, ToxicWaste.random(r1cs.curve), kind, chosen)


@dataclass(frozen=True, repr=False)
class ToxicWaste:
    """The secrets of a set-up (gamma is 1): canonical ints, none of them zero."""

    tau: int
    alpha: int
    beta: int
    delta: int

    @staticmethod
    def random(curve: Curve) -> ToxicWaste:
        """Drawn from the operating system, each in [2, r): with delta = 1 = gamma the key would be insecure."""
        return ToxicWaste(*(2 + secrets.randbelow(curve.fr.modulus - 2) for _ in range(4)))


def _setup(
    r1cs: R1cs, secret: ToxicWaste, kind: str = "snarkjs", chosen: backend.Backend = "cpu"
) -> ProvingKey:
    return ProvingKey(_KINDS[kind](r1cs, secret, chosen), r1cs=r1cs)


def _snarkjs(r1cs: R1cs, secret: ToxicWaste, chosen: backend.Backend) -> Zkey:
    curve, fr, m = r1cs.curve, r1cs.curve.fr, r1cs.n_public + 1
    r = fr.modulus
    domain = Domain(curve, max(1, (r1cs.n_constraints + m - 1).bit_length()), root="snarkjs", device="cpu")
    rows_a = _with_public_rows(r1cs, domain.size)
    rows_b = _padded(r1cs.b, domain.size)
    wires = _wires(r1cs, domain, rows_a, secret)
    # L_{2i+1}(tau) / delta over the 2N-th roots: the odd ones are the coset of the first
    odd = secret.tau * pow(domain.default_shift, -1, r)
    tau_2n = pow(secret.tau, 2 * domain.size, r)
    if tau_2n == 1:
        raise ValueError("tau is a root of unity: the Lagrange polynomials vanish there")
    h = _shares(domain, odd, (tau_2n - 1) * pow(2 * domain.size * secret.delta, -1, r))

    alpha, beta, delta = (fr.encode([x]) for x in (secret.alpha, secret.beta, secret.delta))
    alpha_1, beta_1, delta_1, ic, a_1, b_1, c_1, h_1 = _multiples(
        chosen, curve.g1, alpha, beta, delta, wires.k[:m], wires.a, wires.b, wires.l, h
    )
    beta_2, delta_2, b_2 = _multiples(chosen, curve.g2, beta, delta, wires.b)
    return Zkey(
        curve=curve,
        n_vars=r1cs.n_wires,
        n_public=r1cs.n_public,
        domain_size=domain.size,
        alpha_1=alpha_1,
        beta_1=beta_1,
        delta_1=delta_1,
        beta_2=beta_2,
        gamma_2=cpu.generator(curve.g2),
        delta_2=delta_2,
        ic=ic,
        a=a_1,
        b_1=b_1,
        b_2=b_2,
        c=c_1,
        h=h_1,
        rows_a=rows_a,
        rows_b=rows_b,
    )


def _bellman(r1cs: R1cs, secret: ToxicWaste, chosen: backend.Backend) -> BellmanKey:
    curve, fr, m = r1cs.curve, r1cs.curve.fr, r1cs.n_public + 1
    if curve is not BLS12_381:
        raise ValueError(f"a bellman key is of bls12_381, the circuit of {curve.name}")
    domain = Domain(curve, (r1cs.n_constraints + m - 1).bit_length(), root="bellman", device="cpu")
    wires = _wires(r1cs, domain, _with_public_rows(r1cs, domain.size), secret)
    loose = ~wires.l.any(axis=1)
    if loose.any():
        raise ValueError(
            f"wire {m + int(loose.argmax())} is private and unconstrained: a bellman key cannot have it"
        )
    # the prover leaves out the wires that occur nowhere; here one may also be left out because its terms cancel
    for name, polynomials, occurs in (("A", wires.a, r1cs.occurs_in_a), ("B", wires.b, r1cs.occurs_in_b)):
        cancelled = polynomials.any(axis=1) != occurs
        if cancelled.any():
            raise ValueError(
                f"wire {int(cancelled.argmax())} has terms in {name} that cancel: add them up first"
            )
    z = pow(secret.tau, domain.size, fr.modulus) - 1
    h = cpu.powers(fr, secret.tau, domain.size - 1, first=z * pow(secret.delta, -1, fr.modulus))

    alpha, beta, delta = (fr.encode([x]) for x in (secret.alpha, secret.beta, secret.delta))
    a, b = wires.a[r1cs.occurs_in_a], wires.b[r1cs.occurs_in_b]
    alpha_1, beta_1, delta_1, ic, a_1, b_1, l_1, h_1 = _multiples(
        chosen, curve.g1, alpha, beta, delta, wires.k[:m], a, b, wires.l, h
    )
    beta_2, delta_2, b_2 = _multiples(chosen, curve.g2, beta, delta, b)
    return BellmanKey(
        curve=curve,
        alpha_1=alpha_1,
        beta_1=beta_1,
        beta_2=beta_2,
        gamma_2=cpu.generator(curve.g2),
        delta_1=delta_1,
        delta_2=delta_2,
        ic=ic,
        h=h_1,
        l=l_1,
        a=a_1,
        b_1=b_1,
        b_2=b_2,
    )


_KINDS: dict[str, Callable[[R1cs, ToxicWaste, backend.Backend], Zkey | BellmanKey]] = {
    "snarkjs": _snarkjs,
    "bellman": _bellman,
}


@dataclass(frozen=True)
class _Wires:
    """Every wire's polynomials at tau, Montgomery form: of A, of B, and k = beta a + alpha b + c; `l` is k / delta."""

    a: Words
    b: Words
    k: Words
    l: Words  # noqa: E741  # the paper's name


def _wires(r1cs: R1cs, domain: Domain, rows_a: SparseRows, secret: ToxicWaste) -> _Wires:
    curve, fr, r = r1cs.curve, r1cs.curve.fr, r1cs.curve.fr.modulus
    z = pow(secret.tau, domain.size, r) - 1
    if z == 0:
        raise ValueError("tau is a root of unity: the Lagrange polynomials vanish there")
    lagrange = _shares(domain, secret.tau, z * pow(domain.size, -1, r))
    cpu.from_montgomery(fr, lagrange, lagrange)
    rows = (rows_a, _padded(r1cs.b, domain.size), _padded(r1cs.c, domain.size))
    a, b, c = (_column_sums(curve, m, lagrange, r1cs.n_wires) for m in rows)
    k = cpu.multiply_subtract(fr, b, _constant(curve, -secret.alpha, len(b)), c)
    k = cpu.multiply_subtract(fr, a, _constant(curve, secret.beta, len(a)), k)
    private = k[r1cs.n_public + 1 :]
    delta_inverse = pow(secret.delta, -1, r)
    return _Wires(a, b, k, cpu.multiply(fr, private, _constant(curve, delta_inverse, len(private))))


def _multiples(chosen: backend.Backend, group: Group, *scalars: Words) -> list[Words]:
    # each array of Montgomery scalars times the generator; one call, so one table
    together = cpu.from_montgomery(group.scalar, np.concatenate(scalars))
    points = fixed_base(group, cpu.generator(group), together, backend=chosen)
    return np.split(points, np.cumsum([len(x) for x in scalars])[:-1])


def _shares(domain: Domain, t: int, numerator: int) -> Words:
    # numerator / (t omega^-i - 1) for every i: L_i(t) = (t^n - 1) / n * omega^i / (t - omega^i)
    curve, fr = domain.curve, domain.curve.fr
    one = _constant(curve, 1, domain.size)
    out = cpu.powers(fr, pow(domain.omega, -1, fr.modulus), domain.size, first=t)
    cpu.multiply_subtract(fr, out, one, one, out)
    cpu.invert(fr, out, out)
    return cpu.multiply(fr, out, _constant(curve, numerator, domain.size), out)


def _constant(curve: Curve, value: int, n: int) -> Words:
    return cpu.powers(curve.fr, 1, n, first=value)


def _column_sums(curve: Curve, rows: SparseRows, scalars: Words, n_columns: int) -> Words:
    # out[j] = sum_i rows[i, j] scalars[i]: the transposed matrix times canonical scalars, Montgomery form
    order = np.argsort(rows.indices, kind="stable")
    row_of = np.repeat(np.arange(len(scalars), dtype=np.uint32), np.diff(rows.indptr).astype(np.int64))
    indptr = _starts(np.bincount(rows.indices, minlength=n_columns))
    return cpu.sparse_rows(curve.fr, indptr, row_of[order], rows.values[order], scalars)


def _starts(counts: NDArray[np.int64]) -> NDArray[np.uint64]:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint64)


def _padded(rows: SparseRows, n: int) -> SparseRows:
    # empty rows up to n
    indptr = np.concatenate([rows.indptr, np.full(n + 1 - len(rows.indptr), rows.indptr[-1])])
    return SparseRows(indptr.astype(np.uint64), rows.indices, rows.values)


def _with_public_rows(r1cs: R1cs, n: int) -> SparseRows:
    # A gets one row w_s * 0 = 0 for the one and each public wire: it keeps their polynomials independent
    rows, m = r1cs.a, r1cs.n_public + 1
    fr = r1cs.curve.fr
    one = fr.encode([(1 << 64 * fr.limbs) % fr.modulus])  # R^2, as a key stores a coefficient 1
    indptr = np.concatenate([rows.indptr, rows.indptr[-1] + np.arange(1, m + 1, dtype=np.uint64)])
    indices = np.concatenate([rows.indices, np.arange(m, dtype=np.uint32)])
    return _padded(
        SparseRows(indptr, indices, np.concatenate([rows.values, np.repeat(one, m, axis=0)])),
        n,
    )
