"""Words that tell nothing where they stand: "also", "then", "that", and an article."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from smart_model_router_research.deep.clause_forms import (
    AUXILIARIES,
    BE,
    DETERMINERS,
    PREPOSITIONS,
    is_past,
    verb_runs,
)
from smart_model_router_research.deep.sentence_parts import ANY_MARK
from smart_model_router_research.deep.words import Item

SAYING = frozenset(
    "suggest indicate indicates indicated recommend advise imply warn claim hope announce report state "
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


SUBJECTS = frozenset("it he she they we you i there".split())


def idle_in_source(source: Sequence[Item], at: int, *, english: bool) -> int:
    """Return how many items of a source, from one on, tell nothing."""
    item = source[at]
    if not english:
        return 0
    if item.key == "also":
        return int(is_idle_also(source, at))
    if is_idle_that(source, at) or is_idle_article(source, at) or _is_found(source, at):
        return 1
    if item.key == "then" and at:
        return int(_is_idle_then(source, at))
    behind = source[at + 1 : at + 3]
    is_named = len(behind) == 2 and behind[0].key in NAMED_NOUNS and behind[1].kind == "identifier"
    return 2 if item.key == "the" and is_named and _CODE.match(behind[1].written) else 0


def _is_idle_then(source: Sequence[Item], at: int) -> bool:
    """Return whether "then" only says that something follows: behind a condition of its sentence, or "and"."""
    before, after = source[at - 1], source[at + 1] if at + 1 < len(source) else None
    if before.key in (",", ANY_MARK):
        return source[0].key in ("if", "when")
    return before.key == "and" and after is not None and after.kind == "word" and after.key not in DETERMINERS


def is_idle_article(items: Sequence[Item], at: int) -> bool:
    """Return whether "the" tells nothing: before a season."""
    if items[at].key != "the" or at < 1 or at + 1 >= len(items):
        return False
    before, after = items[at - 1], items[at + 1]
    is_season = before.key in ("in", "during") and after.key in ("winter", "summer", "autumn")
    return is_season and (at + 2 == len(items) or items[at + 2].key != "of")


def is_idle_also(source: Sequence[Item], at: int) -> bool:
    """Return whether "also" tells nothing: no clause that bounds another, and nothing that denies, has it."""
    start = next((n + 1 for n in range(at - 1, -1, -1) if source[n].kind == "mark" and source[n].key in _ENDS), 0)
    before, behind = source[start:at], source[at + 1 :]
    if not at or not behind or any(each.turns and each.key not in _UPWARD for each in before):
        return False
    joining = [n for n in range(start + bool(start), at) if _joins_clauses(source[n])]
    if joining and not (len(joining) == 1 and _is_told(source, joining[0], at)):
        return False
    end = next((n for n, each in enumerate(behind) if each.kind == "mark" and each.key in _ENDS), len(behind))
    is_participle = behind[0].written.lower().endswith(("ed", "ing")) and source[at - 1].key not in AUXILIARIES
    return not (is_participle and verb_runs(behind[1:end]))


def _joins_clauses(item: Item) -> bool:
    return item.key == "that" or item.written.lower().startswith("wh")


def _is_found(items: Sequence[Item], at: int) -> bool:
    """Return whether "that" stands between "found" and one clause with a verb: it may go, and not come."""
    if not _begins_clause(items, at) or items[at - 1].written != "found":
        return False
    behind = items[at + 1 :]
    is_cut = any(is_past(one.written) and other.key in BE for one, other in pairwise(behind))
    return verb_runs(behind) == 1 and not is_cut


def _begins_clause(items: Sequence[Item], at: int) -> bool:
    """Return whether "that" stands behind a verb and before the subject of a clause."""
    after = items[at + 1] if at + 1 < len(items) else None
    if items[at].key != "that" or at < 2 or after is None or items[at - 2].key in DETERMINERS:
        return False
    return after.key in DETERMINERS | SUBJECTS or after.written[:1].isupper()


def _is_told(items: Sequence[Item], that: int, at: int) -> bool:
    """Return whether "also" stands before the past of a verb with an object, in a clause of what is said or found.

    "Her letters show that the shop also sold maps" has it there, "the shops also treated by him" has not.
    """
    if items[that - 1].written.lower() not in SAYING | {"found"} or not _begins_clause(items, that):
        return False
    verb, thing = (items[at + n].written if at + n < len(items) else "" for n in (1, 2))
    clause = items[that + 1 : at]
    is_bounded = any(each.written.lower().endswith("est") or each.key in _COUNTING for each in clause)
    return is_past(verb) and bool(thing) and items[at + 2].key not in PREPOSITIONS | {"to"} and not is_bounded


_COUNTING = frozenset("exactly sole total single first last only".split())
_ENDS = frozenset([",", ";", ":", "-", ANY_MARK])
_UPWARD = frozenset(
    "was were had did been can will may must could should would might but some many several still both over up "
    "down".split()
)
"""Words that turn a sentence, and behind which what is less is true where what is more is."""


def is_idle_that(items: Sequence[Item], at: int) -> bool:
    """Return whether "that" tells nothing: behind a verb of saying, and in "the file that you open"."""
    if items[at].key != "that" or not at:
        return False
    before, after = items[at - 1], items[at + 1] if at + 1 < len(items) else None
    is_result = any(item.key in ("so", "such") for item in items[max(0, at - 5) : at])
    is_noun = before.kind == "word" and before.key not in NO_NOUNS and not is_result
    is_relative = after is not None and after.key in SUBJECTS and is_noun
    begins = after is not None and (after.key in DETERMINERS | SUBJECTS or after.written[:1].isupper())
    return is_relative or before.key == "note" or (begins and before.written.lower() in SAYING)


NO_NOUNS = frozenset(
    "so such now in except given provided before after and or but not only all is are was were be than it this "
    "which".split()
)
"""Words behind which "that" begins no relative clause, or all that is meant."""
