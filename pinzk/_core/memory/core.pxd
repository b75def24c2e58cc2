# SPDX-License-Identifier: Apache-2.0
"""What the Cython modules of this folder use of its C++ headers."""

from libc.stdint cimport int64_t, uint8_t, uint64_t, uintptr_t
from libcpp cimport bool as cbool
from libcpp.memory cimport shared_ptr, weak_ptr
from libcpp.pair cimport pair
from libcpp.string cimport string
from libcpp.vector cimport vector


cdef extern from "memory/budget.hpp" namespace "pinzk::memory" nogil:
    cdef cppclass Tag:
        string name

    cdef cppclass CTurn "pinzk::memory::Turn":
        pass

    cdef cppclass BudgetFigures "pinzk::memory::Budget::Figures":
        size_t total, used, peak, waiters, waits
        vector[pair[string, size_t]] by_tag

    cdef cppclass Budget:
        Budget(size_t)
        size_t total()
        Tag* tag(const string&) except +
        cbool take(size_t, Tag*)
        void give(size_t, Tag*)
        void retag(size_t, Tag*, Tag*)
        size_t missing(size_t)
        cbool waiting()
        void enter(CTurn*)
        void leave(CTurn*)
        cbool wait_turn(CTurn*, int64_t)
        BudgetFigures figures() except +


cdef extern from "memory/blocks.hpp" namespace "pinzk::memory" nogil:
    cdef enum class Kind(uint8_t):
        pinned
        registered
        pageable

    const size_t kSlab, kPage
    const int kNoMemory

    cdef cppclass Driver:
        int (*host_alloc)(void*, void**, size_t) noexcept nogil
        int (*host_free)(void*, void*) noexcept nogil
        int (*host_register)(void*, void*, size_t) noexcept nogil
        int (*host_unregister)(void*, void*) noexcept nogil
        int (*event_create)(void*, void**) noexcept nogil
        int (*event_destroy)(void*) noexcept nogil
        int (*event_record)(void*, void*) noexcept nogil
        int (*event_query)(void*) noexcept nogil

    cdef cppclass Chunk:
        Chunk() except +
        char* base
        size_t nbytes
        Kind kind
        int node
        cbool bound
        void* context
        Tag* tag
        void* keep

    cdef cppclass Block:
        Chunk* chunk
        char* ptr
        size_t nbytes
        size_t dirty

    size_t slot_size(size_t)
    size_t class_size(size_t)
    size_t round_up(size_t, size_t)
    int allocate_pageable(Chunk&)
    int allocate_pinned(Chunk&, const Driver&, int)
    int register_user(Chunk&, const Driver&, size_t) except +
    void adopt_user(Chunk&)
    int free_memory(Chunk&, const Driver&)
    void cut(Chunk&, size_t) except +


cdef extern from "memory/pool.hpp" namespace "pinzk::memory" nogil:
    cdef cppclass Gate:
        void enter()
        void leave()

    cdef cppclass Workers:
        void reap()
        void stop_all()
        cbool exiting()

    cdef cppclass EventPool:
        void* get(const Driver&, void*, uint64_t, int*)

    cdef cppclass Shared:
        EventPool events
        Workers workers
        Gate gate

    cdef cppclass PoolFigures "pinzk::memory::Pool::Figures":
        size_t total, peak, allocations, reuses, freed, wiped
        size_t* bytes
        size_t* by_kind

    cdef cppclass COutstanding "pinzk::memory::Pool::Outstanding":
        uintptr_t ptr
        size_t nbytes
        int kind
        cbool used

    cdef cppclass Pool:
        Pool(shared_ptr[Budget], const Driver&, cbool, Shared*)
        Shared& shared()
        const Driver& driver()
        Block* take(size_t, int)
        Block* take_after_drain(size_t, int)
        void give(Block*)
        void give(Block*, cbool)
        Block* adopt(Chunk*, cbool) except +
        void* give_user(Block*)
        size_t trim(size_t, size_t)
        size_t idle_bytes()
        uint64_t begin_use(Block*, void*, uint64_t, cbool) except +
        void end_use(Block*, uint64_t, cbool)
        void taint(Block*)
        cbool tainted(Block*)
        cbool maybe_used(Block*)
        cbool many_uses(Block*)
        cbool in_flight(Block*, cbool)
        void tidy()
        cbool settled()
        cbool emptied()
        cbool ended()
        void wait(int64_t)
        void close()
        PoolFigures figures() except +
        vector[COutstanding] outstanding() except +
