# SPDX-License-Identifier: Apache-2.0
"""Proofs from assignments: the given proof by every door, what `prove_start` takes and refuses, and how proofs end."""

from __future__ import annotations

import gc
import pickle
import time
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from cases import DATA, case
from test_bellman import CURVE, FR, POSEIDON, SECRET, R, needs_poseidon, squares

import pinzk
from pinzk import PendingProof, ProvingAssignment, prove_start
from pinzk._core import cpu
from pinzk._core.memory import MemoryBudget, PinnedPool
from pinzk._testing import fixed_blinding
from pinzk.curves import BN254
from pinzk.errors import (
    BorrowError,
    Cancelled,
    KeyMismatchError,
    UseAfterMove,
    UseAfterRelease,
    WaitTimeout,
    WitnessError,
)
from pinzk.formats.sparse import SparseRows
from pinzk.groth16 import prover as prover_module
from pinzk.groth16.constraints import R1cs
from pinzk.groth16.cpu_engine import CpuBegun
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.prover import Prover
from pinzk.groth16.setup import _setup
from pinzk.groth16.verifier import verify
from pinzk.groth16.witness import Witness
from pinzk.stages import quotient

CIRCUIT = squares(12, 2)
KINDS = ["snarkjs", "bellman"]


@pytest.fixture(autouse=True)
def door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINZK_TEST_DOOR", "1")


@pytest.fixture
def pool() -> Iterator[PinnedPool]:
    pool = PinnedPool(MemoryBudget(256 << 20), kind="pageable")
    yield pool
    gc.collect()
    assert pool.stats().out == 0, "memory that did not come home"


@pytest.fixture(params=KINDS)
def key(request: pytest.FixtureRequest) -> ProvingKey:
    return _setup(CIRCUIT.r1cs(), SECRET, request.param)


def synthesised(pool: PinnedPool, witness: list[int] | None = None) -> ProvingAssignment:
    p = ProvingAssignment(CURVE, pool=pool)
    CIRCUIT.r1cs().evaluate_into(p, CIRCUIT.witness if witness is None else witness)
    return p


def with_fixed(r: int, s: int) -> Any:
    warnings.simplefilter("ignore")
    return fixed_blinding(r, s)


# ---- the given proof ----


def combinations(r1cs: R1cs, rows: SparseRows, variables: list[Any]) -> list[list[tuple[Any, int]]]:
    coefficients = cpu.from_montgomery(FR, cpu.from_montgomery(FR, rows.values))
    terms = [
        (variables[w], k)
        for w, k in zip(rows.indices.tolist(), FR.decode_canonical(coefficients), strict=True)
    ]
    bounds = rows.indptr.tolist()
    return [terms[bounds[i] : bounds[i + 1]] for i in range(r1cs.n_constraints)]


def by_enforce(r1cs: R1cs, witness: Witness, pool: PinnedPool, parts: int = 1) -> ProvingAssignment:
    w = FR.decode_canonical(witness.canonical)
    p = ProvingAssignment(CURVE, pool=pool)
    variables = [ProvingAssignment.ONE]
    variables += [p.alloc_input(x) for x in w[1 : r1cs.n_public + 1]]
    variables += [p.alloc(x) for x in w[r1cs.n_public + 1 :]]
    for row in zip(*(combinations(r1cs, m, variables) for m in (r1cs.a, r1cs.b, r1cs.c)), strict=True):
        p.enforce(*row)
    return p


def by_bulk_doors(r1cs: R1cs, witness: Witness, pool: PinnedPool) -> ProvingAssignment:
    m, w = r1cs.n_public + 1, cpu.to_montgomery(FR, witness.canonical)
    p = ProvingAssignment(CURVE, pool=pool)
    p.extend_inputs(w[1:m])
    p.extend_aux(w[m:])
    half = r1cs.n_constraints // 2
    rows = r1cs.evaluate(witness)
    for part in (slice(half), slice(half, None)):
        p.extend_rows(*(v[part] for v in rows))
    p.a_aux |= r1cs.occurs_in_a[m:]
    p.b_input |= r1cs.occurs_in_b[:m]
    p.b_aux |= r1cs.occurs_in_b[m:]
    return p


def by_evaluate_into(r1cs: R1cs, witness: Witness, pool: PinnedPool) -> ProvingAssignment:
    p = ProvingAssignment(CURVE, pool=pool)
    r1cs.evaluate_into(p, witness)
    return p


@needs_poseidon
@pytest.mark.parametrize("synthesis", [by_enforce, by_bulk_doors, by_evaluate_into])
def test_the_given_proof_by_every_door(synthesis: Any, pool: PinnedPool) -> None:
    assert POSEIDON is not None
    r1cs, witness = R1cs.load(POSEIDON.r1cs), Witness.load(POSEIDON.wtns)
    assignment = synthesis(r1cs, witness, pool)
    with Prover(
        ProvingKey.load(POSEIDON.folder / "circuit.params")
    ) as prover:  # no r1cs: the assignment has all
        with with_fixed(*POSEIDON.fixed_rs):
            pending = prover.prove_start(assignment)
        assert assignment.abc_released
        result = pending.finish()
    assert result.proof.to_bytes() == (POSEIDON.folder / "proof_fixed.bin").read_bytes()
    assert [str(x) for x in result.public] == POSEIDON.json("public.json")


def test_a_snarkjs_key_proves_from_an_assignment_too(pool: PinnedPool) -> None:
    found = case("mult3_bls12381")
    assert found is not None
    key = ProvingKey.load(found.zkey)
    assignment = ProvingAssignment(CURVE, pool=pool, with_c=False)
    key.evaluate_into(assignment, found.wtns)
    with Prover(key) as prover, with_fixed(*found.fixed_rs):
        result = prover.prove(assignment)
    assert [str(x) for x in result.public] == found.json("public.json")
    assert result.proof.to_json() == prover_proof(found)


def prover_proof(found: Any) -> str:
    from pinzk.groth16.proof import Proof

    return Proof.load(found.proof_fixed).to_json()


def test_every_door_gives_one_proof(key: ProvingKey, pool: PinnedPool) -> None:
    witness = Witness(CURVE, CIRCUIT.witness)
    with Prover(key) as prover, with_fixed(3, 4):
        want = prover.prove(witness).proof.to_bytes()
        for door in (by_enforce, by_bulk_doors, by_evaluate_into):
            assert prover.prove(door(CIRCUIT.r1cs(), witness, pool)).proof.to_bytes() == want
            roomy = ProvingAssignment(CURVE, constraints=100, aux=50, inputs=9, pool=pool)
            roomy.extend(by_enforce(CIRCUIT.r1cs(), witness, pool))
            assert prover.prove_start(roomy).finish().proof.to_bytes() == want


# ---- what is taken ----


def test_start_takes_the_assignment_and_gives_abc_back(key: ProvingKey, pool: PinnedPool) -> None:
    assignment = synthesised(pool)
    with Prover(key) as prover:
        pending = prover.prove_start(assignment)
        assert assignment.abc_released
        assignment.release_abc()
        for use in (
            lambda: assignment.a,
            lambda: assignment.aux_assignment,
            lambda: assignment.a_aux,
            assignment.seal,
            assignment.release,
            lambda: prover.prove_start(assignment),
        ):
            with pytest.raises(UseAfterMove):
                use()
        result = pending.finish()
    assert verify(key.vk, result.public, result.proof)
    assert "moved" in repr(assignment)


def refusals(pool: PinnedPool) -> dict[str, tuple[ProvingAssignment, type[Exception], int | None]]:
    other_curve = ProvingAssignment(BN254, pool=pool)
    short = ProvingAssignment(CURVE, pool=pool)
    wrong = [*CIRCUIT.witness]
    wrong[5] += 1
    unreduced, not_one = synthesised(pool), synthesised(pool)
    unreduced.aux_assignment.borrow_mut().numpy()[3] = 2**64 - 1
    not_one.input_assignment.borrow_mut().numpy()[0] = 0
    too_many = synthesised_open(pool)
    rows = np.zeros((40, 4), dtype=np.uint64)
    too_many.extend_rows(rows, rows, rows)
    return {
        "curve": (other_curve, KeyMismatchError, None),
        "length": (short, WitnessError, None),
        "row": (synthesised(pool, wrong), WitnessError, 3),
        "unreduced": (unreduced, WitnessError, 3),
        "one": (not_one, WitnessError, 0),
        "constraints": (too_many, KeyMismatchError, None),
    }


def synthesised_open(pool: PinnedPool) -> ProvingAssignment:
    return by_bulk_doors(CIRCUIT.r1cs(), Witness(CURVE, CIRCUIT.witness), pool)


@pytest.mark.parametrize("name", ["curve", "length", "row", "unreduced", "one", "constraints"])
def test_what_is_refused_stays_with_the_caller(key: ProvingKey, pool: PinnedPool, name: str) -> None:
    assignment, error, index = refusals(pool)[name]
    good = synthesised_open(pool)
    with Prover(key) as prover:
        for call in (prover.prove, prover.prove_start, lambda x: prove_start(prover, [good, x])):
            with pytest.raises(error) as caught:
                call(assignment)
            assert getattr(caught.value, "index", None) == index
            assert not assignment.abc_released and not good.abc_released and not good.sealed
    assignment.release()
    good.release()


def test_densities_must_be_the_keys(pool: PinnedPool) -> None:
    key = _setup(CIRCUIT.r1cs(), SECRET, "bellman")
    with Prover(key) as prover:
        for density in ("a_aux", "b_aux"):
            assignment = synthesised_open(pool)
            last = len(assignment.aux_assignment) - 1
            assert not getattr(assignment, density).mask[last]
            getattr(assignment, density).inc(last)
            with pytest.raises(KeyMismatchError, match="number of wires"):
                prover.prove_start(assignment)
            assignment.release()
        without_c = ProvingAssignment(CURVE, pool=pool, with_c=False)
        CIRCUIT.r1cs().evaluate_into(without_c, CIRCUIT.witness)
        with pytest.raises(ValueError, match="keeps no c"):
            prover.prove_start(without_c)
        without_c.release()


def test_a_borrowed_assignment_is_not_taken(key: ProvingKey, pool: PinnedPool) -> None:
    first, second = synthesised(pool), synthesised(pool)
    lease = second.aux_assignment.borrow()
    with Prover(key) as prover:
        with pytest.raises(BorrowError):
            prove_start(prover, [first, second])
        del lease
        assert not first.abc_released
        with pytest.raises(ValueError, match="twice"):
            prove_start(prover, [first, second, first])
        results = [p.finish() for p in prove_start(prover, iter([first, second, CIRCUIT.witness]))]
    assert all(verify(key.vk, r.public, r.proof) for r in results)
    assert first.abc_released and second.abc_released


def test_a_start_that_fails_brings_everything_home(
    key: ProvingKey, pool: PinnedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignments = [synthesised(pool) for _ in range(3)]
    honest, calls = getattr(quotient, key.kind), []

    def fails(*args: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return honest(*args)

    monkeypatch.setattr(quotient, key.kind, fails)
    with Prover(key, pool=pool) as prover:
        with pytest.raises(KeyboardInterrupt):
            prove_start(prover, assignments)
        assert [a.abc_released for a in assignments] == [True, True, False]
        calls[:] = [1]
        with pytest.raises(KeyboardInterrupt):
            prover.prove(CIRCUIT.witness)
    assignments[2].release()
    assert pool.stats().out == 0


def test_release_abc_during_the_last_read_waits_for_its_end(
    key: ProvingKey, pool: PinnedPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assignment = synthesised(pool)
    honest = getattr(quotient, key.kind)

    def releases(*args: Any) -> Any:
        assignment.release_abc()
        assert not assignment.abc_released
        return honest(*args)

    monkeypatch.setattr(quotient, key.kind, releases)
    with Prover(key) as prover:
        pending = prover.prove_start(assignment)
        assert assignment.abc_released
        assert verify(key.vk, CIRCUIT.witness[1:3], pending.finish().proof)


# ---- witness and key by the same way ----


@pytest.mark.parametrize("kind", KINDS)
def test_evaluate_into_needs_an_empty_assignment(pool: PinnedPool, kind: str) -> None:
    key, options = _setup(CIRCUIT.r1cs(), SECRET, kind), {"with_c": kind == "bellman"}
    full = ProvingAssignment(CURVE, pool=pool, **options)
    full.alloc(1)
    for bad in (full, ProvingAssignment(BN254, pool=pool, **options)):
        with pytest.raises(ValueError, match=r"not empty|over bn254"):
            key.evaluate_into(bad, CIRCUIT.witness)
        bad.release()
    with ProvingAssignment(CURVE, pool=pool, **options) as fresh:
        with pytest.raises(WitnessError):
            key.evaluate_into(fresh, CIRCUIT.witness[:-1])
        assert fresh.sizes == (0, 0, 1)
        key.evaluate_into(fresh, CIRCUIT.witness)
        assert fresh.sealed
        assert FR.decode(fresh.input_assignment.borrow().numpy()) == CIRCUIT.witness[:3]
    with ProvingAssignment(CURVE, pool=pool) as other:
        if kind == "snarkjs":
            with pytest.raises(ValueError, match="with_c=False"):
                key.evaluate_into(other, CIRCUIT.witness)


def test_key_and_constraints_evaluate_alike(pool: PinnedPool) -> None:
    key = _setup(CIRCUIT.r1cs(), SECRET)
    with (
        ProvingAssignment(CURVE, pool=pool, with_c=False) as mine,
        ProvingAssignment(CURVE, pool=pool, with_c=False) as theirs,
    ):
        key.evaluate_into(mine, CIRCUIT.witness)
        CIRCUIT.r1cs().evaluate_into(theirs, CIRCUIT.witness)
        for name in ("a", "b", "input_assignment", "aux_assignment"):
            np.testing.assert_array_equal(*(getattr(p, name).borrow().numpy() for p in (mine, theirs)))


# ---- how a pending proof ends ----


class Slow:
    """Multi-scalar multiplication that takes its time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
        self.calls = 0
        honest = CpuBegun._msm

        def msm(begun: CpuBegun, *args: Any) -> Any:
            self.calls += 1
            time.sleep(seconds)
            return honest(begun, *args)

        monkeypatch.setattr(CpuBegun, "_msm", msm)


def test_finish_is_once_and_waits(key: ProvingKey, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch, 0.1)
    with Prover(key) as prover:
        pending = prover.prove_start(CIRCUIT.witness)
        assert not pending.done() and "under way" in repr(pending)
        with pytest.raises(WaitTimeout):
            pending.finish(timeout=0.01)
        while not pending.done():
            time.sleep(0.01)
        assert slow.calls == 5
        result = pending.finish(0)
    assert verify(key.vk, result.public, result.proof)
    for _ in range(2):
        with pytest.raises(UseAfterRelease):
            pending.finish()
    pending.cancel()
    assert pending.done() and "taken" in repr(pending)
    with pytest.raises(TypeError):
        pickle.dumps(pending)


def test_cancelled_and_dropped(key: ProvingKey, pool: PinnedPool, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = Slow(monkeypatch, 0.05)
    with Prover(key) as prover:
        running, waiting, dropped = prove_start(prover, [synthesised(pool) for _ in range(3)])
        assert pool.stats().out == 0
        for pending in (running, waiting):
            pending.cancel()
            pending.cancel()
            assert pending.done() and "cancelled" in repr(pending)
            with pytest.raises(Cancelled):
                pending.finish()
        del pending, dropped
        gc.collect()
        assert verify(key.vk, CIRCUIT.witness[1:3], prover.prove_start(CIRCUIT.witness).finish().proof)
    assert slow.calls <= 2 * 5, "a cancelled proof went on"


def test_proofs_under_way_outlive_their_prover(key: ProvingKey, monkeypatch: pytest.MonkeyPatch) -> None:
    Slow(monkeypatch, 0.02)
    prover = Prover(key)
    started = prove_start(prover, [CIRCUIT.witness] * 3)
    prover.close()
    del prover
    gc.collect()
    assert all(verify(key.vk, r.public, r.proof) for r in (p.finish(timeout=60) for p in started))
    with pytest.raises(UseAfterRelease):
        prove_start(_closed(key), [CIRCUIT.witness])


def _closed(key: ProvingKey) -> Prover:
    prover = Prover(key)
    prover.close()
    return prover


def test_blinding_belongs_to_the_start(key: ProvingKey) -> None:
    with Prover(key) as prover:
        with with_fixed(5, 6):
            inside = prover.prove_start(CIRCUIT.witness)
            want = prover.prove(CIRCUIT.witness).proof.to_bytes()
        outside = prover.prove_start(CIRCUIT.witness)
        assert inside.finish().proof.to_bytes() == want != outside.finish().proof.to_bytes()
    assert prover_module._blinding.__name__ == "_blinding"


def test_self_check_of_a_pending_proof(pool: PinnedPool) -> None:
    # a key without c cannot tell at once
    key = ProvingKey.load(DATA / "mult3_bls12381" / "circuit.zkey")
    witness = FR.decode_canonical(Witness.load(DATA / "mult3_bls12381" / "witness.wtns").canonical)
    witness[-1] = (witness[-1] + 1) % R
    with Prover(key) as prover:
        pending = prover.prove_start(witness)
        with pytest.raises(WitnessError, match="does not verify"):
            pending.finish()
        with pytest.raises(UseAfterRelease):
            pending.finish()
    assert isinstance(pending, PendingProof) and pinzk.PendingProof is PendingProof
