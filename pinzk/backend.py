# SPDX-License-Identifier: Apache-2.0
"""Which backend does the work: reads the one selector `device=` and says why the CPU was taken."""

from __future__ import annotations

import logging
import os
import re

from ._core.device import Device, Module
from .errors import BackendUnavailable

log = logging.getLogger(__name__)

_CUDA = re.compile(r"cuda(:[0-9]+)?|GPU-[0-9a-fA-F-]+", re.ASCII)
_said: set[str] = set()


def select(device: str | None = "auto") -> str:
    """Name of the backend for a `device=` argument.

    Parameters
    ----------
    device : str
        ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:N"`` or ``"GPU-<uuid>"``. ``"auto"`` asks ``PINZK_DEVICE`` and, where
        that says nothing else, takes the CPU with one log line that says why.

    Returns
    -------
    str
        ``"cpu"``.

    Raises
    ------
    ValueError
        Not a device; the message names the argument or the variable.
    BackendUnavailable
        A GPU was asked for by name and cannot be used.
    """
    origin = "device"
    if device is None or device == "auto":
        device = os.environ.get("PINZK_DEVICE", "").strip() or "auto"
        origin = "PINZK_DEVICE"
    if device == "auto":
        _say_once("device auto: this build has no CUDA backend, using the CPU")
        return "cpu"
    if device == "cpu":
        return "cpu"
    if isinstance(device, str) and _CUDA.fullmatch(device):
        raise BackendUnavailable(
            f"{origin} asks for {device!r}, but this build has no CUDA backend: use 'cpu' or 'auto'"
        )
    raise ValueError(f"{origin} must be auto, cpu, cuda, cuda:N or GPU-<uuid>, not {device!r}")


def load(name: str, curve: str, device: Device) -> Module:
    """The kernels of one `.cu` file for a curve, built for the device where need be, and loaded.

    Loading waits for running kernels: do it before work starts.
    """
    from . import kernels  # a process without a GPU has no use for it

    return kernels.load(kernels.Unit(name, curve), device)


def _say_once(line: str) -> None:
    if line not in _said:
        _said.add(line)
        log.info(line)
