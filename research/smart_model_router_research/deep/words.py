"""Sentences as items that can be compared: words without inflection and synonyms, identifiers, numbers, dates."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import NamedTuple

from smart_model_router_research.deep.quantities import SCALES, UNITS, Quantity, is_same, read_number
from smart_model_router_research.deep.synonyms import canonical, passives, phrases

LIGHT = frozenset("a an the of its that which then also there so".split())
"""Words that nothing is looked up by."""
TURNING = frozenset(
    "not no never none nor neither cannot without only solely merely exclusively except excepting excluding "
    "unless until till but however although though despite if when whenever while where wherever whether before "
    "after once during since first last next previous later earlier all any each every some most many much few "
    "a_few little a_little both either half least less more fewer greater other than rather instead true false "
    "wrong incorrect invalid required optional mandatory compulsory obligatory minimum maximum enabled disabled "
    "must may might can could should would shall need needs ought always was were had did been will rarely seldom "
    "often sometimes usually normally typically generally maybe mostly mainly largely partly possibly perhaps "
    "probably likely unlikely presumably estimated est alleged allegedly reportedly claimed supposedly formerly "
    "previously originally deprecated obsolete removed planned proposed intended experimental almost nearly "
    "barely hardly scarcely approximately about roughly around at_least at_most up down over under even just yet "
    "still already ago hitherto ever too enough otherwise default opposite contrary fails fail failed lacks lack "
    "lacking avoid avoids prevent prevents deny denies forbid forbids refuse refuses ignore ignores exclude "
    "excludes e.g i.e per no_one disputed contested controversial disproved debunked refuted rejected retracted "
    "denied doubtful questionable unproven unconfirmed untrue myth joke hoax lie lies rumour rumor fiction "
    "fictional nonsense satire supposed pretended imagined excluded refused ignored prevented forbidden "
    "prohibited banned avoided lacked".split()
)
"""Words that turn, bound or hedge a statement: a part with one is never left out."""
_ENGLISH = frozenset(
    "the of and to is are a an in it that for be by on with as not or this when if can from has have was which".split()
)
_FOREIGN = frozenset(
    "der die das und nicht ist ein eine mit von den im le la les et pas est un une des du dans el los las y es "
    "en con que il non di che lo gli per het van niet een och inte ikke og nie na nao não com para ve bir".split()
)
_CONTRACTIONS = (
    (re.compile(r"\b(ca)n't\b|\bcannot\b", re.IGNORECASE), "can not"),
    (re.compile(r"\bwon't\b", re.IGNORECASE), "will not"),
    (re.compile(r"\bshan't\b", re.IGNORECASE), "shall not"),
    (re.compile(r"n't\b", re.IGNORECASE), " not"),
    (re.compile(r"'re\b", re.IGNORECASE), " are"),
    (re.compile(r"'ve\b", re.IGNORECASE), " have"),
    (re.compile(r"'ll\b", re.IGNORECASE), " will"),
    (re.compile(r"\b(it|that|there|what|he|she|who|here)'s\b", re.IGNORECASE), r"\1 is"),
)
_OF_AMOUNTS = "|".join(sorted(map(re.escape, UNITS), key=len, reverse=True))
_TYPOGRAPHY: tuple[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]], ...] = (
    (re.compile(r"(?<=\d) ?([ap])\.\s?m\.(?=\W*$)"), r" \1m."),
    (re.compile(r"(?<=\d) ?([ap])(?:\.\s?m\.?|m)(?!\w)"), r" \1m"),
    (re.compile(r"(?<!\w)(?:[A-Z]\.){2,}(?!\w)"), lambda match: match[0].replace(".", "")),
    (re.compile(r"(?<=\d)(?: ?\u00d7 ?| x )(?=\d)"), " x "),
    (re.compile(r"(?<=\w\w )&(?= \w\w)"), "and"),
    (re.compile(rf"(?<!from )(?<!by )\b(\d[\d.,]*)-(\d[\d.,]*) ?(?=(?:{_OF_AMOUNTS})(?!\w))"), r"\1 to \2 "),
    (re.compile(r"(?<=[a-z])\^([23])(?!\w)"), r"\1"),
)
"""Ways to write the same: "9 p.m." and "9pm", "U.S." and "US", "140\u00d7200" and "140 x 200", "&" and "and"."""
_SIGNS = {"<=": "<=", "=<": "<=", "\u2264": "<=", ">=": ">=", "\u2265": ">=", "~": "~", "\u2248": "~"} | {
    sign: sign for sign in ("<", ">", "=", "==", "!=", "\u2260", "\u00b1", "?", "(?)")
}
"""Signs that say something about what stands behind them."""
_COMPARED = re.compile(r"(?<![-=<>])([<>!=]=|=<|[<>=~\u2264\u2265\u2248\u2260\u00b1])(?=\s*[-+$\u20ac\u00a3]?\.?\d)")
_MARKS = "\"'`"
_OPENING = _MARKS + "([{<"
_CLOSING = _MARKS + ".,;:!?)]}>…"
_QUOTED = re.compile(r"([\"'`]+)([^\W\d_]{2,})\1([.,;:!?)]*)")
_EMPHASIZED = re.compile(r"([(\"']*)(\*\*|\*|_)([^*_\s]+)\2([.,;:!?)\"']*)")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:[-'][^\W\d_]+)*")
_NUMBER_AND_UNIT = re.compile(r"([-+]?)([$€£¥]?)([-+]?)(\d[\d.,'_]*(?:[eE][-+]?\d{1,3})?)([^\W\d_]{1,4}|%|)")
_NUMBER_HYPHEN = re.compile(r"(\d[\d.,]*)-([^\W\d_]+)")
_OF_TYPOGRAPHY = re.compile(r"[\d&^]|[A-Z]\.")
"""Signs without which nothing of these is in a sentence."""
_RANGE = re.compile(r"(\d[\d.,]*)-(\d[\d.,]*)([^\W\d_]{1,4}|%|)")
_TIMES = re.compile(r"(\d{1,2}:\d{2})-(\d{1,2}:\d{2})")
_YEARS = re.compile(r"[12]\d{3}-[12]\d{3}")
_ORDINALS: dict[str, str] = dict(
    zip(
        "1st 2nd 3rd 4th 5th 6th 7th 8th 9th 10th".split(),
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(),
        strict=True,
    )
)
_MONEY = {"k": 3, "K": 3, "m": 6, "M": 6, "mn": 6, "b": 9, "B": 9, "bn": 9, "tn": 12}
"""Powers of ten behind a sum of money."""
_CURRENCIES = frozenset(["$", "US$", "€", "£", "¥", "USD", "EUR", "GBP", "JPY"])
_MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sep sept|october oct|"
        "november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}
_ISO_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"[12]\d{3}")
ABOUT = canonical("about")
"""The key of "about" and its synonyms."""
Key = str | Quantity | tuple[int, ...]


class Item(NamedTuple):
    """One word, identifier, number, date or mark of a sentence. Two items are equal by kind and key."""

    kind: str
    """`word`, `identifier`, `number`, `date`, `sign` (less than, a question), or `mark` for a comma and the like."""
    key: Key
    written: str

    @property
    def turns(self) -> bool:
        """Return whether it turns, bounds or hedges what is said."""
        words = (str(self.key), self.written.lower(), *self.written.lower().split("-"))
        return self.kind == "sign" or (self.kind == "word" and any(word in TURNING for word in words))

    @property
    def is_light(self) -> bool:
        """Return whether nothing is looked up by it."""
        return self.kind == "word" and self.key in LIGHT

    def is_exactly(self, source: Item) -> bool:
        """Return whether this number of a claim is that one of a source, not rounded."""
        mine, its = self.key, source.key
        is_equal = (
            isinstance(mine, Quantity)
            and isinstance(its, Quantity)
            and mine.value * mine.factor == its.value * its.factor
        )
        return is_equal and self.same(source)

    def same(self, source: Item, *, about: bool = False) -> bool:
        """Return whether this item of a claim is that one of a source; numbers may be rounded, see `is_same`."""
        if isinstance(self.key, Quantity):
            return isinstance(source.key, Quantity) and is_same(self.key, source.key, about=about)
        if self.kind == source.kind:
            is_word = self.kind == "word" and self.written.lower() == source.written.lower()
            return self.key == source.key or is_word or (self.key == "about_of" and source.key == ABOUT)
        # "print" at the start of a sentence, or `print` as code, is the word
        return self.kind in _TEXTS and source.kind in _TEXTS and self.written == source.written


_TEXTS = ("word", "identifier")


def read_items(sentence: str) -> list[Item]:
    """Return the items of a folded sentence."""
    if "'" in sentence or "annot" in sentence:
        for pattern, instead in _CONTRACTIONS:
            sentence = pattern.sub(instead, sentence)
    if _OF_TYPOGRAPHY.search(sentence):
        for typography, same in _TYPOGRAPHY:
            sentence = typography.sub(same, sentence)
    return _join_dates(_with_about(_join_quantities(_with_passives(_join_phrases(list(_tokens(sentence)))))))


def _with_about(items: list[Item]) -> list[Item]:
    """Put "about" for "around" before a number, and another word for the one in "they warned about 20 firms"."""
    if not any(item.written.lower() in ("about", "around") for item in items):
        return items
    found: list[Item] = []
    for item, before, after in zip(items, [None, *items], [*items[1:], None], strict=False):
        is_of = before is not None and before.written.lower() in _TALKING and item.written.lower() == "about"
        is_around = item.key == "around" and after is not None and after.kind == "number"
        is_around = is_around and (before is None or before.key in _BE or before.key in ("has", "have", "had", "of"))
        key = "about_of" if is_of else ABOUT if is_around else item.key
        found.append(Item(item.kind, key, item.written))
    return found


_TALKING = frozenset(
    "warn warns warned complain complains complained know knows knew talk talks talked ask asks asked write writes "
    "wrote learn learned worry worries worried read reads hear heard think thinks thought tell told inform informed "
    "speak spoke something".split()
)
"""Words behind which "about" is no estimate, or may be none."""


def is_english(items: list[Item]) -> bool:
    """Return whether the light words and clauses of these items can be told: English words are there, no others are."""
    words = {item.key for item in items if item.kind == "word"}
    return len(words & _ENGLISH) > len(words & _FOREIGN)


def _tokens(sentence: str) -> list[Item]:
    found: list[Item] = []
    if _COMPARED.search(sentence):
        sentence = _COMPARED.sub(r" \1 ", sentence)
    chunks = sentence.split()
    is_quoted = False
    for number, chunk in enumerate(chunks):
        is_quoted, begin = is_quoted != (chunk.count('"') % 2 == 1), len(found)
        after = chunks[number + 1] if number + 1 < len(chunks) else ""
        if chunk in _SIGNS:
            found.append(Item("sign", _SIGNS[chunk], chunk))
        elif chunk == "-" and after[:1].isdigit() and not (number and chunks[number - 1][-1:].isdigit()):
            found.append(Item("sign", chunk, chunk))
        elif chunk == "A" and found:
            found.append(Item("identifier", chunk, chunk))
        else:
            _read_chunk(chunk, found)
            if (is_quoted or '"' in chunk or chunk[:1].isupper()) and begin:
                found[begin:] = [_as_written(item) for item in found[begin:]]
    return found


def _as_written(item: Item) -> Item:
    """Return a word in a name or a quotation, which no other stands for: Prison Act, "a big army"."""
    is_other = item.kind == "word" and item.key != item.written.lower() and _PLAIN_WORD.fullmatch(item.written)
    return Item("word", item.written.lower(), item.written) if is_other else item


def _read_chunk(chunk: str, found: list[Item]) -> None:
    """Append the items of what stands between two spaces. A word in quotation marks is a name.

    In double ones it is no word of the writer's own: a "free" trial is not free.
    """
    if (match := _QUOTED.fullmatch(chunk)) is not None:
        name = f'"{match[2]}"' if '"' in match[1] else match[2]
        found.append(Item("identifier", name, name))
        found.extend(Item("mark", mark, mark) for mark in match[3] if mark in ",;:)?")
        return
    if (match := _EMPHASIZED.fullmatch(chunk)) is not None:
        chunk = match[1] + match[3] + match[4]
    core = chunk.lstrip(_OPENING)
    found.extend(Item("mark", mark, mark) for mark in chunk[: len(chunk) - len(core)] if mark in "([{")
    closing = ""
    while core and core[-1] in _CLOSING:
        if core[-1] in ")]}>" and _is_open(core):
            break
        core, closing = core[:-1], core[-1] + closing
    if core:
        found.extend(_read_core(core) if core.strip("-") else [Item("mark", "-", core)])
    found.extend(Item("sign" if mark == "?" else "mark", mark, mark) for mark in closing if mark in ",;:)]}?")


def _is_open(core: str) -> bool:
    """Return whether the last bracket closes one inside of the token: `f(x)`."""
    pairs = {")": "(", "]": "[", "}": "{", ">": "<"}
    return core.count(pairs[core[-1]]) >= core.count(core[-1])


def _read_core(core: str) -> list[Item]:
    if _PLAIN_WORD.fullmatch(core):
        if len(core) > 1 and core.isupper() and core.lower() not in TURNING:
            return [Item("identifier", core, core)]
        if core[1:] != core[1:].lower() and not core.isupper():  # CamelCase
            return [Item("identifier", core, core)]
        if core.lower() in _MONTHS and core[0].isupper():
            return [Item("word", core.lower(), core)]
        return [_word(core)]
    if core.lower() in ("e.g", "i.e"):
        return [Item("word", core.lower(), core)]
    if found := _read_numbers(core):
        return found
    if core in UNITS and not core.isalnum():
        return [Item("identifier", core, core)]
    return [Item("identifier", core.rstrip(".:="), core)]


def _read_numbers(core: str) -> list[Item]:
    """Return the items of a date, a range, or a number with its unit; none of anything else."""
    if (match := _ISO_DATE.fullmatch(core)) is not None:
        return [Item("date", tuple(int(part) for part in match.groups()), core)]
    if (match := _NUMBER_HYPHEN.fullmatch(core)) is not None and (number := read_number(match[1])) is not None:
        return [Item("number", number, match[1]), _word(match[2])]
    if (ordinal := _ORDINALS.get(core)) is not None:
        return [Item("word", ordinal, core)]
    if (match := _RANGE.fullmatch(core)) is not None:
        least, most = read_number(match[1]), read_number(match[2])
        if least is not None and most is not None and least.value < most.value and _is_amount(match):
            return [Item("number", least, match[1]), Item("word", "to", "to"), *_read_core(match[2] + match[3])]
    if (match := _TIMES.fullmatch(core)) is not None:
        return [
            Item("identifier", match[1], match[1]),
            Item("word", "to", "to"),
            Item("identifier", match[2], match[2]),
        ]
    if (match := _NUMBER_AND_UNIT.fullmatch(core)) is not None and (number := read_number(match[4])) is not None:
        sign = -1 if "-" in match[1] + match[3] else 1
        if match[2] and (power := _MONEY.get(match[5])) is not None:
            size = Decimal(10) ** power
            number = replace(number, value=number.value * size * sign, step=number.step * size, is_scaled=True)
            return [Item("number", replace(number, unit=UNITS[match[2]][0]), core)]
        unit, factor = UNITS.get(match[5] or match[2], ("", Decimal(1)))
        if unit or not match[5]:
            number = replace(number, value=number.value * sign, unit=unit, factor=factor)
            return [Item("number", number, core)]
    return []


def _is_amount(match: re.Match[str]) -> bool:
    """Return whether a range is one of amounts or years: "25-75mm", "1811-1829", and no "sections 2-5"."""
    return bool(match[3]) or _YEARS.fullmatch(match[0]) is not None


def _word(text: str) -> Item:
    lower = text.lower()
    if (number := read_number(lower)) is not None:
        return Item("number", number, text)
    return Item("word", canonical(lower), text)


def _with_passives(items: list[Item]) -> list[Item]:
    """Put one word for participles of one meaning: "is run" for "is executed", and not "they run"."""
    of = passives()
    return [
        Item("word", of[str(item.key)], item.written)
        if before is not None and before.key in _BE and item.kind == "word" and item.key in of
        else item
        for item, before in zip(items, [None, *items], strict=False)
    ]


_BE = frozenset("is are was were be been being".split())


def _join_phrases(items: list[Item]) -> list[Item]:
    """Put one word for each phrase of the table."""
    known = phrases()
    found: list[Item] = []
    at = 0
    while at < len(items):
        for words, instead in known.get(items[at].written.lower(), ()):
            rest = items[at : at + len(words)]
            if tuple(item.written.lower() for item in rest) == words:
                found.append(Item("word", instead, " ".join(item.written for item in rest)))
                at += len(words)
                break
        else:
            found.append(items[at])
            at += 1
    return found


def _join_quantities(items: list[Item]) -> list[Item]:
    """Give each number the scale word and the unit that follow it."""
    found: list[Item] = []
    at = 0
    while at < len(items):
        item = items[at]
        at += 1
        number, written = item.key, item.written
        if not isinstance(number, Quantity):
            after = items[at].key if at < len(items) else None
            if item.written not in _CURRENCIES or not isinstance(after, Quantity) or after.unit:
                found.append(item)
                continue
            unit, factor = UNITS[item.written]
            number, written = replace(after, unit=unit, factor=factor), f"{item.written} {items[at].written}"
            at += 1
        if at < len(items) and (power := SCALES.get(items[at].written.lower())) is not None:
            size = Decimal(10) ** power
            number = replace(number, value=number.value * size, step=number.step * size, is_scaled=True)
            written += f" {items[at].written}"
            at += 1
        if not number.unit and (read := _unit_at(items, at)) is not None:
            (base, size), width = read
            number = replace(number, unit=base, factor=size)
            written = " ".join([written, *(item.written for item in items[at : at + width])])
            at += width
        if found and (joined := _joined(found[-1].key, number)) is not None:
            before = found.pop()
            number, written = joined, f"{before.written} {written}"
        found.append(Item("number", number, written))
    return found


def _joined(first: Key, second: Quantity) -> Quantity | None:
    """Return the sum of hours and the minutes behind them, and of other units of time; None for other numbers."""
    if not isinstance(first, Quantity) or not first.unit == second.unit == "s" or first.step != 1:
        return None
    if not 0 < second.value * second.factor < first.factor:
        return None
    total = first.value * first.factor / second.factor + second.value
    return replace(second, value=total, written=f"{first.written} {second.written}")


def _unit_at(items: list[Item], at: int) -> tuple[tuple[str, Decimal], int] | None:
    """Return the unit that begins at an item, and how many items it has."""
    first = items[at].written if at < len(items) else ""
    second = items[at + 1].written if at + 1 < len(items) else ""
    if (first, second) == ("per", "cent"):
        return UNITS["%"], 2
    if first in ("sq", "square") and _unit(second) is not None:
        return (f"{second}^2", Decimal(1)), 2
    unit = _unit(first)
    return None if unit is None else (unit, 1)


def _unit(text: str) -> tuple[str, Decimal] | None:
    if len(text) == 1 and text.isalpha() and text.islower() and text not in "smhgl":
        return None
    return UNITS.get(text) or (UNITS.get(text.lower()) if len(text) > 3 else None)


def _join_dates(items: list[Item]) -> list[Item]:
    """Put one date for a day, a month and a year, in any order, and for a month with a year or a day."""
    found: list[Item] = []
    at = 0
    while at < len(items):
        read = _read_date(items, at) if _may_begin_date(items[at]) else None
        if read is None:
            found.append(items[at])
            at += 1
        else:
            date, width = read
            found.append(Item("date", date, " ".join(item.written for item in items[at : at + width])))
            at += width
    return found


def _may_begin_date(item: Item) -> bool:
    return _month(item) is not None or _DAY.fullmatch(item.written) is not None


def _month(item: Item) -> int | None:
    return _MONTHS.get(item.written.lower().rstrip(".")) if item.written[:1].isupper() else None


def _read_date(items: list[Item], at: int) -> tuple[tuple[int, ...], int] | None:
    words = items[at : at + 5]
    if (day := _day(words[0])) is not None and len(words) > 1 and (month := _month(words[1])) is not None:
        comma = len(words) > 2 and words[2].written == ","
        year = words[2 + comma] if len(words) > 2 + comma else None
        if year is not None and _YEAR.fullmatch(year.written):
            return (int(year.written), month, day), 3 + comma
        return (month, day), 2
    if (month := _month(words[0])) is not None and len(words) > 1:
        if (day := _day(words[1])) is not None:
            comma = len(words) > 2 and words[2].written == ","
            year = words[2 + comma] if len(words) > 2 + comma else None
            if year is not None and _YEAR.fullmatch(year.written):
                return (int(year.written), month, day), 3 + comma
            return (month, day), 2
        if _YEAR.fullmatch(words[1].written):
            return (int(words[1].written), month), 2
    return None


def _day(item: Item) -> int | None:
    match = _DAY.fullmatch(item.written)
    return int(match[1]) if match is not None and 1 <= int(match[1]) <= 31 else None
