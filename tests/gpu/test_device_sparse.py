# SPDX-License-Identifier: Apache-2.0
"""Sparse rows on a GPU against the CPU's; the short form of coefficients everywhere."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
from cases import DATA
from references import CURVES, by_name, random_ints

from pinzk import BLS12_381, BN254, Domain, ProvingKey, Witness
from pinzk._core import cpu
from pinzk._core.device import Device, DeviceVec, Stream
from pinzk._core.memory import PinnedVec
from pinzk._testing import TOY
from pinzk.curves import Curve, Field, Words
from pinzk.errors import UseAfterRelease
from pinzk.formats.zkey import Zkey
from pinzk.stages import device_sparse, quotient
from pinzk.stages.device_quotient import DeviceQuotient
from pinzk.stages.device_sparse import DeviceSparse, coefficient_codes, to_montgomery

every_curve = pytest.mark.parametrize("curve", CURVES, ids=by_name)
R_SQUARED = 1 << 512


def stored(fr: Field, coefficients: list[int]) -> Words:
    """As in a zkey: c R^2."""
    return fr.encode_canonical([c * R_SQUARED % fr.modulus for c in coefficients])


# ---- coefficients ----


def check_codes(fr: Field, coefficients: list[int]) -> tuple[np.ndarray, Words]:
    codes, dictionary = coefficient_codes(fr, stored(fr, coefficients))
    assert fr.decode(dictionary[codes]) == [c % fr.modulus for c in coefficients]
    assert fr.decode(dictionary[:2]) == [1, fr.modulus - 1]
    return codes, dictionary


@every_curve
def test_codes_and_dictionary_are_the_coefficients(curve: Curve) -> None:
    fr, r = curve.fr, curve.fr.modulus
    assert check_codes(fr, [])[0].dtype == np.uint8
    codes, dictionary = check_codes(fr, [1, r - 1, 0, 5, 1, 5, 0, 7, r - 1])
    assert codes.tolist() == [0, 1, 2, 3, 0, 3, 2, 4, 1]
    assert len(dictionary) == 5
    check_codes(fr, oracle.edge_values(r, 4))


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=by_name)
def test_codes_are_as_wide_as_the_dictionary_needs(curve: Curve, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_sparse, "_PIECE", 1000)
    for distinct, dtype in ((254, np.uint8), (255, np.uint16), (65534, np.uint16), (65535, np.uint32)):
        codes, dictionary = check_codes(curve.fr, [*range(2, 2 + distinct), 1, 2, 3, 1 + distinct])
        assert codes.dtype == np.dtype(dtype)
        assert len(dictionary) == 2 + distinct


@pytest.mark.parametrize("bits", [0, 1, 4])
def test_colliding_hashes_cost_room_and_nothing_else(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_sparse, "_PIECE", 50)
    full = device_sparse._hash
    monkeypatch.setattr(device_sparse, "_hash", lambda rows: full(rows) & np.uint64((1 << bits) - 1))
    check_codes(BN254.fr, [x % 23 for x in random_ints(BN254.fr.modulus, 400, 1)])


# ---- on a GPU ----


def up(curve: Curve, array: Words, device: Device, stream: Stream) -> DeviceVec:
    v = DeviceVec(curve.fr, len(array), device)
    pinned = PinnedVec.from_array(curve.fr, array)
    v.upload(pinned, stream)
    pinned.release()
    return v


def down(v: DeviceVec, stream: Stream) -> Words:
    pinned = PinnedVec(v.elem, len(v))
    v.download(pinned, stream)
    stream.synchronize()
    out = np.array(pinned.borrow().numpy())
    pinned.release()
    return out


def matrix(
    curve: Curve, lengths: list[int], columns: int, distinct: int, seed: int
) -> tuple[np.ndarray, np.ndarray, Words]:
    random = np.random.default_rng(seed)
    indptr = np.cumsum([0, *lengths], dtype=np.uint64)
    nnz = int(indptr[-1])
    indices = random.integers(0, columns, nnz, dtype=np.uint32)
    r = curve.fr.modulus
    palette = stored(curve.fr, [1, r - 1, 1, 0, *random_ints(r, distinct, seed)])
    return indptr, indices, palette[random.integers(0, len(palette), nnz)]


def product(m: DeviceSparse, w: DeviceVec, device: Device, stream: Stream, first: int = 0) -> Words:
    out = DeviceVec(w.elem, first + m.n_rows + 1, device)
    out.commit(first + m.n_rows + 1)
    poison = PinnedVec.from_array(w.elem, np.full((len(out), 4), 0xA5, np.uint64))
    out.upload(poison, stream)
    assert m.times(w)(out, first, stream) == m.n_rows
    got = down(out, stream)
    assert (got[:first] == 0xA5).all()
    assert (got[first + m.n_rows :] == 0xA5).all()
    return got[first : first + m.n_rows]


SHAPES = {
    "nothing": [],
    "empty rows": [0] * 5,
    "one entry": [1],
    "short": [*range(17)] * 20,
    "at the border of a warp's": [15, 16, 17, 31, 32, 33, 63, 64, 65] * 3,
    "one long": [2, 0, 5000, 1],
    "many": [*np.random.default_rng(3).geometric(0.3, 3000)],
}


@pytest.mark.parametrize("shape", SHAPES)
@every_curve
def test_products_equal_the_cpus(curve: Curve, shape: str, device: Device) -> None:
    stream, r = Stream(device), curve.fr.modulus
    for distinct in (0, 40, 400, 70000 if shape == "many" and curve is BN254 else 1):
        indptr, indices, values = matrix(curve, SHAPES[shape], 200, distinct, distinct)
        witness = curve.fr.encode_canonical([1, 0, r - 1, *random_ints(r, 197, 5)])
        w = to_montgomery(up(curve, witness, device, stream), stream)
        assert np.array_equal(down(w, stream), cpu.to_montgomery(curve.fr, witness))
        m = DeviceSparse(curve, indptr, indices, values, device, stream)
        want = cpu.sparse_rows(curve.fr, indptr, indices, values, witness)
        for first in (0, 3):
            assert np.array_equal(product(m, w, device, stream, first), want)
        m.release()


@pytest.mark.parametrize("curve", [BN254, TOY], ids=by_name)
def test_rows_of_the_inputs_follow_those_of_the_matrix(curve: Curve, device: Device) -> None:
    stream = Stream(device)
    indptr, indices, values = matrix(curve, [1, 2, 3], 9, 4, 1)
    witness = curve.fr.encode_canonical([1, *random_ints(curve.fr.modulus, 8, 2)])
    m = DeviceSparse(curve, indptr, indices, values, device, stream, identity=5)
    assert (m.n_rows, m.nnz) == (8, 11)
    got = product(m, to_montgomery(up(curve, witness, device, stream), stream), device, stream)
    assert np.array_equal(got[:3], cpu.sparse_rows(curve.fr, indptr, indices, values, witness))
    assert np.array_equal(got[3:], cpu.to_montgomery(curve.fr, witness[:5]))


@pytest.mark.parametrize(
    "case", ["mult3_bn254", "mult3_bls12381", "merkle20_mimc_bls12381", "semaphore4_depth1_bn254"]
)
def test_the_quotient_of_a_real_key_needs_the_witness_alone(case: str, device: Device) -> None:
    key, stream = ProvingKey.load(DATA / case / "circuit.zkey"), Stream(device)
    curve, fr = key.curve, key.curve.fr
    witness = Witness.load(DATA / case / "witness.wtns").canonical
    domain = Domain(curve, key.domain_size.bit_length() - 1, root="snarkjs", device="cpu")
    assert isinstance(key.record, Zkey)
    rows = (key.record.rows_a, key.record.rows_b)
    a, b = (cpu.sparse_rows(fr, m.indptr, m.indices, m.values, witness) for m in rows)
    want = cpu.from_montgomery(fr, quotient.snarkjs(domain, a, b))
    h = DeviceQuotient(domain, device, stream=stream)
    w = to_montgomery(up(curve, witness, device, stream), stream)
    on_device = [DeviceSparse(curve, m.indptr, m.indices, m.values, device, stream) for m in rows]
    assert np.array_equal(down(h.snarkjs(*[m.times(w) for m in on_device]), stream), want)


def test_what_does_not_fit_is_refused(device: Device) -> None:
    stream, fr = Stream(device), BN254.fr
    indptr, indices, values = matrix(BN254, [1, 2], 9, 4, 1)
    indices[:] = [8, 0, 1]

    def made(indptr: np.ndarray, indices: np.ndarray, values: Words, identity: int = 0) -> DeviceSparse:
        return DeviceSparse(BN254, indptr, indices, values, device, stream, identity=identity)

    for arrays, message in (
        ((indptr[:0], indices, values), "run from 0"),
        ((indptr[:-1], indices, values), "run from 0 to the number of entries: 3 indices, 3 values"),
        ((indptr + 1, indices, values), "run from 0"),
        ((indptr, indices, values[:2]), "3 indices, 2 values"),
        ((indptr[[0, 2, 1, 2]], indices[:3], values[:3]), "not decrease"),
        ((indptr.astype(np.int64), indices, values), "indptr must be an array of uint64"),
        ((indptr, indices.astype(np.uint64), values), "indices must be an array of uint32"),
        ((indptr, indices, values[:, :3]), "values must be an array of uint64"),
    ):
        with pytest.raises(ValueError, match=message):
            made(*arrays)
    with pytest.raises(ValueError, match="identity"):
        made(indptr, indices, values, identity=-1)
    m = made(indptr, indices, values)
    out = DeviceVec(fr, 3, device)
    w = to_montgomery(up(BN254, fr.encode_canonical(range(9)), device, stream), stream)
    with pytest.raises(ValueError, match="9 columns, the witness 8"):
        m.times(to_montgomery(up(BN254, fr.encode_canonical(range(8)), device, stream), stream))
    with pytest.raises(ValueError, match=r"over bn254\.fr"):
        m.times(up(BLS12_381, BLS12_381.fr.encode(range(9)), device, stream))
    with pytest.raises(ValueError, match="do not fit"):
        m.times(w)(out, 2, stream)
    times = m.times(w)
    w.release()
    with pytest.raises(UseAfterRelease):
        times(out, 0, stream)
    m.release()
    with pytest.raises(UseAfterRelease):
        m.release()
