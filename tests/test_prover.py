# SPDX-License-Identifier: Apache-2.0
"""The prover on real keys: the digits for given r and s, fresh proofs, refusals, threads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases import ROOT, ZKEY_CASES, Case, case
from circuits import Circuit
from py_ecc import optimized_bls12_381, optimized_bn128

from pinzk._testing import fixed_blinding
from pinzk.curves import BLS12_381, BN254, Curve
from pinzk.errors import BackendUnavailable, KeyMismatchError, SelfCheckError, UseAfterRelease, WitnessError
from pinzk.groth16 import prover as prover_module
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.proof import Proof
from pinzk.groth16.prover import Prover
from pinzk.groth16.setup import ToxicWaste, _setup, setup
from pinzk.groth16.verifier import verify
from pinzk.groth16.verifying_key import VerifyingKey
from pinzk.groth16.witness import Witness
from pinzk.groth16.work import ProofResult
from pinzk.stages import quotient

every_case = pytest.mark.parametrize("c", ZKEY_CASES, ids=str)
every_curve = pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
SNARKJS = Callable[..., "subprocess.CompletedProcess[str]"]


@contextmanager
def blinding(monkeypatch: pytest.MonkeyPatch, r: int, s: int) -> Iterator[None]:
    monkeypatch.setenv("PINZK_TEST_DOOR", "1")
    with pytest.warns(UserWarning, match="fixed"), fixed_blinding(r, s):
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """For keys that warn."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def mult3(curve: Curve) -> Case:
    found = case(f"mult3_{curve.name.replace('_', '')}")
    assert found is not None
    return found


def parsed(proof: Proof) -> Any:
    return json.loads(proof.to_json())


def prove(c: Case, **options: object) -> ProofResult:
    with quiet(), Prover(ProvingKey.load(c.zkey), **options) as prover:  # type: ignore[arg-type]
        return prover.prove(c.wtns)


def write(result: ProofResult, folder: Path) -> tuple[Path, Path]:
    proof, public = folder / "proof.json", folder / "public.json"
    result.proof.save(proof)
    public.write_text(json.dumps([str(x) for x in result.public]))
    return public, proof


# ---- the right digits ----


@every_case
def test_digits_for_given_blinding(c: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    with blinding(monkeypatch, *c.fixed_rs):
        result = prove(c)
    assert parsed(result.proof) == c.json("proof_fixed.json")
    assert [str(x) for x in result.public] == c.json("public.json")


@every_case
def test_fresh_proofs_verify(c: Case, snarkjs: SNARKJS, tmp_path: Path) -> None:
    first, second = prove(c), prove(c)
    assert parsed(first.proof) != parsed(second.proof)
    assert verify(VerifyingKey.load(c.vkey), first.public, first.proof, allow_insecure=True)
    done = snarkjs("groth16", "verify", c.vkey, *write(first, tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK!" in done.stdout


@every_curve
def test_fresh_proof_satisfies_the_pairing_equation_of_py_ecc(curve: Curve) -> None:
    c = mult3(curve)
    result, key = prove(c), ProvingKey.load(c.zkey)
    library = optimized_bn128 if curve is BN254 else optimized_bls12_381

    def g1(array: np.ndarray) -> list:
        return [(library.FQ(x), library.FQ(y), library.FQ.one()) for x, y in curve.g1.decode(array)]

    def g2(array: np.ndarray) -> tuple:
        (x, y) = curve.g2.decode(array)[0]
        return library.FQ2(x), library.FQ2(y), library.FQ2.one()

    ic = g1(key.ic)
    public = ic[0]
    for x, p in zip(result.public, ic[1:], strict=True):
        public = library.add(public, library.multiply(p, x))
    a, b, (c_1,) = g1(result.proof.a)[0], g2(result.proof.b), g1(result.proof.c)
    left = library.pairing(b, a)
    right = library.pairing(g2(key.beta_2), g1(key.alpha_1)[0])
    right *= library.pairing(g2(key.gamma_2), public)
    right *= library.pairing(g2(key.delta_2), c_1)
    assert left == right


def test_blinding_reaches_every_element(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = []
    for rs in ((0, 0), (1, 0), (0, 1), (BN254.fr.modulus - 1, BN254.fr.modulus - 1)):
        with blinding(monkeypatch, *rs):
            proofs.append(parsed(prove(mult3(BN254)).proof))
    for element in ("pi_a", "pi_c"):
        assert proofs[0][element] != proofs[1][element]
    assert proofs[0]["pi_a"] == proofs[2]["pi_a"]
    assert proofs[0]["pi_b"] == proofs[1]["pi_b"] != proofs[2]["pi_b"]


def test_blinding_is_drawn_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    monkeypatch.setattr("secrets.randbelow", lambda n: drawn.append(n) or 5)
    assert parsed(prove(mult3(BLS12_381)).proof) == parsed(prove(mult3(BLS12_381)).proof)
    assert drawn == [BLS12_381.fr.modulus] * 4


# ---- what may be given ----


@every_curve
def test_every_form_of_a_witness(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    c = mult3(curve)
    witness = Witness.load(c.wtns)
    prover = Prover(ProvingKey.load(c.zkey))
    with blinding(monkeypatch, *c.fixed_rs), open(c.wtns, "rb") as file:
        forms = [
            c.wtns,
            str(c.wtns),
            c.wtns.read_bytes(),
            bytearray(c.wtns.read_bytes()),
            file,
            witness,
            witness.canonical,
            curve.fr.decode_canonical(witness.canonical),
        ]
        proofs = [parsed(prover.prove(form).proof) for form in forms]
    assert proofs == [c.json("proof_fixed.json")] * len(forms)


def test_stats_are_plain() -> None:
    result = prove(mult3(BN254), threads=1)
    stats = json.loads(json.dumps(result.stats))
    assert stats["device"] == "cpu"
    assert stats["threads"] == 1
    assert stats["curve"] == "bn254"
    assert stats["self_check"] is True
    assert stats["sizes"]["n_vars"] == 8
    seconds = stats["seconds"]
    stages = {
        "evaluate",
        "quotient",
        "msm_h",
        "msm_a",
        "msm_b_1",
        "msm_b_2",
        "msm_c",
        "combine",
        "self_check",
    }
    assert set(seconds) == stages | {"total"}
    assert 0 < sum(seconds[s] for s in stages) <= seconds["total"]
    assert "self_check" not in prove(mult3(BN254), self_check=False).stats["seconds"]


# ---- refusals ----


@every_curve
def test_a_witness_of_the_other_curve(curve: Curve) -> None:
    other = mult3(BLS12_381 if curve is BN254 else BN254)
    with pytest.raises(KeyMismatchError, match=curve.name):
        Prover(ProvingKey.load(mult3(curve).zkey)).prove(other.wtns)


@every_curve
def test_a_witness_of_another_length(curve: Curve) -> None:
    c = mult3(curve)
    values = curve.fr.decode_canonical(Witness.load(c.wtns).canonical)
    prover = Prover(ProvingKey.load(c.zkey))
    for wrong in (values[:-1], [*values, 0], values[:1]):
        with pytest.raises(WitnessError, match=f"Invalid witness length. Circuit: 8, witness: {len(wrong)}"):
            prover.prove(wrong)


def test_a_witness_that_does_not_begin_with_one() -> None:
    c = mult3(BN254)
    values = BN254.fr.decode_canonical(Witness.load(c.wtns).canonical)
    with pytest.raises(WitnessError, match=r"witness\[0\] is not 1"):
        Prover(ProvingKey.load(c.zkey)).prove([2, *values[1:]])
    # past the checks of load too
    with pytest.raises(WitnessError, match=r"witness\[0\] is not 1"):
        Prover(ProvingKey.load(c.zkey)).prove(Witness(BN254, BN254.fr.encode_canonical([2, *values[1:]])))


@every_curve
def test_an_unsatisfying_witness_gives_no_proof(curve: Curve) -> None:
    c = mult3(curve)
    values = curve.fr.decode_canonical(Witness.load(c.wtns).canonical)
    assert c.r1cs is not None
    blind, told = ProvingKey.load(c.zkey), ProvingKey.load(c.zkey, r1cs=c.r1cs)
    for wire in range(1, len(values)):
        wrong = list(values)
        wrong[wire] = (wrong[wire] + 1) % curve.fr.modulus
        with pytest.raises(WitnessError, match="does not satisfy the circuit") as caught:
            Prover(blind).prove(wrong)
        assert caught.value.index is None
        with pytest.raises(WitnessError, match=r"constraint \d fails") as caught:
            Prover(told).prove(wrong)
        assert told.r1cs is not None
        assert caught.value.index == told.r1cs.first_unsatisfied(wrong)
        assert str(wrong[wire]) not in str(caught.value)
    # whoever turns the check off gets what he asked for
    result = Prover(blind, self_check=False).prove(wrong)
    assert not verify(blind.vk, result.public, result.proof)


def test_a_machine_that_computes_wrongly_is_not_the_witness(monkeypatch: pytest.MonkeyPatch) -> None:
    c = mult3(BN254)
    key = ProvingKey.load(c.zkey, r1cs=c.r1cs)
    honest = quotient.snarkjs
    monkeypatch.setattr(quotient, "snarkjs", lambda *args: honest(*args)[::-1].copy())
    with pytest.raises(SelfCheckError, match="computes wrongly"):
        Prover(key).prove(c.wtns)


def test_selectors() -> None:
    key = ProvingKey.load(mult3(BN254).zkey)
    with pytest.raises(BackendUnavailable):
        Prover(key, device="cuda:0")
    with pytest.raises(ValueError, match="device must be"):
        Prover(key, device="tpu")
    for threads in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="threads"):
            Prover(key, threads=threads)  # type: ignore[arg-type]


def test_closed() -> None:
    c = mult3(BN254)
    key = ProvingKey.load(c.zkey)
    with Prover(key) as prover:
        prover.prove(c.wtns)
    prover.close()
    with pytest.raises(UseAfterRelease, match="prover is closed"):
        prover.prove(c.wtns)
    second = Prover(key)
    key.close()
    with pytest.raises(UseAfterRelease, match="key is closed"):
        second.prove(c.wtns)


# ---- insecure keys ----


@every_curve
def test_a_fresh_key_proves_with_a_warning(curve: Curve) -> None:
    circuit = Circuit(curve, 1, [({1: 1}, {1: 1}, {2: 1})], [1, 3, 9])
    key = _setup(circuit.r1cs(), ToxicWaste(tau=1234, alpha=2, beta=3, delta=1))
    assert key.vk.is_insecure
    with pytest.warns(UserWarning, match="insecure key: delta_2 = gamma_2"):
        result = Prover(key).prove(circuit.witness)
    assert verify(key.vk, result.public, result.proof, allow_insecure=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Prover(setup(circuit.r1cs())).prove(circuit.witness)


# ---- peers on our keys ----


@every_curve
def test_snarkjs_proves_with_our_key_and_we_with_its_contributions(
    curve: Curve, snarkjs: SNARKJS, tmp_path: Path
) -> None:
    r = curve.fr.modulus
    rows = [({1: 1, 0: 5}, {2: r - 1}, {3: 1}), ({3: 1}, {3: 1}, {4: 1}), ({}, {}, {1: 1, 2: 1, 5: r - 1})]
    w = [1, 7, 11]
    w += [(w[1] + 5) * -w[2] % r]
    w += [w[3] ** 2 % r, (w[1] + w[2]) % r]
    circuit = Circuit(curve, 2, rows, w)
    keys = [tmp_path / f"{i}.zkey" for i in range(3)]
    vkey, wtns, public, proof = (tmp_path / n for n in ("vk.json", "w.wtns", "public.json", "proof.json"))
    setup(circuit.r1cs()).save(keys[0])
    Witness.load(w, curve=curve).save(wtns)
    for i in range(2):  # two contributions
        snarkjs("zkey", "contribute", keys[i], keys[i + 1], f"--name={i}", f"-e=entropy {i}", check=True)
    for key in (keys[0], keys[2]):
        snarkjs("zkey", "export", "verificationkey", key, vkey, check=True)
        snarkjs("groth16", "prove", key, wtns, proof, public, check=True)
        assert "OK!" in snarkjs("groth16", "verify", vkey, public, proof, check=True).stdout
        assert verify(VerifyingKey.load(vkey), w[1:3], Proof.load(proof))
        result = Prover(ProvingKey.load(key, check="full")).prove(wtns)
        assert "OK!" in snarkjs("groth16", "verify", vkey, *write(result, tmp_path), check=True).stdout


# ---- threads ----


@every_curve
def test_eight_threads_prove_with_one_key(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    c = mult3(curve)
    prover, start = Prover(ProvingKey.load(c.zkey)), threading.Barrier(8)

    def job(_: int) -> list[dict]:
        start.wait()
        return [parsed(prover.prove(c.wtns).proof) for _ in range(5)]

    with blinding(monkeypatch, *c.fixed_rs), ThreadPoolExecutor(8) as pool:
        proofs = [proof for done in pool.map(job, range(8)) for proof in done]
    assert proofs == [c.json("proof_fixed.json")] * 40


@every_case
def test_the_number_of_threads_changes_nothing(c: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    key = ProvingKey.load(c.zkey)
    with blinding(monkeypatch, *c.fixed_rs), quiet():
        for threads in (1, 3):
            result = Prover(key, threads=threads, self_check=False).prove(c.wtns)
            assert parsed(result.proof) == c.json("proof_fixed.json")


# ---- the test door ----


def test_the_door_is_shut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PINZK_TEST_DOOR", raising=False)
    with pytest.raises(RuntimeError, match="PINZK_TEST_DOOR=1"), fixed_blinding(1, 2):
        pass


def test_the_door_closes_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    before = prover_module._blinding
    with pytest.raises(ZeroDivisionError), blinding(monkeypatch, 1, 2):
        raise ZeroDivisionError
    assert prover_module._blinding is before
    c = mult3(BN254)
    assert parsed(prove(c).proof) != c.json("proof_fixed.json")


@pytest.mark.parametrize("rs", [(-1, 0), (0, BN254.fr.modulus)])
def test_the_door_takes_scalars(rs: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    with blinding(monkeypatch, *rs), pytest.raises(ValueError, match="r and s"):
        prove(mult3(BN254))


def test_the_door_as_a_program(tmp_path: Path) -> None:
    c = mult3(BLS12_381)
    proof, public = tmp_path / "proof.json", tmp_path / "public.json"
    command = [sys.executable, "-P", "-m", "pinzk._testing", str(c.zkey), str(c.wtns)]
    command += [*map(str, c.fixed_rs), str(proof), str(public)]
    environment = {k: v for k, v in os.environ.items() if k != "PINZK_TEST_DOOR"}
    shut = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert shut.returncode != 0
    assert not proof.exists()
    opened = subprocess.run(
        command,
        env={**environment, "PINZK_TEST_DOOR": "1"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "fixed" in opened.stderr
    assert json.loads(proof.read_text()) == c.json("proof_fixed.json")
    assert json.loads(public.read_text()) == c.json("public.json")


# ---- memory ----


_PEAK = """
import re, sys
from pinzk import Prover, ProvingKey, Witness
def peak():  # ru_maxrss would begin with the parent's
    return 1024 * int(re.search(r"VmHWM:\\s*([0-9]+) kB", open("/proc/self/status").read())[1])
key, witness = ProvingKey.load(sys.argv[1]), Witness.load(sys.argv[2])
loaded = peak()
Prover(key, device="cpu", threads=2).prove(witness)
print(loaded, peak(), key.sizes["domain_size"])
"""


@pytest.mark.unsanitized
def test_a_proof_needs_little_memory_beyond_its_key(tmp_path: Path) -> None:
    # at 2^17 it may be 300 MB, the interpreter and its libraries (some 45 MB) included; this is an eighth of that size
    r = BN254.fr.modulus
    w = [1, 3]
    while len(w) < (1 << 14) - 1:
        w.append(w[-1] ** 2 % r)
    circuit = Circuit(BN254, 1, [({i: 1}, {i: 1}, {i + 1: 1}) for i in range(1, len(w) - 1)], w)
    key, wtns = tmp_path / "k.zkey", tmp_path / "w.wtns"
    setup(circuit.r1cs()).save(key)
    Witness.load(w, curve=BN254).save(wtns)
    done = subprocess.run(
        [sys.executable, "-P", "-c", _PEAK, str(key), str(wtns)], capture_output=True, text=True, check=True
    )
    loaded, peak, domain_size = map(int, done.stdout.split())
    assert domain_size == 1 << 14
    assert peak <= key.stat().st_size + 75_000_000
    assert peak - loaded <= 600 * domain_size
