"""The sentences that a line of a document stands for: a row under its header, a label with its value, a subject named.

Each reading is a list of parts, as `parts_of` gives them; a claim has to follow from one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

from smart_model_router_research.deep.edits import kept_of, orders_of, parts_of
from smart_model_router_research.deep.folding import fold, without_markup
from smart_model_router_research.deep.heading_subjects import named_readings
from smart_model_router_research.deep.labels import LIST_LABEL, is_section, label_readings
from smart_model_router_research.deep.mutual import from_either_end
from smart_model_router_research.deep.quantities import UNITS
from smart_model_router_research.deep.sentence_parts import ANY_MARK, Part
from smart_model_router_research.deep.sentences import ITEM_MARK, MAX_CHARACTERS, MAX_ROWS, Sentence, without_marks
from smart_model_router_research.deep.words import Item, read_items

_VALUE_HEADS = frozenset(("value", "values", "setting", "detail", "details"))
"""The heads of a second column whose rows are each a property and its value."""

_TURNING_HEADINGS = frozenset(
    "myth myths misconception misconceptions fallacy fallacies hoax incorrect wrong false not no never without "
    "removed removal removals deprecated deprecation deprecations obsolete unsupported former formerly previous "
    "previously planned proposed proposal proposals future upcoming rejected withdrawn cancelled canceled "
    "repealed superseded expired hypothetical fictional if when whenever unless until cannot can't couldn't claim "
    "claims alleged rumours rumors wrongly denied disputed debunked verdict avoid anti-pattern anti-patterns "
    "antipatterns don't dont legacy old older outdated discontinued abandoned roadmap wishlist ideas fiction "
    "superstition superstitions conspiracy fake allegation satire rumour rumor lies mistakes pitfalls draft drafts "
    "unconfirmed "
    "debate criticism allegations speculation speculations theories "
    "conjecture conjectures opinions known-issues predictions hypotheses hypothesis testimonials plot legend legends "
    "projected projection projections forecast forecasts predicted".split()
)
_REPORTING = frozenset(
    "say says said claim claims claimed believe believes believed argue argues argued think thinks thought assert "
    "asserts asserted suggest suggests suggested".split()
)
"""Verbs of reported speech: the lines that they lead to are not the source's own words."""
_NOTES = frozenset("note notes tip hint important info remark".split())
_NOTHING_TURNS = (
    "wrong",
    "false",
    "incorrect",
    "myth",
    "untrue",
    "not",
    "never",
    "avoid",
    "mistake",
    "bug",
    "misconception",
)


def readings_of(
    sentence: Sentence, header: list[str] | None, context: tuple[str, ...], before: str = ""
) -> Iterator[list[Part]]:
    """Yield what a sentence says, in each licensed reading.

    `header` are the heads of the columns where it is a row; `context` is the title and the headings above it, `before`
    what stands between them and the sentence. Where one
    of these, or the line that leads to the sentence, turns what it says, it says nothing without them.
    """
    above = parts_of(read_items(fold(" > ".join(context))), whole=True)
    lead_ins = [fold(without_markup(without_marks(lead_in))) for lead_in in sentence.lead_ins]
    led = [part for lead_in in lead_ins for part in _parts_behind_a_mark(lead_in)]
    is_turned = any(map(is_turning, context)) or any(map(is_turned_by, sentence.lead_ins))
    if sentence.is_row:
        for text in row_readings(sentence, header):
            row = parts_of(read_items(text), whole=True)
            yield [*above, *led, *behind(row)]
            if not is_turned:
                yield row
        return
    text = fold(without_markup(without_marks(sentence.text)))
    own = parts_of(read_items(text))
    if own and own[0].first in _NOTES and len(own[0].items) == 1 and ":" in text:
        own = own[1:]
    reports = any(str(part.items[0].written).lower() in _REPORTING for part in own[1:])
    if reports:  # "X, says Y" is Y's word, and is said with that or not at all
        own = parts_of(read_items(text), whole=True)
    yield [*above, *led, *behind(own)]
    if not any(is_turning(heading) for heading in context):
        yield [*led, *behind(own)]
    if is_turned or reports:
        return
    for mirrored in from_either_end(text):
        yield parts_of(read_items(mirrored), whole=True)
    for parts in (order for kept in kept_of(own) for order in orders_of(kept)):
        yield parts
        yield from named_readings(parts, context, before)
    is_labelled = len(lead_ins) == 1 and ITEM_MARK.match(sentence.text) and LIST_LABEL.fullmatch(lead_ins[0])
    label = f"{lead_ins[0]} " if is_labelled else ""
    for labelled in label_readings(label + text, context) if label or not led else ():
        yield parts_of(read_items(labelled), whole=True)
    between = [heading for heading in context[1:-1] if not _DIVISION.fullmatch(heading) and not is_section(heading)]
    if ITEM_MARK.match(sentence.text) and not led and len(context) > 1 and not between and not is_turning(context[0]):
        yield parts_of(read_items(f"{context[-1]} of {context[0]}: {text}"), whole=True)


_DIVISION = re.compile(r"(?:Section|Part|Chapter) \w+")


@lru_cache(maxsize=256)
def _parts_behind_a_mark(lead_in: str) -> list[Part]:
    """Return the parts of a line that leads to others, read once for all items of its list."""
    return behind(parts_of(read_items(lead_in), whole=True))


def behind(parts: list[Part]) -> list[Part]:
    """Return parts as they stand behind a line that leads to them."""
    return [replace(parts[0], mark=ANY_MARK), *parts[1:]] if parts else []


@lru_cache(maxsize=256)
def is_turned_by(lead_in: str) -> bool:
    """Return whether a line turns, or only reports, what it leads to."""
    return is_turning(lead_in) or any(_turns(item) for item in read_items(fold(without_markup(lead_in))))


def is_turning(heading: str) -> bool:
    """Return whether a heading turns what stands below it: "Common myths", "Removed", "Not supported"."""
    words = re.findall(r"[\w'-]+", _TURNING_NOTHING.sub("", heading).casefold())
    is_bound = bool(words) and (words[0] in _BOUNDING or any(_TURNING_FORM.fullmatch(word) for word in words))
    return is_bound or any(word in _TURNING_HEADINGS for word in words)


_TURNING_NOTHING = re.compile(
    r"\bNo\. ?(?=\d)|(?:(?<=[Ww]ho can )|(?<=[Hh]ow to ))claim\b|(?<=in )older (?=adults|people|men|women)"
)
"""In "Symphony No. 3", "How to claim", "Falls in older adults"."""
_BOUNDING = frozenset("on for without under until during only unlike except besides beyond".split())
"""Words that begin a heading that says the place, the time or the readers that what stands below it holds for."""
_TURNING_FORM = re.compile(
    r"(?!united)(?:(?:un|dis|mis)\w{3,}|re(?:mov|ject|tract|peal|vok|plac)|aban|abolish|deni|deprecat|debunk|propos|plann|"
    r"cancell?|remov|discontinu)\w*ed|in(?:correct|valid|accurate)\w*|un(?:true|likely|certain)"
)


def header_above(document: str, row: Sentence) -> list[str] | None:
    """Return the heads of the columns of a Markdown table, by a row in it.

    None where it has none, where the first cell of another row is the same, and below a row that divides the table:
    there "The COLUMN of ROW is CELL" would say something else.
    """
    above = document[: row.start].rstrip("\n").split("\n")[-MAX_ROWS:] if row.start else []
    rows: list[str] = []
    for line in reversed(above):
        if "|" not in line and not _RULE_OF_COLUMNS.fullmatch(line):
            break
        rows.append(line)
    if len(rows) < 2 or not re.fullmatch(r"[\s|:+-]+", rows[-2]):
        return None
    below = takewhile(lambda line: "|" in line, document[row.end + 1 : row.end + MAX_CHARACTERS * 10].split("\n"))
    first = cells_of(row.text)[0]
    before = [cells_of(line) for line in rows[:-2]]
    divides = any(len(cells) > 1 and not any(cells[1:]) for cells in before)
    if divides or any(cells[0] == first for cells in (*before, *map(cells_of, below))):
        return None
    return cells_of(rows[-1])


_RULE_OF_COLUMNS = re.compile(r"[ \t]*-+(?:\+-+)+[ \t]*")
"""The line below the header of a table without bars at its sides: "----+----"."""


def cells_of(row: str) -> list[str]:
    """Return the cells of a row of a table."""
    inner = row.strip().removeprefix("|")
    inner = inner[:-1] if inner.endswith("|") and not inner.endswith("\\|") else inner
    return [fold(without_markup(cell.replace("\\|", "|"))) for cell in re.split(r"(?<!\\)\|", inner)]


def _turns(item: Item) -> bool:
    return item.turns or item.key in _NOTHING_TURNS or item.written.lower() in _REPORTING


def is_of_properties(header: Sequence[str]) -> bool:
    """Return whether each row of a table is a property and its value."""
    return [head.casefold() in _VALUE_HEADS for head in header] == [False, True]


def row_readings(sentence: Sentence, header: list[str] | None) -> Iterator[str]:
    """Yield a row as it is written, and each cell of it read by the header."""
    yield fold(sentence.text)
    cells = [re.sub(r"^\(([\d.,' ]+)\)$", r"-\1", cell) for cell in cells_of(sentence.text)]
    if header is None or len(cells) != len(header) or not cells[0]:
        return
    if is_of_properties(header):
        yield f"{cells[0]}: {cells[1]}"
    names = [cells[0], f"{header[0]} {cells[0]}"] if header[0] else [cells[0]]
    for column, cell in zip(header[1:], cells[1:], strict=True):
        if cell and column and header.count(column) == 1:
            for heading, value in _with_unit(column, cell):
                for name in names:
                    yield f"The {heading} of {name} is {value}"
                    yield f"The {heading} of the {name} is {value}"
                    if value[0].isupper():
                        yield f"The {heading} of {name} is the {value}"
                if column.lower() in ("borders", "border countries"):
                    yield f"{cells[0]} borders {value}"
                    yield f"{value} borders {cells[0]}"
                yield f"{cells[0]} {heading} is {value}"
                yield f"{cells[0]}: {heading} {value}"


_UNIT = re.compile(
    "|".join([*map(re.escape, UNITS), r"pc|ly|km/h|m/s|mph|knots|months|years|acres|°[CF]|[^\W\d_]{1,3}[23²³]"])
)


def _with_unit(column: str, cell: str) -> Iterator[tuple[str, str]]:
    """Yield the head of a column with a cell, and with the unit that it has in parentheses behind the number."""
    yield column, cell
    match = re.fullmatch(r"(.+?) \(([^()]{1,12})\)", column)
    if match is not None and re.fullmatch(r"-?[\d.,' ]+", cell) and _UNIT.fullmatch(match[2]):
        yield match[1], f"{cell} {match[2]}"
