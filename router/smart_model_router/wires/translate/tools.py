"""Responses' tools as Chat's functions and back: namespaces are flattened, free-form tools take one string."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.words import arguments_of, dumps
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.losses import Losses

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INPUT = "input"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of a Responses request as it is called there; `custom` ones take free text, not arguments."""

    name: str
    namespace: str = ""
    custom: bool = False


def flat_name(namespace: str, name: str) -> str:
    """A tool's name in a dialect without namespaces."""
    return f"{namespace}__{name}" if namespace else name


def wrapped_input(value: object) -> str:
    """The arguments of the function that stands for a free-form tool."""
    return dumps({_INPUT: text(value)})


def unwrapped_input(arguments: object) -> str:
    """The free text in such arguments; the arguments themselves when the model did not keep to the form."""
    held = arguments_of(arguments)
    value = None if held is None else held.get(_INPUT)
    return value if isinstance(value, str) else text(arguments)


def tools_by_flat_name(asked: Mapping[str, Any]) -> dict[str, Tool]:
    """What the tools of a Responses request are called in Chat -> what they are called there."""
    found: dict[str, Tool] = {}
    for tool, namespace in _flat(items(asked.get("tools"))):
        name = text(tool.get("name"))
        found[flat_name(namespace, name)] = Tool(name, namespace, tool.get("type") == "custom")
    return found


def chat_tools(tools: list[Any], losses: Losses) -> list[dict[str, Any]]:
    """Chat's functions for Responses' tools; those that run at the provider are refused."""
    out: list[dict[str, Any]] = []
    taken: set[str] = set()
    for tool, namespace in _flat(tools):
        kind, name = tool.get("type"), flat_name(namespace, text(tool.get("name")))
        if kind not in ("function", "custom") or not text(tool.get("name")):
            losses.refuse("tools", f"a tool of type {text(kind)!r} has no equal in Chat")
            continue
        if (namespace and not _NAME.fullmatch(name)) or name in taken:
            losses.refuse("tools", f"the name {name!r} is taken, or no name for a function")
        taken.add(name)
        out.append({"type": "function", "function": {"name": name, **_function(tool, str(kind), losses)}})
    return out


def chat_choice(choice: object, losses: Losses) -> str | dict[str, Any] | None:
    """Chat's tool_choice for Responses'."""
    if choice is None or choice in ("auto", "none", "required"):
        return choice if isinstance(choice, str) else None
    said = mapping(choice)
    if said.get("type") in ("function", "custom") and text(said.get("name")):
        return _named(flat_name(text(said.get("namespace")), said["name"]))
    if said.get("type") == "allowed_tools":
        tools = [
            _named(flat_name(namespace, text(tool.get("name")))) for tool, namespace in _flat(items(said.get("tools")))
        ]
        return {"type": "allowed_tools", "allowed_tools": {"mode": said.get("mode", "auto"), "tools": tools}}
    losses.refuse("tool_choice", f"{text(said.get('type'))!r} has no equal in Chat")
    return None


def _named(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name}}


def _flat(tools: list[Any]) -> list[tuple[Mapping[str, Any], str]]:
    """(tool, its namespace or "")."""
    found: list[tuple[Mapping[str, Any], str]] = []
    for tool in map(mapping, tools):
        if tool.get("type") == "namespace":
            found += [(mapping(inner), text(tool.get("name"))) for inner in items(tool.get("tools"))]
        else:
            found.append((tool, ""))
    return found


def _function(tool: Mapping[str, Any], kind: str, losses: Losses) -> dict[str, Any]:
    said = text(tool.get("description"))
    if kind == "function":
        described = {"description": said} if said else {}
        strict = {"strict": True} if tool.get("strict") is True else {}
        schema = mapping(tool.get("parameters")) or {"type": "object", "properties": {}}
        return {**described, "parameters": schema, **strict}
    grammar = mapping(tool.get("format"))
    if grammar.get("type") == "grammar":
        losses.drop("tools", f"the grammar of {text(tool.get('name'))!r} is told to the model, not enforced")
        said = f"{said}\n\nThe input follows this {text(grammar.get('syntax'))} grammar:\n{grammar.get('definition')}"
    parameters = {"type": "object", "properties": {_INPUT: {"type": "string"}}, "required": [_INPUT]}
    return {"description": said.strip(), "parameters": parameters}
