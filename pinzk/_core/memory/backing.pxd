# SPDX-License-Identifier: Apache-2.0
"""C face of blocks and leases, for vectors and the device room."""

from libcpp.memory cimport shared_ptr

from pinzk._core.memory.core cimport Block, Kind, Pool


cdef enum:
    LIVE = 0
    MOVED = 1
    RELEASED = 2


cdef class PinnedBacking:
    cdef Block* block                # NULL for an empty one, and once moved or released
    cdef shared_ptr[Pool] core
    cdef readonly object pool
    cdef int state
    cdef int readers                 # leases alive and calls in progress; under the GIL
    cdef bint writer                 # a lease of borrow_mut alive, or a change in progress
    cdef unsigned generation
    cdef object __weakref__

    cdef int check_live(self) except -1
    cdef int check_unborrowed(self) except -1
    cdef int check_idle(self, bint writes_only, bint wait) except -1
    cdef int begin_change(self, bint wait) except -1
    cdef int use(self, void* stream, bint writes) except -1
    cdef PinnedBacking move(self)


cdef class Lease:
    cdef PinnedBacking backing
    cdef char* ptr
    cdef bint mutable
    cdef bint words
    cdef Py_ssize_t shape[2]
    cdef Py_ssize_t strides[2]
    cdef object __weakref__


cdef PinnedBacking new_backing(object pool, const shared_ptr[Pool]& core, unsigned generation, Block* block)
cdef int attach(Lease new, PinnedBacking backing, size_t start, size_t rows, size_t limbs, bint mutable) except -1
cdef str kind_name(Kind kind)
cdef void* stream_handle(object stream) except? NULL
