"""Strict reading of the output of workflow steps: numbers and booleans often arrive as text, which is always true."""

from __future__ import annotations

import re
from collections.abc import Sized

from smart_model_router_scoring.options import is_number

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_FLAGS = {"true": True, "false": False}


def as_number(value: object) -> float | None:
    """A finite number, or text that is one in decimal notation ("0.80"); None for everything else, a bool included."""
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    return float(value) if is_number(value) else None


def as_flag(value: object) -> bool | None:
    """A bool, or the text "true" or "false" in any case; None for everything else."""
    return value if isinstance(value, bool) else _FLAGS.get(value.strip().lower()) if isinstance(value, str) else None


def as_count(value: object) -> int | None:
    """A whole number from 0 up ("12.0" is 12), the number of items of a collection, a flag as 0 or 1; else None."""
    if not isinstance(value, str) and isinstance(value, Sized):
        return len(value)
    flag = as_flag(value)
    if flag is not None:
        return int(flag)
    number = as_number(value)
    return int(number) if number is not None and number >= 0 and number.is_integer() else None
