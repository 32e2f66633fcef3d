"""Files become pages: a title, chunks that can be cited by their lines, and links. Pure: text in, values out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from smart_model_router_scoring.retrieval.reading.blocks import Block, Link
from smart_model_router_scoring.retrieval.reading.chunks import Chunk, chunks_of
from smart_model_router_scoring.retrieval.reading.html import read_html
from smart_model_router_scoring.retrieval.reading.markdown import read_markdown
from smart_model_router_scoring.retrieval.reading.page import Page, page_of
from smart_model_router_scoring.retrieval.reading.plain import read_plain

READERS: Mapping[str, Callable[[str], list[Block]]] = MappingProxyType(
    {
        ".md": read_markdown,
        ".markdown": read_markdown,
        ".txt": read_plain,
        ".text": read_plain,
        ".rst": read_plain,
        ".html": read_html,
        ".htm": read_html,
    }
)
"""The readers of indexed files, by the suffix of the name."""

__all__ = [
    "READERS",
    "Block",
    "Chunk",
    "Link",
    "Page",
    "chunks_of",
    "page_of",
    "read_html",
    "read_markdown",
    "read_plain",
]
