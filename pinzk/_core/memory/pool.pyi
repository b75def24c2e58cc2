# SPDX-License-Identifier: Apache-2.0
"""Types of the pinned pool; it is documented in `pool.pyx`."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NoReturn, Self, SupportsIndex, final

from pinzk._core.memory.backing import PinnedBacking
from pinzk._core.memory.budget import MemoryBudget

@dataclass(frozen=True)
class PoolStats:
    free: int
    out: int
    pending: int
    dirty: int
    quarantined: int
    total: int
    peak: int
    allocations: int
    freed: int
    reuses: int
    fallbacks: int
    waits: int
    wiped: int
    by_tag: dict[str, int]

@dataclass(frozen=True)
class Outstanding:
    ptr: int
    nbytes: int
    kind: str
    used: bool

@final
class PinnedPool:
    def __new__(
        cls,
        budget: MemoryBudget | None = None,
        *,
        kind: str = "auto",
        wipe: bool = True,
        numa: int | str | None = None,
    ) -> Self: ...
    @staticmethod
    def default() -> PinnedPool: ...
    @property
    def budget(self) -> MemoryBudget: ...
    @property
    def kind(self) -> str: ...
    @property
    def wipe(self) -> bool: ...
    @property
    def numa(self) -> int | str | None: ...
    def checkout(
        self, nbytes: SupportsIndex, *, timeout: float | None = None, cancel: threading.Event | None = None
    ) -> PinnedBacking: ...
    def checkout_many(
        self,
        sizes: Iterable[SupportsIndex],
        *,
        timeout: float | None = None,
        cancel: threading.Event | None = None,
    ) -> list[PinnedBacking]: ...
    def register(self, array: Any) -> PinnedBacking: ...
    def warm(self, nbytes: SupportsIndex, count: int = 1, threads: int | None = None) -> None: ...
    def trim(self, target_bytes: SupportsIndex = 0) -> int: ...
    def settle(self, timeout: float | None = None) -> None: ...
    def outstanding(self) -> list[Outstanding]: ...
    def stats(self) -> PoolStats: ...
    def close(self) -> None: ...
    def __enter__(self) -> PinnedPool: ...
    def __exit__(self, *exc: object) -> None: ...
    def __reduce__(self) -> NoReturn: ...
