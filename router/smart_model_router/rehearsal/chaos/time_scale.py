"""Every duration of a configuration a stated number of times shorter, so that a drill takes seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from smart_model_router.core.checked_options import Unit

SHORTEST = 0.25
"""Seconds. Nothing is shortened below it: below it a busy machine, not the router, would decide."""

T = TypeVar("T")


def shortened(options: T, speed: float) -> T:
    """The same options, each duration divided by `speed` (at least 1) down to `SHORTEST`. Counts and shares stay."""
    return options if speed <= 1 else _shortened(options, speed)


def _shortened(options: Any, speed: float) -> Any:
    if isinstance(options, tuple):
        return tuple(_shortened(one, speed) for one in options)
    if isinstance(options, Mapping):
        return {key: _shortened(value, speed) for key, value in options.items()}
    if not is_dataclass(options) or isinstance(options, type):
        return options
    durations = _durations(type(options))
    changed: dict[str, Any] = {}
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name in durations and value is not None:
            changed[field.name] = max(value / speed, min(value, SHORTEST))
        else:
            changed[field.name] = _shortened(value, speed)
    return replace(options, **changed)


@cache
def _durations(kind: type) -> frozenset[str]:
    """The options of a class that are durations: their annotation says seconds."""
    return frozenset(
        name
        for name, hint in get_type_hints(kind, include_extras=True).items()
        for part in (hint, *get_args(hint))
        if get_origin(part) is Annotated and Unit("seconds") in get_args(part)
    )
