"""HTML: the text of its blocks, in order; scripts, styles and navigation are no text."""

from __future__ import annotations

from html.parser import HTMLParser
from urllib.parse import unquote

from smart_model_router_scoring.retrieval.reading.blocks import Block, Link, link_of

_SILENT = frozenset({"script", "style", "template", "nav", "noscript", "svg", "head"})
_INLINE = frozenset(
    "a abbr b bdi bdo cite code data dfn em font i img input kbd label mark q s samp small span strong sub sup time u"
    " var wbr".split()
)
_HEADINGS = {f"h{level}": level for level in range(1, 7)}


def read_html(text: str) -> list[Block]:
    """A block for each heading and each run of text between block elements. `<title>` is a heading of its own."""
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
