# SPDX-License-Identifier: Apache-2.0
"""Pinned host memory with owners: budget, pool, blocks, vectors. The contract is told in `docs/memory.md`."""

from .backing import Lease, PinnedBacking
from .budget import BudgetStats, MemoryBudget, Reservation
from .pool import Outstanding, PinnedPool, PoolStats
from .vec import PinnedVec

__all__ = [
    "BudgetStats",
    "Lease",
    "MemoryBudget",
    "Outstanding",
    "PinnedBacking",
    "PinnedPool",
    "PinnedVec",
    "PoolStats",
    "Reservation",
]
