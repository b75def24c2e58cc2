# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Modules of compiled kernels, and their launches, every status checked."""

import numpy as np

cimport cython
from cpython.bytes cimport PyBytes_AS_STRING
from libc.stdint cimport uint64_t

from pinzk._core cimport driver
from pinzk._core.device.streams cimport Device, Stream, stream_of
from pinzk._core.device.vectors cimport DeviceVec
from pinzk._core.memory.budget cimport nbytes_of
from pinzk.errors import DeviceError

cdef enum:
    MAX_ARGUMENTS = 64


cdef class Module:
    """Compiled kernels on a device.

    It stays loaded until the process ends, because unloading waits for running kernels. So does loading: load before work
    starts.

    Parameters
    ----------
    device : Device
    cubin : bytes
        What NVRTC made for the device's `sm`.
    """

    def __init__(self, Device device not None, bytes cubin not None):
        cdef const char* image = PyBytes_AS_STRING(cubin)
        cdef int code
        if self.device is not None:
            raise TypeError("a Module is made once")
        if not cubin:
            raise ValueError("an empty cubin")
        device.home.open()
        with nogil:
            code = driver.module_load(device.home.context, &self.module, image)
        driver.check(code, "cuModuleLoadData")
        self.functions = {}
        self.device = device

    def function(self, str name not None):
        """The kernel of that name, ready to be launched.

        Raises
        ------
        DeviceError
            There is none, or it cannot be loaded.
        """
        cdef Function f
        cdef bytes text = name.encode()
        cdef const char* c_name = text
        cdef size_t width, i = 0
        cdef int code
        driver.ensure()
        if self.device is None:
            raise TypeError("this module was never made")
        if name in self.functions:
            return self.functions[name]
        f = Function.__new__(Function)
        f.name, f.module = name, self
        with nogil:
            code = driver.module_function(self.device.home.context, &f.kernel, self.module, c_name)
        if code == driver.NOT_FOUND:
            raise DeviceError(f"the module has no kernel {name!r}: declare it extern \"C\" __global__", code=code,
                              name="CUDA_ERROR_NOT_FOUND", call="cuModuleGetFunction")
        driver.check(code, "cuModuleGetFunction")
        widths = []
        while True:
            with nogil:
                code = driver.kernel_parameter(f.kernel, i, &width)
            i += 1
            if code == driver.INVALID_VALUE:  # behind the last
                break
            driver.check(code, "cuFuncGetParamInfo")
            widths.append(width)
        if len(widths) > MAX_ARGUMENTS:
            raise ValueError(f"{name} has {len(widths)} parameters, more than {MAX_ARGUMENTS}")
        f.widths = tuple(widths)
        return self.functions.setdefault(name, f)

    def __reduce__(self):
        raise TypeError("a Module cannot be copied or pickled")


@cython.final
cdef class Function:
    """A kernel. Made by `Module.function`.

    Attributes
    ----------
    name : str
    module : Module
    widths : tuple of int
        Bytes of each parameter.
    """

    def __init__(self):
        raise TypeError("a Function is made by Module.function")

    def __reduce__(self):
        raise TypeError("a Function cannot be copied or pickled")

    def __repr__(self):
        return f"<Function {self.name}>"


def launch(Function function not None, grid, block, args, *, shared=0, stream):
    """Enqueue a kernel.

    Parameters
    ----------
    function : Function
    grid, block : int or tuple of up to three ints
        Blocks, and threads of a block.
    args : sequence
        One for each parameter, of exactly its width: a `DeviceVec` (its address) or a pair ``(vec, i)`` (the address of
        element i), a NumPy scalar, `bytes` (a struct by value), or an int, which takes the width of the parameter.
        The vectors are used by the stream from now on: released, they are freed behind this kernel.
    shared : int
        Bytes of dynamic shared memory.
    stream : Stream, int or object with ``__cuda_stream__``

    Raises
    ------
    TypeError, ValueError, OverflowError
        Arguments that do not fit the kernel; nothing was enqueued.
    DeviceError
        The driver refused the launch (`ContextLost`: an earlier kernel broke the context).
    """
    cdef Device device = function.module.device
    cdef Stream s = stream_of(device, stream)
    cdef unsigned g[3]
    cdef unsigned b[3]
    cdef uint64_t words[MAX_ARGUMENTS]
    cdef void* parameters[MAX_ARGUMENTS + 1]
    cdef unsigned dynamic = shared
    cdef DeviceVec v
    cdef size_t i, width
    cdef int code = 0
    _three(grid, "grid", g)
    _three(block, "block", b)
    given = tuple(args)
    if len(given) != len(function.widths):
        raise TypeError(f"{function.name} takes {len(function.widths)} arguments, not {len(given)}")
    vecs, keep = [], []
    for i, x in enumerate(given):
        width = function.widths[i]
        parameters[i] = &words[i]
        if isinstance(x, np.generic):
            x = x.tobytes()
            keep.append(x)
        offset = 0
        if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], DeviceVec):
            x, offset = x
        if isinstance(x, DeviceVec):
            v = x
            v.check_live()
            if v.home is not device.home:
                raise ValueError(f"argument {i} of {function.name} is a vector of another device")
            offset = nbytes_of(offset, "an element's index")
            if offset > v.limit:
                raise ValueError(f"argument {i} of {function.name}: element {offset} of {v.limit}")
            words[i] = v.pointer + <size_t>offset * v.row
            vecs.append(v)
            found = 8
        elif isinstance(x, bytes):
            parameters[i] = PyBytes_AS_STRING(x)
            found = len(x)
        elif isinstance(x, int) and not isinstance(x, bool):
            if width > 8:
                raise TypeError(f"argument {i} of {function.name} is a struct of {width} bytes: give it as bytes")
            if not -(<object>1 << 8 * width - 1) <= x < <object>1 << 8 * width:
                raise OverflowError(f"argument {i} of {function.name} has {width} bytes: {x} does not fit")
            words[i] = x & 0xFFFFFFFFFFFFFFFF
            found = width
        else:
            raise TypeError(f"argument {i} of {function.name} cannot be {type(x).__name__}: give an int, a NumPy scalar, "
                            "a DeviceVec or bytes")
        if found != width:
            raise TypeError(f"argument {i} of {function.name} has {width} bytes, not {found}")
    parameters[len(given)] = NULL
    for v in vecs:
        v.check_live()  # an argument's own code may have run meanwhile
        v.calls += 1
    s.calls += 1
    try:
        for v in vecs:
            v.begin_use(s)
        if dynamic > function.allowed:
            with device.home.guard:  # a smaller size must not overwrite a larger one
                if dynamic > function.allowed:
                    with nogil:
                        code = driver.kernel_allow_shared(device.home.context, function.kernel, <int>dynamic)
                    driver.check(code, f"cuFuncSetAttribute({function.name}, {dynamic} bytes of shared memory)")
                    function.allowed = dynamic
        with nogil:
            code = driver.launch_kernel(device.home.context, function.kernel, g, b, dynamic, s.stream, parameters)
        driver.check(code, f"cuLaunchKernel({function.name})")
        for v in vecs:
            v.end_use(s)
    finally:
        for v in vecs:
            v.calls -= 1
        s.calls -= 1


cdef int _three(object size, str name, unsigned* out) except -1:
    sizes = size if isinstance(size, tuple) else (size,)
    if not 1 <= len(sizes) <= 3:
        raise ValueError(f"{name} has one to three dimensions, not {len(sizes)}")
    for i in range(3):
        n = sizes[i] if i < len(sizes) else 1
        if isinstance(n, bool) or not isinstance(n, int):
            raise TypeError(f"{name} must be an int or a tuple of ints, not {size!r}")
        if not 1 <= n < 1 << 31:
            raise ValueError(f"{name} must be at least 1 in each dimension, not {size!r}")
        out[i] = n
    return 0
