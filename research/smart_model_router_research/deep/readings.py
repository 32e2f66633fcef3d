"""The sentences that a line of a document stands for: a row under its header, a label with its value, a subject named.

Each reading is a list of parts, as `parts_of` gives them; a claim has to follow from one of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import takewhile

from smart_model_router_research.deep.edits import NAMED_NOUNS, kept_of, orders_of, parts_of
from smart_model_router_research.deep.folding import fold, without_markup
from smart_model_router_research.deep.quantities import Quantity
from smart_model_router_research.deep.sentence_parts import ANY_MARK, Part
from smart_model_router_research.deep.sentences import ITEM_MARK, MAX_CHARACTERS, MAX_ROWS, Sentence, split_sentences
from smart_model_router_research.deep.words import LIGHT, Item, read_items

SYMMETRIC = ("border countries", "borders", "bordering countries", "land boundaries", "neighbours", "neighbors")
"""Labels of what two entities have in common: either can be read from the other's page."""

_VALUE_HEADS = frozenset(("value", "values", "setting", "detail", "details"))
"""The heads of a second column whose rows are each a property and its value."""

_SUPERLATIVE = re.compile(r"\b(?:\w{3,}est|most|least|first|last|only|best|worst|main|chief)\b", re.IGNORECASE)
_NAME = r"(?:(?:[Tt]he )?[A-Z][\w'-]*(?: [A-Z][\w'-]*)*|[Tt]he (?:[a-z-]+ )?[a-z-]+)"
_MUTUAL = re.compile(
    rf"({_NAME}) (borders|is twinned with|is married to|is adjacent to|is next to|is [\d.,]+ \w+ from|"
    rf"is (?:closely |distantly )?related to) ({_NAME})"
    r"((?: along [^,;:]*)?[.]?)"
)
"""Sentences about two names that say the same from either end."""
_DIVISIONS = frozenset("section chapter article part clause paragraph rule appendix schedule".split())
"""Nouns of numbered parts of a text: "This section" is what the heading names."""
_DEFAULTS = frozenset("default defaults value".split())
_TURNING_HEADINGS = frozenset(
    "myth myths misconception misconceptions fallacy fallacies hoax incorrect wrong false not no never without "
    "removed removal removals deprecated deprecation deprecations obsolete unsupported former formerly previous "
    "previously planned proposed proposal proposals future upcoming rejected withdrawn cancelled canceled "
    "repealed superseded expired hypothetical fictional if when whenever unless until cannot can't couldn't claim "
    "claims alleged rumours rumors wrongly denied disputed debunked verdict avoid anti-pattern anti-patterns "
    "antipatterns don't dont legacy old older outdated discontinued abandoned roadmap wishlist ideas fiction "
    "satire rumour rumor lies mistakes pitfalls draft drafts unconfirmed "
    "debate criticism allegations speculation speculations theories "
    "conjecture conjectures opinions known-issues".split()
)
_REPORTING = frozenset(
    "say says said claim claims claimed believe believes believed argue argues argued think thinks thought assert "
    "asserts asserted suggest suggests suggested".split()
)
"""Verbs of reported speech: the lines that they lead to are not the source's own words."""
_NOTES = frozenset("note notes tip hint important info remark".split())
_SECTIONS = frozenset(
    "overview|summary|introduction|general|details|data|facts|key facts|specifications|technical data|"
    "technical details|features|properties|about|geography|people and society|environment|government|economy|energy|"
    "ingredients|prices|contact|communications|transportation|military and security|"
    "transnational issues|history|description|information".split("|")
)
"""Headings that say what a section is about, and not which of several things."""
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
_IDENTIFIER = re.compile(r"[A-Za-z_$-][\w.$:-]*")


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
    if (mirrored := _MUTUAL.fullmatch(text)) is not None and not any(item.turns for item in own[0].items):
        yield parts_of(read_items(f"{mirrored[3]} {mirrored[2]} {mirrored[1]}{mirrored[4]}"), whole=True)
    for parts in (order for kept in kept_of(own) for order in orders_of(kept)):
        yield parts
        yield from _named(parts, context, before)
    is_labelled = len(lead_ins) == 1 and ITEM_MARK.match(sentence.text) and _LIST_LABEL.fullmatch(lead_ins[0])
    label = f"{lead_ins[0]} " if is_labelled else ""
    for labelled in _labels(label + text, context) if label or not led else ():
        yield parts_of(read_items(labelled), whole=True)


_LIST_LABEL = re.compile(r"[A-Z][a-z]+(?: [a-z]+){0,3}:")
"""A line of a few words that leads to a list: "Ingredients:"."""


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
    words = re.findall(r"[\w'-]+", heading.casefold())
    is_bound = bool(words) and (words[0] in _BOUNDING or any(_TURNING_FORM.fullmatch(word) for word in words))
    return is_bound or any(word in _TURNING_HEADINGS for word in words)


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


def without_marks(text: str) -> str:
    """Return a line without the marks of lists, headings and quotations before it."""
    text = text.strip()
    while (match := ITEM_MARK.match(text)) is not None:
        text = text[match.end() :]
    return text.lstrip("#> ").strip()


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
                    if value[0].isupper():
                        yield f"The {heading} of {name} is the {value}"
                yield f"{cells[0]} {heading} is {value}"
                yield f"{cells[0]}: {heading} {value}"


def _with_unit(column: str, cell: str) -> Iterator[tuple[str, str]]:
    """Yield the head of a column with a cell, and with the unit that it has in parentheses behind the number."""
    yield column, cell
    match = re.fullmatch(r"(.+?) \(([^()]{1,12})\)", column)
    if match is not None and re.fullmatch(r"-?[\d.,' ]+", cell):
        unit = read_items(f"1 {match[2]}")
        if len(unit) == 1 and isinstance(unit[0].key, Quantity) and unit[0].key.unit:
            yield match[1], f"{cell} {match[2]}"


def _labels(text: str, context: tuple[str, ...]) -> Iterator[str]:
    """Yield the readings of "LABEL: VALUE": of the page, or of the heading that names one of several things on it."""
    label, colon, value = text.partition(": ")
    if not colon or not context or not value.strip() or len(label) > 80:
        return
    words = set(re.findall(r"\w+", label.casefold()))
    sections = (h for h in context[1:] if h.casefold() in _SECTIONS or words & set(re.findall(r"\w+", h.casefold())))
    subject = [context[0], *(heading for heading in context[1:] if heading not in set(sections))][-1]
    for item in _items_of(value.strip(), label):
        yield f"{label} of {subject}: {item}"
        yield f"The {label} of {subject} is {item}"
        if subject != context[0]:
            yield f"{subject}, {label} of {context[0]}: {item}"
            yield f"The {subject}, {label} of {context[0]} is {item}"
        if label.lower() in SYMMETRIC:
            yield from _symmetric(label, subject, item)


def _items_of(value: str, label: str) -> list[str]:
    """Return the value as a whole, and the items of a list in it where nothing bounds them."""
    items = read_items(value)
    if any(item.turns and item.key != "other" for item in items):
        return [value]
    if _SUPERLATIVE.search(label):
        return [value]
    parts = [part.strip() for part in re.split(r"[;,] (?![^(]*\))", value)]
    return [value, *parts] if len(parts) > 1 else [value]


def _symmetric(label: str, title: str, item: str) -> Iterator[str]:
    match = re.fullmatch(r"(.*?\D) (\d.*)", item)
    if match is not None:
        yield f"{label} of {match[1]}: {title} {match[2]}"


_THE = Item("word", "the", "the")


def _is_about_its_heading(before: str, names: list[str]) -> bool:
    """Return whether the text between a heading and a sentence speaks of nothing else than the heading names.

    A sentence there may not begin with another thing ("The timeout limits it"), or name another identifier.
    """
    if len(before) > MAX_CHARACTERS:
        return False
    for sentence in split_sentences(fold(before)):
        words = re.findall(r"-{0,2}\w[\w'.-]*", without_marks(sentence))
        first, second = (word.casefold() for word in (*words[:2], "", "")[:2])
        is_other = first in _DETERMINERS and second.rstrip("s") not in _OF_THE_NAMED
        has_other = any(_LIKE_A_NAME.match(word.rstrip(".")) and word.rstrip(".") not in names for word in words)
        if (is_other or has_other) and not any(word.rstrip(".") in names for word in words):
            return False
    return True


_DETERMINERS = frozenset("the a an its their his her each every another some no any that these those it they".split())
_OF_THE_NAMED = NAMED_NOUNS | frozenset("default value".split())
_LIKE_A_NAME = re.compile(r"-|\w+[_]|\w[a-z]+[A-Z]|\w+\.[a-z]")
_SPECIFYING = frozenset(
    "specifies sets returns controls enables disables contains determines defines gives names lists prints raises "
    "indicates limits allows causes tells configures turns selects".split()
)
"""Verbs that begin a sentence whose subject is the heading."""


def _named(parts: list[Part], context: tuple[str, ...], before: str) -> Iterator[list[Part]]:
    """Yield the readings in which "This option" or "The default" is of what the heading names.

    "It" and "The option" may be of the sentence before.
    """
    if not parts:
        return
    if parts[0].first == "this" and context:
        noun = parts[0].items[1].written.casefold() if len(parts[0].items) > 1 else ""
        if noun and noun in _DIVISIONS and context[-1].casefold().startswith(f"{noun} "):
            heading = tuple(item for item in read_items(context[-1]) if item.kind != "mark")
            yield [Part((*heading, *parts[0].items[2:])), *parts[1:]]
    names = _names(context)
    determiner, *behind = list(parts[0].items)
    first = determiner.written
    specifies = first[:1].isupper() and first.lower() in _SPECIFYING
    if not names or not (specifies or first.lower() in ("this", "the")) or not _is_about_its_heading(before, names):
        return
    if specifies:
        for name in names:
            yield [Part((Item("identifier", name, name), determiner, *behind)), *parts[1:]]
        return
    noun = behind[0].written.lower() if behind else ""
    rest = parts[1:]
    for name in names:
        named = Item("identifier", name, name)
        if determiner.key == "this" and noun in NAMED_NOUNS:
            for subject in ((named,), (_THE, behind[0], named), (_THE, named, behind[0])):
                yield [Part((*subject, *behind[1:])), *rest]
        elif determiner.key == "the" and noun in _DEFAULTS:
            width = 2 if behind[1:2] and behind[1].written.lower() in _DEFAULTS else 1
            for preposition in ("of", "for"):
                link = Item("word", preposition, preposition)
                yield [Part((determiner, *behind[:width], link, named, *behind[width:])), *rest]


def _names(context: tuple[str, ...]) -> list[str]:
    """Return the ways to write the one identifier of the nearest heading that has any; none where it has several."""
    for heading in reversed(context):
        found = {
            item.written.strip('"').split("(")[0].rstrip(".:=")
            for item in read_items(fold(heading))
            if item.kind == "identifier" and _IDENTIFIER.match(item.written.strip('"'))
        }
        if len(found) == 1:
            name = found.pop()
            names = [name, f"{name}()"]
            if "." in name.strip("."):
                names += [name.rsplit(".", 1)[1], f"{name.rsplit('.', 1)[1]}()"]
            return [each for each in names if each not in LIGHT]
        if found:
            return []
    return []
