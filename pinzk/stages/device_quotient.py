# SPDX-License-Identifier: Apache-2.0
"""The quotient on one GPU: uploads, transforms and products on two streams, ordered by events. docs/kernels.md, 4.

    uploads  | a ---------- | b ---------- | c ---------- |
    compute                 | a to coset   | b to coset, a b, back | c, a b - c |      (a bellman key)

Scalars come out canonical, as the digits of an MSM want them, without a conversion: the factors of the transforms carry
2^-128, so that the Montgomery product of two results drops the 2^256.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from .. import backend
from .._core.device import Device, DeviceVec, Event, Stream, launch
from .._core.memory import PinnedVec
from ..curves import Field
from .device_ntt import DeviceNtt
from .ntt import Domain


@dataclass(frozen=True)
class Uploaded:
    """Evaluations on the device or on their way there: `rows` of them in `vec`, which has room for whole vectors."""

    vec: DeviceVec
    rows: int
    there: Event


# where evaluations come from: pinned memory, an upload begun before, or a function that enqueues kernels which write them
# into a vector from element `first` on, on the stream, and tells how many there are
Rows: TypeAlias = PinnedVec | Uploaded | Callable[[DeviceVec, int, Stream], int]
Parts: TypeAlias = list[tuple[str, Event, Event]]  # name, begin, end

_BLOCK = 256


def bit_reversed(log_n: int) -> NDArray[np.int64]:
    """Which coefficient stands at each of the n - 1 positions of `DeviceQuotient.bellman`'s result.

    A key's H points, loaded in this order, fit it: ``points[bit_reversed(log_n)]``.
    """
    order = np.zeros(1, np.int64)
    for _ in range(log_n):
        order = np.concatenate([2 * order, 2 * order + 1])
    return order[:-1]  # the last is n - 1


class DeviceQuotient:
    """Scalars of the H query from evaluations in pinned memory, left in device memory.

    Evaluations are vectors of at most n scalars, Montgomery form, natural order; the rest is zeros, written on the device.
    Each method returns when its work is enqueued: pinned vectors may then be released or moved at once (their blocks come
    back when they are read) and changed when `PinnedVec.in_flight` is false. The result is ready for work behind it on
    `stream`; its owner releases it. Calls may follow one another without waiting: uploads of the next run beside
    the kernels of the one before. Tables are made at first use and kept. Not for several threads at once.

    ========  =========  ============================  ===============================================
    pipeline  transforms elements                      order
    ========  =========  ============================  ===============================================
    snarkjs   6          n values on the odd coset     natural
    bellman   6          n - 1 coefficients            bit-reversed in log_n bits; index n - 1, the last
                                                       in both orders, is zero and left out
    prepared  4          n values on the coset         natural
    ========  =========  ============================  ===============================================

    Parameters
    ----------
    domain : Domain
        Size, root and coset.
    device : Device
    uploads, stream : Stream, optional
        For the copies and for the kernels; new ones by default.

    Attributes
    ----------
    uploads, stream : Stream
    """

    def __init__(
        self,
        domain: Domain,
        device: Device,
        *,
        uploads: Stream | None = None,
        stream: Stream | None = None,
    ) -> None:
        self._fr: Field = domain.curve.fr
        self._n, self._shift = domain.size, domain.default_shift
        self.device = device
        self.uploads = Stream(device) if uploads is None else uploads
        self.stream = Stream(device) if stream is None else stream
        self._ntt = DeviceNtt(domain.curve, domain.log_n, domain.omega, device)
        self._vec = backend.load("vec", domain.curve.name, device)
        self._half_r = pow(2, -128, self._fr.modulus)
        self._made: dict[str, DeviceVec] = {}

    def close(self) -> None:
        """Give the tables back. Idempotent; the next quotient makes them again."""
        made, self._made = self._made, {}
        for vec in made.values():
            vec.release()
        self._ntt.close()

    def upload(
        self, rows: PinnedVec, vectors: int = 1, *, name: str = "", parts: Parts | None = None
    ) -> Uploaded:
        """Begin the upload of evaluations now, for a pipeline that is called later; it takes what this returns.

        Parameters
        ----------
        rows : PinnedVec
        vectors : int
            1; 2 for b of `snarkjs`.
        name, parts : optional
            As the pipelines'.
        """
        self._check((name or "rows", rows, vectors))
        vec = self._room(vectors)
        with self._part(f"upload of {name}", parts, self.uploads):
            vec.upload(rows, self.uploads)
        return Uploaded(vec, len(rows), self.uploads.record())

    # ---- the pipelines ----

    def snarkjs(self, a: Rows, b: Rows, *, parts: Parts | None = None) -> DeviceVec:
        """Scalars for a snarkjs key: a b - c on the odd coset, where c is a b on the domain.

        Parameters
        ----------
        a, b : PinnedVec or function
            Evaluations; a function enqueues what writes them on the device.
        parts : list, optional
            Receives a name and two events for every part.

        Returns
        -------
        DeviceVec
            n scalars, canonical, natural order.

        Raises
        ------
        TypeError, ValueError
            Not such vectors, another field's, too long. Nothing was enqueued.
        BorrowError, UseAfterMove, UseAfterRelease
            As `DeviceVec.upload`.
        """
        self._check(("a", a, 1), ("b", b, 2))
        n = self._n
        first, a_there = self._fill("a", a, 1, parts)
        rest, b_there = self._fill("b", b, 2, parts)  # c behind b: transformed by the same launches
        self._wait(a_there)
        with self._part("transforms of a", parts):
            self._elements("vec_times", n, (rest, n), first, self._fr.encode([self._half_r]).tobytes())
            self._to_coset(first)
        self._wait(b_there)
        with self._part("transforms of b, c", parts):
            self._elements("vec_mul", n, (rest, n), (rest, n), rest)
            self._to_coset(rest)
        with self._part("a b - c", parts):
            self._elements("vec_mul_sub", n, first, first, rest, (rest, n))
        rest.release()
        return first

    def bellman(self, a: Rows, b: Rows, c: Rows, *, parts: Parts | None = None) -> DeviceVec:
        """Scalars for a bellman key: the coefficients of (a b - c) / Z.

        Six transforms: c is subtracted as a polynomial, so that it never goes to the coset. It comes last, because the
        least is left to do when it is there.

        Parameters
        ----------
        a, b, c : PinnedVec or function
        parts : list, optional

        Returns
        -------
        DeviceVec
            n - 1 scalars, canonical, in bit-reversed order of log_n bits.

        Raises
        ------
        TypeError, ValueError, BorrowError, UseAfterMove, UseAfterRelease
            As `snarkjs`.
        """
        self._check(("a", a, 1), ("b", b, 1), ("c", c, 1))
        n, ntt, stream = self._n, self._ntt, self.stream
        first, a_there = self._fill("a", a, 1, parts)
        second, b_there = self._fill("b", b, 1, parts)
        third, c_there = self._fill("c", c, 1, parts)
        self._wait(a_there)
        with self._part("transforms of a", parts):
            self._to_coset(first)
        self._wait(b_there)
        with self._part("transforms of b", parts):
            self._to_coset(second)
        with self._part("a b and back", parts):
            self._elements("vec_mul", n, first, first, second)
            ntt.dif(first, stream, inverse=True)
        second.release()
        self._wait(c_there)
        with self._part("transform of c", parts):
            ntt.dif(third, stream, inverse=True)
        with self._part("a b - c", parts):
            scale = self._fr.encode_canonical([self._scale_back]).tobytes()  # drops the R of c
            self._elements("vec_mul_sub_times", n, first, first, self._from_coset, third, scale)
        third.release()
        first.truncate(n - 1)
        return first

    def prepared(self, a: Rows, b: Rows, *, parts: Parts | None = None) -> DeviceVec:
        """Scalars for a prepared key (`quotient.prepared`): a b on the coset.

        Parameters
        ----------
        a, b : PinnedVec or function
        parts : list, optional

        Returns
        -------
        DeviceVec
            n scalars, canonical, natural order.

        Raises
        ------
        TypeError, ValueError, BorrowError, UseAfterMove, UseAfterRelease
            As `snarkjs`.
        """
        self._check(("a", a, 1), ("b", b, 1))
        first, a_there = self._fill("a", a, 1, parts)
        second, b_there = self._fill("b", b, 1, parts)
        self._wait(a_there)
        with self._part("transforms of a", parts):
            self._to_coset(first)
        self._wait(b_there)
        with self._part("transforms of b", parts):
            self._to_coset(second)
        with self._part("a b", parts):
            self._elements("vec_mul", self._n, first, first, second)
        second.release()
        return first

    def _to_coset(self, v: DeviceVec) -> None:
        # 2^-128 times the values there
        self._ntt.to_coset(v, self.stream, shift=self._shift, scale=self._half_r)

    # ---- tables ----

    @property
    def _from_coset(self) -> DeviceVec:
        # shift^-i / (n z), bit-reversed order
        return self._powers("from", pow(self._shift, -1, self._fr.modulus), self._scale_back)

    @property
    def _scale_back(self) -> int:
        # 1 / (n z); Z = x^n - 1 has one value z on the whole coset
        r = self._fr.modulus
        return pow(self._n * (pow(self._shift, self._n, r) - 1), -1, r)

    def _powers(self, name: str, base: int, first: int) -> DeviceVec:
        if name not in self._made:
            self._made[name] = self._ntt.powers(base, first, self.stream, reversed_order=True)
        return self._made[name]

    # ---- helpers ----

    def _check(self, *given: tuple[str, Rows, int]) -> None:
        taken: set[int] = set()
        for name, x, vectors in given:
            if not isinstance(x, PinnedVec | Uploaded):
                if not callable(x):
                    raise TypeError(
                        f"{name} must be a PinnedVec, an Uploaded or a function that writes rows, not {type(x).__name__}"
                    )
                continue
            vec, rows = (x, len(x)) if isinstance(x, PinnedVec) else (x.vec, x.rows)
            if vec.elem != self._fr:
                elem = vec.elem if isinstance(vec.elem, str) else vec.elem.name
                raise TypeError(f"{name} holds elements of {elem}, the quotient is over {self._fr.name}")
            if rows > self._n:
                raise ValueError(f"{name} has {rows} rows, more than the domain's {self._n}")
            if isinstance(x, Uploaded):  # it is overwritten
                if len(vec) != vectors * self._n:
                    raise ValueError(
                        f"{name} was uploaded to {len(vec)} elements, not {vectors} vectors of {self._n}"
                    )
                if id(vec) in taken:
                    raise ValueError(f"{name} is the upload of another argument: upload it again")
                taken.add(id(vec))

    def _room(self, vectors: int) -> DeviceVec:
        v = DeviceVec(self._fr, vectors * self._n, self.device)
        v.commit(vectors * self._n)
        return v

    def _fill(
        self, name: str, rows: Rows, vectors: int, parts: Parts | None
    ) -> tuple[DeviceVec, Event | None]:
        # rows in the first n elements, zeros behind them; the event is that of an upload
        if isinstance(rows, PinnedVec):
            rows = self.upload(rows, vectors, name=name, parts=parts)
        if isinstance(rows, Uploaded):
            v, m, there = rows.vec, rows.rows, rows.there
        else:
            v, there = self._room(vectors), None
            with self._part(f"rows of {name}", parts):
                m = rows(v, 0, self.stream)
            if not 0 <= m <= self._n:
                raise ValueError(f"{name}: {m} rows were written, the domain has {self._n}")
        if m < self._n:
            self._elements("vec_zero", self._n - m, (v, m))
        return v, there

    def _wait(self, event: Event | None) -> None:
        if event is not None:
            self.stream.wait(event)

    def _elements(self, kernel: str, n: int, *args: object) -> None:
        launch(self._vec.function(kernel), -(-n // _BLOCK), _BLOCK, (*args, n), stream=self.stream)

    @contextmanager
    def _part(self, name: str, parts: Parts | None, stream: Stream | None = None) -> Iterator[None]:
        if parts is None:
            yield
            return
        stream = self.stream if stream is None else stream
        begin = stream.record()
        yield
        parts.append((name, begin, stream.record()))
