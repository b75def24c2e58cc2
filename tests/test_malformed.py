# SPDX-License-Identifier: Apache-2.0
"""Malformed keys and witnesses are refused by name, quickly and in little memory; odd but valid ones prove."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from cases import DATA, shared
from malformed import File, Maker, Variant

from pinzk.curves import BLS12_381, BN254
from pinzk.errors import FormatError, PinzkError, WitnessError
from pinzk.formats.zkey import read_zkey
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.prover import Prover
from pinzk.groth16.witness import Witness

CURVES = {"bn254": BN254, "bls12_381": BLS12_381}
FOLDER = {"bn254": "mult3_bn254", "bls12_381": "mult3_bls12381"}


@cache
def variants(name: str) -> list[Variant]:
    other = "bls12_381" if name == "bn254" else "bn254"
    ours, theirs = DATA / FOLDER[name], DATA / FOLDER[other]
    zkey, wtns, foreign = ours / "circuit.zkey", ours / "witness.wtns", theirs / "witness.wtns"
    return Maker(CURVES[name], zkey.read_bytes(), wtns.read_bytes(), foreign.read_bytes()).all()


def each_variant() -> list[object]:
    return [pytest.param(v, id=f"{name}-{v.name}") for name in CURVES for v in variants(name)]


@pytest.mark.parametrize("variant", each_variant())
def test_variant(variant: Variant) -> None:
    def prove() -> None:
        Prover(ProvingKey.load(variant.zkey, check=variant.check)).prove(variant.wtns)

    if variant.error is None:
        prove()
        return
    with pytest.raises(variant.error) as caught:
        prove()
    assert type(caught.value) is variant.error
    assert variant.says in str(caught.value)
    if variant.section is not None:
        assert isinstance(caught.value, FormatError)
        assert caught.value.section == variant.section
        assert f"section {variant.section}: " in str(caught.value)
    if variant.index is not None:
        assert isinstance(caught.value, (FormatError, WitnessError))
        assert caught.value.index == variant.index


@pytest.mark.parametrize("name", CURVES)
def test_what_curve_does_not_see_full_does(name: str) -> None:
    (variant,) = (v for v in variants(name) if v.name == "off_subgroup")
    read_zkey(variant.zkey, check="curve")
    with pytest.raises(FormatError, match="subgroup"):
        read_zkey(variant.zkey, check="full")


@pytest.mark.parametrize("name", CURVES)
def test_what_none_does_not_see_curve_does(name: str) -> None:
    for variant in variants(name):
        if variant.name.startswith("off_curve") and variant.section != 3:
            read_zkey(variant.zkey, check="none")


# One process takes every pair in turn: its peak bounds each one's. Not ru_maxrss: that begins with the parent's peak.
CHILD = r"""
import json, re, sys, time
from pathlib import Path
from pinzk.errors import PinzkError
from pinzk.groth16.keys import ProvingKey
from pinzk.groth16.prover import Prover

results = []
for zkey, wtns in json.load(sys.stdin):
    start = time.perf_counter()
    try:
        Prover(ProvingKey.load(zkey)).prove(wtns)
        error = None
    except PinzkError as e:
        error = str(e)
    results.append((error, time.perf_counter() - start))
peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
print(json.dumps([results, int(peak[1]) * 1024]))
"""


def prove_apart(pairs: list[tuple[str, str]]) -> list[str | None]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", CHILD],
        input=json.dumps(pairs),
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    results, peak = json.loads(done.stdout)
    assert peak < 200e6
    assert max(seconds for _, seconds in results) < 2
    return [error for error, _ in results]


@pytest.mark.unsanitized
@pytest.mark.parametrize("name", CURVES)
def test_quick_and_small(name: str, tmp_path: Path) -> None:
    pairs = []
    for i, variant in enumerate(variants(name)):
        zkey, wtns = tmp_path / f"{i}.zkey", tmp_path / f"{i}.wtns"
        zkey.write_bytes(variant.zkey)
        wtns.write_bytes(variant.wtns)
        pairs.append((str(zkey), str(wtns)))
    errors = prove_apart(pairs)
    for variant, pair, error in zip(variants(name), pairs, errors, strict=True):
        # without the variant's check, a proof is made and does not verify
        assert (error is None) == (variant.error is None), variant.name
        if error is not None and variant.error is FormatError and variant.check == "curve":
            assert any(error.startswith(path + ": ") for path in pair)


@pytest.mark.parametrize("name", CURVES)
def test_a_witness_that_does_not_satisfy(name: str) -> None:
    folder = DATA / FOLDER[name]
    file = File.unpack((folder / "witness.wtns").read_bytes())
    file[2][-32] ^= 1  # of wire 7
    with pytest.raises(WitnessError, match="constraint 1 fails") as caught:
        Prover(ProvingKey.load(folder / "circuit.zkey", r1cs=folder / "circuit.r1cs")).prove(file.pack())
    assert caught.value.index == 1


@pytest.mark.unsanitized
@pytest.mark.parametrize("name", CURVES)
def test_shared_variants(name: str, tmp_path: Path) -> None:
    script = shared("malform.py")
    if script is None:
        pytest.skip("../shared/cases is not there")
    other = "bls12_381" if name == "bn254" else "bn254"
    ours, theirs = DATA / FOLDER[name], DATA / FOLDER[other]
    command = [
        sys.executable,
        script,
        ours / "circuit.zkey",
        ours / "witness.wtns",
        tmp_path,
        theirs / "witness.wtns",
    ]
    subprocess.run(list(map(str, command)), check=True, capture_output=True)
    expected = json.loads((tmp_path / "expected.json").read_text())
    assert len(expected) == 39
    errors = prove_apart([(str(tmp_path / e["zkey"]), str(tmp_path / e["wtns"])) for e in expected])
    for entry, error in zip(expected, errors, strict=True):
        assert (error is None) == (entry["kind"] == "accept"), (entry["name"], error)
        section = entry["where"].rpartition(" ")[2]
        if (
            error is not None
            and entry["kind"] == "reject"
            and entry["where"].startswith("zkey")
            and section.isdigit()
        ):
            # a domain of 2^31 is possible on BLS12-381, but section 9 is another
            assert f": section {section}: " in error or "section 9: H points: 8 points" in error


def test_errors_show_no_witness_value() -> None:
    secret = 0x1234567890ABCDEF1234567890ABCDEF
    for values in ([2, secret], [1, secret + BN254.fr.modulus], [1, -secret], [1, secret, secret << 200]):
        with pytest.raises(WitnessError) as caught:
            Witness.load(values, curve="bn254")
        for shown in (str(caught.value), repr(caught.value), repr(caught.value.__dict__)):
            assert str(secret) not in shown
            assert f"{secret:x}" not in shown.lower()


@pytest.mark.parametrize(
    "content", [b"", b"\0", b"{}", b"zkey", b"\x7fELF" + bytes(100), bytes(1000), b"r1cs" * 100]
)
def test_anything_else_is_refused(content: bytes) -> None:
    with pytest.raises(FormatError) as caught:
        read_zkey(content)
    assert isinstance(caught.value, PinzkError)
    assert caught.value.exit_code == 6
    with pytest.raises(FormatError):
        Witness.load(content)
