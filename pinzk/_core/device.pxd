# SPDX-License-Identifier: Apache-2.0
"""C face of devices, for kernels and stages."""

from libc.stdint cimport uint64_t

from pinzk._core cimport driver
from pinzk._core.memory.budget cimport MemoryBudget, Reservation


cdef class _Home:
    cdef int ordinal
    cdef driver.Facts facts
    cdef driver.Context context      # NULL until something needs it
    cdef driver.Stream stream        # of allocations alone: never waits for work
    cdef driver.MemoryPool pool
    cdef MemoryBudget budget
    cdef object lock                 # the user's: Device.lock
    cdef object guard                # of opening and sweeping
    cdef bint sweeping
    cdef list pending                # (pointer, reservation, events): released, maybe still in use
    cdef list lost                   # the same, where a use can no longer be followed: never freed

    cdef int open(self) except -1
    cdef int sweep(self) except -1
    cdef bint wait_oldest(self) except -1
    cdef Reservation reserve(self, size_t nbytes, str tag)
    cdef void give_back(self, uint64_t pointer, Reservation held, dict uses, bint unknown) noexcept


cdef class Device:
    cdef _Home home


cdef class Event:
    cdef driver.Event event
    cdef unsigned generation
    cdef _Home home
    cdef object __weakref__


cdef class Stream:
    cdef readonly Device device
    cdef driver.Stream stream
    cdef unsigned generation
    cdef bint owned
    cdef bint closed
    cdef int calls                   # calls in progress on it; under the GIL
    cdef Event last                  # recorded when it was closed
    cdef object __weakref__

    cdef int check_open(self) except -1
    cdef Event mark(self)


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
    cdef driver.Stream last          # the stream of the latest use
    cdef bint unknown                # a use could not be recorded
    cdef int calls                   # calls in progress on it; under the GIL
    cdef int state
    cdef unsigned generation
    cdef object __weakref__

    cdef int check_live(self) except -1
    cdef int begin_use(self, Stream stream) except -1
    cdef int end_use(self, Stream stream) except -1


cdef class Module:
    cdef readonly Device device
    cdef driver.ModuleHandle module
    cdef dict functions


cdef class Function:
    cdef readonly str name
    cdef readonly Module module
    cdef readonly tuple widths       # bytes of each parameter
    cdef driver.Kernel kernel
    cdef unsigned allowed            # dynamic shared memory asked for so far
