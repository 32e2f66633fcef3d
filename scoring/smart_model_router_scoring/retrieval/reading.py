"""Texts become pages: chunks that can be cited by their lines, and links. Pure: text in, values out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser
from types import MappingProxyType
from typing import TYPE_CHECKING
from urllib.parse import unquote

from smart_model_router_scoring.retrieval.decoding import Tell

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

__all__ = [
    "READERS",
    "Block",
    "Chunk",
    "Link",
    "Page",
    "chunks_of",
    "page_of",
    "page_of_pdf",
    "read_html",
    "read_markdown",
    "read_plain",
]


@dataclass(frozen=True, slots=True)
class Link:
    """The target of a link, as it is written, and the part after `#`."""

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


MOST_CHARACTERS = 1600
"""About 400 tokens of English: long enough to answer, short enough that five of them fit any prompt."""
_SEPARATOR = " > "


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive lines of a text. `heading` is the path of headings above it, outermost first.

    `page` is that of a PDF, else 0.
    """

    heading: str
    text: str
    first_line: int
    last_line: int
    anchors: tuple[str, ...] = ()
    page: int = 0


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


@dataclass(frozen=True, slots=True)
class Page:
    """The text that its chunks are lines of, its chunks in order, and its distinct links."""

    text: str
    chunks: tuple[Chunk, ...]
    links: tuple[Link, ...] = ()


def page_of(text: str, blocks: Sequence[Block]) -> Page:
    """The page that these blocks of a text are."""
    links = dict.fromkeys(link for block in blocks for link in block.links)
    return Page(text, tuple(chunk for chunk in chunks_of(blocks) if chunk.text), tuple(links))


def page_of_pdf(title: str, texts: Sequence[str]) -> Page:
    """The page that the pages of a PDF are: its text is theirs, one below the other. No chunk is of two of them."""
    lines: list[str] = []
    chunks: list[Chunk] = []
    for number, text in enumerate(texts, start=1):
        shift = len(lines)
        whole = text.encode("utf-8", "replace").decode()  # fonts may map to halves of surrogates
        found = whole.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
        blocks = [
            replace(one, first_line=one.first_line + shift, last_line=one.last_line + shift)
            for one in read_plain(found, ignored)
        ]
        chunks += [replace(one, heading=title, page=number) for one in chunks_of(blocks)]
        lines += found.split("\n")
    return Page("\n".join(lines), tuple(chunks))


def ignored(code: str, detail: str) -> None:
    """Take a note and forget it."""


def read_plain(text: str, tell: Tell = ignored) -> list[Block]:
    """A block for each paragraph."""
    del tell
    blocks: list[Block] = []
    held: list[str] = []
    lines = text.split("\n")
    for number, line in enumerate([*lines, ""], start=1):
        if line.strip():
            held.append(line.rstrip())
        elif held:
            blocks.append(Block("\n".join(held), number - len(held), number - 1))
            held = []
    return blocks


_SILENT = frozenset({"script", "style", "template", "nav", "noscript", "svg", "head"})
_INLINE = frozenset(
    "a abbr b bdi bdo cite code data dfn em font i img input kbd label mark q s samp small span strong sub sup time u"
    " var wbr".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


def read_html(text: str, tell: Tell = ignored) -> list[Block]:
    """A block for each heading and each run of text between block elements. `<title>` is a heading of its own."""
    del tell
    reader = _Reader()
    reader.feed(text)
    reader.close()
    reader.end_block()
    return reader.blocks


class _Reader(HTMLParser):
    """Collects text until an element that starts a new block."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.blocks: list[Block] = []
        self._silent: list[str] = []
        self._in_title = False
        self._level = 0
        self._pieces: list[str] = []
        self._links: list[Link] = []
        self._anchors: list[str] = []
        self._first = 1
        self._last = 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """A block element ends what came before; links and ids are kept wherever they stand."""
        if tag == "title" and "svg" not in self._silent:
            self._in_title = True
            self.end_block(1)
            return
        if tag in _SILENT:
            self.end_block()
            self._silent.append(tag)
        if self._silent:
            return
        if tag not in _INLINE:
            self.end_block(_HEADINGS.get(tag, 0))
        found = {name: value for name, value in attrs if value}
        if tag == "a" and "href" in found:
            link = link_of(unquote(found["href"]))
            if link is not None:
                self._links.append(link)
        self._anchors += [found[name] for name in ("id", "name") if name in found and (name == "id" or tag == "a")]

    def handle_endtag(self, tag: str) -> None:
        """The end of a block element ends its text."""
        if tag == "title" and self._in_title:
            self.end_block()
            self._in_title = False
        elif tag in self._silent:
            # What was left open inside it ends with it.
            del self._silent[self._silent.index(tag) :]
        elif not self._silent and tag not in _INLINE:
            self.end_block()

    def handle_data(self, data: str) -> None:
        """Text, unless it is inside something silent."""
        if (self._silent and not self._in_title) or not data:
            return
        if data.strip():
            line = self.getpos()[0]
            if not "".join(self._pieces).strip():
                self._first = line + data[: len(data) - len(data.lstrip())].count("\n")
            self._last = line + data.rstrip().count("\n")
        self._pieces.append(data)

    def parse_marked_section(self, i: int, report: int = 1) -> int:
        """`<![...]>` is no text; Python's own method fails on one that it does not know."""
        del report
        end = self.rawdata.find(">", i)
        return end + 1 if end >= 0 else -1

    def end_block(self, level: int = 0) -> None:
        """Keep what was collected, and begin a block of `level`."""
        said = " ".join("".join(self._pieces).split())
        if said:
            self.blocks.append(
                Block(said, self._first, self._last, self._level, tuple(self._anchors), tuple(self._links))
            )
            self._anchors, self._links = [], []
        self._pieces = []
        self._level = level


_COMMENT = re.compile(r"\A\s*<!--.*?-->\s*\Z", re.DOTALL)
_HTML_LINK = re.compile(r"""<a\s[^>]*?href\s*=\s*["']([^"'>]+)["']""", re.IGNORECASE)
_HTML_ANCHOR = re.compile(r"""<[a-z][\w-]*\s[^>]*?(?:id|name)\s*=\s*["']([^"'>]+)["']""", re.IGNORECASE)
_NOT_IN_A_SLUG = re.compile(r"[^\w\- ]")


def read_markdown(text: str, tell: Tell = ignored) -> list[Block]:
    """A block for each heading and each other thing of the top level; front matter gives a heading and its words."""
    lines = text.split("\n")
    blocks: list[Block] = []
    slugs: dict[str, int] = {}
    for tokens in _groups(_parser().parse(text)):
        first, last = tokens[0].map or [0, 0]
        if tokens[0].type == "front_matter":
            blocks += _front_matter(tokens[0].content, first + 1, last, tell)
            continue
        while last > first and not lines[last - 1].strip():
            last -= 1
        level = int(tokens[0].tag[1]) if tokens[0].type == "heading_open" else 0
        html = " ".join(_html(tokens))
        anchors = tuple(_HTML_ANCHOR.findall(html))
        said = _visible(tokens) if level else _COMMENT.sub("", "\n".join(lines[first:last]))
        if level:
            anchors = (_slug(said, slugs), *anchors)
        if said.strip() or anchors:
            blocks.append(Block(said, first + 1, last, level, anchors, tuple(_links(tokens, html))))
    return blocks


def _front_matter(yaml: str, first: int, last: int, tell: Tell) -> Iterator[Block]:
    """The title as a heading above the whole document, and what describes it; the text as it is if it is no YAML."""
    from smart_model_router_scoring.retrieval.front_matter import (  # noqa: PLC0415 - YAML, and few documents have any
        NoFrontMatter,
        front_matter_of,
    )

    try:
        found = front_matter_of(yaml)
    except NoFrontMatter as error:
        tell("front_matter", f"read as text: {error}")
        yield Block(yaml, first, last)
        return
    if found.title:
        yield Block(found.title, first, last, level=1)
    if found.text:
        yield Block(found.text, first, last)


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - the extra `scoring`, and only indexing pays
    from mdit_py_plugins.front_matter import front_matter_plugin  # noqa: PLC0415

    parser = MarkdownIt("commonmark").enable("table").use(front_matter_plugin)
    parser.core.ruler.at("inline", _parse_inline)
    return parser


def _parse_inline(state: StateCore) -> None:
    """Parse the words of headings, and of other blocks those that may hold a link or HTML: half the time of parsing."""
    before, parser = "", _parser()
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            if before == "heading_open" or "[" in token.content or "<" in token.content:
                parser.inline.parse(token.content, parser, state.env, token.children)
        before = token.type


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


def _links(tokens: Sequence[Token], html: str) -> Iterator[Link]:
    written = [str(token.attrs.get("href", "")) for token in _inline(tokens) if token.type == "link_open"]
    for href in [*written, *_HTML_LINK.findall(html)]:
        link = link_of(unquote(href))
        if link is not None:
            yield link


def _slug(heading: str, taken: dict[str, int]) -> str:
    """The anchor that GitHub gives a heading."""
    slug = _NOT_IN_A_SLUG.sub("", heading.strip().lower()).replace(" ", "-")
    count = taken.get(slug, 0)
    taken[slug] = count + 1
    return f"{slug}-{count}" if count else slug


READERS: Mapping[str, Callable[[str, Tell], list[Block]]] = MappingProxyType(
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
"""The readers of texts, by the suffix of the name."""
