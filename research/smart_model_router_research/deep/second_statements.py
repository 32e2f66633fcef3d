"""A last clause of "and" that may be left out: a statement beside that of the first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from smart_model_router_research.deep.clause_forms import (
    BE,
    DETERMINERS,
    FINITE,
    MOVABLE,
    PREPOSITIONS,
    SAID_OF_MANY,
    is_past,
    is_plural,
    joins_or_embeds,
    verb_runs,
)
from smart_model_router_research.deep.quantities import UNITS, Quantity
from smart_model_router_research.deep.sentence_parts import Part
from smart_model_router_research.deep.words import Item

_SUBJECT_PRONOUNS = frozenset("it he she they".split())


def is_second_statement(first: Part, second: Part) -> bool:
    """Return whether a last part of "and" is a statement beside that of the first part, which stands without it."""
    if _bounds([second]) or first.first in MOVABLE or verb_runs(first.items) > 1 or _embeds(first.items):
        return False
    items = second.items
    if len(items) < 2:
        return False
    if any(item.key in _JOINING for item in first.items) or _undoes(first.items, items):
        return False
    if items[1].key in _SUBJECT_PRONOUNS:
        return len(items) > 2 and _tells_more(first.items, items[2], items[3] if len(items) > 3 else None)
    if items[1].written in _TOLD:
        return first.first in DETERMINERS and verb_runs(first.items) == 1
    return _has_subject_and_verb(items, is_verb_seen=verb_runs(first.items) == 1)


def _has_subject_and_verb(items: Sequence[Item], *, is_verb_seen: bool) -> bool:
    """Return whether "and" begins a statement: a subject, and behind it a verb by its form.

    A form that may be a participle, too, is a verb only where the other statement shows its own (`is_verb_seen`).
    """
    nouns = 0
    for at, item in enumerate(items[1:], 1):
        word = item.written.lower()
        after = items[at + 1] if at + 1 < len(items) else None
        if nouns and _is_finite(items, at):
            return True
        is_article = nouns > 0 and item.key in DETERMINERS and items[at - 1].key != "of"
        if _joins(item) or item.key in _SUBJECT_PRONOUNS or is_article:
            return False
        if nouns and after is not None and is_past(word) and (after.key in DETERMINERS or _counts(items, at + 1, word)):
            return is_verb_seen
        if word.endswith("ing") or (word.endswith("ed") and not _is_before_noun(after)):
            return False
        nouns += item.key not in DETERMINERS
    return False


def _is_finite(items: Sequence[Item], at: int) -> bool:
    """Return whether a form stands here that no noun and no participle has, with something behind it."""
    word = items[at].written.lower()
    if at + 1 == len(items):
        return word in _INTRANSITIVE
    if word in SAID_OF_MANY and items[at - 1].written.endswith("s"):
        return True
    is_third = at > 2 and (word in _THIRD_PERSON or _is_third_person(items, at))
    return word in FINITE or is_third


def _undoes(first: Sequence[Item], second: Sequence[Item]) -> bool:
    """Return whether a second statement ends, changes, or bounds what the first says, or gives another amount of it."""
    if any(item.key in _OBJECTS for item in second[2:]) or not _states(first):
        return True
    is_of_text = len(second) > 3 and second[2].written.lower() in _OF_TEXTS and second[3].key in BE
    named = {item.written.lower() for item in first if item.kind == "word"} - DETERMINERS
    is_of_same = any(
        one.key in ("the", "this", "that") and other.written.lower() in named for one, other in pairwise(second)
    )
    if is_of_text or is_of_same:
        return True
    units = {key.unit for item in first if isinstance(key := item.key, Quantity) and key.unit}
    others = {key.unit for item in second if isinstance(key := item.key, Quantity) and key.unit}
    is_other_amount = bool(units & others) and second[1].key in _SUBJECT_PRONOUNS
    is_price = any(isinstance(key := item.key, Quantity) and key.unit in _CURRENCIES for item in second)
    undoing = _CHANGING if second[1].key in _SUBJECT_PRONOUNS else _UNDOING
    return (
        is_other_amount or is_price or any(undoing.match(item.written) or item.written in _OF_BOUNDS for item in second)
    )


_TAKEN_BACK = (
    "deni|disput|reject|refut|withdr|cancel|overturn|revers|annul|revok|repeal|supersed|contradict|doubt|challeng|"
    "debunk|disprov|retract|mistak|fake|alleg|commut|strip|void|acquit|pardon|dismiss|suspend|postpon|waiv|veto|scrap|"
    "pull|disown|drop|quash|disqualif|block|threw|throw|oust|lower|gutt|exempt|error|guess|inaccura|forge|rigged|sham$|"
    "useless|bankrupt|wrong|off$|deadly|poison"
)
_UNDOING = re.compile(_TAKEN_BACK)
"""The beginnings of words by which a statement undoes the one before it."""
_CHANGING = re.compile(
    rf"{_TAKEN_BACK}|ceas|bann|replac|correct|abandon|abolish|clos|remov|delet|expir|laps|halt|fail|los|lift|relax|"
    "left|split|went|amend|revis|chang|limit|restrict|exclud|reduc|sack|reserv|releas|destroy|demolish|stop|ended"
)
"""Those by which a statement about the same thing changes or bounds it."""
_OF_BOUNDS = frozenset(
    "charge charges fee fees fine fines penalty penalties surcharge exception exceptions exemption exemptions "
    "restriction restrictions condition conditions verdict sentence conviction ruling".split()
)


_OF_TEXTS = frozenset(
    "story tale book novel account narrator author figure number date claim report record film play text source "
    "document confession statement law bill proposal rule timetable schedule plan map study result evidence proof "
    "picture photo letter article page entry quote quotation legend memory witness testimony estimate data poem song "
    "scene dream case deal vote title job role test trial experiment model sample".split()
)
"""Nouns of what says or shows something: what is said of them may undo what they say."""


def _tells_more(first: Sequence[Item], verb: Item, after: Item | None) -> bool:
    """Return whether "it" and a verb say another thing of what the first statement says something of.

    What was, is no more where the first is of now, and "it is free" may be where it is not.
    """
    finite = next((item.key for item in first if item.key in FINITE), "")
    is_now = finite in ("is", "are", "has", "have")
    if verb.key in _OF_NOW or (verb.key == "has" and (after is None or not after.written.endswith(("ed", "en", "ce")))):
        return False
    return not (is_now and verb.key in ("was", "were", "has", "had"))


_OF_NOW = frozenset(
    "includes requires asks is are have becomes can may could will would gives costs needs applies".split()
)
_OBJECTS = frozenset("it them this these".split())
_CURRENCIES = frozenset(UNITS[sign][0] for sign in ("$", "USD", "\u20ac", "\u00a3", "GBP", "\u00a5", "JPY"))


def _states(items: Sequence[Item]) -> bool:
    """Return whether a clause states something, by the form of its verb or a plural before it: "touch it" does not."""
    has_verb = verb_runs(items) > 0 or any(item.key in FINITE for item in items)
    has_third = any(_is_third_person(items, at) for at in range(1, len(items)))
    return has_verb or has_third or is_plural(items[0])


def _is_before_noun(after: Item | None) -> bool:
    return after is not None and after.written.islower() and after.key not in PREPOSITIONS | {"to", "of"}


def _counts(items: Sequence[Item], at: int, verb: str) -> bool:
    """Return whether a number of things stands here, and no time: "won 52 seats"; or a thing: "stopped treatment"."""
    key = items[at].key
    if items[at].kind == "word" and at + 1 == len(items) and verb.endswith("ed"):
        return (
            items[at].written.islower() and items[at].key not in PREPOSITIONS and not items[at].written.endswith("ly")
        )
    return isinstance(key, Quantity) and key.unit != "s" and at + 1 < len(items) and items[at + 1].kind == "word"


def _embeds(items: Sequence[Item]) -> bool:
    """Return whether a statement may have another one in it, which goes on behind it.

    "Messages older than this value" has none, nor has "wrote her first quartet".
    """
    kept = [
        item
        for at, item in enumerate(items)
        if item.key != "than" and (item.key not in ("after", "before", "since") or verb_runs(items[at + 1 :]))
    ]
    written = next((at for at, item in enumerate(kept) if item.written in _OF_WORKS), None)
    behind = kept[written + 1 :] if written is not None else []
    if written is not None and behind and behind[0].key in DETERMINERS and not verb_runs(behind):
        del kept[written]
    return joins_or_embeds(kept, infinitives=False, participles=False)


_OF_WORKS = frozenset("wrote write writes found finds saw sees made makes added adds offers offered described".split())
"""Verbs that take a clause, or a thing, and then no other verb stands behind them."""


def _joins(item: Item) -> bool:
    word = item.written.lower()
    return word in ("that", "how") or word.startswith("wh") or item.key in MOVABLE or item.key in ("and", "or", "but")


_JOINING = frozenset(
    "both either neither not_only between sum total consists consist_of includes contains comprises".split()
)
"""Words that a last part of "and" may belong to."""
_THIRD_PERSON = frozenset(
    "contains includes becomes allows gives takes goes comes keeps provides exists occurs happens belongs consists "
    "depends produces receives describes appears applies requires serves tells consist exist belong depend".split()
)
"""Forms of verbs that no noun has."""


def _is_third_person(items: Sequence[Item], at: int) -> bool:
    """Return whether a word ends like a verb of the third person, behind one thing and before another or a place."""
    word, before, after = items[at].written, items[at - 1], items[at + 1] if at + 1 < len(items) else None
    if after is None or not (word.islower() and word.endswith("s")) or word.endswith(("ss", "us", "is")):
        return False
    is_one = before.kind == "word" and before.written.islower() and not before.written.endswith("s")
    return is_one and after.key in DETERMINERS | PREPOSITIONS | _ALONG


_ALONG = frozenset("along across around over into to past towards".split())
_INTRANSITIVE = frozenset("shone rose fell sank slept swam wept woke came went began".split())
_TOLD = frozenset(
    "informs notifies tells sends writes prints returns stores keeps records logs reports displays shows publishes "
    "gives provides serves contains includes describes lists explains receives".split()
)
"""Verbs of a second thing that the same subject does, and that undo nothing of the first."""


def _bounds(parts: Sequence[Part]) -> bool:
    """Return whether something in these turns or bounds more than its own statement."""
    return any(item.turns and item.key not in _OF_ITS_OWN for part in parts for item in part.items)


_OF_ITS_OWN = frozenset(
    "was were had did over up about during first last next some many several since still default every all both "
    "after before been earlier".split()
)
