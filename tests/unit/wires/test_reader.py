"""A provider's byte stream as events: one count of tokens, and the truth about how it ended."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.outcome import EventKind, FailureClass, Usage
from smart_model_router.domain.request import Dialect
from smart_model_router.wires import ANSWER_READERS, Answer, StreamReader, text_of

START = (
    b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":9,"output_tokens":1}}}\n\n'
)
DELTA = b'data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":7}}\n\n'


def test_the_halves_of_messages_usage_are_joined() -> None:
    """The prompt's tokens come first, the answer's last; every event tells the count so far."""
    reader = StreamReader("messages")
    assert [event.usage for event in reader.feed(START + DELTA)] == [Usage(9, 1), Usage(9, 7)]


def test_a_last_event_without_its_blank_line_counts() -> None:
    """Servers that forget the last line end still ended."""
    reader = StreamReader("chat")
    assert reader.feed(b"data: [DONE]") == []
    assert [event.kind for event in reader.end()] == [EventKind.END]
    assert reader.end() == []


def test_a_stream_that_ends_inside_an_event_was_cut() -> None:
    """Half an event at the end is TRUNCATED, not MALFORMED."""
    reader = StreamReader("chat")
    reader.feed(b'data: {"choi')
    (event,) = reader.end()
    assert event.kind is EventKind.ERROR
    assert event.failure is not None
    assert event.failure.failure_class is FailureClass.TRUNCATED


def test_a_cut_before_anything_arrived_is_transports() -> None:
    """Nothing arrived: TRANSPORT. Something did: TRUNCATED."""
    reader = StreamReader("chat")
    before = reader.cut("reset").failure
    reader.feed(b":")
    after = reader.cut("reset").failure
    assert before is not None
    assert after is not None
    assert (before.failure_class, after.failure_class) == (FailureClass.TRANSPORT, FailureClass.TRUNCATED)


@given(dialect=st.sampled_from(["chat", "messages"]), chunks=st.lists(st.binary(max_size=40), max_size=10))
def test_no_bytes_make_it_raise(dialect: Dialect, chunks: list[bytes]) -> None:
    """Whatever a provider sends is an event or nothing, never an exception."""
    reader = StreamReader(dialect)
    events = [event for chunk in chunks for event in reader.feed(chunk + b"\n\n")]
    assert all(isinstance(event.kind, EventKind) for event in events + reader.end())


NAMES = [
    *("type", "choices", "delta", "message", "content", "error", "code", "usage", "finish_reason", "index", "text"),
    *("content_block", "data", "embedding", "details", "innererror", "prompt_tokens", "output_tokens"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(NAMES),
            inner,
            max_size=5,
        )
    ),
    max_leaves=12,
)


@given(dialect=st.sampled_from(["chat", "messages"]), value=JSON)
def test_no_json_makes_it_raise(dialect: Dialect, value: object) -> None:
    """Well-formed nonsense under the dialect's own names does not raise either."""
    frame = b"data: " + json.dumps(value).encode() + b"\n\n"
    (event,) = StreamReader(dialect).feed(frame)
    assert isinstance(event.kind, EventKind)
    assert isinstance(text_of(dialect, event.data or {}), str)


TYPES = (
    *("content_block_start", "content_block_delta", "content_block_stop", "message_start", "message_delta", "ping"),
    *("text", "text_delta", "thinking", "thinking_delta", "tool_use", "input_json_delta", "message_stop", "new"),
)
PART = st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional={"text": JSON, "thinking": JSON}) | JSON
DELTA_OF_CHAT = st.fixed_dictionaries({}, optional={"content": JSON | st.lists(PART), "tool_calls": JSON}) | JSON
CHOICE = st.fixed_dictionaries({}, optional={"delta": DELTA_OF_CHAT, "index": JSON, "finish_reason": JSON}) | JSON
EVENTS = {
    "chat": st.fixed_dictionaries({"choices": st.lists(CHOICE, max_size=2)}),
    "messages": st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional={"delta": PART})
    | st.fixed_dictionaries({"type": st.sampled_from(TYPES)}, optional={"content_block": PART, "message": JSON}),
}


@pytest.mark.parametrize("dialect", ["chat", "messages"])
@given(data=st.data())
def test_the_text_that_a_reader_tells_is_that_of_the_event(dialect: Dialect, data: st.DataObject) -> None:
    """The text, where an event has it, is what its data add: it need not be read from them a second time."""
    frame = b"data: " + json.dumps(data.draw(EVENTS[dialect])).encode() + b"\n\n"
    (event,) = StreamReader(dialect).feed(frame)
    told = event.text if event.kind is not EventKind.MALFORMED else None
    assert told is None or told == text_of(dialect, event.data or {})


@given(dialect=st.sampled_from(["chat", "messages", "embeddings"]), value=JSON)
def test_no_answer_makes_it_raise(dialect: Dialect, value: object) -> None:
    """An answer of any shape is judged."""
    body = value if isinstance(value, dict) else {"content": value, "choices": value, "data": value}
    assert isinstance(ANSWER_READERS[dialect](body), Answer)
