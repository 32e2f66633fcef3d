"""Good answers in OpenAI Responses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from smart_model_router_providers.fault.answers import CREATED, ScriptedAnswer, named_frame, whole_answer
from smart_model_router_providers.fault.parsed_request import Question

_Event = dict[str, Any]


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
