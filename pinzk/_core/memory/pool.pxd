# SPDX-License-Identifier: Apache-2.0
"""C face of the pool, for vectors."""

from libcpp.memory cimport shared_ptr

from pinzk._core.memory.backing cimport PinnedBacking
from pinzk._core.memory.budget cimport MemoryBudget
from pinzk._core.memory.core cimport Block, Chunk, Pool, Tag


cdef class PinnedPool:
    cdef shared_ptr[Pool] core
    cdef readonly MemoryBudget budget
    cdef readonly str kind
    cdef readonly bint wipe
    cdef readonly object numa
    cdef unsigned generation
    cdef bint closed
    cdef bint said                   # the fallback was logged
    cdef int node                    # -1: none; -2: the caller's
    cdef void* context               # the primary context that pins, bound at the first allocation
    cdef Tag* tag                    # what is asked for is counted under this
    cdef Tag* pageable               # and this, where page-locking was refused
    cdef size_t fallbacks
    cdef size_t waits
    cdef object __weakref__

    cdef int check_process(self) except -1
    cdef int check(self) except -1
    cdef int node_of_caller(self) noexcept
    cdef PinnedBacking own(self, Block* block)
    cdef list wait_for(self, list sizes, int node, timeout, cancel)
    cdef list all_now(self, list sizes, int node, bint evict)
    cdef size_t own_size(self, size_t nbytes) noexcept
    cdef Block* take(self, size_t nbytes, int node) noexcept
    cdef Block* attempt(self, size_t nbytes, int node, bint evict, int threads) except? NULL
    cdef Block* make(self, size_t nbytes, size_t slot, int node, int threads) except NULL
    cdef int allocate(self, Chunk* chunk, int threads) except -1
    cdef Block* adopt(self, Chunk* chunk) except NULL
    cdef int check_node(self, Chunk* chunk) except -1
    cdef bint bind(self, size_t nbytes) except -1
    cdef int fall_back(self, error, size_t nbytes) except -1
    cdef PinnedBacking checkout_now(self, size_t nbytes)
    cdef int refuse_if_never(self, size_t nbytes) except -1
    cdef int _pause(self) except -1
