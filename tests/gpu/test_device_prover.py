# SPDX-License-Identifier: Apache-2.0
"""Whole proofs on a GPU: the CPU's bytes under the same blinding, for files of both kinds and assignments."""

from __future__ import annotations

import gc
import warnings
from typing import Any

import pytest
from cases import ZKEY_CASES, Case, case
from simulator import SIMULATED
from test_bellman import CURVE, SECRET, squares

from pinzk import ProvingAssignment
from pinzk._core.device import Device
from pinzk._core.memory import MemoryBudget, PinnedPool
from pinzk._testing import fixed_blinding
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.prover import Prover
from pinzk.groth16.setup import _setup
from pinzk.groth16.verifier import verify
from pinzk.groth16.witness import Witness

SMALL = squares(12, 2)


@pytest.fixture(autouse=True)
def door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINZK_TEST_DOOR", "1")


def both(key: ProvingKey, witness: Any, device: Device) -> None:
    warnings.simplefilter("ignore")
    proofs = []
    for d in ("cpu", f"cuda:{device.index}"):
        with Prover(key, device=d) as prover, fixed_blinding(12345, 67890):
            result = prover.prove(witness)
        assert verify(key.vk, result.public, result.proof, allow_insecure=True)
        proofs.append(result)
    assert proofs[0].proof.to_json() == proofs[1].proof.to_json()
    assert proofs[0].public == proofs[1].public
    assert [p.stats["device"] for p in proofs] == ["cpu", f"cuda:{device.index}"]


@pytest.mark.parametrize("kind", ["snarkjs", "bellman"])
def test_a_small_circuit_of_both_kinds(device: Device, kind: str) -> None:
    r1cs = SMALL.r1cs()
    both(ProvingKey(_setup(r1cs, SECRET, kind).record, r1cs=r1cs), SMALL.witness, device)


@pytest.mark.parametrize("kind", ["snarkjs", "bellman"])
def test_an_assignment_gives_the_witness_proof_and_a_b_c_go_home_first(device: Device, kind: str) -> None:
    warnings.simplefilter("ignore")
    r1cs = SMALL.r1cs()
    key = ProvingKey(_setup(r1cs, SECRET, kind).record, r1cs=r1cs)
    pool = PinnedPool(MemoryBudget(256 << 20))
    with Prover(key, device=f"cuda:{device.index}") as prover, fixed_blinding(5, 6):
        expected = prover.prove(SMALL.witness)
        assignment = ProvingAssignment(CURVE, pool=pool, with_c=kind == "bellman")
        key.evaluate_into(assignment, SMALL.witness)
        pending = prover.prove_start(assignment)
        assert assignment.abc_released
        result = pending.finish()
    assert result.proof == expected.proof and result.public == expected.public
    gc.collect()
    pool.settle()
    assert pool.stats().out == 0


@pytest.mark.parametrize("name", ["mult3_bn254", "mult3_bls12381"])
def test_given_files(device: Device, name: str) -> None:
    given = case(name)
    assert given is not None
    both(ProvingKey.load(given.zkey), Witness.load(given.wtns), device)


@pytest.mark.skipif(SIMULATED, reason="too large for the simulator")
@pytest.mark.parametrize("given", ZKEY_CASES, ids=str)
def test_every_given_file(device: Device, given: Case) -> None:
    both(ProvingKey.load(given.zkey), Witness.load(given.wtns), device)
