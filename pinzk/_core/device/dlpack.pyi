# SPDX-License-Identifier: Apache-2.0
"""Types of what passes between libraries; they are documented in `dlpack.pyx`."""

from typing import Any, Literal

from pinzk._core.device.streams import Device
from pinzk._core.device.vectors import DeviceVec

def capsule_of(vec: DeviceVec, stream: int | None, max_version: Any, dl_device: Any, copy: Any) -> Any: ...
def view(
    elem: Any | Literal["bytes"], array: Any, device: Device, stream: Any
) -> tuple[DeviceVec, tuple[int, ...]]: ...
