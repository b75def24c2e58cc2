# SPDX-License-Identifier: Apache-2.0
"""Witness: the value of every wire, canonical, checked, never shown."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..curves import Curve, Words
from ..errors import KeyMismatchError, WitnessError
from ..formats.wtns import Wtns, check_values, read_wtns, write_wtns


class Witness:
    """The value of every wire of a circuit. Make one with `Witness.load`; its repr shows no value.

    A witness does not say how many of its values are public: its key does. `for_key` (or ``key=`` at load)
    checks the witness against the key, and from then on `public` is known.

    Parameters
    ----------
    curve : Curve
    values : ndarray of uint64, shape (n, 4), or sequence of int
        Canonical; copied.

    Attributes
    ----------
    curve : Curve
    canonical : ndarray of uint64, shape (n, 4)
        The constant one, public outputs, public inputs, private wires. Canonical, each below r; read-only.
    n_public : int or None
        How many values after the first one are public, once known.
    """

    def __init__(self, curve: Curve, values: Any) -> None:
        self._set(curve, _values(values, curve), None)

    @classmethod
    def _checked(cls, curve: Curve, canonical: Words, n_public: int | None = None) -> Witness:
        # takes the array as it is
        witness = cls.__new__(cls)
        witness._set(curve, canonical, n_public)
        return witness

    def _set(self, curve: Curve, canonical: Words, n_public: int | None) -> None:
        self.curve = curve
        self.canonical = canonical
        self.n_public = n_public
        canonical.flags.writeable = False

    @staticmethod
    def load(src: Any, *, key: Any = None, curve: Curve | str | None = None) -> Witness:
        """Load a witness into memory of its own.

        Parameters
        ----------
        src : path, bytes, buffer, binary file object, ndarray of uint64 of shape (n, 4), sequence of int, or Witness
            Arrays and ints are canonical values; all else is a ``.wtns`` file.
        key : ProvingKey, optional
            What the witness is for; the witness is checked against it.
        curve : Curve or str, optional
            Needed for an array or ints where no ``key`` is given, as these do not tell.

        Raises
        ------
        FormatError
            The file is malformed.
        WitnessError
            witness[0] is not 1, a value is not reduced mod r, or the length is not the key's.
        KeyMismatchError
            The witness is over another field than the key's, or than ``curve`` says.
        """
        wanted = Curve.named(curve) if isinstance(curve, str) else curve
        if wanted is None and key is not None:
            wanted = key.curve
        if isinstance(src, Witness):
            witness = src
        elif _is_values(src):
            if wanted is None:
                raise TypeError("an array or a list of values does not tell its field: give curve= or key=")
            witness = Witness(wanted, src)
        else:
            record = read_wtns(src)
            witness = Witness._checked(record.curve, record.canonical)
        if wanted is not None:
            _same_field(witness.curve, wanted)
        return witness if key is None else witness.for_key(key)

    def for_key(self, key: Any) -> Witness:
        """The same values, checked to fit a key: its field and its number of wires.

        Raises
        ------
        KeyMismatchError
            Another field.
        WitnessError
            Another length.
        """
        _same_field(self.curve, key.curve)
        self.check_length(key.n_vars)
        return Witness._checked(self.curve, self.canonical, key.n_public)

    def check_length(self, n_wires: int) -> None:
        """WitnessError unless there is a value for each of `n_wires` wires."""
        if len(self.canonical) != n_wires:  # the words that users of other provers search for
            raise WitnessError(f"Invalid witness length. Circuit: {n_wires}, witness: {len(self.canonical)}")

    @property
    def public(self) -> list[int]:
        """Public outputs and inputs, in order.

        Raises
        ------
        ValueError
            The witness was not given its key yet.
        """
        if self.n_public is None:
            raise ValueError(
                "how many values are public is for the key to say: use witness.for_key(key).public"
            )
        return self.public_inputs(self.n_public)

    def public_inputs(self, n: int) -> list[int]:
        """The first `n` values after the constant one."""
        if not 0 <= n < len(self.canonical):
            raise ValueError(f"{n} public inputs of a witness of {len(self.canonical)} values")
        return self.curve.fr.decode_canonical(self.canonical[1 : n + 1])

    def save(self, dst: Any) -> None:
        """Write a ``.wtns`` file; a path is replaced at once or not at all."""
        write_wtns(Wtns(self.curve, self.canonical), dst)

    def __len__(self) -> int:
        return len(self.canonical)

    def __repr__(self) -> str:
        return f"<Witness {self.curve.name}, {len(self.canonical)} values>"


def _same_field(found: Curve, wanted: Curve) -> None:
    if found is not wanted:
        raise KeyMismatchError(
            f"the witness is over the scalar field of {found.name}, the proving key over that of {wanted.name}"
        )


def _is_values(src: Any) -> bool:
    if isinstance(src, np.ndarray):
        return src.ndim != 1 or src.dtype != np.uint8  # a row of bytes is a file
    return isinstance(src, (list, tuple))


def _values(src: Any, curve: Curve) -> Words:
    if isinstance(src, np.ndarray) and src.dtype != object:
        if src.dtype != np.uint64 or src.ndim != 2 or src.shape[1] != 4:
            raise TypeError(
                f"a witness array is uint64 of shape (n, 4), not {src.dtype} of shape {src.shape}"
            )
        canonical = np.array(src, order="C")
    else:
        ints = [operator.index(v) for v in src]
        for i, v in enumerate(ints):
            if not 0 <= v < curve.fr.modulus:
                raise WitnessError(f"witness[{i}] is not reduced mod r of {curve.name}", index=i)
        canonical = curve.fr.encode_canonical(ints)
    check_values(curve, canonical, "<witness>")
    return canonical
