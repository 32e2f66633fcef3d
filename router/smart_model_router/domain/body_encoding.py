"""A body's bytes around its model's name, which differs from target to target: as they came, or written anew."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.long_json import encode, encode_large


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


# The model's name and its value. Inside a JSON string every quote is escaped: bare quotes are never part of a text.
_MODEL = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")')
# A letter of ASCII.
_ESCAPED = re.compile(rb"\\u00[67]")
_WITH_USAGE = b',"stream_options":{"include_usage":true}}'


def _as_it_came(body: Mapping[str, Any], written: bytes, stream: bool, ask_usage: bool) -> tuple[bytes, bytes] | None:
    """The text cut in two; None where more has to be changed, or where its parts leave any doubt.

    There is none where what matters is written once, and no letter of a name is written as an escape.
    """
    if written.count(b'"model"') != 1 or (b"\\u00" in written and _ESCAPED.search(written)):
        return None
    found = _MODEL.search(written)
    if found is None or json.loads(found[1]) != body["model"]:
        return None
    before, after = written[: found.start(1)], written[found.end(1) :]
    streams = written.count(b'"stream')
    if not stream:
        return None if streams else (before, after)
    told = written.count(b'"stream_options"')
    if body.get("stream") is not True or streams - told != 1 or told > 1:
        return None
    if not ask_usage:
        return before, after
    if not told:
        return before, after.rstrip()[:-1] + _WITH_USAGE
    options = body.get("stream_options")
    asked = isinstance(options, dict) and options.get("include_usage") is True
    return (before, after) if asked else None


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
