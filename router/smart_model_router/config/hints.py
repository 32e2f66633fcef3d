"""The sections of a tree and the values that their keys take, from annotations: for reading, messages, documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, Protocol, get_args, get_origin, get_type_hints, runtime_checkable

from smart_model_router.config.conversion import UnitName
from smart_model_router.config.secret import Secret
from smart_model_router.core.checked_options import Interval, Unit, spell

FROM_KEY = "from_key"
"""Metadata of a field that is filled with the key of the mapping its owner stands in, and cannot be written."""
SWITCH = "enabled"
"""A section that has this key may be written as the switch alone: `adaptive: false`."""


@dataclass(frozen=True, slots=True)
class ByReference:
    """A mark in annotations of secrets that a file never holds itself: `${NAME}`, `os.environ/NAME` or `file:/path`."""


@runtime_checkable
class SupportsShortForm(Protocol):
    """A section that may be written in a shorter form."""

    @staticmethod
    def written_out(given: object) -> object:
        """Return the mapping that a short form stands for; anything else as it is."""
        ...


@dataclass(frozen=True, slots=True)
class Hint:
    """An annotation taken apart. `base` is the plain type; `inner` that of the members of a list or mapping.

    `by_reference` says that its value is never written itself, only the name of the place that has it.
    """

    base: Any
    optional: bool = False
    unit: UnitName | None = None
    interval: Interval | None = None
    choices: tuple[Any, ...] = ()
    inner: Hint | None = None
    by_reference: bool = False

    @property
    def member(self) -> Hint:
        """The hint of a member of this list or mapping. Raises TypeError for anything else."""
        if self.inner is None:
            raise TypeError(f"{self.base} has no members")
        return self.inner

    @property
    def is_section(self) -> bool:
        """True for a dataclass: a mapping with known keys."""
        return is_dataclass(self.base)

    @property
    def may_hold_secrets(self) -> bool:
        """True when a value for it may have a secret in it: then errors do not show the value."""
        if self.is_section:
            return any(hint.may_hold_secrets for hint in fields_of(self.base).values())
        return self.base is Secret or (self.inner is not None and self.inner.may_hold_secrets)

    def describe(self) -> str:
        """The values that are taken, in words."""
        if self.choices:
            return " or ".join(repr(choice) if isinstance(choice, str) else str(choice) for choice in self.choices)
        words = _NUMBERS.get((self.base, self.unit)) or _PLAIN.get(self.base, "a mapping of keys to values")
        limits = f" {spell(self.interval)}" if self.interval else ""
        example = _EXAMPLES.get(self.unit, "")
        return f"{words}{limits}{example}"


_NUMBERS: dict[tuple[Any, UnitName | None], str] = {
    (float, "seconds"): "a duration in seconds",
    (float, "ratio"): "a ratio",
    (int, "count"): "a whole number",
    (float, None): "a number",
    (int, None): "a whole number",
}
_EXAMPLES: dict[UnitName | None, str] = {
    "seconds": " (such as 250ms, 15s, 2m or 1h)",
    "ratio": " (such as 0.5 or 50%)",
    "count": " (such as 60, 400k or 2M)",
}
_PLAIN: dict[Any, str] = {str: "text", Secret: "text", bool: "true or false", tuple: "a list"}


@cache
def fields_of(section: Any) -> Mapping[str, Hint]:
    """The keys of a section and what each takes, in the order of its dataclass."""
    hints = get_type_hints(section, include_extras=True)
    return {field.name: read(hints[field.name]) for field in fields(section)}


@cache
def key_field(section: Any) -> str | None:
    """The field that takes the key its owner stands under, if the section has one."""
    found = (field.name for field in fields(section) if field.metadata.get(FROM_KEY))
    return next(found, None)


def read(annotation: Any) -> Hint:
    """Take an annotation apart. Knows what the tree uses: |None, Annotated, Literal, tuple, Mapping, plain types."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if type(None) in arguments:
        (member,) = [argument for argument in arguments if argument is not type(None)]
        found = read(member)
        return replace(found, optional=True)
    if origin is Annotated:
        unit = next((mark for mark in arguments[1:] if isinstance(mark, Unit)), None)
        interval = next((mark for mark in arguments[1:] if isinstance(mark, Interval)), None)
        by_reference = any(isinstance(mark, ByReference) for mark in arguments[1:])
        return Hint(arguments[0], False, unit.name if unit else None, interval, by_reference=by_reference)
    if origin is Literal:
        return Hint(type(arguments[0]), choices=arguments)
    if origin is tuple:
        return Hint(tuple, inner=read(arguments[0]))
    if origin is Mapping:
        return Hint(dict, inner=read(arguments[1]))
    return Hint(annotation)


def at(section: Any, path: tuple[str | int, ...]) -> Hint:
    """The hint of the key at `path` below `section`."""
    found = Hint(section)
    for step in path:
        found = fields_of(found.base)[str(step)] if found.is_section else found.member
    return found
