# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Variables of an assignment, and which of them a matrix uses."""

import operator

import numpy as np

cimport cython
from libc.stdint cimport uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector


cdef extern from "assignment/loops.hpp" namespace "pinzk::assignment" nogil:
    void append_bits(vector[uint64_t]&, size_t, const vector[uint64_t]&, size_t, size_t) except +
    size_t count_bits(const vector[uint64_t]&)


@cython.final
@cython.freelist(64)
cdef class Variable:
    """An input (number 0 is the constant one) or an auxiliary variable of an assignment.

    Attributes
    ----------
    is_input : bool
    index : int
    """
    def __init__(self, bint is_input, index):
        self.is_input = is_input
        self.index = operator.index(index)
        if self.index < 0:
            raise ValueError("the index of a variable is not negative")

    def __eq__(self, other):
        if not isinstance(other, Variable):
            return NotImplemented
        return self.is_input == (<Variable>other).is_input and self.index == (<Variable>other).index

    def __hash__(self):
        return hash((self.is_input, self.index))

    def __repr__(self):
        return f"<Variable {'input' if self.is_input else 'aux'} {self.index}>"


@cython.final
cdef class DensityTracker:
    """Which variables of one kind a matrix uses: a bit for each, and how many are set.

    Parameters
    ----------
    n : int
        Variables, none of them used yet.
    """
    def __init__(self, n=0):
        self.bits.clear()
        self.n = self.used = 0
        self.add(n)

    def __len__(self):
        return self.n

    @property
    def count(self):
        """How many bits are set."""
        return self.used

    @property
    def words(self):
        """The bits as a new array of uint64, the first in the lowest bit of the first word."""
        out = np.empty(self.bits.size(), dtype=np.uint64)
        cdef uint64_t[::1] view = out
        if self.bits.size():
            memcpy(&view[0], self.bits.data(), 8 * self.bits.size())
        return out

    @property
    def mask(self):
        """The bits as a new array of bool."""
        return np.unpackbits(self.words.view(np.uint8), count=self.n, bitorder="little").view(np.bool_)

    def add(self, n=1):
        """Add `n` variables behind the last, none of them used."""
        cdef size_t k = operator.index(n)
        self.bits.resize((self.n + k + 63) // 64)
        self.n += k

    def inc(self, i):
        """Variable `i` is used; counts once however often it is said."""
        cdef Py_ssize_t k = operator.index(i)
        if not 0 <= k < <Py_ssize_t>self.n:
            raise IndexError(f"variable {k} of {self.n}")
        self.set_bit(k)

    cdef void set_bit(self, size_t i) noexcept:
        cdef uint64_t bit = <uint64_t>1 << (i & 63)
        if not self.bits[i >> 6] & bit:
            self.bits[i >> 6] |= bit
            self.used += 1

    def __ior__(self, mask):
        """Use all variables for which `mask`, an array of as many bools or a tracker, says so."""
        if isinstance(mask, DensityTracker):
            mask = mask.mask
        mask = np.asarray(mask)
        if mask.dtype != np.bool_ or mask.shape != (self.n,):
            raise ValueError(f"a mask must be bool[{self.n}], not {mask.dtype}{list(mask.shape)}")
        packed = np.zeros(8 * self.bits.size(), dtype=np.uint8)
        packed[:(self.n + 7) // 8] = np.packbits(mask, bitorder="little")
        cdef const uint64_t[::1] words = packed.view(np.uint64)
        cdef size_t i
        for i in range(self.bits.size()):
            self.bits[i] |= words[i]
        self.used = count_bits(self.bits)
        return self

    def extend(self, DensityTracker other not None, bint is_input):
        """Append another tracker's variables; of inputs the first, the constant one, is the same on both sides."""
        cdef size_t first = 1 if is_input and self.n and other.n else 0
        cdef size_t to = other.n
        if other is self:
            raise ValueError("a tracker cannot be appended to itself")
        if first and other.bits[0] & 1:
            self.set_bit(0)
        append_bits(self.bits, self.n, other.bits, first, to)
        self.n += to - first
        self.used = count_bits(self.bits)

    def __repr__(self):
        return f"<DensityTracker {self.used} of {self.n}>"

    def __reduce__(self):
        raise TypeError("a DensityTracker cannot be copied or pickled")
