"""The statements of a document by their stems, so that those near the words of a question are found without a scan."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from importlib.resources import files

from smart_model_router_research.deep.matching import alternatives, stem_of, stems_of
from smart_model_router_research.deep.questions import STOP
from smart_model_router_research.deep.statements import Statement

OWN, ABOVE, BEFORE, NAMES, SECTION, BEHIND = 1.0, 0.8, 0.6, 0.4, 0.4, 0.3
"""The worth of a word of a question by where it stands: in the statement itself, in what it stands under, in the
statement before, in the names of the document, elsewhere in its section, in the statement behind."""
SAME_WORD, SAME_SENSE, SAME_ROOT = 1.0, 0.85, 0.65
"""The worth of the word itself, of one that the lexicons give for it, and of one that begins alike."""
_SECTION_REACH = 6
_COMMON = 0.08
"""A word that this share of the statements have says nothing about a section."""
_LEAST_ROOT, _LEAST_SHARE, _MOST_ENDING = 5, 0.6, 5


@lru_cache(maxsize=1)
def _everyday() -> dict[str, frozenset[str]]:
    """Return for each stem of the everyday words those that can stand for it."""
    found: dict[str, set[str]] = {}
    table = files("smart_model_router_research.deep").joinpath("everyday.txt").read_text(encoding="utf-8")
    for line in table.splitlines():
        if line and not line.startswith("#"):
            stems = {stem_of(word) for word in line.split() if word in ("not", "we") or word not in STOP}
            for stem in stems:
                found.setdefault(stem, set()).update(stems)
    return {stem: frozenset(stems) for stem, stems in found.items()}


@lru_cache(maxsize=4096)
def senses_of(stem: str) -> frozenset[str]:
    """Return the stems that can stand for one, itself included, by both lexicons."""
    return alternatives(stem) | _everyday().get(stem, frozenset())


class StatementStems:
    """The statements of one document by the stems of their words, and of the headings, terms and lead-ins above."""

    def __init__(self, statements: list[Statement], names: frozenset[str]) -> None:
        self.statements = statements
        self._names = names
        self._own: dict[str, list[int]] = {}
        self._above: dict[str, list[int]] = {}
        above_of: dict[tuple[str, ...], frozenset[str]] = {}
        self._ends: list[int] = [0] * len(statements)
        """For each statement, the place of the first one of the next section."""
        self._begins: list[int] = [0] * len(statements)
        for at, statement in enumerate(statements):
            for stem in statement.own:
                self._own.setdefault(stem, []).append(at)
            key = (*statement.scope, statement.lead_in, statement.term)
            above = above_of.get(key)
            if above is None:
                above = above_of[key] = stems_of(" ".join(key))
            for stem in above:
                self._above.setdefault(stem, []).append(at)
            goes_on = at > 0 and statements[at - 1].scope[:_DEEPEST] == statement.scope[:_DEEPEST]
            self._begins[at] = self._begins[at - 1] if goes_on else at
        for at in range(len(statements) - 1, -1, -1):
            is_last = at + 1 == len(statements) or self._begins[at + 1] == at + 1
            self._ends[at] = at + 1 if is_last else self._ends[at + 1]

    @cached_property
    def _sorted(self) -> list[str]:
        return sorted(self._own.keys() | self._above.keys() | self._names)

    @cached_property
    def lower(self) -> frozenset[str]:
        """The words that some statement writes in lower case, not as a part of an address or a path."""
        return frozenset(word for statement in self.statements for word in _LOWER.findall(statement.text))

    def frequency(self, stem: str) -> int:
        """Return how many statements have a stem among their own words."""
        return len(self._own.get(stem, ()))

    def forms_of(self, stem: str, *, is_name: bool = False) -> Iterator[tuple[str, float]]:
        """Yield the stems of the document that can stand for one, each with its worth."""
        senses = senses_of(stem)
        for other in senses:
            if other in self._own or other in self._above or other in self._names:
                yield other, SAME_WORD if other == stem else SAME_SENSE
        if len(stem) >= _LEAST_ROOT:
            root = stem[:_LEAST_ROOT]
            for at in range(bisect.bisect_left(self._sorted, root), len(self._sorted)):
                other = self._sorted[at]
                if not other.startswith(root):
                    break
                if other not in senses and is_akin(stem, other, are_names=is_name):
                    yield other, SAME_ROOT

    def worths(
        self, stem: str, joined: Iterable[str] = (), *, is_name: bool = False
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Return how near each statement is to a stem, 0 to 1, for those that are; and for those that have it.

        `joined` are further stems that can stand for it.
        """
        found: dict[int, float] = {}
        own: dict[int, float] = {}

        def take(at: int, worth: float) -> None:
            if found.get(at, 0.0) < worth:
                found[at] = worth

        count = len(self.statements)
        for form, worth in (*self.forms_of(stem, is_name=is_name), *((each, SAME_SENSE) for each in joined)):
            places = self._own.get(form, ())
            is_common = len(places) > _COMMON * count + 8
            for at in places:
                take(at, OWN * worth)
                own[at] = max(own.get(at, 0.0), worth)
                if at + 1 < self._ends[at]:
                    take(at + 1, BEFORE * worth)
                if at > self._begins[at]:
                    take(at - 1, BEHIND * worth)
                if not is_common:
                    for near in range(max(self._begins[at], at - 2), min(self._ends[at], at + _SECTION_REACH + 1)):
                        take(near, SECTION * worth)
            for at in self._above.get(form, ()):
                take(at, ABOVE * worth)
        return found, own

    def names_worth(self, stem: str, *, is_name: bool = False) -> float:
        """Return how far the names of the document have a stem."""
        forms = self.forms_of(stem, is_name=is_name)
        return max((worth for form, worth in forms if form in self._names), default=0.0) * NAMES


_LOWER = re.compile(r"(?<![\w.@/-])[a-z][a-z'\u2019]+(?![\w@/-]|\.\w)")
_DEEPEST = 8


def is_akin(one: str, other: str, *, are_names: bool = False) -> bool:
    """Return whether two stems begin alike for most of their length: sponsor and sponsorship.

    Of two names one has to begin with the other: Postgres and PostgreSQL, not Postgrey.
    """
    shared = next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    longer = max(len(one), len(other))
    if are_names and shared < min(len(one), len(other)):
        return False
    return other.isalpha() and shared >= max(_LEAST_ROOT, _LEAST_SHARE * longer) and longer - shared <= _MOST_ENDING
