# SPDX-License-Identifier: Apache-2.0
"""Other Groth16 provers written for Python, each in a process of its own, on the benchmark's files.

    python benchmarks/peers.py groth16py|zksnake|pinzk FOLDER CURVE RUNS PROOF PUBLIC

Prints one JSON object: seconds to load the key (and, for a prover with keys of its own, to make it), seconds of each proof.
Conversions of Python objects are outside the clock. Each proof is verified before its time counts.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def pinzk(folder: Path, curve: str, runs: int, proof: Path, public: Path) -> dict[str, Any]:
    """pinzk with the key kept in memory."""
    import pinzk

    start = time.perf_counter()
    key = pinzk.ProvingKey.load(folder / "circuit.zkey")
    load = time.perf_counter() - start
    witness = pinzk.Witness.load(folder / "witness.wtns")
    seconds, stages = [], []
    with pinzk.Prover(key) as prover:
        for _ in range(runs):
            start = time.perf_counter()
            result = prover.prove(witness)
            seconds.append(time.perf_counter() - start)
            stages.append(result.stats["seconds"])
    proof.write_text(result.proof.to_json())
    public.write_text(json.dumps([str(v) for v in result.public]))
    return {"load": load, "prove": seconds, "stages": min(stages, key=lambda s: s["total"])}


def groth16py(folder: Path, curve: str, runs: int, proof: Path, public: Path) -> dict[str, Any]:
    """arkworks behind Python, on the same key; BN254 only."""
    import groth16py

    start = time.perf_counter()
    key, vk = groth16py.import_zkey(str(folder / "circuit.zkey"))
    load = time.perf_counter() - start
    values = _public_values(folder)
    return {
        "load": load,
        "prove": _timed(
            runs,
            lambda: groth16py.prove_wtns(key, str(folder / "witness.wtns")),
            lambda made: groth16py.Verifier(vk).verify(made, values),
        ),
    }


def zksnake(folder: Path, curve: str, runs: int, proof: Path, public: Path) -> dict[str, Any]:
    """arkworks' arithmetic under a prover in Python, on the same circuit with a key of its own."""
    from zksnake.arithmetization import R1CS
    from zksnake.groth16 import Groth16
    from zksnake.parser import R1CSReader

    from pinzk import Witness

    name = {"bn254": "BN254", "bls12_381": "BLS12_381"}[curve]
    start = time.perf_counter()
    circuit = R1CS.from_file(str(folder / "circuit.r1cs"), curve=name)
    circuit.compile()
    prover = Groth16(circuit, name)
    prover.setup()
    load = time.perf_counter() - start
    witness = Witness.load(folder / "witness.wtns")
    # it numbers the wires anew: the r1cs's order is that of its names
    names = R1CSReader(str(folder / "circuit.r1cs"), None).read()["wires"]
    of_name = dict(zip(map(str, names), witness.curve.fr.decode_canonical(witness.canonical), strict=True))
    values = [1] + [of_name[name] for name in circuit.constraint_system.get_witness_vector()[1:]]
    one_and_public, private = values[: circuit.n_public], values[circuit.n_public :]
    return {
        "load": load,
        "prove": _timed(
            runs,
            lambda: prover.prove(one_and_public, private),
            lambda made: prover.verify(made, one_and_public),
        ),
    }


def _timed(runs: int, prove: Callable[[], Any], verifies: Callable[[Any], bool]) -> list[float]:
    seconds = []
    for _ in range(runs):
        start = time.perf_counter()
        made = prove()
        seconds.append(time.perf_counter() - start)
        if not verifies(made):
            sys.exit("the proof does not verify")
    return seconds


def _public_values(folder: Path) -> list[int]:
    return [int(v) for v in json.loads((folder / "public.json").read_text())]


if __name__ == "__main__":
    peer, folder, curve, runs, proof, public = sys.argv[1:]
    print(json.dumps(globals()[peer](Path(folder), curve, int(runs), Path(proof), Path(public))))
