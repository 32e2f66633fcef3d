"""Answers from labelled values and rows of tables: the value that a label has, or the thing that has a value."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.labels import SYMMETRIC
from smart_model_router_research.deep.matching import any_in, stems_of
from smart_model_router_research.deep.naming import bare, is_head, is_named_in
from smart_model_router_research.deep.questions import QuestionPattern, Wanted
from smart_model_router_research.deep.sentence_answers import LEAST_OPEN_COVERAGE
from smart_model_router_research.deep.statements import Statement
from smart_model_router_research.deep.typed_values import item_at, typed_value
from smart_model_router_research.deep.values import items_of, numbers_in, without_name
from smart_model_router_research.deep.vouching import (
    EMPTY_IN_LABELS,
    Vouching,
    asked_stems,
    entity_of,
    specificity_of,
    split_entity,
)


def answer_by_label(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching
) -> FoundAnswer | None:
    """The value of a label that says what is asked; or the label of a value that does."""
    asked = asked_stems(pattern)
    specific = specificity_of(statement.label, asked)
    label_stems = stems_of(statement.label)
    attribute = [term for term in pattern.terms if term.weight >= 0.6]
    in_label = [term for term in attribute if any_in(term.others, label_stems)]
    entity = entity_of(statement, pattern, document)
    is_pair = bool(match.inner) and statement.label.casefold() in SYMMETRIC
    if is_pair:
        entity = document.names[0]
    if pattern.asked_noun and pattern.wanted is Wanted.FACT and not pattern.entities:
        rest = [term.stem for term in attribute if term.stem not in stems_of(pattern.asked_noun)]
        if rest and set(rest) <= stems_of(statement.value) and _is_name(statement.label):
            score = 2 * match.coverage + match.nearness + 0.2
            return FoundAnswer(
                document=document, statement=statement, value=statement.label, score=score, entity=statement.label,
                is_entity=True,
            )  # fmt: skip
    if pattern.asked_noun and pattern.wanted is Wanted.FACT and not pattern.entities:
        in_label = [term for term in in_label if term.stem in label_stems]
    if in_label and specific >= 0.3 and (item := _item_naming(match.inner, statement)) is not None:
        typed = typed_value(item, pattern, statement.label)
        if typed is not None and not (match.inner and typed.text in match.inner):
            exact = sum(term.stem in label_stems for term in in_label) / len(in_label)
            score = 2 * match.coverage + specific + match.nearness + 0.3 + 0.1 * exact
            whole = item_at(item, typed)
            value, unit = (without_name(whole, match.inner[0]), "") if is_pair else (typed.text, typed.unit)
            return FoundAnswer(
                document=document, statement=statement, value=value, unit=unit, score=score, entity=entity,
                attribute=statement.label, item=whole, other="".join(match.inner[:1]),
            )  # fmt: skip
    if pattern.asked_noun and pattern.wanted in (Wanted.FACT, Wanted.PERSON) and not match.is_about:
        return _reversed(statement, pattern, document, match, asked)
    if pattern.wanted in (Wanted.DEFINITION, Wanted.FACT, Wanted.OPEN) and _names_label(pattern, statement.label):
        if pattern.wanted is Wanted.FACT and attribute:
            return None
        score = 2 * match.coverage + match.nearness + 0.6
        return FoundAnswer(
            document=document,
            statement=statement,
            value=statement.value,
            score=score,
            entity=statement.label,
            attribute="meaning",
        )
    return None


def says_label(statement: Statement, pattern: QuestionPattern) -> bool:
    """Return whether a label names what is asked."""
    label = stems_of(statement.label)
    return any(term.weight >= 1 and any_in(term.others, label) for term in pattern.terms)


def _item_naming(names: Sequence[str], statement: Statement) -> str | None:
    """Return the value, or the item of it that names what neither label nor headings do; None where none does."""
    inside = [name for name in names if not is_named_in(name, statement.label)]
    if not inside:
        return statement.value
    items = items_of(statement.value)
    found = [item for item in items if all(_begins_with(name, item) for name in inside)]
    if len(found) != 1:
        return None
    return found[0] if bare(found[0]).casefold() not in (name.casefold() for name in inside) else None


def _begins_with(name: str, item: str) -> bool:
    return re.match(rf"{re.escape(name)}(?![\w-]| [A-Z])", item, re.IGNORECASE) is not None


def _names_label(pattern: QuestionPattern, label: str) -> bool:
    names = pattern.entities or (" ".join(term.stem for term in pattern.terms),)
    if pattern.entities:
        return any(is_head(name, label) for name in names)
    return stems_of(label) == {term.stem for term in pattern.terms}


def _reversed(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching, asked: frozenset[str]
) -> FoundAnswer | None:
    """The thing that a statement is about, where the question describes it: "Which option sets the time-out?"."""
    score = 2 * match.coverage + match.nearness
    if not stems_of(statement.label) & asked and _is_name(statement.label):
        if match.coverage < LEAST_OPEN_COVERAGE:
            return None
        return FoundAnswer(
            document=document,
            statement=statement,
            value=statement.label,
            score=score,
            entity=statement.label,
            is_entity=True,
        )
    title = bare((*(statement.scope[-1:] or ()), *document.names)[0]) if (statement.scope or document.names) else ""
    if not title or any(is_named_in(name, title) for entity in pattern.entities for name in split_entity(entity)):
        return None
    value_items = [item.casefold() for item in items_of(statement.value)]
    exact = all(
        any(re.match(rf"{re.escape(name.casefold())}(?![\w-]| [a-z])", item) for item in value_items)
        for name in match.inner
    )
    specific = specificity_of(statement.label, asked)
    if specific < 0.5 or not (pattern.entities or pattern.numbers) or not exact:
        return None
    return FoundAnswer(
        document=document,
        statement=statement,
        value=title,
        score=score + specific,
        entity=title,
        attribute=statement.label,
        is_entity=True,
    )


def _is_name(label: str) -> bool:
    """Return whether a label is an identifier or a name, and not the name of an attribute."""
    return bool(re.search(r"[_`./-]|^\W|\d|[a-z][A-Z]", label)) or len(label.split()) <= 4


def answer_by_row(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching
) -> FoundAnswer | None:
    """Return the cell of the row and the column that a question names."""
    cells = statement.cells
    if len(cells) < 2:
        return None
    if pattern.wanted is Wanted.DEFINITION:
        named = [_is_defined(cells[0][1], pattern), *(False for _ in cells[1:])]
    else:
        named = [_is_cell_named(cell, pattern) or _is_numbered(head, cell, pattern) for head, cell in cells]
    if not any(named):
        return _row_of_noun(statement, pattern, document, match)
    chosen = _column(cells, named, pattern)
    if chosen is None:
        return None
    worth, at = chosen
    keys = " ".join(cell for is_named, (_, cell) in zip(named, cells, strict=True) if is_named)
    typed = typed_value(cells[at][1], pattern, f"{cells[at][0]} {keys}")
    if typed is None:
        return None
    return FoundAnswer(
        document=document,
        statement=statement,
        value=typed.text,
        unit=typed.unit,
        score=2 * match.coverage + worth + match.nearness + 0.3,
        entity=bare(next(cell for is_named, (_, cell) in zip(named, cells, strict=True) if is_named)),
        attribute=cells[at][0],
        item=cells[at][1],
        is_entity=at == 0,
    )


def _is_defined(cell: str, pattern: QuestionPattern) -> bool:
    return any(is_head(entity, cell) for entity in pattern.entities) or bare(cell) in pattern.numbers


def _column(
    cells: Sequence[tuple[str, str]], named: Sequence[bool], pattern: QuestionPattern
) -> tuple[float, int] | None:
    """Return the column that a question asks for, and how sure that is; None where several could be."""
    asked = asked_stems(pattern)
    nouns = stems_of(pattern.asked_noun)
    best: tuple[float, int] | None = None
    for at, (head, cell) in enumerate(cells):
        if not named[at] and cell:
            worth = (specificity_of(head, asked) if head else 0.0) + 0.5 * bool(nouns & stems_of(head))
            if worth and (best is None or worth > best[0]):
                best = (worth, at)
    if best is not None:
        return best
    fitting = [at for at, (_, cell) in enumerate(cells) if not named[at] and cell and typed_value(cell, pattern, "")]
    if pattern.wanted is Wanted.DEFINITION:
        fitting = sorted(fitting, key=lambda at: -len(cells[at][1]))[:1]
        return (0.3, fitting[0]) if fitting and len(cells[fitting[0]][1].split()) > 2 else None
    counted = [at for at in fitting if pattern.asked_noun and _unit_is(cells[at][1], pattern)]
    fitting = counted or fitting
    by_kind = pattern.wanted in (Wanted.NUMBER, Wanted.DATE, Wanted.PERSON) or len(cells) == 2
    return (0.3, fitting[0]) if len(fitting) == 1 and by_kind else None


def _row_of_noun(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching
) -> FoundAnswer | None:
    """Return the cell below the noun behind "which", where the other cells say all that the question says of it."""
    nouns = stems_of(pattern.asked_noun)
    rest = [term for term in pattern.terms if term.weight >= 0.6 and term.stem not in nouns]
    at = next((at for at, (head, cell) in enumerate(statement.cells) if cell and nouns & stems_of(head)), None)
    if at is None or not rest:
        return None
    others = stems_of(" ".join(cell for n, (_, cell) in enumerate(statement.cells) if n != at))
    if not all(any_in(term.others, others) for term in rest):
        return None
    value = bare(statement.cells[at][1])
    return FoundAnswer(
        document=document,
        statement=statement,
        value=value,
        score=2 * match.coverage + match.nearness + 0.2,
        entity=value,
        is_entity=True,
    )


def _unit_is(cell: str, pattern: QuestionPattern) -> bool:
    """Return whether a cell has a number of what "how many" counts."""
    noun = pattern.asked_noun.rstrip("s")
    return any(number.unit.rstrip("s") == noun for number in numbers_in(cell))


def _is_numbered(head: str, cell: str, pattern: QuestionPattern) -> bool:
    """Return whether the question names a row by a number below its column: "bed 2"."""
    return (
        cell.isdecimal()
        and bool(head)
        and re.search(rf"\b{re.escape(head)} {cell}\b", pattern.text, re.IGNORECASE) is not None
    )


def _is_cell_named(cell: str, pattern: QuestionPattern) -> bool:
    """Return whether the question names what stands in a cell, as a whole."""
    plain = bare(cell)
    words = len(plain.split())
    if any(is_head(e, cell) or (is_named_in(e, plain) and words <= len(e.split()) + 2) for e in pattern.entities):
        return True
    stems = stems_of(plain) - EMPTY_IN_LABELS
    if not stems or len(stems) > 6:
        return False
    own = {stem for term in pattern.terms for stem in (term.stem,)} | stems_of(" ".join(pattern.numbers))
    return stems <= own and any(len(stem) > 1 for stem in stems)
