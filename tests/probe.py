# SPDX-License-Identifier: Apache-2.0
"""The tests' door to the templates of ``cuda/``: any operation of any field or group, one at a time, over rows of words.

The loops of `pinzk._core.cpu` expose few operations by themselves. `native/probe.hpp` is compiled here, one small library
for each curve, kept under ``build/probe`` by the hash of all that goes into it. ``PINZK_PROBE_FLAGS`` adds compiler
flags, e.g. ``-fsanitize=undefined``.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shlex
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from pinzk.curves import Field, Group, Words

ROOT = Path(__file__).resolve().parent.parent
UNITS = {"bn254": "Bn254", "bls12_381": "Bls12_381", "toy": "Toy"}

COMMON_OPS = ["add", "subtract", "negate", "multiply", "twice", "square", "inverse"]
COMMON_OPS += ["add_to", "subtract_from", "multiply_by"]
FIELD_OPS = [*COMMON_OPS, "from_canonical", "to_canonical", "power", "product", "conjugate", "times"]
POINT_OPS = ["from_affine", "twice", "add_affine", "add", "add_itself", "doubled", "negate", "negate_affine"]
POINT_OPS += ["to_affine", "times"]


def _build(curve_name: str) -> Path:
    unit = f'#include "{curve_name}.cuh"\nusing Curve = pinzk::{UNITS[curve_name]};\n#include "probe.hpp"\n'
    command = [
        *shlex.split(os.environ.get("CXX", "c++")),
        "-std=c++17",
        "-O1",
        "-fPIC",
        "-shared",
        "-Wall",
        "-Wextra",
    ]
    command += [*shlex.split(os.environ.get("PINZK_PROBE_FLAGS", "")), "-x", "c++", "-"]
    digest = hashlib.sha256("\0".join([unit, *command]).encode())
    for source in [*sorted((ROOT / "cuda").glob("*.cuh")), ROOT / "tests/native/probe.hpp"]:
        digest.update(source.read_bytes())
    library = ROOT / "build/probe" / f"{curve_name}-{digest.hexdigest()[:16]}.so"
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=library.parent) as scratch:
            made = Path(scratch) / "probe.so"
            include = [f"-I{ROOT / 'cuda'}", f"-I{ROOT / 'tests/native'}"]
            done = subprocess.run(
                [*command, *include, "-o", made], check=False, input=unit, text=True, stderr=subprocess.PIPE
            )
            if done.returncode:
                raise RuntimeError(f"the probe of {curve_name} does not compile:\n{done.stderr}")
            made.replace(library)
    return library


@functools.cache
def _libraries() -> dict[str, ctypes.CDLL]:
    with ThreadPoolExecutor(2) as pool:
        return dict(zip(UNITS, map(ctypes.CDLL, pool.map(_build, UNITS)), strict=True))


def _pointer(a: Words) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.ctypes.data)


def _operands(words: int, a: Words, b: Words | None) -> tuple[Words, Words]:
    first = np.ascontiguousarray(a, dtype=np.uint64)
    second = first if b is None or b is a else np.ascontiguousarray(b, dtype=np.uint64)
    assert first.ndim == 2 and first.shape == second.shape and first.shape[1] == words, (a.shape, words)
    return first, second


def field_op(field: Field, op: str, a: Words, b: Words | None = None, *, degree: int = 1) -> Words:
    """An operation of `FIELD_OPS` on each row of `a` (and `b`).

    ``conjugate`` and ``times`` (by the first coordinate of b) exist for ``degree=2``, the quadratic extension;
    ``from_canonical`` ... ``product`` for degree 1. The assigning forms (``add_to`` ...) with b left out act on one object.
    """
    a, b = _operands(degree * field.limbs, a, b)
    assert degree == 1 or not field.is_scalar
    out = np.empty_like(a)
    which = 2 if degree == 2 else 0 if field.is_scalar else 1
    call = _libraries()[field.curve_name].field_op
    call(which, FIELD_OPS.index(op), _pointer(a), _pointer(b), _pointer(out), ctypes.c_size_t(len(a)))
    return out


def point_op(group: Group, op: str, a: Words, b: Words | None = None) -> Words:
    """An operation of `POINT_OPS` on each row X, Y, ZZ, ZZZ, shape (n, 2 * group.limbs).

    Affine operands are the first half of a row; affine results have a second half of zeros. ``times`` takes its scalar,
    canonical, from the first four words of `b`.
    """
    a, b = _operands(2 * group.limbs, a, b)
    out = np.empty_like(a)
    call = _libraries()[group.curve_name].point_op
    call(group.number, POINT_OPS.index(op), _pointer(a), _pointer(b), _pointer(out), ctypes.c_size_t(len(a)))
    return out


def field_constants(field: Field) -> dict:
    """What the templates derive from a modulus and a generator: rows of words, and plain numbers."""
    n = field.limbs
    out = np.zeros(7 * n + 4, dtype=np.uint64)
    _libraries()[field.curve_name].field_constants(0 if field.is_scalar else 1, _pointer(out))
    names = ("modulus", "r", "r2", "one", "root_5", "root_7", "root")
    rows = {name: out[i * n : (i + 1) * n].reshape(1, n) for i, name in enumerate(names)}
    numbers = ("np", "two_adicity", "bits", "generator")
    return rows | {name: int(out[7 * n + i]) for i, name in enumerate(numbers)}


def group_constants(group: Group) -> tuple[Words, Words]:
    """The coefficient b and the generator's coordinates, in rows of the prime field."""
    n = group.limbs // 2
    out = np.zeros(3 * n, dtype=np.uint64)
    _libraries()[group.curve_name].group_constants(group.number, _pointer(out))
    return out[:n].reshape(-1, group.base.limbs), out[n:].reshape(1, -1)


def multiply_words(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    """a b + c + d of 64-bit words, by the portable product and by the machine's."""
    abcd, portable, native = (np.array(v, dtype=np.uint64) for v in ([a, b, c, d], [0, 0], [0, 0]))
    _libraries()["toy"].multiply_words(_pointer(abcd), _pointer(portable), _pointer(native))
    lo_hi = [int(v[0]) | int(v[1]) << 64 for v in (portable, native)]
    return lo_hi[0], lo_hi[1]
