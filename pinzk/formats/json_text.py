# SPDX-License-Identifier: Apache-2.0
"""Strict reading of JSON documents: bounded, no duplicate keys, no NaN, and errors that name the document."""

from __future__ import annotations

import io
import json
import re
from operator import index
from typing import Any

import numpy as np

from ..errors import FormatError
from .source import Source

_MAX_DIGITS = 200  # of a number; a coordinate of BLS12-381 has 115
_MAX_DEPTH = 50  # of lists in lists; a verification key has 4
_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_STEP = np.zeros(256, dtype=np.int8)
_STEP[list(b"[{")], _STEP[list(b"]}")] = 1, -1
_DECIMAL = re.compile("0|[1-9][0-9]*")


def read_json(src: Any, kind: str, *, limit: int) -> tuple[Any, str | None]:
    """Read one document.

    Parameters
    ----------
    src : path, bytes, buffer, file object, dict, list or tuple
        Text is UTF-8. What is already a dict, list or tuple is taken as the document.
    kind : str
        What it should be (``"proof"``), for messages.
    limit : int
        Bytes above which a document is refused unread.

    Returns
    -------
    document : object
    name : str or None
        The path, or ``<proof>`` and the like; None for what was an object before.

    Raises
    ------
    FormatError
        Too long, not UTF-8, not JSON, nested too deeply, a key twice.
    """
    if isinstance(src, (dict, list, tuple)):
        return src, None
    data, name = read_bytes(src, kind, limit=limit)
    return parse_json(data, name), name


def read_bytes(src: Any, kind: str, *, limit: int) -> tuple[bytes, str]:
    """All bytes of a short input, and its name for messages; parameters and errors are those of `read_json`."""
    if isinstance(src, io.TextIOBase):
        src = src.read().encode("utf-8", "surrogatepass")
    with Source.open(src, kind) as source:
        if source.size > limit:
            raise FormatError(f"{source.size} bytes are too many for a {kind}", path=source.name)
        return source.read(0, source.size), source.name


def parse_json(data: bytes, name: str) -> Any:
    """The document in these bytes; `name` is for messages."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        document: dict[str, Any] = {}
        for key, value in pairs:
            if key in document:
                raise FormatError(f"the key {shown(key)} appears twice", path=name)
            document[key] = value
        return document

    def integer(text: str) -> int:
        if len(text) > _MAX_DIGITS:
            raise FormatError(f"a number of {len(text)} digits", path=name)
        return int(text)

    def constant(text: str) -> Any:
        raise FormatError(f"{text} is not JSON", path=name)

    if _is_deep(data):
        raise FormatError("nested too deeply", path=name)
    try:
        text = data.decode("utf-8-sig")
        return json.loads(text, object_pairs_hook=unique, parse_int=integer, parse_constant=constant)
    except UnicodeDecodeError as error:
        raise FormatError(f"not UTF-8 text: byte {error.start}", path=name) from None
    except json.JSONDecodeError as error:
        raise FormatError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}", path=name
        ) from None


def _is_deep(data: bytes) -> bool:
    # json recurses on the C stack, and does not stop where the recursion limit was raised, as py_ecc does on import
    depth, brackets = 0, _STEP[np.frombuffer(_STRING.sub(b"", data), dtype=np.uint8)]
    for start in range(0, len(brackets), 1 << 20):
        depths = depth + np.cumsum(brackets[start : start + (1 << 20)], dtype=np.int64)
        if depths.max() > _MAX_DEPTH:
            return True
        depth = int(depths[-1])
    return False


def decimal(value: Any, modulus: int, bound: str) -> int:
    """The int that a JSON value spells: a decimal string or a whole number, in [0, modulus).

    Parameters
    ----------
    value : object
        A str or an int of any kind, bool excepted.
    modulus : int
    bound : str
        Name of the modulus, for messages.

    Raises
    ------
    FormatError
        Neither, negative, or not below the modulus; without a place, which the caller knows.
    """
    try:
        if isinstance(value, bool):
            raise TypeError
        if isinstance(value, str):
            if len(value) > _MAX_DIGITS or not _DECIMAL.fullmatch(value):
                raise TypeError
            value = int(value)
        number = index(value)  # NumPy's ints too, no floats
    except TypeError:
        raise FormatError(f"{shown(value)} is not a decimal whole number") from None
    if number < 0:
        raise FormatError("the value is negative")
    if number >= modulus:
        raise FormatError(f"the value is not below {bound}")
    return number


def shown(value: Any) -> str:
    """A JSON value for a message: short, on one line."""
    if isinstance(value, (dict, list, tuple)):
        return f"a {'dict' if isinstance(value, dict) else 'list'} of {len(value)}"
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 128:
        return "a number of more than 128 bits"
    text = ascii(value[:40] if isinstance(value, str) else value)
    return text if len(text) <= 48 else text[:44] + "..."
