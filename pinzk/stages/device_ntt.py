# SPDX-License-Identifier: Apache-2.0
"""The transforms of one domain on one GPU: plans of passes, tables, launches (kernels in ``cuda/ntt.cu``, ``cuda/vec.cu``).

A transform of 2^k runs as passes of up to ten levels over the whole data. Between passes stands a table of twiddles, 64
bytes an element; factors c g^j of coefficients stand in the tables, too, and cost nothing there. docs/kernels.md, 3.
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

TILE_LOG = 10  # log2 of a tile's elements: one block, eight elements a thread
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


def steps(levels: int) -> list[int]:
    """Levels of a pass's radix-8 steps; only the first may be narrower."""
    return [(levels - 1) % 3 + 1] + [3] * ((levels - 1) // 3)


@dataclass(frozen=True)
class _Twist:
    """What stands in the tables of one transform: the root, and c g^j for coefficient j."""

    root: int
    shift: int
    scale: int


@dataclass(frozen=True)
class _Pass:
    """One pass without its data: what the kernel's struct ``Pass`` says, and the tables that it points to."""

    levels: int
    log_q: int
    layout: bytes  # from `step` on
    tables: list[DeviceVec]


@dataclass(frozen=True)
class _Launch:
    grid: int
    layout: bytes
    inner: bool


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
    passes : sequence of int, optional
        Levels of each pass, outermost first; `plan` by default.
    tile_log : int, optional
        log2 of the elements of a tile, at most `TILE_LOG`.

    Raises
    ------
    ValueError
        Passes that do not make up the transform, or that the tiles do not allow.
    """

    def __init__(
        self,
        curve: Curve,
        log_n: int,
        omega: int,
        device: Device,
        *,
        passes: Sequence[int] | None = None,
        tile_log: int | None = None,
    ) -> None:
        self.curve, self.log_n, self.omega, self.device = curve, log_n, omega, device
        self.size = 1 << log_n
        self._inverse = pow(omega, -1, curve.fr.modulus)
        self._modules = {name: backend.load(name, curve.name, device) for name in ("ntt", "vec")}
        self.tile_log = TILE_LOG if tile_log is None else tile_log
        self.passes = list(plan(log_n) if passes is None else passes) if log_n >= 3 else []
        _check(self.passes, log_n, self.tile_log)
        self._made: dict[_Twist, list[_Pass]] = {}

    def close(self) -> None:
        """Give the tables back. Idempotent; transforms make them again."""
        made, self._made = self._made, {}
        for passes in made.values():
            for p in passes:
                for table in p.tables:
                    table.release()

    # ---- transforms ----

    def dif(
        self, v: DeviceVec, stream: Stream, *, inverse: bool = False, shift: int = 1, scale: int = 1
    ) -> None:
        """Sums y_j = x_0 + x_1 w**j + x_2 w**2j + .., w = omega or its inverse, as scale * shift**j * y_j.

        Natural order in, bit-reversed out. From values on the coset g * w**-k to coefficients: inverse, with shift 1/g and
        scale 1/n.
        """
        twist = self._twist(inverse, shift, scale)
        if self.log_n < 3:
            self._small(v, twist, stream, forward=False)
            return
        for p in self._launches(v, twist, stream):
            self._tiles("ntt_dif", p, (v, p.layout, int(p.inner)), stream)

    def dit(
        self, v: DeviceVec, stream: Stream, *, inverse: bool = False, shift: int = 1, scale: int = 1
    ) -> None:
        """The sums of scale * shift**j * x_j * w**(j k): bit-reversed order in, natural out.

        From coefficients to values on the coset g * w**k: with shift g.
        """
        twist = self._twist(inverse, shift, scale)
        if self.log_n < 3:
            self._small(v, twist, stream, forward=True)
            return
        launches = self._launches(v, twist, stream)
        for p in reversed(launches):  # residues become canonical in the last launch
            self._tiles("ntt_dit", p, (v, p.layout, int(p is launches[0])), stream)

    def to_coset(self, v: DeviceVec, stream: Stream, *, shift: int, scale: int = 1) -> None:
        """From values on the domain to values on its coset: x_k = f(w**k) becomes scale * f(shift * w**k).

        Natural order in and out. The innermost passes there and back are one kernel.
        """
        n_inverse = pow(self.size, -1, self.curve.fr.modulus)
        back, forth = self._twist(True, 1, 1), self._twist(False, shift, scale * n_inverse)
        if self.log_n < 3:
            self._small(v, back, stream, forward=False)
            self._small(v, forth, stream, forward=True)
            return
        *down, bottom = self._launches(v, back, stream)
        *up, top = self._launches(v, forth, stream)
        for p in down:
            self._tiles("ntt_dif", p, (v, p.layout, 0), stream)
        self._tiles("ntt_middle", bottom, (v, bottom.layout, top.layout, int(not up)), stream)
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

    def _twist(self, inverse: bool, shift: int, scale: int) -> _Twist:
        r = self.curve.fr.modulus
        return _Twist(self._inverse if inverse else self.omega, shift % r, scale % r)

    def _launches(self, v: DeviceVec, twist: _Twist, stream: Stream) -> list[_Launch]:
        if len(v) % self.size:
            raise ValueError(f"{len(v)} elements are no whole number of vectors of {self.size}")
        if twist not in self._made:
            self._made[twist] = self._passes(twist, stream)
        out = []
        for p in self._made[twist]:
            columns = len(v) >> p.levels
            head = struct.pack("<iiiiQ", p.levels, self.tile_log, p.log_q, len(steps(p.levels)), len(v))
            out.append(
                _Launch(_ceil(columns, 1 << (self.tile_log - p.levels)), head + p.layout, p.log_q == 0)
            )
        return out

    def _passes(self, twist: _Twist, stream: Stream) -> list[_Pass]:
        """The passes of a transform, outermost first; tables are made on the device, the small ones here."""
        fr, out = self.curve.fr, []
        r = fr.modulus
        root, shift, rest, scale = twist.root, twist.shift, self.log_n, twist.scale
        w_8, half = pow(root, self.size >> 3, r), (r + 1) // 2
        back = pow(w_8, -1, r)
        roots = _fixed([w_8 * w_8 % r, (w_8 + back) * half % r, (w_8 - back) * half % r], r)
        for levels in self.passes:
            rest -= levels
            tables: list[DeviceVec] = []
            layout, size, g = b"", levels, shift
            row_root = pow(root, 1 << rest, r)  # of order 2^levels
            for i, b in enumerate(steps(levels)):
                last = i + 1 == len(steps(levels))
                first = 1 << (3 - b)  # slots of frequency zero
                if last and rest:  # behind the pass, with all of its shift
                    first = 0
                    tables.append(self._twiddles(root, shift, scale, levels, rest, stream))
                    scale = 1
                elif last and (shift, scale) == (1, 1):
                    first = 8
                else:
                    if last and scale != 1:
                        first = 0
                    twisted = (g, scale if last else 1) if rest == 0 else (1, 1)
                    tables.append(
                        self._step(pow(row_root, 1 << (levels - size), r), size, b, *twisted, stream)
                    )
                layout += struct.pack("<Qiiii", tables[-1].ptr if first < 8 else 0, size, b, first, 0)
                size -= b
                g = pow(g, 1 << b, r)
            layout += bytes(24 * (4 - len(steps(levels))))
            out.append(_Pass(levels, rest, layout + roots, tables))
            root, shift = pow(root, 1 << levels, r), pow(shift, 1 << levels, r)
        return out

    def _twiddles(
        self, root: int, shift: int, scale: int, levels: int, log_q: int, stream: Stream
    ) -> DeviceVec:
        # behind a pass of 2^levels rows and 2^log_q columns
        fr, n = self.curve.fr, 1 << (levels + log_q)
        out = DeviceVec("bytes", 64 * n, self.device)
        values = [scale, *_squares(root, levels + log_q, fr)[:-1], *_squares(shift, levels, fr)[:-1]]
        constants = self._upload(fr, fr.encode(values), stream)
        self._elements("ntt", "ntt_twiddles", n, (out, constants, levels, log_q, self.tile_log), stream)
        constants.release()
        return out

    def _step(self, root: int, size: int, levels: int, shift: int, scale: int, stream: Stream) -> DeviceVec:
        # behind a step of `levels` in sub-transforms of 2^size rows, `root` of that order: slot by slot, place by place
        r, places = self.curve.fr.modulus, 1 << (size - 3)
        power, twist = [1], [scale]
        for _ in range(1, 1 << size):
            power.append(power[-1] * root % r)
        for _ in range(1, 1 << levels):
            twist.append(twist[-1] * shift % r)
        values = []
        for slot in range(8):
            f = int(format(slot >> (3 - levels), f"0{levels}b")[::-1], 2)
            first = (slot & ((1 << (3 - levels)) - 1)) << (size - 3)
            values += [power[(first + t) * f] * twist[f] % r for t in range(places)] + [0] * (8 - places)
        # neighbours by eight, in rows of 16 bytes (`place` in ntt.cu)
        raw = np.frombuffer(_fixed(values, r), dtype=np.uint8).reshape(-1, 8, 4, 16).transpose(0, 2, 1, 3)
        return self._upload("bytes", np.ascontiguousarray(raw).reshape(-1), stream)

    # ---- launches ----

    def _upload(self, elem: Any, array: np.ndarray, stream: Stream) -> DeviceVec:
        out = DeviceVec(elem, len(array), self.device)
        pinned = PinnedVec.from_array(elem, array)
        out.upload(pinned, stream)
        pinned.release()
        return out

    def _tiles(self, kernel: str, p: _Launch, args: tuple[Any, ...], stream: Stream) -> None:
        function = self._modules["ntt"].function(kernel)
        launch(function, p.grid, 1 << (self.tile_log - 3), args, shared=32 << self.tile_log, stream=stream)

    def _elements(self, module: str, kernel: str, n: int, args: tuple[Any, ...], stream: Stream) -> None:
        launch(self._modules[module].function(kernel), _ceil(n, _BLOCK), _BLOCK, args, stream=stream)

    def _small(self, v: DeviceVec, twist: _Twist, stream: Stream, *, forward: bool) -> None:
        # n = 1, 2, 4
        r, fr = self.curve.fr.modulus, self.curve.fr
        factors = [twist.scale * pow(twist.shift, j, r) % r for j in range(self.size)]
        constants = self._upload(fr, fr.encode([twist.root, *factors]), stream)
        vectors = len(v) >> self.log_n
        self._elements("ntt", "ntt_small", vectors, (v, constants, self.log_n, int(forward), vectors), stream)
        constants.release()


def _check(passes: Sequence[int], log_n: int, tile_log: int) -> None:
    rest = log_n
    good = 6 <= tile_log <= TILE_LOG
    for levels in passes:
        rest -= levels
        # a tile of an outer pass lies in one block, and two threads at least read a row of it
        good &= levels >= 4 and levels + rest >= tile_log if rest else levels >= 3
        good &= levels <= tile_log
    if not good or (log_n >= 3 and rest):
        raise ValueError(
            f"passes of {list(passes)} levels in tiles of 2**{tile_log} elements are no transform of 2**{log_n}: levels add "
            f"up to log_n, are at least 4 (innermost 3) and at most tile_log, 6..{TILE_LOG}, and no tile spans two blocks"
        )


def _fixed(values: Sequence[int], r: int) -> bytes:
    # w and floor(w 2^256 / r), as Fixed in lazy.cuh
    return b"".join(w.to_bytes(32, "little") + ((w << 256) // r).to_bytes(32, "little") for w in values)


def _squares(base: int, count: int, fr: Field) -> list[int]:
    # base^(2^j), j <= count
    out = [base % fr.modulus]
    for _ in range(count):
        out.append(out[-1] ** 2 % fr.modulus)
    return out


def _ceil(a: int, b: int) -> int:
    return -(-a // b)
