# SPDX-License-Identifier: Apache-2.0
"""bellman keys: the parameter file, the quotient, whole proofs against the trapdoor, a given proof and snarkjs."""

from __future__ import annotations

import io
import json
import random
import subprocess
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import oracle
import pytest
from cases import DATA, case
from circuits import Circuit, circuits, completed, proof_logarithms
from hypothesis import given, settings
from hypothesis import strategies as st

from pinzk._core import cpu
from pinzk._testing import TOY, fixed_blinding
from pinzk.curves import BLS12_381, BN254, Curve, Group
from pinzk.errors import FormatError, KeyMismatchError, WitnessError
from pinzk.formats.bellman import BellmanKey, read_bellman, read_bellman_vk, write_bellman, write_bellman_vk
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.prover import Prover
from pinzk.groth16.setup import ToxicWaste, _setup, setup
from pinzk.groth16.verifier import verify
from pinzk.groth16.verifying_key import VerifyingKey
from pinzk.stages import quotient
from pinzk.stages.ntt import Domain

CURVE, FR, Q = BLS12_381, BLS12_381.fr, BLS12_381.fp.modulus
R = FR.modulus
SECRET = ToxicWaste(tau=R - 12345, alpha=2, beta=R // 3, delta=R // 5)
POSEIDON = case("bellman_poseidon_bls12381")
needs_poseidon = pytest.mark.skipif(POSEIDON is None, reason="the case is not there")


def squares(n: int, n_public: int = 1) -> Circuit:
    """Wire i + 1 is the square of wire i."""
    w = [1, 3]
    for _ in range(n):
        w.append(w[-1] ** 2 % R)
    return Circuit(CURVE, n_public, [({i + 1: 1}, {i + 1: 1}, {i + 2: 1}) for i in range(n)], w)


def key_of(circuit: Circuit) -> ProvingKey:
    return _setup(circuit.r1cs(), SECRET, "bellman")


def file_of(key: ProvingKey) -> bytes:
    file = io.BytesIO()
    key.save(file)
    return file.getvalue()


# ---- points ----


def encoded(group: Group, point: Any) -> bytes:
    """By the definition: big-endian, of Fp2 c1 first; infinity is a flag."""
    size = group.base.nbytes
    if point is None:
        return bytes([0x40]) + bytes(2 * group.number * size - 1)
    parts = [v for c in point for v in ([c] if group.number == 1 else [c[1], c[0]])]
    return b"".join(v.to_bytes(size, "big") for v in parts)


def words_of(group: Group, data: bytes) -> np.ndarray:
    return np.frombuffer(data, dtype=np.uint64).reshape(-1, group.limbs).copy()


@pytest.mark.parametrize("group", [CURVE.g1, CURVE.g2, TOY.g1, TOY.g2], ids=lambda g: g.name)
def test_points_are_big_endian_with_c1_first(group: Group) -> None:
    g = oracle.weierstrass(oracle.groups(TOY if group.curve_name == "toy" else CURVE)[group.number - 1])
    points = [g.mul(k, group.generator()) for k in (1, 2, 3, 50, 96)] * 300
    data = b"".join(encoded(group, p) for p in points)
    rows = group.encode(points)
    assert cpu.encode_points(group, rows).tobytes() == data
    read = words_of(group, data)
    assert cpu.decode_points(group, read, threads=2) is None
    np.testing.assert_array_equal(read, rows)
    in_place = rows.copy()
    assert cpu.encode_points(group, in_place, in_place) is in_place
    assert in_place.tobytes() == data


def bad_encodings(group: Group) -> dict[str, tuple[bytes, str]]:
    good = encoded(group, group.generator())
    flagged = {f: bytes([good[0] | f]) + good[1:] for f in (0x80, 0x40, 0x20)}
    zero = bytes(len(good))
    coordinate = {}
    for i in range(2 * group.number):
        size = group.base.nbytes
        coordinate[f"coordinate {i} is q"] = (
            good[: i * size] + Q.to_bytes(size, "big") + good[(i + 1) * size :],
            "coordinate",
        )
    return {
        "compressed": (flagged[0x80], "encoding"),
        "compressed infinity": (bytes([0xC0]) + zero[1:], "encoding"),
        "the sign of y": (flagged[0x20], "encoding"),
        "infinity with coordinates": (flagged[0x40], "encoding"),
        "infinity and a last byte": (bytes([0x40]) + zero[2:] + b"\1", "encoding"),
        "infinity": (bytes([0x40]) + zero[1:], "infinity"),
        "all zero": (zero, "curve"),
        **coordinate,
    }


@pytest.mark.parametrize("group", [CURVE.g1, CURVE.g2], ids=lambda g: g.name)
@pytest.mark.parametrize("name", bad_encodings(CURVE.g2))
def test_bad_encodings_are_found_and_left(group: Group, name: str) -> None:
    if name not in bad_encodings(group):
        return  # G1 has two coordinates
    data, fault = bad_encodings(group)[name]
    good = encoded(group, group.generator())
    for at in (0, 1, 2999):
        rows = words_of(group, good * at + data + good * 2)
        assert cpu.decode_points(group, rows, threads=2) == (at, fault)
        assert rows[at].tobytes() == data


def test_a_field_without_room_for_flags_is_refused() -> None:
    rows = np.zeros((1, BN254.g1.limbs), dtype=np.uint64)
    for f in (cpu.decode_points, cpu.encode_points):
        with pytest.raises(ValueError, match="no room for three flags"):
            f(BN254.g1, rows)


# ---- the file ----


@needs_poseidon
def test_the_shipped_file_is_read_and_written_byte_for_byte() -> None:
    assert POSEIDON is not None
    data = (POSEIDON.folder / "circuit.params").read_bytes()
    record, file = read_bellman(data, check="full"), io.BytesIO()
    write_bellman(record, file)
    assert file.getvalue() == data
    assert (record.n_vars, record.n_public, record.domain_size) == (215, 1, 256)
    vk = VerifyingKey.load(data)
    assert vk == VerifyingKey.load(POSEIDON.vkey) == ProvingKey.load(data).vk


def test_key_comes_back_from_its_file(tmp_path: Path) -> None:
    key = setup(squares(5).r1cs(), kind="bellman")
    path = tmp_path / "circuit.params"
    key.save(path)
    again = ProvingKey.load(path, check="full")
    assert again.kind == key.kind == "bellman"
    for name, value in vars(key.record).items():
        np.testing.assert_array_equal(getattr(again, name), value)
    assert again.sizes == key.sizes
    assert "bellman" in repr(again)
    with pytest.raises(AttributeError):
        _ = again.rows_a
    assert path.stat().st_size == len(file_of(key))


def test_vk_alone(tmp_path: Path) -> None:
    key = key_of(squares(5, 2))
    path = tmp_path / "circuit.vk"
    assert isinstance(key.record, BellmanKey)
    write_bellman_vk(key.record, path)
    assert file_of(key).startswith(path.read_bytes())
    for src in (path, path.read_bytes(), io.BytesIO(path.read_bytes())):
        assert VerifyingKey.load(src) == key.vk
    assert len(read_bellman_vk(path).ic) == 3


@pytest.mark.parametrize("tail", [1, 4, 52_836])
def test_trailing_bytes_are_normal(tail: int) -> None:
    data = file_of(key_of(squares(3)))
    assert ProvingKey.load(data + b"\xff" * tail).sizes == ProvingKey.load(data).sizes


LAYOUT = [
    ("alpha_g1", 0),
    ("beta_g1", 96),
    ("beta_g2", 192),
    ("gamma_g2", 384),
    ("delta_g1", 576),
    ("delta_g2", 672),
]


def offsets(key: ProvingKey) -> dict[str, tuple[int, int, int]]:
    """Where the count of each list is, its points, the size of one."""
    at, out = 864, {}
    for name, field, size in (
        ("ic", "ic", 96),
        ("h", "h", 96),
        ("l", "l", 96),
        ("a", "a", 96),
        ("b_g1", "b_1", 96),
        ("b_g2", "b_2", 192),
    ):
        n = len(getattr(key, field))
        out[name] = (at, n, size)
        at += 4 + n * size
    return out


def changed(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]


def refused(data: bytes, section: str, reason: str, index: int | None = None, **options: Any) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        read_bellman(data, **options)
    assert (caught.value.section, caught.value.index) == (section, index)
    assert section in str(caught.value)


@pytest.fixture(scope="module")
def small() -> ProvingKey:
    return key_of(squares(5, 2))


def test_counts_are_bounded_by_the_bytes_present(small: ProvingKey) -> None:
    data = file_of(small)
    for name, (at, n, size) in offsets(small).items():
        for count in (0xFFFFFFFF, n + 10_000):
            left = len(data) - at - 4
            refused(
                changed(data, at, count.to_bytes(4, "big")),
                name,
                f"{count} points need {count * size} bytes, only {left}",
            )
        refused(data[: at + 3], name, "ends before the count")
        refused(data[: at + 4 + n * size - 1], name, "file truncated")


def test_every_cut_is_refused(small: ProvingKey) -> None:
    data = file_of(small)
    for cut in [*range(0, 900, 7), *range(900, len(data), 101), len(data) - 1]:
        with pytest.raises(FormatError):
            read_bellman(data[:cut])


def without(data: bytes, at: int, n: int, size: int, k: int) -> bytes:
    """A list with its last k points and the count cut."""
    end = at + 4 + n * size
    return data[:at] + (n - k).to_bytes(4, "big") + data[at + 4 : end - k * size] + data[end:]


def test_counts_that_do_not_fit_each_other(small: ProvingKey) -> None:
    data, where = file_of(small), offsets(small)
    refused(without(data, *where["ic"], where["ic"][1]), "ic", "no points")
    refused(without(data, *where["h"], 1), "h", "one less than a power of two")
    refused(without(data, *where["b_g2"], 1), "b_g2", "as many as in b_g1")
    refused(without(data, *where["a"], where["a"][1]), "a", "from 3 inputs to all 7 wires")
    refused(without(data, *where["l"], where["l"][1]), "a", "from 3 inputs to all 3 wires")


POINTS = [*(name for name, _ in LAYOUT), "ic", "h", "l", "a", "b_g1", "b_g2"]


@pytest.mark.parametrize("section", POINTS)
def test_bad_points_are_named(small: ProvingKey, section: str) -> None:
    data = file_of(small)
    single = dict(LAYOUT)
    group = CURVE.g2 if section.endswith("g2") else CURVE.g1
    at = single[section] if section in single else offsets(small)[section][0] + 4 + group.nbytes
    index = None if section in single else 1
    reasons = {
        "encoding": "flags",
        "infinity": "infinity",
        "coordinate": "not reduced mod q",
        "curve": "not on the curve",
    }
    for bad, fault in bad_encodings(group).values():
        for check in ("none", "full"):
            refused(changed(data, at, bad), section, reasons[fault], index, check=check)
    (x, y) = group.generator()
    off = encoded(group, (x, y + 1 if group.number == 1 else (y[0] + 1, y[1])))
    refused(changed(data, at, off), section, "not on the curve", index)
    outside = encoded(group, outside_subgroup(group))
    refused(changed(data, at, outside), section, "subgroup", index, check="full")
    if index is None or section == "ic":
        refused(changed(data, at, outside), section, "subgroup", index, check="none")
    else:
        read_bellman(changed(data, at, outside))
        read_bellman(changed(data, at, off), check="none")


def outside_subgroup(group: Group) -> Any:
    """A point of the curve that is not of order r."""
    b = 4

    def root(v: int) -> int | None:
        y = pow(v, (Q + 1) // 4, Q)
        return y if y * y % Q == v % Q else None

    if group.number == 1:
        return next((x, y) for x in range(1, 99) if (y := root(x**3 + b)) is not None)
    # x = (t, 0): y^2 = t^3 + 4 + 4u, by norms
    for t in range(1, 99):
        real, imaginary = t**3 + 4, 4
        norm = root(real * real + imaginary * imaginary)
        for n in () if norm is None else (norm, -norm):
            s = root((real + n) * pow(2, -1, Q))
            if s:
                return ((t, 0), (s, imaginary * pow(2 * s, -1, Q) % Q))
    raise AssertionError("no point")


def test_scalars_of_both_groups_are_compared_in_full(small: ProvingKey) -> None:
    data = file_of(small)
    ProvingKey.load(data, check="full")
    other = encoded(CURVE.g1, CURVE.g1.generator())
    for section, at in (("beta_g2", 96), ("delta_g2", 576)):
        with pytest.raises(FormatError, match="not of the same scalar") as caught:
            ProvingKey.load(changed(data, at, other), check="full")
        assert caught.value.section == section


@settings(max_examples=300)
@given(data=st.data())
def test_damaged_files_are_refused_or_read(data: Any) -> None:
    """Whatever is done to a file, reading it ends in a key or in a FormatError."""
    whole = bytearray(file_of(key_of(squares(2))))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(whole) - 1) | st.integers(860, 880))
        whole[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(whole)) | st.just(len(whole)))
    try:
        record = read_bellman(bytes(whole[:cut]), check="none", threads=1)
    except FormatError as error:
        assert error.section is not None
    else:
        assert record.n_vars >= 1


# ---- the kind is told by the bytes ----


def test_kinds_are_told_by_the_bytes(small: ProvingKey) -> None:
    assert ProvingKey.load(file_of(small)).kind == "bellman"
    assert ProvingKey.load(io.BytesIO(file_of(small))).kind == "bellman"
    assert ProvingKey.load(DATA / "mult3_bls12381" / "circuit.zkey").kind == "snarkjs"
    for data in (b"", b"\0" * 2000, b"zkey"):
        with pytest.raises(FormatError, match="zkey"):
            ProvingKey.load(data)
    # JSON may begin with a byte that a coordinate may begin with too
    assert VerifyingKey.load(b"\n" + small.vk.to_json().encode()) == small.vk


def test_constraints_of_another_circuit_are_refused(small: ProvingKey) -> None:
    data = file_of(small)
    assert ProvingKey.load(data, r1cs=squares(5, 2).r1cs()).r1cs is not None
    same_size = squares(5, 2)
    row = completed({1: 1}, {2: 1, 3: 1}, {}, same_size.witness, R)
    others = {
        "number of public": squares(5, 1),
        "number of wires": squares(6, 2),
        "domain size": Circuit(CURVE, 2, [*same_size.rows, *same_size.rows], same_size.witness),
        "wires in A": Circuit(CURVE, 2, [*same_size.rows[:4], ({1: 1}, {5: 1}, {6: 1})], same_size.witness),
        "wires in B": Circuit(CURVE, 2, [*same_size.rows[:4], ({5: 1}, {1: 1}, {6: 1})], same_size.witness),
        "curve": Circuit(BN254, 2, [row], same_size.witness),
    }
    for fact, circuit in others.items():
        with pytest.raises(KeyMismatchError, match=f"another circuit than the key: its .*{fact}"):
            ProvingKey.load(data, r1cs=circuit.r1cs())


# ---- the quotient ----


@pytest.mark.parametrize("curve", [BN254, BLS12_381], ids=lambda c: c.name)
@pytest.mark.parametrize("log_n", [0, 1, 2, 5])
def test_quotient_is_the_polynomial_division(curve: Curve, log_n: int) -> None:
    r, n, draw = curve.fr.modulus, 1 << log_n, random.Random(log_n)
    domain = Domain(curve, log_n, root="bellman")
    a, b = ([draw.choice([0, 1, r - 1, draw.randrange(r)]) for _ in range(n)] for _ in range(2))
    c = [x * y % r for x, y in zip(a, b, strict=True)]
    inverse, n_inverse = pow(domain.omega, -1, r), pow(n, -1, r)
    pa, pb, pc = ([x * n_inverse % r for x in oracle.dft(v, inverse, r)] for v in (a, b, c))
    product = [0] * (2 * n)
    for i, x in enumerate(pa):
        for j, y in enumerate(pb):
            product[i + j] = (product[i + j] + x * y) % r
    for i, x in enumerate(pc):
        product[i] = (product[i] - x) % r
    want = [0] * n
    for i in reversed(range(n, 2 * n)):  # p / (X^n - 1)
        want[i - n] = product[i]
        product[i - n] = (product[i - n] + product[i]) % r
    assert not any(product[:n])
    assert want[-1] == 0
    rows = [curve.fr.encode(v) for v in (a, b, c)]
    got = quotient.bellman(domain, *rows)
    assert n == 1 or np.shares_memory(got, rows[0])
    assert curve.fr.decode(got) == want[:-1]


# ---- whole proofs ----


def proved(key: ProvingKey, witness: Any, rs: tuple[int, int] | None = None, **options: Any) -> Any:
    with warnings.catch_warnings(), Prover(key, **options) as prover:
        warnings.simplefilter("ignore")
        if rs is None:
            return prover.prove(witness)
        with fixed_blinding(*rs):
            return prover.prove(witness)


@pytest.fixture(autouse=True)
def door(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PINZK_TEST_DOOR", "1")


@needs_poseidon
def test_the_given_proof_byte_for_byte() -> None:
    assert POSEIDON is not None and POSEIDON.r1cs is not None
    key = ProvingKey.load(POSEIDON.folder / "circuit.params", r1cs=POSEIDON.r1cs)
    result = proved(key, POSEIDON.wtns, POSEIDON.fixed_rs)
    assert result.proof.to_bytes() == (POSEIDON.folder / "proof_fixed.bin").read_bytes()
    assert json.loads(result.proof.to_json()) == POSEIDON.json("proof_fixed.json")
    assert [str(x) for x in result.public] == POSEIDON.json("public.json")


@st.composite
def bellman_circuits(draw: st.DrawFn) -> Circuit:
    """Circuits in which every private wire occurs."""
    circuit = draw(circuits(CURVE))
    used = {w for row in circuit.rows for part in row for w in part}
    loose = [w for w in range(circuit.n_public + 1, circuit.n_wires) if w not in used]
    rows = [completed({w: 1}, {0: draw(st.sampled_from([1, 2]))}, {}, circuit.witness, R) for w in loose]
    return Circuit(CURVE, circuit.n_public, [*circuit.rows, *rows], circuit.witness)


def assert_is_the_proof(circuit: Circuit, secret: ToxicWaste, r: int, s: int) -> None:
    key = _setup(circuit.r1cs(), secret, "bellman")
    again = ProvingKey.load(file_of(key), r1cs=circuit.r1cs())
    result = proved(again, circuit.witness, (r, s), threads=1, self_check=False)
    log_a, log_b, log_c = proof_logarithms(circuit, secret, r, s, root=7, smallest=1)
    g1, g2 = (oracle.weierstrass(g) for g in oracle.groups(CURVE))
    assert CURVE.g1.decode(result.proof.a)[0] == g1.mul(log_a, CURVE.g1.generator())
    assert CURVE.g2.decode(result.proof.b)[0] == g2.mul(log_b, CURVE.g2.generator())
    assert CURVE.g1.decode(result.proof.c)[0] == g1.mul(log_c, CURVE.g1.generator())
    assert verify(key.vk, result.public, result.proof) is bool(log_a and log_b and log_c)


@settings(max_examples=25)
@given(data=st.data())
def test_proofs_of_random_circuits_are_those_of_the_trapdoor(data: Any) -> None:
    scalars = st.integers(0, R - 1)
    waste = st.integers(2, R - 1)
    secret = data.draw(st.builds(ToxicWaste, waste.filter(lambda t: pow(t, 64, R) != 1), waste, waste, waste))
    assert_is_the_proof(data.draw(bellman_circuits()), secret, data.draw(scalars), data.draw(scalars))


EDGES = {
    "no public input": squares(5, 0),
    "no private input": squares(5, 6),
    "unused inputs": Circuit(CURVE, 3, [({4: 1}, {4: 1}, {5: 1})], [1, 7, 8, 9, 3, 9]),
    "no wire but the one": Circuit(CURVE, 0, [({0: 1}, {0: 1}, {0: 1})], [1]),
    "domain 1": Circuit(CURVE, 0, [], [1]),
    "no constraint": Circuit(CURVE, 2, [], [1, 2, 3]),
    "domain full": squares(6, 1),
    "domain one beyond": squares(7, 1),
    "B is empty": Circuit(CURVE, 0, [completed({1: 2}, {}, {}, [1, 5], R)], [1, 5]),
    "zero witness": Circuit(CURVE, 1, [({1: 1}, {2: 1}, {3: 1})], [1, 0, 0, 0]),
}


@pytest.mark.parametrize("name", EDGES)
def test_edge_circuits(name: str) -> None:
    assert EDGES[name].r1cs().first_unsatisfied(EDGES[name].witness) is None
    assert_is_the_proof(EDGES[name], SECRET, 12345, R - 6)


def test_snarkjs_takes_the_proof(
    snarkjs: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    circuit = squares(9, 2)
    key = setup(circuit.r1cs(), kind="bellman")
    key.save(tmp_path / "circuit.params")
    vk = VerifyingKey.load(tmp_path / "circuit.params")
    vk.save(tmp_path / "vk.json")
    result = proved(key, circuit.witness)
    result.proof.save(tmp_path / "proof.json")
    (tmp_path / "public.json").write_text(json.dumps([str(x) for x in result.public]))
    done = snarkjs("groth16", "verify", *(tmp_path / f for f in ("vk.json", "public.json", "proof.json")))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK!" in done.stdout


def test_the_two_pipelines_are_never_mixed() -> None:
    circuit = squares(6, 1)
    snarkjs_key, bellman_key = (_setup(circuit.r1cs(), SECRET, kind) for kind in ("snarkjs", "bellman"))
    assert not np.array_equal(snarkjs_key.a, bellman_key.a[: len(snarkjs_key.a)])
    for key in (snarkjs_key, bellman_key):
        assert verify(key.vk, circuit.witness[1:2], proved(key, circuit.witness).proof)


def test_a_key_without_constraints_says_what_it_needs(small: ProvingKey) -> None:
    with pytest.raises(ValueError, match="load it with r1cs="):
        proved(ProvingKey.load(file_of(small)), squares(5, 2).witness)


def test_unsatisfying_witness_names_the_constraint(small: ProvingKey) -> None:
    witness = squares(5, 2).witness
    witness[4] += 1
    with pytest.raises(WitnessError, match="constraint 2") as caught:
        proved(small, witness)
    assert caught.value.index == 2


# ---- what set-up refuses ----


def test_setup_refuses_what_bellman_refuses() -> None:
    loose = Circuit(CURVE, 1, [({1: 1}, {1: 1}, {3: 1})], [1, 3, 5, 9])
    with pytest.raises(ValueError, match="wire 2 is private and unconstrained"):
        setup(loose.r1cs(), kind="bellman")
    with pytest.raises(ValueError, match="of bls12_381, the circuit of bn254"):
        setup(Circuit(BN254, 0, [], [1]).r1cs(), kind="bellman")
    with pytest.raises(ValueError, match="kind must be"):
        setup(loose.r1cs(), kind="arkworks")
