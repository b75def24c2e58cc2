# SPDX-License-Identifier: Apache-2.0
"""ProvingKey: a key file loaded, checked and owned."""

from __future__ import annotations

import os
from types import TracebackType
from typing import IO, Any

import numpy as np

from .._core.assignment import ProvingAssignment
from .._core.pairing import pairing_product_is_one
from ..curves import Curve, Words
from ..errors import FormatError, KeyMismatchError, UseAfterRelease
from ..formats.bellman import BellmanKey, looks_like_bellman, read_bellman, write_bellman
from ..formats.source import Source
from ..formats.sparse import SparseRows
from ..formats.zkey import Zkey, read_zkey, write_zkey
from .assignments import fill_assignment
from .constraints import R1cs, canonical_witness
from .verifying_key import VerifyingKey


class ProvingKey:
    """A Groth16 proving key. Make one with `ProvingKey.load` or `setup`.

    The key owns its memory: the file may be cut, overwritten or deleted afterwards. The arrays of the record are attributes
    of the key under the same names; see `pinzk.formats.zkey.Zkey` and `pinzk.formats.bellman.BellmanKey` for their shapes.

    Attributes
    ----------
    kind : {"snarkjs", "bellman"}
        Which prover's mathematics the key follows. A bellman key has no matrices: to prove from a witness it needs `r1cs`.
    curve : Curve
    vk : VerifyingKey
    n_vars, n_public, domain_size : int
    r1cs : R1cs or None
        What was given at load.
    """

    curve: Curve
    n_vars: int
    n_public: int
    domain_size: int
    alpha_1: Words
    beta_1: Words
    delta_1: Words
    beta_2: Words
    gamma_2: Words
    delta_2: Words
    ic: Words
    a: Words
    b_1: Words
    b_2: Words
    c: Words  # snarkjs alone
    l: Words  # noqa: E741  # bellman alone
    h: Words
    rows_a: SparseRows  # snarkjs alone
    rows_b: SparseRows

    def __init__(self, record: Zkey | BellmanKey, *, r1cs: R1cs | None = None) -> None:
        self.kind = "bellman" if isinstance(record, BellmanKey) else "snarkjs"
        self.r1cs = r1cs
        self._record: Zkey | BellmanKey | None = record
        self.vk = VerifyingKey(
            record.curve,
            alpha_1=record.alpha_1,
            beta_2=record.beta_2,
            gamma_2=record.gamma_2,
            delta_2=record.delta_2,
            ic=record.ic,
        )

    @staticmethod
    def load(src: Any, *, r1cs: Any = None, check: str = "curve", threads: int | None = None) -> ProvingKey:
        """Load a proving key.

        Parameters
        ----------
        src : path, bytes, buffer or binary file object
            A snarkjs ``.zkey`` or a parameter file of bellman or bellperson; the bytes tell.
        r1cs : R1cs, path, bytes, buffer or file object, optional
            The constraint system of the circuit: with it a bellman key can prove from a witness, and a failing proof can
            name the constraint.
        check : {"none", "curve", "full"}
            ``none``: sizes, counts, indices, ranges. ``curve``: every point on its curve too. ``full``: in the subgroup of
            order r too, and beta and delta the same in both groups. The points of the verification key are always checked
            in full.
        threads : int, optional

        Raises
        ------
        FormatError
            Malformed, or no proving key; names the section and the index.
        KeyMismatchError
            The r1cs is of another circuit.
        OSError
            The path cannot be read.
        """
        record: Zkey | BellmanKey
        with Source.open(src, "proving key") as source:
            if looks_like_bellman(source):
                record = read_bellman(source, check=check, threads=threads)
            else:
                record = read_zkey(source, check=check, threads=threads)
        if check == "full":
            _check_scalars(record)
        if r1cs is not None:
            r1cs = r1cs if isinstance(r1cs, R1cs) else R1cs.load(r1cs)
            _check_circuit(record, r1cs)
        return ProvingKey(record, r1cs=r1cs)

    def evaluate_into(
        self, assignment: ProvingAssignment, witness: Any, *, threads: int | None = None
    ) -> None:
        """Synthesise: write a witness and its constraints' values into an empty assignment, and seal it.

        A bellman key does so by its r1cs. A snarkjs key has A and B: there is no c to write, an assignment that keeps one is
        refused, and the densities stay empty, because such a key has a point for every wire.

        Parameters
        ----------
        assignment : ProvingAssignment
            New, of the key's curve.
        witness : Witness, or whatever `Witness.load` takes
        threads : int, optional

        Raises
        ------
        KeyMismatchError, WitnessError
            The witness does not fit the key.
        ValueError
            The assignment is not empty, of another curve, or keeps c; or the key is of bellman and has no r1cs.
        """
        key = self._owned()
        if isinstance(key, BellmanKey):
            if self.r1cs is None:
                raise ValueError("a bellman key has no matrices: load it with r1cs= to prove from a witness")
            self.r1cs.evaluate_into(assignment, witness, threads=threads)
            return
        if assignment.c is not None:
            raise ValueError("a snarkjs key has no matrix C: make the assignment with_c=False")
        w = canonical_witness(witness, key.curve, key.n_vars)
        # rows behind the last one with entries only pad; the inputs' rows are among those before
        n = max(int(np.searchsorted(m.indptr, m.nnz)) for m in (key.rows_a, key.rows_b))
        fill_assignment(assignment, key.curve, w, key.n_public + 1, (key.rows_a, key.rows_b), n, threads)
        assignment._sealed(n)

    def save(self, dst: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the key in the format of its kind; a path is replaced at once or not at all."""
        record = self._owned()
        if isinstance(record, BellmanKey):
            write_bellman(record, dst)
        else:
            write_zkey(record, dst)

    @property
    def sizes(self) -> dict[str, int]:
        """Counts that tell how big the key is, and the bytes it holds."""
        record = self._owned()
        if isinstance(record, BellmanKey):
            counts = {"n_a": len(record.a), "n_b": len(record.b_1)}
        else:
            counts = {"nnz_a": record.rows_a.nnz, "nnz_b": record.rows_b.nnz}
        return {
            "n_vars": record.n_vars,
            "n_public": record.n_public,
            "domain_size": record.domain_size,
            **counts,
            "nbytes": nbytes_of(record),
        }

    @property
    def closed(self) -> bool:
        """Whether `close` was called."""
        return self._record is None

    def close(self) -> None:
        """Let go of the arrays; proofs already under way keep what they use. Idempotent."""
        self._record = None
        self.r1cs = None

    def __enter__(self) -> ProvingKey:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        # only reached for what is not set here: the record's attributes
        if name not in _ATTRIBUTES:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self._owned(), name)

    @property
    def record(self) -> Zkey | BellmanKey:
        """All arrays at once: who holds it may use it after `close` too."""
        return self._owned()

    def _owned(self) -> Zkey | BellmanKey:
        if self._record is None:
            raise UseAfterRelease("the proving key is closed")
        return self._record

    def __repr__(self) -> str:
        if self._record is None:
            return "<ProvingKey, closed>"
        r = self._record
        return f"<ProvingKey {self.kind} {r.curve.name}, {r.n_vars} wires, {r.n_public} public, domain {r.domain_size}>"


_ATTRIBUTES = {*Zkey.__dataclass_fields__, *BellmanKey.__dataclass_fields__}


def nbytes_of(record: Zkey | BellmanKey) -> int:
    """Bytes of a key's arrays."""
    return sum(v.nbytes for v in vars(record).values() if hasattr(v, "nbytes"))


def _check_scalars(record: Zkey | BellmanKey) -> None:
    # e(beta_1, G2) = e(G1, beta_2): one scalar in both groups
    g1, g2 = record.curve.g1, record.curve.g2
    x, y = g1.generator()
    minus_one, one = g1.encode([(x, -y % record.curve.fp.modulus)]), g2.encode([g2.generator()])
    for name, first, second in (
        ("beta", record.beta_1, record.beta_2),
        ("delta", record.delta_1, record.delta_2),
    ):
        if not pairing_product_is_one(
            record.curve, np.concatenate([first, minus_one]), np.concatenate([one, second])
        ):
            raise FormatError(
                f"{name}_1 and {name}_2 are not of the same scalar",
                section=f"{name}_g2" if isinstance(record, BellmanKey) else 2,
            )


def _check_circuit(record: Zkey | BellmanKey, r1cs: R1cs) -> None:
    facts = {
        "curve": (r1cs.curve.name, record.curve.name),
        "number of wires": (r1cs.n_wires, record.n_vars),
        "number of public values": (r1cs.n_public, record.n_public),
    }
    if isinstance(record, BellmanKey):
        n_rows = r1cs.n_constraints + r1cs.n_public + 1
        facts["domain size"] = (1 << (n_rows - 1).bit_length(), record.domain_size)
        facts["number of wires in A"] = (int(r1cs.occurs_in_a.sum()), len(record.a))
        facts["number of wires in B"] = (int(r1cs.occurs_in_b.sum()), len(record.b_1))
    for fact, (theirs, ours) in facts.items():
        if theirs != ours:
            raise KeyMismatchError(
                f"the r1cs is of another circuit than the key: its {fact} is {theirs}, the key's {ours}"
            )
