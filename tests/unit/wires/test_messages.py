"""Messages, read: what each event and each answer means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.domain.outcome import EventKind, FailureClass, StreamEvent, Usage
from smart_model_router.wires import ANSWER_READERS, read_event, text_of


def event(data: dict[str, Any]) -> StreamEvent:
    """What a frame with this data is read as."""
    frame = f"event: {data.get('type')}\ndata: {json.dumps(data)}\n\n"
    return read_event("messages", frame.encode())


def delta(name: str, /, **rest: object) -> dict[str, Any]:
    """A content_block_delta."""
    return {"type": "content_block_delta", "index": 0, "delta": {"type": name, **rest}}


def start(name: str, /, **rest: object) -> dict[str, Any]:
    """A content_block_start."""
    return {"type": "content_block_start", "index": 0, "content_block": {"type": name, **rest}}


@pytest.mark.parametrize(
    "data",
    [
        delta("text_delta", text="Hi"),
        delta("thinking_delta", thinking="hm"),
        delta("input_json_delta", partial_json='{"a'),
        delta("citations_delta", citation={}),
        start("tool_use", id="t", name="f", input={}),
        start("redacted_thinking", data="x"),
        start("text", text="Hi"),
        {"type": "message_start", "message": {"content": [{"type": "text", "text": "Hi"}]}},
    ],
)
def test_what_a_caller_would_miss_is_content(data: dict[str, Any]) -> None:
    """Text, thinking, tool calls and citations are content."""
    assert event(data).kind is EventKind.CONTENT


@pytest.mark.parametrize(
    "data",
    [
        {"type": "message_start", "message": {}},
        start("text", text=""),
        start("thinking", thinking=""),
        delta("text_delta", text=""),
        delta("input_json_delta", partial_json=""),
        delta("signature_delta", signature="s"),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": None}},
        {"type": "an_event_of_next_year"},
    ],
)
def test_brackets_and_unknown_events_are_meta(data: dict[str, Any]) -> None:
    """What frames the content, and what we do not know, is passed on and proves nothing."""
    assert event(data).kind is EventKind.META


def test_the_stop_reason_finishes() -> None:
    """message_delta carries the stop reason and the count."""
    read = event({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 7}})
    assert (read.kind, read.finish, read.usage) == (EventKind.FINISH, "end_turn", Usage(0, 7))


def test_message_stop_is_the_end() -> None:
    """message_stop ends the stream; [DONE] is of another dialect."""
    assert event({"type": "message_stop"}).kind is EventKind.END
    assert read_event("messages", b"data: [DONE]\n\n").kind is EventKind.MALFORMED


def test_a_ping_proves_nothing() -> None:
    """A ping is PING, with its event line or without."""
    assert event({"type": "ping"}).kind is EventKind.PING
    assert read_event("messages", b'data: {"type":"ping"}\n\n').kind is EventKind.PING


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("overloaded_error", FailureClass.OVERLOADED),
        ("api_error", FailureClass.SERVER_ERROR),
        ("rate_limit_error", FailureClass.RATE_LIMITED),
        ("authentication_error", FailureClass.AUTH),
        ("invalid_request_error", FailureClass.INVALID_REQUEST),
        ("request_too_large", FailureClass.TOO_LARGE),
        ("billing_error", FailureClass.QUOTA),
        ("an_error_of_next_year", FailureClass.SERVER_ERROR),
    ],
)
def test_an_error_event_is_its_types_class(name: str, found: FailureClass) -> None:
    """An error event carries the failure its type names."""
    read = event({"type": "error", "error": {"type": name, "message": "m"}})
    assert read.kind is EventKind.ERROR
    assert read.failure is not None
    assert (read.failure.failure_class, read.failure.message) == (found, "m")


def test_an_object_without_a_type_is_malformed() -> None:
    """An event of no type is not of this dialect."""
    assert read_event("messages", b'data: {"choices": []}\n\n').kind is EventKind.MALFORMED


def test_text_is_the_visible_part() -> None:
    """text_of gives text, and nothing of thinking or tool input."""
    assert text_of("messages", delta("text_delta", text="Hi")) == "Hi"
    assert text_of("messages", start("text", text="Hi")) == "Hi"
    assert text_of("messages", delta("thinking_delta", thinking="hm")) == ""


def test_an_answer_is_read() -> None:
    """The prompt's count is input plus cache writes plus cache reads."""
    usage = {
        "input_tokens": 5,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 100,
        "output_tokens": 7,
    }
    body = {"type": "message", "content": [{"type": "text", "text": "Hi"}], "stop_reason": "end_turn", "usage": usage}
    read = ANSWER_READERS["messages"](body)
    assert (read.finish, read.usage, read.empty) == ("end_turn", Usage(125, 7, 100), False)


@pytest.mark.parametrize("content", [[], [{"type": "text", "text": ""}], [{"type": "thinking", "thinking": ""}], [{}]])
def test_an_answer_without_content_is_empty(content: list[Any]) -> None:
    """No block that holds anything: empty."""
    assert ANSWER_READERS["messages"]({"content": content, "stop_reason": "end_turn"}).empty


@pytest.mark.parametrize("reason", ["max_tokens", "model_context_window_exceeded", "refusal"])
def test_a_cap_or_a_refusal_explains_an_empty_answer(reason: str) -> None:
    """An answer that its stop reason explains is not empty."""
    assert not ANSWER_READERS["messages"]({"content": [], "stop_reason": reason}).empty


def test_a_tool_call_is_an_answer() -> None:
    """A block of any other kind is content by being there."""
    assert not ANSWER_READERS["messages"]({"content": [{"type": "tool_use", "input": {}}]}).empty


def test_errors_and_other_shapes_are_told_apart() -> None:
    """A 200 with an error body is an error; one without content blocks is malformed."""
    assert ANSWER_READERS["messages"]({"type": "error", "error": {"type": "api_error"}}).error == {"type": "api_error"}
    assert ANSWER_READERS["messages"]({"choices": []}).malformed
