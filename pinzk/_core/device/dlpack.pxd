# SPDX-License-Identifier: Apache-2.0
"""The structs of DLPack 1.0, by which array libraries hand memory to one another (dmlc.github.io/dlpack)."""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t

cdef enum:
    KDL_CUDA = 2
    KDL_CUDA_MANAGED = 13
    KDL_INT = 0
    KDL_UINT = 1

cdef struct DLDevice:
    int32_t type
    int32_t id

cdef struct DLDataType:
    uint8_t code
    uint8_t bits
    uint16_t lanes

cdef struct DLTensor:
    void* data
    DLDevice device
    int32_t ndim
    DLDataType dtype
    int64_t* shape
    int64_t* strides                 # in elements; NULL: rows one behind the other
    uint64_t byte_offset

cdef struct DLManagedTensor:
    DLTensor tensor
    void* owner
    void (*deleter)(DLManagedTensor*) noexcept

cdef struct DLManagedTensorVersioned:
    uint32_t major
    uint32_t minor
    void* owner
    void (*deleter)(DLManagedTensorVersioned*) noexcept
    uint64_t flags
    DLTensor tensor
