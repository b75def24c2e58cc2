# SPDX-License-Identifier: Apache-2.0
"""`pinzk devices`: the GPUs of this machine, whether pinzk can use them, and where their kernels come from."""

from __future__ import annotations

import argparse
from collections import Counter
from dataclasses import asdict, dataclass
from typing import Any

from . import BLS12_381, BN254, Device, backend, kernels
from .cli_report import Reporter, print_json, print_result, print_table
from .errors import BackendUnavailable, DeviceError

COMPILE = "to be compiled"


@dataclass(frozen=True)
class Kernels:
    """Where the code of a unit comes from: "shipped", "cache" or "to be compiled"; seconds to find it."""

    unit: str
    origin: str
    seconds: float | None


@dataclass(frozen=True)
class Found:
    """A GPU. Memory in bytes, not known where the device cannot be used; `driver` is the CUDA version it is for."""

    index: int
    uuid: str
    name: str
    sm: int
    multiprocessors: int
    memory_total: int | None
    memory_free: int | None
    driver: str
    usable: bool
    why_not: str | None
    kernels: list[Kernels]


def add_arguments_devices(parser: argparse.ArgumentParser) -> None:
    """Arguments of `pinzk devices`."""
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run_devices(options: argparse.Namespace, reporter: Reporter) -> int:
    """Print the devices; none is an answer too, with the reason."""
    found, reason = look()
    if options.json:
        print_json({"devices": [asdict(device) for device in found], "reason": reason})
        return 0
    if not found:
        print_result(f"no devices: {reason}")
    for i, device in enumerate(found):
        if i:
            print_result("")
        print_table(_rows(device))
    return 0


def look() -> tuple[list[Found], str | None]:
    """The devices, looked at one by one; where there are none, why."""
    try:
        devices = Device.all()
    except DeviceError as error:
        return [], str(error)
    if not devices:
        return [], "the driver has none: look at nvidia-smi and CUDA_VISIBLE_DEVICES"
    return [_look_at(device) for device in devices], None


def architectures() -> list[int]:
    """Compute capability, 10 major + minor, of each GPU that is here."""
    try:
        return [device.sm for device in Device.all()]
    except DeviceError:
        return []


def driver() -> str:
    """The CUDA version that the driver is for."""
    return "CUDA {}.{}".format(*Device.driver_version())


def _look_at(device: Device) -> Found:
    why_not = backend.why_unusable(device)
    free: int | None = None
    total: int | None = None
    if why_not is None:
        try:
            free, total = device.memory()
        except DeviceError as error:
            why_not = str(error)
    return Found(
        index=device.index,
        uuid=device.uuid,
        name=device.name,
        sm=device.sm,
        multiprocessors=device.multiprocessors,
        memory_total=total,
        memory_free=free,
        driver=driver(),
        usable=why_not is None,
        why_not=why_not,
        kernels=_kernels(device.sm),
    )


def _kernels(sm: int) -> list[Kernels]:
    units = [unit for curve in (BLS12_381, BN254) for unit in kernels.default_units(curve.name)]
    try:
        there = [(unit, kernels.find(unit, sm)) for unit in units]
    except BackendUnavailable:  # which is why the device cannot be used
        return []
    return [
        Kernels(str(unit), *((code.origin, round(code.seconds, 4)) if code else (COMPILE, None)))
        for unit, code in there
    ]


def _rows(device: Found) -> dict[str, Any]:
    def gib(n: int | None) -> str:
        return "not known" if n is None else f"{n / 2**30:.1f} GiB"

    counts = Counter(k.origin for k in device.kernels)
    seconds = sum(k.seconds or 0 for k in device.kernels)
    origins = ", ".join(f"{n} {'in the cache' if o == 'cache' else o}" for o, n in counts.items())
    hint = " (run pinzk warmup)" if counts[COMPILE] else f" ({seconds:.2f} s to find)" if counts else ""
    return {
        f"cuda:{device.index}": device.name,
        "uuid": device.uuid,
        "architecture": f"sm_{device.sm}, {device.multiprocessors} multiprocessors",
        "memory": f"{gib(device.memory_free)} free of {gib(device.memory_total)}",
        "driver": device.driver,
        "usable": "yes" if device.usable else f"no: {device.why_not}",
        "kernels": (origins or "none") + hint,
    }
