# SPDX-License-Identifier: Apache-2.0
"""Prove a real circuit and verify the proof: what `make prove` runs.

The circuit is Semaphore's, anonymous membership in a group; the key is that of its authors' ceremony. A proof says "I know
the secret of a member" without saying whose. `tests/data/README.md` tells where the files come from.
"""

from __future__ import annotations

import logging
import time
from pathlib import Path

import pinzk

CASE = Path(__file__).parent.parent / "tests" / "data" / "semaphore4_depth1_bn254"
OUT = Path("build") / "prove"


def main() -> None:
    logging.getLogger("pinzk").setLevel(logging.ERROR)  # it would say why the false proof below is invalid
    start = time.perf_counter()
    key = pinzk.ProvingKey.load(CASE / "circuit.zkey")
    witness = pinzk.Witness.load(CASE / "witness.wtns")
    loaded = time.perf_counter() - start
    sizes = f"{key.n_vars:,} wires, domain {key.domain_size:,}, {key.n_public} public values"
    print(f"key     Semaphore v4, {key.curve.name}: {sizes}")
    print(f"        read, and every point checked to be on its curve, in {loaded:.2f} s")

    with pinzk.Prover(key) as prover:
        result = prover.prove(witness)
    stats = result.stats
    print(
        f"proof   made in {stats['seconds']['total']:.3f} s on the {stats['device']} with {stats['threads']} threads,"
    )
    print("        and verified before it was returned")

    OUT.mkdir(parents=True, exist_ok=True)
    result.proof.save(OUT / "proof.json")
    print(f"        written to {OUT / 'proof.json'}, which snarkjs accepts too")

    vk = pinzk.VerifyingKey.load(CASE / "verification_key.json")
    proof = pinzk.Proof.load(OUT / "proof.json")
    assert pinzk.verify(vk, result.public, proof)
    print("verify  read back and checked against the authors' verification key: valid")
    lie = [(result.public[0] + 1) % key.curve.fr.modulus, *result.public[1:]]
    assert not pinzk.verify(vk, lie, proof)
    print("        the same proof for another public value: invalid, as it must be")


if __name__ == "__main__":
    main()
