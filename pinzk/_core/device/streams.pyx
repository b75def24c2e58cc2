# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Devices, their streams and events.

Each call makes the device's primary context current and leaves the caller's as it was; importing this module and
`Device(...)` make none.
"""

import atexit
import re
import threading
import time

cimport cython
from libc.stdint cimport uint64_t, uintptr_t

from pinzk._core cimport driver
from pinzk._core.memory.backing cimport stream_handle
from pinzk._core.memory.budget cimport MemoryBudget, Reservation, check_wait
from pinzk.errors import BackendUnavailable, BorrowError, DeviceError, UseAfterRelease, WaitTimeout

cdef bint _exiting = False  # from then on destructors make no driver call
cdef dict _homes = {}  # ordinal -> _Home; a device has one budget and one lock in a process


def _at_exit():
    global _exiting
    _exiting = True


atexit.register(_at_exit)


cdef bint exiting() noexcept nogil:
    return _exiting


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
                    pointer = entry[0]
                    if code == driver.SUCCESS and pointer:
                        with nogil:
                            code = driver.device_free(self.context, self.stream, pointer)
                    if code == driver.SUCCESS:
                        if pointer:
                            (<Reservation>entry[1]).release()  # what is kept alive goes with `batch`, outside the lock
                    elif code == driver.NOT_READY:
                        self.pending.append(entry)
                    else:
                        self.lost.append(entry)
            finally:
                self.sweeping = False
        return 0

    cdef list unfinished(self):
        """What was released and not yet freed; not in the middle of another thread's sweep."""
        with self.guard:
            return self.pending

    cdef bint wait_oldest(self) except -1:
        """Wait until what was released first is out of use; False if there is nothing to wait for."""
        cdef Event event
        cdef int code
        cdef list pending = self.unfinished()
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
                held = self.budget.try_reserve(nbytes, tag)  # another thread may have freed it meanwhile
                if held is not None:
                    return held
                raise self.budget.exceeded(nbytes, tag, "it does not fit on the device beside what is held")

    cdef Event everything(self):
        """An event behind all that was enqueued in the context so far, by other libraries too."""
        cdef Event event = Event.__new__(Event)
        cdef int code
        event.home, event.generation = self, driver.generation()
        with nogil:
            code = driver.context_event(self.context, &event.event)
        driver.check(code, "cuCtxRecordEvent")
        return event

    cdef void give_back(self, uint64_t pointer, object held, dict uses, bint unknown, bint shared) noexcept:
        """Take memory whose owner ended: to be freed when its uses are complete.

        `shared`: other libraries knew the address; they told nobody on which streams they used it.
        """
        try:
            if shared:
                events = [self.everything()]
            else:
                events = [(<Stream>u).mark() if isinstance(u, Stream) else u for u in uses.values()]
            entry = (pointer, held, events)
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

    def memory(self):
        """Bytes of device memory: free now, whoever uses the rest, and in all. Makes the device's context."""
        cdef size_t free = 0, total = 0
        cdef int code
        self.home.open()
        with nogil:
            code = driver.memory_info(self.home.context, &free, &total)
        driver.check(code, "cuMemGetInfo")
        return free, total

    @staticmethod
    def driver_version():
        """Version of CUDA that the driver is for: (13, 0)."""
        cdef int version = 0, code
        driver.ensure()
        with nogil:
            code = driver.driver_version(&version)
        driver.check(code, "cuDriverGetVersion")
        return version // 1000, version % 1000 // 10

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
            if not self.home.unfinished():
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


cdef Stream stream_of(Device device, object stream):
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
