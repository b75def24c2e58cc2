# SPDX-License-Identifier: Apache-2.0
"""C face of the driver door: every function answers with the driver's status code, needs no GIL and never raises."""

from libc.stdint cimport uint64_t

ctypedef void* Context
ctypedef void* Event
ctypedef void* Stream
ctypedef void* MemoryPool
ctypedef void* ModuleHandle
ctypedef void* Kernel

cdef struct Facts:
    char name[256]
    unsigned char uuid[16]
    size_t nbytes
    int major, minor, multiprocessors

cdef enum:
    SUCCESS = 0
    INVALID_VALUE = 1
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

# One context more on the calling thread's stack, and one less.
cdef int enter(Context context) noexcept nogil
cdef void leave() noexcept nogil

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

# Devices; no context is made.
cdef int device_count(int* n) noexcept nogil
cdef int device_facts(int ordinal, Facts* facts) noexcept nogil
cdef int driver_version(int* version) noexcept nogil

# Streams (without the implicit waits of the default stream) and events that tell the time.
cdef int stream_create(Context context, Stream* stream) noexcept nogil
cdef int stream_destroy(Stream stream) noexcept nogil
cdef int stream_synchronize(Context context, Stream stream) noexcept nogil
cdef int stream_wait_event(Context context, Stream stream, Event event) noexcept nogil
cdef int timed_event(Context context, Event* event, Stream stream) noexcept nogil
cdef int event_synchronize(Event event) noexcept nogil
# An event behind all the work of the context so far, whoever enqueued it.
cdef int context_event(Context context, Event* event) noexcept nogil
cdef int event_elapsed(float* ms, Event since, Event until) noexcept nogil

# Device memory, from a pool that keeps what is freed. On return of device_alloc it may be used by any stream.
cdef int memory_pool_create(Context context, int ordinal, MemoryPool* pool) noexcept nogil
cdef int memory_pool_trim(Context context, MemoryPool pool) noexcept nogil
cdef int device_alloc(Context context, MemoryPool pool, Stream stream, uint64_t* pointer, size_t nbytes) noexcept nogil
cdef int device_free(Context context, Stream stream, uint64_t pointer) noexcept nogil
cdef int memory_info(Context context, size_t* free, size_t* total) noexcept nogil
# The device that an address belongs to; INVALID_VALUE if it is none of the driver's.
cdef int pointer_device(Context context, uint64_t pointer, int* ordinal) noexcept nogil
cdef int host_to_device(Context context, uint64_t to, const void* source, size_t nbytes, Stream stream) noexcept nogil
cdef int device_to_host(Context context, void* to, uint64_t source, size_t nbytes, Stream stream) noexcept nogil

# Modules are never unloaded: that would wait for running kernels.
cdef int module_load(Context context, ModuleHandle* module, const void* image) noexcept nogil
cdef int module_function(Context context, Kernel* kernel, ModuleHandle module, const char* name) noexcept nogil
cdef int kernel_parameter(Kernel kernel, size_t i, size_t* nbytes) noexcept nogil
cdef int kernel_allow_shared(Context context, Kernel kernel, int nbytes) noexcept nogil
cdef int launch_kernel(Context context, Kernel kernel, const unsigned* grid, const unsigned* block, unsigned shared,
                       Stream stream, void** parameters) noexcept nogil
