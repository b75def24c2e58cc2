# SPDX-License-Identifier: Apache-2.0
"""The verifier: e(A, B) = e(alpha, beta) e(inputs, gamma) e(C, delta), after strict checks of everything that comes in."""

from __future__ import annotations

import logging
from typing import Any

from .._core import cpu
from ..errors import FormatError, InsecureKeyError, KeyMismatchError
from ..formats.proof import read_public
from .points import FAULTS
from .proof import Proof
from .verifying_key import VerifyingKey

logger = logging.getLogger("pinzk")


def verify(vk: Any, public: Any, proof: Any, *, allow_insecure: bool = False) -> bool:
    """Whether a proof is valid for these public values.

    Parameters
    ----------
    vk : VerifyingKey, or what `VerifyingKey.load` takes
        An object prepares once what later proofs use again.
    public : path, bytes, buffer, file object, or list of int or decimal str
        In the key's order: outputs first, then public inputs, without the leading one.
    proof : Proof, or what `Proof.load` takes
    allow_insecure : bool
        Go on where delta_2 = gamma_2.

    Returns
    -------
    bool
        False where a point of the proof is infinite, off its curve or off its subgroup, or where the equation fails; the
        logger ``pinzk`` then says which.

    Raises
    ------
    FormatError
        An input is malformed: wrong number of public values, a value negative, not decimal, or not below r or q.
    KeyMismatchError
        Key and proof are of different curves.
    InsecureKeyError
        delta_2 = gamma_2: anyone can forge proofs for such a key.
    """
    reason = why_invalid(vk, public, proof, allow_insecure=allow_insecure)
    if reason is not None:
        logger.warning("the proof is invalid: %s", reason)
    return reason is None


def why_invalid(vk: Any, public: Any, proof: Any, *, allow_insecure: bool = False) -> str | None:
    """What `verify` finds wrong with a proof, in words; None for a valid one. Arguments and errors are those of `verify`."""
    vk = VerifyingKey.load(vk)
    curve = vk.curve
    proof = Proof.load(proof, curve=curve)
    if proof.curve != curve:
        raise KeyMismatchError(f"the proof is on {proof.curve.name}, the verification key on {curve.name}")
    values = read_public(public, curve)
    if len(values) != vk.n_public:
        raise FormatError(f"{len(values)} public values, the verification key needs {vk.n_public}")
    if vk.is_insecure and not allow_insecure:
        raise InsecureKeyError(
            "delta_2 = gamma_2 in the verification key: its set-up has no second phase, anyone can forge proofs; "
            "make a key with a phase 2 contribution, or allow insecure keys for a test"
        )

    for name, group, rows in (
        ("pi_a", curve.g1, proof.a),
        ("pi_b", curve.g2, proof.b),
        ("pi_c", curve.g1, proof.c),
    ):
        if not rows.any():
            return f"{name} is the point at infinity"
        # the subgroup of pi_b is tested where its Miller loop runs, which costs nothing
        bad = cpu.first_bad_point(group, rows, "curve" if name == "pi_b" else "subgroup", threads=1)
        if bad is not None:
            return f"{name}: {FAULTS[bad[1]]}"
    # inputs = IC_0 + sum of public_i IC_i
    inputs = cpu.msm(curve.g1, vk.ic, curve.fr.encode_canonical([1, *values]), threads=1)
    verdict = vk.prepared.check(proof.a, proof.b, proof.c, inputs)
    if verdict == "subgroup":
        return f"pi_b: {FAULTS['subgroup']}"
    return None if verdict == "valid" else "the pairing equation does not hold for these public values"
