"""Checks that a frozen configuration makes of its own fields. Each raises ConfigError and returns nothing."""

from __future__ import annotations

import math
from typing import TypeGuard

from smart_model_router_scoring.errors import ConfigError


def is_number(value: object) -> TypeGuard[float]:
    """True when `value` is a finite int or float; False for a bool, although Python counts it as an int."""
    if type(value) is float:  # nearly always, and it is asked of every score
        return math.isfinite(value)
    return isinstance(value, int | float) and not isinstance(value, bool) and _is_finite(value)


def check_number(field: str, value: object, low: float, high: float = math.inf) -> None:
    """Refuse what is not a finite number of [low, high]."""
    if not is_number(value) or not low <= value <= high:
        raise ConfigError(field, value, f"a number {_interval(low, high)}")


def check_positive(field: str, value: object) -> None:
    """Refuse what is not a finite number above 0."""
    if not is_number(value) or value <= 0:
        raise ConfigError(field, value, "a number above 0")


def check_count(field: str, value: object, low: int, high: float = math.inf) -> None:
    """Refuse what is not a whole number of [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ConfigError(field, value, f"a whole number {_interval(low, high)}")


def check_choice(field: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is not one of `choices`."""
    if value not in choices:
        raise ConfigError(field, value, f"one of {', '.join(choices)}")


def _is_finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an int too large for a float
        return False


def _interval(low: float, high: float) -> str:
    return f"of at least {low}" if high == math.inf else f"from {low} to {high}"
