"""Server-sent events: the same frames come out however the bytes were cut."""

from __future__ import annotations

import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.wires.dialects import OVERSIZED_FRAME, SseParser, fields

STREAM = b": hello\n\nevent: a\ndata: 1\n\ndata: 2\r\n\r\ndata: 3\r\rdata: 4\ndata: 5\n\n"
FRAMES = [
    (b"", None),
    (b"a", b"1"),
    (b"", b"2"),
    (b"", b"3"),
    (b"", b"4\n5"),
]


def parse(parser: SseParser, *chunks: bytes) -> list[tuple[bytes, bytes | None]]:
    """The event type and data of every frame."""
    return [fields(frame) for chunk in chunks for frame in parser.feed(chunk)]


@given(cuts=st.lists(st.integers(0, len(STREAM)), max_size=len(STREAM)))
def test_chunking_changes_nothing(cuts: list[int]) -> None:
    """LF, CRLF and CR streams give the same events whatever the chunks, cuts inside a line end included."""
    edges = [0, *sorted(cuts), len(STREAM)]
    chunks = [STREAM[a:b] for a, b in pairwise(edges)]
    assert parse(SseParser(), *chunks) == FRAMES


def test_one_byte_at_a_time() -> None:
    """The worst chunking there is gives the same events."""
    assert parse(SseParser(), *(bytes([byte]) for byte in STREAM)) == FRAMES


def test_a_frame_is_what_came() -> None:
    """A frame carries its own bytes, blank line included, so that it can be passed on unchanged."""
    frame = b"event: a\nid: 7\ndata: {}\n\n"
    assert SseParser().feed(frame + frame) == [frame, frame]


@pytest.mark.parametrize("chunks", [[b"\xef\xbb\xbfdata: 1\n\n"], [b"\xef", b"\xbb\xbfda", b"ta: 1\n\n"]])
def test_a_byte_order_mark_is_dropped(chunks: list[bytes]) -> None:
    """A stream may begin with a byte order mark, in one piece or two."""
    assert parse(SseParser(), *chunks) == [(b"", b"1")]


def test_surplus_blank_lines_are_nothing() -> None:
    """Blank lines between events are no events."""
    assert parse(SseParser(), b"\n\ndata: 1\n\n\n\ndata: 2\n\n") == [(b"", b"1"), (b"", b"2")]


def test_the_rest_is_kept_for_the_end() -> None:
    """An unfinished frame is not an event; flush hands it over once."""
    parser = SseParser()
    assert parser.feed(b"data: 1\n\ndata: 2") == [b"data: 1\n\n"]
    assert parser.flush() == b"data: 2"
    assert parser.flush() == b""


def test_a_flush_of_line_ends_is_nothing() -> None:
    """Trailing blank lines leave no rest."""
    parser = SseParser()
    parser.feed(b"data: 1\n\n\n")
    assert parser.flush() == b""


def test_an_endless_frame_is_dropped_and_the_next_one_read() -> None:
    """A frame over the cap becomes one marker; what follows its blank line is read as ever."""
    parser = SseParser(max_frame_bytes=100)
    frames = [frame for chunk in [b"data: "] + [b"x" * 40] * 10 for frame in parser.feed(chunk)]
    assert frames == [OVERSIZED_FRAME]
    assert parser.feed(b"xx\n\ndata: 1\n\n") == [b"data: 1\n\n"]


def test_an_oversized_frame_in_one_chunk_is_dropped_too() -> None:
    """The cap holds for a frame that arrives complete."""
    assert SseParser(max_frame_bytes=10).feed(b"data: " + b"x" * 40 + b"\n\ndata: 1\n\n") == [
        OVERSIZED_FRAME,
        b"data: 1\n\n",
    ]


def test_the_rest_of_a_dropped_frame_is_dropped() -> None:
    """A stream that ends inside an oversized frame leaves nothing."""
    parser = SseParser(max_frame_bytes=10)
    parser.feed(b"data: " + b"x" * 40)
    assert parser.flush() == b""


def test_memory_is_bounded() -> None:
    """A megabyte-sized cap holds against a hundred megabytes without a line end."""
    parser = SseParser(max_frame_bytes=1_000_000)
    chunk = b"x" * 65536
    tracemalloc.start()
    for _ in range(1600):
        parser.feed(chunk)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4_000_000
