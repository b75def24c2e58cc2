# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The one door to the CUDA driver: `cydriver` functions of CUDA 13.0, called without the GIL, errors with name and remedy.

Importing this module loads no driver and touches no GPU; the first `ensure()` does. The door holds no policy: who
allocates what, and when, is decided in the modules that call it.
"""

from cpython.exc cimport PyErr_Clear
from cuda.bindings cimport cydriver as cu
from libc.string cimport memcpy, memset

from pinzk.errors import BackendUnavailable, ContextLost, DeviceError, ForkError


cdef extern from "<pthread.h>" nogil:
    int pthread_atfork(void (*prepare)() noexcept, void (*parent)() noexcept, void (*child)() noexcept)


# ---- fork ----

cdef unsigned _generation = 0


cdef void _in_child() noexcept nogil:
    global _generation
    _generation += 1


cdef unsigned generation() noexcept nogil:
    return _generation


pthread_atfork(NULL, NULL, _in_child)


# ---- status codes ----

# What to do about the codes a user can meet; the driver's own text says what they mean.
_REMEDIES = {
    2: "free memory on the device or the host, or ask for less",
    35: "update the NVIDIA driver to one that supports CUDA 13",
    46: "another process holds the device exclusively; wait for it or choose another device",
    100: "no usable device: look at nvidia-smi and CUDA_VISIBLE_DEVICES, or use device='cpu'",
    101: "the device number does not exist: look at nvidia-smi and CUDA_VISIBLE_DEVICES",
    201: "make a context current, or pass a stream that belongs to one",
    304: "the operating system refused: raise the memlock limit (ulimit -l) or let the container lock memory",
    500: "the driver lacks a function of CUDA 13.0: update it",
    712: "this memory is registered already: release the other owner first",
    801: "this system cannot do it (WSL and some containers cannot lock memory): use kind='auto' or 'pageable'",
    802: "the device is not ready (fabric manager, MIG or a reset): look at nvidia-smi",
    803: "the driver and the kernel module differ: reboot or reload the module",
    900: "pinzk cannot be captured into a CUDA graph: keep its calls outside the capture",
    906: "pinzk cannot be captured into a CUDA graph: keep its calls outside the capture",
    999: "look at dmesg and nvidia-smi",
}
# After these the context is unusable for the rest of the process.
_STICKY = frozenset((700, 702, 709, 710, 714, 715, 716, 717, 718, 719))


cdef str _text(const char* text):
    return "" if text == NULL else text.decode("utf-8", "replace")


def describe(int code):
    """Name and explanation the driver has for a status code; ("CUDA_ERROR_...", "...").

    Works without a driver too, then with less to say.
    """
    cdef const char* name = NULL
    cdef const char* explanation = NULL
    try:
        with nogil:
            cu.cuGetErrorName(<cu.CUresult>code, &name)
            cu.cuGetErrorString(<cu.CUresult>code, &explanation)
    except RuntimeError:
        pass
    return _text(name) or f"CUDA_ERROR_{code}", _text(explanation) or "unknown error"


cdef int check(int code, str call) except -1:
    """Raise `DeviceError` (or `ContextLost`) unless the code is success."""
    if code == cu.CUDA_SUCCESS:
        return 0
    raise error(code, call)


cdef object error(int code, str call):
    """The exception for a status code: what failed, the name, the explanation, the remedy."""
    name, explanation = describe(code)
    if code in _STICKY:
        return ContextLost(
            f"{call} failed: {name} ({explanation}). An earlier error broke the device context: restart the process",
            code=code, name=name, call=call)
    remedy = _REMEDIES.get(code)
    advice = f". {remedy[0].upper()}{remedy[1:]}" if remedy else ""
    return DeviceError(f"{call} failed: {name} ({explanation}){advice}", code=code, name=name, call=call)


# ---- start ----

cdef bint _ready = False
cdef unsigned _ready_in = 0
cdef object _failure = None  # (reason, code, name), said again at every later call


cdef int ensure() except -1:
    """Load the driver and initialise it, once.

    Raises
    ------
    BackendUnavailable
        No driver, or it refuses; the same error at every call, from any thread.
    ForkError
        The process that this one was forked from had initialised the driver.
    """
    global _ready, _ready_in, _failure
    if _ready:
        if _ready_in != _generation:
            raise ForkError("CUDA was initialised before a fork and cannot be used in the child; start children with "
                            "multiprocessing's 'spawn' or 'forkserver'")
        return 0
    if _failure is not None:
        raise BackendUnavailable(_failure[0], code=_failure[1], name=_failure[2], call="cuInit")
    cdef cu.CUresult code = cu.CUDA_SUCCESS
    try:
        with nogil:
            code = cu.cuInit(0)
    except RuntimeError as e:  # cydriver found no libcuda
        reason = (str(e).splitlines() or ["libcuda.so.1 not found"])[0].rstrip(".")
        _failure = (f"no CUDA driver: {reason}. Install the NVIDIA driver, or use device='cpu'", None, None)
        raise BackendUnavailable(_failure[0], call="cuInit") from None
    if code != cu.CUDA_SUCCESS:
        name, explanation = describe(code)
        remedy = _REMEDIES.get(<int>code, "look at nvidia-smi, or use device='cpu'")
        reason = f"the CUDA driver cannot start: {name} ({explanation}). {remedy[0].upper()}{remedy[1:]}"
        _failure = (reason, <int>code, name)
        raise BackendUnavailable(_failure[0], code=<int>code, name=name, call="cuInit")
    _ready_in = _generation
    _ready = True
    return 0


cdef dict _primary = {}  # ordinal -> handle; retained until the process ends


cdef Context primary_context(int ordinal) except NULL:
    """The primary context of a device, retained on first use; the caller's current context stays as it is.

    `ordinal` < 0 means the device of the caller's current context, else device 0: page-locking must not create a
    context on a device that nobody chose.
    """
    ensure()
    cdef cu.CUresult code
    cdef cu.CUcontext context = NULL
    cdef cu.CUdevice device = 0
    if ordinal < 0:
        with nogil:
            code = cu.cuCtxGetCurrent(&context)
        check(code, "cuCtxGetCurrent")
        ordinal = 0
        if context != NULL:
            with nogil:
                code = cu.cuCtxGetDevice(&device)
            check(code, "cuCtxGetDevice")
            ordinal = <int>device
    if ordinal in _primary:
        return <Context><size_t>_primary[ordinal]
    with nogil:
        code = cu.cuDeviceGet(&device, ordinal)
        if code == cu.CUDA_SUCCESS:
            context = NULL
            code = cu.cuDevicePrimaryCtxRetain(&context, device)
    check(code, "cuDevicePrimaryCtxRetain")
    _primary[ordinal] = <size_t><void*>context
    return <Context>context


# ---- calls by status code ----
#
# cydriver reports a missing function as a Python error behind CUDA_ERROR_NOT_FOUND. These functions are called from
# native threads and from C++ that could not see such an error, so it is cleared here and only the code is left.

ctypedef cu.CUresult (*_OfContext)(cu.CUcontext) noexcept nogil
ctypedef cu.CUresult (*_OfContextOut)(cu.CUcontext*) noexcept nogil
ctypedef cu.CUresult (*_ContextId)(cu.CUcontext, unsigned long long*) noexcept nogil
ctypedef cu.CUresult (*_HostAlloc)(void**, size_t, unsigned int) noexcept nogil
ctypedef cu.CUresult (*_OfPointer)(void*) noexcept nogil
ctypedef cu.CUresult (*_HostRegister)(void*, size_t, unsigned int) noexcept nogil
ctypedef cu.CUresult (*_EventCreate)(cu.CUevent*, unsigned int) noexcept nogil
ctypedef cu.CUresult (*_OfEvent)(cu.CUevent) noexcept nogil
ctypedef cu.CUresult (*_EventRecord)(cu.CUevent, cu.CUstream) noexcept nogil
ctypedef cu.CUresult (*_StreamContext)(cu.CUstream, cu.CUcontext*) noexcept nogil
ctypedef cu.CUresult (*_IsCapturing)(cu.CUstream, cu.CUstreamCaptureStatus*) noexcept nogil
ctypedef cu.CUresult (*_Count)(int*) noexcept nogil
ctypedef cu.CUresult (*_DeviceGet)(cu.CUdevice*, int) noexcept nogil
ctypedef cu.CUresult (*_Uuid)(cu.CUuuid*, cu.CUdevice) noexcept nogil
ctypedef cu.CUresult (*_Name)(char*, int, cu.CUdevice) noexcept nogil
ctypedef cu.CUresult (*_TotalMem)(size_t*, cu.CUdevice) noexcept nogil
ctypedef cu.CUresult (*_Attribute)(int*, cu.CUdevice_attribute, cu.CUdevice) noexcept nogil
ctypedef cu.CUresult (*_StreamCreate)(cu.CUstream*, unsigned int) noexcept nogil
ctypedef cu.CUresult (*_OfStream)(cu.CUstream) noexcept nogil
ctypedef cu.CUresult (*_WaitEvent)(cu.CUstream, cu.CUevent, unsigned int) noexcept nogil
ctypedef cu.CUresult (*_Elapsed)(float*, cu.CUevent, cu.CUevent) noexcept nogil
ctypedef cu.CUresult (*_ContextRecord)(cu.CUcontext, cu.CUevent) noexcept nogil
ctypedef cu.CUresult (*_MemGetInfo)(size_t*, size_t*) noexcept nogil
ctypedef cu.CUresult (*_PointerGet)(void*, cu.CUpointer_attribute, cu.CUdeviceptr) noexcept nogil
ctypedef cu.CUresult (*_PoolCreate)(cu.CUmemoryPool*, const cu.CUmemPoolProps*) noexcept nogil
ctypedef cu.CUresult (*_PoolSet)(cu.CUmemoryPool, cu.CUmemPool_attribute, void*) noexcept nogil
ctypedef cu.CUresult (*_PoolTrim)(cu.CUmemoryPool, size_t) noexcept nogil
ctypedef cu.CUresult (*_AllocFrom)(cu.CUdeviceptr*, size_t, cu.CUmemoryPool, cu.CUstream) noexcept nogil
ctypedef cu.CUresult (*_FreeAsync)(cu.CUdeviceptr, cu.CUstream) noexcept nogil
ctypedef cu.CUresult (*_HostToDevice)(cu.CUdeviceptr, const void*, size_t, cu.CUstream) noexcept nogil
ctypedef cu.CUresult (*_DeviceToHost)(void*, cu.CUdeviceptr, size_t, cu.CUstream) noexcept nogil
ctypedef cu.CUresult (*_ModuleLoad)(cu.CUmodule*, const void*) noexcept nogil
ctypedef cu.CUresult (*_GetFunction)(cu.CUfunction*, cu.CUmodule, const char*) noexcept nogil
ctypedef cu.CUresult (*_OfFunction)(cu.CUfunction) noexcept nogil
ctypedef cu.CUresult (*_ParamInfo)(cu.CUfunction, size_t, size_t*, size_t*) noexcept nogil
ctypedef cu.CUresult (*_FunctionSet)(cu.CUfunction, cu.CUfunction_attribute, int) noexcept nogil
ctypedef cu.CUresult (*_Launch)(cu.CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,
                                unsigned int, unsigned int, cu.CUstream, void**, void**) noexcept nogil


cdef void _clear_python_error() noexcept with gil:
    PyErr_Clear()


cdef inline int _code(cu.CUresult code) noexcept nogil:
    if code == cu.CUDA_ERROR_NOT_FOUND:
        _clear_python_error()
    return <int>code


cdef int enter(Context context) noexcept nogil:
    return _code((<_OfContext>cu.cuCtxPushCurrent)(<cu.CUcontext>context))


cdef void leave() noexcept nogil:
    cdef cu.CUcontext left
    _code((<_OfContextOut>cu.cuCtxPopCurrent)(&left))


cdef int host_alloc(Context context, void** pointer, size_t nbytes) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_HostAlloc>cu.cuMemHostAlloc)(pointer, nbytes, cu.CU_MEMHOSTALLOC_PORTABLE))
        leave()
    return code


cdef int host_free(Context context, void* pointer) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_OfPointer>cu.cuMemFreeHost)(pointer))
        leave()
    return code


cdef int host_register(Context context, void* pointer, size_t nbytes) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_HostRegister>cu.cuMemHostRegister)(pointer, nbytes, cu.CU_MEMHOSTREGISTER_PORTABLE))
        leave()
    return code


cdef int host_unregister(Context context, void* pointer) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_OfPointer>cu.cuMemHostUnregister)(pointer))
        leave()
    return code


cdef int event_create(Context context, Event* event) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_EventCreate>cu.cuEventCreate)(<cu.CUevent*>event, cu.CU_EVENT_DISABLE_TIMING))
        leave()
    return code


cdef int event_destroy(Event event) noexcept nogil:
    return _code((<_OfEvent>cu.cuEventDestroy)(<cu.CUevent>event))


cdef int event_record(Event event, Stream stream) noexcept nogil:
    return _code((<_EventRecord>cu.cuEventRecord)(<cu.CUevent>event, <cu.CUstream>stream))


cdef int event_query(Event event) noexcept nogil:
    return _code((<_OfEvent>cu.cuEventQuery)(<cu.CUevent>event))


cdef int stream_context(Stream stream, Context* context, uint64_t* context_id) noexcept nogil:
    cdef int code = _code((<_StreamContext>cu.cuStreamGetCtx)(<cu.CUstream>stream, <cu.CUcontext*>context))
    if code == 0:
        code = _code((<_ContextId>cu.cuCtxGetId)(<cu.CUcontext>context[0], <unsigned long long*>context_id))
    return code


cdef int stream_is_capturing(Stream stream, int* capturing) noexcept nogil:
    cdef cu.CUstreamCaptureStatus status = cu.CU_STREAM_CAPTURE_STATUS_NONE
    cdef int code = _code((<_IsCapturing>cu.cuStreamIsCapturing)(<cu.CUstream>stream, &status))
    capturing[0] = status != cu.CU_STREAM_CAPTURE_STATUS_NONE
    return code


# ---- devices ----

cdef int device_count(int* n) noexcept nogil:
    return _code((<_Count>cu.cuDeviceGetCount)(n))


cdef int device_facts(int ordinal, Facts* facts) noexcept nogil:
    cdef cu.CUdevice device
    cdef cu.CUuuid uuid
    cdef int code = _code((<_DeviceGet>cu.cuDeviceGet)(&device, ordinal))
    if code == 0:
        code = _code((<_Name>cu.cuDeviceGetName)(facts.name, sizeof(facts.name), device))
    if code == 0:
        code = _code((<_Uuid>cu.cuDeviceGetUuid)(&uuid, device))
    if code == 0:
        memcpy(facts.uuid, uuid.bytes, 16)
        code = _code((<_TotalMem>cu.cuDeviceTotalMem)(&facts.nbytes, device))
    if code == 0:
        code = _code((<_Attribute>cu.cuDeviceGetAttribute)(
            &facts.major, cu.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device))
    if code == 0:
        code = _code((<_Attribute>cu.cuDeviceGetAttribute)(
            &facts.minor, cu.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device))
    if code == 0:
        code = _code((<_Attribute>cu.cuDeviceGetAttribute)(
            &facts.multiprocessors, cu.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device))
    return code


cdef int driver_version(int* version) noexcept nogil:
    return _code((<_Count>cu.cuDriverGetVersion)(version))


# ---- streams and events of a device; a context is current where one is needed ----

cdef int stream_create(Context context, Stream* stream) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_StreamCreate>cu.cuStreamCreate)(<cu.CUstream*>stream, cu.CU_STREAM_NON_BLOCKING))
        leave()
    return code


cdef int stream_destroy(Stream stream) noexcept nogil:
    return _code((<_OfStream>cu.cuStreamDestroy)(<cu.CUstream>stream))


cdef int stream_synchronize(Context context, Stream stream) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_OfStream>cu.cuStreamSynchronize)(<cu.CUstream>stream))
        leave()
    return code


cdef int stream_wait_event(Context context, Stream stream, Event event) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_WaitEvent>cu.cuStreamWaitEvent)(<cu.CUstream>stream, <cu.CUevent>event, 0))
        leave()
    return code


cdef int timed_event(Context context, Event* event, Stream stream) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_EventCreate>cu.cuEventCreate)(<cu.CUevent*>event, cu.CU_EVENT_DEFAULT))
        if code == 0:
            code = event_record(event[0], stream)
            if code != 0:
                event_destroy(event[0])
                event[0] = NULL
        leave()
    return code


cdef int context_event(Context context, Event* event) noexcept nogil:
    cdef int code = event_create(context, event)
    if code == 0:
        code = _code((<_ContextRecord>cu.cuCtxRecordEvent)(<cu.CUcontext>context, <cu.CUevent>event[0]))
        if code != 0:
            event_destroy(event[0])
            event[0] = NULL
    return code


cdef int event_synchronize(Event event) noexcept nogil:
    return _code((<_OfEvent>cu.cuEventSynchronize)(<cu.CUevent>event))


cdef int event_elapsed(float* ms, Event since, Event until) noexcept nogil:
    return _code((<_Elapsed>cu.cuEventElapsedTime)(ms, <cu.CUevent>since, <cu.CUevent>until))


# ---- device memory ----

cdef int memory_pool_create(Context context, int ordinal, MemoryPool* pool) noexcept nogil:
    cdef cu.CUmemPoolProps wanted
    cdef uint64_t keep = <uint64_t>-1
    cdef int never = 0
    memset(&wanted, 0, sizeof(wanted))
    wanted.allocType = cu.CU_MEM_ALLOCATION_TYPE_PINNED
    wanted.location.type = cu.CU_MEM_LOCATION_TYPE_DEVICE
    wanted.location.id = ordinal
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_PoolCreate>cu.cuMemPoolCreate)(<cu.CUmemoryPool*>pool, &wanted))
        if code == 0:
            code = _code((<_PoolSet>cu.cuMemPoolSetAttribute)(
                <cu.CUmemoryPool>pool[0], cu.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep))
        if code == 0:
            code = _code((<_PoolSet>cu.cuMemPoolSetAttribute)(
                <cu.CUmemoryPool>pool[0], cu.CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &never))
        leave()
    return code


cdef int memory_pool_trim(Context context, MemoryPool pool) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_PoolTrim>cu.cuMemPoolTrimTo)(<cu.CUmemoryPool>pool, 0))
        leave()
    return code


cdef int device_alloc(Context context, MemoryPool pool, Stream stream, uint64_t* pointer, size_t nbytes) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_AllocFrom>cu.cuMemAllocFromPoolAsync)(
            <cu.CUdeviceptr*>pointer, nbytes, <cu.CUmemoryPool>pool, <cu.CUstream>stream))
        if code == 0:
            code = _code((<_OfStream>cu.cuStreamSynchronize)(<cu.CUstream>stream))
        leave()
    return code


cdef int device_free(Context context, Stream stream, uint64_t pointer) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_FreeAsync>cu.cuMemFreeAsync)(<cu.CUdeviceptr>pointer, <cu.CUstream>stream))
        leave()
    return code


cdef int memory_info(Context context, size_t* free, size_t* total) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_MemGetInfo>cu.cuMemGetInfo)(free, total))
        leave()
    return code


cdef int pointer_device(Context context, uint64_t pointer, int* ordinal) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_PointerGet>cu.cuPointerGetAttribute)(
            ordinal, cu.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, <cu.CUdeviceptr>pointer))
        leave()
    return code


cdef int host_to_device(Context context, uint64_t to, const void* source, size_t nbytes, Stream stream) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_HostToDevice>cu.cuMemcpyHtoDAsync)(<cu.CUdeviceptr>to, source, nbytes, <cu.CUstream>stream))
        leave()
    return code


cdef int device_to_host(Context context, void* to, uint64_t source, size_t nbytes, Stream stream) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_DeviceToHost>cu.cuMemcpyDtoHAsync)(to, <cu.CUdeviceptr>source, nbytes, <cu.CUstream>stream))
        leave()
    return code


# ---- modules ----

cdef int module_load(Context context, ModuleHandle* module, const void* image) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_ModuleLoad>cu.cuModuleLoadData)(<cu.CUmodule*>module, image))
        leave()
    return code


cdef int module_function(Context context, Kernel* kernel, ModuleHandle module, const char* name) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_GetFunction>cu.cuModuleGetFunction)(<cu.CUfunction*>kernel, <cu.CUmodule>module, name))
        if code == 0:  # now, not at the first launch: loading waits for running kernels
            code = _code((<_OfFunction>cu.cuFuncLoad)(<cu.CUfunction>kernel[0]))
        leave()
    return code


cdef int kernel_parameter(Kernel kernel, size_t i, size_t* nbytes) noexcept nogil:
    cdef size_t offset
    return _code((<_ParamInfo>cu.cuFuncGetParamInfo)(<cu.CUfunction>kernel, i, &offset, nbytes))


cdef int kernel_allow_shared(Context context, Kernel kernel, int nbytes) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_FunctionSet>cu.cuFuncSetAttribute)(
            <cu.CUfunction>kernel, cu.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, nbytes))
        leave()
    return code


cdef int launch_kernel(Context context, Kernel kernel, const unsigned* grid, const unsigned* block, unsigned shared,
                       Stream stream, void** parameters) noexcept nogil:
    cdef int code = enter(context)
    if code == 0:
        code = _code((<_Launch>cu.cuLaunchKernel)(
            <cu.CUfunction>kernel, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, <cu.CUstream>stream,
            parameters, NULL))
        leave()
    return code
