"""The media of a prompt: found in every dialect, measured where their bytes are, and no part of its text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.domain.media_parts import Medium, media_in
from smart_model_router.domain.request import Dialect, peek
from tests.media_files import b64, data_url, mp3, pdf, png, wav

PNG, PDF, WAV = png(640, 480, 3_000), pdf(7), wav(2, rate=8000)
PNG_URL, PDF_URL = data_url("image/png", PNG), data_url("application/pdf", PDF)


def in_chat(part: dict[str, Any]) -> dict[str, Any]:
    """Ask with one part in Chat."""
    return {"model": "m", "messages": [{"role": "user", "content": [part]}]}


def in_messages(part: dict[str, Any]) -> dict[str, Any]:
    """Ask with one part in what a tool of Messages gave back."""
    result = {"type": "tool_result", "tool_use_id": "t", "content": [part]}
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": [result]}]}


def in_responses(part: dict[str, Any]) -> dict[str, Any]:
    """Ask with one part in Responses."""
    return {"model": "m", "input": [{"role": "user", "content": [part]}]}


def as_base64(media_type: str, raw: bytes) -> dict[str, Any]:
    """Make a source of Messages."""
    return {"type": "base64", "media_type": media_type, "data": b64(raw)}


PICTURE = Medium("image", len(b64(PNG)), len(PNG), 640, 480)
DOCUMENT = Medium("pdf", len(b64(PDF)), len(PDF), pages=7)
SOUND = Medium("audio", len(b64(WAV)), len(WAV), seconds=2.0)


@pytest.mark.parametrize(
    ("dialect", "body", "medium"),
    [
        ("chat", in_chat({"type": "image_url", "image_url": {"url": PNG_URL}}), PICTURE),
        ("chat", in_chat({"type": "image_url", "image_url": PNG_URL}), PICTURE),
        ("chat", in_chat({"type": "file", "file": {"file_data": PDF_URL}}), DOCUMENT),
        ("chat", in_chat({"type": "file", "file": {"file_data": b64(PDF), "filename": "A.PDF"}}), DOCUMENT),
        ("chat", in_chat({"type": "file", "file": {"file_data": PNG_URL}}), PICTURE),
        ("chat", in_chat({"type": "input_audio", "input_audio": {"data": b64(WAV), "format": "wav"}}), SOUND),
        ("chat", in_chat({"type": "audio_url", "audio_url": {"url": data_url("audio/wav", WAV)}}), SOUND),
        ("chat", in_chat({"type": "video_url", "video_url": {"url": "https://x/y.mp4"}}), Medium("video")),
        ("chat", in_chat({"type": "document_url", "document_url": "https://x/y"}), Medium("pdf")),
        ("messages", in_messages({"type": "image", "source": as_base64("image/png", PNG)}), PICTURE),
        ("messages", in_messages({"type": "document", "source": as_base64("application/pdf", PDF)}), DOCUMENT),
        ("messages", in_messages({"type": "document", "source": {"type": "url", "url": "https://x"}}), Medium("pdf")),
        ("messages", in_messages({"type": "document", "source": {"type": "file", "file_id": "f"}}), Medium("file")),
        (
            "messages",
            in_messages(
                {
                    "type": "document",
                    "source": {
                        "type": "content",
                        "content": [{"type": "text", "text": "x"}, {"type": "image", "source": as_base64("", PNG)}],
                    },
                }
            ),
            PICTURE,
        ),
        ("responses", in_responses({"type": "input_image", "image_url": PNG_URL}), PICTURE),
        ("responses", in_responses({"type": "input_image", "file_id": "f"}), Medium("image")),
        ("responses", in_responses({"type": "input_file", "file_data": PDF_URL}), DOCUMENT),
        ("responses", in_responses({"type": "input_file", "file_id": "f", "filename": "a.pdf"}), Medium("pdf")),
        ("responses", in_responses({"type": "input_audio", "input_audio": {"data": b64(WAV)}}), SOUND),
    ],
)
def test_a_medium_is_found_in_every_dialect(dialect: Dialect, body: dict[str, Any], medium: Medium) -> None:
    """Wherever it stands, with its size, and apart from the text."""
    request = peek(dialect, body)
    assert request.media == (medium,)
    assert request.text_bytes == request.prompt_bytes - medium.encoded
    needs = {"image": "images", "pdf": "pdf", "audio": "audio"}
    assert request.needs == ({needs[medium.kind]} if medium.kind in needs else set())


@pytest.mark.parametrize(
    ("part", "medium"),
    [
        (
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,#", "detail": "low"}},
            ("image", None, True),
        ),
        ({"type": "input_image", "image_url": "HTTPS://x", "detail": "low"}, ("image", None, True)),
        ({"type": "audio_url", "audio_url": {"url": "gs://bucket/a.wav"}}, ("audio", None, False)),
        ({"type": "video_url", "video_url": {"url": data_url("video/webm", b"x" * 500_000)}}, ("video", 2.0, False)),
        ({"type": "input_audio", "input_audio": {"data": "A" * 64_000, "format": "pcm16"}}, ("audio", 1.0, False)),
        ({"type": "input_audio", "input_audio": {"data": "A" * 64_000, "format": "webm"}}, ("audio", 3.0, False)),
        ({"type": "input_audio", "input_audio": {"data": b64(mp3(60))}}, ("audio", 60.0, False)),
        ({"type": "file", "file": {"file_data": "data:text/plain;base64,AAAA"}}, ("text", None, False)),
        ({"type": "file", "file": {"file_data": "data:audio/mpeg;base64," + b64(mp3(60))}}, ("audio", 60.0, False)),
        ({"type": "file", "file": {"file_data": "data:without a comma"}}, ("file", None, False)),
    ],
)
def test_what_is_known_of_a_medium_is_kept(part: dict[str, Any], medium: tuple[str, float | None, bool]) -> None:
    """That a rough look is enough; how long a recording is, by its usual rate where its header says nothing."""
    [found] = media_in([part])
    assert found.kind == medium[0]
    assert found.seconds == (None if medium[1] is None else pytest.approx(medium[1], rel=0.01))
    assert found.low is medium[2]


@pytest.mark.parametrize(
    "part",
    [
        {},
        {"type": None},
        {"type": ["image"]},
        {"type": "text", "text": "x"},
        {"type": "document", "source": {"type": "text", "data": "a long text"}},
        {"type": "document", "source": {"type": "content", "content": "a long text"}},
        {"type": "document", "source": {"type": "content", "content": [None, "x", {"type": "text"}]}},
    ],
)
def test_what_is_text_is_no_medium(part: dict[str, Any]) -> None:
    """A document that is written out counts as what it is."""
    assert media_in([part]) == ()


@pytest.mark.parametrize(
    "value", [None, 5, True, [], {}, "", "   ", "data:", "data:,", "\ud800", "é" * 50, ["x"], {"url": 5}]
)
@pytest.mark.parametrize("kind", ["image_url", "input_audio", "file", "source", "file_data", "document_url"])
def test_no_part_can_do_harm(kind: str, value: Any) -> None:
    """Whatever stands where data should: the medium is there, its size is not known, and nothing is raised."""
    for form in ("image_url", "image", "input_audio", "file", "document", "input_file"):
        [found] = media_in([{"type": form, kind: value}])
        assert found.width is found.pages is None
        assert found.seconds is None or found.seconds < 1


def test_data_with_escaped_slashes_is_no_text_either() -> None:
    """Some clients write each slash of a data URL as two characters, and the body goes out as it came."""
    body = in_chat({"type": "image_url", "image_url": {"url": "data:image/png;base64," + "/" * 40_000}})
    written = json.dumps(body).replace("/", "\\/").encode()
    request = peek("chat", body, written=written)
    assert request.prompt_bytes > 80_000
    assert request.text_bytes < 200
