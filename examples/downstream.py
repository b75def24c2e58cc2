# SPDX-License-Identifier: Apache-2.0
"""A prover of one's own on pinzk: synthesis writes into pinned memory, and a, b, c are home before the proof is done.

The circuit: y = x^4, the input y public. Runs on a GPU where there is one, else on the CPU.
"""

from __future__ import annotations

import logging

import pinzk
from pinzk.formats.r1cs import R1csFile
from pinzk.formats.sparse import SparseRows
from pinzk.groth16.setup import setup

CURVE, X = pinzk.BLS12_381, 7


def synthesise(assignment: pinzk.ProvingAssignment, x: int) -> None:
    """What bellman's circuits do: allocate variables with values, enforce constraints on them."""
    out = assignment.alloc_input(x**4)
    base, square = assignment.alloc(x), assignment.alloc(x**2)
    assignment.enforce([(base, 1)], [(base, 1)], [(square, 1)])
    assignment.enforce([(square, 1)], [(square, 1)], [(out, 1)])


def circuit() -> pinzk.R1cs:
    """The same constraints as matrices, for a key: wires are one, y, x, x^2."""

    def rows(*wires: int) -> SparseRows:
        return SparseRows.from_entries(CURVE, [[(wire, 1)] for wire in wires])

    return pinzk.R1cs(R1csFile(CURVE, 4, 0, 1, 2, 2, rows(2, 3), rows(2, 3), rows(3, 1)))


def main() -> None:
    logging.getLogger("pinzk").setLevel(logging.ERROR)  # that this key is for trying out
    key = setup(circuit(), kind="bellman")
    with pinzk.Prover(key) as prover:
        assignment = pinzk.ProvingAssignment.for_circuit("x^4", CURVE, constraints=2, aux=2, inputs=2)
        synthesise(assignment, X)
        pending = prover.prove_start(assignment)  # takes it; a, b and c may be used by the next synthesis
        print("a, b, c are home:", assignment.abc_released)
        result = pending.finish()
    print("proved on", result.stats["device"], "that", result.public[0], "is a fourth power")
    assert pinzk.verify(key.vk, result.public, result.proof)


if __name__ == "__main__":
    main()
