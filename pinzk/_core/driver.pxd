# SPDX-License-Identifier: Apache-2.0
"""C face of the driver door: every function answers with the driver's status code, needs no GIL and never raises."""

from libc.stdint cimport uint64_t

ctypedef void* Context
ctypedef void* Event
ctypedef void* Stream

cdef enum:
    SUCCESS = 0
    DEINITIALIZED = 4
    NOT_FOUND = 500
    NOT_READY = 600

# With the GIL; these raise.
cdef int ensure() except -1
cdef int check(int code, str call) except -1
cdef object error(int code, str call)
cdef Context primary_context(int ordinal) except NULL

# 0 in the process that imported pinzk, one more in each child of a fork. A load, no system call.
cdef unsigned generation() noexcept nogil

# The context is made current for the call and the caller's is put back.
cdef int host_alloc(Context context, void** pointer, size_t nbytes) noexcept nogil
cdef int host_free(Context context, void* pointer) noexcept nogil
cdef int host_register(Context context, void* pointer, size_t nbytes) noexcept nogil
cdef int host_unregister(Context context, void* pointer) noexcept nogil
cdef int event_create(Context context, Event* event) noexcept nogil
cdef int event_destroy(Event event) noexcept nogil
cdef int event_record(Event event, Stream stream) noexcept nogil
cdef int event_query(Event event) noexcept nogil
cdef int stream_context(Stream stream, Context* context, uint64_t* context_id) noexcept nogil
cdef int stream_is_capturing(Stream stream, int* capturing) noexcept nogil
