# SPDX-License-Identifier: Apache-2.0
"""Whole proofs, pinzk beside its peers on the same keys and witnesses, in one run on one machine.

    python benchmarks/bench_groth16.py [--quick] [--circuits dense17 ...] [--curves bn254 ...] [--peers ...] [--json FILE]

Two figures for each prover. *process*: one command from start to exit, with everything that a user waits for (start-up,
reading and checking the key, the proof, pinzk's self-check, writing); *cpu* is the processor time of that, which a busy
machine changes least. *prove*: one proof in a process that has run before, its key in memory where the prover can keep one
(snarkjs cannot; zksnake makes its own, which is its load time). Processes take turns; the smallest time counts. Memory is
the peak of the whole process. Every proof is verified, by snarkjs where the prover writes snarkjs files.

Circuits, witnesses and keys are made once and kept in build/bench (`benchmarks/make_circuits.py`); needs node and npm.
Peers that are not installed (pip install groth16py zksnake) are left out, and the table says so. Of rapidsnark, npm and PyPI
have no binary for this machine: it is not measured.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # which PYTHONSAFEPATH would keep away

import make_circuits as make  # noqa: E402

DEFAULT = [
    ("dense17", "bn254"),
    ("dense17", "bls12_381"),
    ("sha256_64", "bn254"),
    ("merkle20_mimc", "bls12_381"),
]
QUICK = [("merkle20_mimc", "bn254"), ("merkle20_mimc", "bls12_381")]
PEERS = ("snarkjs", "groth16py", "zksnake")
CURVES = {"snarkjs": ("bn254", "bls12_381"), "groth16py": ("bn254",), "zksnake": ("bn254", "bls12_381")}


@dataclass
class Figures:
    """What was measured of one prover on one circuit; seconds and bytes."""

    prover: str
    process: list[float] = field(default_factory=list)
    processor: list[float] = field(default_factory=list)
    load: float | None = None
    prove: list[float] = field(default_factory=list)
    stages: dict[str, float] = field(default_factory=dict)
    peak_memory: int = 0
    not_measured: str = ""


class Failed(Exception):
    """A prover gave no valid proof."""


def main() -> None:
    options = parse()
    chosen = QUICK if options.quick else DEFAULT
    if options.circuits:
        chosen = [(name, curve) for name in options.circuits for curve in options.curves or make.PRIMES]
    elif options.curves:
        chosen = [(name, curve) for name, curve in chosen if curve in options.curves]
    report: dict[str, Any] = {"machine": machine(), "results": []}
    print(
        f"{report['machine']['cpu']}, {report['machine']['cores']} cores, pinzk {report['machine']['pinzk']}"
    )
    for name, curve in chosen:
        made = make.make(name, curve)
        figures = measure(made, options.peers, options.runs or (1 if options.quick else 3))
        print_table(made, figures)
        report["results"].append(
            {
                "circuit": name,
                "curve": curve,
                "key_bytes": made.key.stat().st_size,
                "provers": [vars(f) for f in figures],
            }
        )
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Whole Groth16 proofs, pinzk beside its peers.")
    parser.add_argument("--quick", action="store_true", help="a small circuit, one run: less than a minute")
    parser.add_argument("--circuits", nargs="+", choices=list(make.INPUTS))
    parser.add_argument("--curves", nargs="+", choices=list(make.PRIMES))
    parser.add_argument("--peers", nargs="*", choices=PEERS, default=["snarkjs", "groth16py"])
    parser.add_argument("--runs", type=int, help="of each prover; the smallest time counts")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    return parser.parse_args()


def measure(made: make.Made, peers: list[str], runs: int) -> list[Figures]:
    """Processes take turns, so that a busy minute of the machine hits every prover."""
    figures = [Figures(name, not_measured=why_not(name, made.curve)) for name in ("pinzk", *peers)]
    for step in [one_process] * runs + [in_memory]:
        for f in figures:
            if not f.not_measured:
                try:
                    step(f, made, runs)
                except Failed as failure:
                    if f.prover == "pinzk":
                        sys.exit(f"benchmark: {failure}")
                    f.not_measured = str(failure)
    return figures


def one_process(f: Figures, made: make.Made, runs: int) -> None:
    """One command from start to exit."""
    if f.prover in COMMANDS:
        seconds, usage, _ = run(COMMANDS[f.prover](made))
        f.process.append(seconds)
        f.processor.append(usage.ru_utime + usage.ru_stime)
        f.peak_memory = max(f.peak_memory, usage.ru_maxrss * 1024)
        verify(made)


def in_memory(f: Figures, made: make.Made, runs: int) -> None:
    """Several proofs in one process; the first one only warms up."""
    _, usage, output = run(warm(f.prover, made, runs + 1))
    answer = json.loads(output.splitlines()[-1])
    f.load, f.prove, f.stages = answer["load"], answer["prove"][1:], answer.get("stages", {})
    f.peak_memory = f.peak_memory or usage.ru_maxrss * 1024
    if f.prover in COMMANDS:
        verify(made)


def why_not(prover: str, curve: str) -> str:
    """Why a prover is left out; empty where it is not."""
    if prover in ("pinzk", "snarkjs"):
        return ""
    if curve not in CURVES[prover]:
        return f"not for {curve}"
    return "" if importlib.util.find_spec(prover) else f"not installed: pip install {prover}"


# ---- commands; each writes made_proof.json and made_public.json into the circuit's folder ----


def _pinzk(made: make.Made) -> list[object]:
    return [Path(sys.executable).with_name("pinzk"), "prove", made.key, made.witness, *outputs(made)]


def _snarkjs(made: make.Made) -> list[object]:
    cli = make.node_modules() / "snarkjs" / "build" / "cli.cjs"
    return ["node", cli, "groth16", "prove", made.key, made.witness, *outputs(made)]


COMMANDS = {"pinzk": _pinzk, "snarkjs": _snarkjs}


def warm(prover: str, made: make.Made, runs: int) -> list[object]:
    """The command that proves several times in one process and prints its seconds."""
    if prover == "snarkjs":
        return [
            "node",
            HERE / "snarkjs_prove.cjs",
            make.node_modules(),
            made.key,
            made.witness,
            runs,
            *outputs(made),
        ]
    return [sys.executable, HERE / "peers.py", prover, made.folder, made.curve, runs, *outputs(made)]


def outputs(made: make.Made) -> tuple[Path, Path]:
    return made.folder / "made_proof.json", made.folder / "made_public.json"


def run(command: list[object]) -> tuple[float, resource.struct_rusage, str]:
    """Run a command to its end: seconds, what it used, output."""
    start = time.perf_counter()
    child = subprocess.Popen([str(c) for c in command], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    output = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Failed(f"{Path(str(command[0])).name} ended with {child.returncode}")
    return seconds, usage, output


def verify(made: make.Made) -> None:
    """The proof that lies in the circuit's folder, by snarkjs; then it is deleted, so that none is verified twice."""
    proof, public = outputs(made)
    if "OK" not in make.snarkjs("groth16", "verify", made.vk, public, proof):
        raise Failed("its proof does not verify")
    proof.unlink()


# ---- what is printed ----


def machine() -> dict[str, Any]:
    import pinzk
    from pinzk.cli_doctor import examine

    found = examine()
    return {
        "cpu": found["cpu"] or platform.machine(),
        "cores": found["cores_allowed"],
        "memory": found["memory"],
        "python": platform.python_version(),
        "pinzk": pinzk.__version__,
        "snarkjs": make.NODE_PACKAGES["snarkjs"],
    }


def print_table(made: make.Made, figures: list[Figures]) -> None:
    ours = figures[0]
    print(f"\n{made.name} on {made.curve}, key of {made.key.stat().st_size / 2**20:.0f} MiB")
    print(f"{'':10} {'process':>9} {'':>7} {'cpu':>9} {'key load':>9} {'prove':>9} {'':>7} {'peak MiB':>9}")
    for f in figures:
        if f.not_measured:
            print(f"{f.prover:10} {f.not_measured}")
            continue
        load = "" if f.prover == "snarkjs" else _seconds([f.load])  # it reads the key anew for every proof
        process = f"{_seconds(f.process):>9} {_ratio(f.process, ours.process):>7} {_seconds(f.processor):>9}"
        prove = f"{load:>9} {_seconds(f.prove):>9} {_ratio(f.prove, ours.prove):>7}"
        print(f"{f.prover:10} {process} {prove} {f.peak_memory / 2**20:9.0f}")
    print(
        "pinzk, stages of the fastest proof: " + ", ".join(f"{k} {v:.3f} s" for k, v in ours.stages.items())
    )


def _seconds(values: list[Any]) -> str:
    return f"{min(values):.2f} s" if values else ""


def _ratio(values: list[float], ours: list[float]) -> str:
    return f"x{min(values) / min(ours):.2f}" if values and ours else ""


if __name__ == "__main__":
    main()
