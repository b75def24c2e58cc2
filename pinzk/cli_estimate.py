# SPDX-License-Identifier: Apache-2.0
"""`pinzk estimate`: what a proving key takes, on a GPU and on the CPU, before anything is proved."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from . import Device, ProvingKey, backend
from .cli_arguments import byte_count, device_name
from .cli_files import source
from .cli_report import Reporter, print_json, print_table
from .groth16.plan import MemoryPlan, plan_for_cpu, plan_for_gpu


def add_arguments_estimate(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk estimate`."""
    parser.add_argument(
        "key", metavar="KEY", help="proving key: .zkey, or bellman parameters; - is standard input"
    )
    parser.add_argument(
        "--device", type=device_name, default="auto", help="auto, cpu, cuda, cuda:N or GPU-<uuid>"
    )
    parser.add_argument(
        "--max-vram",
        type=byte_count,
        metavar="SIZE",
        help="device memory that may be used; default: what is free. Makes a plan without a GPU too",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_estimate(options: argparse.Namespace, reporter: Reporter) -> int:
    """Print the plan; a key that does not fit ends with 8 and the numbers."""
    chosen = "cpu" if options.max_vram else backend.select(options.device)
    with reporter.step("load_key", "key read"):
        key = ProvingKey.load(source(options.key), check="none")
    if isinstance(chosen, Device):
        limit = chosen.budget.stats().free
        plan = plan_for_gpu(key.record, limit)
    elif options.max_vram:
        plan = plan_for_gpu(key.record, options.max_vram)
    else:
        plan = plan_for_cpu(key.record)
    if options.json:
        print_json(_facts(plan) | {"device": plan.device})
    else:
        print_table(_rows(plan))
    return 0


def _facts(plan: MemoryPlan) -> dict[str, Any]:
    facts = asdict(plan)
    for name in ("witness_windows", "h_windows"):
        windows = getattr(plan, name)
        if windows is not None:
            facts[name] = {"width": windows.width, "windows": windows.windows, "multiples": windows.multiples}
    return facts


def _rows(plan: MemoryPlan) -> dict[str, str]:
    rows = {"host memory of the key": _mib(plan.host)}
    if plan.witness_windows is not None:
        w = plan.witness_windows
        rows |= {
            "pinned memory of a proof from an assignment": _mib(plan.pinned),
            "device memory": _mib(plan.device),
            "  of the key": _mib(plan.device_key),
            "  of the sums": _mib(plan.device_scratch),
            "  of vectors": _mib(plan.device_proof),
            "digits of a scalar": f"{w.windows} of {w.width} bits",
            "multiples of a point": str(w.multiples),
        }
    return rows


def _mib(n: int) -> str:
    return f"{n / (1 << 20):,.1f} MiB"
