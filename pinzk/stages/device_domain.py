# SPDX-License-Identifier: Apache-2.0
"""A domain's transforms on one GPU for arrays of every kind, in natural order, answered in kind.

An answer is made by three kernels' worth of work over `DeviceNtt`: the argument is read once, permuted into the answer; a
shift is a product with powers; then DIT in place.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

import numpy as np

from .. import backend
from .._core.device import Device, DeviceVec, Stream, launch, view
from .._core.memory import PinnedPool, PinnedVec
from ..curves import Curve, Words
from .arrays import check_rows, check_vector, expected
from .device_load import copy, load
from .device_ntt import DeviceNtt

_KEPT = 8  # tables of shifts that are kept


class DeviceDomain:
    """Transforms of n = 2**log_n elements with the root `omega`. Safe to use from several threads, which take turns.

    Parameters
    ----------
    curve : Curve
    log_n : int
    omega : int
        Primitive n-th root, canonical.
    device : Device
    """

    def __init__(self, curve: Curve, log_n: int, omega: int, device: Device) -> None:
        self._fr, self._log_n, self._size, self._device = curve.fr, log_n, 1 << log_n, device
        self._ntt = DeviceNtt(curve, log_n, omega, device)
        self._scale_kernel = backend.load("vec", curve.name, device).function("vec_scale_powers")
        self._stream = Stream(device)  # of all work here, so that tables are ready for whoever comes next
        self._lock = threading.Lock()
        self._powers: OrderedDict[tuple[int, int], tuple[DeviceVec, DeviceVec]] = OrderedDict()

    def transform(self, v: Any, shift: int, *, inverse: bool, stream: Any = None) -> Any:
        """`coset_ntt` or `coset_intt` of `Domain`; a shift of 1 is none."""
        self._stream.handle  # noqa: B018  a forked child hears so before it waits for a lock that nobody holds any more
        if isinstance(v, np.ndarray | PinnedVec):
            if stream is not None:
                raise ValueError(
                    "stream is for device arrays: host arrays are answered when the answer is there"
                )
            if isinstance(v, np.ndarray):
                check_rows(v, self._size)
                there = self._upload(v.reshape(-1, 4))
                with self._on_host(there, shift, inverse, PinnedPool.default()) as answer:
                    return np.array(answer.borrow().numpy()).reshape(v.shape)
            check_vector(v, self._fr, self._size)
            there = DeviceVec(self._fr, len(v), self._device)
            there.upload(v, self._stream)
            return self._on_host(there, shift, inverse, v.pool)
        theirs = None if stream is None else self._user_stream(stream)
        with self._lock:
            if theirs is not None:
                self._stream.wait(theirs.record())
            if isinstance(v, DeviceVec):
                check_vector(v, self._fr, self._size)
                if v.device != self._device:
                    raise ValueError(
                        f"the vector is on {backend.name_of(v.device)}, the domain on {backend.name_of(self._device)}"
                    )
                for event in v.events():
                    self._stream.wait(event)
                out = self._enqueue(v, shift, inverse)
            else:
                out = self._of_foreign(v, shift, inverse)
            done = self._stream.record()
        if theirs is None:
            done.synchronize()
        else:
            theirs.wait(done)
        return out

    def _upload(self, rows: Words) -> DeviceVec:
        out = DeviceVec(self._fr, len(rows), self._device)
        load(out, len(rows), copy(rows), self._stream)
        return out

    def _on_host(self, v: DeviceVec, shift: int, inverse: bool, pool: PinnedPool) -> PinnedVec:
        out = PinnedVec(self._fr, len(v), pool=pool)
        with self._lock:
            answer = self._enqueue(v, shift, inverse)
            v.release()
            answer.download(out, self._stream)
            answer.release()
            done = self._stream.record()
        done.synchronize()
        return out

    def _of_foreign(self, v: Any, shift: int, inverse: bool) -> DeviceVec:
        if not hasattr(v, "__dlpack__") and not hasattr(v, "__cuda_array_interface__"):
            raise expected(self._size, v)
        array, shape = view(self._fr, v, self._device, self._stream)
        with array:
            if len(shape) not in (2, 3) or shape[-2] != self._size:
                raise expected(self._size, f"one of shape {shape}")
            return self._enqueue(array, shift, inverse)

    def _enqueue(self, v: DeviceVec, shift: int, inverse: bool) -> DeviceVec:
        out = DeviceVec(self._fr, len(v), self._device)
        out.commit(len(v))
        if len(v):
            r = self._fr.modulus
            self._ntt.bit_reverse(out, v, self._stream)
            if not inverse and shift != 1:
                self._scale(out, shift, 1, reversed_order=True)
            self._ntt.dit(out, self._stream, inverse=inverse)
            if inverse:
                self._scale(out, pow(shift, -1, r), pow(self._size, -1, r), reversed_order=False)
        return out

    def _scale(self, v: DeviceVec, base: int, first: int, *, reversed_order: bool) -> None:
        # v_i *= first * base**i, i as the elements lie
        log_low = (self._log_n + 1) // 2
        tables = self._powers.pop((base, first), None)
        if tables is None:
            high = pow(base, 1 << log_low, self._fr.modulus)
            tables = (
                self._ntt.powers(base, first, self._stream, log_n=log_low),
                self._ntt.powers(high, 1, self._stream, log_n=self._log_n - log_low),
            )
        self._powers[base, first] = tables
        if len(self._powers) > _KEPT:
            for old in self._powers.popitem(last=False)[1]:
                old.release()
        args = (v, *tables, log_low, self._log_n, int(reversed_order), len(v))
        launch(self._scale_kernel, min(-(-len(v) // 256), 1 << 20), 256, args, stream=self._stream)

    def _user_stream(self, stream: Any) -> Stream:
        out = stream if isinstance(stream, Stream) else Stream(self._device, stream)
        if out.device != self._device:
            raise ValueError(
                f"the stream belongs to {backend.name_of(out.device)}, not to the domain's device"
            )
        return out
