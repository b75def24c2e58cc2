# SPDX-License-Identifier: Apache-2.0
"""Proof: three points, and the forms in which they are kept and sent."""

from __future__ import annotations

import os
from typing import IO, Any

from ..curves import Curve, Words
from ..formats import proof as json_form
from ..formats.json_text import parse_json, read_bytes
from ..formats.output import replacing
from ..formats.proof_bytes import CURVE_OF_SIZE, proof_bytes, proof_of_bytes
from .points import owned_points

_MAX_BYTES = 1 << 20


class Proof:
    """A Groth16 proof. Immutable; it may or may not be valid, `verify` tells.

    Groth16 proofs are malleable: from a valid proof anyone makes others for the same public values. Never use a proof as
    an identity.

    Parameters
    ----------
    curve : Curve
    a, c : ndarray of uint64, shape (1, curve.g1.limbs)
    b : ndarray of uint64, shape (1, curve.g2.limbs)
        Affine rows, Montgomery form, infinity all zeros.

    Raises
    ------
    FormatError
        A coordinate is not below q.
    """

    def __init__(self, curve: Curve, a: Words, b: Words, c: Words) -> None:
        self.curve = curve
        self.a = owned_points(curve.g1, a, "pi_a", count=1, check="range")
        self.b = owned_points(curve.g2, b, "pi_b", count=1, check="range")
        self.c = owned_points(curve.g1, c, "pi_c", count=1, check="range")

    @staticmethod
    def load(src: Any, *, curve: Curve | None = None) -> Proof:
        """Load a proof.

        Parameters
        ----------
        src : path, bytes, buffer, file object, dict or Proof
            JSON as snarkjs and rapidsnark write it, or the compressed bytes of `to_bytes`.
        curve : Curve, optional
            The curve of JSON that names none, as rapidsnark writes it; BN254, rapidsnark's only one, if not given.

        Raises
        ------
        FormatError
            Malformed; names the field.
        OSError
            The path cannot be read.
        """
        if isinstance(src, Proof):
            return src
        name: str | None = None
        if not isinstance(src, (dict, list, tuple)):
            src, name = read_bytes(src, "proof", limit=_MAX_BYTES)
            if len(src) in CURVE_OF_SIZE and not (src.isascii() and src.lstrip().startswith(b"{")):
                return _of(proof_of_bytes(src, name))
            src = parse_json(src, name)
        return _of(json_form.proof_of_json(src, name, curve=curve))

    def to_json(self) -> str:
        """The text of a proof.json, character for character as snarkjs lays it out."""
        return json_form.proof_json(self._record())

    def save(self, dst: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write `to_json` to a path, which is replaced at once or not at all, or to a binary file object."""
        with replacing(dst) as file:
            file.write(self.to_json().encode())

    def to_bytes(self) -> bytes:
        """The compressed encoding.

        BLS12-381: 192 bytes, as Zcash and bellman write it. BN254: 128 bytes, as arkworks does (``CanonicalSerialize``,
        compressed). `pinzk.formats.proof_bytes` describes both.
        """
        return proof_bytes(self._record())

    @staticmethod
    def from_bytes(data: bytes) -> Proof:
        """The inverse of `to_bytes`; the length tells the curve.

        Raises
        ------
        FormatError
            No such encoding: length, flags, a coordinate out of range or on no point.
        """
        return _of(proof_of_bytes(bytes(data)))

    def calldata(self, public: Any) -> str:
        """Arguments for the ``verifyProof`` function of a Solidity verifier; BN254 alone.

        Parameters
        ----------
        public : path, bytes, file object, or list of int or str

        Returns
        -------
        str
            What ``snarkjs zkey export soliditycalldata`` prints. Solidity's order in Fp2 is (c1, c0).

        Raises
        ------
        FormatError
            The curve is another one, or the public values are malformed.
        """
        return json_form.calldata(self._record(), json_form.read_public(public, self.curve))

    def _record(self) -> json_form.ProofRecord:
        return json_form.ProofRecord(self.curve, self.a, self.b, self.c)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Proof):
            return NotImplemented
        return self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return self.curve.name, self.a.tobytes(), self.b.tobytes(), self.c.tobytes()

    def __repr__(self) -> str:
        return f"<Proof {self.curve.name}>"


def _of(record: json_form.ProofRecord) -> Proof:
    return Proof(record.curve, record.a, record.b, record.c)
