# SPDX-License-Identifier: Apache-2.0
"""Set-up of the tests that run on the fake driver; `tests/test_fakecuda.py` starts them in a process of their own."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

if os.environ.get("PINZK_FAKE_CUDA"):
    from fake_cuda import FAKE, Fake
else:
    collect_ignore_glob = ["test_*.py"]

from pinzk._core.memory import MemoryBudget, PinnedPool


@pytest.fixture
def fake() -> Iterator[Fake]:
    """The fake driver, reset; nothing page-locked may be left over."""
    FAKE.reset()
    FAKE.forget_ranges()
    yield FAKE
    FAKE.reset()


@pytest.fixture
def pool(fake: Fake) -> Iterator[Callable[..., PinnedPool]]:
    """Make pools; afterwards they are closed, and the books and the driver agree that nothing leaked."""
    pools: list[PinnedPool] = []

    def make(total: int = 1 << 30, **options: Any) -> PinnedPool:
        options.setdefault("kind", "pinned")
        pools.append(PinnedPool(MemoryBudget(total), **options))
        return pools[-1]

    yield make
    fake.reset()
    gc.collect()
    for p in pools:
        p.settle(timeout=10)
        p.close()
        assert not p.outstanding(), "the test left owners behind"
        assert p.stats().total == p.stats().quarantined == p.budget.stats().used
    assert fake.live_bytes() == sum(p.stats().quarantined for p in pools)
    fake.forget_ranges()
