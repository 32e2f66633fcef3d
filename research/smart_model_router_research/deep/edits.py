"""Licensed edits: the changes to a sentence that cannot change what it says.

A claim follows from a sentence when its items, in order and with their marks, are those of the sentence in one of its
licensed readings. Each licence names what is known to be harmless; whatever else differs is refused. See
`docs/design/checks.md`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from smart_model_router_research.deep.asides import may_go
from smart_model_router_research.deep.clause_forms import (
    AUXILIARIES,
    CONJUNCTIONS,
    DETERMINERS,
    FOCUS,
    MOVABLE,
    joins_or_embeds,
    verb_runs,
)
from smart_model_router_research.deep.sentence_parts import ANY_MARK, Part, cut_at_marks, flat
from smart_model_router_research.deep.words import ABOUT, Item, is_english

_REASONS = frozenset("because because_of since as for".split())
"""Words whose clause a negation before them may deny."""
_NEGATIONS = frozenset("not no never none neither nor cannot without hardly barely rarely few little no_one".split())
_SAYING = frozenset(
    "say says said note noted known think thought prove proves proved believe believes believed mean means show "
    "shows showed ensure ensures recommended advises implies suggests warns warned claims claimed hopes hoped "
    "announced reported states stated".split()
)
"""Words behind which "that" tells nothing."""
NAMED_NOUNS = frozenset(
    "option function method class module parameter argument variable command flag attribute property field "
    "directive operator exception setting constant decorator keyword type object macro target hook".split()
)
"""Nouns of what has an identifier for its name."""
_CODE = re.compile(r".*[_().-].*")


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
        item.key in ("and", "or") and (after is None or after.key in DETERMINERS or after.key in _SUBJECTS)
        for item, after in zip(items, [*items[1:], None], strict=False)
    )
    return runs == 1 if has_subjects or (infinitives and {"and", "or"} & {item.key for item in items}) else runs <= 1


_SUBJECTS = frozenset("it he she they we you i there".split())


def _is_focus(items: Sequence[Item], at: int) -> bool:
    """Return whether a word points at another one; "at least 5" points at its number, wherever a clause stands."""
    is_bound = items[at].key in ("at_least", "at_most") and items[at + 1 : at + 2] and items[at + 1].kind == "number"
    return items[at].key in FOCUS and not is_bound


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
    has_lead = len(parts) > width and parts[0].first in MOVABLE
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


_CONDITIONS = frozenset("if when whenever unless".split())
"""Words of conditions: one before "it tries to stop" is of trying and of stopping."""


def _without_idle(main: Part) -> Part:
    """Return a clause without "then" before it and "also" in it: behind it, a condition needs neither."""
    items = main.items[1:] if main.first == "then" and len(main.items) > 1 else main.items
    kept = tuple(item for at, item in enumerate(items) if item.key != "also" or not _is_idle_also(items, at))
    return replace(main, items=kept)


def _is_behind_its_verb(main: Part, tail: Part) -> bool:
    """Return whether an adverbial is "by default", or stands right behind "was founded" and the like."""
    before, verb = main.items[-2:]
    adverb = verb.written.lower() == "daily"
    if adverb and len(main.items) > 2:
        before, verb = main.items[-3:-1]
    is_passive = before.written in ("is", "are", "was", "were") and verb.written.lower().endswith("ed")
    turns = any(item.turns for item in tail.items if item.key != "default")
    is_default = tail.items[0].key == "by" and len(tail.items) == 2 and tail.items[1].key == "default"
    is_time = tail.first in ("in", "on", "during", "since") and not turns and verb_runs(tail.items) == 0
    return (is_default or (is_passive and is_time)) and _is_simple(main.items)


def follows(claim: Sequence[Item], parts: Sequence[Part]) -> bool:
    """Return whether the items of a claim are those of the parts in order, with what may go left out or not.

    The claim is as `flat` gives it. See `_is_reading` for what else may differ.
    """
    return any(_is_reading(claim, flat(kept)) for kept in kept_of(parts))


def _is_reading(claim: Sequence[Item], source: Sequence[Item]) -> bool:
    """Return whether a claim has the items of a source; but for these, everything counts.

    In English "also" may go where nothing before it turns the sentence, "that" behind a verb of saying, "then" behind a
    condition, and the noun before a name in code; "about" may be put before a number.
    """
    english = is_english(list(source))
    ours = theirs = 0
    while ours < len(claim) or theirs < len(source):
        wanted = claim[ours] if ours < len(claim) else None
        said = source[theirs] if theirs < len(source) else None
        about = ours > 0 and claim[ours - 1].key == ABOUT
        if wanted is not None and said is not None and _is_same(wanted, said, source, about=about):
            ours, theirs = ours + 1, theirs + 1
        elif said is not None and (width := _idle_in_source(source, theirs, english=english)):
            theirs += width
        elif wanted is not None and said is not None and said.key == ANY_MARK:
            ours, theirs = ours + (wanted.kind == "mark" and wanted.key in (",", ":", "-")), theirs + 1
        elif (wanted is not None and english and _is_idle_that(claim, ours)) or (
            _rounds(claim, ours) and said is not None and said.kind == "number"
        ):
            ours += 1
        else:
            return False
    return True


def _is_same(wanted: Item, said: Item, source: Sequence[Item], *, about: bool) -> bool:
    if wanted.kind == "number" == said.kind and not about and any(item.key in _COMPARING for item in source):
        return wanted.is_exactly(said)
    return wanted.same(said, about=about)


_COMPARING = frozenset(
    "than at_least at_most up over under maximum minimum exactly exact exceed exceeds limit not until less more "
    "fewer greater least most below above < > <= >= =".split()
)
"""Words of bounds: rounded, a number is another bound."""


def _rounds(claim: Sequence[Item], at: int) -> bool:
    return at + 1 < len(claim) and claim[at].key == ABOUT and claim[at + 1].kind == "number"


def _idle_in_source(source: Sequence[Item], at: int, *, english: bool) -> int:
    """Return how many items of a source, from one on, tell nothing."""
    item = source[at]
    if not english:
        return 0
    if item.key == "also":
        return int(_is_idle_also(source, at))
    if _is_idle_that(source, at):
        return 1
    if item.key == "then" and at and source[at - 1].key in (",", ANY_MARK):
        return int(source[0].key in ("if", "when"))
    behind = source[at + 1 : at + 3]
    is_named = len(behind) == 2 and behind[0].key in NAMED_NOUNS and behind[1].kind == "identifier"
    return 2 if item.key == "the" and is_named and _CODE.match(behind[1].written) else 0


def _is_idle_also(source: Sequence[Item], at: int) -> bool:
    """Return whether "also" tells nothing: no clause that bounds another, and nothing that denies, has it."""
    start = next((n + 1 for n in range(at - 1, -1, -1) if source[n].kind == "mark" and source[n].key in _ENDS), 0)
    before, behind = source[start:at], source[at + 1 :]
    if not at or not behind or any(each.turns and each.key not in _UPWARD for each in before):
        return False
    if any(each.key == "that" or each.written.lower().startswith("wh") for each in before[1 if start else 0 :]):
        return False
    end = next((n for n, each in enumerate(behind) if each.kind == "mark" and each.key in _ENDS), len(behind))
    is_participle = behind[0].written.lower().endswith(("ed", "ing")) and source[at - 1].key not in AUXILIARIES
    return not (is_participle and verb_runs(behind[1:end]))


_ENDS = frozenset([",", ";", ":", "-", ANY_MARK])
_UPWARD = frozenset(
    "was were had did been can will may must could should would might but some many several still both over up "
    "down".split()
)
"""Words that turn a sentence, and behind which what is less is true where what is more is."""


def _is_idle_that(items: Sequence[Item], at: int) -> bool:
    return items[at].key == "that" and at > 0 and items[at - 1].written.lower() in _SAYING


def unvouched(claim: Sequence[Item], source: Sequence[Item]) -> list[str]:
    """Return the words of a claim that stand nowhere in the source."""
    return [
        item.written
        for item in claim
        if not item.is_light and item.kind != "mark" and not any(item.same(other, about=True) for other in source)
    ]
