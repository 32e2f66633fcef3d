"""Images and files: a data URL or a link in Chat and Responses, a source in Messages; and marks of prompt caching."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.values import is_object, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Losses

_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)(?:;[\w.+-]+=[^;,]*)*;base64,(.*)", re.DOTALL)
_LINK = re.compile(r"https?://", re.IGNORECASE)


def data_url(media_type: str, data: str) -> str:
    """`data` (base64) as a URL."""
    return f"data:{media_type};base64,{data}"


def image_block(url: object, losses: Losses) -> dict[str, Any] | None:
    """Messages' image for a URL; None, and refused, when Messages takes no such URL."""
    found = _DATA_URL.fullmatch(text(url))
    if found is not None:
        return {"type": "image", "source": {"type": "base64", "media_type": found[1], "data": found[2]}}
    if _LINK.match(text(url)):
        return {"type": "image", "source": {"type": "url", "url": url}}
    losses.refuse("image_url", "neither a link nor base64 data")
    return None


def image_url(block: Mapping[str, Any], losses: Losses) -> str | None:
    """The URL of Messages' image; None, and refused, when only its provider has the image."""
    source = mapping(block.get("source"))
    media_type, data = text(source.get("media_type")), text(source.get("data"))
    if source.get("type") == "base64" and media_type and data:
        return data_url(media_type, data)
    if source.get("type") == "url" and source.get("url"):
        return text(source["url"])
    losses.refuse("image", f"a source of type {text(source.get('type'))!r} has no equal")
    return None


def document_block(file: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    """Messages' document for a Chat file; None, and refused, for what only its provider has and other types."""
    found = _DATA_URL.fullmatch(text(file.get("file_data")))
    name = text(file.get("filename"))
    source: dict[str, Any] | None = None
    if found is not None and found[1] == "application/pdf":
        source = {"type": "base64", "media_type": found[1], "data": found[2]}
    elif found is not None and found[1] == "text/plain":
        source = _plain_source(found[2])
    if source is None:
        losses.refuse("file", "neither a PDF nor plain text, as data")
        return None
    return {"type": "document", "source": source, **({"title": name} if name else {})}


def chat_file(block: Mapping[str, Any], losses: Losses) -> dict[str, Any] | None:
    """Chat's file part for Messages' document; None, and refused, when its data is not here."""
    source = mapping(block.get("source"))
    data = text(source.get("data"))
    if block.get("context"):
        losses.refuse("document", "its `context` has no place in other dialects")
    if mapping(block.get("citations")).get("enabled"):
        losses.drop("citations", "not available, answers come without them")
    name = text(block.get("title"))
    if source.get("type") == "base64" and source.get("media_type") == "application/pdf" and data:
        return _file_part(data_url("application/pdf", data), name or "document.pdf")
    if source.get("type") == "text" and data:
        plain = base64.b64encode(data.encode(errors="replace")).decode()
        return _file_part(data_url("text/plain", plain), name or "document.txt")
    losses.refuse("document", f"a source of type {text(source.get('type'))!r} has no equal")
    return None


def _file_part(data: str, name: str) -> dict[str, Any]:
    return {"type": "file", "file": {"file_data": data, "filename": name}}


def _plain_source(data: str) -> dict[str, Any] | None:
    try:
        plain = base64.b64decode(data, validate=True).decode()
    except (binascii.Error, ValueError):
        return None
    return {"type": "text", "media_type": "text/plain", "data": plain} if plain else None


KEY = "cache_control"


def marked(block: dict[str, Any], losses: Losses, *holders: Mapping[str, Any]) -> dict[str, Any]:
    """A Messages block with the mark of the first holder that has one. A mark that is no object is lost."""
    for holder in holders:
        mark = holder.get(KEY)
        if mark is None:
            continue
        if is_object(mark):
            return {**block, KEY: mark}
        losses.drop(KEY, "dropped, an object is needed")
    return block


def lifted(blocks: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """The content of a tool's result without marks, and the last mark: Messages takes it on the result alone."""
    marks = [block[KEY] for block in blocks if KEY in block]
    bare = [{key: value for key, value in block.items() if key != KEY} for block in blocks]
    return bare, {KEY: marks[-1]} if marks else {}
