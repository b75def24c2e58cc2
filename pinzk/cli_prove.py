# SPDX-License-Identifier: Apache-2.0
"""`pinzk prove` and `pinzk verify`, with the arguments in the order that snarkjs and rapidsnark use."""

from __future__ import annotations

import argparse
import logging
import os
import resource
import time
from typing import Any

from . import Prover, ProvingKey, VerifyingKey, Witness, __version__, backend
from .cli_arguments import add_threads, byte_count, curve_name, device_name, load_vk, use_threads
from .cli_files import STANDARD, UsageError, check_paths, source, write_together
from .cli_report import Reporter, print_json, print_result
from .errors import KeyMismatchError
from .formats.proof import public_json
from .groth16.verifier import why_invalid

log = logging.getLogger(__name__)

# rows from which one proof is expected to be faster on a GPU, its start included: an estimate (docs/cli.md)
WORTH_A_GPU = 1 << 20


def add_arguments_prove(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk prove`."""
    parser.add_argument(
        "key", metavar="KEY", help="proving key: .zkey, or bellman parameters; - is standard input"
    )
    parser.add_argument("witness", metavar="WTNS", help="witness, a .wtns; - is standard input")
    parser.add_argument(
        "proof", metavar="proof.json", nargs="?", default="proof.json", help="written; - is stdout"
    )
    parser.add_argument(
        "public", metavar="public.json", nargs="?", default="public.json", help="written; - is stdout"
    )
    parser.add_argument(
        "--device", type=device_name, default="auto", help="auto, cpu, cuda, cuda:N or GPU-<uuid>"
    )
    parser.add_argument(
        "--max-vram",
        type=byte_count,
        metavar="SIZE",
        help="device memory that may be used, e.g. 8GiB; default: what is free",
    )
    add_threads(parser)
    parser.add_argument(
        "--check",
        choices=("none", "curve", "full"),
        default="curve",
        help="what is checked of the key's points: their curve (default), their subgroup too, or nothing",
    )
    parser.add_argument(
        "--no-self-check", action="store_true", help="do not verify the proof before it is written"
    )
    parser.add_argument(
        "--r1cs", metavar="FILE", help="the circuit: names the constraint that fails; bellman keys need it"
    )
    parser.add_argument("--vk", metavar="FILE", help="stop unless the key belongs to this verification key")
    parser.add_argument(
        "--curve", type=curve_name, help="stop unless the key is for this curve: bn254 or bls12_381"
    )
    parser.add_argument("--json", action="store_true", help="print the stats as one JSON object")


def run_prove(options: argparse.Namespace, reporter: Reporter) -> int:
    """Prove, then write both files."""
    start = time.perf_counter()
    outputs = {"the public file": options.public, "the proof": options.proof}
    inputs = {"the key": options.key, "the witness": options.witness, "the verification key": options.vk}
    inputs["the circuit"] = options.r1cs
    check_paths(inputs, outputs)
    if options.json and STANDARD in outputs.values():
        raise UsageError("--json and - both want standard output: name a file instead of -")
    use_threads(options.threads)
    automatic = options.device == "auto" and not os.environ.get("PINZK_DEVICE", "").strip()
    if not automatic:
        backend.select(options.device)  # before minutes of reading
    if options.no_self_check:
        log.warning("--no-self-check: the proof is written without having been verified")
    vk = None if options.vk is None else load_vk(source(options.vk))
    with reporter.step("load_witness", "witness read"):
        witness = Witness.load(source(options.witness))
    key_source = source(options.key)
    if vk is not None or options.curve is not None:  # the beginning tells, long before all points are read
        _stop_unless_expected(options, vk, load_vk(key_source))
    with reporter.step("load_key", "key read"):
        key = ProvingKey.load(key_source, r1cs=options.r1cs, check=options.check)
    del key_source
    if key.kind == "bellman" and options.r1cs is None:
        raise UsageError(
            f"{options.key} is a bellman key, which has no matrices: give the circuit with --r1cs FILE"
        )
    device = "cpu" if automatic and key.domain_size < WORTH_A_GPU else options.device
    with (
        key,
        Prover(
            key, device=device, max_device=options.max_vram, self_check=not options.no_self_check
        ) as prover,
        reporter.step("prove", f"proved: {key.n_vars} wires, domain {key.domain_size}, {key.curve.name}"),
    ):
        result = prover.prove(witness)
    with reporter.step("write", "written"):
        # the proof is what others wait for, so it comes last
        texts = (options.public, public_json(result.public)), (options.proof, result.proof.to_json())
        write_together([(path, text.encode()) for path, text in texts])
    if options.json:
        print_json(_stats(result.stats, reporter.seconds, time.perf_counter() - start))
    return 0


def _stop_unless_expected(options: argparse.Namespace, vk: VerifyingKey | None, found: VerifyingKey) -> None:
    if options.curve is not None and options.curve is not found.curve:
        asked, told = options.curve.name, found.curve.name
        raise UsageError(f"--curve says {asked}, the key is for {told}: leave --curve out, the key tells")
    if vk is not None and vk != found:
        raise KeyMismatchError(
            f"{options.vk} does not belong to {options.key}: they come from different set-ups"
        )


def _stats(stats: dict[str, Any], steps: dict[str, float], total: float) -> dict[str, Any]:
    """The prover's stats, with the steps of the command beside its stages."""
    return {
        "pinzk": __version__,
        **stats,
        "seconds": {**steps, "total": round(total, 6)},
        "stages": {stage: round(seconds, 6) for stage, seconds in stats["seconds"].items()},
        "peak_memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def add_arguments_verify(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk verify`."""
    parser.add_argument(
        "vk", metavar="VK", help="verification_key.json, or the .zkey itself; - is standard input"
    )
    parser.add_argument("public", metavar="PUBLIC", help="public.json; - is standard input")
    parser.add_argument("proof", metavar="PROOF", help="proof.json; - is standard input")
    parser.add_argument("--allow-insecure-key", action="store_true", help="verify with delta_2 = gamma_2 too")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_verify(options: argparse.Namespace, reporter: Reporter) -> int:
    """Print OK or INVALID with the reason; an invalid proof ends with 1."""
    check_paths({"the key": options.vk, "the public values": options.public, "the proof": options.proof}, {})
    inputs = load_vk(source(options.vk)), source(options.public), source(options.proof)
    reason = why_invalid(*inputs, allow_insecure=options.allow_insecure_key)
    if options.json:
        print_json({"valid": reason is None, "reason": reason})
    else:
        print_result("OK" if reason is None else f"INVALID: {reason}")
    return 0 if reason is None else 1
