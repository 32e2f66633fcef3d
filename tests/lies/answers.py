"""An answer as a provider of each dialect streams it: frames, and the piece of content that each of them adds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from smart_model_router.domain.request import Dialect

Kind = Literal["text", "thinking", "call"]
Role = Literal["head", "content", "close", "finish", "usage", "end"]
USAGE = {"chat": ("prompt_tokens", "completion_tokens"), "messages": ("input_tokens", "output_tokens")}


@dataclass(frozen=True, slots=True)
class Block:
    """A part of an answer: its kind and the pieces it comes in; `name` is a tool's."""

    kind: Kind
    pieces: tuple[str, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Frame:
    """One event. `piece` is what it adds to block number `block`; a call's opening adds nothing but its name."""

    raw: bytes
    role: Role
    block: int = -1
    piece: str = ""

    @property
    def is_content(self) -> bool:
        """Whether a caller would miss it."""
        return bool(self.piece)


@dataclass(slots=True)
class Content:
    """Content as a client or an upstream counts it: the same in every dialect."""

    text: str = ""
    thinking: str = ""
    calls: str = ""
    """Names and arguments of calls, in order."""

    def add(self, kind: Kind, piece: str) -> None:
        """More of one kind."""
        if kind == "text":
            self.text += piece
        elif kind == "thinking":
            self.thinking += piece
        else:
            self.calls += piece


def content_of(blocks: tuple[Block, ...], frames: list[Frame]) -> Content:
    """The content of these frames, calls in the order of their blocks."""
    found = Content()
    for number, block in enumerate(blocks):
        came = [frame for frame in frames if frame.block == number]
        if block.kind == "call" and came:
            found.add("call", f"{block.name}(")
        for frame in came:
            found.add(block.kind, frame.piece)
        if block.kind == "call" and came:
            found.add("call", ")")
    return found


def frames_of(dialect: Dialect, blocks: tuple[Block, ...], name: str) -> list[Frame]:
    """The whole stream."""
    return list(_WRITERS[dialect](blocks, name))


def written(dialect: Dialect, data: Mapping[str, Any]) -> bytes:
    """An event as the dialect writes it."""
    head = b"" if dialect == "chat" else f"event: {data['type']}\n".encode()
    return head + b"data: " + json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def finish_of(blocks: tuple[Block, ...]) -> tuple[str, str]:
    """The finish reasons in Chat and in Messages."""
    called = any(block.kind == "call" for block in blocks)
    return ("tool_calls", "tool_use") if called else ("stop", "end_turn")


def chat_chunk(name: str, delta: Mapping[str, Any], finish: str | None = None) -> bytes:
    """One chunk."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    whole = {"id": f"chatcmpl-{name}", "object": "chat.completion.chunk", "created": 1, "model": name}
    return written("chat", {**whole, "choices": [choice]})


def _chat(blocks: tuple[Block, ...], name: str) -> Iterator[Frame]:
    yield Frame(chat_chunk(name, {"role": "assistant", "content": ""}), "head")
    calls = 0
    for number, block in enumerate(blocks):
        if block.kind == "call":
            function = {"name": block.name, "arguments": ""}
            opening = {"index": calls, "id": f"call_{name}_{calls}", "type": "function", "function": function}
            yield Frame(chat_chunk(name, {"tool_calls": [opening]}), "content", number)
        for piece in block.pieces:
            if block.kind == "call":
                delta: dict[str, Any] = {"tool_calls": [{"index": calls, "function": {"arguments": piece}}]}
            else:
                delta = {"content" if block.kind == "text" else "reasoning_content": piece}
            yield Frame(chat_chunk(name, delta), "content", number, piece)
        calls += block.kind == "call"
    yield Frame(chat_chunk(name, {}, finish_of(blocks)[0]), "finish")
    usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
    yield Frame(written("chat", {"id": f"chatcmpl-{name}", "model": name, "choices": [], "usage": usage}), "usage")
    yield Frame(b"data: [DONE]\n\n", "end")


_OPENINGS: Mapping[Kind, dict[str, Any]] = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}
_DELTAS: Mapping[Kind, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "call": ("input_json_delta", "partial_json"),
}


def _messages(blocks: tuple[Block, ...], name: str) -> Iterator[Frame]:
    def event(kind: str, **more: Any) -> bytes:
        return written("messages", {"type": kind, **more})

    head = {"id": f"msg_{name}", "type": "message", "role": "assistant", "model": name, "content": []}
    usage = {"input_tokens": 10, "output_tokens": 1}
    message = {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield Frame(event("message_start", message=message), "head")
    for number, block in enumerate(blocks):
        called = {"type": "tool_use", "id": f"toolu_{name}_{number}", "name": block.name, "input": {}}
        opening = _OPENINGS.get(block.kind, called)
        role: Role = "content" if block.kind == "call" else "head"
        yield Frame(event("content_block_start", index=number, content_block=opening), role, number)
        kind, key = _DELTAS[block.kind]
        for piece in block.pieces:
            delta = {"type": kind, key: piece}
            yield Frame(event("content_block_delta", index=number, delta=delta), "content", number, piece)
        yield Frame(event("content_block_stop", index=number), "close", number)
    stop = {"stop_reason": finish_of(blocks)[1], "stop_sequence": None}
    yield Frame(event("message_delta", delta=stop, usage={"output_tokens": 20}), "finish")
    yield Frame(event("message_stop"), "end")


def _responses(blocks: tuple[Block, ...], name: str) -> Iterator[Frame]:
    sent = 0

    def event(kind: str, **more: Any) -> bytes:
        nonlocal sent
        sent += 1
        return written("responses", {"type": f"response.{kind}", "sequence_number": sent - 1, **more})

    response: dict[str, Any] = {"id": f"resp_{name}", "object": "response", "created_at": 1, "model": name}
    begun = {**response, "status": "in_progress", "output": []}
    yield Frame(event("created", response=begun), "head")
    output: list[dict[str, Any]] = []
    for number, block in enumerate(blocks):
        place = {"item_id": f"item_{number}", "output_index": number}
        item = _item(block, number)
        role: Role = "content" if block.kind == "call" else "head"
        added = {**item, "status": "in_progress", **_EMPTY[block.kind]}
        yield Frame(event("output_item.added", output_index=number, item=added), role, number)
        for piece in block.pieces:
            grown = event(f"{_GROWN[block.kind]}.delta", **place, content_index=0, summary_index=0, delta=piece)
            yield Frame(grown, "content", number, piece)
        yield Frame(event("output_item.done", output_index=number, item=item), "close", number)
        output.append(item)
    usage = {"input_tokens": 10, "output_tokens": 20, "total_tokens": 30}
    whole = {**response, "status": "completed", "output": output, "usage": usage}
    yield Frame(event("completed", response=whole), "finish")


_GROWN: Mapping[Kind, str] = {
    "text": "output_text",
    "thinking": "reasoning_summary_text",
    "call": "function_call_arguments",
}
_EMPTY: Mapping[Kind, dict[str, Any]] = {
    "text": {"content": []},
    "thinking": {"summary": []},
    "call": {"arguments": ""},
}


def _item(block: Block, number: int) -> dict[str, Any]:
    said = "".join(block.pieces)
    place = {"id": f"item_{number}", "status": "completed"}
    if block.kind == "call":
        return {**place, "type": "function_call", "call_id": f"call_{number}", "name": block.name, "arguments": said}
    if block.kind == "thinking":
        return {**place, "type": "reasoning", "summary": [{"type": "summary_text", "text": said}]}
    part = {"type": "output_text", "text": said, "annotations": []}
    return {**place, "type": "message", "role": "assistant", "content": [part]}


_WRITERS: Mapping[Dialect, Callable[[tuple[Block, ...], str], Iterator[Frame]]] = {
    "chat": _chat,
    "messages": _messages,
    "responses": _responses,
}
