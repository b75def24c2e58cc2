# SPDX-License-Identifier: Apache-2.0
"""Proofs and verification keys as files: snarkjs's JSON to the character, bytes, calldata, and fuzzed documents."""

from __future__ import annotations

import io
import json

import numpy as np
import oracle
import pytest
import references
from cases import DATA, SHARED, Case, case
from hypothesis import example, given
from hypothesis import strategies as st

from pinzk._core import cpu
from pinzk.curves import BLS12_381, BN254, Curve, Group
from pinzk.errors import FormatError, PinzkError
from pinzk.formats.proof import public_json, read_public
from pinzk.groth16.proof import Proof
from pinzk.groth16.verifier import verify
from pinzk.groth16.verifying_key import VerifyingKey

MULT3 = {"bn254": Case(DATA / "mult3_bn254"), "bls12_381": Case(DATA / "mult3_bls12381")}
ALL = sorted({p.parent.name for folder in (DATA, SHARED) for p in folder.glob("*/verification_key.json")})
every_case = pytest.mark.parametrize("name", ALL)
both = pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=references.by_name)


def folder(name: str) -> Case:
    c = case(name)
    assert c is not None
    return c


# ---- JSON ----


@every_case
def test_json_is_that_of_snarkjs_to_the_character(name, tmp_path):
    c = folder(name)
    for path in sorted(c.folder.glob("proof*.json")):
        text = path.read_text()
        compact = "\n" not in text.strip()  # as not made by snarkjs
        expected = json.dumps(json.loads(text), indent=1) if compact else text.rstrip("\n")
        assert Proof.load(path).to_json() == expected
    curve = VerifyingKey.load(c.vkey).curve
    values = read_public(c.public, curve)
    assert json.loads(public_json(values)) == c.json("public.json")
    Proof.load(c.proof_fixed).save(tmp_path / "proof.json")
    assert Proof.load(tmp_path / "proof.json") == Proof.load(c.proof_fixed)


@every_case
def test_verification_keys_are_those_of_snarkjs_to_the_character(name, tmp_path):
    """vk_alphabeta_12 included: it is computed here, not copied."""
    c = folder(name)
    key = VerifyingKey.load(c.vkey)
    written, theirs = json.loads(key.to_json()), c.json("verification_key.json")
    if "vk_alphabeta_12" in theirs:
        assert key.to_json() == json.dumps(theirs, indent=1)
    else:  # a key that snarkjs did not write
        assert {k: v for k, v in written.items() if k != "vk_alphabeta_12"} == theirs
    key.save(tmp_path / "vk.json")
    buffer = io.BytesIO()
    key.save(buffer)
    assert (tmp_path / "vk.json").read_bytes() == buffer.getvalue() == key.to_json().encode()
    assert VerifyingKey.load(tmp_path / "vk.json") == key == VerifyingKey.load(theirs)


def test_public_values():
    assert public_json([]) == "[]"
    assert read_public(b"[]", BN254) == read_public([], BN254) == []
    values = [0, 1, BN254.fr.modulus - 1]
    assert public_json(values) == json.dumps([str(v) for v in values], indent=1)
    assert read_public(public_json(values).encode(), BN254) == read_public(values, BN254) == values


@both
def test_infinity_has_a_form_in_json_and_in_bytes(curve):
    proof = Proof(curve, curve.g1.encode([None]), curve.g2.encode([None]), cpu.generator(curve.g1))
    record = json.loads(proof.to_json())
    assert record["pi_a"] == ["0", "1", "0"]
    assert record["pi_b"] == [["0", "0"], ["1", "0"], ["0", "0"]]
    assert Proof.load(record) == proof
    assert Proof.from_bytes(proof.to_bytes()) == proof
    assert proof != Proof(curve, proof.c, proof.b, proof.c)


def test_proofs_are_checked_and_kept_apart_from_the_caller():
    g1, g2 = cpu.generator(BN254.g1), cpu.generator(BN254.g2)
    proof = Proof(BN254, g1, g2, g1)
    g1[:] = 0
    assert BN254.g1.decode(proof.a) == [(1, 2)]
    with pytest.raises(ValueError, match="read-only"):
        proof.a[0, 0] = 1
    with pytest.raises(FormatError, match="pi_c: a coordinate is not below q"):
        Proof(BN254, proof.a, proof.b, np.full((1, 8), 2**64 - 1, dtype=np.uint64))
    with pytest.raises(ValueError, match=r"pi_b must have shape \(1, 16\)"):
        Proof(BN254, proof.a, proof.a, proof.c)


# ---- compressed bytes ----


def test_bellmans_bytes():
    c = case("bellman_poseidon_bls12381")
    if c is None:
        pytest.skip("bellman_poseidon_bls12381 is not there")
    raw = (c.folder / "proof_fixed.bin").read_bytes()
    proof = Proof.load(c.proof_fixed)
    assert proof.to_bytes() == raw
    assert Proof.from_bytes(raw) == Proof.load(raw) == Proof.load(c.folder / "proof_fixed.bin") == proof
    assert verify(c.vkey, c.public, raw)


def some_points(group: Group) -> list:
    logs = [1, 2, 3, *references.random_ints(group.scalar.modulus, 6, 5)]
    rows = cpu.fixed_base(group, cpu.generator(group), group.scalar.encode_canonical(logs))
    points = group.decode(rows)
    negate = oracle.weierstrass(group).neg
    return [*points, *(negate(p) for p in points)]


@both
def test_bytes_are_those_of_arkworks_and_zcash(curve):
    """Point by point against zksnake (arkworks, BN254) and py_arkworks_bls12381 (Zcash's form)."""
    for p, q in zip(some_points(curve.g1), some_points(curve.g2), strict=True):
        proof = Proof(curve, curve.g1.encode([p]), curve.g2.encode([q]), curve.g1.encode([p]))
        if curve is BN254:
            a, b = (bytes(references.to_zksnake(g, r).to_bytes()) for g, r in ((curve.g1, p), (curve.g2, q)))
        else:
            a, b = (
                bytes(references.to_arkworks(g, r).to_compressed_bytes())
                for g, r in ((curve.g1, p), (curve.g2, q))
            )
        assert proof.to_bytes() == a + b + a
        assert Proof.from_bytes(a + b + a) == proof


@both
def test_points_of_the_twist_with_a_real_ordinate_round_trip(curve):
    """c1 = 0 or c0 = 0 in y: the sign and the root have their own branch."""
    twist = oracle.weierstrass(curve.g2)
    field, found = twist.field, 0
    for k in range(1, 400):
        for y in ((k, 0), (0, k)):
            x = cube_root(field, field.sub(field.mul(y, y), twist.b), curve)
            if x is None:
                continue
            found += 1
            for point in ((x, y), twist.neg((x, y))):
                proof = Proof(
                    curve, curve.g1.encode([None]), curve.g2.encode([point]), curve.g1.encode([None])
                )
                assert Proof.from_bytes(proof.to_bytes()) == proof
        if found > 3:
            return
    pytest.fail("no such point found")


def cube_root(field, v, curve: Curve):
    # |Fp2*| = 3^e m; a root exists when v^(|Fp2*| / 3) = 1, and is v^(1/3 mod m) where v has an order that divides m
    order = curve.fp.modulus**2 - 1
    m = order
    while m % 3 == 0:
        m //= 3
    return field.power(v, pow(3, -1, m)) if field.power(v, m) == field.one else None


@both
def test_bytes_are_read_strictly(curve):
    c = MULT3[curve.name]
    raw = Proof.load(c.proof_fixed).to_bytes()
    size, zcash = curve.fp.nbytes, curve is BLS12_381
    starts = {"a": 0, "b": size, "c": 3 * size}
    q = curve.fp.modulus

    def refused(data: bytes, field: str, word: str) -> None:
        with pytest.raises(FormatError, match=word) as error:
            Proof.from_bytes(data)
        assert error.value.section == field

    for field, start in starts.items():
        width = size * (2 if field == "b" else 1)
        flags = start if zcash else start + width - 1  # where the flags are

        def with_part(part: bytes, start: int = start, width: int = width) -> bytes:
            return raw[:start] + part + raw[start + width :]

        def with_flags(byte: int, flags: int = flags) -> bytes:
            return raw[:flags] + bytes([byte]) + raw[flags + 1 :]

        refused(with_flags(raw[flags] | 0x40), field, "infinity")
        other_sign = Proof.from_bytes(with_flags(raw[flags] ^ (0x20 if zcash else 0x80)))
        assert other_sign != Proof.from_bytes(raw)
        if zcash:
            refused(with_flags(raw[flags] & 0x7F), field, "not compressed")
            large = bytearray(q.to_bytes(size, "big") + bytes(width - size))
            large[0] |= 0x80
            infinite = bytearray([0xC0, *bytes(width - 1)])
            bad_infinite = bytearray([0xE0, *bytes(width - 1)])
        else:
            large = bytearray(bytes(width - size) + q.to_bytes(size, "little"))
            infinite = bytearray([*bytes(width - 1), 0x40])
            bad_infinite = bytearray([*bytes(width - 1), 0xC0])
        refused(with_part(bytes(large)), field, "not below q")
        refused(with_part(bytes(bad_infinite)), field, "infinity")
        assert not getattr(Proof.from_bytes(with_part(bytes(infinite))), field).any()
        # about half of all abscissas belong to no point
        off = 0
        for k in range(1, 20):
            part = bytearray(width)
            part[-1 if zcash else 0] = k
            part[0 if zcash else -1] |= 0x80 if zcash else 0
            try:
                Proof.from_bytes(with_part(bytes(part)))
            except FormatError as error:
                assert "no point" in str(error)
                off += 1
        assert off > 0
    for length in (0, 1, len(raw) - 1, len(raw) + 1, 2 * len(raw)):
        with pytest.raises(FormatError, match="bytes are no proof"):
            Proof.from_bytes((raw + raw)[:length])


# ---- calldata ----


@pytest.mark.parametrize("name", [n for n in ALL if n.endswith("_bn254")])
def test_calldata_is_that_of_snarkjs(name, snarkjs):
    c = folder(name)
    theirs = snarkjs("zkey", "export", "soliditycalldata", c.public, c.proof_fixed, check=True).stdout
    assert Proof.load(c.proof_fixed).calldata(c.public) == theirs.strip()


def test_calldata_form():
    proof = Proof(BN254, cpu.generator(BN254.g1), cpu.generator(BN254.g2), cpu.generator(BN254.g1))
    text = json.loads(f"[{proof.calldata([])}]")
    (x0, x1), (y0, y1) = BN254.g2.generator()
    assert [[int(v, 16) for v in pair] for pair in text[1]] == [[x1, x0], [y1, y0]]
    assert text[0] == text[2] == [f"0x{1:064x}", f"0x{2:064x}"]
    assert text[3] == []
    assert proof.calldata([7, "8"]).endswith(f',["0x{7:064x}","0x{8:064x}"]')
    with pytest.raises(FormatError, match="public value 0"):
        proof.calldata([BN254.fr.modulus])


def test_calldata_is_for_bn254_alone():
    with pytest.raises(FormatError, match="bls12_381 does not fit 256 bits"):
        Proof.load(MULT3["bls12_381"].proof_fixed).calldata(["1155", "7"])


# ---- fuzz: whatever the bytes, a result or a typed error ----

TEXTS = [
    (MULT3[k].folder / n).read_bytes()
    for k in MULT3
    for n in ("proof.json", "public.json", "verification_key.json")
]
BYTES = [Proof.load(MULT3[k].proof_fixed).to_bytes() for k in MULT3]


def readers(data: bytes) -> None:
    for read in (Proof.load, Proof.from_bytes, VerifyingKey.load, lambda d: read_public(d, BN254)):
        try:
            read(data)
        except PinzkError as error:
            assert len(str(error)) < 400


@given(st.sampled_from(TEXTS + BYTES), st.data())
def test_damaged_files_are_read_or_refused(text, data):
    raw = bytearray(text)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(raw)))
        kind = data.draw(st.sampled_from(["flip", "cut", "insert", "repeat"]))
        if kind == "flip" and at < len(raw):
            raw[at] = data.draw(st.integers(0, 255))
        elif kind == "cut":
            del raw[at : at + data.draw(st.integers(1, 40))]
        elif kind == "insert":
            raw[at:at] = data.draw(st.binary(min_size=1, max_size=8))
        else:
            raw[at:at] = raw[at : at + 64]
    readers(bytes(raw))


@given(st.binary(max_size=256))
@example(b"")
@example(b"\xef\xbb\xbf")
@example(b"-0")
@example(b'{"IC": [], "nPublic": -1, "curve": "bn128"}')
def test_any_bytes_are_read_or_refused(data):
    readers(data)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["0", "1", "-1", "groth16"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


@given(st.sampled_from(list(MULT3)), st.data())
def test_fields_of_any_type_are_read_or_refused(name, data):
    c = MULT3[name]
    documents = {
        "vk": c.json("verification_key.json"),
        "public": c.json("public.json"),
        "proof": c.json("proof.json"),
    }
    which = data.draw(st.sampled_from(list(documents)))
    place = documents[which]
    while True:  # down to some field
        key = data.draw(st.sampled_from(sorted(place) if isinstance(place, dict) else range(len(place))))
        if not isinstance(place[key], (dict, list)) or data.draw(st.booleans()):
            break
        place = place[key]
    place[key] = data.draw(json_values)
    try:
        assert verify(documents["vk"], documents["public"], documents["proof"]) in (True, False)
    except PinzkError as error:
        assert len(str(error)) < 400
