"""A web page as text that keeps what its markup says: headings, lists, terms with their descriptions, tables, code.

It is Markdown as far as a reader of statements needs it. Never raises; time is linear in the page.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r"<!--.*?-->|<(/?)([a-zA-Z][a-zA-Z0-9]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>|<[!?][^>]*>", re.DOTALL)
_SKIPPED = frozenset("script style nav template noscript svg head iframe button select form".split())
_BLOCKS = frozenset(
    "p div section article main header footer aside blockquote figure figcaption address details summary ul ol dl body "
    "html center fieldset caption hr".split()
)
_SPACES = re.compile(r"\s+")
_MOST_COLUMNS = 60
_MOST_TERMS = 6
_SHORT = 120
"""Characters of a description that stands on the line of its term, where that ends with a colon."""
_CODE, _LINE = "\x01", "\x02"
"""Marks of code in the cell of a table, and of its lines; a table of one column is no more than a frame around it."""
_UNMARKED = str.maketrans({"\x00": " ", _CODE: "", _LINE: " "})


@dataclass
class _Table:
    rows: list[list[str]] = field(default_factory=list)
    has_header: bool = False
    cell: list[str] | None = None


@dataclass
class _Outline:
    """The blocks of a page so far, and what is open."""

    blocks: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    lists: list[str] = field(default_factory=list)
    mark: str = ""
    heading: int = 0
    terms: list[str] = field(default_factory=list)
    tables: list[_Table] = field(default_factory=list)
    code: list[str] | None = None
    skipped: str = ""
    skipped_depth: int = 0
    is_nested: bool = False
    """A list began since the last item: what comes is inside of that."""

    def text(self, text: str) -> None:
        if self.skipped:
            return
        if self.code is not None:
            self.code.append(html.unescape(text))
        elif self.tables and self.tables[-1].cell is not None:
            self.tables[-1].cell.append(html.unescape(text))
        elif not self.tables:
            self.words.append(html.unescape(text))

    def flush(self) -> None:
        """End the block that is open."""
        said = _SPACES.sub(" ", "".join(self.words)).strip()
        self.words = []
        if not said:
            return
        if self.heading:
            self.blocks.append(f"{'#' * self.heading} {said}")
        elif self.lists and self.lists[-1] == "dt":
            self.terms.append(said)
            return
        else:
            is_labelled = self._is_labelled(said)
            if is_labelled:
                said = f"{self.terms.pop()} {said}"
            self.end_terms()
            inner = "  " * max(0, len(self.lists) - bool(self.mark or is_labelled))
            self.blocks.append(f"{inner}{self.mark}{said}")
        self.mark = ""

    def _is_labelled(self, said: str) -> bool:
        """Return whether what is said is the short description of one term with a colon: a label and its value."""
        in_description = bool(self.lists) and self.lists[-1] == "dd" and not self.mark
        return in_description and len(self.terms) == 1 and self.terms[0].endswith(":") and len(said) <= _SHORT

    def end_terms(self, *, described: bool = True) -> None:
        """Write the terms that are open: on one line where a description follows, else each by itself."""
        depth = max(0, sum(each != "dt" for each in self.lists) - 1)
        lines = [", ".join(self.terms)] if described and len(self.terms) < _MOST_TERMS else self.terms
        self.blocks += ["  " * depth + line for line in lines if line]
        self.terms = []

    def open(self, name: str) -> None:
        if self.skipped:
            self.skipped_depth += name == self.skipped
            return
        if name in _SKIPPED:
            self.flush()
            self.skipped, self.skipped_depth = name, 1
        elif name == "pre":
            self.flush()
            self.code = []
        elif name == "table":
            self.flush()
            self.tables.append(_Table())
        elif self.tables:
            self._open_in_table(name)
        elif name[0] == "h" and name[1:].isdigit():
            self.flush()
            self.heading = min(6, max(1, int(name[1:])))
        elif name in ("ul", "ol"):
            self.flush()
        elif name in ("li", "dt", "dd"):
            self._open_item(name)
        elif name in _BLOCKS:
            self.flush()
        elif name == "br":
            self.words.append(" ")

    def _open_item(self, name: str) -> None:
        self.flush()
        siblings = ("dt", "dd") if name in ("dt", "dd") else ("li",)
        if self.lists and self.lists[-1] in siblings and not self.is_nested:
            self.lists.pop()
        self.is_nested = False
        self.lists.append(name)
        if name == "li":
            self.mark = "- "

    def _open_in_table(self, name: str) -> None:
        table = self.tables[-1]
        if name == "tr":
            self._end_cell()
            table.rows.append([])
        elif name in ("td", "th"):
            self._end_cell()
            if not table.rows:
                table.rows.append([])
            table.has_header = table.has_header or (name == "th" and len(table.rows) == 1)
            table.cell = []
        elif table.cell is not None and (name in _BLOCKS or name in ("br", "li")):
            table.cell.append("\x00")

    def _end_cell(self) -> None:
        table = self.tables[-1]
        if table.cell is not None and table.rows:
            said = _SPACES.sub(" ", "".join(table.cell).replace("|", "\\|"))
            table.rows[-1].append(re.sub(r"\s*\x00[\s\x00]*", "\x00", said).strip(" \x00"))
            table.cell = None

    def close(self, name: str) -> None:
        if self.skipped:
            self.skipped_depth -= name == self.skipped
            if self.skipped_depth <= 0:
                self.skipped = ""
        elif name == "pre" and self.code is not None:
            self.end_code()
        elif self.tables:
            self._close_in_table(name)
        elif name[0] == "h" and name[1:].isdigit():
            self.flush()
            self.heading = 0
        elif name in ("li", "dt", "dd") and name in self.lists:
            self.flush()
            while self.lists and self.lists.pop() != name:
                pass
            self.mark = ""
        elif name in _BLOCKS:
            self.flush()
            if name == "dl":
                self.end_terms(described=False)

    def _close_in_table(self, name: str) -> None:
        if name in ("td", "th", "tr"):
            self._end_cell()
        elif name == "table":
            self._end_cell()
            table = self.tables.pop()
            rows = [row for row in table.rows if any(row)]
            if self.tables:
                inner = self.tables[-1].cell
                if inner is not None:
                    inner.append(" ".join(" ".join(row) for row in rows))
            elif rows and max(map(len, rows)) <= _MOST_COLUMNS:
                self._end_table(rows, has_header=table.has_header)

    def _end_table(self, rows: list[list[str]], *, has_header: bool) -> None:
        self.end_terms()
        if max(map(len, rows)) == 1:
            for row in rows:
                for n, part in enumerate(row[0].split("\x00")):
                    if _CODE in part:
                        self._write_code(part.replace(_CODE, "").replace(_LINE, "\n"))
                    else:
                        self.blocks.append(f"  {part}" if n else part)
            return
        lines = [f"| {' | '.join(cell.translate(_UNMARKED) for cell in row)} |" for row in rows]
        if has_header and len(rows) > 1:
            lines.insert(1, "|" + " --- |" * len(rows[0]))
        self.blocks.append("\n".join(lines))

    def end_code(self) -> None:
        code, self.code = "".join(self.code or []).strip("\n"), None
        if self.tables:
            cell = self.tables[-1].cell
            if cell is not None:
                cell.append(f"{_CODE}{code.replace(chr(10), _LINE)}{_CODE}")
        elif code.strip():
            self.end_terms()
            self._write_code(code)

    def _write_code(self, code: str) -> None:
        fence = "```" if "```" not in code else "~~~~"
        self.blocks.append(f"{fence}\n{code}\n{fence}")


def outline_of_page(page: str) -> str:
    """Return a page of HTML as text, its blocks apart by blank lines."""
    outline = _Outline()
    at = 0
    for token in _TOKEN.finditer(page):
        outline.text(page[at : token.start()])
        at = token.end()
        if token[2]:
            name = token[2].lower()
            if token[1]:
                outline.close(name)
            else:
                outline.is_nested = outline.is_nested or name in ("ul", "ol", "dl")
                outline.open(name)
    outline.text(page[at:])
    if outline.code is not None:
        outline.end_code()
    while outline.tables:
        outline.close("table")
    outline.flush()
    outline.end_terms()
    return "\n\n".join(outline.blocks) + "\n"
