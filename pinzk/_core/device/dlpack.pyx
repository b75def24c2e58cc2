# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False
"""Device memory and other libraries' arrays, without a copy: `DeviceVec`s out by DLPack, arrays in as views.

Order is kept by streams: a reader of ours waits for the uses that its library told us of, and the other way round.
"""

cimport cython
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_New
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t, uintptr_t
from libc.stdlib cimport free, malloc

from pinzk._core cimport driver
from pinzk._core.device.streams cimport Device, Event, Stream, exiting, stream_of
from pinzk._core.device.vectors cimport DeviceVec


# ---- out ----

cdef union _Managed:
    DLManagedTensor plain
    DLManagedTensorVersioned versioned


cdef struct _Export:
    _Managed managed                 # first: its address is that of the whole
    int64_t shape[2]
    int64_t strides[2]


def capsule_of(DeviceVec vec not None, stream, max_version, dl_device, copy):
    """A DLPack capsule over a vector's elements: uint64 of shape (len, limbs), or bytes.

    Parameters
    ----------
    vec : DeviceVec
    stream : int or None
        The reader's stream, which is let wait for the uses so far: None or 1 the legacy default one, -1 no order.
    max_version, dl_device, copy
        As in the Python array API standard.

    Raises
    ------
    BufferError
        A copy, another device, or a view of another library's memory.
    """
    cdef _Export* out
    cdef DLTensor* tensor
    cdef bint versioned
    cdef Stream reader
    vec.check_live()
    if copy:
        raise BufferError("a DeviceVec is exported without a copy: let the reader copy")
    if dl_device is not None and tuple(dl_device) != vec.__dlpack_device__():
        raise BufferError(f"the vector is on CUDA device {vec.home.ordinal}, not on DLPack device {tuple(dl_device)}")
    if vec.keep is not None:
        raise BufferError("a view of another library's memory is not exported: take the array that it was made of")
    versioned = max_version is not None and tuple(max_version) >= (1, 0)
    if stream != -1:
        if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int) or stream < 1):
            raise ValueError(f"stream must be None, -1, 1, 2 or a handle, not {stream!r}")  # 0 means different streams
        events = vec.events()
        if events:
            reader = Stream(vec.device, 1 if stream is None else stream)
            for event in events:
                reader.wait(event)
    vec.check_live()
    out = <_Export*>malloc(sizeof(_Export))
    if out == NULL:
        raise MemoryError()
    tensor = &out.managed.versioned.tensor if versioned else &out.managed.plain.tensor
    tensor.data = <void*><uintptr_t>vec.pointer
    tensor.device.type, tensor.device.id = KDL_CUDA, vec.home.ordinal
    tensor.ndim = 2 if vec.limbs else 1
    tensor.dtype.code, tensor.dtype.bits, tensor.dtype.lanes = KDL_UINT, 64 if vec.limbs else 8, 1
    out.shape[0], out.shape[1] = vec.n, vec.limbs
    out.strides[0], out.strides[1] = max(vec.limbs, 1), 1
    tensor.shape, tensor.strides, tensor.byte_offset = out.shape, out.strides, 0
    try:
        if versioned:
            out.managed.versioned.major, out.managed.versioned.minor, out.managed.versioned.flags = 1, 0, 0
            out.managed.versioned.owner, out.managed.versioned.deleter = <void*>vec, _delete_versioned
            capsule = PyCapsule_New(&out.managed.versioned, "dltensor_versioned", _drop_capsule)
        else:
            out.managed.plain.owner, out.managed.plain.deleter = <void*>vec, _delete_plain
            capsule = PyCapsule_New(&out.managed.plain, "dltensor", _drop_capsule)
    except BaseException:
        free(out)
        raise
    Py_INCREF(vec)  # the deleter's
    vec.exports += 1
    vec.shared = True
    return capsule


cdef void _end(void* owner) noexcept with gil:
    # the reader is done with it on the host; its streams may not be: `shared` has the memory freed behind all of them
    cdef DeviceVec vec = <DeviceVec>owner
    vec.exports -= 1
    Py_DECREF(vec)


cdef void _delete_plain(DLManagedTensor* tensor) noexcept:
    if not exiting():
        _end(tensor.owner)
    free(tensor)


cdef void _delete_versioned(DLManagedTensorVersioned* tensor) noexcept:
    if not exiting():
        _end(tensor.owner)
    free(tensor)


cdef void _drop_capsule(object capsule) noexcept:
    # a reader that took the memory has renamed the capsule
    if PyCapsule_IsValid(capsule, "dltensor"):
        _delete_plain(<DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor"))
    elif PyCapsule_IsValid(capsule, "dltensor_versioned"):
        _delete_versioned(<DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned"))


# ---- in ----

@cython.final
cdef class _Array:
    """What another library says of its array."""

    cdef uint64_t pointer
    cdef tuple shape
    cdef object keep                 # keeps the memory alive


def view(elem, array, Device device not None, stream):
    """A `DeviceVec` over an array of another library, for reading, and the array's shape.

    Nothing is copied. Work enqueued on `stream` from now on comes behind what the library told us of; other streams are the
    caller's to order. The array is kept alive until the view was released and its uses are complete; what is written to it
    before then is read.

    Parameters
    ----------
    elem : Field, Group or "bytes"
    array : object with ``__dlpack__`` or ``__cuda_array_interface__``
        In memory of the device: uint64 or int64 of shape (..., limbs), or uint8 for bytes; elements one behind the other.
    device : Device
    stream : Stream, int or object with ``__cuda_stream__``

    Returns
    -------
    view : DeviceVec
    shape : tuple of int
        The array's.

    Raises
    ------
    TypeError
        It has neither protocol.
    ValueError
        Another device, type or shape; gaps between elements; an address that is no multiple of 16.
    """
    cdef DeviceVec out = DeviceVec.__new__(DeviceVec)
    cdef Stream s = stream_of(device, stream)
    cdef _Array found
    cdef int code, ordinal = -1
    out.shape_of(elem)
    if hasattr(array, "__dlpack__"):
        found = _by_dlpack(array, out.limbs, s)
    elif hasattr(array, "__cuda_array_interface__"):
        found = _by_interface(array, out.limbs, s)
    else:
        raise TypeError(f"expected a device array, with __dlpack__ or __cuda_array_interface__, not {type(array).__name__}")
    shape = found.shape
    if not shape or out.limbs and shape[-1] != out.limbs:
        raise ValueError(f"expected shape (..., {out.limbs}), not {shape}" if out.limbs else "a number is no array")
    n = 1
    for k in shape[:-1] if out.limbs else shape:
        n *= k
    out.n = out.limit = n
    if n:
        if found.pointer % 16:
            raise ValueError("the array's address is no multiple of 16: copy it")
        with nogil:
            code = driver.pointer_device(device.home.context, found.pointer, &ordinal)
        if code == driver.INVALID_VALUE:
            raise ValueError("the array's address is not one of device memory")
        driver.check(code, "cuPointerGetAttribute")
        if ordinal != device.home.ordinal:
            raise ValueError(f"the array is in memory of device {ordinal}, not of device {device.home.ordinal}")
        out.pointer = found.pointer
    out.home, out.device, out.elem = device.home, device, elem
    out.generation = driver.generation()
    out.uses = {}
    out.keep = found.keep
    return out, shape


cdef _Array _by_dlpack(object array, size_t limbs, Stream s):
    cdef _Array found = _Array()
    cdef DLTensor* tensor
    cdef int i
    kind, ordinal = array.__dlpack_device__()
    if int(kind) not in (KDL_CUDA, KDL_CUDA_MANAGED) or int(ordinal) != s.device.home.ordinal:
        where = "in host memory" if int(kind) == 1 else f"on DLPack device ({int(kind)}, {int(ordinal)})"
        raise ValueError(f"the array is {where}, not on CUDA device {s.device.home.ordinal}")
    handle = s.handle
    try:
        capsule = array.__dlpack__(stream=handle, max_version=(1, 0))
    except TypeError:  # a library of before 2024
        capsule = array.__dlpack__(stream=handle)
    if PyCapsule_IsValid(capsule, "dltensor_versioned"):
        if (<DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")).major != 1:
            raise ValueError("the array speaks a DLPack of another major version than 1")
        tensor = &(<DLManagedTensorVersioned*>PyCapsule_GetPointer(capsule, "dltensor_versioned")).tensor
    else:
        tensor = &(<DLManagedTensor*>PyCapsule_GetPointer(capsule, "dltensor")).tensor
    shape = tuple([tensor.shape[i] for i in range(tensor.ndim)])
    strides = None if tensor.strides == NULL else tuple([tensor.strides[i] for i in range(tensor.ndim)])
    code = {KDL_INT: "i", KDL_UINT: "u"}.get(tensor.dtype.code, f"code {tensor.dtype.code}, bits ")
    _check_type(f"{code}{tensor.dtype.bits // 8}" if tensor.dtype.lanes == 1 else "vectors", limbs)
    _check_dense(shape, strides, 1)
    found.pointer, found.shape = <uintptr_t>tensor.data + tensor.byte_offset, shape
    found.keep = capsule, array  # never renamed: it goes the way of one that nobody took
    return found


cdef _Array _by_interface(object array, size_t limbs, Stream s):
    cdef _Array found = _Array()
    cdef Event event
    about = array.__cuda_array_interface__
    for name in ("version", "shape", "typestr", "data"):
        if name not in about:
            raise ValueError(f"the array's __cuda_array_interface__ has no {name!r}")
    _check_type(str(about["typestr"]).lstrip("<|="), limbs)
    if about.get("mask") is not None:
        raise ValueError("a masked array is not supported")
    shape = tuple(about["shape"])
    _check_dense(shape, about.get("strides"), 8 if limbs else 1)
    stream = about.get("stream")
    if stream is not None:
        event = Stream(s.device, stream).record()
        s.wait(event)
    elif about["version"] < 3:  # it does not know of streams, so the work may be on any
        event = s.device.home.everything()
        s.wait(event)
    found.pointer, found.shape, found.keep = about["data"][0], shape, array
    return found


cdef int _check_type(str found, size_t limbs) except -1:
    if found not in (("u8", "i8") if limbs else ("u1",)):
        raise ValueError(f"expected elements of type {'uint64 or int64' if limbs else 'uint8'}, not {found}")
    return 0


cdef int _check_dense(tuple shape, object strides, size_t width) except -1:
    """Rows one behind the other; strides of dimensions of one element, or of no elements, mean nothing."""
    for k in shape:
        if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k < 1 << 40:
            raise ValueError(f"{shape} is no shape")
    if strides is None or 0 in shape:
        return 0
    step = width
    for k, stride in zip(reversed(shape), reversed(tuple(strides)), strict=True):
        if k != 1 and stride != step:
            raise ValueError("the array's elements do not lie one behind the other: copy it")
        step *= k
    return 0
