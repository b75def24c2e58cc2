# SPDX-License-Identifier: Apache-2.0
"""The Groth16 prover, step by step as in the paper (Groth 2016, section 3.2).

    A = alpha + sum w_i A_i + r delta
    B = beta + sum w_i B_i + s delta
    C = sum w_i L_i + sum h_j H_j + s A + r B - r s delta        (L over the private wires)

The symbols are the paper's; a key's query is named after the points it holds (`a`, `b_1`, `b_2`, `c` for L, `h`).
"""

from __future__ import annotations

import secrets
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from .. import backend
from .._core import cpu
from ..curves import Field, Group, Words
from ..errors import SelfCheckError, UseAfterRelease, WitnessError
from ..formats.zkey import Zkey
from ..stages import quotient
from ..stages.ntt import Domain
from .constraints import R1cs, canonical_witness
from .keys import ProvingKey
from .proof import Proof
from .verifier import why_invalid
from .witness import Witness


@dataclass(frozen=True)
class ProofResult:
    """What `Prover.prove` returns.

    Attributes
    ----------
    proof : Proof
    public : list of int
        The public values in the key's order, without the leading one.
    stats : dict
        ``device``, ``threads``, ``curve``, ``sizes``, ``seconds`` (by stage, and ``total``), ``self_check``
        (False where it was turned off). Plain values, ready for JSON.
    """

    proof: Proof
    public: list[int]
    stats: dict[str, Any]


class Prover:
    """Makes proofs with one key; one prover may be used from many threads at once.

    Parameters
    ----------
    key : ProvingKey
    device : str, default "auto"
        See `pinzk.backend.select`.
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
    """

    def __init__(
        self,
        key: ProvingKey,
        *,
        device: str = "auto",
        self_check: bool = True,
        threads: int | None = None,
    ) -> None:
        self._device = backend.select(device)
        self._threads = cpu.num_threads(threads)
        self._self_check = bool(self_check)
        log_n = key.domain_size.bit_length() - 1
        self._domain = Domain(key.curve, log_n, root=key.kind, device=self._device, threads=self._threads)
        self._key: ProvingKey | None = key

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the key (which stays open) and of the tables. Proofs under way end normally."""
        self._key = None

    def prove(self, witness: Any) -> ProofResult:
        """Prove that the witness satisfies the key's circuit.

        Parameters
        ----------
        witness : Witness, or whatever `Witness.load` takes

        Returns
        -------
        ProofResult

        Raises
        ------
        KeyMismatchError
            The witness is of another curve.
        WitnessError
            Wrong length, element 0 is not 1, or (found by the self-check) it does not satisfy the circuit.
        SelfCheckError
            The proof does not verify although the key's R1CS is satisfied: the machine is at fault.
        UseAfterRelease
            The prover is closed.
        """
        clock, owner = _Clock(), self._key
        if owner is None:
            raise UseAfterRelease("the prover is closed: make a new one")
        key, vk, r1cs, sizes = owner.record, owner.vk, owner.r1cs, owner.sizes
        curve, fr, g1, g2 = key.curve, key.curve.fr, key.curve.g1, key.curve.g2
        w = canonical_witness(witness, curve, key.n_vars)
        if vk.is_insecure:
            warnings.warn(
                "insecure key: delta_2 = gamma_2, anyone can forge proofs for it; use a key with a phase 2 contribution",
                stacklevel=2,
            )
        r, s = _blinding(fr)

        with clock("evaluate"):
            if isinstance(key, Zkey):
                evaluations = self._snarkjs_rows(key, w)
                w_a = w_b = w
            else:
                r1cs = _constraints_of(r1cs)
                evaluations = self._bellman_rows(r1cs, w)
                w_a, w_b = w[r1cs.occurs_in_a], w[r1cs.occurs_in_b]
        with clock("quotient"):
            if isinstance(key, Zkey):
                h = quotient.snarkjs(self._domain, *evaluations)
            else:
                h = quotient.bellman(self._domain, *evaluations)
            del evaluations
            cpu.from_montgomery(fr, h, h, threads=self._threads)  # as the MSM wants it
        with clock("msm_h"):
            h_sum = self._msm(g1, key.h, h)
            del h
        with clock("msm_a"):
            a_sum = self._msm(g1, key.a, w_a)
        with clock("msm_b_1"):
            b_1_sum = self._msm(g1, key.b_1, w_b)
        with clock("msm_b_2"):
            b_2_sum = self._msm(g2, key.b_2, w_b)
        with clock("msm_c"):
            l_sum = self._msm(g1, key.c if isinstance(key, Zkey) else key.l, w[key.n_public + 1 :])

        with clock("combine"):
            a_1 = _combine(g1, (1, key.alpha_1), (1, a_sum), (r, key.delta_1))
            b_1 = _combine(g1, (1, key.beta_1), (1, b_1_sum), (s, key.delta_1))
            b_2 = _combine(g2, (1, key.beta_2), (1, b_2_sum), (s, key.delta_2))
            c_1 = _combine(g1, (1, l_sum), (1, h_sum), (s, a_1), (r, b_1), (-r * s, key.delta_1))

        proof = Proof(curve, a_1, b_2, c_1)
        public = fr.decode_canonical(w[1 : key.n_public + 1])
        if self._self_check:
            with clock("self_check"):
                if why_invalid(vk, public, proof, allow_insecure=True) is not None:
                    raise _blame(r1cs, w)
        stats = {
            "device": self._device,
            "threads": self._threads,
            "curve": curve.name,
            "sizes": sizes,
            "seconds": clock.finish(),
            "self_check": self._self_check,
        }
        return ProofResult(proof, public, stats)

    def _snarkjs_rows(self, key: Zkey, w: Words) -> list[Words]:
        # all rows of the domain are in the key, and there is no matrix C: c = a b
        return [
            cpu.sparse_rows(key.curve.fr, m.indptr, m.indices, m.values, w, threads=self._threads)
            for m in (key.rows_a, key.rows_b)
        ]

    def _bellman_rows(self, r1cs: R1cs, w: Words) -> list[Words]:
        # behind the constraints comes input_i * 0 = 0 for every input, the one among them
        n, m = r1cs.n_constraints, r1cs.n_public + 1
        rows = [np.zeros((self._domain.size, 4), dtype=np.uint64) for _ in range(3)]
        for out, values in zip(
            rows, r1cs.evaluate(Witness(r1cs.curve, w), threads=self._threads), strict=True
        ):
            out[:n] = values
        cpu.to_montgomery(r1cs.curve.fr, w[:m], rows[0][n : n + m], threads=self._threads)
        return rows

    def _msm(self, group: Group, bases: Words, scalars: Words) -> Words:
        return cpu.msm(group, bases, scalars, threads=self._threads)


def _blinding(fr: Field) -> tuple[int, int]:
    # uniform in [0, order), from the operating system, anew for every proof: with known r, s a proof tells about the witness
    return secrets.randbelow(fr.modulus), secrets.randbelow(fr.modulus)


def _constraints_of(r1cs: R1cs | None) -> R1cs:
    if r1cs is None:
        raise ValueError("a bellman key has no matrices: load it with r1cs= to prove from a witness")
    return r1cs


def _combine(group: Group, *terms: tuple[int, Words]) -> Words:
    # sum of scalar * point over a handful of terms
    scalars = group.scalar.encode_canonical(k % group.scalar.modulus for k, _ in terms)
    return cpu.msm(group, np.concatenate([p for _, p in terms]), scalars, threads=1)


def _blame(r1cs: R1cs | None, w: Words) -> Exception:
    # a proof that does not verify comes from a witness that does not satisfy, or from a broken machine
    if r1cs is None:
        return WitnessError(
            "the witness does not satisfy the circuit: its proof does not verify (load the key with r1cs= to be told "
            "which constraint fails)"
        )
    row = r1cs.first_unsatisfied(w)
    if row is None:
        return SelfCheckError(
            "the proof does not verify although the witness satisfies every constraint of the r1cs: "
            "the key and the r1cs are not of one circuit, or this machine computes wrongly"
        )
    return WitnessError(f"the witness does not satisfy the circuit: constraint {row} fails", index=row)


class _Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._seconds: dict[str, float] = {}

    @contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        begin = time.perf_counter()
        yield
        self._seconds[stage] = time.perf_counter() - begin

    def finish(self) -> dict[str, float]:
        return {**self._seconds, "total": time.perf_counter() - self._start}
