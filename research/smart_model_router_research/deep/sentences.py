"""The sentences around a quote, as the document has them: one that begins in the middle vouches for nothing alone.

Documents are plain text or Markdown. Blocks end at blank lines, headings, rules, rows of tables, items of lists and
lines that begin with a label.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARACTERS = 4_000
"""A sentence that begins or ends further from the quote is not judged: 10 MB can stand in one line."""

MAX_LINES = 500
"""A block of more lines is not judged."""
MAX_ROWS = 10_000
"""Above a row so many are looked at for the line that leads to the table."""
MAX_CAPTION = 4
"""A paragraph of so many words at most above a table says what is in it."""
MAX_ASIDE = 200
"""Parentheses that are open for longer are forgotten."""
MAX_PARAGRAPHS = 20
"""Above a paragraph so many lines are looked at for one that denies all of them."""
MAX_BLOCKS_ABOVE = 200
"""Above a list item so many blocks are looked at for the line that leads to it."""

FAR = "unless something that stands far above says otherwise:"
"""Leads to a line whose list begins further up than is looked at."""
ITEM_MARK = re.compile(
    r"[ \t]*(?:[-*+\u2022\u25e6\u25aa\u2013]|\[\d{1,3}\]|\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,4})[.)])[ \t]+(?=\S)"
)
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}[ \t]")
_RULE = re.compile(r"[-=*~^+#`|:][-=*~^+#`|: \t]+[-=*~^+#`|:]")
_LABEL = re.compile(r"[ \t]*[^\W\d_a-z][^:.!?\n|]{0,60}:(?:[ \t]|$)")
_END = re.compile(
    r"(?<![.!?…])[.!?…]+[\"')\]*_\u201d\u2019]*(?:\[\^?\w{1,4}\])*(?=\s+(?:[\"'`\u201c\u2018*_]+\w|[(\[\"'`\u201c\u2018*_]*[^\W_a-z]"
    r"|[a-z]\S))|[\u3002\uff01\uff1f]"
)
_ABBREVIATIONS = frozenset(
    "e.g i.e etc vs cf approx ca no nos vol fig figs sec eq ref mr mrs ms dr prof st jr sr inc ltd co corp est al "
    "gen col lt sgt rev hon gov sen rep capt cmdr adm maj pres mt bros ph.d ph u.s u.k u.n a.m p.m p pp ch art "
    "jan feb mar apr jun jul aug sep sept oct nov dec elev pop dept assoc univ "
    "govt asst appt inst intl prop resp orig supp hist geog incl excl cont".split()
)
_LETTERED = frozenset(
    "zone class grade group type section part plan option terminal gate line route building block platform figure "
    "table appendix annex schedule category phase stage level model series column row team point vitamin "
    "hepatitis war".split()
)
"""Nouns before a letter that names one of several: "in Zone B." can end a sentence, "J. Smith" goes on."""
_WHOLE_WORD = re.compile(r"[a-z]{4,}[\"')\]*_]*$|\d[\"')\]*_]*$|[)\]\"'`]$")
"""The end of a sentence before one that begins in lower case: no abbreviation is so long."""
_UNIT_LETTER = re.compile(r"\d[ \t]?[°º]?[^\W\d_]$")
_POINTS_DOWN = re.compile(r"\b(?:following|below|these)\b", re.IGNORECASE)
_DENIES = re.compile(
    r"\b(?:none|no|not|never|neither|nor|cannot|\w+n't|false|wrong|incorrect|untrue|myths?|removed|unsupported)\b",
    re.IGNORECASE,
)
_DENIES_ALL = re.compile(
    r"\b(?:false|wrong|incorrect|untrue|myths?|misconceptions?|claims|rumou?rs|"
    r"not (?:true|supported|allowed|available))\b",
    re.IGNORECASE,
)
_LAST_TOKEN = re.compile(r"[\w.]*$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of a document, or one row of a table, with the lines that lead to it: those that end in a colon."""

    text: str
    start: int
    lead_ins: tuple[str, ...] = ()
    """The outermost first."""
    is_row: bool = False

    @property
    def end(self) -> int:
        """The position behind the sentence."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def indent(self) -> int:
        return len(self.text) - len(self.text.lstrip(" \t"))

    @property
    def is_row(self) -> bool:
        return self.text.lstrip().startswith("|") or (self.text.count("|") >= 2 and "||" not in self.text)

    @property
    def stands_alone(self) -> bool:
        """Return whether no sentence goes on from it or into it."""
        return not self.text.strip() or self.is_row or self.is_heading_or_rule

    @property
    def is_heading_or_rule(self) -> bool:
        return bool(_HEADING.match(self.text) or _RULE.fullmatch(self.text.strip()))

    @property
    def is_item(self) -> bool:
        return ITEM_MARK.match(self.text) is not None


def sentences_at(document: str, start: int, end: int) -> list[Sentence]:
    """Return the whole sentences that the span touches, in order; none where one would be longer than judged."""
    found: list[Sentence] = []
    at = start
    lead_ins: tuple[str, ...] = ()
    in_table = False
    while at < end:
        block = _block(document, at)
        if not block:
            return []
        first = block[0]
        if not first.text.strip():
            at = first.end + 1
            in_table = False
            continue
        if not (first.is_row and in_table):
            lead_ins = _lead_ins(document, _top_of_table(document, first))
        in_table = first.is_row
        if first.is_row or first.stands_alone:
            pieces = [(first.start, first.end)]
        else:
            pieces = list(_near(document, (first.start, block[-1].end), start, end))
        for left, right in pieces:
            text = document[left:right]
            if left < end and right > start and text.strip():
                found.append(Sentence(text, left, lead_ins, in_table))
        at = block[-1].end + 1
    return found


def _near(document: str, block: tuple[int, int], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences of a block that end and begin near the span."""
    left, right = max(block[0], start - MAX_CHARACTERS), min(block[1], end + MAX_CHARACTERS)
    for begin, stop in _split(document, left, right):
        if (begin > left or left == block[0]) and (stop < right or right == block[1]):
            yield begin, stop


def split_sentences(text: str) -> list[str]:
    """Return the sentences of a text without lines."""
    return [piece for left, right in _split(text, 0, len(text)) if (piece := text[left:right].strip())]


def _split(document: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for match in _END.finditer(document, start, end):
        before = document[max(at, match.start() - 12) : match.start()]
        last = _LAST_TOKEN.search(before)
        word = last[0].lower().strip(".") if last else ""
        is_initial = len(word) == 1 and word.isalpha() and not _UNIT_LETTER.search(before) and not _is_lettered(before)
        name = document[max(at, match.start() - 30) : match.start()].rpartition(" ")[2]
        if _begins_in_lower_case(document, match.end()) and not _WHOLE_WORD.search(before):
            continue
        if _is_in_aside(document[max(at, match.start() - MAX_ASIDE) : match.start()], match[0]):
            continue
        if match[0][0] == "!" and name[:1].isupper() and match.start() - len(name) > at:
            continue  # "Yahoo!"
        if match[0].startswith(("...", "\u2026")):
            continue
        if match[0][0] == "." and (word in _ABBREVIATIONS or is_initial):
            continue
        yield at, match.end()
        at = match.end()
    if document[at:end].strip():
        yield at, end


def _is_lettered(before: str) -> bool:
    *_, noun, letter = ["", "", *before.split()]
    return letter.isupper() and noun.lower() in _LETTERED


def _begins_in_lower_case(document: str, position: int) -> bool:
    begin = _NEXT.match(document, position)
    return begin is not None and begin[1].islower()


_NEXT = re.compile(r"\s+(\w)")


def _is_in_aside(before: str, stop: str) -> bool:
    """Return whether a full stop stands in parentheses that begin in lower case: "(elev. 2,829 m)"."""
    inner = before.rpartition("(")[2]
    return inner != before and ")" not in inner + stop and inner[:1].islower()


def _line_at(document: str, position: int) -> _Line:
    start = document.rfind("\n", 0, position) + 1
    end = document.find("\n", position)
    return _Line(start, document[start : len(document) if end < 0 else end])


def _before(document: str, line: _Line) -> _Line | None:
    return _line_at(document, line.start - 1) if line.start else None


def _after(document: str, line: _Line) -> _Line | None:
    return _line_at(document, line.end + 1) if line.end < len(document) else None


def _begins_block(document: str, line: _Line) -> bool:
    """Return whether the line above belongs to another block than this one."""
    above = _before(document, line)
    if line.stands_alone or line.is_item or above is None or above.stands_alone:
        return True
    closed = above.text.rstrip().endswith((".", "!", "?", ":", ";")) or _LABEL.match(above.text) is not None
    return closed and _LABEL.match(line.text) is not None


def _block(document: str, position: int) -> list[_Line]:
    """Return the lines of the block at a position; none where it has too many to be prose."""
    line = _line_at(document, position)
    above = [line]
    while not _begins_block(document, above[-1]):
        line_above = _before(document, above[-1])
        if line_above is None or len(above) > MAX_LINES:
            return []
        above.append(line_above)
    lines = above[::-1]
    while not lines[-1].stands_alone:
        below = _after(document, lines[-1])
        if below is None or _begins_block(document, below):
            break
        if len(lines) > MAX_LINES:
            return []
        lines.append(below)
    return lines


def _leads(document: str, block: list[_Line], inner: _Line) -> bool:
    """Return whether a paragraph without a colon leads to what stands below it: a list of the following, a table."""
    said = document[max(block[0].start, block[-1].end - MAX_CHARACTERS) : block[-1].end]
    if inner.is_row:
        return len(said.split()) <= MAX_CAPTION
    return inner.is_item and _POINTS_DOWN.search(said) is not None and _DENIES.search(said) is not None


def _top_of_table(document: str, line: _Line) -> _Line:
    """Return the first row of the table that a line is in; the line itself where it is no row."""
    top = line
    for _ in range(MAX_ROWS):
        above = _before(document, top)
        if not line.is_row or above is None or not above.is_row:
            break
        top = above
    return top


def _denial_above(document: str, head: _Line) -> str:
    """Return the line that ends in a colon and denies what stands below it, paragraphs further up; "" without one."""
    line = _before(document, head)
    for _ in range(MAX_PARAGRAPHS):
        while line is not None and not line.text.strip():
            line = _before(document, line)
        if line is None or line.stands_alone or line.is_item:
            break
        if line.text.rstrip().endswith(":") and _DENIES_ALL.search(line.text):
            return line.text.strip()
        line = _before(document, line)
    return ""


def _lead_ins(document: str, first: _Line) -> tuple[str, ...]:
    """Return what governs a block: the sentences before it that end in a colon, the outermost first."""
    found: list[str] = []
    inner, line = first, _before(document, first)
    for _ in range(MAX_BLOCKS_ABOVE):
        while line is not None and not line.text.strip():
            line = _before(document, line)
        block = _block(document, line.start) if line is not None else []
        if not block or block[0].stands_alone:
            break
        head = block[0]
        beside = inner.is_item and (head.indent > inner.indent or (head.is_item and head.indent == inner.indent))
        if not beside:
            parent = head.is_item and inner.is_item and head.indent < inner.indent
            if parent or block[-1].text.rstrip().endswith(":") or _leads(document, block, inner):
                start = max(head.start, block[-1].end - MAX_CHARACTERS)
                left, right = list(_split(document, start, block[-1].end))[-1]
                found.insert(0, document[left:right])
            elif not (head.is_item and head.indent < inner.indent):
                if inner is first and not first.is_row and (denial := _denial_above(document, head)):
                    found.insert(0, denial)
                break
            inner = head
        line = _before(document, head)
    else:
        found.insert(0, FAR)
    return tuple(found)


def without_marks(text: str) -> str:
    """Return a line without the marks of lists, headings and quotations before it."""
    text = text.strip()
    while (match := ITEM_MARK.match(text)) is not None:
        text = text[match.end() :]
    return text.lstrip("#> ").strip()
