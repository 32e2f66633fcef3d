"""Frozen options that refuse nonsense at construction: key, value and range from one annotation."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from smart_model_router.domain.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Unit:
    """The spelling of a number in a file: `15s` (seconds), `50%` (ratio), `400k` (count)."""

    name: Literal["seconds", "ratio", "count"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The range of a number: above `gt` or at least `ge`, and at most `le`. None is no bound.

    To pydantic it is what annotated-types calls an interval. That module is imported only when pydantic asks:
    it would be a tenth of what importing the router costs.
    """

    gt: float | None = None
    ge: float | None = None
    le: float | None = None
    __is_annotated_types_grouped_metadata__: ClassVar[Literal[True]] = True

    def __iter__(self) -> Iterator[object]:
        import annotated_types  # noqa: PLC0415 - see above

        yield from annotated_types.Interval(gt=self.gt, ge=self.ge, le=self.le)


DAY = 86_400.0

Seconds = Annotated[float, Unit("seconds"), Interval(gt=0, le=DAY)]
"""A duration above 0, at most a day."""
SecondsOrZero = Annotated[float, Unit("seconds"), Interval(ge=0, le=DAY)]
Ratio = Annotated[float, Unit("ratio"), Interval(gt=0, le=1)]
FailingShare = Annotated[float, Unit("ratio"), Interval(gt=0.05, le=1)]
"""A share of failing calls that a sequential test looks for: above the least share a target is taken to have."""
Count = Annotated[int, Unit("count"), Interval(ge=1, le=1_000_000_000)]
CountOrZero = Annotated[int, Unit("count"), Interval(ge=0, le=1_000_000_000)]


class Options:
    """Base of the frozen option classes: every annotated range is checked when one is made."""

    __slots__ = ()

    def __post_init__(self) -> None:
        for name, interval, whole, optional in _intervals(type(self)):
            value = getattr(self, name)
            if value is not None or not optional:
                _check(type(self), name, value, interval, whole)


def _check(kind: type, name: str, value: Any, interval: Interval, whole: bool) -> None:
    kinds = int if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not within(value, interval):
        wanted = f"{'a whole number' if whole else 'a number'} {spell(interval)} is needed"
        raise ConfigurationError(f"{kind.__name__}.{name}", value, wanted)


def within(value: float, interval: Interval) -> bool:
    """True when `value` lies in the interval; a value that is not finite lies in none."""
    if not -math.inf < value < math.inf:  # isfinite() refuses to look at a very large int
        return False
    low = interval.gt if interval.gt is not None else interval.ge
    low_ok = low is None or value > low or (interval.gt is None and value == low)
    return low_ok and (interval.le is None or value <= interval.le)


def spell(interval: Interval) -> str:
    """The interval in words: `above 0, at most 1`."""
    parts = []
    if interval.gt is not None:
        parts.append(f"above {interval.gt:g}")
    if interval.ge is not None:
        parts.append(f"at least {interval.ge:g}")
    if interval.le is not None:
        parts.append(f"at most {interval.le:g}")
    return ", ".join(parts)


_KNOWN: dict[type, tuple[tuple[str, Interval, bool, bool], ...]] = {}


def _intervals(kind: type) -> tuple[tuple[str, Interval, bool, bool], ...]:
    """Each annotated option: its name, its range, whether it is a whole number, whether None is allowed."""
    if kind in _KNOWN:
        return _KNOWN[kind]
    found = []
    for name, hint in get_type_hints(kind, include_extras=True).items():
        optional = NoneType in get_args(hint)
        for part in get_args(hint) if optional else (hint,):  # members of lists and mappings: pydantic checks them
            if get_origin(part) is Annotated:
                base, *metadata = get_args(part)
                found += [(name, mark, base is int, optional) for mark in metadata if isinstance(mark, Interval)]
    _KNOWN[kind] = tuple(found)
    return _KNOWN[kind]
