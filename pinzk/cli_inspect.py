# SPDX-License-Identifier: Apache-2.0
"""`pinzk zkey`, `pinzk wtns` and `pinzk proof`: look into files, check them, export from them."""

from __future__ import annotations

import argparse

from . import Proof, Prover, ProvingKey, R1cs, Witness
from .cli_arguments import add_threads, begins_with, load_vk, use_threads
from .cli_files import check_paths, source, write_together
from .cli_report import Reporter, print_json, print_result, print_table
from .errors import InsecureKeyError, WitnessError
from .formats.zkey import read_zkey_header

INSECURE = "delta_2 = gamma_2: the set-up has no second phase, so anyone can forge proofs; use a key with a contribution"


def add_arguments_zkey_info(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk zkey info`."""
    _key(parser)
    _json(parser)


def run_zkey_info(options: argparse.Namespace, reporter: Reporter) -> int:
    """Say what the header tells; of a .zkey the points are not read."""
    check_paths({"the key": options.key}, {})
    data = source(options.key)
    key = read_zkey_header(data) if begins_with(data, b"zkey") else ProvingKey.load(data, check="none")
    found = {
        "protocol": "groth16",
        "format": getattr(key, "kind", "snarkjs"),
        "curve": key.curve.name,
        "wires": key.n_vars,
        "public": key.n_public,
        "domain": key.domain_size,
        "secure": not load_vk(data).is_insecure,
    }
    if options.json:
        print_json(found)
    else:
        print_table({**found, "secure": "yes" if found["secure"] else f"NO, {INSECURE}"})
    return 0


def add_arguments_zkey_check(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk zkey check`."""
    _key(parser)
    parser.add_argument("--allow-insecure-key", action="store_true", help="accept delta_2 = gamma_2")
    add_threads(parser)


def run_zkey_check(options: argparse.Namespace, reporter: Reporter) -> int:
    """Check everything that the file alone can tell."""
    check_paths({"the key": options.key}, {})
    use_threads(options.threads)
    with reporter.step("check", "checked"), ProvingKey.load(source(options.key), check="full") as key:
        if key.vk.is_insecure and not options.allow_insecure_key:
            raise InsecureKeyError(INSECURE)
        print_result(
            f"OK: {key.curve.name}, {key.n_vars} wires, {key.n_public} public, domain {key.domain_size}"
        )
    return 0


def add_arguments_zkey_export_vk(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk zkey export-vk`."""
    _key(parser)
    parser.add_argument(
        "vk",
        metavar="verification_key.json",
        nargs="?",
        default="verification_key.json",
        help="written; - is stdout",
    )


def run_zkey_export_vk(options: argparse.Namespace, reporter: Reporter) -> int:
    """Write the verification key."""
    check_paths({"the key": options.key}, {"the verification key": options.vk})
    write_together([(options.vk, load_vk(source(options.key)).to_json().encode())])
    return 0


def add_arguments_wtns_info(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk wtns info`."""
    _witness(parser)
    _json(parser)


def run_wtns_info(options: argparse.Namespace, reporter: Reporter) -> int:
    """Say what the witness is for; its values are nobody's business."""
    check_paths({"the witness": options.witness}, {})
    witness = Witness.load(source(options.witness))
    found = {"curve": witness.curve.name, "values": len(witness.canonical)}
    print_json(found) if options.json else print_table(found)
    return 0


def add_arguments_wtns_check(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk wtns check`."""
    parser.add_argument("circuit", metavar="CIRCUIT", help="what it should satisfy: .r1cs or .zkey")
    _witness(parser)
    add_threads(parser)


def run_wtns_check(options: argparse.Namespace, reporter: Reporter) -> int:
    """Constraint by constraint against an r1cs; against a key, which has no matrix C, by a proof that is thrown away."""
    check_paths({"the circuit": options.circuit, "the witness": options.witness}, {})
    use_threads(options.threads)
    circuit, witness = source(options.circuit), Witness.load(source(options.witness))
    if begins_with(circuit, b"zkey"):
        with (
            ProvingKey.load(circuit) as key,
            Prover(key, device="cpu") as prover,
            reporter.step("prove", "proved"),
        ):
            prover.prove(witness)
        print_result("OK: a proof made with this witness verifies")
        return 0
    r1cs = R1cs.load(circuit)
    row = r1cs.first_unsatisfied(witness)
    if row is not None:
        raise WitnessError(
            f"constraint {row} of {r1cs.n_constraints} is not satisfied: check the circuit's inputs",
            index=row,
        )
    print_result(f"OK: all {r1cs.n_constraints} constraints are satisfied")
    return 0


def add_arguments_proof_calldata(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk proof calldata`."""
    parser.add_argument(
        "public", metavar="PUBLIC", nargs="?", default="public.json", help="- is standard input"
    )
    parser.add_argument("proof", metavar="PROOF", nargs="?", default="proof.json", help="- is standard input")


def run_proof_calldata(options: argparse.Namespace, reporter: Reporter) -> int:
    """Print what `snarkjs zkey export soliditycalldata` prints: the coordinates of pi_b change places."""
    check_paths({"the public values": options.public, "the proof": options.proof}, {})
    print_result(Proof.load(source(options.proof)).calldata(source(options.public)))
    return 0


def _key(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "key", metavar="KEY", help="proving key: .zkey, or bellman parameters; - is standard input"
    )


def _witness(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("witness", metavar="WTNS", help="witness, a .wtns; - is standard input")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")
