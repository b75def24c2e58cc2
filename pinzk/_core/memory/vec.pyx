# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""PinnedVec: a growing array of field elements, points or bytes in one pinned block."""

cimport cython
from libc.stdint cimport uint64_t
from libc.string cimport memcpy, memset

from pinzk._core.memory.backing cimport LIVE, MOVED, RELEASED, Lease, PinnedBacking, attach, stream_handle
from pinzk._core.memory.budget cimport nbytes_of
from pinzk._core.memory.pool cimport PinnedPool
from pinzk.errors import BorrowError, MemoryPlanError, UseAfterMove, UseAfterRelease

cdef size_t LARGE = 1 << 18  # bytes from which a copy is worth dropping the GIL for


@cython.final
cdef class PinnedVec:
    """A vector of field elements, points or bytes, in pinned memory, with one owner.

    ::

        [0, len)          may be read: borrow(), borrow_mut()
        [len, capacity)   never shows what an earlier owner wrote: spare_mut(n) lays it open zeroed, commit(n) adds it

    Rows are ``uint64[limbs]``, Montgomery form, infinity all zeros, exactly as `Field.encode` and `Group.encode` make them;
    values are not checked here.
    *Borrow*: while a `Lease` is alive, every change, move and release raises `BorrowError` and the vector is unchanged.
    While a copy is in flight every change raises `InFlightError`; move and release are fine.
    *Growth* past the capacity takes a new block, copies, and returns the old one. It holds a block while it asks for one, so
    it asks the evictors but never waits: `BudgetExceeded`, and the vector is unchanged.
    *Move*: `into_backing` empties the vector, later uses raise `UseAfterMove`. *Drop*: `release()`, ``with`` or garbage
    collection, once, from any thread, without blocking.

    Parameters
    ----------
    elem : Field, Group or "bytes"
    capacity : int
        Elements to make room for; waits for the budget if need be.
    pool : PinnedPool, optional
        Default: the process's.
    """

    def __init__(self, elem, capacity=0, *, PinnedPool pool=None):
        if self.backing is not None:
            raise TypeError("a PinnedVec is made once")
        _shape(self, elem)
        self.pool = PinnedPool.default() if pool is None else pool
        self.backing = self.pool.checkout(self.bytes_for(nbytes_of(capacity, "capacity")))
        _measure(self)

    @staticmethod
    def from_array(elem, array, PinnedPool pool=None):
        """A vector with a copy of the array's rows.

        Parameters
        ----------
        elem : Field, Group or "bytes"
        array : buffer of uint64, shape (n, limbs), or of bytes
        """
        v = PinnedVec(elem, len(memoryview(array)) if elem != "bytes" else memoryview(array).nbytes, pool=pool)
        v.extend(array)
        return v

    # ---- figures ----

    def __len__(self):
        self.check_live()
        return self.n

    @property
    def capacity(self):
        """Elements that fit without growth."""
        self.check_live()
        return self.limit

    @property
    def nbytes(self):
        """Bytes of the elements, ``len * bytes of one``."""
        self.check_live()
        return self.n * self.row

    @property
    def kind(self):
        """"pinned", "registered" or "pageable"."""
        self.check_live()
        return self.backing.kind

    @property
    def ptr(self):
        """Address of the first element, 0 if there is no memory."""
        self.check_live()
        return self.backing.ptr

    @property
    def in_flight(self):
        """Whether the device may still use the memory."""
        self.check_live()
        return self.backing.in_flight

    # ---- changes ----

    def push(self, x):
        """Append one value: a canonical int (field), a point as `Group.encode` takes it, or a byte."""
        cdef const unsigned char[::1] row = self._encode(x)
        self.open(self.n + 1)
        try:
            memcpy(self.write(self.n + 1), &row[0], self.row)
            self.n += 1
        finally:
            self.close()

    def extend(self, rows):
        """Append rows.

        Parameters
        ----------
        rows : buffer of uint64, shape (k, limbs), or, for a vector of bytes, any contiguous buffer

        Raises
        ------
        ValueError, TypeError
            Another shape or type; nothing was appended.
        """
        cdef const uint64_t[:, ::1] words
        cdef const unsigned char[::1] raw
        cdef const char* source = NULL
        cdef size_t k
        if self.limbs:
            words = rows
            if <size_t>words.shape[1] != self.limbs:
                raise ValueError(f"rows must have shape (n, {self.limbs}), not ({words.shape[0]}, {words.shape[1]})")
            k = words.shape[0]
            source = <const char*>&words[0, 0] if k else NULL
        else:
            raw = memoryview(rows).cast("B")
            k = raw.shape[0]
            source = <const char*>&raw[0] if k else NULL
        self.open(self.n + k)
        try:
            if k:
                _copy(self.write(self.n + k), source, k * self.row)
                self.n += k
        finally:
            self.close()

    def resize(self, n, fill=0):
        """Make the length n; new elements are `fill`: 0 (all zero words), or a value as `push` takes it."""
        cdef size_t to = nbytes_of(n, "n"), i
        cdef const unsigned char[::1] row
        cdef char* p
        cdef bint zero = isinstance(fill, int) and fill == 0
        if not zero:
            row = self._encode(fill)
        self.open(to)
        try:
            if to > self.n:
                if zero:
                    self._zero(to)
                else:
                    p = self.write(to)
                    with nogil:
                        for i in range(to - self.n):
                            memcpy(p + i * self.row, &row[0], self.row)
            self.n = to
        finally:
            self.close()

    def truncate(self, n):
        """Shorten to n elements, at most the present length; the capacity stays."""
        cdef size_t to = nbytes_of(n, "n")
        self.check_live()
        if to > self.n:
            raise ValueError(f"cannot truncate {self.n} elements to {to}")
        self.open(to)
        self.n = to
        self.close()

    def ensure(self, capacity):
        """Make room for `capacity` elements in all."""
        self.open(nbytes_of(capacity, "capacity"))
        self.close()

    def spare_mut(self, n):
        """A writable lease of the n elements behind the last, zeroed; grows if need be.

        They become elements by `commit`, which may be called while the lease is alive.
        """
        cdef size_t k = nbytes_of(n, "n")
        if k > <size_t>1 << 62:
            raise OverflowError(f"{k} elements")
        cdef Lease new = Lease.__new__(Lease)
        self.open(self.n + k)
        try:
            self._zero(self.n + k)
        finally:
            self.close()
        attach(new, self.backing, self.n * self.row, k, self.limbs, True)
        self.spare = k
        return new

    def commit(self, n):
        """Add the first n elements that `spare_mut` laid open.

        Raises
        ------
        ValueError
            More than are open; any other change in between closes them.
        """
        self.check_live()
        cdef size_t k = nbytes_of(n, "n")
        if self.busy:
            raise BorrowError("another thread is changing this vector")
        if k > self.spare:
            raise ValueError(f"cannot commit {k} elements: spare_mut has laid open {self.spare}")
        self.n += k
        self.spare -= k

    # ---- borrows ----

    def borrow(self):
        """A read-only `Lease` of [0, len).

        Raises
        ------
        BorrowError
            A writer is alive (`InFlightError`: the device still writes the memory).
        """
        cdef Lease new = Lease.__new__(Lease)
        self.check_live()
        self.backing.check_idle(True, False)
        self.check_live()  # it may have waited for the driver
        attach(new, self.backing, 0, self.n, self.limbs, False)
        return new

    def borrow_mut(self, *, bint wait=False):
        """A `Lease` that may write [0, len).

        Parameters
        ----------
        wait : bool
            Wait for copies in flight instead of raising `InFlightError`.
        """
        cdef Lease new = Lease.__new__(Lease)
        self.check_live()
        self.backing.begin_change(wait)
        self.backing.writer = False
        attach(new, self.backing, 0, self.n, self.limbs, True)
        return new

    def record_use(self, stream, *, bint writes=False):
        """As `PinnedBacking.record_use`."""
        self.check_live()
        self.backing.use(stream_handle(stream), writes)

    # ---- moves ----

    def into_backing(self):
        """Move the block out; this vector is empty afterwards.

        Returns
        -------
        PinnedBacking
        """
        self.check_live()
        self._check_unborrowed()
        cdef PinnedBacking out = self.backing.move()
        self.state = MOVED
        return out

    def release(self):
        """Give the block back to the pool, once.

        Raises
        ------
        UseAfterRelease, UseAfterMove
        BorrowError
            A lease is alive; nothing was released.
        """
        self.check_live()
        self._check_unborrowed()
        self.backing.release()
        self.state = RELEASED

    def __enter__(self):
        self.check_live()
        return self

    def __exit__(self, *exc):
        if self.state == LIVE:
            self.release()

    def __reduce__(self):
        raise TypeError("a PinnedVec cannot be copied or pickled: it has one owner")

    def __repr__(self):
        if self.state != LIVE:
            return f"<PinnedVec {'moved' if self.state == MOVED else 'released'}>"
        name = self.elem if self.limbs == 0 else self.elem.name
        return f"<PinnedVec of {name}, {self.n} of {self.limit}>"

    # ---- inside ----

    cdef int check_live(self) except -1:
        if self.state == MOVED:
            raise UseAfterMove("this vector was moved into another owner")
        if self.state == RELEASED:
            raise UseAfterRelease("this vector was released before")
        if self.backing is None:
            raise TypeError("this vector was never made")
        return self.backing.check_live()

    def _check_unborrowed(self):
        if self.busy:
            raise BorrowError("another thread is changing this vector")
        self.backing.check_unborrowed()

    def _encode(self, x):
        if self.limbs == 0:
            if isinstance(x, bool) or not isinstance(x, int) or not 0 <= x < 256:
                raise ValueError("a byte must be an int in [0, 256)")
            return bytes((x,))
        return self.elem.encode([x]).tobytes()

    cdef size_t bytes_for(self, size_t n) except? 0:
        if n > (<size_t>1 << 63) // self.row - 1:
            raise OverflowError(f"{n} elements of {self.row} bytes")
        return n * self.row

    cdef int open(self, size_t n) except -1:
        """Begin a change that needs room for n elements; `close` ends it. Grows; on failure nothing has changed."""
        self.check_live()
        self._check_unborrowed()
        self.bytes_for(n)
        self.backing.begin_change(False)
        self.busy = True
        try:
            if n > self.limit:
                self.grow(n)
            self.spare = 0
        except BaseException:
            self.close()
            raise
        return 0

    cdef int close(self) except -1:
        self.backing.writer = False
        self.busy = False
        return 0

    cdef int grow(self, size_t n) except -1:
        """Half as much again if the budget allows it, else just enough."""
        cdef size_t ample = max(n, self.n + self.n // 2)
        if ample > n:
            try:
                return self.move_to(self.pool.checkout_now(self.bytes_for(ample)))
            except (MemoryPlanError, OverflowError):
                pass
        return self.move_to(self.pool.checkout_now(self.bytes_for(n)))

    cdef int move_to(self, PinnedBacking to) except -1:
        cdef PinnedBacking old = self.backing
        cdef size_t nbytes = self.n * self.row
        to.writer = True
        if nbytes:
            to.block.dirty = max(to.block.dirty, nbytes)
            _copy(to.block.ptr, old.block.ptr, nbytes)
        self.backing = to
        _measure(self)
        old.writer = False
        old.release()
        return 0

    cdef char* write(self, size_t n) except NULL:
        """Where element len is, after noting that [len, n) will be written."""
        self.backing.block.dirty = max(self.backing.block.dirty, n * self.row)
        return self.backing.block.ptr + self.n * self.row

    def _zero(self, size_t to):
        """Make [len, to) zero; behind the dirty prefix it is already."""
        cdef size_t start = self.n * self.row, end = to * self.row
        cdef char* p
        if end == start:
            return
        cdef size_t dirty = min(self.backing.block.dirty, end)
        p = self.write(to)
        if dirty > start:
            with nogil:
                memset(p, 0, dirty - start)


def _vec_of(PinnedBacking backing not None, elem, capacity):
    """`PinnedBacking.into_vec`."""
    cdef PinnedVec v = PinnedVec.__new__(PinnedVec)
    backing.check_live()
    backing.check_unborrowed()
    _shape(v, elem)
    cdef size_t fits = (backing.block.nbytes if backing.block != NULL else 0) // v.row
    cdef size_t limit = fits if capacity is None else nbytes_of(capacity, "capacity")
    if limit > fits:
        raise ValueError(f"a block of {backing.nbytes} bytes holds {fits} elements of {v.row} bytes, not {limit}")
    v.pool = backing.pool
    v.backing = backing.move()
    v.limit = limit
    return v


cdef int _shape(PinnedVec v, elem) except -1:
    if isinstance(elem, str):
        if elem != "bytes":
            raise ValueError(f"elem must be a Field, a Group or 'bytes', not {elem!r}")
        v.row, v.limbs = 1, 0
    else:
        if not hasattr(elem, "limbs") or not hasattr(elem, "encode"):
            raise TypeError(f"elem must be a Field, a Group or 'bytes', not {type(elem).__name__}")
        v.limbs = elem.limbs
        v.row = 8 * v.limbs
    v.elem = elem
    return 0


cdef int _measure(PinnedVec v) except -1:
    v.limit = (v.backing.block.nbytes if v.backing.block != NULL else 0) // v.row
    return 0


cdef void _copy(char* to, const char* source, size_t nbytes) noexcept:
    if nbytes < LARGE:
        memcpy(to, source, nbytes)
    else:
        with nogil:
            memcpy(to, source, nbytes)
