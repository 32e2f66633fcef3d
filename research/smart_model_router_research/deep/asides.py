"""Parts of a sentence that may be left out: those of a shape that only says more, and never bounds or denies."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from smart_model_router_research.deep.clause_forms import (
    AUXILIARIES,
    DETERMINERS,
    FINITE,
    MOVABLE,
    PREPOSITIONS,
    joins_or_embeds,
    verb_runs,
)
from smart_model_router_research.deep.quantities import Quantity
from smart_model_router_research.deep.sentence_parts import Part
from smart_model_router_research.deep.words import ABOUT, Item

_SETTLED = frozenset(
    "allowed allows granted grants led leads resulted results became becomes began begins contains contained "
    "consists consist_of consists_of consisted includes included belongs belonged separates separated passed "
    "passes gave gives brought brings won wins gained gains occupied occupies took takes boosted ushered enabled "
    "enables governs governed stands stood lies flows borders connects serves served opened cost improved "
    "culminated maintains improves saw accepted formed houses comprises supports acts holds stems derives "
    "triggered suppressed reached recalled conferred remains references defines exists".split()
)
"""Verbs of asides that only say more: "which belongs to the ministry"."""
_MADE = frozenset(
    "known called named built founded located situated used made written owned run managed published released "
    "established created introduced discovered designed based formed referred included cooked opened operated "
    "painted printed produced developed inherited copied wrapped occupied marred exhausted supplied given".split()
)
"""Participles of asides that only say more: "which was built by his son"."""
_SUBJECT_PRONOUNS = frozenset("it he she they".split())


def may_go(parts: Sequence[Part], number: int) -> bool:
    """Return whether a part is of a shape that only says more: its sentence is whole, and as true, without it."""
    part = parts[number]
    if number == 0:
        return False
    if part.in_parentheses:
        before = parts[number - 1]
        return (
            _abbreviates(part, before)
            or _names_again(part.items)
            or _defines(part.items, before.items[-1])
            or (part.first == "which" and _only_adds(part.items))
            or (number == 1 and _is_lifetime(part.items, before.items, parts[2:]))
            or _converts(part.items, before.items[-1])
        )
    if part.mark != ",":
        return False
    if part.first == "which":
        return (number + 1 == len(parts) or parts[number + 1].mark == ",") and _only_adds(part.items)
    first = [each for each in parts[:number] if not each.in_parentheses]
    if len(first) == 2 and first[0].first in PREPOSITIONS and first[1].mark == ",":
        first = first[1:]
    is_last = len(parts) == number + 1 and len(first) == 1
    return part.first == "and" and is_last and _is_second_statement(first[0], part)


def _abbreviates(part: Part, before: Part) -> bool:
    """Return whether a parenthesis has the initials of the words before it: "European Union (EU)"."""
    letters = part.items[0].written
    if len(part.items) > 1 or len(letters) < 2 or not (letters.isupper() and letters.isalpha()):
        return False
    words = [word for item in before.items for word in re.split(r"[-/]", item.written) if word]
    initials = [word[0].upper() for word in words[-2 * len(letters) :]]
    capitals = sum(word[0].isupper() for word in words[-2 * len(letters) :])
    return capitals > 1 and not Counter(letters) - Counter(initials)


def _is_lifetime(items: Sequence[Item], name: Sequence[Item], rest: Sequence[Part]) -> bool:
    """Return whether a parenthesis has the years of a life: "Elsa Brandt (1871-1940) was a composer"."""
    is_name = len(name) > 1 and all(item.written[:1].isupper() for item in name)
    is_said = bool(rest) and rest[0].first == "was" and len(rest[0].items) > 1 and rest[0].items[1].key in DETERMINERS
    return is_name and is_said and len(items) == 1 and _LIFETIME.fullmatch(items[0].written) is not None


def _converts(items: Sequence[Item], before: Item) -> bool:
    """Return whether a parenthesis has the amount before it in another unit: "5 miles (8 km)"."""
    amounts = [item.key for item in (*items[-1:], before)]
    one, other = (key if isinstance(key, Quantity) and key.unit else None for key in amounts)
    if one is None or other is None or one.unit != other.unit or one.factor == other.factor:
        return False
    mine, its = one.value * one.factor, other.value * other.factor
    return [item.key for item in items[:-1]] in ([], [ABOUT]) and abs(mine - its) * 20 <= abs(its)


_LIFETIME = re.compile(r"[12]\d{3}-[12]\d{3}")


def _names_again(items: Sequence[Item]) -> bool:
    """Return whether a parenthesis gives another name, an origin, a place to look, or the share that a number is."""
    words = [item.written.lower() for item in items]
    if words[0] == "also":
        words = words[1:]
    leads = " ".join(words[:2])
    if words[:1] in (["aka"], ["a.k.a"]) or leads in ("known as", "called the", "termed a", "termed the", "called a"):
        return len(words) > 1
    if leads in ("the default", "formerly the", "formally the", "officially the", "now the"):
        return len(items) == 2 or (leads != "the default" and items[2].written[:1].isupper())
    if any(item.turns and item.key not in (*_ABOUT, "other") for item in items[items[0].key == "such_as" :]):
        return False
    if leads in _PLACES or (
        words[0] in ("abbreviated", "including", "see", "colloquially") or items[0].key == "such_as"
    ):
        return True
    if len(items) <= 2:
        return items[0].key in _ABOUT or (len(items) == 1 and _FLAG.fullmatch(items[0].written) is not None)
    if words[0] in ("discovered", "founded", "born", "built"):
        return True
    return items[0].key in _ABOUT and items[1].kind == "number" and words[2:3] == ["of"]


_FLAG = re.compile(r"--?[a-zA-Z][\w-]*|\w+\(\)")
_ABOUT = frozenset("about almost".split())
_PLACES = frozenset(
    f"{verb} {where}"
    for verb in ("described", "explained", "discussed", "documented", "defined", "listed", "shown", "covered")
    for where in ("in", "below", "above", "later")
)
"""The beginnings of parentheses that say where to read more."""


def _defines(items: Sequence[Item], before: Item) -> bool:
    """Return whether a parenthesis says of a name in code that it is "a built-in name", or names an event anew."""
    if any(item.turns for item in items) or not 2 < len(items) < 6:
        return False
    if before.kind == "identifier":
        return items[0].key in ("a", "an") and not any(item.key in MOVABLE for item in items)
    named = all(item.written[:1].isupper() for item in items[1:])
    return items[0].key == "the" and named and before.written.islower()


def _only_adds(items: Sequence[Item]) -> bool:
    """Return whether a clause of "which" only says more: by a verb that settles nothing of the rest."""
    words = [item for item in items[1:] if item.key == "not" or not _IN_ASIDES.fullmatch(item.written)]
    if [item.written for item in words] in (["is", "the", "default"], ["are", "the", "default"]):
        return True
    if not words or any(item.turns and item.key not in AUXILIARIES | _HARMLESS_IN_ASIDES for item in words):
        return False
    verb = words[0].written.lower()
    if verb in ("makes", "made"):
        return _SUPERLATIVE.match(" ".join(item.written for item in words[1:])) is not None
    if verb in ("is", "are", "was", "were"):
        return len(words) > 1 and (words[1].written.lower() in _MADE)
    if verb in ("has", "have", "had"):
        return len(words) > 1 and words[1].key in DETERMINERS
    return verb in _SETTLED


_SUPERLATIVE = re.compile(r"(?:it|them|him|her) the \w+est\b")
_IN_ASIDES = re.compile(r"also|then|since|\w+ly")
_HARMLESS_IN_ASIDES = frozenset("first last during since both some many most large still about up over".split())


def _is_second_statement(first: Part, second: Part) -> bool:
    """Return whether a last part of "and" is a statement beside that of the first part, which stands without it."""
    if _bounds([second]) or first.first in MOVABLE or verb_runs(first.items) > 1 or joins_or_embeds(first.items):
        return False
    if any(item.key in _JOINING for item in first.items):
        return False
    items = second.items
    if items[1].key in _SUBJECT_PRONOUNS:
        return len(items) > 2
    nouns = 0
    for at, item in enumerate(items[1:], 1):
        word = item.written.lower()
        if _joins(item) or item.key in _SUBJECT_PRONOUNS or (nouns and item.key in DETERMINERS):
            return False
        is_finite = word in FINITE or (at > 2 and word in _THIRD_PERSON)
        if is_finite and nouns and at + 1 < len(items):
            return True
        if word.endswith("ed") and nouns and items[at + 1 : at + 2] and items[at + 1].key in DETERMINERS:
            return verb_runs(first.items) == 1
        if word.endswith(("ed", "ing")):
            return False
        nouns += item.key not in DETERMINERS
    return False


def _joins(item: Item) -> bool:
    word = item.written.lower()
    return word in ("that", "how") or word.startswith("wh") or item.key in MOVABLE or item.key in ("and", "or", "but")


_JOINING = frozenset("both either neither not_only between".split())
"""Words that a last part of "and" may belong to."""
_THIRD_PERSON = frozenset(
    "contains includes becomes allows gives takes goes comes keeps provides exists occurs happens belongs consists "
    "depends produces receives describes appears applies requires serves tells consist exist belong depend".split()
)
"""Forms of verbs that no noun has."""


def _bounds(parts: Sequence[Part]) -> bool:
    """Return whether something in these turns or bounds more than its own statement."""
    return any(item.turns and item.key not in _OF_ITS_OWN for part in parts for item in part.items)


_OF_ITS_OWN = frozenset(
    "was were had did over up about during first last next some many several since still default".split()
)
