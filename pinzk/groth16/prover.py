# SPDX-License-Identifier: Apache-2.0
"""The Groth16 prover, step by step as in the paper (Groth 2016, section 3.2).

    A = alpha + sum w_i A_i + r delta
    B = beta + sum w_i B_i + s delta
    C = sum w_i L_i + sum h_j H_j + s A + r B - r s delta        (L over the private wires)

The symbols are the paper's; a key's query is named after the points it holds (`a`, `b_1`, `b_2`, `h`, and `c` or `l` for L).
Keys of snarkjs and of bellman differ in how h comes about and in which wires have a point, in nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, Self

import numpy as np

from .. import backend
from .._core import cpu
from .._core.assignment import ProvingAssignment
from .._core.device import Device
from .._core.memory import PinnedPool
from ..curves import Field, Group, Words
from ..errors import SelfCheckError, UseAfterRelease, WitnessError
from ..formats.bellman import BellmanKey
from .assignments import check_assignment
from .batch import prove_many
from .constraints import R1cs, canonical_witness
from .cpu_engine import CpuEngine
from .engine import Begun, Engine
from .gpu_engine import GpuEngine
from .keys import ProvingKey
from .pending import PendingProof
from .plan import MemoryPlan
from .proof import Proof
from .verifier import why_invalid
from .work import Own, ProofResult, Work, views_dropped

log = logging.getLogger(__name__)


class Prover:
    """Makes proofs with one key; one prover may be used from many threads at once.

    Parameters
    ----------
    key : ProvingKey
    device : str or Device, default "auto"
        See `pinzk.backend.select`.
    pool : PinnedPool, optional
        Where what the prover makes of witnesses lives. Default: on the CPU one of its own, pageable, else the process's.
    max_device : int, optional
        Bytes of device memory that the prover may use; by default what is free. It decides how many multiples of the key's
        points are kept: with more of them sums are faster.
    self_check : bool, default True
        Verify every proof before it is returned.
    threads : int, optional
        Threads of one proof; by default ``PINZK_NUM_THREADS``, else the cores this process may use.

    Raises
    ------
    ValueError
        `device` or `threads` is not one.
    BackendUnavailable
        The device that was asked for is not there.
    MemoryPlanError
        The key does not fit on the device; the message has the numbers.
    """

    def __init__(
        self,
        key: ProvingKey,
        *,
        device: str | Device = "auto",
        pool: PinnedPool | None = None,
        max_device: int | None = None,
        self_check: bool = True,
        threads: int | None = None,
    ) -> None:
        chosen = backend.select(device)
        self._threads = cpu.num_threads(threads)
        self._self_check = bool(self_check)
        self._engine: Engine | None = (
            GpuEngine(key.record, chosen, pool, max_device)
            if isinstance(chosen, Device)
            else CpuEngine(key.record, self._threads, pool)
        )
        self._key: ProvingKey | None = key
        self._own: Own | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the key (which stays open) and of the tables. Proofs under way end normally."""
        self._key = self._own = None
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()

    def prove(self, witness: Any) -> ProofResult:
        """Prove that the witness satisfies the key's circuit.

        Parameters
        ----------
        witness : Witness, whatever `Witness.load` takes, or ProvingAssignment
            A bellman key proves from a witness if it has its r1cs. An assignment is taken, as by `prove_start`.

        Returns
        -------
        ProofResult

        Raises
        ------
        KeyMismatchError
            The witness is of another curve, the assignment of another circuit.
        WitnessError
            Wrong length, element 0 is not 1, or it does not satisfy the circuit: found at once where there is a c, by the
            self-check otherwise.
        SelfCheckError
            The proof does not verify although the key's R1CS is satisfied: the machine is at fault.
        UseAfterRelease
            The prover is closed.
        """
        return self._finish(self._start(self._accept(witness)))

    def prove_start(self, witness: Any) -> PendingProof:
        """Begin a proof: everything that needs a, b and c is done when this returns, and they are home.

        Parameters
        ----------
        witness : ProvingAssignment, or what `prove` takes
            An assignment is sealed if it is not yet, and taken: afterwards only `release_abc` and `abc_released` work on it.
            Where this raises before it has begun, nothing is taken.

        Returns
        -------
        PendingProof
            Its remaining stages run on the prover's own thread, one proof after the other.

        Raises
        ------
        KeyMismatchError, WitnessError, UseAfterRelease
            As `prove`; what the self-check finds is raised by `PendingProof.finish`.
        """
        return self._pending(self._start(self._accept(witness)))

    async def prove_async(self, witness: Any) -> ProofResult:
        """`prove` for asyncio: the loop goes on meanwhile. Same arguments and errors; a cancelled task lets go of it.

        What is wrong with the input is raised before an assignment is taken.
        """
        work = await asyncio.to_thread(self._accept, witness)
        pending = await asyncio.to_thread(lambda: self._pending(self._start(work)))
        try:
            return await asyncio.to_thread(pending.finish)
        except asyncio.CancelledError:
            pending.cancel()
            raise

    def prove_many(self, items: Iterable[Any], *, depth: int = 2) -> Iterator[ProofResult]:
        """Prove item after item, in order, the next ones drawn meanwhile; see `pinzk.groth16.batch.prove_many`."""
        return prove_many([self], items, depth=depth)

    def estimate(self) -> MemoryPlan:
        """What this prover holds, in bytes."""
        engine = self._engine
        if engine is None:
            raise UseAfterRelease("the prover is closed: make a new one")
        return engine.plan

    # ---- the steps ----

    def _accept(self, witness: Any) -> Work:
        # everything that can be wrong with the input, before anything is taken
        owner, engine = self._key, self._engine
        if owner is None or engine is None:
            raise UseAfterRelease("the prover is closed: make a new one")
        key = owner.record
        if isinstance(witness, ProvingAssignment):
            with views_dropped():
                check_assignment(key, witness, threads=self._threads)
        else:
            witness = canonical_witness(witness, key.curve, key.n_vars)
            if isinstance(key, BellmanKey) and owner.r1cs is None:
                raise ValueError("a bellman key has no matrices: load it with r1cs= to prove from a witness")
        return Work(engine, owner, key, owner.vk, owner.r1cs, owner.sizes, witness)

    def _start(self, work: Work) -> Work:
        key, clock, given = work.key, work.clock, work.given
        if work.vk.is_insecure:
            warnings.warn(
                "insecure key: delta_2 = gamma_2, anyone can forge proofs for it; use a key with a phase 2 contribution",
                stacklevel=3,
            )
        work.r, work.s = _blinding(key.curve.fr)
        if isinstance(given, ProvingAssignment):
            work.given = None
            given.seal()
            work.begun = work.engine.begin(given._take(), clock)
        else:
            work.begun = work.engine.begin_witness(work.owner, given, clock)
        return work

    def _finish(self, work: Work) -> ProofResult:
        try:
            proof, retries = self._proof(work), 0
            if self._self_check and not self._verifies(work, proof):
                proof, retries = self._again(work, proof), 1
        finally:
            work.begun.release()
        stats = {
            "device": work.engine.device,
            "threads": self._threads,
            "curve": work.key.curve.name,
            "sizes": work.sizes,
            "seconds": work.clock.finish(),
            "self_check": self._self_check,
            "retries": retries,
        }
        return ProofResult(proof, work.begun.public, stats)

    def _proof(self, work: Work) -> Proof:
        key, clock, r, s = work.key, work.clock, work.r, work.s
        g1, g2 = key.curve.g1, key.curve.g2
        sums = work.begun.sums(clock)
        with clock("combine"):
            a_1 = _combine(g1, (1, key.alpha_1), (1, sums.a), (r, key.delta_1))
            b_1 = _combine(g1, (1, key.beta_1), (1, sums.b_1), (s, key.delta_1))
            b_2 = _combine(g2, (1, key.beta_2), (1, sums.b_2), (s, key.delta_2))
            c_1 = _combine(g1, (1, sums.l), (1, sums.h), (s, a_1), (r, b_1), (-r * s, key.delta_1))
        return Proof(key.curve, a_1, b_2, c_1)

    def _verifies(self, work: Work, proof: Proof) -> bool:
        with work.clock("self_check"):
            return why_invalid(work.vk, work.begun.public, proof, allow_insecure=True) is None

    def _again(self, work: Work, wrong: Proof) -> Proof:
        # a proof that does not verify comes from a witness that does not satisfy, or from a machine that failed
        if not work.engine.fallible:
            raise _blame(work.r1cs, work.begun)
        if work.given is None:
            raise SelfCheckError(
                "the proof does not verify and cannot be made again, because a, b and c are gone: "
                "the device computed wrongly, or the assignment does not satisfy the circuit"
            )
        log.warning("a proof of %s does not verify: making it again", work.engine.device)
        work.begun.release()
        work.begun = work.engine.begin_witness(work.owner, work.given, work.clock)
        proof = self._proof(work)
        if self._verifies(work, proof):
            return proof
        if proof == wrong:
            raise _blame(work.r1cs, work.begun)
        raise SelfCheckError(
            f"{work.engine.device} computes wrongly: two proofs from one witness differ, and neither verifies"
        )

    def _pending(self, work: Work) -> PendingProof:
        return PendingProof(self._mine().thread.submit(self._finish, work), work.clock.stop)

    def _mine(self) -> Own:
        # made when first needed, and again in a forked child
        if self._own is None or not self._own.is_of_this_process():
            self._own = Own()
        return self._own


def _blinding(fr: Field) -> tuple[int, int]:
    # uniform in [0, order), from the operating system, anew for every proof: with known r, s a proof tells about the witness
    return secrets.randbelow(fr.modulus), secrets.randbelow(fr.modulus)


def _combine(group: Group, *terms: tuple[int, Words]) -> Words:
    # sum of scalar * point over a handful of terms
    scalars = group.scalar.encode_canonical(k % group.scalar.modulus for k, _ in terms)
    return cpu.msm(group, np.concatenate([p for _, p in terms]), scalars, threads=1)


def _blame(r1cs: R1cs | None, begun: Begun) -> Exception:
    # a proof that does not verify comes from a witness that does not satisfy, or from a broken machine
    if r1cs is None:
        return WitnessError(
            "the witness does not satisfy the circuit: its proof does not verify (load the key with r1cs= to be told "
            "which constraint fails)"
        )
    row = r1cs.first_unsatisfied(begun.wires())
    if row is None:
        return SelfCheckError(
            "the proof does not verify although the witness satisfies every constraint of the r1cs: "
            "the key and the r1cs are not of one circuit, or this machine computes wrongly"
        )
    return WitnessError(f"the witness does not satisfy the circuit: constraint {row} fails", index=row)
