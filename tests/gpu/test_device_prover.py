# SPDX-License-Identifier: Apache-2.0
"""Whole proofs on a GPU: the CPU's bytes under the same blinding, for files of both kinds and assignments."""

from __future__ import annotations

import gc
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from cases import ZKEY_CASES, Case, case
from simulator import SIMULATED
from test_bellman import CURVE, SECRET, squares

from pinzk import ProvingAssignment
from pinzk._core.device import Device, Stream
from pinzk._core.memory import MemoryBudget, PinnedPool, PinnedVec
from pinzk._testing import fixed_blinding
from pinzk.errors import MemoryPlanError, SelfCheckError, WitnessError
from pinzk.groth16 import plan
from pinzk.groth16.gpu_engine import GpuBegun
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.plan import gpu_plans
from pinzk.groth16.prover import Prover
from pinzk.groth16.setup import _setup, setup
from pinzk.groth16.verifier import verify
from pinzk.groth16.witness import Witness
from pinzk.stages import fixed_base
from pinzk.stages.device_sort import Windows

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


@pytest.mark.skipif(SIMULATED, reason="no GPU, and too large for the simulator")
@pytest.mark.parametrize("given", ZKEY_CASES, ids=str)
def test_every_given_file(device: Device, given: Case) -> None:
    both(ProvingKey.load(given.zkey), Witness.load(given.wtns), device)


@pytest.mark.parametrize("kind", ["snarkjs", "bellman"])
def test_a_set_up_on_the_gpu_is_the_cpus(device: Device, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(fixed_base, "_PIECE", 50)  # several pieces
    there, here = (_setup(SMALL.r1cs(), SECRET, kind, chosen).record for chosen in (device, "cpu"))
    for name, value in vars(here).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(there, name), value, err_msg=name)
    key = setup(SMALL.r1cs(), kind=kind, device=device)
    result = Prover(key, device="cpu").prove(SMALL.witness)
    assert verify(key.vk, result.public, result.proof)


# ---- memory ----


@pytest.mark.parametrize("kind", ["snarkjs", "bellman"])
def test_less_device_memory_means_fewer_multiples_and_the_same_proof(device: Device, kind: str) -> None:
    warnings.simplefilter("ignore")
    key = _setup(SMALL.r1cs(), SECRET, kind)
    key.r1cs = SMALL.r1cs()
    plans = gpu_plans(key.record)
    few = next(p for p in plans if p.witness_windows and p.witness_windows.multiples == 2)
    smallest = min(plans, key=lambda p: p.device)
    proofs = []
    for limit in (plans[0].device, few.device, smallest.device):
        with Prover(key, device=f"cuda:{device.index}", max_device=limit) as prover, fixed_blinding(3, 4):
            assert prover.estimate() == next(p for p in plans if p.device <= limit)
            proofs.append(prover.prove(SMALL.witness).proof)
    assert proofs[0] == proofs[1] == proofs[2]


@pytest.mark.parametrize("width", [5, 13])
@pytest.mark.parametrize("most", [1, 2, 255])
def test_every_cut_of_the_scalars_gives_the_same_proof(
    device: Device, monkeypatch: pytest.MonkeyPatch, width: int, most: int
) -> None:
    warnings.simplefilter("ignore")
    key = _setup(SMALL.r1cs(), SECRET, "snarkjs")
    windows = Windows(255, width, most)
    monkeypatch.setattr(plan, "_windows", lambda key: [(windows, windows)])
    both(key, SMALL.witness, device)


def test_a_key_that_does_not_fit_is_refused_with_the_numbers_and_nothing_is_held(device: Device) -> None:
    key = _setup(SMALL.r1cs(), SECRET, "snarkjs")
    before = device.budget.stats().used
    with pytest.raises(
        MemoryPlanError, match=r"needs at least \d+ MiB of device memory .* 1 MiB may be used"
    ):
        Prover(key, device=f"cuda:{device.index}", max_device=1 << 20)
    assert device.budget.stats().used == before


def test_memory_is_the_same_after_many_proofs_and_gone_after_the_prover(device: Device) -> None:
    key = _setup(SMALL.r1cs(), SECRET, "snarkjs")
    device.settle()
    gc.collect()
    before = device.budget.stats().used
    with Prover(key, device=f"cuda:{device.index}") as prover:
        used, pinned = [], []
        for _ in range(4 if SIMULATED else 50):
            prover.prove(SMALL.witness)
            gc.collect()
            device.settle()
            PinnedPool.default().settle()
            used.append(device.budget.stats().used)
            pinned.append(PinnedPool.default().stats().total)
        assert used[1] == used[-1] and pinned[1] == pinned[-1]
        assert used[-1] <= before + prover.estimate().device
    del prover
    gc.collect()
    device.settle()
    assert device.budget.stats().used == before


# ---- many at once ----


def test_threads_share_a_prover(device: Device) -> None:
    key = _setup(SMALL.r1cs(), SECRET, "snarkjs")
    threads, each = (3, 1) if SIMULATED else (8, 20)
    with Prover(key, device=f"cuda:{device.index}") as prover, ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(lambda _: prover.prove(SMALL.witness), range(threads * each)))
    assert all(verify(key.vk, r.public, r.proof) for r in results)
    assert len({r.proof.to_json() for r in results}) == len(results)


def test_a_batch_keeps_its_order(device: Device) -> None:
    key = _setup(SMALL.r1cs(), SECRET, "snarkjs")
    with Prover(key, device=f"cuda:{device.index}") as prover:
        results = list(prover.prove_many([SMALL.witness] * (3 if SIMULATED else 20)))
    assert all(verify(key.vk, r.public, r.proof) for r in results)


# ---- a machine that fails ----


class Wrong:
    """Sums that come out wrong, as often as told; differently each time, or the same way."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int, same: bool) -> None:
        self.calls, honest = 0, GpuBegun.sums

        def sums(begun: GpuBegun, clock: Any) -> Any:
            self.calls += 1
            right = honest(begun, clock)
            if self.calls > times:
                return right
            return right._replace(a=right.l if same or self.calls % 2 else right.h)

        monkeypatch.setattr(GpuBegun, "sums", sums)


def prover_of(device: Device, *, r1cs: bool = True) -> Prover:
    key = _setup(SMALL.r1cs(), SECRET, "snarkjs")
    key.r1cs = SMALL.r1cs() if r1cs else None
    return Prover(key, device=f"cuda:{device.index}")


def test_one_wrong_proof_is_made_again(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = Wrong(monkeypatch, times=1, same=True)
    with prover_of(device) as prover:
        result = prover.prove(SMALL.witness)
    assert result.stats["retries"] == 1 and wrong.calls == 2


def test_two_wrong_proofs_that_differ_are_the_devices_fault(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    Wrong(monkeypatch, times=2, same=False)
    with prover_of(device, r1cs=False) as prover, pytest.raises(SelfCheckError, match="computes wrongly"):
        prover.prove(SMALL.witness)


@pytest.mark.parametrize("r1cs", [True, False])
def test_the_same_wrong_proof_twice_is_the_witness_unless_the_circuit_says_no(
    device: Device, monkeypatch: pytest.MonkeyPatch, r1cs: bool
) -> None:
    Wrong(monkeypatch, times=2, same=True)
    with prover_of(device, r1cs=r1cs) as prover, pytest.raises(SelfCheckError if r1cs else WitnessError):
        prover.prove(SMALL.witness)


def test_a_wrong_proof_of_an_assignment_cannot_be_made_again(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = Wrong(monkeypatch, times=1, same=True)
    pool = PinnedPool(MemoryBudget(256 << 20))
    with prover_of(device) as prover:
        assignment = ProvingAssignment(CURVE, pool=pool, with_c=False)
        assert prover._key is not None
        prover._key.evaluate_into(assignment, SMALL.witness)
        with pytest.raises(SelfCheckError, match="cannot be made again"):
            prover.prove(assignment)
    assert wrong.calls == 1
    gc.collect()
    pool.settle()
    assert pool.stats().out == 0


def test_a_bad_witness_is_told_by_its_constraint(device: Device) -> None:
    bad = [*SMALL.witness[:-1], SMALL.witness[-1] + 1]
    with prover_of(device) as prover, pytest.raises(WitnessError, match=r"constraint \d+ fails"):
        prover.prove(bad)


def test_a_key_damaged_on_the_device_never_gives_a_proof(device: Device) -> None:
    with prover_of(device) as prover:
        assert prover.prove(SMALL.witness).stats["retries"] == 0  # the key is there
        points = prover._engine.points.h  # type: ignore[union-attr]
        stream = Stream(device)
        junk = PinnedVec.from_array(CURVE.g1, np.array(prover._key.h[1:4]))  # type: ignore[union-attr]
        points.upload(junk, stream)
        stream.synchronize()
        with pytest.raises(SelfCheckError):
            prover.prove(SMALL.witness)
