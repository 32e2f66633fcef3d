"""A client of each dialect that believes what it is told: what it has of an answer, and whether it takes it for whole.

It decodes as strictly as the strictest SDK: bytes that are no UTF-8 and data that is no JSON are errors of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from smart_model_router.domain.request import Dialect
from tests.lies.answers import Content


@dataclass(slots=True)
class Seen:
    """What a client saw. `ended`: the terminator came; `errors` are events that told of an error."""

    content: Content = field(default_factory=Content)
    finish: str = ""
    ended: bool = False
    errors: list[dict[str, Any]] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)
    """The `router` objects beside a finish reason."""
    models: list[str] = field(default_factory=list)
    open_calls: dict[int | str, tuple[str, str]] = field(default_factory=dict)
    """By their place, or the id of their item; in the order in which they began."""
    repeated: Content | None = None
    """The answer as the terminal event of Responses repeats it, where it does."""


def seen_in(dialect: Dialect, raw: bytes) -> Seen:
    """All of a response's body. Raises ValueError for what no strict client could read."""
    seen = Seen()
    for frame in raw.decode().split("\n\n"):
        data = "\n".join(line[6:] for line in frame.split("\n") if line.startswith("data: "))
        if data == "[DONE]":
            seen.ended = True
        elif data:
            _READERS[dialect](json.loads(data), seen)
    for name, arguments in seen.open_calls.values():
        seen.content.add("call", f"{name}({arguments})")
    return seen


def _grow(seen: Seen, place: int | str, name: str, piece: str) -> None:
    known, arguments = seen.open_calls.get(place, ("", ""))
    seen.open_calls[place] = (known or name, arguments + piece)


def _chat(data: Mapping[str, Any], seen: Seen) -> None:
    if data.get("error"):
        seen.errors.append(data["error"])
        return
    if data.get("object") == "router.restart":
        seen.content, seen.open_calls = Content(), {}
        return
    if data.get("model"):
        seen.models.append(data["model"])
    for choice in data.get("choices") or []:
        delta = choice.get("delta") or {}
        seen.content.add("text", delta.get("content") or "")
        seen.content.add("thinking", delta.get("reasoning_content") or "")
        for call in delta.get("tool_calls") or []:
            function = call.get("function") or {}
            _grow(seen, call["index"], function.get("name") or "", function.get("arguments") or "")
        if choice.get("finish_reason"):
            seen.finish = choice["finish_reason"]
            _report(data, seen)


def _messages(data: Mapping[str, Any], seen: Seen) -> None:
    kind = data["type"]
    if kind == "error":
        seen.errors.append(data["error"])
    elif kind == "router_restart":
        seen.content, seen.open_calls = Content(), {}
    elif kind == "message_start":
        seen.models.append(data["message"]["model"])
    elif kind == "content_block_start":
        block = data["content_block"]
        seen.content.add("text", block.get("text") or "")
        seen.content.add("thinking", block.get("thinking") or "")
        if block["type"] == "tool_use":
            given = json.dumps(block["input"], separators=(",", ":")) if block["input"] else ""
            _grow(seen, data["index"], block["name"], given)
    elif kind == "content_block_delta":
        delta = data["delta"]
        seen.content.add("text", delta.get("text") or "")
        seen.content.add("thinking", delta.get("thinking") or "")
        if delta["type"] == "input_json_delta":
            _grow(seen, data["index"], "", delta["partial_json"])
    elif kind == "message_delta" and data["delta"].get("stop_reason"):
        seen.finish = data["delta"]["stop_reason"]
        _report(data, seen)
    elif kind == "message_stop":
        seen.ended = True


def _responses(data: Mapping[str, Any], seen: Seen) -> None:
    kind = data["type"]
    if kind in ("error", "response.failed"):
        seen.errors.append(dict(data))
    elif kind in ("response.completed", "response.incomplete"):
        seen.ended, seen.finish = True, data["response"]["status"]
        seen.models.append(data["response"]["model"])
        seen.repeated = _repeated(data["response"]["output"])
        _report(data, seen)
    elif kind == "response.output_item.added" and data["item"]["type"] == "function_call":
        _grow(seen, data.get("output_index", data["item"]["id"]), data["item"]["name"], "")
    elif kind == "response.output_text.delta":
        seen.content.add("text", data["delta"])
    elif kind.startswith("response.reasoning") and kind.endswith(".delta"):
        seen.content.add("thinking", data["delta"])
    elif kind == "response.function_call_arguments.delta":
        _grow(seen, data.get("output_index", data["item_id"]), "", data["delta"])


def _repeated(output: list[dict[str, Any]]) -> Content:
    found = Content()
    for item in output:
        if item["type"] == "function_call":
            found.add("call", f"{item['name']}({item['arguments']})")
        for part in item.get("content") or []:
            found.add("text", part["text"])
        for part in item.get("summary") or []:
            found.add("thinking", part["text"])
    return found


def _report(data: Mapping[str, Any], seen: Seen) -> None:
    if "router" in data:
        seen.reports.append(data["router"])


_READERS = {"chat": _chat, "messages": _messages, "responses": _responses}
