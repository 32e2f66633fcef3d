"""Good answers in Anthropic Messages."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smart_model_router_providers.fault.answers import PING, ScriptedAnswer, dumps, named_frame, whole_answer
from smart_model_router_providers.fault.parsed_request import Question


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
