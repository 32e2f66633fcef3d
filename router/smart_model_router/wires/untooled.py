"""A body without its tools: for a model that has none and answers all the same (`last_resort.tools`).

Calls and results that the conversation holds stay in it as text: the model reads what was done, and calls nothing.
Pictures and files among the results stay what they are, behind the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.values import is_list, is_object, items, mapping, text

TOOLS_LEFT_OUT = "tools: left out, the last resort answers without them (last_resort.tools: answer_without)"
_ASKING = frozenset({"tools", "tool_choice", "parallel_tool_calls", "max_tool_calls", "functions", "function_call"})
_CALLS = frozenset({"function_call", "custom_tool_call"})
_REFERENCE = "tool_reference"
"""A part of a result that names a tool, which is left out as the tools are."""
_RESULTS = frozenset({"function_call_output", "custom_tool_call_output"})


def without_tools(dialect: Dialect, body: Mapping[str, Any]) -> dict[str, Any]:
    """The body in the same dialect, without tools, and with the calls of its conversation told in words."""
    kept = {key: value for key, value in body.items() if key not in _ASKING}
    key = "input" if dialect == "responses" else "messages"
    if is_list(kept.get(key)):
        names: dict[str, str] = {}
        told = _TELL[dialect]
        kept[key] = [one for entry in kept[key] for one in told(entry, names)]
    return kept


def _called(name: str, arguments: object) -> str:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"[called {name} with {written}]"


def _result(name: str, content: object, kind: str = "text") -> list[Any]:
    """The parts of a message that tell a result: its text in one of this kind, then its pictures and files."""
    parts = content if is_list(content) else [{"text": content}]
    said = "".join(text(mapping(part).get("text")) for part in parts)
    others = [part for part in parts if is_object(part) and "text" not in part and part.get("type") != _REFERENCE]
    return [{"type": kind, "text": f"[result of {name}: {said}]"}, *others]


def _plainest(parts: list[Any]) -> Any:
    """The content of a message: the text alone where there is nothing else."""
    return parts if len(parts) > 1 else parts[0]["text"]


def _of_chat(message: Any, names: dict[str, str]) -> Iterator[Any]:
    if not is_object(message):
        yield message
        return
    if message.get("role") in ("tool", "function"):
        name = names.get(text(message.get("tool_call_id"))) or text(message.get("name")) or "a tool"
        yield {"role": "user", "content": _plainest(_result(name, message.get("content")))}
        return
    calls = [mapping(call) for call in items(message.get("tool_calls"))]
    functions = [(text(call.get("id")), mapping(call.get("function") or call.get("custom"))) for call in calls]
    functions += [("", mapping(message["function_call"]))] if message.get("function_call") else []
    if not functions:
        yield message
        return
    names.update({number: text(function.get("name")) for number, function in functions})
    told = [_called(text(one.get("name")), one.get("arguments", one.get("input", ""))) for _, one in functions]
    rest = {key: value for key, value in message.items() if key not in ("tool_calls", "function_call")}
    yield {**rest, "content": _with(message.get("content"), "\n".join(told))}


def _with(content: object, told: str) -> Any:
    if is_list(content):
        return [*content, {"type": "text", "text": told}]
    return f"{content}\n{told}" if content else told


def _of_messages(message: Any, names: dict[str, str]) -> Iterator[Any]:
    content = mapping(message).get("content")
    if not is_object(message) or not is_list(content):
        yield message
        return
    yield {**message, "content": [told for block in content for told in _block(block, names)]}


def _block(block: Any, names: dict[str, str]) -> list[Any]:
    match mapping(block).get("type"):
        case "tool_use":
            names[text(block.get("id"))] = text(block.get("name"))
            return [{"type": "text", "text": _called(text(block.get("name")), block.get("input"))}]
        case "tool_result":
            name = names.get(text(block.get("tool_use_id")), "a tool")
            return _result(name, block.get("content"))
        case _:
            return [block]


def _of_responses(item: Any, names: dict[str, str]) -> Iterator[Any]:
    kind, said = text(mapping(item).get("type")), mapping(item)
    if kind in _CALLS:
        names[text(said.get("call_id"))] = text(said.get("name"))
        told = _called(text(said.get("name")), said.get("arguments", said.get("input", "")))
        yield {"role": "assistant", "content": told}
    elif kind in _RESULTS:
        name = names.get(text(said.get("call_id")), "a tool")
        yield {"role": "user", "content": _plainest(_result(name, said.get("output"), "input_text"))}
    else:
        yield item


_TELL: Mapping[Dialect, Callable[[Any, dict[str, str]], Iterator[Any]]] = MappingProxyType(
    {"chat": _of_chat, "messages": _of_messages, "responses": _of_responses}
)
