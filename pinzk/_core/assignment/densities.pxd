# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3

from libc.stdint cimport uint64_t
from libcpp.vector cimport vector


cdef class Variable:
    cdef readonly bint is_input
    cdef readonly Py_ssize_t index


cdef class DensityTracker:
    cdef vector[uint64_t] bits  # those behind the last one are zero
    cdef size_t n
    cdef size_t used

    cdef void set_bit(self, size_t i) noexcept
