# SPDX-License-Identifier: Apache-2.0
"""What a key takes on a GPU, and how much of it goes into tables of multiples: decided before any memory is taken."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import MemoryPlanError
from ..formats.bellman import BellmanKey
from ..formats.zkey import Zkey
from ..stages.device_sort import Windows
from .keys import nbytes_of

_G2 = 3  # an addition in G2, in additions in G1
_ROOM = 256 << 20  # of building tables; events, modules and parts of runs
_MIB = 1 << 20


@dataclass(frozen=True)
class MemoryPlan:
    """Bytes that a prover holds.

    Attributes
    ----------
    device_key : int
        Device memory of the key: points with their multiples, matrices, tables of roots.
    device_scratch : int
        Device memory of the sums: digits, buckets.
    device_proof : int
        Device memory of vectors, for the proof that is made and the next one's uploads.
    pinned : int
        Pinned memory of a proof's a, b, c and assignment, where it starts from one.
    host : int
        Ordinary memory of the key.
    witness_windows, h_windows : Windows or None
        How scalars are cut, and how many multiples of every point there are; None on the CPU.
    """

    device_key: int
    device_scratch: int
    device_proof: int
    pinned: int
    host: int
    witness_windows: Windows | None = None
    h_windows: Windows | None = None

    @property
    def device(self) -> int:
        """Device memory in all."""
        return self.device_key + self.device_scratch + self.device_proof


def plan_for_gpu(key: Zkey | BellmanKey, limit: int) -> MemoryPlan:
    """The fastest plan within `limit` bytes of device memory.

    Tables of multiples make sums faster: fewer buckets, wider windows. They take what is left; the points
    themselves must fit.

    Raises
    ------
    MemoryPlanError
        Not even the key without tables fits; the message has the numbers.
    """
    plans = gpu_plans(key)
    for plan in plans:
        if plan.device <= limit:
            return plan
    plan = min(plans, key=lambda plan: plan.device)
    raise MemoryPlanError(
        f"the key needs at least {plan.device // _MIB} MiB of device memory (points and matrices "
        f"{plan.device_key // _MIB}, sums {plan.device_scratch // _MIB}, vectors {plan.device_proof // _MIB}), "
        f"{limit // _MIB} MiB may be used: use a larger GPU, max_device or --max-vram, or device='cpu'"
    )


def gpu_plans(key: Zkey | BellmanKey) -> list[MemoryPlan]:
    """All plans there are, the fastest first."""
    return [_bytes(key, w, h) for w, h in sorted(_windows(key), key=lambda both: _cost(key, *both))]


def plan_for_cpu(key: Zkey | BellmanKey) -> MemoryPlan:
    """What the CPU backend takes."""
    return MemoryPlan(0, 0, 0, 0, nbytes_of(key) + _assignment_bytes(key))


def _windows(key: Zkey | BellmanKey) -> list[tuple[Windows, Windows]]:
    # of the witness and of h: sizes are alike, so they are cut alike
    bits, largest = key.curve.fr.modulus.bit_length(), max(key.n_vars, key.domain_size)
    cuts = dict.fromkeys(Windows(bits, c, most) for c in range(4, 25) for most in (bits, 8, 4, 2, 1))
    return [(w, w) for w in cuts if w.multiples * largest <= 1 << 31]  # a point's index has 31 bits


def _cost(key: Zkey | BellmanKey, w: Windows, h: Windows) -> float:
    return (3 + _G2) * w.work(key.n_vars) + h.work(key.domain_size)


def _bytes(key: Zkey | BellmanKey, w: Windows, h: Windows) -> MemoryPlan:
    curve, n, m = key.curve, key.n_vars, key.domain_size
    g1, g2, fr = curve.g1.nbytes, curve.g2.nbytes, curve.fr.nbytes
    points = w.multiples * n * (3 * g1 + g2) + h.multiples * m * g1
    matrices = 8 * _entries(key) + 24 * m
    transforms = (3 * 64 + fr) * m  # roots there and back, with the coset's shift in them
    digits = w.sort_bytes(n, [n]) + h.sort_bytes(m, [m])
    buckets = w.buckets * 2 * (g1 + g2) + h.buckets * 2 * g1
    proof = 2 * (2 * n + 3 * m) * fr
    return MemoryPlan(
        points + matrices + transforms + _ROOM,
        digits + buckets + _ROOM,
        proof,
        _assignment_bytes(key),
        nbytes_of(key),
        w,
        h,
    )


def _entries(key: Zkey | BellmanKey) -> int:
    # a bellman key does not say: two a row and matrix are usual
    return key.rows_a.nnz + key.rows_b.nnz if isinstance(key, Zkey) else 6 * key.domain_size


def _assignment_bytes(key: Zkey | BellmanKey) -> int:
    vectors = 2 if isinstance(key, Zkey) else 3
    return (vectors * key.domain_size + key.n_vars) * key.curve.fr.nbytes
