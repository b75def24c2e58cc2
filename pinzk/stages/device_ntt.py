# SPDX-License-Identifier: Apache-2.0
"""The transforms of one domain on one GPU: plans of passes, tables, launches (kernels in ``cuda/ntt.cu``, ``cuda/vec.cu``).

A transform of 2^k runs as passes of up to ten levels over the whole data; each pass but the innermost has a table of
twiddles, in the order in which the data lie. docs/kernels.md, 3.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import backend
from .._core.device import Device, DeviceVec, Stream, launch
from .._core.memory import PinnedVec
from ..curves import Curve, Field

TILE_LOG = 10  # elements of a tile: one block of THREADS, eight elements each
THREADS = 128
_TILE_BYTES = 32 << TILE_LOG
_BLOCK = 256  # threads of a block of the kernels without tiles


def plan(log_n: int) -> list[int]:
    """Levels of each pass, outermost first: steps of three levels, spread evenly, of which only the first may be narrower.

    A pass costs a trip through memory, so passes are few; at most nine levels where columns lie apart, so that a tile
    holds two neighbours of each row.
    """
    if log_n <= TILE_LOG:
        return [log_n]
    steps = _ceil(log_n, 3)
    passes = _ceil(steps, 3)
    levels = [3 * (steps // passes + (i < steps % passes)) for i in range(passes)]
    levels[0] -= 3 * steps - log_n
    return levels


@dataclass(frozen=True)
class _Pass:
    """One launch: blocks, the kernel's struct ``Pass``, and whether columns are contiguous."""

    grid: int
    layout: bytes
    inner: bool


@dataclass(frozen=True)
class _Tables:
    """What the passes of one root read: powers for the steps, a step's constants, twiddles behind each outer pass."""

    row: DeviceVec
    step: DeviceVec
    twiddles: list[DeviceVec]


class DeviceNtt:
    """Transforms of n = 2**log_n elements with the root `omega`, in place in device memory, enqueued on a stream.

    Arguments are device vectors of the scalar field, Montgomery form: one vector of n elements or several, one behind the
    other. No method waits for the device. Tables are made at first use, on the stream of that call, and kept: two of
    64 n bytes for a transform there and back. Not for several threads at once.

    Parameters
    ----------
    curve : Curve
    log_n : int
        At least 0; the device's memory is the limit.
    omega : int
        Primitive n-th root, canonical.
    device : Device
    """

    def __init__(self, curve: Curve, log_n: int, omega: int, device: Device) -> None:
        self.curve, self.log_n, self.omega, self.device = curve, log_n, omega, device
        self.size = 1 << log_n
        self._inverse = pow(omega, -1, curve.fr.modulus)
        self._modules = {name: backend.load(name, curve.name, device) for name in ("ntt", "vec")}
        self._made: dict[int, _Tables] = {}

    def close(self) -> None:
        """Give the tables back. Idempotent; transforms make them again."""
        made, self._made = self._made, {}
        for tables in made.values():
            for vec in (tables.row, tables.step, *tables.twiddles):
                vec.release()

    # ---- transforms ----

    def dif(self, v: DeviceVec, stream: Stream, *, inverse: bool = False) -> None:
        """Sums x_j w**(j k), w = omega or its inverse: natural order in, bit-reversed out. Nothing is divided by n."""
        root = self._root(inverse)
        if self.log_n < 3:
            self._small(v, root, stream, reversed_in=False)
            return
        for p in self._passes(v, root, stream):
            self._tiles("ntt_dif_inner" if p.inner else "ntt_dif", p, (v, p.layout, int(p.inner)), stream)

    def dit(self, v: DeviceVec, stream: Stream, *, inverse: bool = False) -> None:
        """The same sums, bit-reversed order in, natural out."""
        root = self._root(inverse)
        if self.log_n < 3:
            self._small(v, root, stream, reversed_in=True)
            return
        passes = self._passes(v, root, stream)
        for p in reversed(passes):  # residues become canonical in the last launch
            self._tiles(
                "ntt_dit_inner" if p.inner else "ntt_dit", p, (v, p.layout, int(p is passes[0])), stream
            )

    def round_trip(self, v: DeviceVec, factors: DeviceVec, stream: Stream) -> None:
        """`dif` with 1/omega, a product with `factors` (in bit-reversed order), `dit` with omega.

        With factors shift**i / n: from values on the domain to values on its coset. The innermost passes and the product
        are one kernel.
        """
        if self.log_n < 3:
            self.dif(v, stream, inverse=True)
            self.scale(v, factors, stream)
            self.dit(v, stream)
            return
        *down, bottom = self._passes(v, self._root(True), stream)
        *up, top = self._passes(v, self._root(False), stream)
        for p in down:
            self._tiles("ntt_dif", p, (v, p.layout, 0), stream)
        self._tiles(
            "ntt_middle", bottom, (v, bottom.layout, top.layout, factors, self.size, int(not up)), stream
        )
        for p in reversed(up):
            self._tiles("ntt_dit", p, (v, p.layout, int(p is up[0])), stream)

    # ---- element by element ----

    def scale(self, v: DeviceVec, factors: DeviceVec, stream: Stream) -> None:
        """v_i *= factors_i in every vector of n."""
        self._elements("vec", "vec_scale", len(v), (v, factors, self.size, len(v)), stream)

    def multiply_subtract(
        self, out: DeviceVec, a: DeviceVec, b: DeviceVec, c: DeviceVec, stream: Stream
    ) -> None:
        """``out = a b - c``; `out` may be any of them."""
        self._elements("vec", "vec_mul_sub", len(a), (out, a, b, c, len(a)), stream)

    def multiply(self, out: DeviceVec, a: DeviceVec, b: DeviceVec, stream: Stream) -> None:
        """``out = a b``; `out` may be a or b."""
        self._elements("vec", "vec_mul", len(a), (out, a, b, len(a)), stream)

    def bit_reverse(self, out: DeviceVec, v: DeviceVec, stream: Stream) -> None:
        """``out = v`` with the index inside every vector of n bit-reversed; `out` is not v."""
        self._elements("vec", "vec_bit_reverse", len(v), (out, v, self.log_n, len(v)), stream)

    def powers(
        self, base: int, first: int, stream: Stream, *, reversed_order: bool = False, log_n: int | None = None
    ) -> DeviceVec:
        """A new vector of first * base**i, i < n or 2**log_n, natural or bit-reversed order."""
        fr, log_n = self.curve.fr, self.log_n if log_n is None else log_n
        out = DeviceVec(fr, 1 << log_n, self.device)
        out.commit(1 << log_n)
        constants = self._upload(fr, fr.encode([first, *_squares(base, log_n, fr)]), stream)
        self._elements("vec", "vec_powers", 1 << log_n, (out, constants, log_n, int(reversed_order)), stream)
        constants.release()
        return out

    # ---- plans and tables ----

    def _root(self, inverse: bool) -> int:
        return self._inverse if inverse else self.omega

    def _passes(self, v: DeviceVec, root: int, stream: Stream) -> list[_Pass]:
        if len(v) % self.size:
            raise ValueError(f"{len(v)} elements are no whole number of vectors of {self.size}")
        tables, rest, out = self._tables(root, stream), self.log_n, []
        for i, levels in enumerate(plan(self.log_n)):
            rest -= levels
            columns = len(v) >> levels
            twiddles = tables.twiddles[i].ptr if rest else 0
            layout = struct.pack("<iiQQQQ", levels, rest, columns, tables.row.ptr, tables.step.ptr, twiddles)
            out.append(_Pass(_ceil(columns, 1 << (TILE_LOG - levels)), layout, rest == 0))
        return out

    def _tables(self, root: int, stream: Stream) -> _Tables:
        if root not in self._made:
            r, rest, twiddles = self.curve.fr.modulus, self.log_n, []
            for levels in plan(self.log_n)[:-1]:
                twiddles.append(
                    self._twiddles(pow(root, self.size >> rest, r), levels, rest - levels, stream)
                )
                rest -= levels
            stride = 1 << max(TILE_LOG - self.log_n, 0)  # a small domain reads every stride-th row only
            power = pow(root, max(self.size >> TILE_LOG, 1), r)
            row = [pow(power, j // stride, r) for j in range(1 << TILE_LOG)]
            w_8, half = pow(root, self.size >> 3, r), (r + 1) // 2
            back = pow(w_8, -1, r)
            step = [w_8 * w_8 % r, (w_8 + back) * half % r, (w_8 - back) * half % r]
            self._made[root] = _Tables(self._fixed(row, stream), self._fixed(step, stream), twiddles)
        return self._made[root]

    def _twiddles(self, root: int, levels: int, log_q: int, stream: Stream) -> DeviceVec:
        fr, n = self.curve.fr, 1 << (levels + log_q)
        out = DeviceVec("bytes", 64 * n, self.device)
        squares = self._upload(fr, fr.encode(_squares(root, levels + log_q, fr)), stream)
        self._elements("ntt", "ntt_twiddles", n, (out, squares, levels, log_q, n), stream)
        squares.release()
        return out

    def _fixed(self, values: Sequence[int], stream: Stream) -> DeviceVec:
        # w and floor(w 2^256 / r), as Fixed in lazy.cuh
        r = self.curve.fr.modulus
        raw = b"".join(w.to_bytes(32, "little") + ((w << 256) // r).to_bytes(32, "little") for w in values)
        return self._upload("bytes", np.frombuffer(raw, dtype=np.uint8), stream)

    # ---- launches ----

    def _upload(self, elem: Any, array: np.ndarray, stream: Stream) -> DeviceVec:
        out = DeviceVec(elem, len(array), self.device)
        pinned = PinnedVec.from_array(elem, array)
        out.upload(pinned, stream)
        pinned.release()
        return out

    def _tiles(self, kernel: str, p: _Pass, args: tuple[Any, ...], stream: Stream) -> None:
        function = self._modules["ntt"].function(kernel)
        launch(function, p.grid, THREADS, args, shared=_TILE_BYTES, stream=stream)

    def _elements(self, module: str, kernel: str, n: int, args: tuple[Any, ...], stream: Stream) -> None:
        launch(self._modules[module].function(kernel), _ceil(n, _BLOCK), _BLOCK, args, stream=stream)

    def _small(self, v: DeviceVec, root: int, stream: Stream, *, reversed_in: bool) -> None:
        # n = 1, 2, 4
        constant = self._upload(self.curve.fr, self.curve.fr.encode([root]), stream)
        vectors = len(v) >> self.log_n
        args = (v, constant, self.log_n, int(reversed_in), int(not reversed_in), vectors)
        self._elements("ntt", "ntt_small", vectors, args, stream)
        constant.release()


def _squares(base: int, count: int, fr: Field) -> list[int]:
    # base^(2^j), j <= count
    out = [base % fr.modulus]
    for _ in range(count):
        out.append(out[-1] ** 2 % fr.modulus)
    return out


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
