# SPDX-License-Identifier: Apache-2.0
"""`verify`: real proofs, tampered ones, and the table of what is malformed, what is invalid and what is insecure."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import json
import logging
import pickle
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import oracle
import pytest
from cases import DATA, SHARED, Case, case

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254, Group
from pinzk.errors import FormatError, InsecureKeyError, KeyMismatchError, PinzkError
from pinzk.groth16.proof import Proof
from pinzk.groth16.verifier import verify, why_invalid
from pinzk.groth16.verifying_key import VerifyingKey

MULT3 = {"bn254": Case(DATA / "mult3_bn254"), "bls12_381": Case(DATA / "mult3_bls12381")}
both = pytest.mark.parametrize("mult3", MULT3.values(), ids=str)
ALL = sorted({p.parent.name for folder in (DATA, SHARED) for p in folder.glob("*/proof*.json")})


def parts(c: Case) -> tuple[dict, list, dict]:
    return c.json("verification_key.json"), c.json("public.json"), c.json("proof_fixed.json")


@pytest.mark.parametrize("name", ALL)
def test_real_proofs_verify_and_their_neighbours_do_not(name):
    c = case(name)
    assert c is not None
    vk = VerifyingKey.load(c.vkey)
    public = c.json("public.json")
    for path in sorted(c.folder.glob("proof*.json")):
        assert verify(vk, c.public, path, allow_insecure=vk.is_insecure)
        for i in range(len(public)):
            other = [*public]
            other[i] = str((int(other[i]) + 1) % vk.curve.fr.modulus)
            assert not verify(vk, other, path, allow_insecure=True)
        proof = Proof.load(path)
        swapped = Proof(proof.curve, proof.c, proof.b, proof.a)
        assert not verify(vk, public, swapped, allow_insecure=True)


@both
def test_each_point_of_the_key_counts(mult3):
    vk, public, proof = parts(mult3)
    assert verify(vk, public, proof)
    g1, g2 = vk["IC"][0], vk["vk_beta_2"]
    changes = [("vk_alpha_1", g1), ("vk_beta_2", vk["vk_delta_2"]), ("vk_gamma_2", g2), ("vk_delta_2", g2)]
    changes += [("IC", [*vk["IC"][:i], vk["vk_alpha_1"], *vk["IC"][i + 1 :]]) for i in range(3)]
    for field, value in changes:
        assert not verify({**vk, field: value}, public, proof), field


@both
def test_inputs_come_in_every_form(mult3, tmp_path):
    vk, public, proof = (
        mult3.folder / n for n in ("verification_key.json", "public.json", "proof_fixed.json")
    )
    assert verify(str(vk), str(public), str(proof))
    assert verify(vk.read_bytes(), bytearray(public.read_bytes()), memoryview(proof.read_bytes()))
    with open(vk, "rb") as f, open(public, encoding="utf-8") as g:
        assert verify(f, g, io.BytesIO(proof.read_bytes()))
    compact = json.dumps(json.loads(proof.read_text()), separators=(",", ":"))
    assert verify(
        vk, tuple(int(v) for v in json.loads(public.read_text())), b"\xef\xbb\xbf" + compact.encode()
    )
    assert verify(vk, [np.int64(v) for v in json.loads(public.read_text())], proof)
    (tmp_path / "proof.bin").write_bytes(Proof.load(proof).to_bytes())
    assert verify(VerifyingKey.load(vk), public, tmp_path / "proof.bin")
    assert verify(
        pickle.loads(pickle.dumps(VerifyingKey.load(vk))),
        public,
        pickle.loads(pickle.dumps(Proof.load(proof))),
    )


def test_a_proof_without_a_curve_is_on_the_curve_of_the_key():
    """As rapidsnark writes it: one line, no curve."""
    for c in MULT3.values():
        vk, public, proof = parts(c)
        del proof["curve"]
        assert verify(vk, public, json.dumps(proof).encode())


@pytest.mark.parametrize("name", ["bn254", "bn128", "alt_bn128", "altbn-128", "BN128"])
def test_names_of_curves(name):
    vk, public, proof = parts(MULT3["bn254"])
    assert verify({**vk, "curve": name}, public, {**proof, "curve": name})


def test_proofs_are_malleable_and_that_is_groth16():
    vk, public, record = parts(MULT3["bn254"])
    proof = Proof.load(record)
    g1, g2, fr = BN254.g1, BN254.g2, BN254.fr
    a = cpu.msm(g1, proof.a, fr.encode_canonical([2]))
    b = cpu.msm(g2, proof.b, fr.encode_canonical([pow(2, -1, fr.modulus)]))
    assert verify(vk, public, Proof(BN254, a, b, proof.c))


# ---- invalid: False, with the reason ----


def off_curve(group: Group) -> list:
    return ["1", "1", "1"] if group.number == 1 else [["1", "1"], ["1", "1"], ["1", "0"]]


def off_subgroup(group: Group) -> list:
    x, y = next(iter(oracle.weierstrass(group).points_near(1)))
    if group.number == 1:
        return [str(x), str(y), "1"]
    return [[str(v) for v in x], [str(v) for v in y], ["1", "0"]]


INFINITY = {1: ["0", "1", "0"], 2: [["0", "0"], ["1", "0"], ["0", "0"]]}


@both
@pytest.mark.parametrize("field", ["pi_a", "pi_b", "pi_c"])
def test_bad_points_are_invalid_for_a_stated_reason(mult3, field, caplog):
    vk, public, proof = parts(mult3)
    curve = VerifyingKey.load(vk).curve
    group = curve.g2 if field == "pi_b" else curve.g1
    bad = {"infinity": INFINITY[group.number], "not on the curve": off_curve(group)}
    if group is not BN254.g1:  # which has no other points
        bad["subgroup"] = off_subgroup(group)
    for word, point in bad.items():
        caplog.clear()
        assert verify(vk, public, {**proof, field: point}) is False
        (record,) = caplog.records
        assert record.name == "pinzk" and record.levelno == logging.WARNING
        assert field in record.getMessage() and word in record.getMessage()
        assert why_invalid(vk, public, {**proof, field: point}) in record.getMessage()


def test_a_failing_equation_is_told(caplog):
    vk, public, proof = parts(MULT3["bn254"])
    assert why_invalid(vk, public, proof) is None
    assert verify(vk, ["1154", "7"], proof) is False
    assert "pairing equation" in caplog.text


# ---- malformed: FormatError ----


@both
@pytest.mark.parametrize(
    "public",
    [
        [],
        ["1155"],
        ["1155", "7", "0"],
        ["1155", "-7"],
        [1155, -7],
        ["1155", "7.0"],
        [1155, 7.0],
        ["1155", "0x7"],
        ["1155", " 7"],
        ["1155", "7\n"],
        ["1155", "07"],
        ["1155", "+7"],
        ["1155", "7_0"],
        ["1155", "\u0667"],
        ["1155", ""],
        ["1155", True],
        ["1155", None],
        ["1155", ["7"]],
        ["1155", "9" * 10**6],
        {"0": "1155", "1": "7"},
        b'{"a": 1}',
        b'"1155"',
        b"1155",
        b"null",
        b"[1155, NaN]",
        b"[1155, 7",
        b"[1155, " + b"7" * 5000 + b"]",
        b"[1155, 7e0]",
        b"\xff[1155, 7]",
        b"",
    ],
    ids=lambda v: repr(v)[:24],
)
def test_malformed_public_values_are_refused(mult3, public):
    vk, _, proof = parts(mult3)
    with pytest.raises(FormatError) as error:
        verify(vk, public, proof)
    assert error.value.exit_code == 6
    assert len(str(error.value)) < 200


@both
def test_public_values_are_not_taken_modulo_r(mult3):
    vk, public, proof = parts(mult3)
    r = VerifyingKey.load(vk).curve.fr.modulus
    for alias in (7 + r, 7 - r, 7 + 2 * r, r, 2**256):
        for value in (alias, str(alias)):
            with pytest.raises(FormatError, match="public value 1") as error:
                verify(vk, [public[0], value], proof)
            assert error.value.index == 1
    assert not verify(vk, [public[0], str(r - 1)], proof)


def set_in(document, path, value):
    document = copy.deepcopy(document)
    *way, last = path
    inner = document
    for step in way:
        inner = inner[step]
    if value is DELETED:
        del inner[last]
    else:
        inner[last] = value
    return document


DELETED: Any = "<deleted>"
BAD_NUMBERS = ["-1", "0x1", "", "1e3", 1.0, True, None, [], {}, "1" * 201, -1]


@both
@pytest.mark.parametrize("field", ["pi_a", "pi_b", "pi_c"])
def test_malformed_proofs_are_refused_and_the_field_named(mult3, field):
    vk, public, proof = parts(mult3)
    q = VerifyingKey.load(vk).curve.fp.modulus
    coordinate: tuple = (field, 1, 1) if field == "pi_b" else (field, 1)
    wrong = [(coordinate, v) for v in [*BAD_NUMBERS, str(q), q, str(int(proof_at(proof, coordinate)) + q)]]
    others: list[Any] = [DELETED, None, {}, [], "1", proof[field][:2], [*proof[field], "1"], 7]
    wrong += [((field,), v) for v in others]
    z = (field, 2, 0) if field == "pi_b" else (field, 2)
    wrong += [(z, v) for v in ("0", "2", 2)]
    for path, value in wrong:
        with pytest.raises(FormatError) as error:
            verify(vk, public, set_in(proof, path, value))
        assert error.value.section == field, (path, value)


def proof_at(document, path):
    for step in path:
        document = document[step]
    return document


@both
@pytest.mark.parametrize(
    ("path", "value", "section"),
    [
        (("protocol",), "plonk", "protocol"),
        (("protocol",), ["groth16"], "protocol"),
        (("curve",), "secp256k1", "curve"),
        (("curve",), 7, "curve"),
        (("curve",), DELETED, "curve"),
        (("nPublic",), DELETED, "nPublic"),
        (("nPublic",), "2", "nPublic"),
        (("nPublic",), True, "nPublic"),
        (("nPublic",), -1, "nPublic"),
        (("nPublic",), 2.0, "nPublic"),
        (("nPublic",), 3, "IC"),
        (("nPublic",), 10**100, "IC"),
        (("IC",), DELETED, "IC"),
        (("IC",), [], "IC"),
        (("IC", 1), ["1", "1", "1"], "IC"),
        (("IC", 1), INFINITY[1], "IC"),
        (("IC", 1), ["1", "1", "2"], "IC"),
        (("IC", 1, 0), "-1", "IC"),
        (("vk_alpha_1",), ["1", "1", "1"], "vk_alpha_1"),
        (("vk_alpha_1",), INFINITY[1], "vk_alpha_1"),
        (("vk_alpha_1", 0), "1" * 150, "vk_alpha_1"),
        (("vk_beta_2",), INFINITY[2], "vk_beta_2"),
        (("vk_gamma_2",), off_curve(BN254.g2), "vk_gamma_2"),
        (("vk_gamma_2",), DELETED, "vk_gamma_2"),
        (("vk_delta_2", 0), ["1"], "vk_delta_2"),
        (("vk_delta_2", 1, 1), "1.5", "vk_delta_2"),
    ],
    ids=lambda v: repr(v)[:32],
)
def test_malformed_keys_are_refused_and_the_field_named(mult3, path, value, section):
    vk, public, proof = parts(mult3)
    with pytest.raises(FormatError) as error:
        verify(set_in(vk, path, value), public, proof)
    assert error.value.section == section
    assert section in str(error.value)
    if path[:2] == ("IC", 1):
        assert error.value.index == 1


def test_points_of_a_key_outside_the_subgroup_are_refused():
    for curve, fields in ((BN254, ["vk_beta_2"]), (BLS12_381, ["vk_beta_2", "vk_alpha_1", "IC"])):
        vk, _, _ = parts(MULT3[curve.name])
        for field in fields:
            bad = off_subgroup(curve.g2 if field.endswith("_2") else curve.g1)
            with pytest.raises(FormatError, match="subgroup") as error:
                VerifyingKey.load({**vk, field: [vk[field][0], bad, vk[field][2]] if field == "IC" else bad})
            assert error.value.section == field


def test_errors_name_the_file(tmp_path):
    vk, public, proof = parts(MULT3["bn254"])
    path = tmp_path / "my_proof.json"
    path.write_text(json.dumps(set_in(proof, ("pi_a", 0), "x")))
    with pytest.raises(FormatError, match=r"my_proof\.json: pi_a: coordinate x: 'x' is not a decimal"):
        verify(vk, public, path)
    path.write_text(json.dumps(set_in(vk, ("vk_beta_2",), off_curve(BN254.g2))))
    with pytest.raises(FormatError, match=r"my_proof\.json: vk_beta_2: not on the curve"):
        verify(path, public, proof)
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "absent.json", public, proof)


# ---- mismatched and insecure keys ----


def test_a_proof_on_another_curve_is_a_mismatch():
    vk, public, _ = parts(MULT3["bn254"])
    with pytest.raises(KeyMismatchError, match="bls12_381") as error:
        verify(vk, public, MULT3["bls12_381"].proof_fixed)
    assert error.value.exit_code == 5


@both
def test_a_key_without_second_phase_is_refused_unless_allowed(mult3):
    vk, public, proof = parts(mult3)
    vk["vk_delta_2"] = vk["vk_gamma_2"]
    assert VerifyingKey.load(vk).is_insecure
    with pytest.raises(InsecureKeyError, match="delta_2 = gamma_2") as error:
        verify(vk, public, proof)
    assert error.value.exit_code == 5
    assert verify(vk, public, proof, allow_insecure=True) is False


def test_such_a_key_accepts_forgeries():
    """A = alpha, B = beta, C = -inputs: what the refusal protects from."""
    vk, public, _ = parts(MULT3["bn254"])
    vk["vk_delta_2"] = vk["vk_gamma_2"]
    key = VerifyingKey.load(vk)
    scalars = [-k % BN254.fr.modulus for k in (1, *map(int, public))]
    c = cpu.msm(BN254.g1, key.ic, BN254.fr.encode_canonical(scalars))
    assert verify(key, public, Proof(BN254, key.alpha_1, key.beta_2, c), allow_insecure=True)


# ---- hostile documents, threads, speed ----

HOSTILE = {
    "deep list": b"[" * 10**6,
    "deep object": b'{"pi_a":' * 10**5,
    "deep in a field": b'{"pi_a": ' + b"[" * 10**5 + b"]" * 10**5 + b"}",
    "key twice": b'{"protocol": "groth16", "protocol": "groth16"}',
    "many keys, last twice": b"{" + b",".join(b'"%d":0' % i for i in range(10**5)) + b',"99999":0}',
    "infinite": b'{"pi_a": Infinity}',
    "long number": b'{"pi_a": ' + b"1" * 10**6 + b"}",
    "long text": b'{"pi_a": ["' + b"1" * 10**6 + b'", "1", "1"]}',
    "lone surrogate": b'{"pi_a": ["\\ud800", "1", "1"]}',
    "utf-16": '{"pi_a": 1}'.encode("utf-16"),
    "too large": b" " * (1 << 25) + b"  ",
    "trailing": b"{} {}",
    "zero bytes": b"\0" * 100,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_fail_fast_with_a_typed_error(text):
    vk, public, proof = parts(MULT3["bn254"])
    for arguments in ((text, public, proof), (vk, text, proof), (vk, public, text)):
        begin = time.perf_counter()
        with pytest.raises(FormatError) as error:
            verify(*arguments)
        assert time.perf_counter() - begin < 2
        assert len(str(error.value)) < 300


@pytest.mark.parametrize("text", [text for name, text in HOSTILE.items() if name.startswith("deep")])
def test_deep_documents_where_the_recursion_limit_was_raised(text):
    # brackets in strings, escaped quotes and all, hide nothing
    disguised = b'["\\"]]]]", "' + b"]" * len(text) + b'", ' + text
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(10**7)
    try:
        for document in (text, disguised):
            with pytest.raises(FormatError, match="nested too deeply"):
                VerifyingKey.load(document)
    finally:
        sys.setrecursionlimit(before)


def test_one_key_serves_many_threads():
    vk = VerifyingKey.load(MULT3["bls12_381"].vkey)
    _, public, proof = parts(MULT3["bls12_381"])
    wrong = [public[0], "8"]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda i: verify(vk, wrong if i % 2 else public, proof), range(64)))
    assert answers == [True, False] * 32


@pytest.mark.unsanitized
@both
def test_a_proof_is_verified_within_thirty_milliseconds(mult3):
    vk, public, proof = (
        VerifyingKey.load(mult3.vkey),
        mult3.json("public.json"),
        Proof.load(mult3.proof_fixed),
    )
    times = []
    for _ in range(20):
        begin = time.perf_counter()
        assert verify(vk, public, proof)
        times.append(time.perf_counter() - begin)
    assert min(times) < 0.030


def test_every_error_is_of_pinzk():
    """The table above in one sentence: whatever one number is replaced by, verify answers or raises a PinzkError."""
    vk, public, proof = parts(MULT3["bn254"])
    documents = {"vk": vk, "proof": proof}
    for name, value in itertools.product(documents, BAD_NUMBERS):
        for path in leaves(documents[name]):
            changed = {**documents, name: set_in(documents[name], path, value)}
            with contextlib.suppress(PinzkError):
                assert verify(changed["vk"], public, changed["proof"]) in (True, False)


def leaves(document, path=()):
    if isinstance(document, (dict, list)):
        for key in document if isinstance(document, dict) else range(len(document)):
            yield from leaves(document[key], (*path, key))
    else:
        yield path
