# SPDX-License-Identifier: Apache-2.0
"""Between assignments and the prover: written from matrices, checked against a key, read as scalars of its queries."""

from __future__ import annotations

import numpy as np

from .._core import cpu
from .._core.assignment import ProvingAssignment
from .._core.memory import PinnedVec
from ..curves import Curve, Words
from ..errors import KeyMismatchError, WitnessError
from ..formats.bellman import BellmanKey
from ..formats.sparse import SparseRows
from ..formats.zkey import Zkey

_PIECE = 1 << 18  # rows compared at a time


def fill_assignment(
    assignment: ProvingAssignment,
    curve: Curve,
    w: Words,
    n_inputs: int,
    matrices: tuple[SparseRows, ...],
    n_rows: int,
    threads: int | None,
) -> None:
    """Write the first rows of matrices on a canonical witness, and the witness, into an empty assignment; not sealed."""
    if assignment.curve is not curve:
        raise ValueError(f"the assignment is over {assignment.curve.name}, the circuit over {curve.name}")
    if assignment.sealed or assignment.sizes != (0, 0, 1):
        raise ValueError("the assignment is not empty: evaluate into a new one")
    fr, sizes = curve.fr, (n_rows, n_inputs - 1, len(w) - n_inputs)
    *evaluations, inputs, aux = assignment._spare(*sizes)
    for out, m in zip(evaluations, matrices, strict=False):
        if out is not None:
            cpu.sparse_rows(fr, m.indptr[: n_rows + 1], m.indices, m.values, w, out, threads=threads)
    cpu.to_montgomery(fr, w[1:n_inputs], inputs, threads=threads)
    cpu.to_montgomery(fr, w[n_inputs:], aux, threads=threads)
    assignment._commit(*sizes)


def check_assignment(
    key: Zkey | BellmanKey, assignment: ProvingAssignment, *, threads: int | None = None
) -> None:
    """Whether a key can prove from an assignment, sealed or not yet. Nothing is changed.

    Raises
    ------
    KeyMismatchError
        It is of another curve or circuit: the number of constraints or the densities are not the key's.
    WitnessError
        Another number of variables, input 0 is not 1, a value is not below r, or a row with a b != c; `index` names it.
    ValueError
        It keeps no c, which a bellman key needs.
    OwnershipError, BorrowError
        It was moved or released; a vector of it is borrowed.
    """
    if assignment.curve is not key.curve:
        raise KeyMismatchError(
            f"the assignment is over {assignment.curve.name}, the key over {key.curve.name}"
        )
    assignment._check_unborrowed()
    n_inputs, n_aux = len(assignment.input_assignment), len(assignment.aux_assignment)
    wanted = key.n_public + 1, key.n_vars - key.n_public - 1
    if (n_inputs, n_aux) != wanted:
        raise WitnessError(
            f"the circuit has {wanted[0]} inputs and {wanted[1]} auxiliary variables, the assignment {n_inputs} and {n_aux}"
        )
    _check_circuit(key, assignment)
    _check_values(key.curve, assignment, threads)


def _check_circuit(key: Zkey | BellmanKey, assignment: ProvingAssignment) -> None:
    n_inputs = len(assignment.input_assignment)
    n_rows = len(assignment.a) + (0 if assignment.sealed else n_inputs)
    if isinstance(key, Zkey):
        if n_rows > key.domain_size:
            raise KeyMismatchError(f"{n_rows} constraints do not fit the key's domain of {key.domain_size}")
        return
    if assignment.c is None:
        raise ValueError("the assignment keeps no c, which a bellman key needs: make it with_c=True")
    facts = {
        "domain size": (1 << (n_rows - 1).bit_length(), key.domain_size),
        "number of wires in A": (n_inputs + assignment.a_aux.count, len(key.a)),
        "number of wires in B": (assignment.b_input.count + assignment.b_aux.count, len(key.b_1)),
    }
    for fact, (theirs, ours) in facts.items():
        if theirs != ours:
            raise KeyMismatchError(
                f"the assignment is of another circuit than the key: its {fact} is {theirs}, the key's {ours}"
            )


def _check_values(curve: Curve, assignment: ProvingAssignment, threads: int | None) -> None:
    fr = curve.fr
    vectors: dict[str, PinnedVec | None] = {
        "input": assignment.input_assignment,
        "auxiliary variable": assignment.aux_assignment,
        "a, row": assignment.a,
        "b, row": assignment.b,
        "c, row": assignment.c,
    }
    for name, vec in vectors.items():
        bad = None if vec is None else cpu.first_unreduced(fr, vec.borrow().numpy(), threads=threads)
        if bad is not None:
            raise WitnessError(f"{name} {bad}: the value is not below r", index=bad)
    if not np.array_equal(assignment.input_assignment.borrow().numpy()[:1], fr.encode([1])):
        raise WitnessError("input 0, the constant one, is not 1", index=0)
    if assignment.c is None:
        return
    a, b, c = (v.borrow().numpy() for v in (assignment.a, assignment.b, assignment.c))
    for i in range(0, len(a), _PIECE):
        rows = slice(i, i + _PIECE)
        wrong = (cpu.multiply(fr, a[rows], b[rows], threads=threads) != c[rows]).any(axis=1)
        if wrong.any():
            row = i + int(wrong.argmax())
            raise WitnessError(f"the witness does not satisfy the circuit: constraint {row} fails", index=row)


def padded(vec: PinnedVec, n: int) -> Words:
    """The elements and zeros up to `n`, to be overwritten: the vector's own memory if that is large enough, else a copy."""
    if vec.capacity >= n:
        vec.resize(n)
        rows: Words = vec.borrow_mut().numpy()
        return rows
    values = vec.borrow().numpy()
    out = np.zeros((n, values.shape[1]), dtype=np.uint64)
    out[: len(values)] = values
    return out


def query_scalars(
    key: Zkey | BellmanKey, assignment: ProvingAssignment, *, threads: int | None = None
) -> tuple[Words, Words, Words]:
    """Canonical scalars: of all wires, and of those that have a point in the queries of A and of B.

    A snarkjs key has a point, maybe infinite, for every wire in each query; a bellman key has none where a wire does not
    occur, which the densities tell.
    """
    m = len(assignment.input_assignment)
    w = np.empty((m + len(assignment.aux_assignment), 4), dtype=np.uint64)
    for vec, out in ((assignment.input_assignment, w[:m]), (assignment.aux_assignment, w[m:])):
        cpu.from_montgomery(key.curve.fr, vec.borrow().numpy(), out, threads=threads)
    if isinstance(key, Zkey):
        return w, w, w
    in_a = np.concatenate([np.ones(m, dtype=bool), assignment.a_aux.mask])
    in_b = np.concatenate([assignment.b_input.mask, assignment.b_aux.mask])
    return w, w[in_a], w[in_b]
