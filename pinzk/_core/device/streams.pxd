# SPDX-License-Identifier: Apache-2.0
"""C face of devices and streams."""

from libc.stdint cimport uint64_t

from pinzk._core cimport driver
from pinzk._core.memory.budget cimport MemoryBudget, Reservation


cdef class Event


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
    cdef list pending                # (pointer, reservation, events): released, maybe still used; views: (0, array, events)
    cdef list lost                   # the same, where a use can no longer be followed: never freed

    cdef int open(self) except -1
    cdef int sweep(self) except -1
    cdef list unfinished(self)
    cdef bint wait_oldest(self) except -1
    cdef Reservation reserve(self, size_t nbytes, str tag)
    cdef Event everything(self)
    cdef void give_back(self, uint64_t pointer, object held, dict uses, bint unknown, bint shared) noexcept


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


# The argument `stream` of a call: one of ours, or a foreign one, of that device and not under capture.
cdef Stream stream_of(Device device, object stream)
# Whether the interpreter is on its way out: then destructors make no driver call.
cdef bint exiting() noexcept nogil
