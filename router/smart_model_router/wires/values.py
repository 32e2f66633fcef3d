"""JSON values from outside, narrowed without trust."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard

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
    """Whether a decoded JSON value is an object."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether a decoded JSON value is a list."""
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
