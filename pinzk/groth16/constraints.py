# SPDX-License-Identifier: Apache-2.0
"""R1cs: the constraints (A w) * (B w) = C w of a circuit, evaluated on a witness."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._core import cpu
from .._core.assignment import ProvingAssignment
from ..curves import Curve, Words
from ..formats.r1cs import R1csFile, read_r1cs
from ..formats.sparse import SparseRows
from .assignments import fill_assignment
from .witness import Witness


class R1cs:
    """A rank-1 constraint system; wire 0 is the constant one, then outputs, public inputs, private wires.

    Attributes
    ----------
    curve : Curve
    n_wires, n_public, n_constraints : int
        `n_public` counts outputs and public inputs, without the one.
    a, b, c : SparseRows
        One row a constraint.
    """

    def __init__(self, record: R1csFile) -> None:
        self.curve: Curve = record.curve
        self.n_wires: int = record.n_wires
        self.n_public: int = record.n_pub_out + record.n_pub_in
        self.n_constraints: int = record.n_constraints
        self.a, self.b, self.c = record.a, record.b, record.c
        self._record = record

    @staticmethod
    def load(src: Any) -> R1cs:
        """Read a circom/snarkjs ``.r1cs``.

        Parameters
        ----------
        src : path, bytes, buffer or file object

        Raises
        ------
        FormatError
            The file is malformed.
        """
        return R1cs(read_r1cs(src))

    @property
    def sizes(self) -> dict[str, int]:
        """Counts, by name."""
        record = self._record
        return {
            "n_constraints": self.n_constraints,
            "n_wires": self.n_wires,
            "n_pub_out": record.n_pub_out,
            "n_pub_in": record.n_pub_in,
            "n_prv_in": record.n_prv_in,
            "nnz_a": self.a.nnz,
            "nnz_b": self.b.nnz,
            "nnz_c": self.c.nnz,
        }

    def __repr__(self) -> str:
        return f"<R1cs {self.curve.name}: {self.n_constraints} constraints, {self.n_wires} wires>"

    @cached_property
    def occurs_in_a(self) -> NDArray[np.bool_]:
        """Which wires A's rows use: those with a coefficient that is not zero, and, for ``w_s * 0 = 0``, all public ones."""
        out = _occurs(self.a, self.n_wires)
        out[: self.n_public + 1] = True
        return out

    @cached_property
    def occurs_in_b(self) -> NDArray[np.bool_]:
        """Which wires B's rows use: those with a coefficient that is not zero."""
        return _occurs(self.b, self.n_wires)

    def evaluate(self, witness: Any, *, threads: int | None = None) -> tuple[Words, Words, Words]:
        """A w, B w and C w.

        Parameters
        ----------
        witness : Witness, or whatever `Witness.load` takes

        Returns
        -------
        a, b, c : ndarray of uint64, shape (n_constraints, 4)
            Montgomery form.

        Raises
        ------
        KeyMismatchError, WitnessError
            The witness is of another curve; it has another length or does not begin with 1.
        """
        w = canonical_witness(witness, self.curve, self.n_wires)
        a, b, c = (
            cpu.sparse_rows(self.curve.fr, m.indptr, m.indices, m.values, w, threads=threads)
            for m in (self.a, self.b, self.c)
        )
        return a, b, c

    def evaluate_into(
        self, assignment: ProvingAssignment, witness: Any, *, threads: int | None = None
    ) -> None:
        """Synthesise: write A w, B w, C w, the witness and the densities into an empty assignment, and seal it.

        All is written where the prover reads it; on an error the assignment is left empty.

        Parameters
        ----------
        assignment : ProvingAssignment
            New, of this curve.
        witness : Witness, or whatever `Witness.load` takes
        threads : int, optional

        Raises
        ------
        KeyMismatchError, WitnessError
            The witness is of another curve; it has another length or does not begin with 1.
        ValueError
            The assignment is not empty, or of another curve.
        """
        w = canonical_witness(witness, self.curve, self.n_wires)
        m = self.n_public + 1
        rows = (self.a, self.b, self.c)
        fill_assignment(assignment, self.curve, w, m, rows, self.n_constraints, threads)
        assignment.a_aux |= self.occurs_in_a[m:]
        assignment.b_input |= self.occurs_in_b[:m]
        assignment.b_aux |= self.occurs_in_b[m:]
        assignment.seal()

    def first_unsatisfied(self, witness: Any, *, threads: int | None = None) -> int | None:
        """Index of the first constraint that the witness does not satisfy, or None. Raises as `evaluate`."""
        a, b, c = self.evaluate(witness, threads=threads)
        wrong = (cpu.multiply(self.curve.fr, a, b, a, threads=threads) != c).any(axis=1)
        return int(wrong.argmax()) if wrong.any() else None


def _occurs(rows: SparseRows, n_wires: int) -> NDArray[np.bool_]:
    out = np.zeros(n_wires, dtype=bool)
    out[rows.indices[rows.values.any(axis=1)]] = True
    return out


def canonical_witness(witness: Any, curve: Curve, n_wires: int) -> Words:
    """The rows of a witness that fits a circuit of `n_wires` wires over `curve`.

    Returns
    -------
    ndarray of uint64, shape (n_wires, 4)
        Canonical.

    Raises
    ------
    KeyMismatchError
        It is of another curve.
    WitnessError
        It has another length, element 0 is not 1, or a value is not reduced.
    """
    fitting = Witness.load(witness, curve=curve)
    fitting.check_length(n_wires)
    return fitting.canonical
