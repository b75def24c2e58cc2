# SPDX-License-Identifier: Apache-2.0
"""The shipped files are whole: every later test leans on them."""

from __future__ import annotations

import hashlib

import pytest
from cases import DATA, ZKEY_CASES, Case

SUMS = {name: digest for digest, name in map(str.split, (DATA / "SHA256SUMS").read_text().splitlines())}


@pytest.mark.parametrize("name", sorted(SUMS))
def test_shipped_file_is_unchanged(name: str) -> None:
    assert hashlib.sha256((DATA / name).read_bytes()).hexdigest() == SUMS[name]


def test_every_shipped_file_has_its_sum() -> None:
    assert {str(p.relative_to(DATA)) for p in DATA.glob("*/*")} == set(SUMS)


@pytest.mark.parametrize("case", ZKEY_CASES, ids=str)
def test_snarkjs_accepts_the_fixed_proof(case: Case, snarkjs) -> None:
    done = snarkjs("groth16", "verify", case.vkey, case.public, case.proof_fixed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "OK!" in done.stdout
