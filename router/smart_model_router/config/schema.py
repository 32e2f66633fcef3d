"""The JSON Schema of the configuration file, for editors: made from the tree, so it knows what the tree knows."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields
from typing import Any

from smart_model_router.config.hints import SWITCH, Hint, fields_of, key_field
from smart_model_router.config.research_sections import SearchBackendConfig
from smart_model_router.config.retired import RETIRED
from smart_model_router.config.tree import ModelConfig, RouterConfig, TargetConfig, TierConfig

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_REFERENCE = {"$ref": "#/$defs/reference"}
_NUMBER = r"[+-]?\d[\d_]*(\.\d+)?([eE][+-]?\d+)?"
_UNITS = {
    None: rf"^\s*{_NUMBER}\s*$",
    "seconds": rf"^\s*({_NUMBER}|(\d+(\.\d+)? ?(ms|s|min|m|h|d) ?)+)\s*$",
    "count": rf"^\s*({_NUMBER}|\d[\d_]*(\.\d+)? ?[kKM])\s*$",
    "ratio": rf"^\s*({_NUMBER}|\d+(\.\d+)? ?%)\s*$",
}
_SWITCH = r"^\s*([Tt][Rr][Uu][Ee]|[Yy][Ee][Ss]|[Oo][Nn]|[Ff][Aa][Ll][Ss][Ee]|[Nn][Oo]|[Oo][Ff][Ff])\s*$"
_TEXT = {"type": ["string", "number", "boolean"]}
"""The key decides and not YAML: `name: no` and `api_key: 0123` are text."""


def json_schema() -> dict[str, Any]:
    """The schema: keys, types, ranges and units. It cannot show that names lead somewhere; reading the file does."""
    definitions: dict[str, Any] = {
        "reference": {
            "type": "string",
            "pattern": r"\$\{[^}]*\}|^os\.environ/|^file:",
            "description": "${VAR}, ${VAR:-default}, os.environ/VAR or file:/a/path",
        }
    }
    root = _section(RouterConfig, definitions)
    return {"$schema": _DRAFT, "title": "smart-router.yaml", **root, "$defs": definitions}


def _section(section: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    own = key_field(section)
    given = {field.name: field for field in fields(section)}
    taken = {key: hint for key, hint in fields_of(section).items() if key != own}
    required = [key for key in taken if given[key].default is MISSING and given[key].default_factory is MISSING]
    retired = {key: {"deprecated": True, "description": text} for key, text in RETIRED.get(section, {}).items()}
    known = {key: {**_taken(hint, definitions), **_default(given[key])} for key, hint in taken.items()}
    return {
        "type": "object",
        "properties": known | retired,
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _taken(hint: Hint, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a key. One that may be left empty takes null: `providers:` without a value."""
    if hint.is_section:
        return _either(*_sections(hint.base, definitions), {"type": "null"})
    if hint.base is dict:
        return _either({"type": "object", "additionalProperties": _taken(hint.member, definitions)}, {"type": "null"})
    if hint.base is tuple:
        members = {"type": "array", "items": _taken(hint.member, definitions)}
        return _either(members, {"type": "null"}, *(() if hint.member.is_section else _leaves(hint.member)))
    found = _either(*_leaves(hint), *([{"type": "null"}] if hint.optional else ()))
    return {**found, "description": hint.describe()}


def _sections(section: Any, definitions: dict[str, Any]) -> list[dict[str, Any]]:
    name = section.__name__
    if name not in definitions:
        definitions[name] = {}  # before its keys are looked at: it may hold itself
        definitions[name] = _section(section, definitions)
    short: list[dict[str, Any]] = []
    if section is TargetConfig:
        short = [{"type": "string", "description": "provider/model"}]
    if section is SearchBackendConfig:
        short = [{"type": "string", "description": "corpus, or a kind that needs no options"}]
    if section is ModelConfig:  # a model with one tier may be written as the targets of that
        targets = {"targets": _taken(fields_of(TierConfig)["targets"], definitions)}
        others = {key: value for key, value in definitions[name]["properties"].items() if key != "tiers"}
        short = [{**definitions[name], "properties": {**targets, **others}, "required": ["targets"]}]
    if SWITCH in fields_of(section):
        short = _leaves(fields_of(section)[SWITCH])
    return [{"$ref": f"#/$defs/{name}"}, *short]


def _leaves(hint: Hint) -> list[dict[str, Any]]:
    if hint.choices:
        return [{"enum": list(hint.choices)}, _REFERENCE]
    if hint.base is bool:
        return [{"type": "boolean"}, {"type": "string", "pattern": _SWITCH}, _REFERENCE]
    if hint.base in (int, float):
        limits = {"exclusiveMinimum": "gt", "minimum": "ge", "maximum": "le"}
        ends = {word: getattr(hint.interval, end, None) for word, end in limits.items()}
        kind = "integer" if hint.base is int else "number"
        figure = {"type": kind, **{word: end for word, end in ends.items() if end is not None}}
        return [figure, {"type": "string", "pattern": _UNITS[hint.unit]}, _REFERENCE]
    return [_TEXT]


def _either(*schemas: dict[str, Any]) -> dict[str, Any]:
    return schemas[0] if len(schemas) == 1 else {"anyOf": list(schemas)}


def _default(field: Field[Any]) -> dict[str, Any]:
    default: Any = field.default
    if default in (MISSING, None, "", ()):
        return {}
    return {"default": list(default) if isinstance(default, tuple) else default}
