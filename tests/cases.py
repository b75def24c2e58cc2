# SPDX-License-Identifier: Apache-2.0
"""Where the real Groth16 files lie: `tests/data`, and `../shared/cases` beside the checkout."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SHARED = ROOT.parent / "shared" / "cases"


@dataclass(frozen=True)
class Case:
    """One folder: a key, a witness, and the proof that belongs to given blinding scalars."""

    folder: Path

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    @property
    def curve_name(self) -> str:
        """``"bn254"`` or ``"bls12_381"``."""
        return "bn254" if self.name.endswith("_bn254") else "bls12_381"

    @property
    def zkey(self) -> Path:
        """The proving key."""
        return self.folder / "circuit.zkey"

    @property
    def wtns(self) -> Path:
        """The witness."""
        return self.folder / "witness.wtns"

    @property
    def r1cs(self) -> Path | None:
        """The constraints, where they are there."""
        path = self.folder / "circuit.r1cs"
        return path if path.exists() else None

    @property
    def vkey(self) -> Path:
        """The verification key."""
        return self.folder / "verification_key.json"

    @property
    def public(self) -> Path:
        """The public signals."""
        return self.folder / "public.json"

    @property
    def proof_fixed(self) -> Path:
        """The proof for the scalars of `fixed_rs`."""
        return self.folder / "proof_fixed.json"

    @property
    def fixed_rs(self) -> tuple[int, int]:
        """The blinding scalars r, s of `proof_fixed`."""
        rs = self.json("fixed_rs.json")
        return int(rs["r"]), int(rs["s"])

    def json(self, name: str) -> Any:
        """A JSON file of the folder."""
        return json.loads((self.folder / name).read_text())

    def __str__(self) -> str:
        return self.name


def _folders(name: str) -> list[Path]:
    found: dict[str, Path] = {}
    for parent in (DATA, SHARED):
        for path in sorted(parent.glob(f"*/{name}")):
            found.setdefault(path.parent.name, path.parent)
    return [found[k] for k in sorted(found)]


# every folder with a .zkey: at least the five of tests/data
ZKEY_CASES: list[Case] = [Case(folder) for folder in _folders("circuit.zkey")]


def case(name: str) -> Case | None:
    """The case of that name, or None where its folder is not there."""
    for parent in (DATA, SHARED):
        if (parent / name).is_dir():
            return Case(parent / name)
    return None


def shared(name: str) -> Path | None:
    """A file or folder of `../shared/cases`, or None where it is not there."""
    path = SHARED / name
    return path if path.exists() else None
