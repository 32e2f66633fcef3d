"""Words that tell nothing where they stand: "also", "then", "that", and an article."""

from __future__ import annotations

import re
from collections.abc import Sequence

from smart_model_router_research.deep.clause_forms import (
    AUXILIARIES,
    DETERMINERS,
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
    if is_idle_that(source, at) or is_idle_article(source, at):
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
