"""The sizes of files, as their headers tell: what is true is read, and what is not does no harm."""

from __future__ import annotations

import struct
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.media_headers import FileBytes, ReadBudget, pages, pixels, seconds
from tests import media_files as make


def file(raw: bytes) -> FileBytes:
    """Read bytes as they come in a body."""
    return FileBytes(make.b64(raw))


@given(st.binary(max_size=100), st.integers(0, 120), st.integers(0, 120), st.booleans())
def test_a_slice_of_base64_is_that_slice_of_the_bytes(raw: bytes, start: int, count: int, wrapped: bool) -> None:
    """Wherever it begins, however long it is, in one line or in many."""
    text = make.b64(raw)
    found = FileBytes("\n".join(text[at : at + 76] for at in range(0, len(text), 76)) if wrapped else text)
    assert found.at(start, count) == raw[start : start + count]
    assert found.size == len(raw)


@pytest.mark.parametrize(
    ("raw", "size"),
    [
        (make.png(640, 480), (640, 480)),
        (make.png(1, 2**30), (1, 2**30)),
        (make.gif(320, 200), (320, 200)),
        (make.jpeg(4032, 3024), (4032, 3024)),
        (make.jpeg(4032, 3024, before=40, frame=0xC2), (4032, 3024)),
        (make.webp(1000, 700), (1000, 700)),
        (make.webp(1000, 700, "VP8 "), (1000, 700)),
        (make.webp(1000, 700, "VP8L"), (1000, 700)),
    ],
    ids=["png", "png-tall", "gif", "jpeg", "jpeg-with-notes", "webp", "webp-lossy", "webp-lossless"],
)
def test_a_picture_tells_its_pixels(raw: bytes, size: tuple[int, int]) -> None:
    """In each of the four forms, also behind megabytes of a camera's notes."""
    assert pixels(file(raw)) == size
    assert pages(file(raw)) is None
    assert seconds(file(raw)) is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\x89PNG\r\n\x1a\n",
        make.png(0, 0),
        make.png(0, 100),
        make.png(100, 100)[:20],
        make.gif(0, 5),
        make.png(2**32 - 1, 2**32 - 1),
        make.jpeg(0, 0),
        make.jpeg(10, 10, before=3)[:70_000],
        make.jpeg(10, 10, frame=0xC4),
        b"\xff\xd8" + b"\xff" * 50_000,
        b"\xff\xd8\xff\xe0\x00\x00" * 9_000,
        make.webp(5, 5, "VP8 ")[:20],
        b"RIFF\0\0\0\0WEBPVP9 " + b"\1" * 40,
        b"<svg width='10' height='10'/>",
    ],
)
def test_a_picture_that_tells_no_size_has_none(raw: bytes) -> None:
    """Cut short, empty, larger than any, made of nothing but fillings, or of a form that nobody knows."""
    assert pixels(file(raw)) is None


@pytest.mark.parametrize("form", ["plain", "packed", "linear", "flat"])
@pytest.mark.parametrize("filler", [1_000, 5_000_000])
def test_a_document_tells_its_pages(form: str, filler: int) -> None:
    """However it writes them, also with megabytes of pictures between; bookmarks are none."""
    assert pages(file(make.pdf(50, form, filler))) == 50
    assert pixels(file(make.pdf(50, form))) is None
    assert seconds(file(make.pdf(50, form))) is None


def test_a_document_that_tells_no_pages_has_none() -> None:
    """No document at all, one that is encrypted, one that counts none."""
    assert pages(file(make.png(5, 5))) is None
    assert pages(file(b"%PDF-1.7\n" + b"\x07" * 5_000)) is None
    assert pages(file(make.pdf(0))) is None
    assert pages(file(b"%PDF-1.7 /Type/ObjStm stream\n" + b"\x07" * 5_000)) is None


@pytest.mark.parametrize("claim", [b"/Type/Pages/Count 999999999", b"/Linearized 1/N 999999999"])
def test_a_document_has_no_more_pages_than_its_bytes_could_hold(claim: bytes) -> None:
    """A billion pages in a kilobyte are 256 at most."""
    found = pages(file((b"%PDF-1.7 <<" + claim + b">>").ljust(1_024)))
    assert found == 256


def test_the_files_of_a_request_are_read_within_one_budget() -> None:
    """Eight megabytes in all: what comes after is of unknown size, and costs nothing to look at."""
    document = make.b64(make.pdf(50, "packed", 600_000))
    budget = ReadBudget()
    counts = [pages(FileBytes(document, budget)) for _ in range(40)]
    known = [count for count in counts if count is not None]
    assert 8 <= len(known) <= 14
    assert counts == [50] * len(known) + [None] * (40 - len(known))


def test_a_document_is_unpacked_no_further_than_it_takes() -> None:
    """A thousand streams that each stand for a gigabyte of zeros cost a few megabytes, for a moment."""
    bomb = zlib.compress(b"\0" * 20_000_000, 9)
    raw = b"%PDF-1.7 " + (b"/Type/ObjStm>>stream\n" + bomb + b"\nendstream ") * 40
    tracemalloc.start()
    try:
        assert pages(file(raw)) is None
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "raw",
    [
        make.wav(30, rate=8000),
        make.wav(30, rate=8000, says=0xFFFFFFFF),
        make.mp3(30),
        make.mp3(30, tag=70_000),
        make.mp3(30, xing=True, kbits=320),
        make.flac(30),
        make.ogg(30),
        make.mp4(30),
        make.mp4(30, wide=True, moov_first=False),
    ],
    ids=["wav", "wav-unbounded", "mp3", "mp3-with-tag", "mp3-vbr", "flac", "opus", "m4a", "m4a-at-the-end"],
)
def test_a_recording_tells_its_seconds(raw: bytes) -> None:
    """In five forms, however its header is written."""
    found = seconds(file(raw))
    assert found is not None
    # A recording of 2,000 bytes cannot be 30 s long.
    assert found == pytest.approx(min(30, len(raw) / 250), rel=0.01)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        make.wav(1)[:30],
        make.wav(0),
        b"RIFF\0\0\0\0WAVE" + b"junk\0\0\0\0" * 9_000,
        b"RIFF\0\0\0\0WAVEdata" + struct.pack("<I", 100) + b"\0" * 100,
        b"OggS" + b"\0" * 100,
        b"fLaC" + b"\0" * 100,
        b"ID3\x04\0\0\x7f\x7f\x7f\x7f" + b"\0" * 100,
        b"\xff\xfb\xf0\xff" + b"\0" * 100,
        make.mp4(30)[:40],
        b"\0\0\0\x08ftyp" + b"\0\0\0\0free" * 9_000,
        make.png(10, 10),
    ],
)
def test_a_recording_that_tells_no_seconds_has_none(raw: bytes) -> None:
    """Cut short, silent, made of nothing but empty chunks, or none at all."""
    assert seconds(file(raw)) is None


_HEADS = (
    make.png(9, 9), make.gif(9, 9), make.jpeg(9, 9), make.webp(9, 9), make.webp(9, 9, "VP8 "), make.webp(9, 9, "VP8L"),
    make.pdf(3), make.pdf(3, "packed"), make.wav(0.01), make.mp3(0.1), make.flac(1)[:99], make.ogg(1)[:99],
    make.mp4(1)[:99],
)  # fmt: skip


@given(st.sampled_from(_HEADS), st.binary(max_size=200), st.integers(0, 100), st.text(max_size=30))
def test_whatever_a_file_says_reading_it_raises_nothing_and_is_bounded(
    head: bytes, noise: bytes, at: int, garbage: str
) -> None:
    """Headers overwritten by noise, and base64 that is none."""
    text = make.b64(head[:at] + noise + head[at + len(noise) // 2 :])
    for found in (FileBytes(text), FileBytes(text[:at] + garbage + text[at:]), FileBytes(garbage)):
        sides, count, length = pixels(found), pages(found), seconds(found)
        assert sides is None or all(0 < side <= 2**30 for side in sides)
        assert count is None or 0 < count <= len(text)
        assert length is None or 0 < length <= len(text)
