"""JSON from outside: decoded, in short steps where it is large, its values counted, and narrowed without trust.

A C function holds the interpreter's lock until it returns: a decoder that reads 30 MB in one call holds up every other
thread for as long as that takes. Here no call into C reads more than a window, so that a thread which decodes can be
interrupted between two of them. It costs more in all, and is for large bodies only (`decode` is for the others).
"""

from __future__ import annotations

import codecs
import json
import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

from smart_model_router.domain.body_encoding import LARGE_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


# One decoder for all: json.loads with any option builds a new one each time. NaN and Infinity are refused
# here because nothing downstream could write them out again.
_decoder = json.JSONDecoder(parse_constant=_refuse)
decode_text = _decoder.decode
"""The JSON value in a text. Raises ValueError and RecursionError."""
# What `decode` does between two looks for spaces. Public, though its types do not say so.
scan: Callable[[str, int], tuple[object, int]] = _decoder.scan_once  # type: ignore[attr-defined]
"""The JSON value that begins at a place of a text, and its end. Raises as `decode_text`, and StopIteration."""
scan_string: Callable[[str, int, bool], tuple[str, int]] = _decoder.parse_string  # type: ignore[attr-defined]
"""The same of a string behind its first quote; True: control characters are refused."""


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Return whether a decoded JSON value is a list."""
    return isinstance(value, list)


def decode(data: bytes) -> object:
    """The JSON value in `data`, whatever its shape; None when it is not JSON, however it is broken."""
    try:
        text = data.decode()
        if text[:1] == "{":
            value, end = scan(text, 0)
            if end == len(text):
                return value
        value = decode_text(text)
    # Wrong UTF-8 and over-long integers are ValueErrors too; `scan` ends by StopIteration where text is missing.
    except (ValueError, RecursionError, StopIteration):
        return None
    return value


def decode_object(data: bytes) -> dict[str, Any] | None:
    """The JSON object in `data`; None when it is anything else."""
    value = decode(data)
    return value if is_object(value) else None


def mapping(value: object) -> Mapping[str, Any]:
    """`value` when it is an object, else an empty one."""
    return value if is_object(value) else {}


def items(value: object) -> list[Any]:
    """`value` when it is a list, else an empty one."""
    return value if is_list(value) else []


def text(value: object) -> str:
    """`value` when it is a string, else an empty one."""
    return value if isinstance(value, str) else ""


def count(value: object) -> int | None:
    """`value` when it is a whole number >= 0, else None."""
    return value if type(value) is int and value >= 0 else None  # a bool is an int, but not of its very type


def given(body: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are set; null means the same as absent in every dialect."""
    return {key: value for key, value in body.items() if value is not None}


ESCAPED = "backslashreplace"
"""The error handler for half a surrogate, which JSON may hold and UTF-8 may not."""
dumps = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
"""JSON as the dialects write it."""

WINDOW = 65_536
"""Characters that one call may read."""
_DECODED_BYTES = 1_048_576
_DEEPEST = 100
"""Containers that are larger than a window, one in the other. In a window the interpreter's own limit holds."""
_SPACE = re.compile(r"[ \t\n\r]{0,65536}")
_ENCLOSED = ('"', "{", "[")
_TAIL = 2
"""Characters (`.`, `e+`) that may stand between the end of a number and the edge of the window that cuts it."""
_HIGH_SURROGATE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}")
_UNKNOWN = object()


class _MalformedError(ValueError):
    """The text is not JSON."""


def decode_any(data: bytes) -> object:
    """The JSON value in `data`, however long it is; None when it is not JSON."""
    return decode_large(data) if len(data) > LARGE_BYTES else decode(data)


def decode_large(data: bytes) -> object:
    """As `decode`: the JSON value in `data`, None when it is not JSON."""
    try:
        reader = codecs.getincrementaldecoder("utf-8")()
        steps = range(0, len(data), _DECODED_BYTES)
        text = "".join([reader.decode(data[at : at + _DECODED_BYTES]) for at in steps])
        reader.decode(b"", final=True)
        return _Reader(text).whole()
    # As in `decode`; numbers that are too long are ValueErrors too.
    except (ValueError, RecursionError):
        return None


class _Reader:
    """Reads one text. `_at` is where it goes on, `_window` the text from `_base` on that calls into C are given."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._base = 0
        self._window = text[:WINDOW]
        self._open: list[tuple[Any, str | None]] = []
        """The containers that are being filled, each with the key it stands under in the one before."""

    def whole(self) -> object:
        """The one value of the text. Raises ValueError and RecursionError."""
        self._skip()
        key: str | None = None
        value = self._value(key)
        while self._open:
            into, own = self._open[-1]
            opened = value is into
            if not opened:
                if isinstance(into, dict):
                    into[key] = value
                else:
                    into.append(value)
            if self._ended(into, first=opened):
                self._open.pop()
                value, key = into, own
            else:
                key = self._key() if isinstance(into, dict) else None
                value = self._value(key)
        self._skip()
        if self._at != len(self._text):
            raise _MalformedError
        return value

    def _value(self, key: str | None) -> Any:
        """The value that begins here, or the container that has been opened for it under `key`."""
        found = self._scanned()
        if found is _UNKNOWN and self._base != self._at:
            self._base, self._window = self._at, self._text[self._at : self._at + WINDOW]
            found = self._scanned()
        if found is not _UNKNOWN:
            return found
        first = self._text[self._at : self._at + 1]
        if first == '"':
            return self._long_string()
        if first not in ("{", "[") or len(self._open) >= _DEEPEST:
            raise _MalformedError
        self._at += 1
        opened: Any = {} if first == "{" else []
        self._open.append((opened, key))
        return opened

    def _scanned(self) -> Any:
        """The value, if it ends in the window; a number has to end before its edge, behind which it may go on."""
        window, begin = self._window, self._at - self._base
        try:
            value, end = scan(window, begin)
        except (StopIteration, json.JSONDecodeError):
            return _UNKNOWN
        cut = end + _TAIL >= len(window) and self._base + len(window) < len(self._text)
        if cut and window[begin] not in _ENCLOSED:
            return _UNKNOWN
        self._at = self._base + end
        return value

    def _ended(self, into: Any, *, first: bool) -> bool:
        """Return whether the container ends here; else its next member begins here."""
        self._skip()
        sign = self._text[self._at : self._at + 1]
        if sign == ("}" if isinstance(into, dict) else "]"):
            self._at += 1
            return True
        if not first:
            if sign != ",":
                raise _MalformedError
            self._at += 1
            self._skip()
        return False

    def _key(self) -> str:
        if self._text[self._at : self._at + 1] != '"':
            raise _MalformedError
        key = self._value(None)
        self._skip()
        if self._text[self._at : self._at + 1] != ":":
            raise _MalformedError
        self._at += 1
        self._skip()
        return str(key)

    def _long_string(self) -> str:
        """A string that is longer than a window."""
        self._at += 1
        pieces: list[str] = []
        while self._at < len(self._text):
            piece = _whole_escapes(self._text[self._at : self._at + WINDOW])
            decoded, end = scan_string(f'{piece}"', 0, True)
            pieces.append(decoded)
            self._at += min(end, len(piece))
            if end <= len(piece):
                return "".join(pieces)
        raise _MalformedError

    def _skip(self) -> None:
        text, at = self._text, self._at
        if text[at : at + 1] not in (" ", "\n", "\t", "\r"):
            return
        while (found := _SPACE.match(text, self._at)) is not None and found.end() > self._at:
            self._at = found.end()


def _whole_escapes(piece: str) -> str:
    """A piece of a string without what is cut at its end: an escape, or the first of two surrogates."""
    begin = piece.rfind("\\", len(piece) - 6)
    if begin >= 0 and _is_escape(piece, begin):
        length = 6 if piece[begin + 1 : begin + 2] == "u" else 2
        if begin + length > len(piece):
            piece = piece[:begin]
    if _HIGH_SURROGATE.fullmatch(piece[-6:]) and _is_escape(piece, len(piece) - 6):
        piece = piece[:-6]
    return piece


def _is_escape(piece: str, at: int) -> bool:
    """Return whether the backslash at `at` begins an escape, and is not escaped itself."""
    before = piece[:at]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 0


_SLICE_BYTES = 65_536
"""So much is counted in one go: about a millisecond at worst."""


class ElementCount:
    """Counts commas and opening brackets outside of strings: no JSON text has more values than their number and one.

    Counting every comma and bracket is quick, and enough while there are few of them. Beyond `most` of them the
    strings are taken out, which costs more: `settle` does it, a slice at a time.
    """

    __slots__ = ("_inside", "_kept", "_pending", "_quick", "exact", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.exact = 1
        self._quick = 0
        """Commas and brackets of the pieces that wait for an exact count, in strings or not."""
        self._pending: list[bytes] = []
        self._inside = False
        self._kept = b""
        """A backslash at the end of a slice: what it escapes is in the next one."""

    def add(self, piece: bytes) -> bool:
        """Count another piece. True when `settle` has to say whether there are too many by now."""
        self._pending.append(piece)
        self._quick += _structural(piece)
        return self.exact + self._quick > self.most

    def settle(self) -> bool:
        """Count one more slice exactly. True when another call is needed to know whether there are too many."""
        if self.exact > self.most or not self._pending:
            return False
        piece = self._pending[0]
        piece, rest = piece[:_SLICE_BYTES], piece[_SLICE_BYTES:]
        self._pending[:1] = [rest] if rest else []
        self._quick -= _structural(piece)
        self.exact += self._outside(piece)
        return bool(self._pending) and self.exact <= self.most < self.exact + self._quick

    def _outside(self, piece: bytes) -> int:
        """Commas and brackets of a piece that are in no string; which piece that ends in is kept for the next."""
        piece = self._kept + piece
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece, self._kept = piece[:-1], b"\\"
        else:
            self._kept = b""
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        found = _structural(b"".join(islice(parts, self._inside, None, 2)))
        self._inside ^= len(parts) % 2 == 0
        return found


def _structural(piece: bytes) -> int:
    return piece.count(b",") + piece.count(b"[") + piece.count(b"{")


def missing_text(told: str, whole: str) -> str | None:
    """The end of `whole` that the deltas did not tell; None when they told another text.

    Some servers strip spaces from a snapshot, or leave it empty: one that is shorter than its deltas adds nothing.
    """
    if whole.startswith(told):
        return whole[len(told) :]
    if told.strip().startswith(whole.strip()):
        return ""
    begun, rest = told.lstrip(), whole.lstrip()
    return rest[len(begun) :] if rest.startswith(begun) else None


def missing_arguments(told: str, whole: str) -> str | None:
    """The same of a call's arguments, which may be written with other spaces."""
    rest = missing_text(told, whole)
    if (rest is None or rest) and told.strip() and is_same_json(told, whole):
        return ""
    return rest


def is_same_json(one: str, other: object) -> bool:
    """Return whether a text is JSON of a value, given as itself or as another text."""
    try:
        return bool(decode_text(one) == (decode_text(other) if isinstance(other, str) else other))
    except (ValueError, RecursionError):
        return False
