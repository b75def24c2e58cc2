# SPDX-License-Identifier: Apache-2.0
"""C face of modules and kernels."""

from pinzk._core cimport driver
from pinzk._core.device.streams cimport Device


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
