"""Good answers: Chat, Messages, Responses, embeddings, the list of models, and the table of dialects."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from smart_model_router_providers.fault.answers import (
    CREATED,
    PING,
    ScriptedAnswer,
    data_frame,
    dumps,
    named_frame,
    whole_answer,
)
from smart_model_router_providers.fault.parsed_request import Dialect, Question, ToolCall

_Event = dict[str, Any]


def chat(question: Question) -> ScriptedAnswer:
    """Write the answer."""
    usage = {
        "prompt_tokens": question.prompt_tokens,
        "completion_tokens": question.completion_tokens,
        "total_tokens": question.total_tokens,
    }
    finish = "tool_calls" if question.calls else question.finish
    head: dict[str, Any] = {"id": f"chatcmpl-{question.number}", "created": CREATED, "model": question.model}
    if not question.stream:
        message: dict[str, Any] = {"role": "assistant", "content": question.text, "refusal": None}
        if question.calls:
            calls = [_call(question, index, call, call.arguments) for index, call in enumerate(question.calls)]
            message |= {"content": question.text or None, "tool_calls": calls}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        return whole_answer({**head, "object": "chat.completion", "choices": [choice], "usage": usage})
    head["object"] = "chat.completion.chunk"
    # Written around each piece by hand: encoding every chunk anew would cost more than the rest of a call.
    before = b"data: " + dumps(head)[:-1] + b',"choices":[{"index":0,"delta":'
    after = b"}]" + (b',"usage":null' if question.include_usage else b"") + b"}\n\n"

    def chunk(delta: bytes, finish: bytes = b"null") -> bytes:
        return before + delta + b',"finish_reason":' + finish + after

    closing = [chunk(b"{}", dumps(finish))]
    if question.include_usage:
        closing.append(data_frame({**head, "choices": [], "usage": usage}))
    return ScriptedAnswer(
        stream=True,
        opening=(chunk(b'{"role":"assistant","content":""}'),),
        content=(
            *(chunk(b'{"content":' + dumps(piece) + b"}") for piece in question.pieces),
            *(chunk(dumps({"tool_calls": [part]})) for part in _call_parts(question)),
        ),
        closing=(*closing, b"data: [DONE]\n\n"),
    )


def _call(question: Question, index: int, call: ToolCall, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"id": question.call_id(index), "type": "function", "function": function}


def _call_parts(question: Question) -> Iterator[dict[str, Any]]:
    """Each call's name, then its arguments piece by piece."""
    for index, call in enumerate(question.calls):
        yield {"index": index, **_call(question, index, call, "")}
        for piece in call.pieces:
            yield {"index": index, "function": {"arguments": piece}}


def messages(question: Question) -> ScriptedAnswer:
    """Write the answer."""
    message: dict[str, Any] = {
        "id": f"msg_{question.number}",
        "type": "message",
        "role": "assistant",
        "model": question.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": {
            "input_tokens": question.prompt_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "cache_creation": None,
            "output_tokens": question.completion_tokens,
            "output_tokens_details": None,
            "inference_geo": None,
            "server_tool_use": None,
            "service_tier": "standard",
        },
    }
    stop = "tool_use" if question.calls else "max_tokens" if question.finish == "length" else "end_turn"
    if not question.stream:
        content: list[dict[str, Any]] = []
        if question.text:
            content.append({"type": "text", "text": question.text, "citations": []})
        content += [{**_tool(question, index), "input": call.decoded} for index, call in enumerate(question.calls)]
        return whole_answer({**message, "content": content, "stop_reason": stop})
    start = {**message, "usage": {**message["usage"], "output_tokens": 0}}
    # Calls alone have no block of text; an answer that says nothing has an empty one.
    texts = 0 if question.calls and not question.text else 1
    opening = [named_frame({"type": "message_start", "message": start})]
    opening += [_start(0, {"type": "text", "text": ""})] * texts
    delta = {
        "type": "message_delta",
        "delta": {"stop_reason": stop, "stop_sequence": None},
        "usage": {"output_tokens": question.completion_tokens},
    }
    before = (
        b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,'
        b'"delta":{"type":"text_delta","text":'
    )
    return ScriptedAnswer(
        stream=True,
        opening=(*opening, PING),
        content=(
            *(before + dumps(piece) + b"}}\n\n" for piece in question.pieces),
            *_calls(question, texts),
        ),
        closing=(_stop(texts + len(question.calls) - 1), named_frame(delta), named_frame({"type": "message_stop"})),
    )


def _calls(question: Question, first: int) -> Iterator[bytes]:
    """The blocks of all calls, piece by piece; the bracket between two blocks comes with the later one's beginning."""
    for number, call in enumerate(question.calls):
        index = first + number
        ended = _stop(index - 1) if index else b""
        yield ended + _start(index, {**_tool(question, number), "input": {}})
        for piece in call.pieces:
            part = {"type": "input_json_delta", "partial_json": piece}
            yield named_frame({"type": "content_block_delta", "index": index, "delta": part})


def _tool(question: Question, index: int) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": question.call_id(index),
        "name": question.calls[index].name,
        "caller": {"type": "direct"},
    }


def _start(index: int, block: dict[str, Any]) -> bytes:
    return named_frame({"type": "content_block_start", "index": index, "content_block": block})


def _stop(index: int) -> bytes:
    return named_frame({"type": "content_block_stop", "index": index})


def responses(question: Question) -> ScriptedAnswer:
    """Write the answer."""
    status = "incomplete" if question.finish == "length" else "completed"
    whole = status == "completed"
    said = _Said(question, status)
    response: _Event = {
        "id": f"resp_{question.number}",
        "object": "response",
        "created_at": CREATED,
        "completed_at": CREATED if whole else None,
        "status": status,
        "background": False,
        "error": None,
        "frequency_penalty": 0.0,
        "incomplete_details": None if whole else {"reason": "max_output_tokens"},
        "instructions": None,
        "max_output_tokens": question.body.get("max_output_tokens"),
        "max_tool_calls": None,
        "metadata": {},
        "model": question.model,
        "output": said.items(),
        "parallel_tool_calls": True,
        "presence_penalty": 0.0,
        "previous_response_id": None,
        "prompt_cache_key": None,
        "reasoning": {"effort": None, "summary": None, **(question.body.get("reasoning") or {})},
        "safety_identifier": None,
        "service_tier": "default",
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_logprobs": 0,
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": {
            "input_tokens": question.prompt_tokens,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": question.completion_tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": question.total_tokens,
        },
    }
    if not question.stream:
        return whole_answer(response)
    unsaid: _Event = {"completed_at": None, "incomplete_details": None, "output": [], "usage": None}
    begun = {**response, **unsaid, "status": "in_progress"}
    opening: list[_Event] = [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
    ]
    content: list[list[_Event]] = []
    closing: list[_Event] = []
    if said.has_text:
        opening += said.text_begins()
        content += [[event] for event in said.text_pieces()]
        closing = said.text_ends()
    for index in range(len(question.calls)):
        first, *rest = said.call_pieces(index)
        content += [[*closing, *first], *rest]  # an item's closing events are sent with the next one's first piece
        closing = said.call_ends(index)
    closing = [*closing, {"type": f"response.{status}", "response": response}]
    return _numbered(opening, content, closing)


class _Said:
    """The items of one answer: its text, then its calls. A call's first piece opens it."""

    def __init__(self, question: Question, status: str) -> None:
        self._question = question
        self._status = status
        self._id = f"msg_{question.number}"
        self._part = {"type": "output_text", "text": question.text, "annotations": [], "logprobs": []}
        self._place = {"item_id": self._id, "output_index": 0, "content_index": 0}
        self.has_text = bool(question.text) or not question.calls

    def items(self) -> list[_Event]:
        texts = [self._message("completed")] if self._question.text else []
        return texts + [self._call(index, "completed") for index in range(len(self._question.calls))]

    def text_begins(self) -> list[_Event]:
        item = {**self._message("in_progress"), "content": []}
        return [
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.content_part.added", **self._place, "part": {**self._part, "text": ""}},
        ]

    def text_pieces(self) -> Iterator[_Event]:
        for piece in self._question.pieces:
            yield {"type": "response.output_text.delta", **self._place, "delta": piece, "logprobs": []}

    def text_ends(self) -> list[_Event]:
        return [
            {"type": "response.output_text.done", **self._place, "text": self._question.text, "logprobs": []},
            {"type": "response.content_part.done", **self._place, "part": self._part},
            {"type": "response.output_item.done", "output_index": 0, "item": self._message("completed")},
        ]

    def call_pieces(self, index: int) -> list[list[_Event]]:
        item = {**self._call(index, "in_progress"), "arguments": ""}
        begun = {"type": "response.output_item.added", "output_index": self._at(index), "item": item}
        deltas = [
            {"type": "response.function_call_arguments.delta", **self._call_place(index), "delta": piece}
            for piece in self._question.calls[index].pieces
        ]
        return [[begun], *([delta] for delta in deltas)]

    def call_ends(self, index: int) -> list[_Event]:
        call = self._question.calls[index]
        told = {"name": call.name, "arguments": call.arguments}
        item = self._call(index, "completed")
        return [
            {"type": "response.function_call_arguments.done", **self._call_place(index), **told},
            {"type": "response.output_item.done", "output_index": self._at(index), "item": item},
        ]

    def _at(self, index: int) -> int:
        return index + self.has_text

    def _call_place(self, index: int) -> _Event:
        return {"item_id": f"fc_{self._question.number}_{index}", "output_index": self._at(index)}

    def _message(self, status: str) -> _Event:
        status = self._status if status == "completed" else status
        return {"id": self._id, "type": "message", "role": "assistant", "status": status, "content": [self._part]}

    def _call(self, index: int, status: str) -> _Event:
        call, place = self._question.calls[index], self._call_place(index)
        return {
            "id": place["item_id"],
            "type": "function_call",
            "call_id": self._question.call_id(index),
            "name": call.name,
            "arguments": call.arguments,
            "status": status,
        }


def _numbered(
    opening: Sequence[_Event], content: Sequence[Sequence[_Event]], closing: Sequence[_Event]
) -> ScriptedAnswer:
    """Return the answer with its events numbered in order."""
    number = 0

    def frame(event: _Event) -> bytes:
        nonlocal number
        number += 1
        return named_frame({**event, "sequence_number": number - 1})

    return ScriptedAnswer(
        stream=True,
        opening=tuple([frame(event) for event in opening]),
        content=tuple([b"".join([frame(event) for event in piece]) for piece in content]),
        closing=tuple([frame(event) for event in closing]),
    )


EMBEDDING_DIMENSIONS = 8


def embeddings(question: Question) -> ScriptedAnswer:
    """Write the answer."""
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
    return whole_answer({"object": "list", "data": data, "model": question.model, "usage": usage})


def _vector(given: object, size: int, *, packed: bool) -> str | list[float]:
    """A unit vector that depends on the input alone."""
    noise = hashlib.shake_256(dumps(given)).digest(2 * size)
    raw = [value / 32768 for value in struct.unpack(f"<{size}h", noise)]
    norm = math.sqrt(sum(value * value for value in raw)) or 1.0
    vector = [value / norm for value in raw]
    return base64.b64encode(struct.pack(f"<{size}f", *vector)).decode() if packed else vector


_ANSWERS: Mapping[Dialect, Callable[[Question], ScriptedAnswer]] = MappingProxyType(
    {"chat": chat, "messages": messages, "responses": responses, "embeddings": embeddings}
)


def answer(question: Question) -> ScriptedAnswer:
    """Write the good answer to a question."""
    return _ANSWERS[question.dialect](question)


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
