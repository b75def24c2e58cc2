# SPDX-License-Identifier: Apache-2.0
"""ProvingKey and Witness: what they hold, what they take, how they end."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from cases import DATA, ZKEY_CASES, Case

from pinzk.curves import BLS12_381, BN254
from pinzk.errors import FormatError, KeyMismatchError, UseAfterRelease, WitnessError
from pinzk.formats.zkey import Zkey, read_zkey, write_zkey
from pinzk.groth16.constraints import R1cs
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.verifying_key import VerifyingKey
from pinzk.groth16.witness import Witness

MULT3, MULT3_BLS = DATA / "mult3_bn254", DATA / "mult3_bls12381"

# ---- the key ----


@pytest.mark.parametrize("case", ZKEY_CASES, ids=str)
def test_key(case: Case) -> None:
    key, record = ProvingKey.load(case.zkey), read_zkey(case.zkey, check="none")
    assert key.kind == "snarkjs"
    for name in Zkey.__dataclass_fields__:
        mine, theirs = getattr(key, name), getattr(record, name)
        if isinstance(theirs, np.ndarray):
            np.testing.assert_array_equal(mine, theirs)
        elif not name.startswith("rows"):
            assert mine == theirs
    assert key.sizes["n_vars"] == record.n_vars
    assert key.sizes["nnz_a"] == record.rows_a.nnz
    assert case.zkey.stat().st_size > 0.8 * key.sizes["nbytes"]
    assert key.vk == VerifyingKey.load(case.vkey)


def test_save_and_load_again(tmp_path: Path) -> None:
    key = ProvingKey.load(MULT3 / "circuit.zkey")
    key.save(tmp_path / "key")
    again = ProvingKey.load(tmp_path / "key", check="full")
    np.testing.assert_array_equal(again.h, key.h)
    assert again.sizes == key.sizes


def test_a_fresh_key_is_known_by_delta() -> None:
    # a set-up without a second phase: delta = gamma
    assert not ProvingKey.load(MULT3 / "circuit.zkey").vk.is_insecure
    record = read_zkey(MULT3 / "circuit.zkey")
    assert ProvingKey(replace(record, delta_2=record.gamma_2)).vk.is_insecure


def test_closed_key() -> None:
    with ProvingKey.load(MULT3 / "circuit.zkey") as key:
        assert not key.closed
        points = key.a
    key.close()
    assert key.closed
    assert repr(key) == "<ProvingKey, closed>"
    for use in (lambda: key.a, lambda: key.sizes, lambda: key.n_vars, lambda: key.save("/dev/null")):
        with pytest.raises(UseAfterRelease, match="the proving key is closed"):
            use()
    assert points.any()  # what was taken before stays whole


def test_key_has_no_other_attributes() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = ProvingKey.load(MULT3 / "circuit.zkey").nonsense


def test_r1cs_of_the_key() -> None:
    path = MULT3 / "circuit.r1cs"
    for r1cs in (path, path.read_bytes(), R1cs.load(path)):
        key = ProvingKey.load(MULT3 / "circuit.zkey", r1cs=r1cs)
        assert isinstance(key.r1cs, R1cs)
    with pytest.raises(KeyMismatchError, match="another circuit"):
        ProvingKey.load(MULT3_BLS / "circuit.zkey", r1cs=path)


def test_full_check_compares_the_groups() -> None:
    # points that are fine one by one, but beta_1 and beta_2 are of two scalars
    record = read_zkey(MULT3 / "circuit.zkey")
    for name, group in (("beta_1", "beta"), ("delta_1", "delta")):
        out = io.BytesIO()
        write_zkey(replace(record, **{name: record.alpha_1}), out)  # type: ignore[arg-type]
        ProvingKey.load(out.getvalue()).close()
        with pytest.raises(FormatError, match=f"{group}_1 and {group}_2") as caught:
            ProvingKey.load(out.getvalue(), check="full")
        assert caught.value.section == 2


# ---- the witness ----


def test_witness_of_a_key() -> None:
    key = ProvingKey.load(MULT3 / "circuit.zkey")
    witness = Witness.load(MULT3 / "witness.wtns", key=key)
    assert witness.curve is BN254
    assert len(witness) == 8
    assert witness.public == [int(x) for x in Case(MULT3).json("public.json")]
    assert witness.n_public == 2


def test_public_is_for_the_key_to_say() -> None:
    witness = Witness.load(MULT3 / "witness.wtns")
    with pytest.raises(ValueError, match="for_key"):
        _ = witness.public
    assert witness.public_inputs(1) == witness.for_key(ProvingKey.load(MULT3 / "circuit.zkey")).public[:1]
    assert witness.public_inputs(0) == []
    for n in (-1, 8):
        with pytest.raises(ValueError, match="public inputs of a witness of 8 values"):
            witness.public_inputs(n)


def test_witness_from_values() -> None:
    whole = Witness.load(MULT3 / "witness.wtns")
    ints = BN254.fr.decode_canonical(whole.canonical)
    for src in (ints, tuple(ints), np.array(ints, dtype=object), whole.canonical, whole):
        again = Witness.load(src, curve="bn128")
        np.testing.assert_array_equal(again.canonical, whole.canonical)
    key = ProvingKey.load(MULT3 / "circuit.zkey")
    assert Witness.load(ints, key=key).public == ints[1:3]
    with pytest.raises(TypeError, match="curve= or key="):
        Witness.load(ints)


def test_witness_owns_its_values() -> None:
    array = np.array([[1, 0, 0, 0], [7, 0, 0, 0]], dtype=np.uint64)
    witness = Witness.load(array, curve=BN254)
    array[:] = 0
    assert witness.public_inputs(1) == [7]
    with pytest.raises(ValueError, match="read-only"):
        witness.canonical[1] = 0


@pytest.mark.parametrize(
    ("values", "index"),
    [
        ([], 0),
        ([0], 0),
        ([2, 1], 0),
        ([1, -1], 1),
        ([1, 1, BN254.fr.modulus], 2),
        ([1, 1 << 256], 1),
        (np.array([[1, 0, 0, 0], [0, 0, 0, 1 << 63]], dtype=np.uint64), 1),
        (np.zeros((0, 4), dtype=np.uint64), 0),
    ],
)
def test_bad_values(values: object, index: int) -> None:
    with pytest.raises(WitnessError) as caught:
        Witness.load(values, curve=BN254)
    assert caught.value.index == index
    assert caught.value.exit_code == 7


@pytest.mark.parametrize(
    "values",
    [[1, "2"], [1, 2.0], [1, None], np.zeros((4, 4)), np.zeros((4, 3), np.uint64), np.zeros(8, np.uint64)],
)
def test_values_of_the_wrong_type(values: object) -> None:
    with pytest.raises(TypeError):
        Witness.load(values, curve=BN254)


def test_another_field() -> None:
    key = ProvingKey.load(MULT3 / "circuit.zkey")
    with pytest.raises(KeyMismatchError, match=r"bls12_381.*bn254") as caught:
        Witness.load(MULT3_BLS / "witness.wtns", key=key)
    assert caught.value.exit_code == 5
    with pytest.raises(KeyMismatchError):
        Witness.load(MULT3 / "witness.wtns", curve=BLS12_381)


def test_saved_witness(tmp_path: Path) -> None:
    Witness.load(MULT3 / "witness.wtns").save(tmp_path / "w")
    assert (tmp_path / "w").read_bytes() == (MULT3 / "witness.wtns").read_bytes()


def test_repr_shows_no_value() -> None:
    witness = Witness.load([1, 123456789, 987654321], curve=BN254)
    assert repr(witness) == str(witness) == "<Witness bn254, 3 values>"
