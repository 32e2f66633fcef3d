"""Responses' tools as Chat's functions and back.

Namespaces are flattened, free-form tools take one string, and a search for tools that the client does itself is a
function like any other: what it found is declared from then on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from smart_model_router.wires.translate.hosted import NAME, dropped, is_hosted, is_search, options_of_responses
from smart_model_router.wires.translate.words import arguments_of
from smart_model_router.wires.values import dumps, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Losses, Terms

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_INPUT = "input"
_KNOWN = frozenset("type name description parameters strict format execution".split())
SEARCH = "tool_search"
"""The type of that search, and the name of the function that stands for it: it has none of its own."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool of a Responses request as it is called there; custom ones take free text, not arguments."""

    name: str
    namespace: str = ""
    kind: Literal["function", "custom", "tool_search"] = "function"


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
    """Return the tools of a Responses request by their names in Chat."""
    found: dict[str, Tool] = {}
    for tool, namespace in _flat([*items(asked.get("tools")), *_found(asked.get("input"))]):
        name = _name(tool)
        kind = tool.get("type")
        found[flat_name(namespace, name)] = Tool(
            name, namespace, "custom" if kind == "custom" else "tool_search" if kind == SEARCH else "function"
        )
    return found


def chat_tools(
    asked: Mapping[str, Any], terms: Terms, losses: Losses
) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Chat's functions for the tools of a Responses request, and its web search when Chat is between two dialects."""
    out: dict[str, dict[str, Any]] = {}
    search: dict[str, Any] | None = None
    for tool in map(mapping, items(asked.get("tools"))):
        if tool.get("type") == "namespace" and text(tool.get("description")):
            losses.drop("tools[].description", "that of a namespace is dropped, Chat has none")
    for tool, namespace in _flat(items(asked.get("tools"))):
        kind = tool.get("type")
        if is_search(kind) and terms.between and search is None:
            search = options_of_responses(tool, asked)
        elif is_hosted(kind) and not (kind == SEARCH and tool.get("execution") == "client"):
            dropped(kind, terms, losses)
        else:
            _declare(out, tool, namespace, losses, again=False)
    for tool, namespace in _flat(_found(asked.get("input"))):
        _declare(out, tool, namespace, losses, again=True)
    return [{"type": "function", "function": function} for function in out.values()], search


def found_tools(item: Mapping[str, Any]) -> str:
    """Return the text that tells the model a search's result; the tools themselves are declared."""
    names = [flat_name(namespace, _name(tool)) for tool, namespace in _flat(items(item.get("tools")))]
    return dumps({"tools": names})


def _found(conversation: object) -> list[Any]:
    """The tools that searches brought up."""
    outputs = [item for item in map(mapping, items(conversation)) if item.get("type") == "tool_search_output"]
    return [tool for item in outputs for tool in items(item.get("tools"))]


def _declare(
    out: dict[str, dict[str, Any]], tool: Mapping[str, Any], namespace: str, losses: Losses, *, again: bool
) -> None:
    kind, name = tool.get("type"), flat_name(namespace, _name(tool))
    known = kind in ("function", "custom") or (kind == SEARCH and tool.get("execution") == "client")
    if not known or not _name(tool):
        losses.refuse("tools", f"a tool of type {text(kind)!r} has no equal in Chat")
        return
    if again and name in out:  # two searches may bring up one tool
        return
    if (namespace and not _NAME.fullmatch(name)) or name in out:
        losses.refuse("tools", f"the name {name!r} is taken, or no name for a function")
    out[name] = {"name": name, **_function(tool, str(kind), losses)}


def _name(tool: Mapping[str, Any]) -> str:
    return SEARCH if tool.get("type") == SEARCH else text(tool.get("name"))


def chat_choice(choice: object, losses: Losses, *, searches: bool) -> str | dict[str, Any] | None:
    """Chat's tool_choice for Responses'. `searches`: a search of the web is among the tools that are left."""
    if choice is None or choice in ("auto", "none", "required"):
        return choice if isinstance(choice, str) else None
    said = mapping(choice)
    if is_search(said.get("type")) and searches:
        return _named(NAME)
    if said.get("type") in ("function", "custom") and text(said.get("name")):
        return _named(flat_name(text(said.get("namespace")), said["name"]))
    if said.get("type") == "allowed_tools":
        flat = [
            NAME if searches and is_search(tool.get("type")) else flat_name(namespace, text(tool.get("name")))
            for tool, namespace in _flat(items(said.get("tools")))
        ]
        if not all(flat):
            losses.drop("tool_choice", "an allowed tool that is not there, or has no name, is left out")
        tools = [_named(name) for name in flat if name]
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
    rest = {key: value for key, value in tool.items() if value is not False and value != ["direct"]}
    losses.drop_keys(rest, _KNOWN, "dropped, Chat has no such parameter", inside="tools[]")
    if kind != "custom":
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
