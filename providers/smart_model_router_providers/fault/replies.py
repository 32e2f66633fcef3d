"""Good answers in each dialect, as the bytes a provider sends."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from smart_model_router_providers.fault.question import Dialect, Question

CREATED = 1_763_683_200  # one fixed stamp: the same seed gives the same bytes
EMBEDDING_DIMENSIONS = 8
EVENT_STREAM = "text/event-stream; charset=utf-8"
JSON = "application/json"
PING = b'event: ping\ndata: {"type": "ping"}\n\n'


@dataclass(frozen=True, slots=True)
class Answer:
    """A good answer in parts: what opens a stream, its pieces of content, and what closes it.

    A whole answer is content (the first half of the body) and closing (the second).
    """

    stream: bool
    opening: tuple[bytes, ...]
    content: tuple[bytes, ...]
    closing: tuple[bytes, ...]


def dumps(value: object) -> bytes:
    """JSON as it goes over the wire."""
    return json.dumps(value, separators=(",", ":")).encode()


def answer(question: Question) -> Answer:
    """Write the good answer to a question."""
    return _ANSWERS[question.dialect](question)


def _whole(value: object) -> Answer:
    body = dumps(value)
    half = len(body) // 2
    return Answer(stream=False, opening=(), content=(body[:half],), closing=(body[half:],))


def _data(value: object) -> bytes:
    return b"data: " + dumps(value) + b"\n\n"


def _named(value: Mapping[str, Any]) -> bytes:
    return b"event: " + str(value["type"]).encode() + b"\n" + _data(value)


# ------------------------------------------------------------------------------------------- Chat Completions


def _chat(question: Question) -> Answer:
    usage = {
        "prompt_tokens": question.prompt_tokens,
        "completion_tokens": question.completion_tokens,
        "total_tokens": question.total_tokens,
    }
    head: dict[str, Any] = {"id": f"chatcmpl-{question.number}", "created": CREATED, "model": question.model}
    if not question.stream:
        message = {"role": "assistant", "content": question.text, "refusal": None}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": question.finish}
        return _whole({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    head["object"] = "chat.completion.chunk"
    # Written around each piece by hand: encoding every chunk anew would cost more than the rest of a call.
    before = b"data: " + dumps(head)[:-1] + b',"choices":[{"index":0,"delta":'
    after = b"}]" + (b',"usage":null' if question.include_usage else b"") + b"}\n\n"

    def chunk(delta: bytes, finish: bytes = b"null") -> bytes:
        return before + delta + b',"finish_reason":' + finish + after

    closing = [chunk(b"{}", dumps(question.finish))]
    if question.include_usage:
        closing.append(_data({**head, "choices": [], "usage": usage}))
    return Answer(
        stream=True,
        opening=(chunk(b'{"role":"assistant","content":""}'),),
        content=tuple(chunk(b'{"content":' + dumps(piece) + b"}") for piece in question.pieces),
        closing=(*closing, b"data: [DONE]\n\n"),
    )


# --------------------------------------------------------------------------------------------------- Messages


def _messages(question: Question) -> Answer:
    message: dict[str, Any] = {
        "id": f"msg_{question.number}",
        "type": "message",
        "role": "assistant",
        "model": question.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {"input_tokens": question.prompt_tokens, "output_tokens": question.completion_tokens},
    }
    stop = "max_tokens" if question.finish == "length" else "end_turn"
    if not question.stream:
        content = [{"type": "text", "text": question.text}] if question.text else []
        return _whole({**message, "content": content, "stop_reason": stop})
    start = {**message, "usage": {**message["usage"], "output_tokens": 0}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    delta = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": question.completion_tokens},
    }
    before = (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":'
    )
    return Answer(
        stream=True,
        opening=(_named({"type": "message_start", "message": start}), _named(block), PING),
        content=tuple(before + dumps(piece) + b"}}\n\n" for piece in question.pieces),
        closing=(
            _named({"type": "content_block_stop", "index": 0}),
            _named(delta),
            _named({"type": "message_stop"}),
        ),
    )


# -------------------------------------------------------------------------------------------------- Responses


def _responses(question: Question) -> Answer:
    status = "incomplete" if question.finish == "length" else "completed"
    part = {"type": "output_text", "text": question.text, "annotations": [], "logprobs": []}
    item: dict[str, Any] = {"id": f"msg_{question.number}", "type": "message", "role": "assistant"}
    done = {**item, "status": status, "content": [part]}
    response: dict[str, Any] = {
        "id": f"resp_{question.number}",
        "object": "response",
        "created_at": CREATED,
        "status": status,
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if question.finish == "length" else None,
        "instructions": None,
        "metadata": {},
        "model": question.model,
        "output": [done] if question.text else [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": {
            "input_tokens": question.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": question.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": question.total_tokens,
        },
    }
    if not question.stream:
        return _whole(response)
    begun = {**response, "status": "in_progress", "incomplete_details": None, "output": [], "usage": None}
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    empty = {**part, "text": ""}
    opening: list[dict[str, Any]] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": {**item, "status": "in_progress", "content": []},
        },
        {"type": "response.content_part.added", **place, "part": empty},
    ]
    content: list[dict[str, Any]] = [
        {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []} for piece in question.pieces
    ]
    closing: list[dict[str, Any]] = [
        {"type": "response.output_text.done", **place, "text": question.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": done},
        {"type": f"response.{status}", "response": response},
    ]
    frames = [
        _named({**event, "sequence_number": number}) for number, event in enumerate([*opening, *content, *closing])
    ]
    first, last = len(opening), len(opening) + len(content)
    return Answer(
        stream=True,
        opening=tuple(frames[:first]),
        content=tuple(frames[first:last]),
        closing=tuple(frames[last:]),
    )


# ------------------------------------------------------------------------------------------------- Embeddings


def _embeddings(question: Question) -> Answer:
    asked = question.body["input"]
    one = isinstance(asked, str) or isinstance(asked[0], int)
    inputs: Sequence[object] = [asked] if one else asked
    size = question.body.get("dimensions")
    size = size if isinstance(size, int) and 0 < size <= 4096 else EMBEDDING_DIMENSIONS
    packed = question.body.get("encoding_format") == "base64"
    usage = {"prompt_tokens": question.prompt_tokens, "total_tokens": question.prompt_tokens}
    data = [
        {"object": "embedding", "index": index, "embedding": _vector(given, size, packed=packed)}
        for index, given in enumerate(inputs)
    ]
    return _whole({"object": "list", "data": data, "model": question.model, "usage": usage})


def _vector(given: object, size: int, *, packed: bool) -> str | list[float]:
    """A unit vector that depends on the input alone."""
    noise = hashlib.shake_256(dumps(given)).digest(2 * size)
    raw = [value / 32768 for value in struct.unpack(f"<{size}h", noise)]
    norm = math.sqrt(sum(value * value for value in raw)) or 1.0
    vector = [value / norm for value in raw]
    return base64.b64encode(struct.pack(f"<{size}f", *vector)).decode() if packed else vector


_ANSWERS: Mapping[Dialect, Callable[[Question], Answer]] = MappingProxyType(
    {"chat": _chat, "messages": _messages, "responses": _responses, "embeddings": _embeddings}
)

_EMPTY_LISTS: Mapping[Dialect, str] = MappingProxyType(
    {"chat": "choices", "messages": "content", "responses": "output", "embeddings": "data"}
)


def without_choices(question: Question) -> bytes:
    """A whole answer whose list of results is empty."""
    parts = answer(replace(question, stream=False))
    return dumps({**json.loads(b"".join(parts.content + parts.closing)), _EMPTY_LISTS[question.dialect]: []})


def models(names: Sequence[str], *, anthropic: bool) -> bytes:
    """Write the list of models, in the shape of the client that asks."""
    if anthropic:
        listed = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2025-11-21T00:00:00Z"} for name in names
        ]
        ends = {"first_id": names[0], "last_id": names[-1]} if names else {"first_id": None, "last_id": None}
        return dumps({"data": listed, "has_more": False, **ends})
    data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "fault"} for name in names]
    return dumps({"object": "list", "data": data})
