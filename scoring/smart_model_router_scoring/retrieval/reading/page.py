"""A whole file as the index keeps it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from smart_model_router_scoring.retrieval.reading.blocks import Block, Link
from smart_model_router_scoring.retrieval.reading.chunks import Chunk, chunks_of


@dataclass(frozen=True, slots=True)
class Page:
    """Its chunks in order, and its distinct links."""

    chunks: tuple[Chunk, ...]
    links: tuple[Link, ...]


def page_of(blocks: Sequence[Block]) -> Page:
    """The page that these blocks are."""
    links = dict.fromkeys(link for block in blocks for link in block.links)
    return Page(tuple(chunk for chunk in chunks_of(blocks) if chunk.text), tuple(links))
