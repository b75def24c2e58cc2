# SPDX-License-Identifier: Apache-2.0
"""C face of vectors in device memory."""

from libc.stdint cimport uint64_t

from pinzk._core cimport driver
from pinzk._core.device.streams cimport Device, _Home, Stream
from pinzk._core.memory.budget cimport Reservation


cdef class DeviceVec:
    cdef readonly object elem
    cdef readonly Device device
    cdef _Home home
    cdef uint64_t pointer
    cdef size_t row                  # bytes of one element
    cdef size_t limbs                # 64-bit words of one element; 0 for bytes
    cdef size_t n                    # elements that were uploaded or committed
    cdef size_t limit                # elements that fit
    cdef Reservation held
    cdef dict uses                   # stream handle -> Stream of ours, or Event on a foreign one
    cdef bint unknown                # a use could not be recorded
    cdef bint shared                 # another library was told the address
    cdef int exports                 # DLPack capsules and what was made of them
    cdef object keep                 # of a view: what keeps the memory alive
    cdef int calls                   # calls in progress on it; under the GIL
    cdef int state
    cdef unsigned generation
    cdef object __weakref__

    cdef object reader_stream(self)
    cdef int shape_of(self, object elem) except -1
    cdef void leave(self) noexcept
    cdef int check_live(self) except -1
    cdef int begin_use(self, Stream stream) except -1
    cdef int end_use(self, Stream stream) except -1
