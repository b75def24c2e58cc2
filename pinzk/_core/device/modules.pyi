# SPDX-License-Identifier: Apache-2.0
"""Types of modules and launches; they are documented in `modules.pyx`."""

from collections.abc import Iterable
from typing import Any, NoReturn, SupportsIndex, TypeAlias, final

from pinzk._core.device.streams import Device

_Size: TypeAlias = int | tuple[int, ...]

@final
class Module:
    def __init__(self, device: Device, cubin: bytes) -> None: ...
    @property
    def device(self) -> Device: ...
    def function(self, name: str) -> Function: ...
    def __reduce__(self) -> NoReturn: ...

@final
class Function:
    def __init__(self, *args: object, **kwargs: object) -> None: ...
    @property
    def name(self) -> str: ...
    @property
    def module(self) -> Module: ...
    @property
    def widths(self) -> tuple[int, ...]: ...
    def __reduce__(self) -> NoReturn: ...

def launch(
    function: Function,
    grid: _Size,
    block: _Size,
    args: Iterable[Any],
    *,
    shared: SupportsIndex = 0,
    stream: Any,
) -> None: ...
