"""Chat Completions, read: what each chunk and each answer means."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.domain.outcome import EventKind, FailureClass, StreamEvent, Usage
from smart_model_router.wires import ANSWER_READERS, read_event, text_of


def chunk(delta: dict[str, Any] | None = None, finish: str | None = None, **rest: Any) -> dict[str, Any]:
    """One stream chunk."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "c", "object": "chat.completion.chunk", "choices": choices, **rest}


def event(data: object) -> StreamEvent:
    """What a frame with this data is read as."""
    return read_event("chat", b"data: " + json.dumps(data).encode() + b"\n\n")


@pytest.mark.parametrize(
    "delta",
    [
        {"content": "Hi"},
        {"content": " "},
        {"content": [{"type": "text", "text": "Hi"}]},
        {"reasoning": "hm"},
        {"reasoning_content": "hm"},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}]},
        {"refusal": "No."},
        {"tool_calls": [{"index": 0, "id": "t", "function": {"name": "f", "arguments": ""}}]},
        {"function_call": {"name": "f"}},
    ],
)
def test_what_a_caller_would_miss_is_content(delta: dict[str, Any]) -> None:
    """Text, reasoning, refusals and tool calls are content."""
    assert event(chunk(delta)).kind is EventKind.CONTENT


@pytest.mark.parametrize(
    "delta",
    [{}, {"role": "assistant"}, {"role": "assistant", "content": ""}, {"content": None, "tool_calls": []}],
)
def test_a_role_is_no_content(delta: dict[str, Any]) -> None:
    """A chunk that only opens the answer proves nothing."""
    assert event(chunk(delta)).kind is EventKind.META


def test_a_usage_chunk_carries_the_count() -> None:
    """The usage chunk is META with the tokens in it, cached ones told apart."""
    usage = {"prompt_tokens": 10, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 4}}
    read = event(chunk(usage=usage))
    assert (read.kind, read.usage) == (EventKind.META, Usage(10, 3, 4))


def test_azures_first_chunk_is_meta() -> None:
    """A chunk without choices but with filter results is passed on."""
    assert event(chunk(prompt_filter_results=[{}])).kind is EventKind.META


def test_a_finish_reason_is_finish() -> None:
    """The chunk that carries the finish reason says so."""
    read = event(chunk({}, "stop"))
    assert (read.kind, read.finish) == (EventKind.FINISH, "stop")


def test_content_with_a_finish_reason_is_content_that_finishes() -> None:
    """One chunk may hold the last text and the finish reason: content, with `finish` set."""
    read = event(chunk({"content": "."}, "stop"))
    assert (read.kind, read.finish) == (EventKind.CONTENT, "stop")


def test_done_is_the_end() -> None:
    """[DONE] ends the stream."""
    assert read_event("chat", b"data: [DONE]\n\n").kind is EventKind.END


@pytest.mark.parametrize("frame", [b": OPENROUTER PROCESSING\n\n", b"event: ping\ndata: {}\n\n", b"id: 3\n\n"])
def test_comments_and_pings_prove_nothing(frame: bytes) -> None:
    """Keep-alives are PING, whatever their form."""
    assert read_event("chat", frame).kind is EventKind.PING


@pytest.mark.parametrize(
    ("data", "found"),
    [
        ({"error": {"message": "slow down", "code": 429}}, FailureClass.RATE_LIMITED),
        ({"error": {"message": "upstream", "code": 502}}, FailureClass.SERVER_ERROR),
        ({"error": {"message": "upstream", "code": "529"}}, FailureClass.OVERLOADED),
        ({"error": {"message": "", "type": "rate_limit_error"}}, FailureClass.RATE_LIMITED),
        ({"error": {"message": "", "code": "insufficient_quota"}}, FailureClass.QUOTA),
        ({"error": {"message": "", "code": "context_length_exceeded"}}, FailureClass.CONTEXT_LENGTH),
        ({"error": "broken"}, FailureClass.SERVER_ERROR),
        ({"object": "error", "message": "bad", "code": 400}, FailureClass.INVALID_REQUEST),
        (chunk({}, "error"), FailureClass.SERVER_ERROR),
        (
            {"choices": [{"delta": {}, "finish_reason": "error", "error": {"code": 429}}]},
            FailureClass.RATE_LIMITED,
        ),
    ],
)
def test_an_error_in_a_stream_is_its_codes_class(data: object, found: FailureClass) -> None:
    """Errors inside a stream, OpenRouter's finish reason among them, are classed by their code and type."""
    read = event(data)
    assert read.kind is EventKind.ERROR
    assert read.failure is not None
    assert read.failure.failure_class is found


def test_an_event_named_error_is_one() -> None:
    """`event: error` is an error whatever its data holds."""
    assert read_event("chat", b'event: error\ndata: {"message": "x"}\n\n').kind is EventKind.ERROR


@pytest.mark.parametrize(
    "data",
    [
        b"{",
        b"[]",
        b"3",
        b"null",
        b'"x"',
        b'{"a":NaN}',
        b"\xff\xfe",
        b"[" * 100_000,
        b"<html>",
        b'{"choices":{}}',
        b'{"choices":[3]}',
        b'{"choices":[{"delta":"Hi"}]}',
        b'{"choices":[{"delta":{"content":{"text":"Hi"}}}]}',
        b'{"choices":[{"delta":{"tool_calls":{"index":0}}}]}',
    ],
)
def test_what_is_not_a_chunk_is_malformed(data: bytes) -> None:
    """Not JSON, not an object, not of this dialect: MALFORMED, never an exception."""
    assert read_event("chat", b"data: " + data + b"\n\n").kind is EventKind.MALFORMED


def test_text_is_the_visible_part() -> None:
    """text_of gives the first choice's text, and nothing of reasoning or other choices."""
    assert text_of("chat", chunk({"content": "Hi", "reasoning": "hm"})) == "Hi"
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Hi"}]
    assert text_of("chat", chunk({"content": parts})) == "Hi"
    assert text_of("chat", {"choices": [{"index": 1, "delta": {"content": "other"}}]}) == ""


def answer(message: object, finish: str | None = "stop") -> dict[str, Any]:
    """A whole answer."""
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


def test_an_answer_is_read() -> None:
    """Finish reason and usage are read; DeepSeek's name for cached tokens is known."""
    body = {
        **answer({"content": "Hi"}),
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "prompt_cache_hit_tokens": 5},
    }
    read = ANSWER_READERS["chat"](body)
    assert (read.finish, read.usage, read.empty, read.malformed, read.error) == (
        "stop",
        Usage(9, 2, 5),
        False,
        "",
        None,
    )


@pytest.mark.parametrize(
    "usage", [None, {}, {"prompt_tokens": -1}, {"prompt_tokens": True}, {"prompt_tokens": "9"}, []]
)
def test_nonsense_usage_is_no_usage(usage: object) -> None:
    """Counts that make no sense are not counts."""
    assert ANSWER_READERS["chat"]({**answer({"content": "Hi"}), "usage": usage}).usage is None


@pytest.mark.parametrize("finish", ["stop", None, "tool_calls"])
def test_an_answer_without_content_is_empty(finish: str | None) -> None:
    """No text, tool call, reasoning or refusal, and no reason for it: empty."""
    assert ANSWER_READERS["chat"](answer({"role": "assistant", "content": ""}, finish)).empty


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_a_cap_or_a_filter_explains_an_empty_answer(finish: str) -> None:
    """An answer that its finish reason explains is not empty."""
    assert not ANSWER_READERS["chat"](answer({"content": None}, finish)).empty


def test_no_choices_is_empty() -> None:
    """`choices: []` is well-formed, and nothing."""
    assert ANSWER_READERS["chat"]({"choices": []}).empty


@pytest.mark.parametrize("body", [{}, {"choices": None}, {"choices": [1]}, {"choices": [{"message": "Hi"}]}])
def test_what_is_not_an_answer_is_malformed(body: dict[str, Any]) -> None:
    """A body of another shape says what is missing."""
    assert ANSWER_READERS["chat"](body).malformed


@pytest.mark.parametrize(
    "body", [{"error": {"code": 502}}, {"error": "x"}, {"choices": [{"message": {}, "finish_reason": "error"}]}]
)
def test_a_200_may_hold_an_error(body: dict[str, Any]) -> None:
    """An error in the body of a 200 is found, at the top or in a choice."""
    assert ANSWER_READERS["chat"](body).error is not None
