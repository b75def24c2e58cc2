# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Devices, streams, events, vectors in device memory, modules and launches.

Device memory has owners as pinned memory has (`docs/memory.md`). What is released is freed only when the host has seen the
work of every stream that used it complete, and freeing never waits for the device. Each call makes the device's primary
context current and leaves the caller's as it was; importing this module and `Device(...)` make none.
"""

import atexit
import re
import threading
import time

import numpy as np

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint64_t, uintptr_t

from pinzk._core cimport driver
from pinzk._core.memory.backing cimport LIVE, RELEASED, PinnedBacking, stream_handle
from pinzk._core.memory.budget cimport MemoryBudget, Reservation, check_wait, nbytes_of
from pinzk._core.memory.vec cimport PinnedVec
from pinzk.errors import BackendUnavailable, BorrowError, DeviceError, ForkError, UseAfterRelease, WaitTimeout

cdef enum:
    MAX_ARGUMENTS = 64

cdef bint _exiting = False
cdef dict _homes = {}  # ordinal -> _Home; a device has one budget and one lock in a process


def _at_exit():
    global _exiting
    _exiting = True  # from here on destructors make no driver call


atexit.register(_at_exit)


# ---- devices ----

@cython.final
cdef class _Home:
    """What the process keeps for one device."""

    cdef int open(self) except -1:
        """Make context, stream and pool, once."""
        cdef driver.Context context
        cdef int code
        driver.ensure()
        if self.context != NULL:
            return 0
        with self.guard:
            if self.context != NULL:
                return 0
            context = driver.primary_context(self.ordinal)
            if self.stream == NULL:
                with nogil:
                    code = driver.stream_create(context, &self.stream)
                driver.check(code, "cuStreamCreate")
            with nogil:
                code = driver.memory_pool_create(context, self.ordinal, &self.pool)
            driver.check(code, "cuMemPoolCreate")
            self.context = context
        return 0

    cdef int sweep(self) except -1:
        """Free what was released and is no longer in use. Waits for nothing."""
        cdef uint64_t pointer
        cdef int code
        cdef Event event
        cdef list batch
        if not self.pending:
            return 0
        with self.guard:
            if self.sweeping:
                return 0
            self.sweeping = True
            try:
                batch, self.pending = self.pending, []
                for entry in batch:
                    code = driver.SUCCESS
                    for event in entry[2]:
                        with nogil:
                            code = driver.event_query(event.event)
                        if code != driver.SUCCESS:
                            break
                    if code == driver.SUCCESS:
                        pointer = entry[0]
                        with nogil:
                            code = driver.device_free(self.context, self.stream, pointer)
                    if code == driver.SUCCESS:
                        (<Reservation>entry[1]).release()
                    elif code == driver.NOT_READY:
                        self.pending.append(entry)
                    else:
                        self.lost.append(entry)
            finally:
                self.sweeping = False
        return 0

    cdef bint wait_oldest(self) except -1:
        """Wait until what was released first is out of use; False if there is nothing to wait for."""
        cdef Event event
        cdef int code
        cdef list pending = self.pending
        if not pending:
            return False
        for event in pending[0][2]:
            with nogil:
                code = driver.event_synchronize(event.event)
            driver.check(code, "cuEventSynchronize")
        return True

    cdef Reservation reserve(self, size_t nbytes, str tag):
        """Device bytes; waits for released memory that is still in use, never for memory that has an owner."""
        while True:
            self.sweep()
            held = self.budget.try_reserve(nbytes, tag)
            if held is not None:
                return held
            if not self.wait_oldest():
                raise self.budget.exceeded(nbytes, tag, "it does not fit on the device beside what is held")

    cdef void give_back(self, uint64_t pointer, Reservation held, dict uses, bint unknown) noexcept:
        """Take memory whose owner ended: to be freed when its uses are complete."""
        try:
            entry = (pointer, held, [(<Stream>u).mark() if isinstance(u, Stream) else u for u in uses.values()])
            (self.lost if unknown else self.pending).append(entry)
        except BaseException:  # a use that cannot be followed: a leak is better than a wrong proof
            self.lost.append((pointer, held, []))

    def evict(self, nbytes):
        """Evictor of the budget: what was released and is out of use."""
        self.sweep()
        return 0


cdef _Home _home(int ordinal):
    cdef _Home home
    cdef int code
    if ordinal in _homes:
        return _homes[ordinal]
    home = _Home.__new__(_Home)
    home.ordinal = ordinal
    with nogil:
        code = driver.device_facts(ordinal, &home.facts)
    driver.check(code, "cuDeviceGet")
    home.lock, home.guard = threading.Lock(), threading.RLock()
    home.pending, home.lost = [], []
    # the rest is for contexts, local memory of kernels and whoever else uses the device
    home.budget = MemoryBudget(home.facts.nbytes - home.facts.nbytes // 16)
    home.budget.add_evictor(home.evict)
    return _homes.setdefault(ordinal, home)


cdef int _count() except -1:
    cdef int n = 0, code
    driver.ensure()
    with nogil:
        code = driver.device_count(&n)
    driver.check(code, "cuDeviceGetCount")
    return n


cdef str _uuid_of(_Home home):
    cdef str digits = (<bytes>home.facts.uuid[:16]).hex()
    return f"GPU-{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


@cython.final
cdef class Device:
    """A CUDA device. Objects of the same device are equal and share budget and lock.

    Parameters
    ----------
    spec : Device, int or str
        An index, ``"cuda"`` (device 0), ``"cuda:N"`` or ``"GPU-<uuid>"``.

    Attributes
    ----------
    index : int
    uuid, name : str
    sm : int
        Compute capability: 90 for 9.0.
    multiprocessors : int
    budget : MemoryBudget
        Device bytes that `DeviceVec`s may hold: the device's memory less a sixteenth.
    lock : threading.Lock
        Held by a prover while kernels of one proof run.

    Raises
    ------
    BackendUnavailable
        No driver, or no such device.
    """

    def __init__(self, spec="cuda"):
        cdef int n, i
        if isinstance(spec, Device):
            self.home = (<Device>spec).home
            return
        wanted = spec
        if isinstance(spec, str):
            found = re.fullmatch(r"cuda(?::(\d{1,4}))?", spec)
            if found is not None:
                wanted = int(found[1] or 0)
            elif not spec.lower().startswith("gpu-"):
                raise ValueError(f"a device is 'cuda', 'cuda:N' or 'GPU-<uuid>', not {spec!r}")
        elif isinstance(spec, bool) or not isinstance(spec, int):
            raise TypeError(f"a device is an int, a str or a Device, not {type(spec).__name__}")
        n = _count()
        for i in range(n):
            if wanted == i or isinstance(wanted, str) and _uuid_of(_home(i)).lower() == wanted.lower():
                self.home = _home(i)
                return
        raise BackendUnavailable(f"no device {spec!r}: there are {n}. Look at nvidia-smi and CUDA_VISIBLE_DEVICES")

    @staticmethod
    def all():
        """The devices of this process, in the driver's order; empty if there are none.

        Raises
        ------
        BackendUnavailable
            There is no driver.
        """
        return [Device(i) for i in range(_count())]

    @property
    def index(self):
        return self.home.ordinal

    @property
    def uuid(self):
        return _uuid_of(self.home)

    @property
    def name(self):
        return self.home.facts.name.decode("utf-8", "replace")

    @property
    def sm(self):
        return 10 * self.home.facts.major + self.home.facts.minor

    @property
    def multiprocessors(self):
        return self.home.facts.multiprocessors

    @property
    def budget(self):
        return self.home.budget

    @property
    def lock(self):
        return self.home.lock

    def settle(self, timeout=None):
        """Wait until all device memory that was released is free.

        Raises
        ------
        WaitTimeout
            Work still uses some of it.
        """
        check_wait(timeout, None)
        driver.ensure()
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            self.home.sweep()
            if not self.home.pending:
                return
            if end is not None and time.monotonic() >= end:
                raise WaitTimeout(f"waited {timeout:g} s in vain: {len(self.home.pending)} released vectors of device "
                                  f"{self.index} are still in use")
            time.sleep(0.0002)

    def trim(self):
        """Give idle device memory back to the driver. To be called when the device is idle: it may wait for kernels."""
        cdef int code
        self.home.open()
        self.home.sweep()
        with nogil:
            code = driver.memory_pool_trim(self.home.context, self.home.pool)
        driver.check(code, "cuMemPoolTrimTo")

    def __eq__(self, other):
        return isinstance(other, Device) and self.home is (<Device>other).home

    def __hash__(self):
        return self.home.ordinal

    def __reduce__(self):
        return Device, (self.home.ordinal,)

    def __repr__(self):
        return f"<Device cuda:{self.home.ordinal} {self.name}>"


# ---- streams and events ----

@cython.final
@cython.no_gc_clear
cdef class Event:
    """A point in the work of a stream. Made by `Stream.record`."""

    def __init__(self):
        raise TypeError("an Event is made by Stream.record")

    def done(self):
        """Whether the work before it is complete."""
        driver.ensure()
        cdef int code
        with nogil:
            code = driver.event_query(self.event)
        if code == driver.NOT_READY:
            return False
        driver.check(code, "cuEventQuery")
        return True

    def synchronize(self):
        """Wait for the work before it."""
        driver.ensure()
        cdef int code
        with nogil:
            code = driver.event_synchronize(self.event)
        driver.check(code, "cuEventSynchronize")

    def elapsed_ms(self, Event since not None):
        """Milliseconds of device time from `since` to this event; both must be done.

        Raises
        ------
        DeviceError
            One of them is not done (CUDA_ERROR_NOT_READY).
        """
        driver.ensure()
        cdef float ms = 0
        cdef int code
        with nogil:
            code = driver.event_elapsed(&ms, since.event, self.event)
        driver.check(code, "cuEventElapsedTime")
        return ms

    def __reduce__(self):
        raise TypeError("an Event cannot be copied or pickled")

    def __dealloc__(self):
        if self.event != NULL and not _exiting and self.generation == driver.generation():
            driver.event_destroy(self.event)


@cython.final
@cython.no_gc_clear
cdef class Stream:
    """A queue of work of a device; work of different streams is ordered by events alone.

    Parameters
    ----------
    device : Device
    foreign : int or object with ``__cuda_stream__``, optional
        Use that stream, of the device's primary context, instead of a new one. It stays its owner's.

    Attributes
    ----------
    device : Device
    handle : int
    """

    def __init__(self, Device device not None, foreign=None):
        cdef int code
        if self.device is not None:
            raise TypeError("a Stream is made once")
        device.home.open()
        self.generation = driver.generation()
        if foreign is None:
            with nogil:
                code = driver.stream_create(device.home.context, &self.stream)
            driver.check(code, "cuStreamCreate")
            self.owned = True
        else:
            self.stream = stream_handle(foreign)
            _check_foreign(device.home, self.stream)
        self.device = device

    @property
    def handle(self):
        self.check_open()
        return <uintptr_t>self.stream

    def __cuda_stream__(self):
        self.check_open()
        return 0, <uintptr_t>self.stream

    def synchronize(self):
        """Wait until all work enqueued so far is complete."""
        cdef int code
        self.check_open()
        self.calls += 1
        try:
            with nogil:
                code = driver.stream_synchronize(self.device.home.context, self.stream)
        finally:
            self.calls -= 1
        driver.check(code, "cuStreamSynchronize")

    def record(self):
        """An `Event` after the work enqueued so far."""
        self.check_open()
        return self.mark()

    def wait(self, Event event not None):
        """Let work enqueued from now on wait for an event of any stream."""
        cdef int code
        self.check_open()
        self.calls += 1
        try:
            with nogil:
                code = driver.stream_wait_event(self.device.home.context, self.stream, event.event)
        finally:
            self.calls -= 1
        driver.check(code, "cuStreamWaitEvent")

    def close(self):
        """Give the stream up; the work on it goes on. Does nothing if it is closed already.

        Raises
        ------
        BorrowError
            Another thread is in a call with this stream.
        """
        cdef driver.Stream stream = self.stream
        cdef int code
        if self.closed:
            return
        self.check_open()
        if self.calls:
            raise BorrowError("a call on another thread uses this stream")
        if self.owned:
            self.last = self.mark()  # vectors used on it are still to be freed behind its work
        self.closed = True
        if self.owned:
            with nogil:
                code = driver.stream_destroy(stream)
            driver.check(code, "cuStreamDestroy")

    def __enter__(self):
        self.check_open()
        return self

    def __exit__(self, *exc):
        self.close()

    def __reduce__(self):
        raise TypeError("a Stream cannot be copied or pickled")

    def __repr__(self):
        state = "closed" if self.closed else f"{<uintptr_t>self.stream:#x}"
        return f"<Stream {state}{'' if self.owned else ', foreign'}>"

    def __dealloc__(self):
        if self.owned and not self.closed and not _exiting and self.generation == driver.generation():
            driver.stream_destroy(self.stream)

    cdef int check_open(self) except -1:
        driver.ensure()
        if self.device is None:
            raise TypeError("this stream was never made")
        if self.closed:
            raise UseAfterRelease("this stream was closed before")
        return 0

    cdef Event mark(self):
        cdef int code
        cdef Event event
        if self.closed:
            return self.last
        event = Event.__new__(Event)
        event.home = self.device.home
        event.generation = self.generation
        self.calls += 1
        try:
            with nogil:
                code = driver.timed_event(self.device.home.context, &event.event, self.stream)
        finally:
            self.calls -= 1
        driver.check(code, "cuEventRecord")
        return event


cdef int _check_foreign(_Home home, driver.Stream stream) except -1:
    """A stream of another context, or under capture, is refused before anything is enqueued."""
    cdef driver.Context context = NULL
    cdef uint64_t context_id
    cdef int code, capturing = 0
    with nogil:
        code = driver.enter(home.context)
        if code == 0:
            code = driver.stream_is_capturing(stream, &capturing)
            if code == 0 and not capturing:
                code = driver.stream_context(stream, &context, &context_id)
            driver.leave()
    driver.check(code, "cuStreamGetCtx")
    if capturing:
        raise DeviceError("the stream is being captured into a CUDA graph: keep pinzk's calls outside the capture",
                          code=900, name="CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", call="cuStreamIsCapturing")
    if context != home.context:
        raise ValueError(f"the stream belongs to another device or context than the primary one of device {home.ordinal}")
    return 0


cdef Stream _stream_of(Device device, object stream):
    """The argument `stream` of a call: one of ours, or a foreign one."""
    cdef Stream s
    if stream is None:
        raise TypeError("stream must be a Stream, an int or have __cuda_stream__, not None")
    if not isinstance(stream, Stream):
        return Stream(device, stream)
    s = stream
    s.check_open()
    if s.device.home is not device.home:
        raise ValueError(f"the stream belongs to device {s.device.index}, not to device {device.index}")
    if not s.owned:
        _check_foreign(device.home, s.stream)
    return s


# ---- vectors ----

@cython.final
@cython.no_gc  # the collector would clear `uses` before the vector dies; nothing that it holds leads back to it
cdef class DeviceVec:
    """Field elements, points or bytes in device memory, with one owner.

    ::

        PinnedVec --upload--> DeviceVec --launch(..., vec, ...)--> DeviceVec --download--> PinnedVec

    Copies return when they are enqueued: `upload` and `download` hold the pinned block until the host has seen them
    complete, as `PinnedVec.record_use` does. Order between streams is the caller's, by events.
    *Drop*: `release()`, ``with`` or garbage collection, once, from any thread, without waiting for the device: the memory is
    freed once every stream that used it is past that use.

    Parameters
    ----------
    elem : Field, Group or "bytes"
    capacity : int
        Elements; never grows. The memory is not cleared.
    device : Device

    Attributes
    ----------
    elem, device, capacity
    ptr : int
        Device address; 0 if there is no memory. Uses of it in other libraries are not followed.
    nbytes : int
        Bytes of the elements.

    Raises
    ------
    BudgetExceeded
        More than the device's budget has left. Memory that was released and is still in use is waited for.
    DeviceError
        The driver has not as much.
    """

    def __init__(self, elem, capacity, Device device not None):
        cdef int code
        cdef size_t nbytes, n = nbytes_of(capacity, "capacity")
        cdef uint64_t pointer = 0
        if self.device is not None:
            raise TypeError("a DeviceVec is made once")
        if isinstance(elem, str):
            if elem != "bytes":
                raise ValueError(f"elem must be a Field, a Group or 'bytes', not {elem!r}")
            self.row, tag = 1, "bytes"
        else:
            if not hasattr(elem, "limbs") or not hasattr(elem, "name"):
                raise TypeError(f"elem must be a Field, a Group or 'bytes', not {type(elem).__name__}")
            self.limbs, tag = elem.limbs, elem.name
            self.row = 8 * self.limbs
        if n > (<size_t>1 << 62) // self.row:
            raise OverflowError(f"{n} elements of {self.row} bytes")
        nbytes = n * self.row
        device.home.open()
        self.home = device.home
        self.generation = driver.generation()
        self.uses = {}
        self.held = self.home.reserve(nbytes, tag)
        if nbytes:
            with nogil:
                code = driver.device_alloc(self.home.context, self.home.pool, self.home.stream, &pointer, nbytes)
            self.pointer = pointer  # the wait behind the allocation may have failed: it has an owner all the same
            driver.check(code, "cuMemAllocFromPoolAsync")
        self.elem, self.limit, self.device = elem, n, device

    def __len__(self):
        self.check_live()
        return self.n

    @property
    def capacity(self):
        self.check_live()
        return self.limit

    @property
    def nbytes(self):
        self.check_live()
        return self.n * self.row

    @property
    def ptr(self):
        self.check_live()
        return self.pointer

    @property
    def __cuda_array_interface__(self):
        self.check_live()
        shape = [self.n, self.limbs] if self.limbs else [self.n]
        return {
            "version": 3,
            "shape": tuple(shape),
            "typestr": "<u8" if self.limbs else "|u1",
            "data": (self.pointer, False),
            "strides": None,
            "stream": <uintptr_t>self.last or None,
        }

    def commit(self, n):
        """Count n more elements, behind the last, which a kernel has written or will have when they are read."""
        self.check_live()
        cdef size_t k = nbytes_of(n, "n")
        if k > self.limit - self.n:
            raise ValueError(f"cannot commit {k} elements to {self.n} of {self.limit}")
        self.n += k

    def truncate(self, n):
        """Shorten to n elements, at most the present length; the capacity stays."""
        self.check_live()
        cdef size_t to = nbytes_of(n, "n")
        if to > self.n:
            raise ValueError(f"cannot truncate {self.n} elements to {to}")
        self.n = to

    def upload(self, vec, stream, *, start=0):
        """Enqueue a copy of all elements of a `PinnedVec` to [start, start + len(vec)).

        The vector may be read, moved and released at once; it can be changed again when the copy is complete.

        Parameters
        ----------
        vec : PinnedVec
            Of the same elements.
        stream : Stream, int or object with ``__cuda_stream__``
        start : int
            At most `len`: nothing uninitialised is left in between. The length becomes at least ``start + len(vec)``.

        Raises
        ------
        BorrowError
            A writer of the vector is alive (`InFlightError`: a copy into it is not complete).
        UseAfterMove, UseAfterRelease
        """
        cdef PinnedVec v
        cdef PinnedBacking b
        cdef size_t at = nbytes_of(start, "start"), k
        cdef int code
        cdef uint64_t to
        cdef void* source
        self.check_live()
        v = _pinned(self.elem, vec)
        cdef Stream s = _stream_of(self.device, stream)
        self.check_live()
        v.check_live()
        if v.busy or v.backing.writer:
            raise BorrowError("the vector is borrowed by a writer: drop its views first")
        k = v.n
        if at > self.n or k > self.limit - at:
            raise ValueError(f"cannot put {k} elements at {at} of a vector with {self.n} of {self.limit}")
        if k == 0:
            return
        b = v.backing
        b.readers += 1  # while the GIL is dropped, nobody may end or change either
        self.calls += 1
        s.calls += 1
        try:
            b.check_idle(True, False)
            self.begin_use(s)
            to, source = self.pointer + at * self.row, b.block.ptr
            code = driver.enter(self.home.context)  # stream 0 means that of the current context
            driver.check(code, "cuCtxPushCurrent")
            try:
                with nogil:
                    code = driver.host_to_device(self.home.context, to, source, k * self.row, s.stream)
                driver.check(code, "cuMemcpyHtoDAsync")
                try:
                    b.use(s.stream, False)
                finally:
                    self.end_use(s)
            finally:
                driver.leave()
            self.n = max(self.n, at + k)
        finally:
            b.readers -= 1
            self.calls -= 1
            s.calls -= 1

    def download(self, vec, stream):
        """Enqueue a copy of all elements into a `PinnedVec`, whose elements they become.

        Until the copy is complete the vector can be neither read nor changed (`InFlightError`); moves and release are fine.

        Parameters
        ----------
        vec : PinnedVec
            Of the same elements; grows if need be, without waiting for its budget.
        stream : Stream, int or object with ``__cuda_stream__``

        Raises
        ------
        BorrowError
            A lease of the vector is alive (`InFlightError`: another copy is not complete).
        UseAfterMove, UseAfterRelease
        BudgetExceeded
            It cannot grow; nothing has changed.
        """
        cdef PinnedVec v
        cdef size_t nbytes
        cdef int code
        cdef void* to
        self.check_live()
        v = _pinned(self.elem, vec)
        cdef Stream s = _stream_of(self.device, stream)
        self.check_live()
        self.calls += 1
        s.calls += 1
        try:
            v.open(self.n)
            try:
                nbytes = self.n * self.row
                if nbytes:
                    self.begin_use(s)
                    v.backing.block.dirty = max(v.backing.block.dirty, nbytes)
                    to = v.backing.block.ptr
                    code = driver.enter(self.home.context)
                    driver.check(code, "cuCtxPushCurrent")
                    try:
                        with nogil:
                            code = driver.device_to_host(self.home.context, to, self.pointer, nbytes, s.stream)
                        driver.check(code, "cuMemcpyDtoHAsync")
                        v.n = nbytes // self.row
                        try:
                            v.backing.use(s.stream, True)
                        finally:
                            self.end_use(s)
                    finally:
                        driver.leave()
                else:
                    v.n = 0
            finally:
                v.close()
        finally:
            self.calls -= 1
            s.calls -= 1

    def release(self):
        """End the vector, once; its memory is freed when the device no longer uses it.

        Raises
        ------
        UseAfterRelease
        BorrowError
            Another thread is in a call with it; nothing was released.
        """
        self.check_live()
        if self.calls:
            raise BorrowError("a call on another thread uses this vector")
        self.state = RELEASED
        if self.pointer:
            self.home.give_back(self.pointer, self.held, self.uses, self.unknown)
            self.home.sweep()
        else:
            self.held.release()

    def __enter__(self):
        self.check_live()
        return self

    def __exit__(self, *exc):
        if self.state == LIVE:
            self.release()

    def __reduce__(self):
        raise TypeError("a DeviceVec cannot be copied or pickled: it has one owner")

    def __repr__(self):
        if self.state != LIVE or self.device is None:
            return "<DeviceVec released>"
        name = "bytes" if self.limbs == 0 else self.elem.name
        return f"<DeviceVec of {name}, {self.n} of {self.limit}, cuda:{self.home.ordinal}>"

    def __dealloc__(self):
        # no_gc: what it holds is still there, whatever the garbage collector does
        if self.pointer and self.state == LIVE and not _exiting and self.generation == driver.generation():
            self.home.give_back(self.pointer, self.held, self.uses, self.unknown)

    cdef int check_live(self) except -1:
        if self.generation != driver.generation():
            raise ForkError("this memory belongs to the process that was forked: make new owners in the child")
        if self.state != LIVE:
            raise UseAfterRelease("this vector was released before")
        if self.device is None:
            raise TypeError("this vector was never made")
        return 0

    cdef int begin_use(self, Stream stream) except -1:
        """Before work is enqueued: one of our streams is asked for an event at the release, not before."""
        self.uses[<uintptr_t>stream.stream] = stream
        self.last = stream.stream
        return 0

    cdef int end_use(self, Stream stream) except -1:
        """After it: a foreign stream may be gone by the release, so its event is recorded now."""
        if not stream.owned:
            try:
                self.uses[<uintptr_t>stream.stream] = stream.mark()
            except BaseException:
                self.unknown = True
                raise
        return 0


cdef PinnedVec _pinned(object elem, object vec):
    if not isinstance(vec, PinnedVec):
        raise TypeError(f"copies go to and from a PinnedVec, not {type(vec).__name__}")
    cdef PinnedVec v = vec
    v.check_live()
    if v.elem != elem:
        raise TypeError(f"the vectors hold different elements: {getattr(v.elem, 'name', v.elem)} in pinned memory, "
                        f"{getattr(elem, 'name', elem)} on the device")
    return v


# ---- modules and launches ----

@cython.final
cdef class Module:
    """Compiled kernels on a device.

    It stays loaded until the process ends, because unloading waits for running kernels. So does loading: load before work
    starts.

    Parameters
    ----------
    device : Device
    cubin : bytes
        What NVRTC made for the device's `sm`.
    """

    def __init__(self, Device device not None, bytes cubin not None):
        cdef const char* image = PyBytes_AS_STRING(cubin)
        cdef int code
        if self.device is not None:
            raise TypeError("a Module is made once")
        if not cubin:
            raise ValueError("an empty cubin")
        device.home.open()
        with nogil:
            code = driver.module_load(device.home.context, &self.module, image)
        driver.check(code, "cuModuleLoadData")
        self.functions = {}
        self.device = device

    def function(self, str name not None):
        """The kernel of that name, ready to be launched.

        Raises
        ------
        DeviceError
            There is none, or it cannot be loaded.
        """
        cdef Function f
        cdef bytes text = name.encode()
        cdef const char* c_name = text
        cdef size_t width, i = 0
        cdef int code
        driver.ensure()
        if self.device is None:
            raise TypeError("this module was never made")
        if name in self.functions:
            return self.functions[name]
        f = Function.__new__(Function)
        f.name, f.module = name, self
        with nogil:
            code = driver.module_function(self.device.home.context, &f.kernel, self.module, c_name)
        if code == driver.NOT_FOUND:
            raise DeviceError(f"the module has no kernel {name!r}: declare it extern \"C\" __global__", code=code,
                              name="CUDA_ERROR_NOT_FOUND", call="cuModuleGetFunction")
        driver.check(code, "cuModuleGetFunction")
        widths = []
        while True:
            with nogil:
                code = driver.kernel_parameter(f.kernel, i, &width)
            i += 1
            if code == driver.INVALID_VALUE:  # behind the last
                break
            driver.check(code, "cuFuncGetParamInfo")
            widths.append(width)
        if len(widths) > MAX_ARGUMENTS:
            raise ValueError(f"{name} has {len(widths)} parameters, more than {MAX_ARGUMENTS}")
        f.widths = tuple(widths)
        return self.functions.setdefault(name, f)

    def __reduce__(self):
        raise TypeError("a Module cannot be copied or pickled")


@cython.final
cdef class Function:
    """A kernel. Made by `Module.function`.

    Attributes
    ----------
    name : str
    module : Module
    widths : tuple of int
        Bytes of each parameter.
    """

    def __init__(self):
        raise TypeError("a Function is made by Module.function")

    def __reduce__(self):
        raise TypeError("a Function cannot be copied or pickled")

    def __repr__(self):
        return f"<Function {self.name}>"


def launch(Function function not None, grid, block, args, *, shared=0, stream):
    """Enqueue a kernel.

    Parameters
    ----------
    function : Function
    grid, block : int or tuple of up to three ints
        Blocks, and threads of a block.
    args : sequence
        One for each parameter, of exactly its width: a `DeviceVec` (its address) or a pair ``(vec, i)`` (the address of
        element i), a NumPy scalar, `bytes` (a struct by value), or an int, which takes the width of the parameter.
        The vectors are used by the stream from now on: released, they are freed behind this kernel.
    shared : int
        Bytes of dynamic shared memory.
    stream : Stream, int or object with ``__cuda_stream__``

    Raises
    ------
    TypeError, ValueError, OverflowError
        Arguments that do not fit the kernel; nothing was enqueued.
    DeviceError
        The driver refused the launch (`ContextLost`: an earlier kernel broke the context).
    """
    cdef Device device = function.module.device
    cdef Stream s = _stream_of(device, stream)
    cdef unsigned g[3]
    cdef unsigned b[3]
    cdef uint64_t words[MAX_ARGUMENTS]
    cdef void* parameters[MAX_ARGUMENTS + 1]
    cdef unsigned dynamic = shared
    cdef DeviceVec v
    cdef size_t i, width
    cdef int code = 0
    _three(grid, "grid", g)
    _three(block, "block", b)
    given = tuple(args)
    if len(given) != len(function.widths):
        raise TypeError(f"{function.name} takes {len(function.widths)} arguments, not {len(given)}")
    vecs, keep = [], []
    for i, x in enumerate(given):
        width = function.widths[i]
        parameters[i] = &words[i]
        if isinstance(x, np.generic):
            x = x.tobytes()
            keep.append(x)
        offset = 0
        if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], DeviceVec):
            x, offset = x
        if isinstance(x, DeviceVec):
            v = x
            v.check_live()
            if v.home is not device.home:
                raise ValueError(f"argument {i} of {function.name} is a vector of another device")
            offset = nbytes_of(offset, "an element's index")
            if offset > v.limit:
                raise ValueError(f"argument {i} of {function.name}: element {offset} of {v.limit}")
            words[i] = v.pointer + <size_t>offset * v.row
            vecs.append(v)
            found = 8
        elif isinstance(x, bytes):
            parameters[i] = PyBytes_AS_STRING(x)
            found = len(x)
        elif isinstance(x, int) and not isinstance(x, bool):
            if width > 8:
                raise TypeError(f"argument {i} of {function.name} is a struct of {width} bytes: give it as bytes")
            if not -(<object>1 << 8 * width - 1) <= x < <object>1 << 8 * width:
                raise OverflowError(f"argument {i} of {function.name} has {width} bytes: {x} does not fit")
            words[i] = x & 0xFFFFFFFFFFFFFFFF
            found = width
        else:
            raise TypeError(f"argument {i} of {function.name} cannot be {type(x).__name__}: give an int, a NumPy scalar, "
                            "a DeviceVec or bytes")
        if found != width:
            raise TypeError(f"argument {i} of {function.name} has {width} bytes, not {found}")
    parameters[len(given)] = NULL
    for v in vecs:
        v.check_live()  # an argument's own code may have run meanwhile
        v.calls += 1
    s.calls += 1
    try:
        for v in vecs:
            v.begin_use(s)
        with nogil:
            if dynamic > function.allowed:
                code = driver.kernel_allow_shared(device.home.context, function.kernel, <int>dynamic)
                if code == 0:
                    function.allowed = dynamic
        driver.check(code, f"cuFuncSetAttribute({function.name}, {dynamic} bytes of shared memory)")
        with nogil:
            code = driver.launch_kernel(device.home.context, function.kernel, g, b, dynamic, s.stream, parameters)
        driver.check(code, f"cuLaunchKernel({function.name})")
        for v in vecs:
            v.end_use(s)
    finally:
        for v in vecs:
            v.calls -= 1
        s.calls -= 1


cdef int _three(object size, str name, unsigned* out) except -1:
    sizes = size if isinstance(size, tuple) else (size,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name} has one to three dimensions, not {len(sizes)}")
    for i in range(3):
        n = sizes[i] if i < len(sizes) else 1
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"{name} must be an int or a tuple of ints, not {size!r}")
        if not 1 <= n < 1 << 31:
            raise ValueError(f"{name} must be at least 1 in each dimension, not {size!r}")
        out[i] = n
    return 0
