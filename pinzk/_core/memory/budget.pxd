# SPDX-License-Identifier: Apache-2.0
"""C face of the budget, for the pool."""

from libcpp.memory cimport shared_ptr

from pinzk._core.memory.core cimport Budget, CTurn, Tag


cdef class MemoryBudget:
    cdef shared_ptr[Budget] core
    cdef unsigned generation
    cdef list evictors
    cdef set evicting
    cdef object __weakref__

    cdef int check_process(self) except -1
    cdef int refuse_if_never(self, size_t nbytes, str tag) except -1
    cdef int evict(self, size_t nbytes) except -1
    cdef bint worth_evicting(self, size_t nbytes) except -1
    cdef object exceeded(self, size_t nbytes, str tag, str why)


cdef class _Turn:
    """A place in the queue of a budget; `wait` returns when it is the head and something changed."""
    cdef CTurn core
    cdef shared_ptr[Budget] home
    cdef MemoryBudget budget
    cdef size_t nbytes
    cdef str tag
    cdef double deadline
    cdef double timeout
    cdef object cancel
    cdef bint looked

    cdef int wait(self) except -1
    cdef int leave(self) except -1


cdef class Reservation:
    cdef shared_ptr[Budget] home
    cdef unsigned generation
    cdef Tag* counted
    cdef size_t held
    cdef bint released
    cdef readonly str tag
    cdef object __weakref__

    cdef int _check(self) except -1


cdef int check_wait(object timeout, object cancel) except -1
cdef size_t nbytes_of(object value, str name) except? 0
