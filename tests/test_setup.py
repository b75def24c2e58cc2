# SPDX-License-Identifier: Apache-2.0
"""Set-up and prover together against the trapdoor, on random circuits and on circuits at the edges."""

from __future__ import annotations

import io
import json
import subprocess
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from cases import ROOT
from circuits import Circuit, circuits, completed, proof_logarithms
from hypothesis import given, settings
from hypothesis import strategies as st

from pinzk._testing import fixed_blinding
from pinzk.curves import BLS12_381, BN254, Curve
from pinzk.errors import PinzkError
from pinzk.groth16.constraints import R1cs
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.prover import Prover
from pinzk.groth16.setup import ToxicWaste, _setup, setup
from pinzk.groth16.verifier import verify

CURVES = [BN254, BLS12_381]
every = pytest.mark.parametrize("curve", CURVES, ids=lambda c: c.name)


@pytest.fixture(autouse=True)
def door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINZK_TEST_DOOR", "1")


def assert_is_the_proof(circuit: Circuit, key: ProvingKey, secret: ToxicWaste, r: int, s: int) -> None:
    """The prover's points are the logarithms of the trapdoor times the generators."""
    curve = circuit.curve
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the door's
        with fixed_blinding(r, s), Prover(key, threads=1, self_check=False) as prover:
            result = prover.prove(circuit.witness)
    log_a, log_b, log_c = proof_logarithms(circuit, secret, r, s)
    g1, g2 = (oracle.weierstrass(g) for g in oracle.groups(curve))
    assert curve.g1.decode(result.proof.a)[0] == g1.mul(log_a, curve.g1.generator())
    assert curve.g2.decode(result.proof.b)[0] == g2.mul(log_b, curve.g2.generator())
    assert curve.g1.decode(result.proof.c)[0] == g1.mul(log_c, curve.g1.generator())
    assert result.public == circuit.witness[1 : circuit.n_public + 1]
    # fixed blinding can lead to infinity, which no verifier takes
    assert verify(key.vk, result.public, result.proof) is bool(log_a and log_b and log_c)


def secrets_of(curve: Curve) -> st.SearchStrategy[ToxicWaste]:
    r = curve.fr.modulus
    scalars = st.integers(2, r - 1)
    return st.builds(ToxicWaste, scalars.filter(lambda tau: pow(tau, 64, r) != 1), scalars, scalars, scalars)


@every
@settings(max_examples=25)
@given(data=st.data())
def test_proofs_of_random_circuits_are_those_of_the_trapdoor(curve: Curve, data: Any) -> None:
    scalars = st.integers(0, curve.fr.modulus - 1)
    circuit, secret = data.draw(circuits(curve)), data.draw(secrets_of(curve))
    key = _setup(circuit.r1cs(), secret)
    assert key.domain_size == circuit.domain_size
    assert_is_the_proof(circuit, key, secret, data.draw(scalars), data.draw(scalars))


# ---- circuits at the edges ----


def chain(curve: Curve, n: int, n_public: int = 1) -> Circuit:
    """Squares of squares: wire i + 1 is the square of wire i."""
    r, w = curve.fr.modulus, [1, 3]
    for _ in range(n):
        w.append(w[-1] ** 2 % r)
    return Circuit(curve, n_public, [({i + 1: 1}, {i + 1: 1}, {i + 2: 1}) for i in range(n)], w)


def edge_circuits(curve: Curve) -> dict[str, Circuit]:
    r = curve.fr.modulus
    linear = [
        completed({}, {}, {1: 1, 2: r - 1, 3: 5}, [1, 4, 5, 6], r),
        completed({1: 1}, {0: 1}, {2: 1}, [1, 4, 5], r),
    ]
    many = [completed({1: i}, {2: i + 1}, {1: 1}, [1, 7, 11], r) for i in range(1, 101)]
    return {
        "no public input": chain(curve, 5, 0),
        "no private input": chain(curve, 5, 6),
        "only linear constraints": Circuit(curve, 1, linear, [1, 4, 5, 6]),
        "unused wires": Circuit(curve, 2, [({1: 1}, {1: 1}, {6: 1})], [1, 5, 8, 9, 10, 0, 25, 12]),
        "no wire but the one": Circuit(curve, 0, [({0: 1}, {0: 1}, {0: 1})], [1]),
        "no constraint": Circuit(curve, 1, [], [1, 2, 3]),
        "far more constraints than wires": Circuit(curve, 1, many, [1, 7, 11]),
        "far more wires than constraints": Circuit(
            curve, 1, [({1: 1}, {299: 1}, {0: 6})], [1, 2, *range(5, 302), 3]
        ),
        "domain 2": chain(curve, 1, 0),
        "domain 4": chain(curve, 2, 1),
        "domain full": chain(curve, 6, 1),
        "domain one beyond": chain(curve, 7, 1),
        "zero witness": Circuit(curve, 1, [({1: 1}, {2: 1}, {3: 1})], [1, 0, 0, 0]),
    }


NAMES = list(edge_circuits(BN254))


@every
@pytest.mark.parametrize("name", NAMES)
def test_edge_circuits(curve: Curve, name: str) -> None:
    circuit, r = edge_circuits(curve)[name], curve.fr.modulus
    assert circuit.r1cs().first_unsatisfied(circuit.witness) is None
    secret = ToxicWaste(tau=r - 12345, alpha=2, beta=r // 3, delta=r // 5)
    file = io.BytesIO()
    _setup(circuit.r1cs(), secret).save(file)
    key = ProvingKey.load(file.getvalue(), check="full")  # the writer and the reader take part
    for blinding in ((0, 0), (1, r - 1), (r // 7, 0)):
        assert_is_the_proof(circuit, key, secret, *blinding)
    result = Prover(key).prove(circuit.witness)  # freshly blinded, self-check on
    assert result.public == circuit.witness[1 : circuit.n_public + 1]


def test_snarkjs_verifies_the_edge_circuits(snarkjs: object, tmp_path: Path) -> None:
    items = []
    for curve in CURVES:
        for circuit in edge_circuits(curve).values():
            key = setup(circuit.r1cs())
            result = Prover(key).prove(circuit.witness)
            public = [str(x) for x in result.public]
            items.append(
                {
                    "vkey": json.loads(key.vk.to_json()),
                    "public": public,
                    "proof": json.loads(result.proof.to_json()),
                }
            )
            if public:  # and one that must not pass
                items.append({**items[-1], "public": [str(result.public[0] ^ 1), *public[1:]]})
    (tmp_path / "list.json").write_text(json.dumps(items))
    command = ["node", str(ROOT / "tests" / "node" / "verify_all.cjs"), str(tmp_path / "list.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    verdicts = json.loads(done.stdout)
    assert verdicts == [i == 0 or items[i - 1]["proof"] != item["proof"] for i, item in enumerate(items)]


@every
def test_the_names_of_the_edges_are_true(curve: Curve) -> None:
    edges = edge_circuits(curve)
    assert edges["domain 2"].domain_size == 2
    assert edges["domain 4"].domain_size == 4
    assert edges["domain full"].domain_size == 8 == len(edges["domain full"].rows) + 2
    assert edges["domain one beyond"].domain_size == 16
    key = setup(edges["unused wires"].r1cs())
    # in the queries A, B and L nothing at all stands for the wires 3, 4, 5 and 7
    for unused in (3, 4, 5, 7):
        assert not any(points[unused].any() for points in (key.a, key.b_1, key.b_2))
        assert not key.c[unused - 3].any()


# ---- keys ----


@every
def test_key_holds_the_constraints_in_their_order(curve: Curve) -> None:
    circuit = edge_circuits(curve)["only linear constraints"]
    key, r1cs = setup(circuit.r1cs()), circuit.r1cs()
    n = len(circuit.rows)
    for rows, own in ((key.rows_a, r1cs.a), (key.rows_b, r1cs.b)):
        assert len(rows.indptr) == circuit.domain_size + 1
        assert np.array_equal(rows.indptr[: n + 1], own.indptr)
        assert np.array_equal(rows.indices[: len(own.indices)], own.indices)
        assert np.array_equal(rows.values[: len(own.values)], own.values)
    # then A = one, A = w_1
    assert rows.indptr[-1] == own.indptr[-1]
    assert list(key.rows_a.indices[len(r1cs.a.indices) :]) == [0, 1]


def test_two_set_ups_differ() -> None:
    r1cs = chain(BN254, 2).r1cs()
    assert not np.array_equal(setup(r1cs).alpha_1, setup(r1cs).alpha_1)


def test_set_up_says_what_it_is_for(caplog: pytest.LogCaptureFixture) -> None:
    setup(chain(BN254, 2).r1cs())
    assert "tests and benchmarks only" in caplog.text


def test_only_known_kinds() -> None:
    with pytest.raises(ValueError, match="kind must be 'snarkjs'"):
        setup(chain(BN254, 2).r1cs(), kind="plonk")


def test_tau_is_no_root_of_unity() -> None:
    for tau in (BN254.fr.modulus - 1, 1):
        with pytest.raises(ValueError, match="root of unity"):
            _setup(chain(BN254, 2).r1cs(), ToxicWaste(tau, 2, 3, 4))


def test_toxic_waste_is_not_shown() -> None:
    assert "12345" not in repr(ToxicWaste(12345, 12345, 12345, 12345))


# ---- R1cs ----


@every
def test_first_unsatisfied_names_the_first_row(curve: Curve) -> None:
    circuit = chain(curve, 9)
    r1cs = circuit.r1cs()
    for wire in range(1, circuit.n_wires):
        w = list(circuit.witness)
        w[wire] = (w[wire] + 1) % curve.fr.modulus
        assert r1cs.first_unsatisfied(w) == max(0, wire - 2)


@every
@given(data=st.data())
def test_evaluate_is_the_sum_of_products(curve: Curve, data: Any) -> None:
    circuit = data.draw(circuits(curve))
    r = curve.fr.modulus
    for k, values in enumerate(circuit.r1cs().evaluate(circuit.witness)):
        assert curve.fr.decode(values) == [
            sum(c * circuit.witness[i] for i, c in row[k].items()) % r for row in circuit.rows
        ]


def test_witnesses_that_do_not_fit() -> None:
    r1cs: R1cs = chain(BN254, 3).r1cs()
    for bad in ([1, 3, 9, 81], [1, 3, 9, 81, 6561, 0], [], [2, 3, 9, 81, 6561]):
        with pytest.raises(PinzkError):
            r1cs.evaluate(bad)
