"""The JSON Schema of a workflow's file, for editors: made from the tables that reading uses."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args

from smart_model_router_research.workflow.checks import MAX_ATTEMPTS, MAX_NAME, MAX_PASSES, RESERVED
from smart_model_router_research.workflow.kinds import STEP_KINDS, StepKind
from smart_model_router_research.workflow.loading import (
    INPUT_KEYS,
    LOOP_KEYS,
    MAX_ROUNDS,
    RETRY_KEYS,
    ROUND_KEYS,
    TOP_KEYS,
)
from smart_model_router_research.workflow.step import COSTS, InputType, OnError

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_EXPRESSION = {"type": ["boolean", "string"], "pattern": r"^\s*\$\{", "description": "true, false or ${...}"}
_ANY: dict[str, Any] = {}


def workflow_schema(kinds: Mapping[str, StepKind] = STEP_KINDS) -> dict[str, Any]:
    """Return the schema: keys, kinds, types and ranges. It cannot show that names lead somewhere; reading does."""
    name = {
        "type": "string",
        "pattern": r"^[A-Za-z_][A-Za-z0-9_]*$",
        "maxLength": MAX_NAME,
        "not": {"enum": sorted(RESERVED)},
    }
    steps = {"type": "array", "items": {"$ref": "#/$defs/step"}, "minItems": 1}
    names = {"type": "array", "items": {"type": "string"}}
    one_of = {"enum": ["optional", "required"]}
    top = _keys(
        TOP_KEYS,
        name={"type": "string", "minLength": 1, "maxLength": MAX_NAME},
        checkpoint=one_of,
        stream=one_of,
        inputs={"type": ["object", "null"], "additionalProperties": {"$ref": "#/$defs/input"}},
        steps=steps | {"minItems": 0},
        templates={"type": "object", "additionalProperties": _object(_keys(("steps",), steps=steps), ("steps",))},
        rounds=_object(_keys(ROUND_KEYS, template=name, max=_count(MAX_ROUNDS)), ROUND_KEYS),
        outputs={"type": "object"},
    )
    step = _keys(
        frozenset[str]().union(*(kind.taken for kind in kinds.values())),
        name=name,
        kind={"enum": sorted(kinds)},
        agent={"enum": sorted(kinds)},
        needs=names,
        depends_on=names,
        when=_EXPRESSION,
        run={"const": "always"},
        on_error={"enum": list(get_args(OnError))},
        inputs={"type": "object"},
        outputs=names,
        timeout={"type": "number", "exclusiveMinimum": 0},
        retry=_object(_keys(RETRY_KEYS, attempts=_count(MAX_ATTEMPTS))),
        estimate=_object({cost: {"type": "number", "minimum": 0} for cost in COSTS}),
        loop=_object(_keys(LOOP_KEYS, {"while": _EXPRESSION}, to=name, max=_count(MAX_PASSES)), ("to", "while")),
        function={"type": "string"},
        message={"type": "string"},
        workflow={"anyOf": [{"type": "string"}, {"$ref": "#"}]},
    )
    given = _keys(INPUT_KEYS, type={"enum": list(get_args(InputType))}, required={"type": "boolean"})
    given |= {"enum": {"type": "array", "minItems": 1}, "min": {"type": "number"}, "max": {"type": "number"}}
    definitions = {
        "step": _object(step, ("name",)) | {"allOf": [_of_kind(name, kind) for name, kind in kinds.items()]},
        "input": _object(given) | {"type": ["object", "null"]},
    }
    return {"$schema": _DRAFT, "title": "workflow", **_object(top, ("name",)), "$defs": definitions}


def _of_kind(name: str, kind: StepKind) -> dict[str, Any]:
    """Return the rule for the keys of a kind. A step without `kind` is of kind call."""
    words = ("kind", "agent")
    asked: list[dict[str, Any]] = [{"required": [key], "properties": {key: {"const": name}}} for key in words]
    if name == "call":
        asked.append({"not": {"anyOf": [{"required": [key]} for key in words]}})
    keys = {"propertyNames": {"enum": sorted(kind.taken)}, "required": sorted(kind.required)}
    return {"if": {"anyOf": asked}, "then": keys}


def _keys(known: Collection[str], more: Mapping[str, Any] | None = None, **schemas: Any) -> dict[str, Any]:
    """Return the schema of each known key; one without a schema takes anything."""
    found = {**schemas, **(more or {})}
    return {key: found.get(key, _ANY) for key in sorted(known)}


def _object(properties: Mapping[str, Any], required: Collection[str] = ()) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
        **({"required": sorted(required)} if required else {}),
    }


def _count(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}
