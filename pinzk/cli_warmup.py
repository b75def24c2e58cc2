# SPDX-License-Identifier: Apache-2.0
"""`pinzk warmup`: compile the kernels now, so that the first proof on a GPU does not wait for it."""

from __future__ import annotations

import argparse

from . import kernels
from ._core import cpu
from .cli_arguments import add_threads, curve_name, use_threads
from .cli_devices import architectures
from .cli_report import Reporter, print_json, print_result
from .curves import BLS12_381, BN254
from .errors import BackendUnavailable


def add_arguments_warmup(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk warmup`."""
    parser.add_argument(
        "--curve", action="append", type=curve_name, metavar="CURVE", help="bn254 or bls12_381; default: both"
    )
    parser.add_argument(
        "--arch",
        action="append",
        type=_architecture,
        metavar="sm_NN",
        help="for this architecture, which need not be here; default: those of the GPUs that are",
    )
    add_threads(parser)
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_warmup(options: argparse.Namespace, reporter: Reporter) -> int:
    """Build every unit for every architecture; with -v, say what each kernel takes."""
    use_threads(options.threads)
    wanted = options.arch or architectures()
    if not wanted:
        raise BackendUnavailable(
            "there is no GPU to compile kernels for: name one with --arch, such as --arch sm_90"
        )
    curves = sorted({curve.name for curve in options.curve or (BN254, BLS12_381)})
    made = []
    for sm in sorted(set(wanted)):
        with reporter.step(f"kernels for sm_{sm}", f"kernels for sm_{sm} are ready"):
            made += kernels.warm_up(sm, curves, cpu.num_threads())
    if options.json:
        print_json({"kernels": [_facts(cubin) for cubin in made]})
        return 0
    for cubin in made:
        size = len(cubin.image) / 1024
        print_result(f"{cubin.unit} {cubin.arch}: {cubin.origin}, {size:.0f} KiB, {cubin.seconds:.2f} s")
    if options.verbose:
        print_result(kernels.report(made))
    return 0


def _facts(cubin: kernels.Cubin) -> dict[str, object]:
    usage = {name: vars(used) for name, used in cubin.usage.items()}
    return {
        "unit": str(cubin.unit),
        "arch": cubin.arch,
        "origin": cubin.origin,
        "bytes": len(cubin.image),
        "seconds": round(cubin.seconds, 3),
        "usage": usage,
    }


def _architecture(name: str) -> int:
    digits = name.removeprefix("sm_")
    if not (digits.isascii() and digits.isdigit() and 2 <= len(digits) <= 3):
        raise argparse.ArgumentTypeError(f"{name!r} is no architecture: use one such as sm_90")
    return int(digits)
