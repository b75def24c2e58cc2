# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""MemoryBudget and Reservation: one owner of the accounting of host bytes."""

import os
import sys
import threading
import time
from dataclasses import dataclass

cimport cython
from cpython.exc cimport PyErr_CheckSignals
from cython.operator cimport dereference as deref
from libc.stdint cimport int64_t
from libcpp.memory cimport make_shared

from pinzk._core import control_group
from pinzk._core cimport driver
from pinzk._core.memory.core cimport Budget, BudgetFigures, Tag
from pinzk.errors import BudgetExceeded, Cancelled, ForkError, UseAfterRelease, WaitTimeout


@dataclass(frozen=True)
class BudgetStats:
    """A snapshot of a budget; bytes.

    Attributes
    ----------
    total, used, free, peak : int
        ``used + free == total``; `peak` is the most that was ever used.
    waiting, waits : int
        Requests that wait now, and that ever had to.
    by_tag : dict of str to int
        Adds up to `used`.
    """

    total: int
    used: int
    free: int
    peak: int
    waiting: int
    waits: int
    by_tag: dict[str, int]


@cython.final
cdef class MemoryBudget:
    """How many bytes of host memory may be held, and by whom.

    ::

        MemoryBudget --reserve(n, tag)--> Reservation --release()--> MemoryBudget

    Every byte granted is held by exactly one `Reservation` (or pinned block) until that is released, split or dropped;
    ``used + free == total`` at every moment. A request that does not fit first asks the evictors, in their order, and counts
    what really came back; then it waits its turn. Waiting is first in, first out: no later request, however small, overtakes
    one that waits, so none waits for ever while memory comes back.

    Parameters
    ----------
    total : int, optional
        Bytes. Default: the cgroup's limit or the machine's memory, less a tenth (at least 1 GiB, at most 5 GiB).

    Notes
    -----
    All methods may be called from any thread. A budget belongs to its process: in a forked child it raises `ForkError`,
    and `default()` makes a new one.
    """

    def __cinit__(self, total=None):
        if total is None:
            total = _default_total()
        self.generation = driver.generation()
        self.core = make_shared[Budget](nbytes_of(total, "total"))
        self.evictors = []
        self.evicting = set()

    @staticmethod
    def default():
        """The process's budget, made on first use; ``PINZK_MAX_PINNED`` (bytes) sets its total.

        Raises
        ------
        ValueError
            ``PINZK_MAX_PINNED`` is not a positive whole number.
        """
        global _default_budget
        with _default_lock:
            if _default_budget is None or (<MemoryBudget>_default_budget).generation != driver.generation():
                _default_budget = MemoryBudget(_total_of_environment())
            return _default_budget

    @property
    def total(self):
        """Bytes that may be held at once."""
        return deref(self.core).total()

    def reserve(self, nbytes, str tag not None, *, timeout=None, cancel=None):
        """Hold bytes, waiting for them if need be.

        Parameters
        ----------
        nbytes : int
            0 is free and never waits.
        tag : str
            Under which name the bytes are counted.
        timeout : float, optional
            Seconds to wait; None waits without limit, 0 does not wait (the evictors are asked).
        cancel : threading.Event, optional
            Ends the wait when set.

        Returns
        -------
        Reservation

        Raises
        ------
        BudgetExceeded
            More than the total: at once.
        WaitTimeout, Cancelled
            The wait ended without the bytes; nothing is held.
        """
        self.check_process()
        cdef size_t n = nbytes_of(nbytes, "nbytes")
        check_wait(timeout, cancel)
        self.refuse_if_never(n, tag)
        cdef Tag* t = deref(self.core).tag(tag.encode())
        cdef _Turn turn
        if n == 0 or (not deref(self.core).waiting() and deref(self.core).take(n, t)):
            return _reservation(self, n, t, tag)
        turn = _Turn(self, n, tag, timeout, cancel)
        try:
            while True:
                turn.wait()
                if deref(self.core).take(n, t):
                    return _reservation(self, n, t, tag)
                self.evict(n)
                if deref(self.core).take(n, t):
                    return _reservation(self, n, t, tag)
        finally:
            turn.leave()

    def try_reserve(self, nbytes, str tag not None):
        """Hold bytes if they are there and nobody waits for them; never waits, never evicts.

        Returns
        -------
        Reservation or None

        Raises
        ------
        BudgetExceeded
            More than the total.
        """
        self.check_process()
        cdef size_t n = nbytes_of(nbytes, "nbytes")
        self.refuse_if_never(n, tag)
        cdef Tag* t = deref(self.core).tag(tag.encode())
        if n == 0 or (not deref(self.core).waiting() and deref(self.core).take(n, t)):
            return _reservation(self, n, t, tag)
        return None

    def add_evictor(self, f, int order=0):
        """Have `f` asked when a request does not fit.

        Parameters
        ----------
        f : callable
            ``f(nbytes) -> int``: give back up to that many bytes of this budget if they are idle. Called without any lock,
            on the thread that needs the bytes. What it returns is not trusted: what counts is what came back.
            It must not wait for this budget (that raises `BudgetExceeded`). Exceptions go to `sys.unraisablehook`.
        order : int
            Lower ones are asked first; pools have order 0.
        """
        if not callable(f):
            raise TypeError(f"an evictor must be callable, not {type(f).__name__}")
        # a new list, so that nobody who walks the old one is disturbed
        kept = [e for e in self.evictors if not getattr(e[1], "gone", False)]
        self.evictors = sorted([*kept, (order, f)], key=_order_of)

    def remove_evictor(self, f):
        """Forget an evictor; nothing happens if it is not there."""
        self.evictors = [e for e in self.evictors if e[1] is not f]

    def stats(self):
        """The present figures, consistent with each other.

        Returns
        -------
        BudgetStats
        """
        self.check_process()
        cdef BudgetFigures f = deref(self.core).figures()
        return BudgetStats(f.total, f.used, f.total - f.used, f.peak, f.waiters, f.waits,
                           {entry.first.decode(): entry.second for entry in f.by_tag})

    def __reduce__(self):
        raise TypeError("a MemoryBudget cannot be copied or pickled: it belongs to its process")

    # ---- for the pool ----

    cdef int check_process(self) except -1:
        if self.generation != driver.generation():
            raise ForkError("this memory belongs to the process that was forked: make new owners in the child")
        return 0

    cdef int refuse_if_never(self, size_t nbytes, str tag) except -1:
        if nbytes > deref(self.core).total():
            raise self.exceeded(nbytes, tag, "that is more than the whole budget")
        return 0

    cdef object exceeded(self, size_t nbytes, str tag, str why):
        s = self.stats()
        held = ", ".join(f"{k} {v}" for k, v in sorted(s.by_tag.items(), key=_second, reverse=True))
        return BudgetExceeded(f"cannot hold {nbytes} bytes for {tag!r}: {why}. Total {s.total}, used {s.used}"
                              + (f" ({held})" if held else "") + ". Release owners, or raise the limit")

    cdef int evict(self, size_t nbytes) except -1:
        """Ask evictors, in order, until nbytes fit."""
        cdef size_t missing
        me = threading.get_ident()
        if me in self.evicting:
            raise self.exceeded(nbytes, "an evictor", "an evictor cannot wait for the budget it serves")
        self.evicting.add(me)
        try:
            for _, f in self.evictors:
                missing = deref(self.core).missing(nbytes)
                if missing == 0:
                    break
                try:
                    f(missing)
                except Exception as e:
                    sys.unraisablehook(_Unraisable(type(e), e, e.__traceback__, "an evictor failed", f))
        finally:
            self.evicting.discard(me)
        return 0

    cdef bint worth_evicting(self, size_t nbytes) except -1:
        """False if evicting everything would not make nbytes fit: then what is warm should stay so."""
        cdef size_t missing = deref(self.core).missing(nbytes)
        for _, f in self.evictors:
            idle = getattr(f, "idle_bytes", None)
            if idle is None:
                return True  # who knows
            n = idle()
            if n >= missing:
                return True
            missing -= n
        return missing == 0


class _Unraisable:
    """What `sys.unraisablehook` wants to be told."""

    def __init__(self, exc_type, exc_value, exc_traceback, err_msg, object):
        self.exc_type = exc_type
        self.exc_value = exc_value
        self.exc_traceback = exc_traceback
        self.err_msg = err_msg
        self.object = object


def _order_of(entry):
    return entry[0]


def _second(entry):
    return entry[1]


@cython.final
cdef class _Turn:
    """A place in the queue of a budget."""

    def __cinit__(self, MemoryBudget budget not None, size_t nbytes, str tag, timeout, cancel):
        self.budget = budget
        self.nbytes = nbytes
        self.tag = tag
        self.timeout = -1 if timeout is None else timeout
        self.deadline = 0 if timeout is None else time.monotonic() + timeout
        self.cancel = cancel
        if threading.get_ident() in budget.evicting:
            raise budget.exceeded(nbytes, tag, "an evictor cannot wait for the budget it serves")
        self.home = budget.core
        deref(self.home).enter(&self.core)

    cdef int wait(self) except -1:
        """Return when this is the head of the queue and something changed since the last return.

        The first return of a request that is the head at once comes even with a timeout of 0.
        """
        cdef Budget* core = self.budget.core.get()
        cdef int64_t slice_ms = 0  # the first look comes whatever the timeout
        cdef double left
        cdef bint mine
        while True:
            if self.looked:
                PyErr_CheckSignals()
                if self.cancel is not None and self.cancel.is_set():
                    raise Cancelled(f"waiting for {self.nbytes} bytes for {self.tag!r} was cancelled")
                slice_ms = 20  # Ctrl-C and `cancel` are looked at that often; a change wakes at once
                if self.timeout >= 0:
                    left = self.deadline - time.monotonic()
                    if left <= 0:
                        s = self.budget.stats()
                        raise WaitTimeout(f"waited {self.timeout:g} s in vain for {self.nbytes} bytes for {self.tag!r}: "
                                          f"total {s.total}, used {s.used}, {s.waiting} waiting. "
                                          "Release owners, raise the limit or wait longer")
                    slice_ms = min(slice_ms, <int64_t>(left * 1000) + 1)
            self.looked = True
            with nogil:
                mine = core.wait_turn(&self.core, slice_ms)
            if mine:
                return 0

    cdef int leave(self) except -1:
        deref(self.home).leave(&self.core)
        return 0

    def __dealloc__(self):
        if self.home.get() != NULL:
            deref(self.home).leave(&self.core)


@cython.final
cdef class Reservation:
    """Bytes of a `MemoryBudget`, held until released or dropped. Made by `MemoryBudget.reserve`.

    Attributes
    ----------
    nbytes : int
        What is held now.
    tag : str
    """

    def __init__(self):
        raise TypeError("a Reservation is made by MemoryBudget.reserve")

    @property
    def nbytes(self):
        return self.held

    def release(self, nbytes=None):
        """Give bytes back.

        Parameters
        ----------
        nbytes : int, optional
            That many, the reservation lives on with the rest; None ends it, which can be done once.

        Raises
        ------
        UseAfterRelease
            It was released before.
        ValueError
            More than it holds.
        """
        self._check()
        cdef size_t n = self.held if nbytes is None else nbytes_of(nbytes, "nbytes")
        if n > self.held:
            raise ValueError(f"cannot release {n} bytes of a reservation of {self.held}")
        self.held -= n
        self.released = nbytes is None
        deref(self.home).give(n, self.counted)

    def split(self, nbytes):
        """Move bytes into a reservation of their own, under the same tag.

        Returns
        -------
        Reservation
        """
        self._check()
        cdef size_t n = nbytes_of(nbytes, "nbytes")
        if n > self.held:
            raise ValueError(f"cannot split {n} bytes off a reservation of {self.held}")
        cdef Reservation other = Reservation.__new__(Reservation)
        other.home = self.home
        other.generation = self.generation
        other.counted = self.counted
        other.tag = self.tag
        other.held = n
        self.held -= n
        return other

    cdef int _check(self) except -1:
        if self.generation != driver.generation():
            raise ForkError("this memory belongs to the process that was forked: make new owners in the child")
        if self.released:
            raise UseAfterRelease(f"this reservation ({self.tag!r}) was released before")
        return 0

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, *exc):
        if not self.released:
            self.release()

    def __reduce__(self):
        raise TypeError("a Reservation cannot be copied or pickled: it has one owner")

    def __repr__(self):
        return f"<Reservation {self.tag!r} {'released' if self.released else str(self.held) + ' bytes'}>"

    def __dealloc__(self):
        if self.home.get() != NULL and self.held and self.generation == driver.generation():
            deref(self.home).give(self.held, self.counted)


cdef Reservation _reservation(MemoryBudget budget, size_t nbytes, Tag* counted, str tag):
    cdef Reservation r = Reservation.__new__(Reservation)
    r.home = budget.core
    r.generation = budget.generation
    r.counted = counted
    r.tag = tag
    r.held = nbytes
    return r


# ---- arguments ----

cdef size_t nbytes_of(object value, str name) except? 0:
    """A size in bytes: TypeError unless a whole number, ValueError if negative, OverflowError from 2**63 on."""
    cdef Py_ssize_t n = value
    if n < 0:
        raise ValueError(f"{name} must not be negative, not {n}")
    return <size_t>n


cdef int check_wait(object timeout, object cancel) except -1:
    if timeout is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
            raise TypeError(f"timeout must be seconds or None, not {timeout!r}")
        if not timeout >= 0:
            raise ValueError(f"timeout must not be negative, not {timeout!r}")
    if cancel is not None and not callable(getattr(cancel, "is_set", None)):
        raise TypeError(f"cancel must be a threading.Event, not {type(cancel).__name__}")
    return 0


# ---- the default budget ----

_default_budget = None
_default_lock = threading.Lock()


def _in_child():
    global _default_lock
    _default_lock = threading.Lock()


os.register_at_fork(after_in_child=_in_child)


def _total_of_environment():
    text = os.environ.get("PINZK_MAX_PINNED", "").strip()
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise ValueError(f"PINZK_MAX_PINNED must be a positive number of bytes, not {text!r}")
    return int(text)


def _default_total():
    """What this process may use, less what the rest of it and the system need."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = control_group.memory_limit()
    if limit is not None:
        memory = min(memory, limit)
    gib = 1 << 30
    margin = min(max(memory // 10, gib), 5 * gib)
    return max(memory - margin, memory // 2)
