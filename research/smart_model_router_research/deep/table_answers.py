"""Answers computed over one table: how many rows, which rows, and the row with the most of something."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from smart_model_router_research.deep.fitting import says, telling_words
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.inferences import Operation
from smart_model_router_research.deep.matching import WORD, stem_of, stems_of
from smart_model_router_research.deep.naming import bare
from smart_model_router_research.deep.questions import QuestionPattern
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.values import numbers_in

LEAST_ROWS, MOST_ROWS = 2, 60
"""Rows of a table that is computed over."""
_WORD = r"(?!(?:does|do|did|has|have|are|is|was|were|can)\b)[a-z-]+"
_COUNTS = re.compile(
    rf"^how many (?P<noun>(?:{_WORD} )?{_WORD}) (?:are there$|(?:does|do|did|has|have|are|is)\b)", re.IGNORECASE
)
_LISTS = re.compile(rf"^(?:which|what) (?P<noun>(?:{_WORD} )?{_WORD}s) [a-z]+\b", re.IGNORECASE)
_EXTREME = re.compile(
    r"^(?:which|what) (?P<noun>(?:[a-z-]+ )?[a-z-]+?) (?:is|are|was|has|have|had|[a-z]+s) (?:the )?(?P<word>\w+)"
    r"(?: (?P<measure>[a-z -]+))?$",
    re.IGNORECASE,
)
_MOST = frozenset("most highest largest biggest longest heaviest greatest tallest deepest oldest widest".split())
_LEAST = frozenset("fewest least lowest smallest shortest lightest youngest cheapest newest".split())
_BEGINNINGS = frozenset("built founded opened born established launched released since year created".split())
_COLUMNS = {
    **dict.fromkeys(("largest", "biggest", "smallest"), "area size population"),
    **dict.fromkeys(("heaviest", "lightest"), "weight mass"),
    **dict.fromkeys(("longest", "shortest"), "length duration"),
    **dict.fromkeys(("highest", "lowest", "tallest"), "height elevation"),
    **dict.fromkeys(("oldest", "youngest", "newest"), " ".join(sorted(_BEGINNINGS)) + " age"),
    "deepest": "depth",
    "widest": "width",
    "cheapest": "price cost",
}
"""The heads of columns that a superlative compares where the question names none."""


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """The cells that answer a question, row by row; what is computed from them, None for the rows themselves."""

    cells: tuple[FoundAnswer, ...]
    operation: Operation | None
    scope: str


def answer_over_table(pattern: QuestionPattern, documents: Sequence[ReadDocument]) -> TableAnswer | None:
    """Return the answer over the one table that has rows of the noun asked for; None where no table or several have."""
    text = pattern.text
    counted, listed, extreme = _COUNTS.match(text), _LISTS.match(text), _EXTREME.match(text)
    is_extreme = extreme is not None and extreme["word"].lower() in _MOST | _LEAST
    match = extreme if is_extreme else counted or listed
    if match is None:
        return None
    found = [
        (document, rows)
        for document in documents
        for rows in _tables(document)
        if _is_of(match["noun"].lower(), rows[0])
    ]
    if len(found) != 1:
        return None
    document, rows = found[0]
    noun = match["noun"].lower()
    if is_extreme:
        return _extreme_of(match, noun, document, rows)
    return _rows_of(pattern, noun, Operation.COUNT if match is counted else None, document, rows)


def _tables(document: ReadDocument) -> Iterator[list[Statement]]:
    rows: list[Statement] = []
    for statement in document.statements:
        is_row = statement.kind is StatementKind.ROW and bool(statement.cells) and bool(statement.cells[0][0])
        heads = [head for head, _ in statement.cells]
        if rows and not (is_row and heads == [head for head, _ in rows[0].cells]):
            if LEAST_ROWS <= len(rows) <= MOST_ROWS:
                yield rows
            rows = []
        if is_row:
            rows.append(statement)
    if LEAST_ROWS <= len(rows) <= MOST_ROWS:
        yield rows


def _is_of(noun: str, row: Statement) -> bool:
    """Return whether the rows of a table are what a noun names: by the first head, and what the table stands under."""
    head = stems_of(row.cells[0][0])
    words = [stem_of(word) for word in WORD.findall(noun)]
    return words[-1] in head and all(word in head | row.around for word in words)


def _extreme_of(
    match: re.Match[str], noun: str, document: ReadDocument, rows: Sequence[Statement]
) -> TableAnswer | None:
    word, measure = match["word"].lower(), (match["measure"] or "").strip()
    heads = [head for head, _ in rows[0].cells]
    stems = [stem_of(each) for each in WORD.findall(measure)] if measure else []
    named = stems_of(_COLUMNS.get(word, "")) if not stems else frozenset[str]()
    fitting = [
        at
        for at, head in enumerate(heads)
        if at and (all(says(stem, stems_of(head)) for stem in stems) if stems else bool(stems_of(head) & named))
    ]
    if len(fitting) != 1:
        return None
    at = fitting[0]
    is_time = bool(stems_of(heads[at]) & stems_of(" ".join(_BEGINNINGS)))
    operation = Operation.LARGEST if word in _MOST else Operation.SMALLEST
    if is_time:
        if word not in ("oldest", "youngest", "newest"):
            return None
        operation = Operation.EARLIEST if word == "oldest" else Operation.LATEST
    cells = [_cell(document, row, at) for row in rows]
    if not all(next(numbers_in(cell.value), None) for cell in cells):
        return None
    return TableAnswer(tuple(cells), operation, f"{heads[at]} of each {noun} in the table of {document.names[0]}")


def _rows_of(
    pattern: QuestionPattern,
    noun: str,
    operation: Operation | None,
    document: ReadDocument,
    rows: Sequence[Statement],
) -> TableAnswer | None:
    """Return the rows that a question is about: all, or those with the name that it gives in the column of its verb."""
    own = stems_of(noun)
    names = stems_of(" ".join(pattern.entities))
    rest = [stem for stem in telling_words(pattern.text) if stem not in own | names]
    if pattern.numbers or len(pattern.entities) > 1:
        return None
    if not pattern.entities:
        is_all = operation is Operation.COUNT and not rest
        cells = [_cell(document, row, 1) for row in rows] if is_all and len(rows[0].cells) > 1 else []
        return _answer(cells, operation, f"rows of the table of {document.names[0]}")
    name = pattern.entities[0].casefold()
    columns = {at for row in rows for at, (_, cell) in enumerate(row.cells) if at and bare(cell).casefold() == name}
    if len(columns) != 1:
        return None
    at = columns.pop()
    head = rows[0].cells[at][0]
    if not all(says(stem, stems_of(head)) for stem in rest):
        return None
    cells = [_cell(document, row, at) for row in rows if bare(row.cells[at][1]).casefold() == name]
    return _answer(cells, operation, f"rows of the table of {document.names[0]} with the {head} {pattern.entities[0]}")


def _answer(cells: Sequence[FoundAnswer], operation: Operation | None, scope: str) -> TableAnswer | None:
    return TableAnswer(tuple(cells), operation, scope) if cells and all(cell.value for cell in cells) else None


def _cell(document: ReadDocument, row: Statement, at: int) -> FoundAnswer:
    head, cell = row.cells[at]
    return FoundAnswer(
        document=document,
        statement=row,
        value=cell,
        item=cell,
        score=1.0,
        entity=bare(row.cells[0][1]),
        attribute=head,
    )
