# SPDX-License-Identifier: Apache-2.0
"""Whole proofs on a GPU, warm, beside the CPU backend: every proof verified, one of each size equal to the CPU's.

    python benchmarks/bench_gpu_prover.py [--sizes 17,20] [--curves bn254,bls12_381] [--bits 0,0.95] [--json FILE]

Milliseconds, medians: `witness` from a loaded `Witness` to the proof; `stages` are the prover's own; `in a row`
between the ends of proofs of `prove_many`. The self-check is on; its own time stands among the stages.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
import warnings
from typing import Any

from synthetic import circuit

import pinzk
from pinzk._core.device import Device
from pinzk._testing import fixed_blinding
from pinzk.curves import Curve
from pinzk.groth16.setup import setup
from pinzk.groth16.verifier import verify


def timed(run: Any) -> tuple[float, Any]:
    begin = time.perf_counter()
    result = run()
    return 1e3 * (time.perf_counter() - begin), result


def measure(curve: Curve, log_n: int, bits: float, args: argparse.Namespace) -> dict[str, Any]:
    """One circuit over one curve."""
    r1cs, values = circuit(curve, log_n, bits)
    witness = pinzk.Witness.load(values, curve=curve)
    setup_ms, key = timed(lambda: setup(r1cs))
    load_ms, gpu = timed(lambda: pinzk.Prover(key, device="cuda"))
    with gpu, pinzk.Prover(key, device="cpu") as cpu:
        first_ms, _ = timed(lambda: gpu.prove(witness))
        with fixed_blinding(11, 22):
            ours = gpu.prove(witness)
            cpu_ms, theirs = timed(lambda: cpu.prove(witness))
        assert ours.proof.to_json() == theirs.proof.to_json(), "the GPU's proof is not the CPU's"
        runs = [timed(lambda: gpu.prove(witness)) for _ in range(args.repeats)]
        row_ms, many = timed(lambda: list(gpu.prove_many([witness] * args.repeats)))
    for result in [r for _, r in runs] + many:
        assert verify(key.vk, result.public, result.proof, allow_insecure=True)
    stages = {
        name: statistics.median(1e3 * r.stats["seconds"][name] for _, r in runs)
        for name in runs[0][1].stats["seconds"]
    }
    return {
        "curve": curve.name,
        "log_n": log_n,
        "bits": bits,
        "witness": statistics.median(ms for ms, _ in runs),
        "in a row": row_ms / args.repeats,
        "first": first_ms,
        "load": load_ms,
        "setup": setup_ms,
        "cpu": cpu_ms,
        "stages": stages,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", default="17,20")
    parser.add_argument("--curves", default="bn254,bls12_381")
    parser.add_argument("--bits", default="0,0.95")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    os.environ["PINZK_TEST_DOOR"] = "1"
    warnings.simplefilter("ignore")
    print(f"{Device(0).name}, {os.cpu_count()} cores; ms")
    results = []
    for curve in map(Curve.named, args.curves.split(",")):
        for log_n in map(int, args.sizes.split(",")):
            for bits in map(float, args.bits.split(",")):
                r = measure(curve, log_n, bits, args)
                results.append(r)
                print(
                    f"{curve.name:>9} 2^{log_n} {int(100 * bits):2d}% bits {r['witness']:.1f}, in a row {r['in a row']:.1f}"
                    f"; CPU {r['cpu']:.0f} ({r['cpu'] / r['witness']:.1f}x); first {r['first']:.0f}, load {r['load']:.0f}, "
                    f"set-up {r['setup']:.0f}\n    "
                    + ", ".join(f"{k} {v:.2f}" for k, v in r["stages"].items()),
                    flush=True,
                )
    if args.json:
        with open(args.json, "w") as f:
            json.dump({"device": Device(0).name, "pinzk": pinzk.__version__, "results": results}, f, indent=1)


if __name__ == "__main__":
    main()
