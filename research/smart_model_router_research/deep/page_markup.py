"""A web page taken apart in linear time: its metadata, and its markup without what a reader cannot see.

`html.parser` takes a minute for 60 KB of unclosed tags, so tags are found here.
"""

from __future__ import annotations

import html as entities
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

MOST_CHARACTERS = 5_000_000
"""A page of more is not read."""
_MOST_IN_TAG = 20_000
_MOST_PIECES, _MOST_BEFORE = 20, 200
_TAG = re.compile(r"""<(/?)([a-zA-Z][^\s/>]*)((?:[^>"']++|"[^"]*+"|'[^']*+')*+)>""")
_ATTRIBUTE = re.compile(r"""([^\s=/>"'<]++)(?:\s*+=\s*+("[^"]*+"|'[^']*+'|[^\s>]++))?""")
_NAME = re.compile(r"[a-zA-Z][\w:.-]{0,60}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufdd0-\ufdef\ufffe\uffff]|[\ud800-\udfff]")
_INVISIBLE = re.compile("[\u200b\u2060\ufeff\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")
"""Characters without width, those that turn the direction of text, and the invisible letters of Unicode's tags."""
_VOID = frozenset("area base br col embed hr img input link meta param source track wbr".split())
_RAW = frozenset("iframe noembed noframes script style textarea title xmp".split())
_UNSEEN = frozenset("datalist dialog noscript object template".split())
_INLINE = frozenset(
    "a abbr b bdi bdo cite code data del dfn em font i ins kbd label mark q s samp small span strong sub sup time tt u"
    " var wbr".split()
)
_IMPLIED = {
    "li": ("li",),
    "tr": ("td", "th", "tr"),
    "td": ("td", "th"),
    "th": ("td", "th"),
    "dt": ("dt", "dd"),
    "dd": ("dt", "dd"),
    "option": ("option",),
}
"""The elements that the start of another one ends, the innermost first."""
_OF_HEAD = frozenset("base link meta noscript template".split()) | _RAW
_HIDING = re.compile(
    r"display:none|visibility:(?:hidden|collapse)|opacity:0(?:\.0*)?(?:;|!|$)|font-size:0(?:\.0*)?[a-z%]*(?:;|!|$)|"
    r"(?:left|right|top|bottom|text-indent|margin-left):-[0-9]{4,}|clip:rect\(0|clip-path:inset\((?:50|100)%|"
    r"transform:scale\(0\)|(?:max-)?(?:height|width):0(?:px)?;.{0,200}overflow:hidden"
)
_ASIDE = re.compile(
    r"comment|related|sidebar|recommend|teaser|promo|more-?(?:news|stories|posts)|widget|footer", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class TimeTag:
    """A `<time>` of the main part of a page: its `datetime`, its text, and what its other attributes call it.

    `before` is what stands before it in its block, at most 200 characters.
    """

    datetime: str
    text: str
    about: str
    before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PageMarkup:
    """A page. `metas` are pairs of a name in lower case and a content, in the order of the page.

    `html` is the visible part of its body, as well-formed tags; `text` is its text, a line a block.
    """

    title: str = ""
    metas: tuple[tuple[str, str], ...] = ()
    json_ld: tuple[str, ...] = ()
    times: tuple[TimeTag, ...] = ()
    html: str = ""
    text: str = ""


def take_apart(page: str) -> PageMarkup:
    """Take a page apart. No text is an error: what is no HTML is one block of text."""
    clean = _CONTROL.sub(" ", page[:MOST_CHARACTERS])
    reader = _PageReader(_hidden_names(clean))
    for name, is_end, attributes, between in _pieces(clean):
        if name:
            reader.tag(name, is_end, attributes, between)
        else:
            reader.words(between)
    return reader.markup()


def without_invisible(text: str) -> str:
    """Return a text without the characters that no reader sees."""
    return _INVISIBLE.sub("", text)


def without_comments(markdown: str) -> str:
    """Return a Markdown text without its HTML comments, which no reader sees. Lines, and fenced code, stay."""
    if "<!--" not in markdown:
        return markdown
    kept: list[str] = []
    fence, in_comment = "", False
    for line in markdown.split("\n"):
        mark = "" if in_comment else line.lstrip()[:3]
        if mark in ("```", "~~~") and fence in ("", mark):
            fence = "" if fence else mark
        seen, rest = "", line
        while rest and not fence:
            before, found, rest = rest.partition("-->" if in_comment else "<!--")
            seen += "" if in_comment else before
            in_comment ^= bool(found)
        kept.append(line if fence else seen)
    return "\n".join(kept)


_Piece = tuple[str, bool, str, str]
"""The name of a tag in lower case, whether it ends an element, its attributes and raw content; or, unnamed, a text."""


def _pieces(page: str) -> Iterator[_Piece]:
    at = 0
    while at < len(page):
        start = page.find("<", at)
        start = len(page) if start < 0 else start
        if start > at:
            yield "", False, "", page[at:start]
        if start == len(page):
            return
        if page.startswith("<!--", start):
            at = _behind(page, "-->", start + 4)
        elif page[start + 1 : start + 2] in ("!", "?"):
            at = _behind(page, ">", start)
        elif not page[start + 1 : start + 3].lstrip("/")[:1].isalpha():
            yield "", False, "", "<"
            at = start + 1
        elif (found := _TAG.match(page, start, start + _MOST_IN_TAG)) is None:
            at = _behind(page, ">", start)
        else:
            name, at = found[2].lower(), found.end()
            raw = ""
            if name in _RAW and not found[1]:
                end = re.compile(f"</{re.escape(name)}(?=[\\s/>])", re.IGNORECASE).search(page, at)
                raw, at = page[at : end.start() if end else len(page)], _behind(page, ">", end.end() - 1 if end else at)
                at = at if end else len(page)
            yield name, bool(found[1]), found[3], raw


def _behind(page: str, mark: str, start: int) -> int:
    found = page.find(mark, start)
    return len(page) if found < 0 else found + len(mark)


def _hidden_names(page: str) -> frozenset[str]:
    """Return the selectors `.name` and `#name` of rules of the page's own style sheets that hide."""
    found = set[str]()
    for name, is_end, _, css in _pieces(page) if "<style" in page.lower() else ():
        for rule in css.split("}") if name == "style" and not is_end else ():
            selectors, brace, body = rule.partition("{")
            if brace and "{" not in body and _HIDING.search(_squeezed(body)):
                found.update(selector.strip() for selector in selectors.split(","))
    return frozenset(selector for selector in found if re.fullmatch(r"[.#][\w-]+", selector))


def _squeezed(css: str) -> str:
    return "".join(css[:_MOST_IN_TAG].lower().split())


@dataclass(slots=True)
class _Element:
    name: str
    is_hidden: bool
    is_aside: bool


@dataclass(slots=True)
class _OpenTime:
    datetime: str
    about: str
    before: str
    depth: int
    words: list[str] = field(default_factory=list)


class _PageReader:
    """One reading of a page."""

    def __init__(self, hidden_names: frozenset[str]) -> None:
        self._hidden_names = hidden_names
        self._open: list[_Element] = []
        self._counts: dict[str, int] = {}
        self._title = ""
        self._metas: list[tuple[str, str]] = []
        self._json_ld: list[str] = []
        self._times: list[TimeTag] = []
        self._time: _OpenTime | None = None
        self._html: list[str] = []
        self._text: list[str] = []

    def words(self, text: str) -> None:
        """Keep a text that can be seen."""
        if text.strip():
            self._end_head()
        if self._open and self._open[-1].is_hidden:
            return
        seen = without_invisible(entities.unescape(text))
        self._html.append(entities.escape(seen, quote=False))
        self._text.append(" ".join(seen.split("\n")))
        if self._time is not None:
            self._time.words.append(seen)

    def tag(self, name: str, is_end: bool, written: str, raw: str) -> None:
        """Take a tag, with its raw content where it has one."""
        if is_end:
            self._end(name)
            return
        attributes = _attributes(written)
        self._keep_metadata(name, attributes, raw)
        if name in _RAW:
            return
        if name not in _OF_HEAD:
            self._end_head()
        for ended in _IMPLIED.get(name, ()):
            if self._open and self._open[-1].name == ended:
                self._close(len(self._open) - 1)
        if self._open and self._open[-1].name == "p" and name not in _INLINE | _VOID:
            self._close(len(self._open) - 1)
        above = self._open[-1] if self._open else _Element("", is_hidden=False, is_aside=False)
        is_hidden = above.is_hidden or self._hides(name, attributes)
        if not is_hidden:
            self._html.append(_written(name, attributes))
            self._break(name)
        if name in _VOID:
            return
        self._open.append(_Element(name, is_hidden, above.is_aside or _is_aside(name, attributes)))
        self._counts[name] = self._counts.get(name, 0) + 1
        if name == "time" and not is_hidden and not self._open[-1].is_aside and self._time is None:
            about = " ".join(attributes.get(key, "") for key in ("itemprop", "property", "class")) + " pubdate" * (
                "pubdate" in attributes
            )
            self._time = _OpenTime(attributes.get("datetime", ""), about, self._before(), len(self._open))

    def markup(self) -> PageMarkup:
        """Return what was found."""
        self._close(0)
        lines = (" ".join(line.split()) for line in "".join(self._text).split("\n"))
        return PageMarkup(
            title=self._title or dict(reversed(self._metas)).get("og:title", ""),
            metas=tuple(self._metas),
            json_ld=tuple(self._json_ld),
            times=tuple(self._times),
            html="".join(self._html),
            text="\n".join(line for line in lines if line),
        )

    def _end_head(self) -> None:
        if self._open and self._open[-1].name == "head":
            self._close(len(self._open) - 1)

    def _end(self, name: str) -> None:
        if self._counts.get(name):
            at = next(at for at in range(len(self._open) - 1, -1, -1) if self._open[at].name == name)
            self._close(at)

    def _close(self, at: int) -> None:
        """End the element at this depth, and all inside of it."""
        while len(self._open) > at:
            element = self._open.pop()
            self._counts[element.name] -= 1
            if not element.is_hidden:
                self._html.append(f"</{element.name}>")
                self._break(element.name)
            if self._time is not None and len(self._open) < self._time.depth:
                text = " ".join("".join(self._time.words).split())
                self._times.append(TimeTag(self._time.datetime, text, self._time.about.lower(), self._time.before))
                self._time = None

    def _before(self) -> str:
        """The last words of the block so far."""
        latest = reversed(self._text[-_MOST_PIECES:])
        words = list(takewhile(lambda piece: piece != "\n", latest))
        return " ".join("".join(reversed(words)).split())[-_MOST_BEFORE:]

    def _break(self, name: str) -> None:
        if name not in _INLINE:
            self._text.append("\n")

    def _keep_metadata(self, name: str, attributes: Mapping[str, str], raw: str) -> None:
        if name == "title" and not self._title and not self._counts.get("svg"):
            self._title = " ".join(without_invisible(entities.unescape(raw)).split())
        elif name == "script" and attributes.get("type", "").partition(";")[0].strip().lower() == "application/ld+json":
            self._json_ld.append(raw)
        elif "content" in attributes:
            named = (attributes[key] for key in ("property", "name", "itemprop", "http-equiv") if key in attributes)
            self._metas += [(key.strip().lower(), attributes["content"]) for key in named]

    def _hides(self, name: str, attributes: Mapping[str, str]) -> bool:
        if name in _UNSEEN or name == "head" or "hidden" in attributes or attributes.get("aria-hidden") == "true":
            return True
        if "style" in attributes and _HIDING.search(_squeezed(attributes["style"])):
            return True
        if not self._hidden_names:
            return False
        named = {f".{one}" for one in attributes.get("class", "").split()} | {f"#{attributes.get('id', '')}"}
        return not named.isdisjoint(self._hidden_names)


def _is_aside(name: str, attributes: Mapping[str, str]) -> bool:
    about = f"{attributes.get('class', '')} {attributes.get('id', '')}"
    return name in {"nav", "aside", "footer"} or (name not in {"html", "body"} and _ASIDE.search(about) is not None)


def _attributes(written: str) -> dict[str, str]:
    """Return the attributes of a tag by their names in lower case; of two of one name, the first counts."""
    found: dict[str, str] = {}
    for one in _ATTRIBUTE.finditer(written):
        value = one[2] or ""
        if value[:1] in {'"', "'"} and len(value) > 1 and value[-1] == value[0]:
            value = value[1:-1]
        found.setdefault(one[1].lower(), entities.unescape(value))
    return found


def _written(name: str, attributes: Mapping[str, str]) -> str:
    if not _NAME.fullmatch(name):
        return ""
    kept = (f' {key}="{entities.escape(value)}"' for key, value in attributes.items() if _NAME.fullmatch(key))
    return f"<{name}{''.join(kept)}>"
