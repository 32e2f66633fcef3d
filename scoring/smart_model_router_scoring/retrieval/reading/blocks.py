"""The result of every reader: blocks of text with their lines, headings among them, and the links inside."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Link:
    """Where a link leads, as it is written, and the part after `#`."""

    target: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph, a list, a table, a piece of code; or a heading (`level` 1 to 6, else 0). Lines count from 1."""

    text: str
    first_line: int
    last_line: int
    level: int = 0
    anchors: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()


def link_of(href: str) -> Link | None:
    """The link that `href` spells; None for one that leads out of the folder (a scheme, a host)."""
    target, _, anchor = href.strip().partition("#")
    scheme, colon, _ = target.partition(":")
    if target.startswith("//") or (colon and scheme.replace("+", "").replace("-", "").isalnum()):
        return None
    return Link(target.partition("?")[0], anchor)
