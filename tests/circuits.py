# SPDX-License-Identifier: Apache-2.0
"""Small circuits over Python integers, and their proofs from the trapdoor: no transform, no multi-scalar product."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from hypothesis import strategies as st

from pinzk.curves import Curve
from pinzk.formats.r1cs import R1csFile
from pinzk.formats.sparse import SparseRows
from pinzk.groth16.constraints import R1cs
from pinzk.groth16.setup import ToxicWaste

Combination = dict[int, int]  # wire -> coefficient
Row = tuple[Combination, Combination, Combination]


@dataclass(frozen=True)
class Circuit:
    """Constraints with a witness that satisfies them; wire 0 is one, then `n_public` public wires."""

    curve: Curve
    n_public: int
    rows: list[Row]
    witness: list[int]

    @property
    def n_wires(self) -> int:
        return len(self.witness)

    @property
    def domain_size(self) -> int:
        """The smallest power of two, 2 or more, that holds the constraints and a row for the one and each public wire."""
        return self.domain_from(2)

    def domain_from(self, smallest: int) -> int:
        n = smallest
        while n < len(self.rows) + self.n_public + 1:
            n *= 2
        return n

    def r1cs(self) -> R1cs:
        a, b, c = (sparse_rows(self.curve, [row[k] for row in self.rows]) for k in range(3))
        n_private = self.n_wires - self.n_public - 1
        return R1cs(R1csFile(self.curve, self.n_wires, 0, self.n_public, n_private, len(self.rows), a, b, c))


def sparse_rows(curve: Curve, rows: list[Combination]) -> SparseRows:
    return SparseRows.from_entries(curve, [row.items() for row in rows])


def dot(row: Combination, witness: list[int], r: int) -> int:
    return sum(c * witness[wire] for wire, c in row.items()) % r


def completed(a: Combination, b: Combination, c: Combination, witness: list[int], r: int) -> Row:
    """The row with the coefficient of the one in `c` such that it holds."""
    rest = {wire: k for wire, k in c.items() if wire != 0}
    constant = (dot(a, witness, r) * dot(b, witness, r) - dot(rest, witness, r)) % r
    return a, b, {**({0: constant} if constant else {}), **rest}


@st.composite
def circuits(draw: st.DrawFn, curve: Curve) -> Circuit:
    """Any shape: wires that are never used, empty combinations, coefficients and values with the edges among them."""
    r = curve.fr.modulus
    values = st.sampled_from([0, 1, 2, r - 1]) | st.integers(0, r - 1)
    coefficients = st.sampled_from([1, 1, r - 1]) | st.integers(1, r - 1)
    n_wires = draw(st.integers(1, 9))
    witness = [1, *draw(st.lists(values, min_size=n_wires - 1, max_size=n_wires - 1))]
    combinations = st.dictionaries(st.integers(0, n_wires - 1), coefficients, max_size=4)
    triples = draw(st.lists(st.tuples(combinations, combinations, combinations), max_size=12))
    rows = [completed(a, b, c, witness, r) for a, b, c in triples]
    return Circuit(curve, draw(st.integers(0, n_wires - 1)), rows, witness)


@functools.lru_cache(maxsize=8)
def lagrange(domain_size: int, tau: int, r: int, root: int) -> list[int]:
    """L_i(tau) over the powers of root^((r - 1) / domain_size), by the definition."""
    w = pow(root, (r - 1) // domain_size, r)
    roots = [pow(w, i, r) for i in range(domain_size)]
    out = []
    for i, x in enumerate(roots):
        top = bottom = 1
        for j, y in enumerate(roots):
            if i != j:
                top, bottom = top * (tau - y) % r, bottom * (x - y) % r
        out.append(top * pow(bottom, -1, r) % r)
    return out


def proof_logarithms(
    circuit: Circuit, secret: ToxicWaste, r_: int, s_: int, *, root: int = 5, smallest: int = 2
) -> tuple[int, int, int]:
    """Discrete logarithms of A, B, C for blinding r_, s_: C from the pairing equation that the proof must satisfy.

    `root` makes the roots of unity, `smallest` is the smallest domain: 5 and 2 for snarkjs, 7 and 1 for bellman.
    """
    r, w, m = circuit.curve.fr.modulus, circuit.witness, circuit.n_public + 1
    at_tau = lagrange(circuit.domain_from(smallest), secret.tau, r, root)
    # the rows of the key: the circuit's own, then one w_s * 0 = 0 for the one and each public wire
    rows = [*circuit.rows, *(({s: 1}, {}, {}) for s in range(m))]

    def wire_polynomials(k: int) -> list[int]:
        out = [0] * circuit.n_wires
        for row, share in zip(rows, at_tau, strict=False):
            for wire, c in row[k].items():
                out[wire] = (out[wire] + c * share) % r
        return out

    a, b, c = (wire_polynomials(k) for k in range(3))
    log_a = (secret.alpha + sum(x * y for x, y in zip(w, a, strict=True)) + r_ * secret.delta) % r
    log_b = (secret.beta + sum(x * y for x, y in zip(w, b, strict=True)) + s_ * secret.delta) % r
    public = sum(w[i] * (secret.beta * a[i] + secret.alpha * b[i] + c[i]) for i in range(m))
    log_c = (log_a * log_b - secret.alpha * secret.beta - public) * pow(secret.delta, -1, r) % r
    return log_a, log_b, log_c
