"""Memories and what ranks them: their components, the settings, the effect of recency, and their order."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Literal

from smart_model_router_scoring.decay import age_days, epoch_seconds
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.options import (
    ConfigError,
    check_choice,
    check_count,
    check_number,
    check_positive,
    is_number,
)
from smart_model_router_scoring.tokens import tag_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from smart_model_router_scoring.options import Notes

Timestamp = datetime | str | float | None
"""A datetime, ISO 8601 text or seconds since 1970; naive times are UTC. What is no time sorts as the oldest."""

Relation = Literal["INVALIDATED_BY", "EVOLVED_INTO"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Something remembered, with what ranking has to know of it."""

    id: str
    content: str = ""
    timestamp: Timestamp = None
    importance: float = 0.0
    """0 to 1; it decides between equal scores."""
    source_rank: int = 0
    """The rank of where it came from: of equal scores a lower one comes first."""
    original_score: float = 0.0
    """The confidence of its source; it decides next."""
    archived: bool = False
    """No longer valid by itself; it still leads to what replaced it."""


@dataclass(frozen=True, slots=True)
class Replaced:
    """A memory that was left out for a newer one: its id, how it was first replaced, and whether the walk was cut."""

    id: str
    relation: Relation
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class Hit:
    """A memory with the number that ranks it. A score that comes from elsewhere needs no `why`: it is given.

    `why` makes the explanation on demand: of a hundred thousand hits five are shown.
    """

    memory: Memory
    score: float
    replaces: tuple[Replaced, ...] = ()
    why: Callable[[], Term] | None = field(default=None, compare=False, repr=False)

    @property
    def explanation(self) -> Term:
        """The computation of the score; its value is the score."""
        return given("score", self.score) if self.why is None else self.why()


RecencyBias = Literal["auto", "on", "off"]
RecencyCurve = Literal["linear", "exp"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallSettings:
    """Whatever changes a ranking is off by default."""

    recency_bias: RecencyBias = "off"
    """`on` lifts newer hits, `auto` does so for a query that asks for the present."""
    weight_temporal: float = 0.1
    """The gain of the newest hit; the oldest gains nothing."""
    recency_window_days: float = 180.0
    """`linear`: the age at which the recency component is 0; `exp`: at which it is a half."""
    recency_curve: RecencyCurve = "linear"
    tag_score_token_cap: int = 0
    """The most query tokens that the share of matched tags is taken of; 0 is all of them."""
    relevance_gate: float = 0.0
    """0 to 1: below so much evidence, parts that do not depend on the query count less; 0 is off."""

    def __post_init__(self) -> None:
        check_choice("recency_bias", self.recency_bias, ("auto", "on", "off"))
        check_number("weight_temporal", self.weight_temporal, 0, 1_000)
        check_positive("recency_window_days", self.recency_window_days)
        check_choice("recency_curve", self.recency_curve, ("linear", "exp"))
        check_count("tag_score_token_cap", self.tag_score_token_cap, 0)
        check_number("relevance_gate", self.relevance_gate, 0, 1)


def _word(text: str) -> str:
    return text.strip().lower()


def _at_least_zero(text: str) -> float:
    return max(float(text), 0.0)


VARIABLES: dict[str, tuple[str, Callable[[str], Any]]] = {
    "RECALL_RECENCY_BIAS": ("recency_bias", _word),
    "SEARCH_WEIGHT_TEMPORAL": ("weight_temporal", _at_least_zero),
    "SEARCH_RECENCY_WINDOW_DAYS": ("recency_window_days", float),
    "SEARCH_RECENCY_CURVE": ("recency_curve", _word),
    "SEARCH_TAG_SCORE_TOKEN_CAP": ("tag_score_token_cap", int),
    "RECALL_RELEVANCE_GATE": ("relevance_gate", float),
}
"""The variable of each setting, and how its text is read. Only a negative SEARCH_WEIGHT_TEMPORAL is mended: it is 0."""


def read_settings(variables: Mapping[str, str], notes: Notes) -> RecallSettings:
    """The settings that `variables` (such as an environment) give. A bad value is noted, and its default stands."""
    read: dict[str, Any] = {}
    for variable, (name, parse) in VARIABLES.items():
        if variable not in variables:
            continue
        try:
            value = parse(variables[variable])
            RecallSettings(**{name: value})
        except (ConfigError, ValueError):
            notes.add("bad_setting", variable, variables[variable])
        else:
            read[name] = value
    return RecallSettings(**read)


_FOR_KEYWORD = 3
"""A keyword in the content gives 2 points and one in a tag 1; so does the whole phrase."""

DEFAULT = RecallSettings()


def words(text: str) -> frozenset[str]:
    """The distinct words of a question, without differences of case or of Unicode form."""
    return tag_words(text)


def keyword_score(points: float, keywords: int, *, phrase: bool = True) -> float:
    """Points of a keyword search as a share of the most its query could reach, 0 to 1; 0 for what is no number.

    That is 3 for each of its `keywords`, and 3 more when it also looked for the whole phrase.
    """
    most = _FOR_KEYWORD * max(keywords, 0) + _FOR_KEYWORD * phrase
    if not is_number(points) or not most:
        return 0.0
    return min(max(points / most, 0.0), 1.0)


def tag_score(query: str, tags: Iterable[str], settings: RecallSettings = DEFAULT) -> float:
    """The share of the query's words that are words of a tag, 0 to 1; of at most `tag_score_token_cap`, if set."""
    asked = words(query)
    if not asked:
        return 0.0
    tagged: frozenset[str] = frozenset().union(*(tag_words(tag, single=True) for tag in tags))
    most = min(len(asked), settings.tag_score_token_cap or len(asked))
    return min(len(asked & tagged) / most, 1.0)


def recency_score(time: Timestamp, now: datetime, notes: Notes, settings: RecallSettings = DEFAULT) -> float:
    """1 for what is new, falling with age along the curve of the settings; 0, with a note, for what is no time."""
    age = age_days(time, now)
    if age is None:
        notes.add("bad_time", detail=time)
        return 0.0
    windows = age / settings.recency_window_days
    return float(0.5**windows) if settings.recency_curve == "exp" else max(1.0 - windows, 0.0)


SortKey = tuple[float, float, float, float, "_NewestFirst"]


def sort_key(hit: Hit) -> SortKey:
    """Score, source rank, original score, importance, time (newest first), id; what is no number or no time is last."""
    memory = hit.memory
    return (
        _falling(hit.score),
        memory.source_rank if is_number(memory.source_rank) else math.inf,
        _falling(memory.original_score),
        _falling(memory.importance),
        _NewestFirst(memory),
    )


class _NewestFirst:
    """Time and id of a memory. The time is read when everything before it was equal, which is seldom: it is text."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory

    @cached_property
    def _key(self) -> tuple[float, str]:
        return (-age_rank(self._memory.timestamp), self._memory.id)

    def __lt__(self, other: _NewestFirst) -> bool:
        return self._key < other._key


def sort_hits(hits: Iterable[Hit]) -> list[Hit]:
    """A new list, best first. Equal ids aside, the order they came in plays no part."""
    return sorted(hits, key=sort_key)


def note_faults(memory: Memory, notes: Notes) -> None:
    """Note what `sort_key` has to put last."""
    numbers = (
        ("bad_source_rank", memory.source_rank),
        ("bad_original_score", memory.original_score),
        ("bad_importance", memory.importance),
    )
    for code, value in numbers:
        if not is_number(value):
            notes.add(code, memory.id, value)
    if memory.timestamp is None:
        notes.add("no_time", memory.id)
    elif epoch_seconds(memory.timestamp) is None:
        notes.add("bad_time", memory.id, memory.timestamp)


def age_rank(time: Timestamp) -> float:
    """Seconds since 1970, and before every one of them for what is no time."""
    at = epoch_seconds(time)
    return -math.inf if at is None else at


def _falling(value: float) -> float:
    return -value if is_number(value) else math.inf


def relative_recency(hits: Sequence[Hit], now: datetime) -> list[float | None]:
    """For each hit 0 (the oldest) to 1 (the newest), None for one without a time; a time to come is now.

    When all times are the same, or there are fewer than two, nothing is newer than anything: None for all.
    """
    ages = [age_days(hit.memory.timestamp, now) for hit in hits]
    known = {age for age in ages if age is not None}
    if len(known) < 2:
        return [None] * len(hits)
    oldest, newest = max(known), min(known)
    return [None if age is None else (oldest - age) / (oldest - newest) for age in ages]


def with_recency(hits: Sequence[Hit], now: datetime, weight: float) -> list[Hit]:
    """The hits, in the same order, each with `weight` x its relative recency added as the component `temporal`."""
    return [
        hit if share is None else _lifted(hit, weight, share)
        for hit, share in zip(hits, relative_recency(hits, now), strict=True)
    ]


def _lifted(hit: Hit, weight: float, share: float) -> Hit:
    return Hit(hit.memory, math.fsum((hit.score, weight * share)), hit.replaces, partial(_why, hit, weight, share))


def _why(hit: Hit, weight: float, share: float) -> Term:
    temporal = combined("temporal", "product", [given("weight", weight), given("relative recency", share)])
    return combined("score", "sum", [hit.explanation, temporal])
