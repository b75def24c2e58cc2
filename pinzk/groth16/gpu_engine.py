# SPDX-License-Identifier: Apache-2.0
"""The five sums of a proof on a GPU: the key stays there, and uploads run beside the kernels of the proof before.

uploads  | w | a ------ | b ------ | c ------ |                                (of the next proof)
sums     | sort w | B in G2 -------- | B | A | L | sort h | H |
quotient | a to coset | b to coset | h |
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from .. import backend
from .._core import cpu
from .._core.assignment import ProvingAssignment
from .._core.device import Device, DeviceVec, Event, Stream
from .._core.memory import PinnedPool
from ..curves import Words
from ..formats.bellman import BellmanKey
from ..formats.sparse import SparseRows
from ..formats.zkey import Zkey
from ..stages.device_load import Loader, copy
from ..stages.device_msm import DeviceMsm, PendingSum
from ..stages.device_quotient import DeviceQuotient, Parts, Rows
from ..stages.device_sort import DigitSorter
from ..stages.device_sparse import DeviceSparse, to_montgomery
from ..stages.ntt import Domain
from .constraints import R1cs
from .engine import Sums
from .gpu_key import GpuKey, Mask
from .keys import ProvingKey
from .plan import plan_for_gpu
from .work import Clock, views_dropped


class GpuEngine:
    """See `Engine`. Raises what `DeviceVec` raises where the key does not fit.

    Parameters
    ----------
    key : Zkey or BellmanKey
    gpu : Device
    pool : PinnedPool, optional
        For the chunks in which witnesses are uploaded.
    max_device : int, optional
        Bytes of device memory that may be used; by default what the device's budget has free.
    """

    fallible = True

    def __init__(
        self,
        key: Zkey | BellmanKey,
        gpu: Device,
        pool: PinnedPool | None = None,
        max_device: int | None = None,
    ) -> None:
        backend.prepare(key.curve.name, gpu)
        free = gpu.budget.stats().free
        self.plan = plan_for_gpu(key, free if max_device is None else min(free, max_device))
        w_windows, h_windows = self.plan.witness_windows, self.plan.h_windows
        assert w_windows is not None and h_windows is not None
        self.key, self.gpu, self.device = key, gpu, f"cuda:{gpu.index}"
        self.loader = Loader(key.curve.fr, pool=pool)
        curve, n, domain_size = key.curve, key.n_vars, key.domain_size
        self.uploads, self.stream, quotient_stream = (Stream(gpu) for _ in range(3))
        root = "snarkjs" if isinstance(key, Zkey) else "bellman"
        domain = Domain(curve, domain_size.bit_length() - 1, root=root, device="cpu")
        self.quotient = DeviceQuotient(domain, gpu, uploads=self.uploads, stream=quotient_stream)
        n_h = len(key.h)
        self.sort_w = DigitSorter(curve, w_windows, n, gpu, chunks=[n], stream=self.stream)
        self.sort_h = DigitSorter(curve, h_windows, n_h, gpu, chunks=[n_h], stream=self.stream)
        self.msm_1 = DeviceMsm(curve, curve.g1, w_windows, gpu, stream=self.stream)
        self.msm_2 = DeviceMsm(curve, curve.g2, w_windows, gpu, stream=self.stream)
        self.msm_h = DeviceMsm(curve, curve.g1, h_windows, gpu, stream=self.stream)
        self.points = GpuKey(key, self.plan, gpu, self.stream)
        self.making = threading.Lock()
        self.matrices: list[DeviceSparse] | None = None
        self.masks: tuple[Mask, Mask] | tuple[None, None] = None, None  # of the r1cs, once that is known

    def begin(self, assignment: ProvingAssignment, clock: Clock) -> GpuBegun:
        """Enqueue the uploads."""
        with views_dropped(), clock("upload"):
            begun = FromAssignment(self, assignment)
            assignment.release_abc()
        return begun

    def begin_witness(self, owner: ProvingKey, witness: Words, clock: Clock) -> GpuBegun:
        """Enqueue the upload of the witness; rows are evaluated on the device."""
        with clock("upload"):
            return FromWitness(self, witness, self._matrices(owner.r1cs))

    def _matrices(self, r1cs: R1cs | None) -> list[DeviceSparse]:
        # made for the first witness: assignments need none
        with self.making:
            if self.matrices is None:
                key, gpu, stream = self.key, self.gpu, self.uploads
                rows: tuple[SparseRows, ...]
                if isinstance(key, Zkey):
                    rows, inputs = (key.rows_a, key.rows_b), 0
                else:
                    assert r1cs is not None
                    rows, inputs = (r1cs.a, r1cs.b, r1cs.c), key.n_public + 1
                    self.masks = r1cs.occurs_in_a, r1cs.occurs_in_b
                self.matrices = [
                    DeviceSparse(
                        key.curve,
                        m.indptr,
                        m.indices,
                        m.values,
                        gpu,
                        stream,
                        identity=inputs if i == 0 else 0,
                    )
                    for i, m in enumerate(rows)
                ]
            return self.matrices

    def close(self) -> None:
        """What is on the device goes when the last proof under way lets go of this engine."""
        self.loader.close()


class GpuBegun(ABC):
    """See `Begun`: a proof whose vectors are on the device or on their way there."""

    public: list[int]
    masks: tuple[Mask, Mask] | tuple[None, None]
    canonical: bool  # the form of the wires on the device
    w_there: Event

    def __init__(self, engine: GpuEngine) -> None:
        self.engine, fr = engine, engine.key.curve.fr
        self.w = DeviceVec(fr, engine.key.n_vars, engine.gpu)

    @abstractmethod
    def rows(self) -> list[Rows]:
        """a, b and, for a bellman key, c, for the quotient's stream."""

    @abstractmethod
    def wires(self) -> Words:
        """See `Begun`."""

    @abstractmethod
    def release(self) -> None:
        """See `Begun`."""

    def sums(self, clock: Clock) -> Sums:
        """Kernels, while the device's lock is held, and what is left of each sum."""
        engine = self.engine
        marks: Parts = []
        with clock("device"), engine.gpu.lock:
            pending = self._enqueued(marks)
            for stream in (engine.stream, engine.quotient.stream):
                stream.synchronize()
        for name, begin, end in marks:
            clock.add(f"device_{name}", end.elapsed_ms(begin) / 1e3)
        with clock("buckets"):
            return Sums(**{name: p.finish() for name, p in pending.items()})

    def _enqueued(self, marks: Parts) -> dict[str, PendingSum]:
        engine, key, main = self.engine, self.engine.key, self.engine.stream
        a, b_1, b_2 = engine.points.queries(*self.masks)
        with _marked("quotient", engine.quotient.stream, marks):
            pipeline = engine.quotient.snarkjs if isinstance(key, Zkey) else engine.quotient.bellman
            h = pipeline(*self.rows())
        h_there = engine.quotient.stream.record()
        main.wait(self.w_there)
        with _marked("sort_witness", main, marks):
            digits = engine.sort_w.sort(self.w, canonical=self.canonical)
        pending = {}
        # the longest first: its tail overlaps the quotient
        for name, msm, points in (
            ("b_2", engine.msm_2, b_2),
            ("b_1", engine.msm_1, b_1),
            ("a", engine.msm_1, a),
            ("l", engine.msm_1, engine.points.l),
        ):
            with _marked(f"msm_{name}", main, marks):
                pending[name] = msm.start(points, digits)
        main.wait(h_there)
        with _marked("msm_h", main, marks):
            pending["h"] = engine.msm_h.start(engine.points.h, engine.sort_h.sort(h))
        h.release()
        self.w.release()
        return pending


@contextmanager
def _marked(name: str, stream: Stream, marks: Parts) -> Iterator[None]:
    begin = stream.record()
    yield
    marks.append((name, begin, stream.record()))


class FromAssignment(GpuBegun):
    """Vectors of an assignment, which is kept for `wires`; a, b and c may be given back."""

    canonical = False

    def __init__(self, engine: GpuEngine, assignment: ProvingAssignment) -> None:
        super().__init__(engine)
        key, self._assignment = engine.key, assignment
        inputs, aux = assignment.input_assignment, assignment.aux_assignment
        self.public = key.curve.fr.decode(inputs.borrow().numpy()[1:])
        self.masks = (None, None) if isinstance(key, Zkey) else _masks(assignment)
        self.w.upload(inputs, engine.uploads)
        self.w.upload(aux, engine.uploads, start=len(inputs))
        self.w_there = engine.uploads.record()
        upload = engine.quotient.upload
        with assignment._reading() as rows:
            if isinstance(key, Zkey):
                self._rows: list[Rows] = [upload(rows.a), upload(rows.b, vectors=2)]
            else:
                assert rows.c is not None
                self._rows = [upload(v) for v in (rows.a, rows.b, rows.c)]

    def rows(self) -> list[Rows]:
        """As they were uploaded."""
        return self._rows

    def wires(self) -> Words:
        """From the assignment."""
        fr = self.engine.key.curve.fr
        vecs = self._assignment.input_assignment, self._assignment.aux_assignment
        return np.concatenate([cpu.from_montgomery(fr, v.borrow().numpy()) for v in vecs])

    def release(self) -> None:
        """Give the assignment's memory back."""
        if self._assignment is not None:
            self._assignment.release()
            self._assignment = None  # type: ignore[assignment]


class FromWitness(GpuBegun):
    """A witness alone; its rows are evaluated on the device."""

    canonical = True

    def __init__(self, engine: GpuEngine, witness: Words, matrices: list[DeviceSparse]) -> None:
        super().__init__(engine)
        key, self._witness, self._matrices = engine.key, witness, matrices
        self.public = key.curve.fr.decode_canonical(witness[1 : key.n_public + 1])
        self.masks = engine.masks
        engine.loader.load(self.w, key.n_vars, copy(witness), engine.uploads)
        self.w_there = engine.uploads.record()

    def rows(self) -> list[Rows]:
        """Functions that enqueue the products."""
        stream = self.engine.quotient.stream
        stream.wait(self.w_there)
        w = to_montgomery(self.w, stream)  # goes when the last function does
        return [m.times(w) for m in self._matrices]

    def wires(self) -> Words:
        """As it was given."""
        return self._witness

    def release(self) -> None:
        """Nothing is left."""


def _masks(assignment: ProvingAssignment) -> tuple[Mask, Mask]:
    inputs = np.ones(len(assignment.input_assignment), dtype=bool)
    in_a = np.concatenate([inputs, assignment.a_aux.mask])
    return in_a, np.concatenate([assignment.b_input.mask, assignment.b_aux.mask])
