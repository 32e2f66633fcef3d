"""The answer to bad values: an option is refused with ConfigError, a value of the data is clamped and noted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeGuard


class ConfigError(ValueError):
    """The owner's mistake: which field, its value, and what is allowed. Faults in data never raise; see `notes`."""

    def __init__(self, field: str, value: object, allowed: str) -> None:
        super().__init__(field, value, allowed)
        self.field = field
        self.value = value
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.field}: {self.value!r} - {self.allowed} is needed"


@dataclass(frozen=True, slots=True)
class Note:
    """One fault: a code to count by, what it was found in (an id, a key), and the detail a person needs."""

    code: str
    subject: str = ""
    detail: str = ""


class Notes:
    """Collects notes. Every one is counted; only the first `keep` are kept, so that bad data cannot fill the memory."""

    def __init__(self, keep: int = 100) -> None:
        self._keep = keep
        self._kept: list[Note] = []
        self._counts: dict[str, int] = {}

    def add(self, code: str, subject: object = "", detail: object = "") -> None:
        """Count a fault, and keep it while there is room."""
        self._counts[code] = self._counts.get(code, 0) + 1
        if len(self._kept) < self._keep:
            self._kept.append(Note(code, str(subject), str(detail)))

    @property
    def kept(self) -> tuple[Note, ...]:
        """The first notes, in the order they came."""
        return tuple(self._kept)

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of times each code came, read-only."""
        return MappingProxyType(self._counts)


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


def unit(value: object, subject: str, notes: Notes) -> float:
    """`value` within [0, 1]: 0.0 for what is no finite number, else the nearer end. Both are noted."""
    if not is_number(value):
        notes.add("not_a_number", subject, value)
        return 0.0
    if not 0.0 <= value <= 1.0:
        notes.add("outside_0_to_1", subject, value)
    return min(max(float(value), 0.0), 1.0)
