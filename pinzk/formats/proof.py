# SPDX-License-Identifier: Apache-2.0
"""proof.json, public.json and verification_key.json as snarkjs writes them, and Solidity calldata.

Numbers are decimal strings (whole JSON numbers are read too), in canonical form. A point of G1 is ``[x, y, "1"]``, one of G2
``[[x0, x1], [y0, y1], ["1", "0"]]``; infinity is ``["0", "1", "0"]`` and ``[["0", "0"], ["1", "0"], ["0", "0"]]``. Readers
check types, counts and ranges; whether points lie on their curves is for those who use them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..curves import BN254, Curve, Field, Group, Point, Words
from ..errors import FormatError
from .json_text import decimal, read_json, shown

_MAX_LIST = 1 << 25  # public.json and verification_key.json grow with the number of public values
_PROTOCOL = "groth16"


@dataclass(frozen=True, eq=False)
class ProofRecord:
    """A proof: `a` and `c` of shape (1, curve.g1.limbs), `b` of shape (1, curve.g2.limbs)."""

    curve: Curve
    a: Words
    b: Words
    c: Words


@dataclass(frozen=True, eq=False)
class VerifyingKeyRecord:
    """A verification key: points of shape (1, limbs), `ic` of shape (n_public + 1, curve.g1.limbs)."""

    curve: Curve
    alpha_1: Words
    beta_2: Words
    gamma_2: Words
    delta_2: Words
    ic: Words


# ---- proof.json ----


def proof_of_json(document: Any, path: str | None, *, curve: Curve | None = None) -> ProofRecord:
    """The proof in a document.

    Parameters
    ----------
    document : object
        As parsed.
    path : str or None
        For messages.
    curve : Curve, optional
        The curve of a document that names none, as rapidsnark writes it; BN254, rapidsnark's only one, if not given.

    Raises
    ------
    FormatError
        Malformed; names the field.
    """
    fields = _Fields(document, path, "proof")
    fields.protocol()
    curve = fields.curve(curve or BN254)
    return ProofRecord(
        curve, fields.point("pi_a", curve.g1), fields.point("pi_b", curve.g2), fields.point("pi_c", curve.g1)
    )


def proof_json(proof: ProofRecord) -> str:
    """The text of a proof.json, as snarkjs lays it out."""
    curve = proof.curve
    return _text(
        {
            "pi_a": _point_json(curve.g1, proof.a),
            "pi_b": _point_json(curve.g2, proof.b),
            "pi_c": _point_json(curve.g1, proof.c),
            "protocol": _PROTOCOL,
            "curve": curve.snarkjs_name,
        }
    )


def calldata(proof: ProofRecord, public: Sequence[int]) -> str:
    """Arguments of ``verifyProof`` of a Solidity verifier: 256-bit hex words, each pair of `b` as (c1, c0).

    Raises
    ------
    FormatError
        The proof is not on BN254: coordinates of other curves do not fit 256 bits.
    """
    curve = proof.curve
    if curve != BN254:
        raise FormatError(
            f"calldata is made for bn254 alone: a coordinate of {curve.name} does not fit 256 bits; use the proof's bytes"
        )

    def words(values: Sequence[int], separator: str) -> str:
        return "[" + separator.join(f'"0x{v:064x}"' for v in values) + "]"

    (ax, ay), (cx, cy) = (curve.fp.decode(p) for p in (proof.a, proof.c))
    x0, x1, y0, y1 = curve.fp.decode(proof.b)
    b = f"[{words((x1, x0), ', ')},{words((y1, y0), ', ')}]"
    return f"{words((ax, ay), ', ')},{b},{words((cx, cy), ', ')},{words(public, ',')}"


# ---- public.json ----


def read_public(src: Any, curve: Curve) -> list[int]:
    """Read the public values: a list of decimal strings or whole numbers, each below r.

    Parameters
    ----------
    src : path, bytes, buffer, file object, list or tuple
    curve : Curve

    Raises
    ------
    FormatError
        Malformed; names the index.
    """
    document, path = read_json(src, "public", limit=_MAX_LIST)
    if not isinstance(document, (list, tuple)):
        raise FormatError(f"public values are a list, not {shown(document)}", path=path)
    out = []
    for i, value in enumerate(document):
        try:
            out.append(decimal(value, curve.fr.modulus, f"r of {curve.name}"))
        except FormatError as error:
            raise FormatError(f"public value {i}: {error.reason}", path=path, index=i) from None
    return out


def public_json(values: Sequence[int]) -> str:
    """The text of a public.json."""
    return _text([str(v) for v in values])


# ---- verification_key.json ----


def read_verifying_key(src: Any) -> tuple[VerifyingKeyRecord, str | None]:
    """Read a verification key, and the name of its document for messages.

    ``vk_alphabeta_12``, which follows from the rest, may be absent and is not read.

    Parameters
    ----------
    src : path, bytes, buffer, file object or dict

    Raises
    ------
    FormatError
        Malformed; names the field.
    """
    document, path = read_json(src, "verification key", limit=_MAX_LIST)
    fields = _Fields(document, path, "verification key")
    fields.protocol()
    curve = fields.curve(None)
    g2 = {name: fields.point(f"vk_{name}", curve.g2) for name in ("beta_2", "gamma_2", "delta_2")}
    alpha_1 = fields.point("vk_alpha_1", curve.g1)
    n_public, ic = fields.get("nPublic"), fields.get("IC")
    if isinstance(n_public, bool) or not isinstance(n_public, int) or n_public < 0:
        raise fields.error("nPublic", f"{shown(n_public)} is not a count")
    if not isinstance(ic, (list, tuple)) or len(ic) != n_public + 1:
        raise fields.error("IC", f"must be a list of nPublic + 1 = {n_public + 1} points, is {shown(ic)}")
    points = [fields.parse_point(p, "IC", curve.g1, index=i) for i, p in enumerate(ic)]
    return VerifyingKeyRecord(curve, alpha_1, **g2, ic=curve.g1.encode(points)), path


def verifying_key_json(vk: VerifyingKeyRecord, alpha_beta: Words) -> str:
    """The text of a verification_key.json.

    Parameters
    ----------
    vk : VerifyingKeyRecord
    alpha_beta : ndarray of uint64, shape (12, limbs)
        e(alpha, beta) as `pinzk._core.pairing` has it, which is also how snarkjs writes it.
    """
    curve = vk.curve
    c = [str(v) for v in curve.fp.decode(alpha_beta)]
    return _text(
        {
            "protocol": _PROTOCOL,
            "curve": curve.snarkjs_name,
            "nPublic": len(vk.ic) - 1,
            "vk_alpha_1": _point_json(curve.g1, vk.alpha_1),
            "vk_beta_2": _point_json(curve.g2, vk.beta_2),
            "vk_gamma_2": _point_json(curve.g2, vk.gamma_2),
            "vk_delta_2": _point_json(curve.g2, vk.delta_2),
            "vk_alphabeta_12": [[c[i : i + 2] for i in range(half, half + 6, 2)] for half in (0, 6)],
            "IC": [_point_json(curve.g1, p) for p in vk.ic],
        }
    )


# ---- documents and points ----


class _Fields:
    """The fields of a JSON object, read with errors that name them."""

    def __init__(self, document: Any, path: str | None, kind: str) -> None:
        if not isinstance(document, dict):
            raise FormatError(f"a {kind} is a JSON object, not {shown(document)}", path=path)
        self.document, self.path, self.kind = document, path, kind

    def error(self, field: str, reason: str, index: int | None = None) -> FormatError:
        return FormatError(reason, path=self.path, section=field, index=index)

    def get(self, field: str) -> Any:
        if field not in self.document:
            raise self.error(field, f"the {self.kind} has no such field")
        return self.document[field]

    def protocol(self) -> None:
        name = self.document.get("protocol", _PROTOCOL)
        if name != _PROTOCOL:
            raise self.error("protocol", f"{shown(name)} is not groth16")

    def curve(self, default: Curve | None) -> Curve:
        if default is not None and "curve" not in self.document:
            return default
        name = self.get("curve")
        try:
            return Curve.named(name)
        except ValueError:
            raise self.error("curve", f"unknown curve {shown(name)}: use bn128 or bls12381") from None

    def point(self, field: str, group: Group) -> Words:
        return group.encode([self.parse_point(self.get(field), field, group)])

    def parse_point(self, value: Any, field: str, group: Group, index: int | None = None) -> Point:
        at = "" if index is None else f"point {index}: "
        try:
            return _parse_point(value, group)
        except FormatError as error:
            raise self.error(field, at + error.reason, index) from None


def _parse_point(value: Any, group: Group) -> Point:
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise FormatError(f"a point is a list of three coordinates, not {shown(value)}")
    x, y, z = (_coordinate(c, group, name) for c, name in zip(value, "xyz", strict=True))
    zero, one = (0, 1) if group.number == 1 else ((0, 0), (1, 0))
    if z == one:
        return x, y
    if (x, y, z) == (zero, one, zero):
        return None
    raise FormatError(
        'z must be "1": coordinates are affine' if group.number == 1 else 'z must be ["1", "0"]'
    )


def _coordinate(value: Any, group: Group, name: str) -> Any:
    field: Field = group.base
    bound = f"q of {group.curve_name}"
    try:
        if group.number == 1:
            return decimal(value, field.modulus, bound)
        if not isinstance(value, (list, tuple)) or len(value) != 2:
            raise FormatError(f"a coordinate is a pair, not {shown(value)}")
        return tuple(decimal(v, field.modulus, bound) for v in value)
    except FormatError as error:
        raise FormatError(f"coordinate {name}: {error.reason}") from None


def _point_json(group: Group, row: Words) -> list[Any]:
    (point,) = group.decode(row)
    if group.number == 1:
        return ["0", "1", "0"] if point is None else [str(point[0]), str(point[1]), "1"]
    x, y, z = ((0, 0), (1, 0), (0, 0)) if point is None else (*point, (1, 0))
    return [[str(v) for v in c] for c in (x, y, z)]


def _text(document: Any) -> str:
    return json.dumps(document, indent=1)
