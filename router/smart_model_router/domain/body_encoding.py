"""A body's bytes around its model's name, as they came or written anew; JSON of many megabytes in short steps."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from smart_model_router.domain.errors import InvalidRequest

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


def around_model(
    body: Mapping[str, Any], written: bytes, *, stream: bool, ask_usage: bool, large: bool = False
) -> tuple[bytes, bytes]:
    """The body as JSON, before and after its model's name. Raises InvalidRequest for what JSON has no word for.

    `written` is the very text the body was read from (b"" where there is none): where nothing but the name is to be
    changed it goes out as it came. `stream` says whether it is to be one, `ask_usage` whether that has to be asked
    what it cost (Chat tells only then). One that is `large` is written in short steps.
    """
    return _as_it_came(body, written, stream, ask_usage) or _written_anew(body, stream, ask_usage, large)


@lru_cache(maxsize=1024)
def model_name(model: str) -> bytes:
    """A model's name as JSON."""
    return json.dumps(model).encode()


def _written_anew(body: Mapping[str, Any], stream: bool, ask_usage: bool, large: bool) -> tuple[bytes, bytes]:
    rest = {key: value for key, value in body.items() if key != "model"}
    if stream:
        rest["stream"] = True
        if ask_usage:
            options = rest.get("stream_options")
            rest["stream_options"] = {**(options if isinstance(options, Mapping) else {}), "include_usage": True}
    else:
        rest.pop("stream", None)
        rest.pop("stream_options", None)  # alone it is an error
    encoded = _encode(rest, large)
    return b'{"model":', b"}" if encoded == b"{}" else b"," + encoded[1:]


_KEY = b'"model"'
# The model's name and its value. Inside a JSON string every quote is escaped: bare quotes are never part of a text.
_MODEL = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")')
_ESCAPED = (b"\\u006", b"\\u007")
"""The beginnings of letters of ASCII that are written as escapes."""
_STEP = 1_048_576
"""Bytes that one call searches: another thread waits a millisecond for it."""
_WITH_USAGE = b',"stream_options":{"include_usage":true}}'


def _as_it_came(body: Mapping[str, Any], written: bytes, stream: bool, ask_usage: bool) -> tuple[bytes, bytes] | None:
    """The text cut in two; None where more has to be changed, or where its parts leave any doubt.

    There is none where what matters is written once, and no letter of a name is written as an escape.
    """
    # A text is searched from its end in a third to two thirds of the time that it takes to count in it.
    find, rfind = (bytes.find, bytes.rfind) if len(written) <= LARGE_BYTES else (_find_in_steps, _rfind_in_steps)
    place = find(written, _KEY)
    if place < 0 or rfind(written, _KEY) != place:
        return None
    if rfind(written, b"\\u00") >= 0 and any(rfind(written, one) >= 0 for one in _ESCAPED):
        return None
    found = _MODEL.match(written, place)
    if found is None:
        return None
    if found[1] != model_name(body["model"]) and json.loads(found[1]) != body["model"]:
        return None  # the name as most write it is not read again
    before, after = written[: found.start(1)], written[found.end(1) :]
    if not stream:
        return None if rfind(written, b'"stream') >= 0 else (before, after)
    count = bytes.count if len(written) <= LARGE_BYTES else _count_in_steps
    streams, told = count(written, b'"stream'), count(written, b'"stream_options"')
    if body.get("stream") is not True or streams - told != 1 or told > 1:
        return None
    if not ask_usage:
        return before, after
    if not told:
        return before, after.rstrip()[:-1] + _WITH_USAGE
    options = body.get("stream_options")
    asked = isinstance(options, dict) and options.get("include_usage") is True
    return (before, after) if asked else None


def _count_in_steps(written: bytes, key: bytes) -> int:
    """Count a key in a large text in steps, so that the loop never waits long for this thread."""
    behind = _STEP + len(key) - 1  # a key that begins in one step may end in the next one
    return sum(written.count(key, at, at + behind) for at in range(0, len(written), _STEP))


def _find_in_steps(written: bytes, key: bytes) -> int:
    """The first place of a key, looked for in the same steps; -1 where there is none."""
    behind = _STEP + len(key) - 1
    places = (written.find(key, at, at + behind) for at in range(0, len(written), _STEP))
    return next((place for place in places if place >= 0), -1)


def _rfind_in_steps(written: bytes, key: bytes) -> int:
    """The last place of a key, in the same way."""
    behind = _STEP + len(key) - 1
    places = (written.rfind(key, at, at + behind) for at in reversed(range(0, len(written), _STEP)))
    return next((place for place in places if place >= 0), -1)


def _encode(rest: dict[str, Any], large: bool) -> bytes:
    try:
        return encode_large(rest) if large else encode(rest)
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply to be JSON") from None
    except (TypeError, ValueError) as error:
        where = _unencodable(rest, "body") or "body"
        raise InvalidRequest(f"{_cut(where)}: not JSON ({_cut(str(error))})") from None


def _cut(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


def _unencodable(value: object, path: str) -> str | None:
    """The path of the first value JSON has no word for."""
    if isinstance(value, Mapping):
        pairs = [(f"{path}.{key}", inner) for key, inner in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(f"{path}[{index}]", inner) for index, inner in enumerate(value)]
    elif isinstance(value, float):
        return None if math.isfinite(value) else path
    else:
        return None if value is None or isinstance(value, (str, int)) else path
    try:
        return next((found for p, inner in pairs if (found := _unencodable(inner, p))), None)
    except RecursionError:
        return path
