# SPDX-License-Identifier: Apache-2.0
"""The five sums of a proof on the machine's processors."""

from __future__ import annotations

import os
from dataclasses import dataclass

from .._core import cpu
from .._core.assignment import Evaluations, ProvingAssignment
from .._core.memory import PinnedPool
from ..curves import Group, Words
from ..formats.bellman import BellmanKey
from ..formats.zkey import Zkey
from ..stages import quotient
from ..stages.ntt import Domain
from .assignments import check_assignment, padded, query_scalars
from .engine import Sums
from .keys import ProvingKey
from .plan import plan_for_cpu
from .work import Clock, views_dropped


class CpuEngine:
    """See `Engine`.

    Parameters
    ----------
    key : Zkey or BellmanKey
    threads : int
    pool : PinnedPool, optional
        Of the assignments made from witnesses. Default: one of its own, pageable, as nothing is uploaded.
    """

    device, fallible = "cpu", False

    def __init__(self, key: Zkey | BellmanKey, threads: int, pool: PinnedPool | None = None) -> None:
        self.key, self.threads, self._given_pool = key, threads, pool
        self.plan = plan_for_cpu(key)
        root = "snarkjs" if isinstance(key, Zkey) else "bellman"
        log_n = key.domain_size.bit_length() - 1
        self._domain = Domain(key.curve, log_n, root=root, device="cpu", threads=threads)
        self._pool: PinnedPool | None = None
        self._process = os.getpid()

    def begin(self, assignment: ProvingAssignment, clock: Clock) -> CpuBegun:
        """Make the quotient."""
        try:
            with views_dropped():
                with clock("quotient"):
                    with assignment._reading() as rows:
                        h = self._quotient(rows)
                    assignment.release_abc()
                return CpuBegun(
                    self.key, self.threads, h, *query_scalars(self.key, assignment, threads=self.threads)
                )
        finally:
            assignment.release()
            if self._pool is not None:
                self._mine().trim()  # what goes back to the system needs no wiping

    def begin_witness(self, owner: ProvingKey, witness: Words, clock: Clock) -> CpuBegun:
        """Synthesise, then as from an assignment."""
        with clock("evaluate"):
            pool = self._mine() if self._given_pool is None else self._given_pool
            assignment = synthesised(owner, self.key, witness, pool, self.threads)
        return self.begin(assignment, clock)

    def close(self) -> None:
        """Nothing is kept that would not go by itself."""

    def _mine(self) -> PinnedPool:
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = PinnedPool(kind="pageable", wipe=False), os.getpid()
        return self._pool

    def _quotient(self, rows: Evaluations) -> Words:
        n = self.key.domain_size
        a, b = padded(rows.a, n), padded(rows.b, n)
        if isinstance(self.key, Zkey):  # there is no matrix C: c = a b
            h = quotient.snarkjs(self._domain, a, b)
        else:
            assert rows.c is not None
            h = quotient.bellman(self._domain, a, b, padded(rows.c, n))
        return cpu.from_montgomery(self.key.curve.fr, h, threads=self.threads)  # as the MSM wants it


def synthesised(
    owner: ProvingKey, key: Zkey | BellmanKey, witness: Words, pool: PinnedPool, threads: int | None
) -> ProvingAssignment:
    """A new assignment, sealed and checked, from a canonical witness."""
    out = ProvingAssignment(
        key.curve,
        constraints=key.domain_size,
        aux=key.n_vars - key.n_public - 1,
        inputs=key.n_public + 1,
        pool=pool,
        with_c=isinstance(key, BellmanKey),
    )
    try:
        with views_dropped():
            owner.evaluate_into(out, witness, threads=threads)
            check_assignment(key, out, threads=threads)
    except BaseException:
        out.release()
        raise
    return out


@dataclass(repr=False)
class CpuBegun:
    """See `Begun`. Canonical scalars: of H, of all wires, of the wires with a point in A's and in B's query."""

    key: Zkey | BellmanKey
    threads: int
    h: Words
    w: Words
    w_a: Words
    w_b: Words

    @property
    def public(self) -> list[int]:
        """Decoded from the wires."""
        return self.key.curve.fr.decode_canonical(self.w[1 : self.key.n_public + 1])

    def sums(self, clock: Clock) -> Sums:
        """Five multi-scalar multiplications."""
        key, g1, g2 = self.key, self.key.curve.g1, self.key.curve.g2
        with clock("msm_h"):
            h = self._msm(g1, key.h, self.h)
            del self.h
        with clock("msm_a"):
            a = self._msm(g1, key.a, self.w_a)
        with clock("msm_b_1"):
            b_1 = self._msm(g1, key.b_1, self.w_b)
        with clock("msm_b_2"):
            b_2 = self._msm(g2, key.b_2, self.w_b)
        with clock("msm_c"):
            private = key.c if isinstance(key, Zkey) else key.l
            l_sum = self._msm(g1, private, self.w[key.n_public + 1 :])
        return Sums(a, b_1, b_2, l_sum, h)

    def wires(self) -> Words:
        """As they are."""
        return self.w

    def release(self) -> None:
        """Nothing is left."""

    def _msm(self, group: Group, bases: Words, scalars: Words) -> Words:
        return cpu.msm(group, bases, scalars, threads=self.threads)
