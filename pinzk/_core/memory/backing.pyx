# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""PinnedBacking, a block with one owner, and Lease, the borrow that keeps it where it is."""

import numpy as np

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from cython.operator cimport dereference as deref
from libc.stdint cimport uint64_t, uintptr_t
from libcpp.memory cimport shared_ptr

from pinzk._core cimport driver
from pinzk._core.memory.core cimport Block, EventPool, Kind, Pool
from pinzk.errors import BorrowError, DeviceError, ForkError, InFlightError, UseAfterMove, UseAfterRelease


cdef extern from "<unistd.h>" nogil:
    int usleep(unsigned int)


cdef char _nothing[8]  # what empty views point to


@cython.final
@cython.freelist(32)
cdef class PinnedBacking:
    """One block of a pool, with one owner. Made by `PinnedPool.checkout` and `PinnedPool.register`.

    ::

        PinnedPool --checkout(n)--> PinnedBacking --into_vec(elem)--> PinnedVec
             ^-------- release() --------'   ^------ into_backing() ------'

    *Move*: `into_vec` empties this object; any later use raises `UseAfterMove`. It is neither copyable nor picklable.
    *Borrow*: `borrow` and `borrow_mut` return a `Lease`; while one lives, release and move raise `BorrowError`. Many
    readers or one writer.
    *Drop*: `release()`, ``with``, or garbage collection, exactly once, from any thread; it never blocks and makes no driver
    call: the block goes to the pool, which hands it out again only after the host has seen every recorded use complete.
    The one exception is registered memory, the user's own, which `release()` unregisters.

    Attributes
    ----------
    nbytes : int
        True size of the block, at least what was asked for.
    kind : {"pinned", "registered", "pageable"}
    ptr : int
        Address; 0 for an empty block.
    pool : PinnedPool
    in_flight : bool
        Whether the device may still read or write the block.
    """

    def __init__(self):
        raise TypeError("a PinnedBacking is made by PinnedPool.checkout or PinnedPool.register")

    @property
    def nbytes(self):
        self.check_live()
        return self.block.nbytes if self.block != NULL else 0

    @property
    def kind(self):
        self.check_live()
        return kind_name(self.block.chunk.kind) if self.block != NULL else "pageable"

    @property
    def ptr(self):
        self.check_live()
        return <uintptr_t>self.block.ptr if self.block != NULL else 0

    @property
    def in_flight(self):
        self.check_live()
        if self.block == NULL or not deref(self.core).maybe_used(self.block):
            return False
        cdef bint busy
        self.readers += 1
        try:
            with nogil:
                busy = deref(self.core).in_flight(self.block, False)
        finally:
            self.readers -= 1
        return busy

    def into_vec(self, elem, capacity=None):
        """Move the block into an empty vector.

        Parameters
        ----------
        elem : Field, Group or "bytes"
        capacity : int, optional
            Elements; default: as many as fit.

        Raises
        ------
        BorrowError
            A lease is alive. Nothing was moved.
        """
        from pinzk._core.memory.vec import _vec_of
        return _vec_of(self, elem, capacity)

    def borrow(self):
        """A read-only lease of all bytes.

        Raises
        ------
        BorrowError
            A writer is alive (`InFlightError`: the device still writes the block).
        """
        cdef Lease new = Lease.__new__(Lease)
        self.check_live()
        self.check_idle(True, False)
        attach(new, self, 0, self.block.nbytes if self.block != NULL else 0, 0, False)
        return new

    def borrow_mut(self, *, bint wait=False):
        """A lease that may write all bytes.

        Parameters
        ----------
        wait : bool
            Wait for copies in flight instead of raising.

        Raises
        ------
        BorrowError
            Another lease is alive (`InFlightError`: a copy still uses the block).
        """
        cdef Lease new = Lease.__new__(Lease)
        self.begin_change(wait)
        cdef size_t n = self.block.nbytes if self.block != NULL else 0
        if n:
            self.block.dirty = n
        self.writer = False
        attach(new, self, 0, n, 0, True)
        return new

    def record_use(self, stream, *, bint writes=False):
        """Tell that work enqueued on a stream uses the block; call it right after enqueuing.

        One event is recorded per call. It belongs to the block and travels with it through every move; until the host has
        seen it complete, the block is not reused, not wiped and not freed.

        Parameters
        ----------
        stream : int or object with ``__cuda_stream__``
            The stream, of any context.
        writes : bool
            The work writes the block (a copy from the device): until it is done nobody may read it either, and all of
            the block counts as written.

        Raises
        ------
        DeviceError
            The use cannot be followed (a stream that is being captured, a failed driver call). The block is then
            quarantined when it is released: counted, never reused, never freed.
        """
        self.check_live()
        self.use(stream_handle(stream), writes)

    def release(self):
        """Give the block back to its pool, once. Registered memory is unregistered.

        Raises
        ------
        UseAfterRelease, UseAfterMove
            It is gone already.
        BorrowError
            A lease is alive; nothing was released.
        """
        self.check_live()
        self.check_unborrowed()
        self.state = RELEASED
        _let_go(self)

    def __enter__(self):
        self.check_live()
        return self

    def __exit__(self, *exc):
        if self.state == LIVE:
            self.release()

    def __reduce__(self):
        raise TypeError("a PinnedBacking cannot be copied or pickled: it has one owner")

    def __repr__(self):
        if self.state != LIVE:
            return f"<PinnedBacking {'moved' if self.state == MOVED else 'released'}>"
        return f"<PinnedBacking {self.block.nbytes if self.block != NULL else 0} bytes>"

    def __dealloc__(self):
        # C data only: Python attributes may be gone by now
        if self.block == NULL:
            return
        if self.generation != driver.generation():
            _leak(self.core)  # the parent's block: not ours to touch
        else:
            _let_go(self)

    # ---- for vectors and copies ----

    cdef int check_live(self) except -1:
        if self.generation != driver.generation():
            raise ForkError("this memory belongs to the process that was forked: make new owners in the child")
        if self.state == MOVED:
            raise UseAfterMove("this block was moved into another owner")
        if self.state == RELEASED:
            raise UseAfterRelease("this block was released before")
        return 0

    cdef int check_unborrowed(self) except -1:
        if self.writer:
            raise BorrowError("the memory is borrowed by a writer: drop its views first")
        if self.readers:
            raise BorrowError(f"the memory is borrowed by {self.readers} reader(s): drop their views first")
        return 0

    cdef int check_idle(self, bint writes_only, bint wait) except -1:
        """Raise `InFlightError` while the device uses (or writes) the block, or wait until it does not."""
        if self.block == NULL or not deref(self.core).maybe_used(self.block):
            return 0
        cdef bint busy
        cdef unsigned int pause = 50
        self.readers += 1  # nobody may release the block while the GIL is dropped
        try:
            while True:
                with nogil:
                    busy = deref(self.core).in_flight(self.block, writes_only)
                if not busy:
                    return 0
                if deref(self.core).tainted(self.block):
                    raise InFlightError("a use of this memory by the device can no longer be followed: release it")
                if not wait:
                    raise InFlightError("a copy in flight still uses this memory: synchronise its stream, or wait=True")
                PyErr_CheckSignals()
                with nogil:
                    usleep(pause)
                pause = min(2 * pause, 1000)
        finally:
            self.readers -= 1

    cdef int begin_change(self, bint wait) except -1:
        """Become the only user: sets `writer`, which the caller clears when the change is done."""
        self.check_live()
        self.check_unborrowed()
        self.writer = True
        try:
            self.check_idle(False, wait)
        except BaseException:
            self.writer = False
            raise
        return 0

    cdef int use(self, void* stream, bint writes) except -1:
        driver.ensure()
        if self.block == NULL:
            return 0
        cdef void* context = NULL
        cdef void* event = NULL
        cdef uint64_t context_id = 0, serial
        cdef int code, capturing = 0
        cdef EventPool* events = &deref(self.core).shared().events
        self.readers += 1
        try:
            with nogil:
                if deref(self.core).many_uses(self.block):
                    deref(self.core).in_flight(self.block, False)
                code = driver.stream_is_capturing(stream, &capturing)
                if code == 0 and capturing == 0:
                    code = driver.stream_context(stream, &context, &context_id)
                    if code == 0:
                        event = events.get(deref(self.core).driver(), context, context_id, &code)
            if capturing:
                raise DeviceError("the stream is being captured into a CUDA graph, whose replays nobody could follow: keep "
                                  "copies of pinned memory outside the capture", code=900,
                                  name="CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", call="cuStreamIsCapturing")
            driver.check(code, "cuStreamGetCtx" if context == NULL else "cuEventCreate")
            if writes:
                self.block.dirty = self.block.nbytes
            serial = deref(self.core).begin_use(self.block, event, context_id, writes)
            with nogil:
                code = driver.event_record(event, stream)
                deref(self.core).end_use(self.block, serial, code == 0)
                if code != 0:
                    driver.event_destroy(event)
            driver.check(code, "cuEventRecord")
        except BaseException:
            deref(self.core).taint(self.block)
            raise
        finally:
            self.readers -= 1
        return 0

    cdef PinnedBacking move(self):
        """The block in a new owner; this one is empty afterwards."""
        cdef PinnedBacking to = new_backing(self.pool, self.core, self.generation, NULL)
        self.check_live()  # after the allocation, which may have run anything
        self.check_unborrowed()
        to.block = self.block
        self.block = NULL
        self.state = MOVED
        return to


cdef void _let_go(PinnedBacking self) noexcept:
    cdef Block* block = self.block
    cdef void* keep
    self.block = NULL
    if block == NULL:
        return
    if block.chunk.keep == NULL:
        deref(self.core).give(block)
    elif not deref(self.core).shared().workers.exiting():
        with nogil:
            keep = deref(self.core).give_user(block)
        Py_XDECREF(<PyObject*>keep)


cdef void _leak(shared_ptr[Pool]& core) noexcept nogil:
    new shared_ptr[Pool](core)


@cython.final
@cython.no_gc_clear
cdef class Lease:
    """A borrow: exports memory as a buffer, and keeps its owner from moving, growing or releasing it.

    It ends when the lease and the last view made of it (``numpy()``, memoryview, DLPack, slices of these) are gone; it
    cannot be ended sooner. A lease of field elements or points has shape (n, limbs) and type uint64, one of bytes (n,) and
    uint8. A read-only lease gives arrays that cannot be made writeable.
    """

    def __init__(self):
        raise TypeError("a Lease is made by borrow, borrow_mut or spare_mut")

    def numpy(self):
        """The memory as an ndarray."""
        return np.asarray(self)

    def __dlpack__(self, **kwargs):
        return self.numpy().__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return (1, 0)  # host memory

    @property
    def nbytes(self):
        """Bytes borrowed."""
        return self.shape[0] * self.strides[0]

    @property
    def readonly(self):
        """Whether it is a reader's lease."""
        return not self.mutable

    def __len__(self):
        return self.shape[0]

    def __reduce__(self):
        raise TypeError("a Lease cannot be copied or pickled")

    def __repr__(self):
        return f"<Lease of {self.nbytes} bytes, {'writable' if self.mutable else 'read-only'}>"

    def __getbuffer__(self, Py_buffer* view, int flags):
        if flags & 1 and not self.mutable:  # PyBUF_WRITABLE
            raise BufferError("this lease is read-only: use borrow_mut")
        view.buf = self.ptr
        view.obj = self
        view.len = self.shape[0] * self.strides[0]
        view.readonly = not self.mutable
        view.itemsize = 8 if self.words else 1
        view.format = "Q" if self.words else "B"
        view.ndim = 2 if self.words else 1
        view.shape = self.shape
        view.strides = self.strides
        view.suboffsets = NULL
        view.internal = NULL

    def __releasebuffer__(self, Py_buffer* view):
        pass

    def __dealloc__(self):
        # no_gc_clear: the backing is still there, whatever the garbage collector does
        if self.backing is not None:
            if self.mutable:
                self.backing.writer = False
            else:
                self.backing.readers -= 1


cdef int attach(Lease new, PinnedBacking backing, size_t start, size_t rows, size_t limbs, bint mutable) except -1:
    """Make an unborn lease one of rows from byte `start` on; limbs = 0 means bytes.

    Between the checks and the count nothing is allocated: an allocation may run the garbage collector, and with it other
    threads and finalizers that release the very block. That is why the caller makes the lease object first.
    """
    backing.check_live()
    if mutable:
        backing.check_unborrowed()
    elif backing.writer:
        raise BorrowError("the memory is borrowed by a writer: drop its views first")
    new.ptr = backing.block.ptr + start if backing.block != NULL else _nothing
    new.mutable = mutable
    new.words = limbs != 0
    new.shape[0] = rows
    new.shape[1] = limbs
    new.strides[0] = 8 * limbs if limbs else 1
    new.strides[1] = 8
    new.backing = backing
    if mutable:
        backing.writer = True
    else:
        backing.readers += 1
    return 0


cdef PinnedBacking new_backing(object pool, const shared_ptr[Pool]& core, unsigned generation, Block* block):
    cdef PinnedBacking b = PinnedBacking.__new__(PinnedBacking)
    b.block = block
    b.core = core
    b.pool = pool
    b.generation = generation
    return b


cdef str kind_name(Kind kind):
    if kind == Kind.pinned:
        return "pinned"
    return "registered" if kind == Kind.registered else "pageable"


cdef void* stream_handle(object stream) except? NULL:
    """The CUstream of an int or of an object that follows the ``__cuda_stream__`` protocol."""
    door = getattr(stream, "__cuda_stream__", None)
    if door is not None:
        stream = (door() if callable(door) else door)[1]
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise TypeError(f"stream must be an int or have __cuda_stream__, not {type(stream).__name__}")
    if not 0 <= stream < 1 << 64:
        raise ValueError(f"stream {stream} is not a handle")
    return <void*><uintptr_t>stream
