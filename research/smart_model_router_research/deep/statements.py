"""A document as statements: sentences, labelled values, rows of tables, items of lists and notes on versions.

Each knows where it stands and what it stands under: headings, the thing that an indented text or a directive
describes, and the line that leads to a list. Markdown, reStructuredText and plain text are read alike.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.deep.readings import cells_of
from smart_model_router_research.deep.sentences import ITEM_MARK, split_sentences
from smart_model_router_research.deep.statement_forms import CODE, NO_SCOPE, NOTES, PROSE, SINCE, VERSION_NOTE, label_of

MAX_STATEMENT = 4_000
"""A longer line or sentence is passed over."""


class StatementKind(StrEnum):
    """The forms of a statement."""

    SENTENCE = "sentence"
    LABELLED = "labelled"
    """A label and its value: `Default: 5`."""
    ROW = "row"
    """A row of a table; its cells have the heads of their columns."""
    ITEM = "item"
    """An item of a list."""
    VERSION = "version"
    """A note on the version in which something was added, changed or deprecated."""


@dataclass(frozen=True)
class Statement:
    """One statement. `text` stands at `start` of the document, as it is; `scope` is what it stands under.

    `label` and `value` are those of a labelled value or of a note on a version (the verb and the version); `lead_in` is
    the line that leads to its list, or the items that it is a part of; `cells` the heads of columns and cells of a row,
    `before` the first sentence of its paragraph, `term` what it describes, where that is no heading. It is the `nth`
    statement, from 0, below the innermost of what it stands under.
    """

    kind: StatementKind
    text: str
    start: int
    scope: tuple[str, ...] = ()
    label: str = ""
    value: str = ""
    cells: tuple[tuple[str, str], ...] = ()
    lead_in: str = ""
    before: str = ""
    term: str = ""
    nth: int = 0

    @cached_property
    def own(self) -> frozenset[str]:
        """The stems of its own words."""
        heads = " ".join(head for head, _ in self.cells)
        return stems_of(f"{self.text} {heads} {self.label}")

    @cached_property
    def said_before(self) -> frozenset[str]:
        """The stems of the first sentence of its paragraph."""
        return stems_of(self.before)

    @cached_property
    def around(self) -> frozenset[str]:
        """The stems of what it stands under."""
        return stems_of(" ".join((*self.scope, self.lead_in)))


_ATX = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_UNDERLINE = re.compile(r"([=\-~^\"'*+.#_`])\1{2,}[ \t]*$")
_SIMPLE_TABLE = re.compile(r"={2,}(?:[ \t]+={2,})+[ \t]*$")
_FENCE = re.compile(r"[ \t]*(```+|~~~+)")
_DIRECTIVE = re.compile(r"\.\. ([a-zA-Z][\w:+-]*)::[ \t]*(.*)$")
_TARGET = re.compile(r"\.\. (?:_|\[|\|)|\.\.$|__ ")
_FIELD = re.compile(r":([\w -]{1,40}):[ \t]+(?=\S)")
_WORD = re.compile(r"\w")
_LONGEST_TERM = 120


@dataclass
class _Reader:
    """The lines of a document, read once from the first to the last."""

    lines: list[str]
    title: str = ""
    headings: list[tuple[int, str]] = field(default_factory=list)
    terms: list[tuple[int, str]] = field(default_factory=list)
    levels: dict[str, int] = field(default_factory=dict)
    columns: list[str] = field(default_factory=list)
    lead_in: tuple[int, str] = (0, "")
    items: list[tuple[int, str]] = field(default_factory=list)
    """The items of lists that are open, by their indent: deeper ones are parts of them."""
    under: tuple[str, ...] = ()
    nth: int = -1

    def __post_init__(self) -> None:
        self.starts = [0]
        for line in self.lines:
            self.starts.append(self.starts[-1] + len(line) + 1)

    def read(self) -> Iterator[Statement]:
        at = 0
        if self.lines and self.lines[0] == "---" and "---" in self.lines[1:100]:
            at = 1
        while at < len(self.lines):
            line = self.lines[at]
            bare = line.strip()
            if not bare:
                at += 1
                continue
            indent = _indent(line)
            self.terms = [(depth, words) for depth, words in self.terms if depth < indent]
            if (fence := _FENCE.match(line)) is not None:
                at = self._behind_fence(at, fence[1])
            elif (atx := _ATX.match(line)) is not None:
                self._open(len(atx[1]), atx[2])
                at += 1
            elif self._is_underlined(at):
                self._open(self.levels.setdefault(self.lines[at + 1].strip()[0], len(self.levels) + 1), bare)
                at += 2
            elif _SIMPLE_TABLE.match(bare):
                at = yield from self._simple_table(at)
            elif _UNDERLINE.match(bare) or re.fullmatch(r"\+[-=+]+\+", bare):
                at += 1
            elif bare.startswith(".. ") or bare == "..":
                at = yield from self._directive(at, indent, bare)
            elif bare.startswith("|") or bare.count("|") >= 2:
                at = yield from self._table(at)
            else:
                at = yield from self._paragraph(at, indent)

    def _made(
        self,
        kind: StatementKind,
        text: str,
        start: int,
        scope: tuple[str, ...],
        label: str = "",
        value: str = "",
        **more: Any,
    ) -> Statement:
        self.nth = self.nth + 1 if scope == self.under else 0
        self.under = scope
        term = self.terms[-1][1] if self.terms else ""
        return Statement(kind, text, start, scope, label, value, term=term, nth=self.nth, **more)

    @property
    def scope(self) -> tuple[str, ...]:
        return (*(words for _, words in self.headings), *(words for _, words in self.terms))

    def _open(self, level: int, words: str) -> None:
        self.headings = [(above, text) for above, text in self.headings if above < level]
        self.headings.append((level, words.strip()))
        self.terms, self.lead_in, self.items, self.columns = [], (0, ""), [], []

    def _is_underlined(self, at: int) -> bool:
        if at + 1 >= len(self.lines) or _indent(self.lines[at]) > 3:
            return False
        words, under = self.lines[at].strip(), self.lines[at + 1].rstrip()
        return (
            bool(_UNDERLINE.match(under))
            and "|" not in words
            and not _UNDERLINE.match(words)
            and (len(words) <= len(under) + 2 and ITEM_MARK.match(words) is None)
        )

    def _behind_fence(self, at: int, mark: str) -> int:
        at += 1
        while at < len(self.lines) and not self.lines[at].strip().startswith(mark):
            at += 1
        return at + 1

    def _behind_indented(self, at: int, indent: int) -> int:
        """Return the line behind those that are blank or indented more."""
        while at < len(self.lines) and (not self.lines[at].strip() or _indent(self.lines[at]) > indent):
            at += 1
        return at

    def _directive(self, at: int, indent: int, bare: str) -> Generator[Statement, None, int]:
        match = _DIRECTIVE.match(bare)
        if match is None:
            return self._behind_indented(at + 1, indent) if not _TARGET.match(bare) or bare == ".." else at + 1
        name, words = match[1].rpartition(":")[2].lower(), match[2].strip()
        if name in NOTES:
            end = at + 1
            while end < len(self.lines) and self.lines[end].strip() and _indent(self.lines[end]) > indent:
                end += 1
            text = "\n".join(self.lines[at:end]).strip()
            version = words.split(None, 1)[0].rstrip(".,;:") if words else ""
            yield self._made(
                StatementKind.VERSION,
                text[:MAX_STATEMENT],
                self.starts[at] + indent,
                self.scope,
                label=NOTES[name],
                value=version,
            )
            return end
        if name in CODE or name in NO_SCOPE:
            if name in ("module", "currentmodule"):
                self.terms = []
            return self._behind_indented(at + 1, indent)
        at += 1
        if name in PROSE:
            return at
        if name in ("list-table", "csv-table"):
            return at
        signatures = [words]
        while at < len(self.lines) and self.lines[at].strip() and _indent(self.lines[at]) > indent + 3:
            signatures.append(self.lines[at].strip())
            at += 1
        self.terms.append((indent, " ".join(signatures)))
        return at

    def _table(self, at: int) -> Generator[Statement, None, int]:
        header: list[str] = []
        first = at
        while at < len(self.lines) and (line := self.lines[at]).strip() and ("|" in line or line.strip()[0] == "+"):
            if re.fullmatch(r"[\s|:+=-]+", line):
                if at == first + 1:
                    header = cells_of(self.lines[first])
                elif "=" in line and not header:
                    header = cells_of(self.lines[at - 1])
            elif at != first or not self._has_rule_below(at):
                yield self._row(at, cells_of(line), header)
            at += 1
        return at

    def _has_rule_below(self, at: int) -> bool:
        return at + 1 < len(self.lines) and re.fullmatch(r"[\s|:+=-]{3,}", self.lines[at + 1]) is not None

    def _row(self, at: int, cells: list[str], header: list[str]) -> Statement:
        heads = header if len(header) == len(cells) else [""] * len(cells)
        line = self.lines[at]
        return self._made(
            StatementKind.ROW,
            line.strip()[:MAX_STATEMENT],
            self.starts[at] + _indent(line),
            self.scope,
            cells=tuple(zip(heads, cells, strict=True)),
            lead_in=self.lead_in[1],
        )

    def _simple_table(self, at: int) -> Generator[Statement, None, int]:
        """Read a table whose columns stand under rules of equals signs."""
        spans = [match.span() for match in re.finditer(r"=+", self.lines[at])]
        rules = [n for n in range(at, min(at + 400, len(self.lines))) if _SIMPLE_TABLE.match(self.lines[n].strip())][:3]
        end = rules[-1] if len(rules) > 1 else at
        header: list[str] = []
        if len(rules) == 3:
            parts = [self._cut(n, spans) for n in range(rules[0] + 1, rules[1])]
            header = [" ".join(cell for cell in column if cell) for column in zip(*parts, strict=True)]
        for n in range(rules[-2] + 1 if len(rules) > 1 else at + 1, end):
            if self.lines[n].strip() and not re.fullmatch(r"[\s-]+", self.lines[n]):
                yield self._row(n, self._cut(n, spans), header)
        return end + 1

    def _cut(self, at: int, spans: list[tuple[int, int]]) -> list[str]:
        line = self.lines[at]
        ends = [start for start, _ in spans[1:]] + [len(line)]
        return [line[start : max(start, end)].strip() for (start, _), end in zip(spans, ends, strict=True)]

    def _paragraph(self, at: int, indent: int) -> Generator[Statement, None, int]:
        """Read the lines up to the next blank one, item or other form; a short one above a deeper text is a term."""
        end = at + 1
        while end < len(self.lines) and self._goes_on(end, indent, ITEM_MARK.match(self.lines[at]) is not None):
            end += 1
        text = "\n".join(self.lines[at:end]).strip()
        if end == at + 1 and self._is_term(text, end, indent):
            if label_of(text) is not None:
                yield from self._statements(text, self.starts[at] + indent, indent)
            self.terms.append((indent, text))
            return end
        if len(text) <= MAX_STATEMENT * 10:
            yield from self._statements(text, self.starts[at] + indent, indent)
        if text.endswith("::"):
            end = self._behind_indented(end, indent)
        return end

    def _goes_on(self, at: int, indent: int, of_item: bool) -> bool:
        line = self.lines[at]
        if not line.strip() or ITEM_MARK.match(line) or _ATX.match(line) or _FENCE.match(line):
            return False
        if line.lstrip().startswith((".. ", "|", ":")) or _UNDERLINE.match(line) or self._is_underlined(at):
            return False
        return of_item or _indent(line) == indent

    def _is_term(self, text: str, below: int, indent: int) -> bool:
        """Return whether a line is a term that the deeper lines below describe."""
        if len(text) > _LONGEST_TERM or text.endswith((".", ":", ";", ",", "?", "!")) or ITEM_MARK.match(text):
            return False
        while below < len(self.lines) and not self.lines[below].strip():
            below += 1
        if below >= len(self.lines):
            return False
        line = self.lines[below]
        return line.lstrip().startswith(": ") or (
            indent < _indent(line) <= indent + 8 and not line.strip().startswith(">>>")
        )

    def _statements(self, text: str, start: int, indent: int) -> Iterator[Statement]:
        mark = ITEM_MARK.match(text) or re.match(r":[ \t]+(?=\S)", text)
        is_item = mark is not None
        if mark is not None:
            start, text = start + mark.end(), text[mark.end() :]
        self.items = [(depth, words) for depth, words in self.items if depth < indent]
        lead_in = self.lead_in[1] if is_item and self.lead_in[0] <= indent else ""
        if is_item:
            lead_in = ": ".join(words for _, words in self.items if words) or lead_in
            self.items.append((indent, text.rstrip(":") if len(text) <= _LONGEST_TERM else ""))
        else:
            self.lead_in = (indent, split_sentences(text)[-1]) if text.rstrip().endswith(":") else (0, "")
        if (found := _FIELD.match(text)) is not None:
            value = text[found.end() :]
            yield self._made(StatementKind.LABELLED, text, start, self.scope, found[1], value, lead_in=lead_in)
            return
        for piece, offset in _pieces(text):
            yield from self._read_piece(piece, start + offset, is_item, lead_in)

    def _read_piece(self, text: str, start: int, is_item: bool, lead_in: str) -> Iterator[Statement]:
        scope = self.scope
        if (label := label_of(text)) is not None and not _is_clause(label[0], text):
            yield self._made(StatementKind.LABELLED, text, start, scope, label[0], label[1], lead_in=lead_in)
            if not is_item and len(text) < 80:
                return
        elif is_item:
            yield self._made(StatementKind.ITEM, text, start, scope, lead_in=lead_in)
        at, first = 0, ""
        for sentence in split_sentences(text):
            at = text.find(sentence, at)
            if not _WORD.search(sentence):
                continue
            if (note := VERSION_NOTE.match(sentence) or SINCE.match(sentence)) is not None:
                verb = note[1].lower() if note.re is VERSION_NOTE else "added"
                version = note[note.re.groups]
                yield self._made(StatementKind.VERSION, sentence, start + at, scope, verb, version, before=first)
            elif not is_item or at:
                yield self._made(StatementKind.SENTENCE, sentence, start + at, scope, lead_in=lead_in, before=first)
            first = first or sentence
            at += len(sentence)


_CLAUSE_WORDS = 4


def _is_clause(label: str, text: str) -> bool:
    """Return whether what stands before a colon is a clause of prose: the first of several sentences goes on there."""
    return len(label.split()) >= _CLAUSE_WORDS and len(split_sentences(text)) > 1


def statements_of(text: str) -> list[Statement]:
    """Return the statements of a document, in order."""
    return list(_Reader(text.split("\n")).read())


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _pieces(text: str) -> Iterator[tuple[str, int]]:
    """Yield the labelled lines of a paragraph each by itself, with their places, and what is not labelled as one."""
    if "\n" not in text:
        yield text, 0
        return
    lines = text.split("\n")
    begins = [0]
    begins += [
        n
        for n in range(1, len(lines))
        if label_of(lines[n]) and label_of(lines[begins[-1]]) and n - 1 in (begins[-1], n - 1)
    ]
    at = 0
    for one, behind in zip(begins, [*begins[1:], len(lines)], strict=True):
        piece = "\n".join(lines[one:behind])
        yield piece.strip(), at + len(piece) - len(piece.lstrip())
        at += len(piece) + 1
