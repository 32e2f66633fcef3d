"""Frozen dataclasses that are made a dozen times a request: quick to make."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any, TypeVar

T = TypeVar("T")

_become = object.__dict__["__class__"].__set__


def quick(cls: type[T]) -> type[T]:
    """Give a dataclass (frozen, slots, every field given, no `__post_init__`, no base) an `__init__` thrice as quick.

    The standard one sets every field of a frozen dataclass by a call of `object.__setattr__`. This one begins with an
    instance of an open class with the same slots, fills it by plain assignments, and then sets its class to `cls`.
    """
    if hasattr(cls, "__post_init__") or cls.__bases__ != (object,) or "__setattr__" not in cls.__dict__:
        raise TypeError(f"{cls.__name__}: a frozen dataclass without a base class and without __post_init__ is needed")
    names: dict[str, Any] = {"become": _become, "Own": cls, "Open": type(cls.__name__, (), {"__slots__": _slots(cls)})}
    by_place, by_name, lines = ["self"], ["*"], ["become(self, Open)"]
    for field in fields(cls):  # type: ignore[arg-type]  # raises TypeError for a class that is no dataclass
        (by_name if field.kw_only else by_place).append(_parameter(field, names))
        made = f"factory_{field.name}() if {field.name} is MISSING else " if f"factory_{field.name}" in names else ""
        lines.append(f"self.{field.name} = {made}{field.name}")
    parameters = by_place + (by_name if len(by_name) > 1 else [])
    source = f"def __init__({', '.join(parameters)}):\n  " + "\n  ".join([*lines, "become(self, Own)"])
    names["MISSING"] = MISSING
    exec(source, names)  # noqa: S102 - as dataclasses does: names of fields and nothing from outside
    names["__init__"].__qualname__ = f"{cls.__qualname__}.__init__"
    setattr(cls, "__init__", names["__init__"])  # noqa: B010 - types allow no other way
    return cls


def _slots(cls: type) -> tuple[str, ...]:
    slots: tuple[str, ...] = cls.__dict__["__slots__"]
    return slots


def _parameter(field: Field[Any], names: dict[str, Any]) -> str:
    """One parameter; its default, or what makes it, goes among `names`."""
    if not field.init:
        raise TypeError(f"{names['Own'].__name__}.{field.name}: every field has to be given")
    if field.default_factory is not MISSING:
        names[f"factory_{field.name}"] = field.default_factory
        return f"{field.name}=MISSING"
    if field.default is MISSING:
        return field.name
    names[f"default_{field.name}"] = field.default
    return f"{field.name}=default_{field.name}"
