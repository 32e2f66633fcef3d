"""Frozen dataclasses as JSON and back, and their JSON Schema, all three from their types. Strict in both directions.

Every field is written, and every field is asked for. Kinds: text, whole numbers, finite numbers, flags, enums of text,
moments (ISO 8601), tuples, pairs, mappings from texts, dataclasses, and any of these or null.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

from smart_model_router.domain.suggest import did_you_mean
from smart_model_router_research.deep.canonical_json import ArtefactError, shown
from smart_model_router_scoring.options import ConfigError

R = TypeVar("R")
_PLAIN: Mapping[type, tuple[str, str]] = {
    str: ("string", "a text"),
    int: ("integer", "a whole number"),
    float: ("number", "a finite number"),
    bool: ("boolean", "true or false"),
}


def encode(value: object) -> Any:
    """Return a record as a JSON value."""
    if is_dataclass(value):
        return {each.name: encode(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, StrEnum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): encode(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, tuple | list):
        return [encode(each) for each in cast("tuple[object, ...]", value)]
    return value.isoformat() if isinstance(value, datetime) else value


def decode(kind: type[R], value: object, place: str) -> R:
    """Return the record of a JSON value. Raises ArtefactError, which names the place and says what would be right."""
    return cast("R", _decoded(kind, value, place))


def _decoded(kind: Any, value: object, place: str) -> object:
    if kind is Any:
        return value
    if kind in _PLAIN:
        return _plain(kind, value, place)
    if is_dataclass(kind):
        return _record(cast("type", kind), value, place)
    if get_origin(kind) is UnionType:
        return _either(get_args(kind), value, place)
    if get_origin(kind) is tuple:
        return _items(get_args(kind), value, place)
    if kind is datetime:
        return _moment(value, place)
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        if not isinstance(value, str) or value not in list(kind):
            raise _wrong(place, value, f"one of {', '.join(kind)}")
        return kind(value)
    if not isinstance(value, dict):
        raise _wrong(place, value, "an object")
    each_kind = get_args(kind)[1]
    found = cast("dict[str, object]", value)
    return {key: _decoded(each_kind, each, f"{place}.{key}") for key, each in found.items()}


def _plain(kind: type, value: object, place: str) -> object:
    fits = type(value) is kind or (kind is float and type(value) is int)
    if not fits or (isinstance(value, float) and not math.isfinite(value)):
        raise _wrong(place, value, _PLAIN[kind][1])
    return value


def _record(kind: type, value: object, place: str) -> object:
    if not isinstance(value, dict):
        raise _wrong(place, value, "an object")
    kinds, found = _hints(kind), cast("dict[str, object]", value)
    for key in found:
        if key not in kinds:
            raise ArtefactError(place, f"the key {key[:100]!r} is unknown; {did_you_mean(key, kinds)}")
    for key in kinds:
        if key not in found:
            raise ArtefactError(place, f"the key {key!r} is missing")
    given = {key: _decoded(each, found[key], f"{place}.{key}") for key, each in kinds.items()}
    try:
        return kind(**given)
    except ConfigError as error:
        raise ArtefactError(f"{place}.{error.field}", f"{shown(error.value)} - {error.allowed} is needed") from error


def _either(kinds: tuple[Any, ...], value: object, place: str) -> object:
    if value is None and NoneType in kinds:
        return None
    rest = [kind for kind in kinds if kind is not NoneType]
    exact = [kind for kind in rest if type(value) is kind]
    return _decoded((exact or rest)[0], value, place)


def _items(kinds: tuple[Any, ...], value: object, place: str) -> tuple[object, ...]:
    if not isinstance(value, list):
        raise _wrong(place, value, "a list")
    items = cast("list[object]", value)
    if kinds[-1] is not Ellipsis and len(items) != len(kinds):
        raise _wrong(place, items, f"a list of {len(kinds)}")
    each = [kinds[0]] * len(items) if kinds[-1] is Ellipsis else kinds
    return tuple(
        _decoded(kind, item, f"{place}[{at}]") for at, (kind, item) in enumerate(zip(each, items, strict=True))
    )


def _moment(value: object, place: str) -> datetime:
    try:
        found = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise _wrong(place, value, "a moment with its zone, ISO 8601,")
    return found


def _wrong(place: str, value: object, wanted: str) -> ArtefactError:
    return ArtefactError(place, f"{shown(value)} - {wanted} is needed")


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


def schema_of(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of a kind; those of records go into `definitions`, by name."""
    if kind is Any:
        return {}
    if kind in _PLAIN:
        return {"type": _PLAIN[kind][0]}
    if kind is datetime:
        return {"type": "string", "format": "date-time"}
    if get_origin(kind) is UnionType:
        parts = [schema_of(each, definitions) for each in get_args(kind) if each is not NoneType]
        return {"anyOf": [*parts, {"type": "null"}]} if NoneType in get_args(kind) else {"anyOf": parts}
    if get_origin(kind) is tuple:
        each, *rest = get_args(kind)
        size = {} if rest == [Ellipsis] else {"minItems": 1 + len(rest), "maxItems": 1 + len(rest)}
        return {"type": "array", "items": schema_of(each, definitions), **size}
    if is_dataclass(kind):
        record = cast("type", kind)
        if record.__name__ not in definitions:
            definitions[record.__name__] = {}  # a record may hold itself
            definitions[record.__name__] = object_schema(
                {name: schema_of(each, definitions) for name, each in _hints(record).items()}, str(record.__doc__)
            )
        return {"$ref": f"#/$defs/{record.__name__}"}
    if isinstance(kind, type) and issubclass(kind, StrEnum):
        return {"enum": [each.value for each in kind]}
    return {"type": "object", "additionalProperties": schema_of(get_args(kind)[1], definitions)}


def object_schema(properties: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    """Return the schema of an object that has all of these keys and no other."""
    described = {"description": description.split("\n\n", maxsplit=1)[0]} if description else {}
    return {
        "type": "object",
        **described,
        "properties": dict(properties),
        "required": sorted(properties),
        "additionalProperties": False,
    }
