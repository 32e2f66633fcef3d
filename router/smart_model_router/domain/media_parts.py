"""The pictures, documents and recordings of a prompt: kind, size, and the bytes of the body that are their data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from smart_model_router.domain.media_headers import FileBytes, ReadBudget, is_pdf, pages, pixels, seconds

MediumKind = Literal["image", "pdf", "audio", "video", "text", "file"]

_KINDS: Mapping[str, MediumKind] = MappingProxyType(
    {
        "image_url": "image",  # Chat
        "image": "image",  # Messages
        "input_image": "image",  # Responses
        "computer_screenshot": "image",  # Responses
        "input_audio": "audio",  # Chat, Responses
        "audio_url": "audio",  # vLLM
        "video_url": "video",  # vLLM, OpenRouter
        "file": "file",  # Chat
        "input_file": "file",  # Responses
        "document": "file",  # Messages
        "document_url": "pdf",  # Mistral
    }
)
"""The kind of a part by its type; the data may say more."""
_MAIN_TYPES: Mapping[str, MediumKind] = MappingProxyType(
    {"image": "image", "audio": "audio", "video": "video", "text": "text"}
)
_HOLDERS = ("image_url", "input_audio", "audio_url", "video_url", "file", "source", "document_url")
_DATA = ("url", "data", "file_data", "image_url")
_LONGEST_HEAD = 200
"""Characters of a data URL before its data."""
_PCM_BYTES = 48_000
"""Bytes a second of raw sound as OpenAI takes it: 24,000 samples of 16 bits."""
_USUAL_BYTES: Mapping[MediumKind, int] = MappingProxyType({"audio": 16_000, "video": 250_000})
"""Bytes a second of a recording whose header cannot be read: 128 kbit/s of sound, 2 Mbit/s of video."""


@dataclass(frozen=True, slots=True)
class Medium:
    """One picture, document or recording. None is unknown.

    `encoded` is the length of its data in the body, `size` the length of the file, both in bytes; 0: the file is
    elsewhere, behind a link or at a provider. `width` and `height` are pixels. `low`: the caller asks for low detail.
    """

    kind: MediumKind
    encoded: int = 0
    size: int = 0
    width: int | None = None
    height: int | None = None
    pages: int | None = None
    seconds: float | None = None
    low: bool = False


def media_in(parts: Iterable[Mapping[str, Any]]) -> tuple[Medium, ...]:
    """The media among the parts of messages, in their order. Raises nothing, whatever the parts are."""
    found: list[Medium] = []
    budget = ReadBudget()
    for part in parts:
        kind = part.get("type")
        if isinstance(kind, str) and kind in _KINDS:
            for inner in _blocks(part):
                medium = _read(inner, _KINDS.get(str(inner.get("type")), "file"), budget)
                if medium is not None:
                    found.append(medium)
    return tuple(found)


def _blocks(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The part itself, or the images of a document that is written in content blocks."""
    source = part.get("source")
    if not isinstance(source, Mapping) or source.get("type") != "content":
        return [part]
    content = source.get("content")
    blocks = content if isinstance(content, (list, tuple)) else ()
    return [block for block in blocks if isinstance(block, Mapping) and block.get("type") == "image"]


def _read(part: Mapping[str, Any], kind: MediumKind, budget: ReadBudget) -> Medium | None:
    holder: object = next((part[key] for key in _HOLDERS if part.get(key)), part)
    inside = holder if isinstance(holder, Mapping) else {}
    form = inside.get("type")
    if form == "text":
        return None  # a plain-text document is text like any other
    text: object = holder if isinstance(holder, str) else next((inside[key] for key in _DATA if inside.get(key)), "")
    given = _named(part, inside, kind)
    low = part.get("detail") == "low" or inside.get("detail") == "low"
    if not isinstance(text, str) or not text or "://" in text[:16]:
        # Messages takes no other document by link than a PDF.
        return Medium("pdf" if given == "file" and form == "url" else given, low=low)
    data = text
    if text.startswith("data:"):
        comma = text.find(",", 0, _LONGEST_HEAD)
        data = text[comma + 1 :] if comma >= 0 else ""
        given = _typed(text[5:comma].lower(), given)
    file = FileBytes(data, budget)
    return _measured(file, given, len(data), low=low, raw=str(inside.get("format")).startswith("pcm"))


def _named(part: Mapping[str, Any], inside: Mapping[str, Any], kind: MediumKind) -> MediumKind:
    """The kind of a file by its name or declared type."""
    name = inside.get("filename") or part.get("filename")
    if isinstance(name, str) and name.lower().endswith(".pdf"):
        return "pdf"
    declared = inside.get("media_type")
    return _typed(declared.lower(), kind) if isinstance(declared, str) else kind


def _typed(media_type: str, kind: MediumKind) -> MediumKind:
    if kind != "file":
        return kind
    if media_type.startswith("application/pdf"):
        return "pdf"
    return _MAIN_TYPES.get(media_type.partition("/")[0], kind)


def _measured(file: FileBytes, kind: MediumKind, encoded: int, *, low: bool, raw: bool) -> Medium:
    if kind in ("file", "pdf") and is_pdf(file):
        return Medium("pdf", encoded, file.size, pages=pages(file))
    if kind in ("file", "image") and (sides := pixels(file)) is not None:
        return Medium("image", encoded, file.size, *sides, low=low)
    if kind in _USUAL_BYTES:
        told = seconds(file) or file.size / (_PCM_BYTES if raw else _USUAL_BYTES[kind])
        return Medium(kind, encoded, file.size, seconds=told)
    return Medium(kind, encoded, file.size, low=low)
