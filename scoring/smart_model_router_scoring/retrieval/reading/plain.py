"""Plain text: paragraphs between blank lines."""

from __future__ import annotations

from smart_model_router_scoring.retrieval.reading.blocks import Block


def read_plain(text: str) -> list[Block]:
    """A block for each paragraph."""
    blocks: list[Block] = []
    held: list[str] = []
    lines = text.splitlines()
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            held.append(line.rstrip())
        elif held:
            blocks.append(Block("\n".join(held), number - len(held), number - 1))
            held = []
    return blocks
