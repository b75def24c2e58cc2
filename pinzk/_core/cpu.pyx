# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""The CPU backend: loops over word arrays, off the GIL, on threads, interruptible by Ctrl-C.

Arrays are C-contiguous ``uint64`` rows as `pinzk.curves` describes; fields and groups are its records. Shapes are checked
here, ranges are the caller's business (`first_unreduced`, `first_bad_point`).
"""

import math
import os

import numpy as np

from pinzk._core import control_group

from libc.stdint cimport uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool


cdef extern from "cpu_loops/python_glue.hpp" namespace "pinzk::cpu" nogil:
    cbool poll_signals()
    void translate_exception()


cdef extern from "cpu_loops/machine.hpp" namespace "pinzk::cpu" nogil:
    cdef enum class Level:
        portable
        adx
        lanes

    cdef cppclass LevelInUse "std::atomic<pinzk::cpu::Level>":
        void store(Level)
        Level load()

    Level supported_level()
    LevelInUse& level_in_use()


cdef extern from "cpu_loops/curve_ops.hpp" namespace "pinzk::cpu" nogil:
    cdef cppclass Job:
        int threads
        cbool (*poll)()

    cdef enum class Which:
        Fr
        Fp

    cdef enum class Group "pinzk::cpu::Group":
        G1
        G2

    cdef enum class Check:
        range
        curve
        subgroup

    cdef enum class Fault:
        none
        coordinate
        curve
        subgroup
        encoding
        infinity

    cdef cppclass BadPoint:
        size_t index
        Fault fault

    cdef cppclass CurveOps:
        void to_montgomery(Which, const uint64_t*, uint64_t*, size_t, const Job&) except +translate_exception
        void from_montgomery(Which, const uint64_t*, uint64_t*, size_t, const Job&) except +translate_exception
        size_t first_unreduced(Which, const uint64_t*, size_t, const Job&) except +translate_exception
        void multiply(Which, const uint64_t*, const uint64_t*, uint64_t*, size_t, const Job&) except +translate_exception
        void multiply_subtract(const uint64_t*, const uint64_t*, const uint64_t*, uint64_t*, size_t,
                               const Job&) except +translate_exception
        void powers(const uint64_t*, const uint64_t*, uint64_t*, size_t, const Job&) except +translate_exception
        void invert(const uint64_t*, uint64_t*, size_t, const Job&) except +translate_exception
        void dif(uint64_t*, int, const uint64_t*, const Job&) except +translate_exception
        void dit(uint64_t*, int, const uint64_t*, const Job&) except +translate_exception
        void bit_reverse(uint64_t*, int, const Job&) except +translate_exception
        BadPoint first_bad_point(Group, const uint64_t*, size_t, Check, const Job&) except +translate_exception
        void msm(Group, const uint64_t*, const uint64_t*, size_t, uint64_t*, const Job&) except +translate_exception
        void weighted_sum(Group, const uint64_t*, size_t, int, uint64_t*) except +translate_exception
        void fixed_base(Group, const uint64_t*, const uint64_t*, size_t, uint64_t*, const Job&) except +translate_exception
        void generator(Group, uint64_t*)
        BadPoint decode_points(Group, uint64_t*, size_t, const Job&) except +translate_exception
        void encode_points(Group, const uint64_t*, uint64_t*, size_t, const Job&) except +translate_exception
        void sparse_rows(const uint64_t*, const uint32_t*, const uint64_t*, size_t, const uint64_t*, uint64_t*,
                         const Job&) except +translate_exception

    const CurveOps* bn254_ops()
    const CurveOps* bls12_381_ops()
    const CurveOps* toy_ops()


cdef extern from "cpu_loops/records.hpp" namespace "pinzk::cpu" nogil:
    cdef enum class RecordFault "pinzk::cpu::RecordFault":
        none
        matrix
        row
        column
        value
        changed

    cdef struct SparseTarget:
        uint64_t* indptr
        uint64_t* cursor
        uint32_t* indices
        uint64_t* values

    cdef struct RecordLimits:
        size_t rows
        size_t columns
        uint64_t modulus[4]

    cdef struct ConstraintWalk:
        uint64_t combination
        uint64_t remaining
        uint64_t inside

    size_t count_coefficients(const uint8_t*, size_t, const RecordLimits&, const SparseTarget*, RecordFault&)
    size_t place_coefficients(const uint8_t*, size_t, const RecordLimits&, const SparseTarget*, RecordFault&)
    size_t walk_constraints(const uint8_t*, size_t, const RecordLimits&, const SparseTarget*, cbool, ConstraintWalk&,
                            RecordFault&)


# ---- threads ----

def num_threads(threads=None):
    """Number of threads a call will use.

    Parameters
    ----------
    threads : int, optional
        Asked for by the caller; else ``PINZK_NUM_THREADS``; else the cores this process may use, the cgroup's quota
        respected.

    Raises
    ------
    ValueError
        Not a positive whole number; the message names the argument or the variable.
    """
    if threads is not None:
        if isinstance(threads, bool) or not isinstance(threads, int) or threads < 1:
            raise ValueError(f"threads must be a positive int, not {threads!r}")
        return min(threads, 1024)
    text = os.environ.get("PINZK_NUM_THREADS", "").strip()
    if text:
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise ValueError(f"PINZK_NUM_THREADS must be a positive whole number, not {text!r}")
        return min(int(text), 1024)
    return _available_cores()


def _available_cores():
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    quota = control_group.cpu_quota()
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


cdef Job _job(threads) except *:
    cdef Job job
    job.threads = num_threads(threads)
    job.poll = poll_signals
    return job


# ---- the processor ----

_LEVELS = {"portable": Level.portable, "adx": Level.adx, "lanes": Level.lanes}


def machine(use=None):
    """The arithmetic in use: "portable" C++, "adx" (x86-64 with BMI2 and ADX), or "lanes" (that, and AVX-512 IFMA).

    Parameters
    ----------
    use : str, optional
        For tests and measurements: from now on, in the whole process, use this or the best below it that the processor has.

    Returns
    -------
    str
    """
    if use is not None:
        if use not in _LEVELS:
            raise ValueError(f"use must be one of {', '.join(map(repr, _LEVELS))}, not {use!r}")
        level_in_use().store(<Level><int>min(_LEVELS[use], <int>supported_level()))
    return list(_LEVELS)[<int>level_in_use().load()]


# ---- curves and arrays ----

cdef const CurveOps* _ops(str curve_name) except NULL:
    if curve_name == "bn254":
        return bn254_ops()
    if curve_name == "bls12_381":
        return bls12_381_ops()
    if curve_name == "toy":
        return toy_ops()
    raise ValueError(f"no CPU backend for curve {curve_name!r}")


cdef Which _which(field):
    return Which.Fr if field.is_scalar else Which.Fp


cdef Group _group(group):
    return Group.G1 if group.number == 1 else Group.G2


cdef const uint64_t* _read(const uint64_t[:, ::1] a, Py_ssize_t columns, str name) except? NULL:
    if a.shape[1] != columns:
        raise ValueError(f"{name} must have shape (n, {columns}), not ({a.shape[0]}, {a.shape[1]})")
    return &a[0, 0] if a.shape[0] else NULL


cdef uint64_t* _write(uint64_t[:, ::1] a, Py_ssize_t rows, Py_ssize_t columns, str name) except? NULL:
    if a.shape[0] != rows or a.shape[1] != columns:
        raise ValueError(f"{name} must have shape ({rows}, {columns}), not ({a.shape[0]}, {a.shape[1]})")
    return &a[0, 0] if rows else NULL


cdef _empty(Py_ssize_t rows, Py_ssize_t columns):
    return np.empty((rows, columns), dtype=np.uint64)


# ---- elements ----

def to_montgomery(field, const uint64_t[:, ::1] canonical, out=None, *, threads=None):
    """Montgomery form of canonical rows, each below the modulus; `out` may be the input."""
    out = _empty(canonical.shape[0], field.limbs) if out is None else out
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = canonical.shape[0]
    cdef const uint64_t* x = _read(canonical, field.limbs, "canonical")
    cdef uint64_t* y = _write(out, n, field.limbs, "out")
    cdef Which which = _which(field)
    with nogil:
        ops.to_montgomery(which, x, y, n, job)
    return out


def from_montgomery(field, const uint64_t[:, ::1] array, out=None, *, threads=None):
    """Canonical form of Montgomery rows; `out` may be the input."""
    out = _empty(array.shape[0], field.limbs) if out is None else out
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = array.shape[0]
    cdef const uint64_t* x = _read(array, field.limbs, "array")
    cdef uint64_t* y = _write(out, n, field.limbs, "out")
    cdef Which which = _which(field)
    with nogil:
        ops.from_montgomery(which, x, y, n, job)
    return out


def first_unreduced(field, const uint64_t[:, ::1] array, *, threads=None):
    """Index of the first row that is not below the modulus, or None."""
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = array.shape[0], i
    cdef const uint64_t* x = _read(array, field.limbs, "array")
    cdef Which which = _which(field)
    with nogil:
        i = ops.first_unreduced(which, x, n, job)
    return None if i == n else i


def multiply(field, const uint64_t[:, ::1] a, const uint64_t[:, ::1] b, out=None, *, threads=None):
    """Element-wise product of Montgomery rows; `out` may be an input."""
    out = _empty(a.shape[0], field.limbs) if out is None else out
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = a.shape[0]
    _same_length(a.shape[0], b.shape[0])
    cdef const uint64_t* x = _read(a, field.limbs, "a")
    cdef const uint64_t* y = _read(b, field.limbs, "b")
    cdef uint64_t* z = _write(out, n, field.limbs, "out")
    cdef Which which = _which(field)
    with nogil:
        ops.multiply(which, x, y, z, n, job)
    return out


def multiply_subtract(field, const uint64_t[:, ::1] a, const uint64_t[:, ::1] b, const uint64_t[:, ::1] c, out=None, *,
                      threads=None):
    """a * b - c element by element over a scalar field; `out` may be an input."""
    out = _empty(a.shape[0], field.limbs) if out is None else out
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = a.shape[0]
    _scalar(field)
    _same_length(a.shape[0], b.shape[0])
    _same_length(a.shape[0], c.shape[0])
    cdef const uint64_t* x = _read(a, 4, "a")
    cdef const uint64_t* y = _read(b, 4, "b")
    cdef const uint64_t* w = _read(c, 4, "c")
    cdef uint64_t* z = _write(out, n, 4, "out")
    with nogil:
        ops.multiply_subtract(x, y, w, z, n, job)
    return out


def powers(field, base, Py_ssize_t n, *, first=1, threads=None):
    """first * base**i for i < n, over a scalar field; `base` and `first` are canonical ints, the rows Montgomery."""
    _scalar(field)
    if n < 0:
        raise ValueError("n must not be negative")
    out = _empty(n, 4)
    if n == 0:
        return out
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    cdef const uint64_t[:, ::1] start = field.encode([first % field.modulus, base % field.modulus])
    cdef uint64_t* y = _write(out, n, 4, "out")
    with nogil:
        ops.powers(&start[0, 0], &start[1, 0], y, n, job)
    return out


def invert(field, const uint64_t[:, ::1] array, out=None, *, threads=None):
    """1 / x of Montgomery rows of a scalar field, zero for zero; `out` may be the input."""
    _scalar(field)
    out = _empty(array.shape[0], 4) if out is None else out
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = array.shape[0]
    cdef const uint64_t* x = _read(array, 4, "array")
    cdef uint64_t* y = _write(out, n, 4, "out")
    with nogil:
        ops.invert(x, y, n, job)
    return out


cdef int _scalar(field) except -1:
    if not field.is_scalar:
        raise ValueError(f"{field.name} is not a scalar field")
    return 0


cdef int _same_length(Py_ssize_t a, Py_ssize_t b) except -1:
    if a != b:
        raise ValueError(f"lengths differ: {a} and {b}")
    return 0


# ---- transforms ----

cdef int _log2(Py_ssize_t n, Py_ssize_t twiddles) except -1:
    if n < 1 or n & (n - 1):
        raise ValueError(f"length {n} is not a power of two")
    if twiddles != n // 2:
        raise ValueError(f"{twiddles} twiddles for a transform of {n}: need {n // 2}")
    cdef int log_n = 0
    while (<Py_ssize_t>1 << log_n) < n:
        log_n += 1
    return log_n


def twiddles(field, root, Py_ssize_t n, *, threads=None):
    """The table that transforms of n = 2**k want: root**i for i < n/2 in bit-reversed order, `root` a canonical int."""
    out = powers(field, root, n // 2, threads=threads)
    if n > 1:
        bit_reverse(field, out, threads=threads)
    return out


def dif(field, uint64_t[:, ::1] data, const uint64_t[:, ::1] twiddles, *, threads=None):
    """In place, natural order in, bit-reversed out: X_k = sum x_j w^(jk).

    `twiddles`: as the function of that name makes them for the primitive n-th root w.
    """
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    _scalar(field)
    cdef int log_n = _log2(data.shape[0], twiddles.shape[0])
    cdef uint64_t* x = _write(data, data.shape[0], 4, "data")
    cdef const uint64_t* w = _read(twiddles, 4, "twiddles")
    with nogil:
        ops.dif(x, log_n, w, job)


def dit(field, uint64_t[:, ::1] data, const uint64_t[:, ::1] twiddles, *, threads=None):
    """In place, bit-reversed order in, natural out, the same sum as `dif`."""
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    _scalar(field)
    cdef int log_n = _log2(data.shape[0], twiddles.shape[0])
    cdef uint64_t* x = _write(data, data.shape[0], 4, "data")
    cdef const uint64_t* w = _read(twiddles, 4, "twiddles")
    with nogil:
        ops.dit(x, log_n, w, job)


def bit_reverse(field, uint64_t[:, ::1] data, *, threads=None):
    """Permute rows by bit-reversal of their index, in place."""
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    _scalar(field)
    cdef int log_n = _log2(data.shape[0], data.shape[0] // 2)
    cdef uint64_t* x = _write(data, data.shape[0], 4, "data")
    with nogil:
        ops.bit_reverse(x, log_n, job)


# ---- points ----

def first_bad_point(group, const uint64_t[:, ::1] points, str check="curve", *, threads=None):
    """The first point that fails a check.

    Parameters
    ----------
    group : Group
    points : ndarray of uint64, shape (n, group.limbs)
    check : {"range", "curve", "subgroup"}
        Coordinates below the modulus; on the curve too; in the subgroup of order r too. Infinity passes.

    Returns
    -------
    None or (int, str)
        Index and ``"coordinate"``, ``"curve"`` or ``"subgroup"``.
    """
    cdef const CurveOps* ops = _ops(group.curve_name)
    cdef Job job = _job(threads)
    cdef Check level
    if check == "range":
        level = Check.range
    elif check == "curve":
        level = Check.curve
    elif check == "subgroup":
        level = Check.subgroup
    else:
        raise ValueError(f"check must be 'range', 'curve' or 'subgroup', not {check!r}")
    cdef size_t n = points.shape[0]
    cdef const uint64_t* p = _read(points, group.limbs, "points")
    cdef Group g = _group(group)
    cdef BadPoint bad
    with nogil:
        bad = ops.first_bad_point(g, p, n, level, job)
    return None if bad.index == n else (bad.index, _point_fault(bad.fault))


cdef str _point_fault(Fault fault):
    if fault == Fault.coordinate:
        return "coordinate"
    if fault == Fault.curve:
        return "curve"
    if fault == Fault.subgroup:
        return "subgroup"
    return "encoding" if fault == Fault.encoding else "infinity"


def msm(group, const uint64_t[:, ::1] bases, const uint64_t[:, ::1] scalars, *, threads=None):
    """sum scalars[i] * bases[i] as one affine row; scalars canonical, below the order. Zero points give infinity."""
    cdef const CurveOps* ops = _ops(group.curve_name)
    cdef Job job = _job(threads)
    _same_length(bases.shape[0], scalars.shape[0])
    out = _empty(1, group.limbs)
    cdef size_t n = bases.shape[0]
    cdef const uint64_t* p = _read(bases, group.limbs, "bases")
    cdef const uint64_t* k = _read(scalars, 4, "scalars")
    cdef uint64_t* y = _write(out, 1, group.limbs, "out")
    cdef Group g = _group(group)
    with nogil:
        ops.msm(g, p, k, n, y, job)
    return out


def weighted_sum(group, const uint64_t[:, ::1] sums, int width):
    """sum over sets s of 2**(width s) (V_0 + sum 2**(k-1) V_k), k < width, as one affine row: the end of a GPU's sum.

    `sums` has V_0 .. V_(width-1) of set 0, then of set 1, ...: rows X, Y, ZZ, ZZZ of twice a point's limbs, infinity zeros.
    """
    cdef const CurveOps* ops = _ops(group.curve_name)
    if width < 1 or sums.shape[0] % width:
        raise ValueError(f"{sums.shape[0]} rows are no whole sets of {width}")
    out = _empty(1, group.limbs)
    cdef size_t sets = sums.shape[0] // width
    cdef const uint64_t* v = _read(sums, 2 * group.limbs, "sums")
    cdef uint64_t* y = _write(out, 1, group.limbs, "out")
    cdef Group g = _group(group)
    with nogil:
        ops.weighted_sum(g, v, sets, width, y)
    return out


def fixed_base(group, const uint64_t[:, ::1] base, const uint64_t[:, ::1] scalars, *, threads=None):
    """scalars[i] * base for every i; `base` is one affine row, scalars canonical."""
    cdef const CurveOps* ops = _ops(group.curve_name)
    cdef Job job = _job(threads)
    if base.shape[0] != 1:
        raise ValueError("base must be one point")
    out = _empty(scalars.shape[0], group.limbs)
    cdef size_t n = scalars.shape[0]
    cdef const uint64_t* p = _read(base, group.limbs, "base")
    cdef const uint64_t* k = _read(scalars, 4, "scalars")
    cdef uint64_t* y = _write(out, n, group.limbs, "out")
    cdef Group g = _group(group)
    with nogil:
        ops.fixed_base(g, p, k, n, y, job)
    return out


def generator(group):
    """The group's generator, one affine row."""
    out = _empty(1, group.limbs)
    cdef uint64_t[:, ::1] y = out
    _ops(group.curve_name).generator(_group(group), &y[0, 0])
    return out


def decode_points(group, uint64_t[:, ::1] points, *, threads=None):
    """Turn big-endian uncompressed points, read as bytes into `points`, into Montgomery rows, in place.

    An encoding has the size of a row: x, y, each canonical and big-endian, of Fp2 c1 first; three flags in the first byte.

    Parameters
    ----------
    group : Group
    points : ndarray of uint64, shape (n, group.limbs)
        On a fault the rows before it are decoded, it is as it was, those behind it may be either.

    Returns
    -------
    None or (int, str)
        Index of the first bad point and ``"encoding"`` (flags of another form), ``"infinity"``, ``"coordinate"`` (not below
        the modulus) or ``"curve"`` (both zero). Curve and subgroup are for `first_bad_point` to check.
    """
    _room_for_flags(group)
    cdef const CurveOps* ops = _ops(group.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = points.shape[0]
    cdef uint64_t* p = _write(points, n, group.limbs, "points")
    cdef Group g = _group(group)
    cdef BadPoint bad
    with nogil:
        bad = ops.decode_points(g, p, n, job)
    return None if bad.index == n else (bad.index, _point_fault(bad.fault))


def encode_points(group, const uint64_t[:, ::1] points, out=None, *, threads=None):
    """The encoding that `decode_points` reads, as words that hold its bytes; `out` may be the input."""
    _room_for_flags(group)
    out = _empty(points.shape[0], group.limbs) if out is None else out
    cdef const CurveOps* ops = _ops(group.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = points.shape[0]
    cdef const uint64_t* p = _read(points, group.limbs, "points")
    cdef uint64_t* y = _write(out, n, group.limbs, "out")
    cdef Group g = _group(group)
    with nogil:
        ops.encode_points(g, p, y, n, job)
    return out


cdef int _room_for_flags(group) except -1:
    if group.base.modulus.bit_length() > 64 * group.base.limbs - 3:
        raise ValueError(f"coordinates of {group.name} leave no room for three flags")
    return 0


# ---- sparse rows ----

def sparse_rows(field, const uint64_t[::1] indptr, const uint32_t[::1] indices, const uint64_t[:, ::1] values,
                const uint64_t[:, ::1] witness, out=None, *, threads=None):
    """out[i] = sum values[k] * witness[indices[k]] over row i.

    Parameters
    ----------
    field : Field
        A scalar field.
    indptr : ndarray of uint64, shape (n + 1,)
        Non-decreasing, from 0 to ``len(indices)``: the caller's promise, as every index is below ``len(witness)``.
    indices : ndarray of uint32, shape (nnz,)
    values : ndarray of uint64, shape (nnz, 4)
        c * R**2 mod r, as a zkey stores coefficients.
    witness : ndarray of uint64, shape (m, 4)
        Canonical.

    Returns
    -------
    ndarray of uint64, shape (n, 4)
        Montgomery form.
    """
    _scalar(field)
    if indptr.shape[0] < 1:
        raise ValueError("indptr must not be empty")
    _same_length(indices.shape[0], values.shape[0])
    if indptr[indptr.shape[0] - 1] != <uint64_t>indices.shape[0]:
        raise ValueError("indptr must end at len(indices)")
    out = _empty(indptr.shape[0] - 1, 4) if out is None else out
    cdef const CurveOps* ops = _ops(field.curve_name)
    cdef Job job = _job(threads)
    cdef size_t n = indptr.shape[0] - 1
    cdef const uint32_t* columns = &indices[0] if indices.shape[0] else NULL
    cdef const uint64_t* c = _read(values, 4, "values")
    cdef const uint64_t* w = _read(witness, 4, "witness")
    cdef uint64_t* y = _write(out, n, 4, "out")
    with nogil:
        ops.sparse_rows(&indptr[0], columns, c, n, w, y, job)
    return out


# ---- records of a file into sparse rows ----

cdef str _fault_name(RecordFault fault):
    if fault == RecordFault.matrix:
        return "matrix"
    if fault == RecordFault.row:
        return "row"
    if fault == RecordFault.column:
        return "column"
    return "value" if fault == RecordFault.value else "changed"


cdef RecordLimits _limits(field, size_t rows, size_t columns) except *:
    _scalar(field)
    cdef RecordLimits limits
    limits.rows = rows
    limits.columns = columns
    for i in range(4):
        limits.modulus[i] = (field.modulus >> 64 * i) & 0xFFFFFFFFFFFFFFFF
    return limits


cdef SparseTarget _target(tuple arrays, Py_ssize_t rows, Py_ssize_t cursors) except *:
    # (indptr,) for the counting pass, (indptr, cursor, indices, values) to fill
    cdef SparseTarget target
    cdef uint64_t[::1] indptr = arrays[0], cursor
    cdef uint32_t[::1] indices
    cdef uint64_t[:, ::1] values
    if indptr.shape[0] != rows + 1:
        raise ValueError(f"indptr must have {rows + 1} entries, not {indptr.shape[0]}")
    target.indptr = &indptr[0]
    target.cursor = NULL
    target.indices = NULL
    target.values = NULL
    if len(arrays) == 1:
        return target
    _, cursor, indices, values = arrays
    if cursor.shape[0] != cursors:
        raise ValueError(f"cursor must have {cursors} entries, not {cursor.shape[0]}")
    if indptr[rows] != <uint64_t>indices.shape[0]:
        raise ValueError("indptr must end at len(indices)")
    target.cursor = &cursor[0] if cursors else NULL
    target.indices = &indices[0] if indices.shape[0] else NULL
    target.values = _write(values, indices.shape[0], 4, "values")
    return target


def scan_coefficients(field, const uint8_t[::1] records, Py_ssize_t rows, Py_ssize_t columns, targets):
    """Check coefficient records of a zkey (matrix u32, row u32, column u32, value 32 bytes) and count or place them.

    Parameters
    ----------
    field : Field
        A scalar field: every value must be below its modulus.
    records : buffer of uint8
        Whole records of 44 bytes.
    rows, columns : int
        What the indices must stay below; ``rows`` >= 1.
    targets : sequence of two tuples
        For the matrices 0 and 1: ``(indptr,)`` to count (``indptr[row + 1] += 1``), or ``(indptr, cursor, indices, values)``
        to place each entry at ``cursor[row]++``; the caller has then summed ``indptr`` and copied it into ``cursor``.

    Returns
    -------
    None or (int, str)
        Index of the first bad record and ``"matrix"``, ``"row"``, ``"column"``, ``"value"`` or ``"changed"`` (the row
        holds more entries than were counted).
    """
    cdef RecordLimits limits = _limits(field, rows, columns)
    cdef SparseTarget t[2]
    cdef bint filling = len(targets[0]) > 1
    cdef RecordFault fault = RecordFault.none
    cdef size_t n = records.shape[0] // 44, i
    cdef const uint8_t* p = &records[0] if n else NULL
    for m in range(2):
        t[m] = _target(targets[m], rows, rows)
    with nogil:
        i = place_coefficients(p, n, limits, t, fault) if filling else count_coefficients(p, n, limits, t, fault)
    return None if i == n else (i, _fault_name(fault))


def scan_constraints(field, const uint8_t[::1] piece, Py_ssize_t rows, Py_ssize_t columns, targets, uint64_t[::1] walk):
    """Check a piece of an r1cs constraint section and count or place its terms.

    Parameters
    ----------
    field : Field
        A scalar field: every coefficient must be below its modulus.
    piece : buffer of uint8
        The section from where the last call stopped.
    rows, columns : int
        Number of constraints, and what wire indices must stay below.
    targets : sequence of three tuples
        For A, B and C: ``(indptr,)`` to count (offsets come out summed), or ``(indptr, cursor, indices, values)`` to place,
        ``cursor`` being one zero.
    walk : ndarray of uint64, shape (3,)
        Zeros before the first piece. ``walk[0]`` is 3 * constraint + matrix of the linear combination reached.

    Returns
    -------
    taken : int
        Bytes of the piece that were used up.
    fault : None or str
        ``"column"``, ``"value"`` or ``"changed"`` for the term that ends at ``taken``.
    """
    cdef RecordLimits limits = _limits(field, rows, columns)
    cdef SparseTarget t[3]
    cdef bint filling = len(targets[0]) > 1
    cdef RecordFault fault = RecordFault.none
    cdef ConstraintWalk state
    cdef size_t size = piece.shape[0], taken
    cdef const uint8_t* p = &piece[0] if size else NULL
    if walk.shape[0] != 3:
        raise ValueError("walk must have 3 entries")
    for m in range(3):
        t[m] = _target(targets[m], rows, 1)
    state.combination, state.remaining, state.inside = walk[0], walk[1], walk[2]
    with nogil:
        taken = walk_constraints(p, size, limits, t, filling, state, fault)
    walk[0], walk[1], walk[2] = state.combination, state.remaining, state.inside
    return taken, None if fault == RecordFault.none else _fault_name(fault)
