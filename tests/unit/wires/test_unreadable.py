"""Events that cannot be read, and prose that can be mended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.domain.outcome import EventKind
from smart_model_router.domain.request import Dialect
from smart_model_router.wires import mended_answer, read_event, text_of

PROSE: dict[str, tuple[Dialect, dict[str, Any]]] = {
    "chat": ("chat", {"choices": [{"delta": {"content": "caf@"}}]}),
    "chat thoughts": ("chat", {"choices": [{"delta": {"reasoning_content": "caf@"}}]}),
    "messages": ("messages", {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "@"}}),
    "responses": ("responses", {"type": "response.output_text.delta", "delta": "caf@"}),
    "responses part": ("responses", {"type": "response.content_part.done", "part": {"text": "caf@"}}),
    "responses item": ("responses", {"type": "response.output_item.done", "item": {"type": "message", "x": "@"}}),
    "responses end": (
        "responses",
        {"type": "response.completed", "response": {"status": "completed", "output": [{"type": "message", "x": "@"}]}},
    ),
}
EXACT: dict[str, tuple[Dialect, dict[str, Any]]] = {
    "chat call": ("chat", {"choices": [{"delta": {"tool_calls": [{"function": {"arguments": "@"}}]}}]}),
    "chat text and call": ("chat", {"choices": [{"delta": {"content": "a", "tool_calls": [{"id": "@"}]}}]}),
    "chat head": ("chat", {"id": "@", "choices": [{"delta": {"role": "assistant"}}]}),
    "messages call": (
        "messages",
        {"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "@"}},
    ),
    "messages signature": (
        "messages",
        {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "@"}},
    ),
    "responses call": ("responses", {"type": "response.function_call_arguments.delta", "delta": "@"}),
    "responses item": ("responses", {"type": "response.output_item.done", "item": {"type": "function_call", "x": "@"}}),
    "responses end": (
        "responses",
        {"type": "response.completed", "response": {"output": [{"type": "function_call", "x": "@"}]}},
    ),
}


def broken(data: dict[str, Any]) -> bytes:
    """The JSON with a byte in it that is no UTF-8."""
    return json.dumps(data).encode().replace(b"@", b"\xff")


@pytest.mark.parametrize(("dialect", "data"), PROSE.values(), ids=PROSE)
def test_a_byte_of_prose_is_replaced_and_told(dialect: Dialect, data: dict[str, Any]) -> None:
    """The event is what it would have been, its bytes are UTF-8, and it says that it was mended."""
    read = read_event(dialect, b"data: " + broken(data) + b"\n\n")
    assert read.kind is read_event(dialect, b"data: " + json.dumps(data).encode() + b"\n\n").kind
    assert read.failure is not None
    assert read.failure.message == "bytes that are not UTF-8 were replaced"
    assert json.loads(read.raw.decode()[6:]) == read.data == json.loads(json.dumps(data).replace("@", "\ufffd"))


@pytest.mark.parametrize(("dialect", "data"), EXACT.values(), ids=EXACT)
def test_a_byte_of_an_argument_is_not(dialect: Dialect, data: dict[str, Any]) -> None:
    """A name, a signature or an argument with another character in it is another one."""
    assert read_event(dialect, b"data: " + broken(data) + b"\n\n").kind is EventKind.MALFORMED


@pytest.mark.parametrize(
    "spoilt",
    [b"a\x07b", b"a\tb", b"a\\x41b", b"a\\u12b", b'a"b', b'"}{"'],
    ids=["bell", "tab", "x", "u", "quote", "glued"],
)
@pytest.mark.parametrize(("dialect", "data"), PROSE.values(), ids=PROSE)
def test_what_is_no_json_is_not_mended(dialect: Dialect, data: dict[str, Any], spoilt: bytes) -> None:
    """Nor with a replaced byte beside it."""
    for more in (b"", b"\xff"):
        raw = json.dumps(data).encode().replace(b"@", spoilt + more)
        assert read_event(dialect, b"data: " + raw + b"\n\n").kind is EventKind.MALFORMED


def test_a_line_of_json_outside_of_a_field_is_not_ignored() -> None:
    """It may have carried text. What is no JSON is another field, which the standard ignores."""
    whole = json.dumps(PROSE["chat"][1]).encode()
    for frame in (whole, b"data: " + whole + b"\n" + whole, b'data: {"choices"\n": []}'):
        assert read_event("chat", frame + b"\n\n").kind is EventKind.MALFORMED
    assert text_of("chat", read_event("chat", b"retry: 5\nx-new: y\ndata: " + whole + b"\n\n").data or {}) == "caf@"


@pytest.mark.parametrize("frame", [b"data:\n\n", b"data: \n\n", b"event: x\ndata:\n\n", b"id: 3\n\n"])
def test_an_event_without_data_is_none(frame: bytes) -> None:
    """As the standard has it."""
    assert read_event("chat", frame).kind is EventKind.PING


def test_an_object_of_an_unknown_kind_is_no_chunk() -> None:
    """It has no choices, so no text of an answer; clients do not get it."""
    read = read_event("chat", b'data: {"object": "heartbeat"}\n\n')
    assert (read.kind, read.data) == (EventKind.PING, None)
    assert read.raw.startswith(b":")


ANSWERS: dict[str, tuple[Dialect, dict[str, Any], bool]] = {
    "chat": ("chat", {"choices": [{"message": {"content": "@"}}]}, True),
    "chat call": ("chat", {"choices": [{"message": {"content": "@", "tool_calls": [{"id": "a"}]}}]}, False),
    "messages": ("messages", {"content": [{"type": "thinking", "thinking": "a"}, {"type": "text", "text": "@"}]}, True),
    "messages call": ("messages", {"content": [{"type": "text", "text": "@"}, {"type": "tool_use"}]}, False),
    "responses": ("responses", {"output": [{"type": "message", "content": [{"text": "@"}]}]}, True),
    "responses call": ("responses", {"output": [{"type": "function_call", "arguments": "@"}]}, False),
    "embeddings": ("embeddings", {"data": [], "x": "@"}, False),
}


@pytest.mark.parametrize(("dialect", "body", "mended"), ANSWERS.values(), ids=ANSWERS)
def test_a_whole_answer_is_mended_where_it_is_prose_alone(dialect: Dialect, body: dict[str, Any], mended: bool) -> None:
    """One that is right needs none."""
    assert (mended_answer(dialect, broken(body)) is not None) == mended
    assert mended_answer(dialect, json.dumps(body).encode()) is None
