"""Responses, read: what each event and each answer means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.domain.outcome import EventKind, FailureClass, StreamEvent, Usage
from smart_model_router.wires import ANSWER_READERS, read_event, text_of

USAGE = {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 4}, "output_tokens": 3}


def event(data: object) -> StreamEvent:
    """What a frame with this data is read as."""
    return read_event("responses", b"data: " + json.dumps(data).encode() + b"\n\n")


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ({"type": "response.created", "response": {}}, EventKind.META),
        ({"type": "response.output_text.delta", "delta": "Hi"}, EventKind.CONTENT),
        ({"type": "response.output_text.delta", "delta": ""}, EventKind.META),
        ({"type": "response.refusal.delta", "delta": "No"}, EventKind.CONTENT),
        ({"type": "response.reasoning_summary_text.delta", "delta": "hm"}, EventKind.CONTENT),
        ({"type": "response.function_call_arguments.delta", "delta": "{"}, EventKind.CONTENT),
        ({"type": "response.output_item.added", "item": {"type": "function_call"}}, EventKind.CONTENT),
        ({"type": "response.output_item.added", "item": {"type": "message"}}, EventKind.META),
        ({"type": "response.output_text.done", "text": "Hi"}, EventKind.META),
        ({"type": "response.a_new_word"}, EventKind.META),
        ({"no": "type"}, EventKind.MALFORMED),
    ],
)
def test_what_each_event_means(data: dict[str, Any], kind: EventKind) -> None:
    """Deltas and calls are content; brackets, and types nobody knows yet, are passed on."""
    assert event(data).kind is kind


@pytest.mark.parametrize(
    ("name", "more", "finish"),
    [
        ("completed", {}, "completed"),
        ("incomplete", {"incomplete_details": {"reason": "max_output_tokens"}}, "max_output_tokens"),
    ],
)
def test_the_last_event_says_why_and_how_much(name: str, more: dict[str, Any], finish: str) -> None:
    """It ends the stream, with the reason and the count of tokens, cached ones told apart."""
    read = event({"type": f"response.{name}", "response": {"status": name, "usage": USAGE, **more}})
    assert (read.kind, read.finish, read.usage) == (EventKind.END, finish, Usage(10, 3, 4))


@pytest.mark.parametrize(
    "data",
    [
        {"type": "error", "code": "rate_limit_exceeded", "message": "slow"},
        {"type": "error", "error": {"code": "rate_limit_exceeded", "message": "slow"}},
        {"type": "response.failed", "response": {"error": {"code": "rate_limit_exceeded", "message": "slow"}}},
    ],
)
def test_a_failure_is_read_wherever_it_stands(data: dict[str, Any]) -> None:
    """An error event and a failed response both say what went wrong by their code."""
    read = event(data)
    assert read.kind is EventKind.ERROR
    assert read.failure is not None
    assert (read.failure.failure_class, read.failure.message) == (FailureClass.RATE_LIMITED, "slow")


def test_only_visible_text_is_text() -> None:
    """Reasoning and arguments are content, but no text."""
    assert text_of("responses", {"type": "response.output_text.delta", "delta": "Hi"}) == "Hi"
    assert text_of("responses", {"type": "response.reasoning_text.delta", "delta": "hm"}) == ""


def message(*parts: dict[str, Any]) -> dict[str, Any]:
    """An output item with these parts."""
    return {"type": "message", "role": "assistant", "content": list(parts)}


@pytest.mark.parametrize(
    ("output", "more", "empty"),
    [
        ([message({"type": "output_text", "text": "Hi"})], {}, False),
        ([message({"type": "refusal", "refusal": "No"})], {}, False),
        ([{"type": "function_call", "name": "f"}], {}, False),
        ([message({"type": "output_text", "text": ""})], {}, True),
        ([], {}, True),
        ([], {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, False),
        ([], {"status": "in_progress"}, False),
    ],
)
def test_what_an_empty_answer_is(output: list[Any], more: dict[str, Any], empty: bool) -> None:
    """Without text, call or refusal an answer is empty, unless the cap explains it or it is still being made."""
    read = ANSWER_READERS["responses"]({"status": "completed", "output": output, "usage": USAGE, **more})
    assert (read.empty, read.malformed, read.usage) == (empty, "", Usage(10, 3, 4))


def test_what_is_no_answer() -> None:
    """An error in a 200 is an error; an object without output is not of this dialect."""
    assert ANSWER_READERS["responses"]({"status": "failed", "error": {"code": "x"}}).error == {"code": "x"}
    assert ANSWER_READERS["responses"]({"id": "r"}).malformed == "no list of output items"
