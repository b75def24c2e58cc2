# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""PinnedPool: page-locked blocks, reused; the only place where host memory is pinned and unpinned."""

import atexit
import logging
import os
import threading
import time
from dataclasses import dataclass

cimport cython
from cpython.buffer cimport PyBUF_CONTIG, PyBuffer_Release, PyObject_GetBuffer
from cpython.exc cimport PyErr_CheckSignals
from cpython.ref cimport Py_INCREF
from cython.operator cimport dereference as deref
from libcpp.memory cimport make_shared, shared_ptr, weak_ptr
from libcpp.vector cimport vector

from pinzk._core cimport driver
from pinzk._core.memory.backing cimport PinnedBacking, kind_name, new_backing
from pinzk._core.memory.budget cimport MemoryBudget, _Turn, check_wait, nbytes_of
from pinzk._core.memory.core cimport (
    Block, Budget, Chunk, COutstanding, Driver, Kind, Pool, PoolFigures, Shared, Tag, adopt_user, allocate_pageable,
    allocate_pinned, class_size, cut, free_memory, kNoMemory, kPage, kSlab, register_user, round_up, slot_size,
)
from pinzk.errors import (
    BackendUnavailable, DeviceError, ForkError, MemoryPlanError, PinningError, UseAfterRelease, WaitTimeout,
)


cdef extern from "<sched.h>" nogil:
    int getcpu(unsigned int*, unsigned int*)


_log = logging.getLogger("pinzk")

cdef size_t SEGMENT = <size_t>1 << 30  # registered memory goes to the driver in pieces of this size


@dataclass(frozen=True)
class PoolStats:
    """A snapshot of a pool; bytes, except the counts.

    Attributes
    ----------
    free, out, pending, dirty, quarantined, total : int
        Where the blocks are; the first five add up to `total`, all of it reserved from the budget.
    peak : int
        The largest `total` so far.
    allocations, freed : int
        Chunks page-locked (or mapped) and given back: the calls that cost.
    reuses : int
        Checkouts served by an idle block.
    fallbacks : int
        Chunks that should have been page-locked and are pageable.
    waits : int
        Checkouts that had to wait for the budget.
    wiped : int
        Bytes wiped by the pool's thread and by `settle` and `trim`.
    by_tag : dict of str to int
        `total` by kind: "pinned", "registered", "pageable".
    """

    free: int
    out: int
    pending: int
    dirty: int
    quarantined: int
    total: int
    peak: int
    allocations: int
    freed: int
    reuses: int
    fallbacks: int
    waits: int
    wiped: int
    by_tag: dict[str, int]


@dataclass(frozen=True)
class Outstanding:
    """A block that has an owner: address, bytes, kind, and whether a recorded use of it may be unfinished."""

    ptr: int
    nbytes: int
    kind: str
    used: bool


@cython.final
cdef class PinnedPool:
    """Reusable blocks of page-locked memory inside one budget.

    ::

        MemoryBudget --reserve--> chunk --cut--> blocks            held by the chunk until it is unpinned
        FREE --checkout--> OUT --release--> PENDING --> DIRTY --> FREE
                                    until the host saw     until wiped
                                    its uses complete      (wipe=True)

    ``free + out + pending + dirty + quarantined == total`` at every moment, and the budget holds exactly `total` for the
    pool. A block whose use can no longer be followed is quarantined: counted, never reused, never freed.
    Releasing never blocks and never wipes on the caller's thread: the pool's one native thread looks at events, wipes and,
    after `close`, frees. No block is handed out dirty: at the latest the checkout that takes it wipes it.
    In steady state (same sizes, enough blocks) neither checkout nor release makes a driver call.

    Requests up to 128 KiB are slots of 1 MiB slabs; larger ones have a block of their own, at most an eighth (or a page)
    larger than asked for, exact to the page above 1 GiB.

    Parameters
    ----------
    budget : MemoryBudget, optional
        Default: the process's.
    kind : {"auto", "pinned", "pageable"}
        What a block is: page-locked, or raise `PinningError`; pageable, without a driver; ``"auto"`` page-locks and falls
        back per block, counted in `stats`, logged once, told by ``backing.kind``.
    wipe : bool
        Zero blocks between owners.
    numa : int or "local", optional
        Bind blocks to that node, or to the node of the thread that checks out; blocks of one node never serve another.

    Notes
    -----
    Making a pool touches no GPU. The first allocation binds it to the primary context of the caller's current device
    (else of device 0); the caller's current context stays as it was. In a forked child the pool raises `ForkError`.
    """

    def __cinit__(self, MemoryBudget budget=None, *, str kind="auto", wipe=True, numa=None):
        if kind not in ("auto", "pinned", "pageable"):
            raise ValueError(f"kind must be 'auto', 'pinned' or 'pageable', not {kind!r}")
        self.node = _node_of(numa)
        self.numa = numa
        self.kind = kind
        self.wipe = wipe
        self.budget = MemoryBudget.default() if budget is None else budget
        self.budget.check_process()
        self.generation = driver.generation()
        self.core = make_shared[Pool](self.budget.core, _driver_calls, self.wipe, _shared_now())
        self.pageable = deref(self.budget.core).tag(b"pageable")
        self.tag = self.pageable
        if kind != "pageable":
            self.tag = deref(self.budget.core).tag(b"pinned")
        cdef _PoolEvictor evictor = _PoolEvictor()
        evictor.core = weak_ptr[Pool](self.core)
        self.budget.add_evictor(evictor)

    @staticmethod
    def default():
        """The process's pool over the process's budget, made on first use."""
        global _default_pool
        with _default_lock:
            if (_default_pool is None or (<PinnedPool>_default_pool).generation != driver.generation()
                    or (<PinnedPool>_default_pool).closed):
                _default_pool = PinnedPool()
            return _default_pool

    # ---- blocks out ----

    def checkout(self, nbytes, *, timeout=None, cancel=None):
        """A block of at least nbytes.

        Parameters
        ----------
        nbytes : int
            0 gives an empty block, without any memory.
        timeout : float, optional
            Seconds to wait for the budget; None waits without limit, 0 does not wait.
        cancel : threading.Event, optional
            Ends the wait when set.

        Returns
        -------
        PinnedBacking
            Zeroed, unless ``wipe=False``.

        Raises
        ------
        BudgetExceeded
            More than the whole budget: at once.
        PinningError
            Page-locking was refused and ``kind="pinned"``.
        WaitTimeout, Cancelled
            The wait ended without a block; nothing is held.
        """
        self.check()
        cdef size_t n = nbytes_of(nbytes, "nbytes")
        if timeout is not None or cancel is not None:
            check_wait(timeout, cancel)
        cdef int node = self.node_of_caller()
        cdef Block* block = NULL
        if n == 0:
            return self.own(NULL)
        if not deref(self.budget.core).waiting():
            block = deref(self.core).take(n, node)
            if block != NULL:
                return self.own(block)
        self.refuse_if_never(n)
        return self.wait_for([n], node, timeout, cancel)[0]

    def checkout_many(self, sizes, *, timeout=None, cancel=None):
        """Blocks of at least those sizes, all or none.

        While it waits it holds nothing, so that two callers cannot keep each other waiting.

        Returns
        -------
        list of PinnedBacking

        Raises
        ------
        BudgetExceeded, PinningError, WaitTimeout, Cancelled
            As `checkout`; nothing is held.
        """
        self.check()
        check_wait(timeout, cancel)
        wanted = [nbytes_of(n, "sizes") for n in sizes]
        if sum(wanted) > deref(self.budget.core).total():
            raise self.budget.exceeded(min(sum(wanted), 2**63 - 1), "pinned", "that is more than the whole budget")
        return self.wait_for(wanted, self.node_of_caller(), timeout, cancel)

    def register(self, array):
        """Page-lock memory that the caller already has.

        Parameters
        ----------
        array : writable contiguous buffer
            Kept alive, and exported, until the block is released and no use of it is left.

        Returns
        -------
        PinnedBacking
            Of kind "registered" and of exactly the array's bytes, which count in the budget. ``release()`` unregisters.
            Where page-locking is refused and ``kind="auto"``: of kind "pageable".

        Raises
        ------
        BudgetExceeded, PinningError
            As `checkout`, but it never waits.
        """
        self.check()
        view = _Exported(array)
        cdef size_t n = (<_Exported>view).view.len
        if n == 0:
            return self.own(NULL)
        self.budget.refuse_if_never(n, "registered")
        cdef Budget* budget = self.budget.core.get()
        cdef Tag* tag = budget.tag(b"registered")
        with nogil:
            deref(self.core).tidy()  # an earlier registration of the same memory may have ended
        if not budget.take(n, tag):
            self.budget.evict(n)
            if not budget.take(n, tag):
                raise self.budget.exceeded(n, "registered", "it is in use")
        cdef Chunk* chunk = new Chunk()
        cdef int code = 0
        chunk.base = <char*>(<_Exported>view).view.buf
        chunk.nbytes = n
        chunk.tag = tag
        adopt_user(deref(chunk))
        try:
            if self.bind(n):
                chunk.context = self.context
                with nogil:
                    _shared.gate.enter()
                    code = register_user(deref(chunk), deref(self.core).driver(), SEGMENT)
                    _shared.gate.leave()
                if code != 0:
                    adopt_user(deref(chunk))
                    self.fall_back(driver.error(code, "cuMemHostRegister"), n)
            cut(deref(chunk), 0)
            if chunk.kind == Kind.pageable:
                budget.retag(n, tag, self.pageable)
                chunk.tag = self.pageable
        except BaseException:
            budget.give(n, tag)
            del chunk
            raise
        Py_INCREF(view)
        chunk.keep = <void*>view
        return self.own(self.adopt(chunk))

    # ---- blocks idle ----

    def warm(self, nbytes, int count=1, threads=None):
        """Have `count` idle blocks ready for checkouts of nbytes; their pages are touched by several threads.

        Parameters
        ----------
        nbytes : int
        count : int
        threads : int, optional
            Default: the cores of this process, at most 16.

        Raises
        ------
        BudgetExceeded
            They do not fit now; blocks made so far stay.
        """
        self.check()
        cdef size_t n = nbytes_of(nbytes, "nbytes")
        if count < 0:
            raise ValueError(f"count must not be negative, not {count}")
        if threads is not None and (isinstance(threads, bool) or not isinstance(threads, int) or threads < 1):
            raise ValueError(f"threads must be a positive int, not {threads!r}")
        self.refuse_if_never(n)
        cdef int helpers = _cores() if threads is None else min(threads, 64)
        cdef Block* block
        held = []
        for _ in range(count if n else 0):
            block = self.attempt(n, self.node_of_caller(), True, helpers)
            if block == NULL:
                raise self.budget.exceeded(n, "pinned", f"{len(held)} of {count} blocks fit")
            held.append(self.own(block))

    def trim(self, target_bytes=0):
        """Unpin idle blocks, oldest first, until at most target_bytes are idle.

        Unpinning waits for running kernels (the driver does): do it when the device is idle. Blocks in flight stay.

        Returns
        -------
        int
            Bytes unpinned.
        """
        self.check_process()
        cdef size_t keep = nbytes_of(target_bytes, "target_bytes"), freed
        with nogil:
            freed = deref(self.core).trim(<size_t>-1, keep)
        return freed

    def settle(self, timeout=None):
        """Wait until no block is pending or dirty: all copies done, all secrets wiped.

        Raises
        ------
        WaitTimeout
        """
        self.check_process()
        check_wait(timeout, None)
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            with nogil:
                deref(self.core).tidy()
            if deref(self.core).settled():
                return
            if deadline is not None and time.monotonic() >= deadline:
                s = self.stats()
                raise WaitTimeout(f"after {timeout:g} s {s.pending} bytes are still in flight and {s.dirty} being wiped")
            self._pause()

    def outstanding(self):
        """The blocks that have an owner.

        Returns
        -------
        list of Outstanding
        """
        self.check_process()
        cdef vector[COutstanding] found = deref(self.core).outstanding()
        return [Outstanding(o.ptr, o.nbytes, kind_name(<Kind>o.kind), o.used) for o in found]

    def stats(self):
        """The present figures, consistent with each other.

        Returns
        -------
        PoolStats
        """
        self.check_process()
        cdef PoolFigures f = deref(self.core).figures()
        assert f.bytes[0] + f.bytes[1] + f.bytes[2] + f.bytes[3] + f.bytes[4] == f.total, "the pool's books do not add up"
        kinds = ("pinned", f.by_kind[0]), ("registered", f.by_kind[1]), ("pageable", f.by_kind[2])
        by_tag = {name: n for name, n in kinds if n}
        return PoolStats(f.bytes[0], f.bytes[1], f.bytes[2], f.bytes[3], f.bytes[4], f.total, f.peak, f.allocations, f.freed,
                         f.reuses, self.fallbacks, self.waits, f.wiped, by_tag)

    def close(self):
        """Unpin what is idle and hand out nothing more; idempotent.

        Blocks that are out or in flight are freed by the pool's thread when they come home; when there are none the thread
        has been joined on return.
        """
        self.check_process()
        cdef PoolFigures f
        self.closed = True
        deref(self.core).close()
        while True:
            with nogil:
                deref(self.core).tidy()
            f = deref(self.core).figures()
            if deref(self.core).emptied() and (deref(self.core).ended() or f.total != f.bytes[4]):
                break
            self._pause()
        with nogil:
            _shared.workers.reap()

    def __enter__(self):
        self.check()
        return self

    def __exit__(self, *exc):
        self.close()

    def __reduce__(self):
        raise TypeError("a PinnedPool cannot be copied or pickled: it belongs to its process")

    def __repr__(self):
        return f"<PinnedPool kind={self.kind!r} wipe={bool(self.wipe)}{' closed' if self.closed else ''}>"

    def __dealloc__(self):
        # C data only. The thread frees what is idle now and what comes home later.
        if self.core.get() == NULL:
            return
        if self.generation != driver.generation():
            new shared_ptr[Pool](self.core)  # the parent's: its locks may be held by nobody who will ever let go
        elif not _shared.workers.exiting():
            deref(self.core).close()

    # ---- inside ----

    cdef int check_process(self) except -1:
        if self.generation != driver.generation():
            raise ForkError("this memory belongs to the process that was forked: make new owners in the child")
        return 0

    cdef int check(self) except -1:
        self.check_process()
        if self.closed:
            raise UseAfterRelease("this pool is closed")
        return 0

    cdef int refuse_if_never(self, size_t nbytes) except -1:
        return self.budget.refuse_if_never(round_up(nbytes, kPage) if nbytes < <size_t>1 << 62 else nbytes, "pinned")

    cdef int node_of_caller(self) noexcept:
        cdef unsigned int cpu = 0, node = 0
        if self.node != -2:
            return self.node
        if _topology is not None:
            return _topology()
        getcpu(&cpu, &node)
        return <int>node

    cdef PinnedBacking own(self, Block* block):
        cdef PinnedBacking b
        try:
            b = new_backing(self, self.core, self.generation, NULL)
        except BaseException:
            if block != NULL:
                deref(self.core).give(block)
            raise
        b.block = block
        return b

    cdef PinnedBacking checkout_now(self, size_t nbytes):
        """As `checkout` for somebody who holds a block already: asks evictors, never waits, overtakes those who do."""
        self.check()
        self.refuse_if_never(nbytes)
        cdef Block* block = self.attempt(nbytes, self.node_of_caller(), False, 0)
        if block == NULL and self.budget.worth_evicting(nbytes):
            block = self.attempt(nbytes, self.node_of_caller(), True, 0)
        if block == NULL:
            raise self.budget.exceeded(nbytes, "pinned", "growth holds a block already and therefore does not wait")
        return self.own(block)

    cdef list wait_for(self, list sizes, int node, timeout, cancel):
        """Backings for all sizes, waiting in turn; holds nothing while it waits."""
        cdef size_t total = min(sum(sizes), deref(self.budget.core).total())
        cdef _Turn turn
        cdef list found
        cdef bint first = True
        if not deref(self.budget.core).waiting():
            found = self.all_now(sizes, node, False)
            if found is not None:
                return found
        turn = _Turn(self.budget, total, "pinned", timeout, cancel)
        try:
            while True:
                turn.wait()
                self.check()
                found = self.all_now(sizes, node, True)
                if found is not None:
                    return found
                if first:
                    first = False
                    self.waits += 1
        finally:
            turn.leave()

    cdef list all_now(self, list sizes, int node, bint evict):
        """Backings for all sizes, or None and nothing held."""
        cdef Block* block
        cdef PinnedBacking b
        cdef size_t n, need = 0, done = 0
        cdef list found = [], missing = []
        if len(sizes) == 1 and sizes[0]:
            block = self.attempt(sizes[0], node, evict, 0)
            return None if block == NULL else [self.own(block)]
        for n in sizes:
            block = self.take(n, node) if n else NULL
            found.append(self.own(block))
            if n and block == NULL:
                missing.append(len(found) - 1)
                need += self.own_size(n)
        if not missing:
            return found
        if not deref(self.budget.core).take(need, self.tag):  # one reservation for all
            if evict:
                self.budget.evict(need)
            if not evict or not deref(self.budget.core).take(need, self.tag):
                for b in found:
                    block = b.block
                    b.block = NULL
                    if block != NULL:
                        deref(self.core).give(block, True)
                return None
        try:
            for i in missing:
                n = self.own_size(sizes[i])
                done += n
                found[i] = self.own(self.make(n, 0, node, 0))  # gives its n back itself if it fails
        finally:
            if done < need:
                deref(self.budget.core).give(need - done, self.tag)
        return found

    cdef size_t own_size(self, size_t nbytes) noexcept:
        """Size of a block of its own for a request: its class, or whole pages where only these fit the budget."""
        cdef size_t size = class_size(nbytes)
        return size if size <= deref(self.budget.core).total() else round_up(nbytes, kPage)

    cdef Block* take(self, size_t nbytes, int node) noexcept:
        """An idle block, after a look at what has completed; NULL if there is none."""
        cdef Block* block
        with nogil:
            block = deref(self.core).take(nbytes, node)
            if block == NULL:
                block = deref(self.core).take_after_drain(nbytes, node)
        return block

    cdef Block* attempt(self, size_t nbytes, int node, bint evict, int threads) except? NULL:
        """A block now, from the pool or newly made; NULL if the budget does not allow it."""
        cdef Budget* budget = self.budget.core.get()
        cdef Tag* tag = self.tag
        cdef size_t slot = slot_size(nbytes), size = self.own_size(nbytes), exact = round_up(nbytes, kPage)
        cdef Block* block
        cdef int tries
        for tries in range(2):
            block = self.take(nbytes, node)
            if block != NULL:
                return block
            if slot and budget.take(kSlab, tag):
                return self.make(kSlab, slot, node, threads)
            if budget.take(size, tag):
                return self.make(size, 0, node, threads)
            if exact != size and budget.take(exact, tag):
                return self.make(exact, 0, node, threads)
            if not evict or tries:
                return NULL
            self.budget.evict(size)
        return NULL

    cdef Block* make(self, size_t nbytes, size_t slot, int node, int threads) except NULL:
        """A chunk of nbytes, already taken from the budget, cut into slots; its first block, OUT."""
        cdef Tag* tag = self.tag
        cdef Chunk* chunk = NULL
        cdef Budget* budget = self.budget.core.get()
        try:
            chunk = new Chunk()
            chunk.nbytes = nbytes
            chunk.node = node
            chunk.tag = tag
            self.allocate(chunk, threads if threads else _cores())
        except BaseException:
            budget.give(nbytes, tag)
            del chunk
            raise
        try:
            cut(deref(chunk), slot)
        except BaseException:
            free_memory(deref(chunk), deref(self.core).driver())
            budget.give(nbytes, tag)
            del chunk
            raise
        if chunk.kind == Kind.pageable and tag != self.pageable:
            budget.retag(nbytes, tag, self.pageable)
            chunk.tag = self.pageable
        return self.adopt(chunk)

    cdef Block* adopt(self, Chunk* chunk) except NULL:
        cdef Block* block
        with nogil:
            block = deref(self.core).adopt(chunk, True)
        return block

    cdef int allocate(self, Chunk* chunk, int threads) except -1:
        cdef int code
        if self.bind(chunk.nbytes):
            chunk.context = self.context
            with nogil:
                _shared.gate.enter()
                code = allocate_pinned(deref(chunk), deref(self.core).driver(), threads)
                _shared.gate.leave()
            if code == 0:
                return self.check_node(chunk)
            if code == kNoMemory:
                raise MemoryPlanError(f"the operating system has no {chunk.nbytes} bytes")
            self.fall_back(driver.error(code, "cuMemHostAlloc"), chunk.nbytes)
        with nogil:
            code = allocate_pageable(deref(chunk))
        if code != 0:
            raise MemoryPlanError(f"the operating system has no {chunk.nbytes} bytes")
        return self.check_node(chunk)

    cdef int check_node(self, Chunk* chunk) except -1:
        if not chunk.bound:
            _log.debug("a block of %d bytes could not be bound to NUMA node %d", chunk.nbytes, chunk.node)
        return 0

    cdef bint bind(self, size_t nbytes) except -1:
        """True once there is a context to page-lock in; False to use pageable memory."""
        if self.context != NULL:
            return True
        if self.kind == "pageable":
            return False
        try:
            self.context = driver.primary_context(-1)
            return True
        except ForkError:
            if self.kind == "pinned":
                raise
            self.fallbacks += 1  # a working CPU is all that a forked child can have
        except DeviceError as e:
            self.fall_back(e, nbytes)
        return False

    cdef int fall_back(self, error, size_t nbytes) except -1:
        if self.kind == "pinned":
            raise PinningError(f"cannot page-lock {nbytes} bytes: {error}") from error
        self.fallbacks += 1
        if not self.said:
            self.said = True
            level = logging.INFO if isinstance(error, BackendUnavailable) else logging.WARNING
            _log.log(level, "memory is pageable: %s", error)
        return 0

    cdef int _pause(self) except -1:
        PyErr_CheckSignals()
        with nogil:
            deref(self.core).wait(1)
        return 0


@cython.final
cdef class _PoolEvictor:
    """What a budget asks of a pool; holds no reference to it."""
    cdef weak_ptr[Pool] core

    def __call__(self, nbytes):
        cdef shared_ptr[Pool] pool = self.core.lock()
        cdef size_t want = nbytes, freed = 0
        if pool.get() != NULL:
            with nogil:
                freed = deref(pool).trim(want, 0)
        return freed

    def idle_bytes(self):
        cdef shared_ptr[Pool] pool = self.core.lock()
        return deref(pool).idle_bytes() if pool.get() != NULL else 0

    @property
    def gone(self):
        return self.core.expired()


@cython.final
cdef class _Exported:
    """A buffer of the user's, exported for as long as this object lives."""
    cdef Py_buffer view
    cdef bint held

    def __cinit__(self, array):
        PyObject_GetBuffer(array, &self.view, PyBUF_CONTIG)
        self.held = True

    def __dealloc__(self):
        if self.held:
            PyBuffer_Release(&self.view)


cdef Driver _calls():
    cdef Driver d
    d.host_alloc = driver.host_alloc
    d.host_free = driver.host_free
    d.host_register = driver.host_register
    d.host_unregister = driver.host_unregister
    d.event_create = driver.event_create
    d.event_destroy = driver.event_destroy
    d.event_record = driver.event_record
    d.event_query = driver.event_query
    return d


cdef Driver _driver_calls = _calls()
cdef Shared* _shared = new Shared()
cdef unsigned _shared_in = driver.generation()
_default_pool = None
_default_lock = threading.Lock()
_topology = None  # the tests' answer to "on which node am I"


cdef int _cores():
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 16)


cdef int _node_of(numa) except? -1:
    if numa is None:
        return -1
    if numa == "local":
        return -2
    if isinstance(numa, bool) or not isinstance(numa, int) or numa < 0:
        raise ValueError(f"numa must be a node number, 'local' or None, not {numa!r}")
    if _topology is None and not os.path.isdir(f"/sys/devices/system/node/node{numa}") and numa != 0:
        raise ValueError(f"this machine has no NUMA node {numa}")
    return numa


cdef Shared* _shared_now() except NULL:
    """In a forked child a new one: locks of the old may be held by threads that are not there."""
    global _shared, _shared_in
    if _shared_in != driver.generation():
        _shared = new Shared()
        _shared_in = driver.generation()
    return _shared


def _in_child():
    global _default_lock
    _default_lock = threading.Lock()


def _stop_workers():
    """Before the interpreter goes: no thread of a pool is left, and what is pinned stays so until the process ends."""
    if driver.generation() == _shared_in:
        with nogil:
            _shared.workers.stop_all()


atexit.register(_stop_workers)
os.register_at_fork(after_in_child=_in_child)
