"""Good answers in Chat Completions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smart_model_router_providers.fault.answers import CREATED, ScriptedAnswer, data_frame, dumps, whole_answer
from smart_model_router_providers.fault.parsed_request import Question, ToolCall


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
