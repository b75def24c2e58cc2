# SPDX-License-Identifier: Apache-2.0
"""Sizes of circuits seen before: the first synthesis teaches the second how much room to take."""

from __future__ import annotations

import threading
from typing import NamedTuple, Protocol


class Capacity(NamedTuple):
    """Sizes of an assignment before it is sealed."""

    constraints: int
    aux: int
    inputs: int


class _Sized(Protocol):
    @property
    def sizes(self) -> Capacity: ...


class CapacityHints:
    """Sizes by circuit.

    The names are the caller's; of several sizes for one name the larger wins, each for itself. Safe from any thread.
    """

    def __init__(self) -> None:
        self._sizes: dict[str, Capacity] = {}
        self._lock = threading.Lock()

    def learn(self, circuit_id: str, assignment: _Sized) -> None:
        """Remember the sizes of an assignment."""
        sizes = assignment.sizes
        with self._lock:
            known = self._sizes.get(circuit_id, sizes)
            self._sizes[circuit_id] = Capacity(*map(max, known, sizes))

    def get(self, circuit_id: str) -> Capacity | None:
        """The sizes known for a name, or None."""
        with self._lock:
            return self._sizes.get(circuit_id)


capacity_hints = CapacityHints()
