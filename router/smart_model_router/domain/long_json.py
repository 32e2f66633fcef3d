"""JSON of many megabytes, written in short steps.

A C function holds the interpreter's lock until it returns. Here none is given more than a piece, so that a thread which
writes a large body can be interrupted between two of them. It costs more in all, and is for large bodies only.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

LARGE_BYTES = 262_144
"""Bodies that are longer are read, translated and written in steps and off the loop: in one go it would take long."""
PIECE = 65_536
"""Characters that one call may write."""
_MEMBERS = 64
_SHORT = 1024
"""A container of so few members, each of them so short, is written in one call."""
_SCALARS = (int, float, bool, type(None))
_DEEP = 6
"""Levels of a prompt in which long texts are looked for."""

# One encoder for all: json.dumps with any option builds a new one each time.
encode_text: Callable[[object], str] = json.JSONEncoder(
    allow_nan=False, ensure_ascii=False, separators=(",", ":")
).encode


def encode(value: object) -> bytes:
    """A JSON value; a lone surrogate, which UTF-8 has no bytes for, as an escape. Raises as json.dumps."""
    try:
        return encode_text(value).encode()
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def encode_large(value: object) -> bytes:
    """As `encode`, in steps."""
    pieces: list[bytes] = []
    _write(value, pieces.append)
    return b"".join(pieces)


def _write(value: object, put: Callable[[bytes], None]) -> None:
    if isinstance(value, str) and len(value) > PIECE:
        put(b'"')
        for at in range(0, len(value), PIECE):
            put(encode(value[at : at + PIECE])[1:-1])
        put(b'"')
    elif isinstance(value, dict) and not _is_short(value, value.values()):
        separator = b"{"
        for key, inner in value.items():
            put(separator + encode({key: None})[1:-5])
            _write(inner, put)
            separator = b","
        put(b"}")
    elif isinstance(value, (list, tuple)) and not _is_short(value, value):
        separator = b"["
        for inner in value:
            put(separator)
            _write(inner, put)
            separator = b","
        put(b"]")
    else:
        put(encode(value))


def _is_short(container: Any, members: Any) -> bool:
    return len(container) <= _MEMBERS and all(
        isinstance(member, _SCALARS) or (isinstance(member, str) and len(member) <= _SHORT) for member in members
    )


def condensed(value: object, depth: int = _DEEP) -> object:
    """A prompt with a digest in place of each long text: to tell it from others without writing it out."""
    if isinstance(value, str):
        return value if len(value) <= PIECE else _digest(value)
    if depth and isinstance(value, dict):
        return {key: condensed(inner, depth - 1) for key, inner in value.items()}
    if depth and isinstance(value, list):
        return [condensed(inner, depth - 1) for inner in value]
    if depth and isinstance(value, tuple):
        return tuple(condensed(inner, depth - 1) for inner in value)
    return value


def _digest(text: str) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for at in range(0, len(text), PIECE):
        digest.update(text[at : at + PIECE].encode("utf-8", "surrogatepass"))
    return digest.digest()
