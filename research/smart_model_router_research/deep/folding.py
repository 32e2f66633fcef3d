"""Typography folded away: texts that differ only in spaces, dashes, quotation marks and soft hyphens are equal."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property, lru_cache

from smart_model_router_research.deep.headings import HeadingPaths

_SINGLE = "\u2018\u2019\u201a\u201b\u00b4\u0060"
_DOUBLE = "\u201c\u201d\u201e\u201f\u00ab\u00bb"
_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2015\u2212"
_GONE = "\u00ad\u200b\u200c\u200d\u2060\ufeff"
_FOLDED = str.maketrans(
    {**dict.fromkeys(_SINGLE, "'"), **dict.fromkeys(_DOUBLE, '"'), **dict.fromkeys(_DASHES, "-")}
    | dict.fromkeys(_GONE, None)
    # NFKC makes 102 of 10², and 11/2 of 1½
    | {"⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]: f"^{digit}" for digit in range(10)}
    | {fraction: f" {unicodedata.normalize('NFKC', fraction)}" for fraction in "¼½¾⅐⅑⅒⅓⅔⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞"}
)
_PIECE = 2_000
_BLANKS = re.compile(r"\s+")


def fold(text: str) -> str:
    """Return the text in NFKC, with one kind of dash and of each quotation mark, and single spaces.

    Soft hyphens and characters without width are gone.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text.translate(_FOLDED)).translate(_FOLDED)
    elif "`" in text:
        text = text.replace("`", "'")
    return _BLANKS.sub(" ", text).strip()


_NOTHING_BEFORE = "".join(
    rf"(?<!\b{word})"
    for word in "is are was were be to of by with from at as in and or list returns yields gives".split()
)
_REFERENCE = re.compile(
    r"(?:(?<=[.,;:!?)])|(?<=[^\s(\[{][\"'\u201d\u2019])|"
    rf"(?<=[a-z\d%)\"'\u201d\u2019]){_NOTHING_BEFORE}[ \t]+(?=\[[^\[\]\n]{{1,24}}\][.!?]*(?:\s*$|\s+[A-Z])))"
    r"\[(?:\^?\d{1,3}|\^\w{1,20}|[A-Z]\d{1,3})(?:[,;] ?\d{1,3})*\](?![(\[\w])"
)
"""A mark of a footnote or a source; `x[0]`, behind a word, is none, and neither is "is [1, 2]"."""
_LINK = re.compile(r"!?\[([^\[\]\n]{1,300})\]\((?:[^()\s]|\([^()\s]*\)){1,500}(?: \"[^\"\n]*\")?\)")
_EMPHASIS = re.compile(r"(?<![\w*\\])(\*\*\*|\*\*|__)(?=\S)([^*_\n]{1,300}?)(?<=\S)\1(?![\w*])")
_TAG = re.compile(r"</?(?:b|i|em|strong|span|p|u|a|small|mark|code|abbr|font|br)(?: [^<>]{0,300})?/?>", re.IGNORECASE)


def without_markup(text: str) -> str:
    """Return a text without marks of references and emphasis, with the words of links, and without plain HTML tags.

    A tag that changes what stands in it, such as `<sup>` and `<del>`, stays.
    """
    if "[" in text:
        text = _REFERENCE.sub("", _LINK.sub(r"\1", text))
    if "<" in text:
        text = _TAG.sub("", text)
    return _EMPHASIS.sub(r"\2", text) if "**" in text or "__" in text else text


_UNSAID = re.compile(
    r"<!--.*?(?:-->|\Z)|^ {0,3}(```+|~~~+)[^\n]*\n.*?(?:^ {0,3}\1[^\n]*$|\Z)|~~[^~\n]+~~"
    r"|<(del|s|strike|code|pre)\b.*?</\2>",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""Blocks of code, comments, and what is struck out."""


class FoldedText:
    """A text that quotes are looked up in, in its own words or in other typography; folded once, line by line.

    With `spaces=False` spaces do not count at all: the text of PDF files runs words together.
    """

    def __init__(self, text: str, *, spaces: bool = True) -> None:
        self.text = text
        self._spaces = spaces
        self._pieces: list[tuple[int, int, int]] = []
        """For each piece of the text that is not blank, where it begins folded, and in the text, and ends there."""
        parts: list[str] = []
        folded_at = 0
        for start, end in _pieces(text):
            if part := self._fold(text[start:end]):
                self._pieces.append((folded_at, start, end))
                parts.append(part)
                folded_at += len(part) + spaces
        self.folded = (" " if spaces else "").join(parts)

    @cached_property
    def headings(self) -> HeadingPaths:
        """The headings of the text."""
        return HeadingPaths(self.text)

    @cached_property
    def _unsaid(self) -> list[tuple[int, int]]:
        return [match.span() for match in _UNSAID.finditer(self.text)]

    def is_unsaid(self, start: int, end: int) -> bool:
        """Return whether a span touches code, a comment, or text that is struck out: no source says these."""
        return any(left < end and start < right for left, right in self._unsaid)

    def path_at(self, position: int, context: str = "") -> tuple[str, ...]:
        """Return what stands above a place: the parts of `context`, joined by " > ", and the headings of the text.

        Folded; headings that the context ends with count once.
        """
        above = [part for part in (fold(part) for part in context.split(" > ")) if part]
        within = [part for part in (fold(part.replace(" > ", " ")) for part in self.headings.at(position)) if part]
        shared = next((n for n in range(min(len(above), len(within)), 0, -1) if above[-n:] == within[:n]), 0)
        return (*above, *within[shared:])

    def spans(self, quote: str) -> Iterator[tuple[int, int]]:
        """Yield where the quote stands in the text: from the first character to behind the last."""
        wanted = self._fold(quote)
        found = self.folded.find(wanted) if wanted else -1
        while found >= 0:
            yield self._original(found), self._original(found + len(wanted) - 1) + 1
            found = self.folded.find(wanted, found + 1)

    def _fold(self, text: str) -> str:
        return fold(text) if self._spaces else fold(text).replace(" ", "")

    def _original(self, position: int) -> int:
        """Return the place in the text of the character that made the folded one at `position`."""
        folded_at, start, end = self._pieces[bisect_right(self._pieces, position, key=_folded_at) - 1]
        low, high = start, end - 1
        while low < high:  # the least prefix that holds the character
            middle = (low + high) // 2
            if len(self._fold(self.text[start : middle + 1])) > position - folded_at:
                high = middle
            else:
                low = middle + 1
        return low


@lru_cache(maxsize=128)
def folded_text(text: str, *, spaces: bool = True) -> FoldedText:
    """Return a text folded; those that were asked for last are kept."""
    return FoldedText(text, spaces=spaces)


def _folded_at(piece: tuple[int, int, int]) -> int:
    return piece[0]


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the lines of a text, long ones cut at spaces."""
    at = 0
    for line in text.splitlines(keepends=True):
        end = at + len(line)
        while end - at > _PIECE and (space := text.rfind(" ", at, at + _PIECE)) > at:
            yield at, space
            at = space
        yield at, end
        at = end
