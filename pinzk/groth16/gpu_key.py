# SPDX-License-Identifier: Apache-2.0
"""A proving key on a GPU: a point for every wire in each query, so that one sort of digits serves all; and multiples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._core.device import Device, DeviceVec, Stream
from ..curves import Group, Words
from ..formats.bellman import BellmanKey
from ..formats.zkey import Zkey
from ..stages.device_load import copy, load
from ..stages.device_quotient import bit_reversed
from ..stages.device_sort import Windows
from ..stages.device_tables import DeviceTables
from .plan import MemoryPlan

Mask = NDArray[np.bool_]
_BLOCK = 1 << 12  # wires whose points are counted at a time


class GpuKey:
    """The points of a key in device memory.

    Parameters
    ----------
    key : Zkey or BellmanKey
    plan : MemoryPlan
        How many multiples of each point there are to be.
    device : Device
    stream : Stream
        Of uploads and tables; the key is there for what follows on it.

    Attributes
    ----------
    l, h : DeviceVec
        Of all wires, infinity for the public ones; of the quotient's scalars in the order `DeviceQuotient` leaves them in.
    """

    def __init__(self, key: Zkey | BellmanKey, plan: MemoryPlan, device: Device, stream: Stream) -> None:
        assert plan.witness_windows is not None and plan.h_windows is not None
        self._key, self._device, self._stream = key, device, stream
        self._windows = plan.witness_windows
        self._tables = {g.number: DeviceTables(g, device) for g in (key.curve.g1, key.curve.g2)}
        n, g1 = key.n_vars, key.curve.g1
        private = np.arange(n) > key.n_public
        self.l = self._loaded(g1, n, _spread(key.c if isinstance(key, Zkey) else key.l, private))
        log_n = key.domain_size.bit_length() - 1
        fill = copy(key.h) if isinstance(key, Zkey) else _ordered(key.h, bit_reversed(log_n))
        self.h = self._loaded(g1, len(key.h), fill, plan.h_windows)
        self._masks: tuple[Mask, Mask] | None = None
        self._queries: tuple[DeviceVec, DeviceVec, DeviceVec] | None = None
        if isinstance(key, Zkey):  # a point for every wire
            self._queries = tuple(  # type: ignore[assignment]
                self._loaded(group, n, copy(points))
                for group, points in ((g1, key.a), (g1, key.b_1), (key.curve.g2, key.b_2))
            )

    def queries(self, in_a: Mask | None, in_b: Mask | None) -> tuple[DeviceVec, DeviceVec, DeviceVec]:
        """Points of A, and of B in both groups, for every wire.

        Parameters
        ----------
        in_a, in_b : ndarray of bool, shape (n_vars,)
            Which wires occur, for a bellman key: it does not say. Points are laid out when this is first known; the
            assignments of one circuit say the same.
        """
        key = self._key
        if isinstance(key, Zkey):
            assert self._queries is not None
            return self._queries
        assert in_a is not None and in_b is not None
        known = self._masks is not None and all(map(np.array_equal, self._masks, (in_a, in_b)))
        if not known:
            self._masks = self._queries = None  # the old points go before the new ones come
            n, g1, g2 = key.n_vars, key.curve.g1, key.curve.g2
            self._queries = (
                self._loaded(g1, n, _spread(key.a, in_a)),
                self._loaded(g1, n, _spread(key.b_1, in_b)),
                self._loaded(g2, n, _spread(key.b_2, in_b)),
            )
            self._masks = in_a, in_b
        assert self._queries is not None
        return self._queries

    def _loaded(
        self, group: Group, n: int, fill: Callable[[int, Words], None], windows: Windows | None = None
    ) -> DeviceVec:
        windows = windows or self._windows
        out = DeviceVec(group, n * windows.multiples, self._device)
        load(out, n, fill, self._stream)
        self._tables[group.number].extend(out, windows.spacing, windows.multiples, self._stream)
        return out


def _spread(points: Words, mask: Mask) -> Callable[[int, Words], None]:
    # rows for all wires: the next point where the mask says so, infinity elsewhere
    starts = np.arange(0, len(mask), _BLOCK)
    before = np.concatenate([[0], np.cumsum(np.add.reduceat(mask, starts, dtype=np.int64))])

    def fill(first: int, rows: Words) -> None:
        block = first // _BLOCK
        at = int(before[block]) + int(np.count_nonzero(mask[block * _BLOCK : first]))
        here = mask[first : first + len(rows)]
        rows[:] = 0
        rows[here] = points[at : at + int(np.count_nonzero(here))]

    return fill


def _ordered(points: Words, order: NDArray[np.int64]) -> Callable[[int, Words], None]:
    def fill(first: int, rows: Words) -> None:
        rows[:] = points[order[first : first + len(rows)]]

    return fill
