"""Markdown (CommonMark with tables): the blocks of its top level, as markdown-it-py finds them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING
from urllib.parse import unquote

from smart_model_router_scoring.retrieval.reading.blocks import Block, Link, link_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n.*?\n(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_COMMENT = re.compile(r"\A\s*<!--.*?-->\s*\Z", re.DOTALL)
_HTML_LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"'>]+)["']""", re.IGNORECASE)
_HTML_ANCHOR = re.compile(r"""<[a-z][\w-]*\s[^>]*?(?:id|name)\s*=\s*["']([^"'>]+)["']""", re.IGNORECASE)
_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")


def read_markdown(text: str) -> list[Block]:
    """A block for each heading and each other thing of the top level. Front matter is left out."""
    plain = _FRONT_MATTER.sub(lambda found: "\n" * found[0].count("\n"), text)
    lines = plain.splitlines()
    blocks: list[Block] = []
    slugs: dict[str, int] = {}
    for tokens in _groups(_parser().parse(plain)):
        first, last = tokens[0].map or [0, 0]
        while last > first and not lines[last - 1].strip():
            last -= 1
        level = int(tokens[0].tag[1]) if tokens[0].type == "heading_open" else 0
        anchors = tuple(_HTML_ANCHOR.findall(" ".join(_html(tokens))))
        said = _visible(tokens) if level else _COMMENT.sub("", "\n".join(lines[first:last]))
        if level:
            anchors = (_slug(said, slugs), *anchors)
        if said.strip() or anchors:
            blocks.append(Block(said, first + 1, last, level, anchors, tuple(_links(tokens))))
    return blocks


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - the extra `scoring`, and only indexing pays

    return MarkdownIt("commonmark").enable("table")


def _groups(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens of each block of the top level."""
    held: list[Token] = []
    depth = 0
    for token in tokens:
        held.append(token)
        depth += token.nesting
        if depth == 0:
            yield held
            held = []


def _inline(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield from token.children or ()


def _html(tokens: Sequence[Token]) -> Iterator[str]:
    yield from (token.content for token in [*tokens, *_inline(tokens)] if token.type in {"html_block", "html_inline"})


def _visible(tokens: Sequence[Token]) -> str:
    """The words of a heading without its markup."""
    words = (token.content if token.type in {"text", "code_inline"} else " " for token in _inline(tokens))
    return " ".join("".join(words).split())


def _links(tokens: Sequence[Token]) -> Iterator[Link]:
    written = [str(token.attrs.get("href", "")) for token in _inline(tokens) if token.type == "link_open"]
    for href in [*written, *_HTML_LINK.findall(" ".join(_html(tokens)))]:
        link = link_of(unquote(href))
        if link is not None:
            yield link


def _slug(heading: str, taken: dict[str, int]) -> str:
    """The anchor that GitHub gives a heading."""
    slug = _NOT_IN_A_SLUG.sub("", heading.strip().lower()).replace(" ", "-")
    count = taken.get(slug, 0)
    taken[slug] = count + 1
    return f"{slug}-{count}" if count else slug
