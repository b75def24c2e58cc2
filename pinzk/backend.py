# SPDX-License-Identifier: Apache-2.0
"""Which backend does the work: reads the one selector `device=`, and says why the CPU was taken."""

from __future__ import annotations

import logging
import os
import re
import threading
from typing import Literal, TypeAlias

from ._core.device import Device, Module, Stream
from .errors import BackendUnavailable, DeviceError

log = logging.getLogger(__name__)

Backend: TypeAlias = Device | Literal["cpu"]  # itself a selector, so it can be handed on as `device=`

SELECTORS = re.compile(r"auto|cpu|cuda(:[0-9]{1,4})?|GPU-[0-9a-fA-F-]+", re.ASCII)
_said: set[str] = set()
_opened: set[Device] = set()
_auto: Backend | None = None
_lock = threading.RLock()


def _forget() -> None:
    global _auto, _lock
    _auto, _lock = None, threading.RLock()
    _opened.clear()


os.register_at_fork(after_in_child=_forget)


def select(device: str | Device = "auto") -> Backend:
    """The backend for a `device=` argument: ``"cpu"``, or a `Device` that was found usable.

    Parameters
    ----------
    device : str or Device
        ``"auto"``, ``"cpu"``, ``"cuda"`` (device 0), ``"cuda:N"``, ``"GPU-<uuid>"`` or a `Device`. ``"auto"`` asks
        ``PINZK_DEVICE`` and, where that says nothing else, takes the first usable CUDA device; if there is none, the CPU,
        with one log line that says why. It looks once in a process.

    Raises
    ------
    TypeError, ValueError
        Not a device; the message names the argument or the variable.
    BackendUnavailable
        A GPU was asked for by name and cannot be used: no driver, no such device, one that is too old, no code for it.
    ForkError
        A GPU was asked for in a child of a process that used one.
    DeviceError
        The driver refuses the device (another process holds it, its memory is full).
    """
    origin = "device"
    if isinstance(device, str) and device == "auto":
        device = os.environ.get("PINZK_DEVICE", "").strip() or "auto"
        origin = "PINZK_DEVICE"
    if not isinstance(device, str | Device):
        raise TypeError(f"{origin} must be a str or a Device, not {type(device).__name__}")
    if device == "cpu":
        return "cpu"
    if device == "auto":
        return _first_usable()
    if isinstance(device, str) and not SELECTORS.fullmatch(device):
        raise ValueError(f"{origin} must be auto, cpu, cuda, cuda:N or GPU-<uuid>, not {device!r}")
    try:
        found = Device(device)
        _open(found)
    except BackendUnavailable as error:
        reason = f"{origin} asks for {name_of(device)!r}: {error}"
        raise BackendUnavailable(reason, code=error.code, name=error.name, call=error.call) from None
    return found


def name_of(backend: str | Device) -> str:
    """``"cpu"`` or ``"cuda:N"``, for messages and stats."""
    return backend if isinstance(backend, str) else f"cuda:{backend.index}"


def why_unusable(device: Device) -> str | None:
    """Why pinzk cannot use that device; None if it can. Makes the device's context."""
    try:
        _open(device)
    except DeviceError as error:
        return str(error)
    return None


def load(name: str, curve: str, device: Device) -> Module:
    """The kernels of one `.cu` file for a curve, built for the device where need be, and loaded.

    Loading waits for running kernels: do it before work starts.
    """
    from . import kernels  # a process without a GPU has no use for it

    return kernels.load(kernels.Unit(name, curve), device)


def prepare(curve: str, device: Device) -> None:
    """Build all kernels that provers on a curve need, side by side; `load` finds them built then."""
    from . import kernels

    kernels.build_all(kernels.default_units(curve), device.sm)


def _first_usable() -> Backend:
    global _auto
    with _lock:
        if _auto is None:
            try:
                devices, reasons = Device.all(), []
            except DeviceError as error:
                devices, reasons = [], [str(error)]
            for device in devices:
                why = why_unusable(device)
                if why is None:
                    _auto = device
                    return device
                reasons.append(f"cuda:{device.index} {why}")
            _say_once(f"device auto: using the CPU: {'; '.join(reasons) or 'the driver has no device'}")
            _auto = "cpu"
        return _auto


def _open(device: Device) -> None:
    """Find out whether the device can be used: machine code or a compiler for it, and a context. Once in a process."""
    with _lock:
        if device not in _opened:
            from . import kernels

            kernels.find(kernels.Unit("vec", "bn254"), device.sm)
            Stream(device).close()
            _opened.add(device)


def _say_once(line: str) -> None:
    if line not in _said:
        _said.add(line)
        log.info(line)
