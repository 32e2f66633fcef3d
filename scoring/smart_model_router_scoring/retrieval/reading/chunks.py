"""Blocks become chunks: what one search result is. A chunk ends at a heading, or where it would grow too long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from smart_model_router_scoring.retrieval.reading.blocks import Block

MOST_CHARACTERS = 1600
"""About 400 tokens of English: long enough to answer, short enough that five of them fit any prompt."""
_SEPARATOR = " > "


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive lines of a file. `heading` is the path of headings above it, outermost first."""

    heading: str
    text: str
    first_line: int
    last_line: int
    anchors: tuple[str, ...] = ()


def chunks_of(blocks: Iterable[Block]) -> Iterator[Chunk]:
    """The chunks of a file, in order. A heading without text of its own belongs to the chunk after it."""
    path: list[tuple[int, str]] = []
    held: list[Block] = []
    for block in blocks:
        if block.level:
            if any(not one.level for one in held):
                yield _chunk(path, held)
                held = []
            path = [(level, text) for level, text in path if level < block.level] + [(block.level, block.text)]
            held.append(block)
            continue
        for piece in _pieces(block):
            if any(not one.level for one in held) and sum(len(one.text) + 2 for one in held) + len(piece.text) > (
                MOST_CHARACTERS
            ):
                yield _chunk(path, held)
                held = []
            held.append(piece)
    if held:
        yield _chunk(path, held)


def _chunk(path: list[tuple[int, str]], held: list[Block]) -> Chunk:
    return Chunk(
        _SEPARATOR.join(text for _, text in path if text),
        "\n\n".join(block.text for block in held if block.text),
        held[0].first_line,
        held[-1].last_line,
        tuple(anchor for block in held for anchor in block.anchors),
    )


def _pieces(block: Block) -> Iterator[Block]:
    """The block itself, or parts of one that is too long: cut between lines, else between words, else anywhere."""
    if len(block.text) <= MOST_CHARACTERS:
        yield block
        return
    lines = block.text.split("\n")
    in_step = len(lines) == block.last_line - block.first_line + 1
    first = block.first_line
    held: list[str] = []
    for number, line in enumerate(lines):
        here = block.first_line + number if in_step else block.last_line
        for part in _cut(line):
            if held and sum(map(len, held)) + len(held) + len(part) > MOST_CHARACTERS:
                yield replace(block, text="\n".join(held), first_line=first, last_line=max(first, here - 1))
                held, first = [], here if in_step else first
            held.append(part)
    yield replace(block, text="\n".join(held), first_line=first, last_line=block.last_line)


def _cut(line: str) -> Iterator[str]:
    while len(line) > MOST_CHARACTERS:
        space = line.rfind(" ", MOST_CHARACTERS // 2, MOST_CHARACTERS)
        end = space if space > 0 else MOST_CHARACTERS
        yield line[:end]
        line = line[end:].lstrip(" ")
    yield line
