# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""DeviceVec: field elements, points or bytes in device memory.

Device memory has owners as pinned memory has (`docs/memory.md`). What is released is freed only when the host has seen the
work of every stream that used it complete, and freeing never waits for the device.
"""

cimport cython
from libc.stdint cimport uint64_t, uintptr_t

from pinzk._core cimport driver
from pinzk._core.device.streams cimport Device, Stream, exiting, stream_of
from pinzk._core.memory.backing cimport LIVE, RELEASED, PinnedBacking
from pinzk._core.memory.budget cimport nbytes_of
from pinzk._core.memory.vec cimport PinnedVec
from pinzk.errors import BorrowError, ForkError, UseAfterRelease


cdef enum:
    LEGACY = 1  # CU_STREAM_LEGACY: the stream that other libraries mean by "default"


@cython.no_gc  # the collector would clear `uses` before the vector dies; nothing that it holds leads back to it
cdef class DeviceVec:
    """Field elements, points or bytes in device memory, with one owner.

    ::

        PinnedVec --upload--> DeviceVec --launch(..., vec, ...)--> DeviceVec --download--> PinnedVec

    Copies return when they are enqueued: `upload` and `download` hold the pinned block until the host has seen them
    complete, as `PinnedVec.record_use` does. Order between streams is the caller's, by events.
    *Drop*: `release()`, ``with`` or garbage collection, once, from any thread, without waiting for the device: the memory is
    freed once every stream that used it is past that use.
    *Other libraries* see it without a copy: ``torch.from_dlpack(vec)``, ``cupy.asarray(vec)``, as words of shape
    (len, limbs). Both order the reader behind the uses so far. What DLPack made keeps the vector alive, and `release()`
    raises `BorrowError` as long as it lives; ``__cuda_array_interface__`` has no such hold. The other way round: `view`.

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
        Device address; 0 if there is no memory. Uses of it in other libraries are not followed: take the protocols below.
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
        self.shape_of(elem)
        if n > (<size_t>1 << 62) // self.row:
            raise OverflowError(f"{n} elements of {self.row} bytes")
        nbytes = n * self.row
        device.home.open()
        self.home = device.home
        self.generation = driver.generation()
        self.uses = {}
        self.held = self.home.reserve(nbytes, "bytes" if self.limbs == 0 else elem.name)
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
        stream = self.reader_stream()
        self.shared = True
        return {
            "version": 3,
            "shape": tuple(shape),
            "typestr": "<u8" if self.limbs else "|u1",
            "data": (self.pointer, self.keep is not None),
            "strides": None,
            "stream": stream,
        }

    def __dlpack_device__(self):
        self.check_live()
        return 2, self.home.ordinal  # kDLCUDA

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        from pinzk._core.device.dlpack import capsule_of
        return capsule_of(self, stream, max_version, dl_device, copy)

    def events(self):
        """An `Event` behind each use so far, for streams that come after them to wait for."""
        self.check_live()
        return [(<Stream>u).mark() if isinstance(u, Stream) else u for u in self.uses.values()]

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

    def upload(self, vec, stream, *, start=0, first=0, count=None):
        """Enqueue a copy of elements [first, first + count) of a `PinnedVec` to [start, start + count).

        The vector may be read, moved and released at once; it can be changed again when the copy is complete.

        Parameters
        ----------
        vec : PinnedVec
            Of the same elements.
        stream : Stream, int or object with ``__cuda_stream__``
        start : int
            At most `len`: nothing uninitialised is left in between. The length becomes at least ``start + count``.
        first, count : int
            Which elements; all behind the first by default.

        Raises
        ------
        BorrowError
            A writer of the vector is alive (`InFlightError`: a copy into it is not complete).
        UseAfterMove, UseAfterRelease
        """
        cdef PinnedVec v
        cdef PinnedBacking b
        cdef size_t at = nbytes_of(start, "start"), skip = nbytes_of(first, "first"), k
        cdef int code
        cdef uint64_t to
        cdef char* source
        self.check_live()
        if self.keep is not None:
            raise BorrowError("a view of another library's memory is for reading: upload to a vector of its own")
        v = _pinned(self.elem, vec)
        cdef Stream s = stream_of(self.device, stream)
        self.check_live()
        v.check_live()
        if v.busy or v.backing.writer:
            raise BorrowError("the vector is borrowed by a writer: drop its views first")
        if skip > v.n:
            raise ValueError(f"there is no element {skip} in a vector of {v.n}")
        k = v.n - skip if count is None else nbytes_of(count, "count")
        if k > v.n - skip:
            raise ValueError(f"there are no {k} elements from {skip} in a vector of {v.n}")
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
            to, source = self.pointer + at * self.row, <char*>b.block.ptr + skip * self.row
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
        cdef Stream s = stream_of(self.device, stream)
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
            Another thread is in a call with it, or arrays made of it by DLPack are alive; nothing was released.
        """
        self.check_live()
        if self.calls:
            raise BorrowError("a call on another thread uses this vector")
        if self.exports:
            raise BorrowError(f"the memory is exported by DLPack ({self.exports} times): drop the arrays made of it first")
        self.state = RELEASED
        if self.pointer or self.keep is not None:
            self.leave()
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
        if self.pointer and self.state == LIVE and not exiting() and self.generation == driver.generation():
            self.leave()

    cdef object reader_stream(self):
        """A stream that is behind all uses so far, as ``__cuda_array_interface__`` wants one; None if there were none."""
        cdef Stream s
        if not self.uses:
            return None
        if len(self.uses) == 1:
            (use,) = self.uses.values()
            if isinstance(use, Stream) and not (<Stream>use).closed:
                return <uintptr_t>(<Stream>use).stream
        s = Stream(self.device, LEGACY)  # always there, where a stream of the uses may be gone
        for event in self.events():
            s.wait(event)
        return LEGACY

    cdef void leave(self) noexcept:
        """Give the memory, or what keeps that of a view alive, to the device's home until its uses are complete."""
        if self.keep is None:
            self.home.give_back(self.pointer, self.held, self.uses, self.unknown, self.shared)
        else:
            self.home.give_back(0, self.keep, self.uses, self.unknown, self.shared)
            self.keep = None

    cdef int shape_of(self, object elem) except -1:
        """Words and bytes of an element."""
        if isinstance(elem, str):
            if elem != "bytes":
                raise ValueError(f"elem must be a Field, a Group or 'bytes', not {elem!r}")
            self.row = 1
        else:
            if not hasattr(elem, "limbs") or not hasattr(elem, "name"):
                raise TypeError(f"elem must be a Field, a Group or 'bytes', not {type(elem).__name__}")
            self.limbs = elem.limbs
            self.row = 8 * self.limbs
        return 0

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
