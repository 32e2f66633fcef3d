"""Licensed edits: the changes to a sentence that cannot change what it says.

A claim follows from a sentence when its items, in order and with their marks, are those of the sentence in one of its
licensed readings. Each licence names what is known to be harmless; whatever else differs is refused. See
`docs/design/checks.md`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from smart_model_router_research.deep.asides import may_go
from smart_model_router_research.deep.clause_forms import (
    BE,
    CONJUNCTIONS,
    DETERMINERS,
    FOCUS,
    MOVABLE,
    joins_or_embeds,
    verb_runs,
)
from smart_model_router_research.deep.idle_words import SUBJECTS, is_idle_also
from smart_model_router_research.deep.sentence_parts import ANY_MARK, Part, cut_at_marks
from smart_model_router_research.deep.words import Item, is_english

_REASONS = frozenset("because because_of since as for".split())
"""Words whose clause a negation before them may deny."""
_NEGATIONS = frozenset("not no never none neither nor cannot without hardly barely rarely few little no_one".split())


def parts_of(items: Sequence[Item], *, whole: bool = False) -> list[Part]:
    """Return the parts of a sentence, each marked where it may go. No part of a `whole` may go."""
    parts = cut_at_marks(items)
    if whole or not is_english(list(items)):
        return parts
    return [replace(part, may_go=may_go(parts, number)) for number, part in enumerate(parts)]


def _is_simple(items: Sequence[Item], *, infinitives: bool = True) -> bool:
    """Return whether these items are one clause with one verb: an adverbial belongs to it at either end."""
    runs = verb_runs(items)
    if joins_or_embeds(items, infinitives=infinitives) or any(_is_focus(items, at) for at in range(len(items))):
        return False
    has_subjects = any(
        item.key in ("and", "or") and (after is None or after.key in DETERMINERS or after.key in SUBJECTS)
        for item, after in zip(items, [*items[1:], None], strict=False)
    )
    return runs == 1 if has_subjects or (infinitives and {"and", "or"} & {item.key for item in items}) else runs <= 1


_OF_NUMBERS = frozenset("at_least at_most only just".split())


def _is_focus(items: Sequence[Item], at: int) -> bool:
    """Return whether a word points at another one; "at least 5" points at its number, wherever a clause stands."""
    is_count = at + 1 < len(items) and (items[at + 1].kind == "number" or items[at + 1].key == "one")
    is_bound = items[at].key in _OF_NUMBERS and is_count
    if items[at].key == "there" and items[at + 1 : at + 2] and items[at + 1].key in BE:
        return False
    is_of_two = items[at].key == "both" and not any(item.key == "and" for item in items[at:])
    return items[at].key in FOCUS and not is_bound and not is_of_two


def _may_move(adverbial: Part, *main: Part, infinitives: bool = True) -> bool:
    """Return whether an adverbial says the same of a clause from its other end."""
    items = [item for part in main for item in part.items]
    denied = adverbial.first in _REASONS and any(item.key in _NEGATIONS for item in items)
    is_focused = any(_is_focus(adverbial.items, at) for at in range(len(adverbial.items)))
    return not denied and not is_focused and _is_simple(items, infinitives=infinitives)


def kept_of(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield the parts, all of them without those that may go, and without each of the first of those."""
    yield list(parts)
    going = [number for number, part in enumerate(parts) if part.may_go]
    choices = [set(going), *({number} for number in going[:4])] if len(going) > 1 else [set(going)] if going else []
    for choice in choices:
        kept: list[Part] = []
        for number, part in enumerate(parts):
            if number in choice:
                continue
            if part.mark == "," and number - 1 in choice and not parts[number - 1].in_parentheses:
                part = replace(part, mark=ANY_MARK if part.first in ("and", "but") else "")  # noqa: PLW2901
            kept.append(part)
        yield kept


def orders_of(parts: Sequence[Part]) -> Iterator[list[Part]]:
    """Yield the sentence as it is, and with a clause or adverbial of its beginning or end at the other end."""
    parts = list(parts)
    yield parts
    width = 2 if len(parts) > 2 and parts[1].in_parentheses else 1
    is_time = 1 < len(parts[0].items) < 4 and parts[0].items[-1].key in _TIME_NOUNS if parts else False
    has_lead = len(parts) > width and (parts[0].first in MOVABLE | _CONDITIONS or is_time)
    if has_lead and parts[width].mark == "," and not parts[width].in_parentheses:
        lead, other, rest = parts[:width], _without_idle(parts[width]), parts[width + 1 :]
        is_condition = lead[0].first in _CONDITIONS
        is_whole = not any(part.mark for part in rest if not part.in_parentheses)
        if is_whole and _may_move(lead[0], other, *rest, infinitives=not is_condition):
            yield [replace(other, mark=""), *rest, replace(lead[0], mark=ANY_MARK), *lead[1:]]
        yield [*lead, replace(parts[width], mark=ANY_MARK), *rest]
    elif len(parts) == 2 and parts[1].mark == "," and parts[1].first in CONJUNCTIONS and _may_move(parts[1], parts[0]):
        yield [parts[1], replace(parts[0], mark=ANY_MARK)]
    if len(parts) == 1:
        items = parts[0].items
        for at in range(2, len(items)):
            main, tail = Part(items[:at]), Part(items[at:])
            if tail.first in CONJUNCTIONS:
                if _may_move(tail, main) and not any(item.key in CONJUNCTIONS for item in tail.items[1:]):
                    yield [tail, replace(main, mark=ANY_MARK)]
                return
            if _is_behind_its_verb(main, tail):
                yield [tail, replace(main, mark=ANY_MARK)]
                return


_TIME_NOUNS = frozenset("year month week summer winter spring autumn season".split())
_CONDITIONS = frozenset("if when whenever where unless".split())
"""Words of conditions: one before "it tries to stop" is of trying and of stopping."""


def _without_idle(main: Part) -> Part:
    """Return a clause without "then" before it and "also" in it: behind it, a condition needs neither."""
    items = main.items[1:] if main.first == "then" and len(main.items) > 1 else main.items
    kept = tuple(
        item
        for at, item in enumerate(items)
        if (item.key != "then" or (at and items[at - 1].key in DETERMINERS))
        and (item.key != "also" or not is_idle_also(items, at))
    )
    return replace(main, items=kept)


def _is_behind_its_verb(main: Part, tail: Part) -> bool:
    """Return whether an adverbial is "by default", or stands right behind "was founded" and the like."""
    before, verb = main.items[-2:]
    adverb = verb.key == "daily"
    if adverb and len(main.items) > 2:
        before, verb = main.items[-3:-1]
    is_said = verb.written.islower() or verb.kind == "number"
    is_predicate = before.key in ("is", "are", "was", "were") and is_said
    turns = any(item.turns for item in tail.items if item.key not in ("default", *_EACH))
    is_default = tail.items[0].key == "by" and len(tail.items) == 2 and tail.items[1].key == "default"
    is_time = len(tail.items) > 1 and tail.first in _TIMES and not turns and _is_of_time(tail.items[1])
    if verb.written in _AHEAD:
        return False
    is_behind = is_predicate or verb.written in _INTRANSITIVE
    return (is_default or (is_behind and is_time and not verb_runs(tail.items))) and _is_simple(main.items)


def _is_of_time(item: Item) -> bool:
    """Return whether a word behind a preposition begins a time or a place: "in 1990", "on Monday", "at the hotel"."""
    is_named = item.kind in ("number", "date") or item.written[:1].isupper()
    return is_named or item.key in DETERMINERS or item.key in ("winter", "summer", "autumn", "night")


_AHEAD = frozenset(
    "expected promised feared rescheduled forecast foreseen set planned scheduled due predicted hoped likely "
    "certain possible probable sure".split()
)
"""Words of things that are still ahead of the time that stands behind them."""
_EACH = frozenset(("during", "since", "every"))
_TIMES = frozenset("in on at during since throughout".split())
_INTRANSITIVE = frozenset(
    "sleeps sleep hibernates hibernate flowers blooms bloom breeds breed closes opens begins ends starts "
    "arrives departs died lived arrived departed rises sets falls rose fell failed collapsed retired resigned "
    "migrates migrate nests sings sing hunts hunt boils melts freezes".split()
)
"""Verbs behind which an adverbial is theirs."""
