# SPDX-License-Identifier: Apache-2.0
"""The tests' doors to the templates of ``cuda/``: any operation of any field or group, one at a time, over rows of words.

The loops of `pinzk._core.cpu` expose few operations by themselves. `native/probe.hpp` is compiled here, one small library
for each curve and machine type, kept under ``build/probe`` by the hash of all that goes into it. ``PINZK_PROBE_FLAGS``
adds compiler flags, e.g. ``-fsanitize=undefined``.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import re
import shlex
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pinzk.curves import Field, Group, Words

ROOT = Path(__file__).resolve().parent.parent
STRUCTS = {"bn254": "Bn254On", "bls12_381": "Bls12_381On", "toy": "ToyOn"}
# C++'s types of machines, and the headers that hold them
MACHINES = {
    "portable": ("Portable", "field.cuh"),
    "host": ("Host", "inverse.hpp"),  # portable, with the host's inverse
    "adx": ("Adx", "adx.hpp"),
    "chains": ("Chains", "chains.cuh"),  # the GPU's, its carry flag emulated
}
INCLUDE = [ROOT / "cuda", ROOT / "pinzk/_core/cpu_loops", ROOT / "tests/native"]


def machines(curve_name: str) -> list[str]:
    """The machine types that exist for a curve and run here."""
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        text = ""
    flags = set(" ".join(re.findall(r"^flags\s*:(.*)$", text, re.M)).split())
    return [
        "portable",
        "host",
        "chains",
        *(["adx"] if curve_name != "toy" and {"adx", "bmi2"} <= flags else []),
    ]


COMMON_OPS = ["add", "subtract", "negate", "multiply", "twice", "square", "inverse"]
COMMON_OPS += ["add_to", "subtract_from", "multiply_by"]
FIELD_OPS = [*COMMON_OPS, "from_canonical", "to_canonical", "power", "product", "conjugate", "times"]
POINT_OPS = ["from_affine", "twice", "add_affine", "add", "add_itself", "doubled", "negate", "negate_affine"]
POINT_OPS += ["to_affine", "times"]


@functools.cache
def _library(curve_name: str, machine: str, header_of_probe: str = "probe.hpp") -> ctypes.CDLL:
    """Built, or found where its sources have not changed."""
    struct, header = MACHINES[machine]
    unit = f'#include "{header}"\n#include "{curve_name}.cuh"\n'
    unit += f'using Curve = pinzk::{STRUCTS[curve_name]}<pinzk::{struct}>;\n#include "{header_of_probe}"\n'
    command = [
        *shlex.split(os.environ.get("CXX", "c++")),
        "-std=c++17",
        "-Og",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
    ]
    command += [*shlex.split(os.environ.get("PINZK_PROBE_FLAGS", "")), "-x", "c++", "-"]
    digest = hashlib.sha256("\0".join([unit, *command]).encode())
    ours = [ROOT / "pinzk/_core/cpu_loops/adx.hpp", ROOT / "tests/native" / header_of_probe]
    for source in [*sorted((ROOT / "cuda").glob("*.cuh")), *ours]:
        digest.update(source.read_bytes())
    library = (
        ROOT
        / "build/probe"
        / f"{Path(header_of_probe).stem}-{curve_name}-{machine}-{digest.hexdigest()[:16]}.so"
    )
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            made = Path(scratch) / "probe.so"
            command += [*(f"-I{d}" for d in INCLUDE), "-o", str(made)]
            done = subprocess.run(command, check=False, input=unit, text=True, stderr=subprocess.PIPE)
            if done.returncode:
                raise RuntimeError(f"the probe of {curve_name} does not compile:\n{done.stderr}")
            made.replace(library)
    return ctypes.CDLL(str(library))


def _pointer(a: Words) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.ctypes.data)


def _operands(words: int, a: Words, b: Words | None) -> tuple[Words, Words]:
    first = np.ascontiguousarray(a, dtype=np.uint64)
    second = first if b is None or b is a else np.ascontiguousarray(b, dtype=np.uint64)
    assert first.ndim == 2 and first.shape == second.shape and first.shape[1] == words, (a.shape, words)
    return first, second


@dataclass(frozen=True)
class FieldDoor:
    """The operations `FIELD_OPS` of a field, or of its quadratic extension, on one machine type.

    ``door(op, a, b)`` takes and gives rows, shape (n, degree * field.limbs). ``conjugate`` and ``times`` (by the first
    coordinate of b) exist for degree 2, what stands before them in the list for degree 1. Where b is left out, the
    assigning forms (``add_to`` ...) act on one object.
    """

    field: Field
    machine: str
    degree: int = 1

    @property
    def name(self) -> str:
        return f"{self.field.name}-{self.machine}"

    def __call__(self, op: str, a: Words, b: Words | None = None) -> Words:
        a, b = _operands(self.degree * self.field.limbs, a, b)
        out = np.empty_like(a)
        which = 2 if self.degree == 2 else 0 if self.field.is_scalar else 1
        call = _library(self.field.curve_name, self.machine).field_op
        call(which, FIELD_OPS.index(op), _pointer(a), _pointer(b), _pointer(out), ctypes.c_size_t(len(a)))
        return out


LAZY_OPS = ["add", "subtract", "canonical", "times_fixed", "times", "loose_add", "loose_subtract", "quotient"]


def lazy_op(field: Field, op: str, a: Words, b: Words, c: Words) -> Words:
    """An operation of `Lazy` on a scalar field: rows a and b below 2p, c below p; see ``native/probe.hpp``."""
    rows = [np.ascontiguousarray(v, dtype=np.uint64) for v in (a, b, c)]
    assert all(v.shape == (len(a), field.limbs) for v in rows)
    out = np.empty_like(rows[0])
    call = _library(field.curve_name, "chains").lazy_op
    call(LAZY_OPS.index(op), *map(_pointer, rows), _pointer(out), ctypes.c_size_t(len(out)))
    return out


PRODUCT_OPS = ["product", "product_twice_b", "square", "square_canonical", "dot_2", "dot_4", "cross"]
PRODUCT_OPS += ["inverse", "is_zero", "may_be_zero", "canonical"]
PAIR_OPS = ["product", "square", "cross", "inverse", "add", "subtract"]
SUM_OPS = ["from_affine", "add_affine", "subtract_affine", "add", "doubled", "canonical"]


def _lazy_library(curve_name: str) -> ctypes.CDLL:
    return _library(curve_name, "chains", "lazy_probe.hpp")


def product_op(field: Field, op: str, abcd: Words) -> Words:
    """A product over four residues of a base field, shape (n, 4 * limbs), below 2p; see ``native/lazy_probe.hpp``."""
    assert not field.is_scalar
    abcd = np.ascontiguousarray(abcd).reshape(-1, 4 * field.limbs)
    out = np.empty((len(abcd), field.limbs), dtype=np.uint64)
    call = _lazy_library(field.curve_name).product_op
    call(PRODUCT_OPS.index(op), _pointer(abcd), _pointer(out), ctypes.c_size_t(len(out)))
    return out


def pair_op(field: Field, op: str, abcd: Words) -> Words:
    """An operation over four elements of Fp2, shape (n, 8 * limbs), below 2p."""
    abcd = np.ascontiguousarray(abcd).reshape(-1, 8 * field.limbs)
    out = np.empty((len(abcd), 2 * field.limbs), dtype=np.uint64)
    call = _lazy_library(field.curve_name).pair_op
    call(PAIR_OPS.index(op), _pointer(abcd), _pointer(out), ctypes.c_size_t(len(out)))
    return out


def sum_op(group: Group, op: str, a: Words, b: Words) -> Words:
    """An operation of `LazyXyzz` over rows X, Y, ZZ, ZZZ of residues below 2p, as they come out."""
    a, b = _operands(2 * group.limbs, a, b)
    out = np.empty_like(a)
    call = _lazy_library(group.curve_name).sum_op
    call(group.number, SUM_OPS.index(op), _pointer(a), _pointer(b), _pointer(out), ctypes.c_size_t(len(a)))
    return out


@dataclass(frozen=True)
class GroupDoor:
    """The operations `POINT_OPS` of a group on one machine type.

    ``door(op, a, b)`` takes and gives rows X, Y, ZZ, ZZZ, shape (n, 2 * group.limbs). Affine operands are the first half
    of a row; affine results have a second half of zeros. ``times`` takes its scalar, canonical, from the first four
    words of b.
    """

    group: Group
    machine: str

    @property
    def name(self) -> str:
        return f"{self.group.name}-{self.machine}"

    def __call__(self, op: str, a: Words, b: Words | None = None) -> Words:
        a, b = _operands(2 * self.group.limbs, a, b)
        out = np.empty_like(a)
        call = _library(self.group.curve_name, self.machine).point_op
        call(
            self.group.number,
            POINT_OPS.index(op),
            _pointer(a),
            _pointer(b),
            _pointer(out),
            ctypes.c_size_t(len(a)),
        )
        return out


def field_constants(field: Field) -> dict:
    """What the templates derive from a modulus and a generator: rows of words, and plain numbers."""
    n = field.limbs
    out = np.zeros(7 * n + 4, dtype=np.uint64)
    _library(field.curve_name, "portable").field_constants(0 if field.is_scalar else 1, _pointer(out))
    names = ("modulus", "r", "r2", "one", "root_5", "root_7", "root")
    rows = {name: out[i * n : (i + 1) * n].reshape(1, n) for i, name in enumerate(names)}
    numbers = ("np", "two_adicity", "bits", "generator")
    return rows | {name: int(out[7 * n + i]) for i, name in enumerate(numbers)}


def group_constants(group: Group) -> tuple[Words, Words]:
    """The coefficient b and the generator's coordinates, in rows of the prime field."""
    n = group.limbs // 2
    out = np.zeros(3 * n, dtype=np.uint64)
    _library(group.curve_name, "portable").group_constants(group.number, _pointer(out))
    return out[:n].reshape(-1, group.base.limbs), out[n:].reshape(1, -1)


def multiply_words(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """a b + c + d of 64-bit words, by the portable product and by the machine's."""
    abcd, portable, native = (np.array(v, dtype=np.uint64) for v in ([a, b, c, d], [0, 0], [0, 0]))
    _library("toy", "portable").multiply_words(_pointer(abcd), _pointer(portable), _pointer(native))
    lo_hi = [int(v[0]) | int(v[1]) << 64 for v in (portable, native)]
    return lo_hi[0], lo_hi[1]
