# SPDX-License-Identifier: Apache-2.0
"""C face of vectors, for assignments and the device room."""

from pinzk._core.memory.backing cimport PinnedBacking
from pinzk._core.memory.pool cimport PinnedPool


cdef class PinnedVec:
    cdef readonly object elem
    cdef readonly PinnedPool pool
    cdef PinnedBacking backing
    cdef size_t row          # bytes of one element
    cdef size_t limbs        # 64-bit words of one element; 0 for bytes
    cdef size_t n            # elements that may be read
    cdef size_t limit        # elements that fit
    cdef size_t spare        # elements behind n that spare_mut has laid open
    cdef int state
    cdef bint busy           # a change is in progress, maybe on another thread
    cdef object __weakref__

    cdef int check_live(self) except -1
    cdef int open(self, size_t n) except -1
    cdef int close(self) except -1
    cdef int grow(self, size_t n) except -1
    cdef int move_to(self, PinnedBacking to) except -1
    cdef char* write(self, size_t n) except NULL
    cdef size_t bytes_for(self, size_t n) except? 0
