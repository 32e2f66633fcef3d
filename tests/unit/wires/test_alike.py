"""Chunks that differ in their text alone: read without decoding, and read the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.outcome import EventKind, StreamEvent
from smart_model_router.wires.alike import alike
from smart_model_router.wires.dialects import read_event
from smart_model_router.wires.reader import StreamReader


def chunk(text: str, *, ascii_only: bool = False, **more: Any) -> bytes:
    """A chunk of Chat as providers write it."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, **more.pop("choice", {})}
    data = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}
    return b"data: " + json.dumps(data, separators=(",", ":"), ensure_ascii=ascii_only).encode() + b"\n\n"


def first(raw: bytes) -> StreamEvent:
    """The event of a chunk that nothing is known before."""
    return read_event("chat", raw)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=8), st.booleans())
def test_a_stream_is_read_as_if_each_chunk_were_the_only_one(texts: list[str], ascii_only: bool) -> None:
    """Whatever the texts: escapes, quotes, line ends, nothing at all."""
    frames = [chunk(text, ascii_only=ascii_only) for text in texts]
    assert StreamReader("chat").feed(b"".join(frames)) == [first(frame) for frame in frames]


@pytest.mark.parametrize(
    "frame",
    [
        chunk("two", choice={"finish_reason": "stop"}),
        chunk("two", choice={"index": 1}),
        chunk("two", usage={"prompt_tokens": 1}),
        chunk('"'),
        chunk("\\"),
        chunk("\n"),
        chunk(""),
        chunk("two").replace(b"two", b"\xff"),
        chunk("two").replace(b"two", b"\x01"),
        chunk("two").replace(b"two", b'two","role":"assistant'),
        b"data: [DONE]\n\n",
        b": ping\n\n",
    ],
)
def test_what_differs_in_more_than_plain_text_is_left_to_the_decoder(frame: bytes) -> None:
    """Another fact, an escape, what is no JSON, or no chunk at all."""
    known = alike(first(chunk("one")))
    assert known is not None
    assert known.read(frame) is None


@pytest.mark.parametrize(
    "frame",
    [
        chunk("one", choice={"finish_reason": "stop"}),
        chunk("one", usage={"prompt_tokens": 1, "completion_tokens": 1}),
        chunk("one", choice={"logprobs": {"content": []}}),
        chunk("one", metadata={"a": 1}),
        chunk("one", name="a \\ b"),
        chunk("one").replace(b'"content":"', b'"content": "'),
        chunk("one", choice={"delta": {"content": "one", "tool_calls": [{}]}}),
        chunk("one", choice={"delta": {"reasoning": "one"}}),
        chunk("one", choice={"delta": {"content": [{"type": "text", "text": "one"}]}}),
        b'data: {"choices":[{"delta":{"content":"one"}},{"delta":{"content":"two"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"one"}}],"content":"one"}\n\n',
        b'data: {"choices":[5],"usage":{"prompt_tokens":1}}\n\n',
        b'data: {"choices":[]}\n\n',
    ],
)
def test_a_chunk_that_says_more_than_text_teaches_nothing(frame: bytes) -> None:
    """What the next one will be like is only known where text is all there is, written as it reads."""
    assert alike(first(frame)) is None


def test_two_events_have_nothing_in_common() -> None:
    """Whoever changes the data of one changes no other."""
    known = alike(first(chunk("one")))
    assert known is not None
    two, three = known.read(chunk("two")), known.read(chunk("three"))
    assert two is not None
    assert two.data is not None
    assert three is not None
    two.data["choices"][0]["delta"]["content"] = "else"
    assert three.data == first(chunk("three")).data
    assert three.kind is EventKind.CONTENT


def test_streams_that_are_never_alike_are_read_all_the_same() -> None:
    """OpenAI's obfuscation differs from chunk to chunk."""
    frames = [chunk("word", obfuscation="x" * length) for length in range(1, 20)]
    assert StreamReader("chat").feed(b"".join(frames)) == [first(frame) for frame in frames]
