"""Chunks that differ in their text alone: read without decoding, and read the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.wires.dialects import StreamReader, alike, read_event, text_of


def chunk(text: str, *, ascii_only: bool = False, **more: Any) -> bytes:
    """A chunk of Chat as providers write it."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": None, **more.pop("choice", {})}
    data = {"id": "c", "object": "chat.completion.chunk", "model": "m", "choices": [choice], **more}
    return b"data: " + json.dumps(data, separators=(",", ":"), ensure_ascii=ascii_only).encode() + b"\n\n"


def first(raw: bytes) -> StreamEvent:
    """The event of a chunk that nothing is known before."""
    return read_event("chat", raw)


def read(frames: list[bytes]) -> list[StreamEvent]:
    """The events of a stream."""
    return StreamReader("chat").feed(b"".join(frames))


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=2, max_size=8), st.booleans())
def test_a_stream_is_read_as_if_each_chunk_were_the_only_one(texts: list[str], ascii_only: bool) -> None:
    """Whatever the texts: escapes, quotes, line ends, nothing at all."""
    frames = [chunk(text, ascii_only=ascii_only) for text in texts]
    assert read(frames) == [first(frame) for frame in frames]


@given(
    st.lists(
        st.sampled_from(["a", "two words", "größer", '"', "\n", "\r\n\r\n", "\x7f\u2028"]), min_size=3, max_size=9
    ),
    st.lists(st.integers(1, 400), min_size=1, max_size=9),
    st.sampled_from([b"\n", b"\r\n", b"\r"]),
)
def test_a_stream_is_read_the_same_however_it_is_cut(texts: list[str], sizes: list[int], line_end: bytes) -> None:
    """Frames that come one by one, in halves and together, whatever ends their lines."""
    frames = [chunk(text).replace(b"\n", line_end) for text in texts]
    whole, reader, events, at = b"".join(frames), StreamReader("chat"), [], 0
    sizes = [*sizes, *map(len, frames)]
    while at < len(whole):
        events += reader.feed(whole[at : at + sizes[0]])
        at, sizes = at + sizes[0], [*sizes[1:], sizes[0]]
    events += reader.end()
    assert [event.data for event in events] == [first(frame).data for frame in frames]


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
        chunk("one").replace(b'"content":"', b'"content":\t"'),
        chunk("one", choice={"index": 1}),
        chunk("one", choice={"delta": {"content": "one", "reasoning": "two"}}),
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


@pytest.mark.parametrize("choice", [{}, {"index": 0.0}, {"delta": {"role": "assistant", "content": "one"}}])
@pytest.mark.parametrize("space", [b"", b" "])
def test_a_chunk_that_fits_is_the_event_that_the_decoder_reads(choice: dict[str, Any], space: bytes) -> None:
    """With its text beside its data, with and without the space that Python writes behind a colon."""
    one = chunk("one", choice=choice).replace(b'"content":', b'"content":' + space)
    known = alike(first(one))
    assert known is not None
    assert known.read(one.replace(b"one", b"two")) == first(one.replace(b"one", b"two"))


ALONE = {"content": "one", "role": "assistant", "tool_calls": None, "refusal": ""}


@pytest.mark.parametrize(
    ("choices", "told"),
    [
        ([{"index": 0, "delta": ALONE}], "one"),
        ([{"delta": ALONE, "finish_reason": "stop"}], "one"),
        ([{"index": 1, "delta": ALONE}], ""),
        ([{"index": 0, "delta": {"reasoning": "one"}}], ""),
        ([{"index": 0, "delta": ALONE}, {"index": 1, "delta": {}}], None),
        ([{"index": 0, "delta": {**ALONE, "content": [{"type": "text", "text": "one"}]}}], None),
        *(
            ([{"index": 0, "delta": {**ALONE, key: value}}], None)
            for key, value in {
                "tool_calls": [{"index": 0}],
                "function_call": {"name": "f"},
                "refusal": "no",
                "audio": {"data": "a"},
                "reasoning": "so",
                "reasoning_details": [{}],
                "an_unknown_key": 1,
            }.items()
        ),
    ],
)
def test_the_text_of_an_event_is_all_that_it_adds(choices: list[dict[str, Any]], told: str | None) -> None:
    """Readers of `text` look no further: a call, a thought or a second choice beside it makes it unknown."""
    event = first(b"data: " + json.dumps({"choices": choices}).encode() + b"\n\n")
    assert event.kind is EventKind.CONTENT
    assert event.text == told
    assert told is None or text_of("chat", event.data or {}) == told


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
    assert read(frames) == [first(frame) for frame in frames]
