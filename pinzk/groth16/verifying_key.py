# SPDX-License-Identifier: Apache-2.0
"""VerifyingKey: the points that a verifier needs, always checked in full, and what it prepares from them."""

from __future__ import annotations

import io
import os
from functools import cached_property
from typing import IO, Any

import numpy as np

from .._core.pairing import PreparedKey
from ..curves import Curve, Words
from ..formats.bellman import looks_like_bellman, read_bellman_vk
from ..formats.output import replacing
from ..formats.proof import VerifyingKeyRecord, read_verifying_key, verifying_key_json
from ..formats.source import Source
from .points import owned_points


class VerifyingKey:
    """A Groth16 verification key. Immutable, used from any number of threads.

    Every point is known to be in its subgroup and finite. The first verification prepares e(alpha, beta) and the Miller
    lines of gamma and delta, about 40 kB; keep the object to verify many proofs.

    Parameters
    ----------
    curve : Curve
    alpha_1 : ndarray of uint64, shape (1, curve.g1.limbs)
    beta_2, gamma_2, delta_2 : ndarray of uint64, shape (1, curve.g2.limbs)
    ic : ndarray of uint64, shape (n_public + 1, curve.g1.limbs)
        Affine rows, Montgomery form.
    path : str, optional
        Where they come from, for messages.

    Raises
    ------
    FormatError
        A point is off its curve or subgroup, or infinite; names the field of verification_key.json.
    """

    def __init__(
        self,
        curve: Curve,
        *,
        alpha_1: Words,
        beta_2: Words,
        gamma_2: Words,
        delta_2: Words,
        ic: Words,
        path: str | None = None,
    ) -> None:
        self.curve = curve
        g1, g2 = curve.g1, curve.g2

        def one(group: Any, rows: Words, field: str) -> Words:
            return owned_points(group, rows, field, count=1, check="subgroup", finite=True, path=path)

        self.alpha_1 = one(g1, alpha_1, "vk_alpha_1")
        self.beta_2 = one(g2, beta_2, "vk_beta_2")
        self.gamma_2 = one(g2, gamma_2, "vk_gamma_2")
        self.delta_2 = one(g2, delta_2, "vk_delta_2")
        # an infinite IC point would leave its public value unbound: any value would verify
        self.ic = owned_points(g1, ic, "IC", check="subgroup", finite=True, path=path)

    @staticmethod
    def load(src: Any) -> VerifyingKey:
        """Load a verification_key.json as snarkjs writes it, or a ``.vk`` or parameter file of bellman; the bytes tell.

        Parameters
        ----------
        src : path, bytes, buffer, file object, dict or VerifyingKey
            ``vk_alphabeta_12`` may be absent; it is computed, never believed. Of parameters only the beginning is read.

        Raises
        ------
        FormatError
            Malformed, or a point is not what it should be; names the field.
        OSError
            The path cannot be read.
        """
        if isinstance(src, VerifyingKey):
            return src
        if isinstance(src, (dict, list, tuple, io.TextIOBase)):
            record, path = read_verifying_key(src)
        else:
            with Source.open(src, "verification key") as source:
                if looks_like_bellman(source):
                    record, path = read_bellman_vk(source), source.name
                else:
                    record, path = read_verifying_key(source)
        return VerifyingKey(**vars(record), path=path)

    @property
    def n_public(self) -> int:
        """Number of public values, the constant one not counted."""
        return len(self.ic) - 1

    @property
    def is_insecure(self) -> bool:
        """Whether delta_2 = gamma_2: the set-up had no second phase, and anyone can forge proofs for this key."""
        return bool(np.array_equal(self.delta_2, self.gamma_2))

    @cached_property
    def prepared(self) -> PreparedKey:
        """What does not change from proof to proof."""
        return PreparedKey(self.curve, self.alpha_1, self.beta_2, self.gamma_2, self.delta_2)

    def to_json(self) -> str:
        """The text of a verification_key.json, character for character as snarkjs lays it out."""
        record = VerifyingKeyRecord(
            self.curve, self.alpha_1, self.beta_2, self.gamma_2, self.delta_2, self.ic
        )
        return verifying_key_json(record, self.prepared.alpha_beta())

    def save(self, dst: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write `to_json` to a path, which is replaced at once or not at all, or to a binary file object."""
        with replacing(dst) as file:
            file.write(self.to_json().encode())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, VerifyingKey):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        arrays = self.alpha_1, self.beta_2, self.gamma_2, self.delta_2, self.ic
        return self.curve.name, *(a.tobytes() for a in arrays)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "prepared"}

    def __repr__(self) -> str:
        return f"<VerifyingKey {self.curve.name}, {self.n_public} public>"
