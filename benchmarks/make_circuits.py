# SPDX-License-Identifier: Apache-2.0
"""Makes what the benchmark proves: circuits compiled by circom, witnesses, keys. All of it is kept in build/bench.

    python benchmarks/make_circuits.py dense17 bn254

The keys come from `pinzk.setup`: whoever ran it could forge proofs, so they are good for nothing but benchmarks.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pinzk.groth16.constraints import R1cs
from pinzk.groth16.setup import setup
from pinzk.groth16.witness import Witness

HERE = Path(__file__).resolve().parent / "circuits"
ROOT = HERE.parent.parent
STORE = ROOT / "build" / "bench"
DATA = ROOT / "tests" / "data"  # the tests' smaller circuit is measured too
NODE_PACKAGES = {"circom2": "0.2.23", "circomlib": "2.0.5", "snarkjs": "0.7.6"}
FILES = {
    "r1cs": "circuit.r1cs",
    "witness": "witness.wtns",
    "public": "public.json",
    "key": "circuit.zkey",
    "vk": "verification_key.json",
}
PRIMES = {"bn254": "bn128", "bls12_381": "bls12381"}

INPUTS: dict[str, dict[str, Any]] = {
    "dense17": {"left": "123456789123456789", "right": "987654321987654321"},
    "sha256_64": {"message": [(64 + 7 * i) % 256 for i in range(64)]},
    "merkle20_mimc": json.loads((DATA / "merkle20_mimc_bls12381" / "input.json").read_text()),
}


@dataclass(frozen=True)
class Made:
    """A circuit over one curve, ready to prove."""

    name: str
    curve: str
    folder: Path

    def __getattr__(self, part: str) -> Path:
        if part not in FILES:
            raise AttributeError(part)
        return self.folder / FILES[part]


def make(name: str, curve: str) -> Made:
    """The files of a circuit over a curve; what is there already is kept."""
    made = Made(name, curve, STORE / f"{name}-{curve}")
    source = next(p for p in (HERE / f"{name}.circom", DATA / "circuits" / f"{name}.circom") if p.exists())
    stamp = made.folder / "source.circom"
    if made.vk.exists() and stamp.exists() and stamp.read_bytes() == source.read_bytes():
        return made
    modules = node_modules()
    shutil.rmtree(made.folder, ignore_errors=True)
    made.folder.mkdir(parents=True)
    say(f"{name} on {curve}: circom")
    shutil.copy(source, STORE / f"{name}.circom")
    # circom finds libraries by a path relative to where it runs only
    out = made.folder.relative_to(STORE)
    options = ["-l", "node_modules", "--r1cs", "--wasm", "--prime", PRIMES[curve], "-o", out]
    node(modules / "circom2" / "cli.js", f"{name}.circom", *options)
    (made.folder / f"{name}.r1cs").rename(made.r1cs)
    (made.folder / "input.json").write_text(json.dumps(INPUTS[name]))
    say(f"{name} on {curve}: witness")
    snarkjs(
        "wtns",
        "calculate",
        made.folder / f"{name}_js" / f"{name}.wasm",
        made.folder / "input.json",
        made.witness,
    )
    say(f"{name} on {curve}: set-up")
    logging.getLogger("pinzk").setLevel(logging.ERROR)  # that the key is for benchmarks only is said above
    r1cs = R1cs.load(made.r1cs)
    made.public.write_text(
        json.dumps([str(v) for v in Witness.load(made.witness).public_inputs(r1cs.n_public)])
    )
    key = setup(r1cs)
    key.save(made.key)
    made.vk.write_text(key.vk.to_json())
    shutil.copy(source, stamp)
    return made


def node_modules() -> Path:
    """The folder of the npm packages, installed when it is not there."""
    modules = STORE / "node_modules"
    if shutil.which("npm") is None:
        sys.exit("benchmark: npm not found: install node, which compiles the circuits and runs snarkjs")
    if not all((modules / package).exists() for package in NODE_PACKAGES):
        say("npm packages")
        STORE.mkdir(parents=True, exist_ok=True)
        (STORE / "package.json").write_text(json.dumps({"private": True, "dependencies": NODE_PACKAGES}))
        subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent"], cwd=STORE, check=True)
    return modules


def node(*args: object) -> str:
    """Run a script of node where the packages lie; its output."""
    done = subprocess.run(["node", *map(str, args)], cwd=STORE, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"benchmark: node {' '.join(map(str, args))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def snarkjs(*args: object) -> str:
    """Run snarkjs; its output."""
    return node(node_modules() / "snarkjs" / "build" / "cli.cjs", *args)


def say(line: str) -> None:
    print(f"making {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in INPUTS or sys.argv[2] not in PRIMES:
        sys.exit(f"usage: make_circuits.py {'|'.join(INPUTS)} {'|'.join(PRIMES)}")
    print(os.fspath(make(sys.argv[1], sys.argv[2]).folder))
