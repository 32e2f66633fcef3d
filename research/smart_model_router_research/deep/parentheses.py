"""Parentheses that may be left out: they name, define, place or convert what stands before them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal

from smart_model_router_research.deep.clause_forms import DETERMINERS, MOVABLE, is_plural
from smart_model_router_research.deep.idle_words import NAMED_NOUNS
from smart_model_router_research.deep.quantities import Quantity
from smart_model_router_research.deep.sentence_parts import Part
from smart_model_router_research.deep.which_clauses import only_adds
from smart_model_router_research.deep.words import ABOUT, Item


def only_says_more(part: Part, before: Part, rest: Sequence[Part]) -> bool:
    """Return whether a parenthesis may be left out, by its own words and those before it.

    `rest` are the parts behind it, where it is the second of a sentence.
    """
    return (
        _abbreviates(part, before)
        or _is_example(part.items, before.items[-1])
        or _names_again(part.items)
        or _defines(part.items, before.items[-1])
        or (part.first == "which" and only_adds(part.items))
        or _is_lifetime(part.items, before.items, rest)
        or _converts(part.items, before.items)
        or (
            len(part.items) == 1
            and before.items[-1].key in NAMED_NOUNS
            and bool(_FLAG.fullmatch(part.items[0].written))
        )
    )


def _abbreviates(part: Part, before: Part) -> bool:
    """Return whether a parenthesis has the initials of the words before it: "European Union (EU)"."""
    letters = part.items[0].written
    if len(part.items) > 1 or len(letters) < 2 or not (_INITIALS.fullmatch(letters)):
        return False
    words = [word for item in before.items for word in re.split(r"[-/]", item.written) if word]
    initials = "".join(word[0].upper() for word in words[-2 * len(letters) :])
    capitals = sum(word[0].isupper() for word in words[-2 * len(letters) :])
    is_spelled = len(letters) > 2 and initials.endswith(letters.upper())
    left = iter(initials[:-1])
    in_order = initials.endswith(letters[-1].upper()) and all(letter in left for letter in letters[:-1].upper())
    return is_spelled or (capitals > 1 and in_order)


_INITIALS = re.compile(r"[A-Z]+|[A-Z]+[a-z]?[A-Z]+")
"""An abbreviation: "EU", "DoR"."""


def _is_lifetime(items: Sequence[Item], name: Sequence[Item], rest: Sequence[Part]) -> bool:
    """Return whether a parenthesis has the years of a life: "Elsa Brandt (1871-1940) was a composer"."""
    is_name = len(name) > 1 and all(item.written[:1].isupper() for item in name)
    is_said = bool(rest) and rest[0].first == "was" and len(rest[0].items) > 1 and rest[0].items[1].key in DETERMINERS
    years = "-".join(item.written for item in items if item.key != "to")
    return is_name and is_said and _LIFETIME.fullmatch(years) is not None


def _converts(items: Sequence[Item], before: Sequence[Item]) -> bool:
    """Return whether a parenthesis has the amount before it in another unit: "5 miles (8 km)"."""
    one, other = _amount_at_end(items), _amount_at_end(before)
    if one is None or other is None or one[1] != other[1] or one[2] == other[2]:
        return False
    rest = [item.key for item in items[: -one[3]]]
    return rest in ([], [ABOUT]) and abs(one[0] - other[0]) * 20 <= abs(other[0])


def _amount_at_end(items: Sequence[Item]) -> tuple[Decimal, str, str, int] | None:
    """Return the amount that ends these items: in base units, these, the unit, and how many items it takes."""
    last, number = items[-1], items[-2].key if len(items) > 1 else None
    if isinstance(last.key, Quantity) and last.key.unit:
        return last.key.value * last.key.factor, last.key.unit, str(last.key.factor), 1
    if not isinstance(number, Quantity) or number.unit or last.written not in _FURTHER_UNITS:
        return None
    base, factor, zero = _FURTHER_UNITS[last.written]
    return (number.value + zero) * factor, base, last.written, 2


_FURTHER_UNITS = {
    **{name: ("g", Decimal("453.59237"), Decimal(0)) for name in ("lb", "lbs")},
    **{name: ("m", Decimal("0.0254"), Decimal(0)) for name in ("in", "inch", "inches")},
    **{name: ("m", Decimal("0.9144"), Decimal(0)) for name in ("yd", "yards")},
    **{name: ("km^2", Decimal("0.0040468564224"), Decimal(0)) for name in ("acre", "acres")},
    "oz": ("g", Decimal("28.349523125"), Decimal(0)),
    "\u00b0C": ("K", Decimal(1), Decimal("273.15")),
    "\u00b0F": ("K", Decimal(5) / 9, Decimal("459.67")),
}
"""Units of parentheses that are never converted elsewhere: each with its base unit, its size in that, and its zero."""
_LIFETIME = re.compile(r"[12]\d{3}-[12]\d{3}")


def _names_again(items: Sequence[Item]) -> bool:
    """Return whether a parenthesis gives another name, an origin, a place to look, or the share that a number is."""
    words = [item.written.lower() for item in items]
    if words[0] == "also":
        words = words[1:]
    leads = " ".join(words[:2])
    if not words:
        return False
    if words[:1] in (["aka"], ["a.k.a"]) or leads in ("called the", "termed the", "termed a"):
        return len(words) > 1
    if leads == "known as":
        return len(words) > 2 and (
            items[-1].kind == "identifier" or items[len(items) - len(words) + 2].written[:1].isupper()
        )
    if leads in ("the default", "formerly the", "formally the", "officially the", "now the"):
        return len(items) == 2 or (leads != "the default" and items[2].written[:1].isupper())
    if _STATISTICS.match(" ".join(words)):
        return True
    if any(item.turns and item.key not in (*_ABOUT, "other") for item in items[items[0].key == "such_as" :]):
        return False
    return _refers(items, words) or _tells_origin(items, words) or _is_beside_the_point(items, words)


def _refers(items: Sequence[Item], words: Sequence[str]) -> bool:
    """Return whether a parenthesis says where to read more, or gives an example."""
    is_place = " ".join(words[:2]) in _PLACES and (words[1] != "in" or words[2:3] == [] or words[2] in _PARTS)
    is_seen = words[0] == "see" and len(words) > 1 and (words[1] in _SEEN or items[-1].written[:1].isupper())
    is_listed = words[0] == "including" and not any(word in _UNSURE for word in words)
    is_name = words[0] in ("abbreviated", "colloquially") and "version" not in words
    return (
        is_place
        or is_seen
        or is_listed
        or is_name
        or _TABLE.fullmatch(" ".join(words)) is not None
        or (items[0].key == "such_as" and len(items) > 1 and items[1].key not in MOVABLE | _POINTING)
    )


def _is_example(items: Sequence[Item], before: Item) -> bool:
    """Return whether a parenthesis has examples of the things before it: "colours (e.g. reds or Prussian blue)"."""
    if items[0].key != "e.g" or not is_plural(before) or any(item.turns or item.key in MOVABLE for item in items[1:]):
        return False
    ends = [at for at, item in enumerate(items) if at and item.key in (",", "and", "or")]
    named = [items[at - 1] for at in (*ends, len(items)) if items[at - 1].key not in (",", "and", "or")]
    are_things = all(is_plural(item) or item.written[:1].isupper() for item in named)
    return are_things and not any(item.kind == "number" or (item.kind == "mark" and item.key != ",") for item in items)


_POINTING = frozenset("the those these this that all".split())
_PARTS = frozenset("section chapter table figure appendix detail annex paragraph article the more".split())
_SEEN = _PARTS | frozenset("also above below page".split())
_UNSURE = frozenset("suspected presumed probable possible likely".split())


def _tells_origin(items: Sequence[Item], words: Sequence[str]) -> bool:
    """Return whether a parenthesis gives the name of today, of science, or in another language, or a year of origin."""
    written = " ".join(item.written for item in items)
    is_called = words[0] in _CALLED and len(words) == 2 and items[1].written[:1].isupper()
    is_name = is_called or _SPECIES.fullmatch(written) is not None
    is_word = any(item.written.startswith('"') for item in items[1:])
    is_foreign = is_word and items[words[0] == "from"].written in _LANGUAGES
    is_origin = (
        words[0] in ("discovered", "founded", "born", "built") and words[1:2] != ["to"]
    ) or _IN_A_YEAR.fullmatch(" ".join(words[1:]))
    return is_name or is_foreign or (words[0] in _ORIGINS and len(items) > 2 and bool(is_origin))


_IN_A_YEAR = re.compile(r"in (?:1\d{3}|20[01]\d)")


def _is_beside_the_point(items: Sequence[Item], words: Sequence[str]) -> bool:
    """Return whether a parenthesis gives an amount beside a thing: its size, or the share that it is."""
    if len(items) <= 2:
        is_number = items[-1].kind == "number" and len(items) == 2
        return is_number and (words[0] in _SIZES or items[0].key in _ABOUT)
    return items[0].key in _ABOUT and items[1].kind == "number" and words[2:3] == ["of"]


_TABLE = re.compile(r"(?:table|figure|fig\.?) \d[\w.-]*", re.IGNORECASE)


_SPECIES = re.compile(
    r"[A-Z][a-z]+ (?!status)[a-z]+(?:ensis|ii|ae|atus|ata|atum|inus|icus|icum|alis|aris|stris|osus|osa|oides|folia)"
)
"""A name such as "Ardeola palustris"."""
_STATISTICS = re.compile(r"(?:\d+ ?% (?:ci|confidence)|sd|iqr|se) [^-]*$|[12]\d{3} ?: [\u00a3$\u20ac]?\d")
_CALLED = frozenset("now today n\u00e9e".split())
_SIZES = frozenset("population pop elevation elev altitude".split())
_ORIGINS = frozenset(
    "discovered founded born built opened established completed introduced launched published released written "
    "painted designed named".split()
)
_LANGUAGES = frozenset(
    "Latin Greek French German Italian Spanish Portuguese Dutch Danish Swedish Norwegian Finnish Polish Czech Russian "
    "Turkish Arabic Hebrew Persian Hindi Chinese Japanese Korean Welsh Irish Gaelic Old Middle Ancient".split()
)
"""A parenthesis that begins with one says what a name is or was in another language."""
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
