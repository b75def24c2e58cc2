# SPDX-License-Identifier: Apache-2.0
"""Devices, streams, vectors in device memory, modules and launches. The contract is told in `docs/memory.md`."""

from .dlpack import view
from .modules import Function, Module, launch
from .streams import Device, Event, Stream
from .vectors import DeviceVec

__all__ = ["Device", "DeviceVec", "Event", "Function", "Module", "Stream", "launch", "view"]
