"""The ranking of memories: questions about time, an adaptive floor, and the latest version of a fact."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, Protocol

from smart_model_router_scoring.explain import Term, combined
from smart_model_router_scoring.options import Notes, check_choice, check_count, check_number, is_number
from smart_model_router_scoring.recall.memory import (
    Hit,
    Memory,
    RecallSettings,
    RecencyBias,
    Relation,
    Replaced,
    age_rank,
    note_faults,
    sort_hits,
    sort_key,
    with_recency,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorConfig:
    """The width of a gap, and the number of hits that stay in spite of gaps."""

    min_gap: float = 0.25
    """The widest gap cuts when it is at least this share, above 0 to 1, of the best score."""
    keep: int = 1

    def __post_init__(self) -> None:
        check_number("min_gap", self.min_gap, 0.01, 1)
        check_count("keep", self.keep, 1)


def adaptive_floor(hits: Sequence[Hit], config: FloorConfig) -> float | None:
    """The lowest score above the widest gap of `hits` (best first); None when no gap is wide enough.

    Gaps above the first `keep` hits do not count, and of equal gaps the first one does.
    """
    scores = [hit.score for hit in hits if is_number(hit.score)]
    gaps = [(scores[at - 1] - scores[at], -at) for at in range(config.keep, len(scores))]
    widest, at = max(gaps, default=(0.0, 0))
    return scores[-at - 1] if widest > 0 and widest >= config.min_gap * abs(scores[0]) else None


_YEAR = "(?P<year>(?:19|20)[0-9]{2})"


@dataclass(frozen=True, slots=True)
class TemporalLexicon:
    """One language's way of asking for the present, as regular expressions over lower-case words.

    What a `homonym` matches is taken out first (an electric current is not a current one). A `past` phrase then makes
    a question one about the past; where it names a `year`, only a year gone by does.
    """

    present: tuple[str, ...]
    past: tuple[str, ...]
    homonyms: tuple[str, ...] = ()

    def asks_for_the_present(self, question: str, year: int | None = None) -> bool:
        """True when it does. `year` is the present one; without it every year that is named is past."""
        text = unicodedata.normalize("NFKC", question).casefold()
        text = _phrases(self.homonyms).sub("|", text)  # a mark, so that what was apart does not become a phrase
        if not _phrases(self.present).search(text):
            return False
        return not any(
            year is None or match.groupdict().get("year") is None or int(match["year"]) < year
            for pattern in self.past
            for match in _phrases((pattern,)).finditer(text)
        )


def _phrases(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Any of them between word boundaries, whatever the white space; nothing at all when there are none."""
    either = "|".join(patterns).replace(" ", r"\s+")
    return re.compile(rf"(?<!\w)(?:{either})(?!\w)" if patterns else r"(?!)")


ENGLISH = TemporalLexicon(
    present=(
        "latest",
        "most recent",
        "current(?:ly)?",
        "now",
        "nowadays",
        "today",
        "changed",
        "updated",
        "last time",
        "newest",
        "these days",
        "anymore",
        "recent(?:ly)?",
        "as of",
        "at the moment",
        "still",
    ),
    past=(
        f"(?:in|during|as of|until|till|before|by) (?:[a-z]+ )?{_YEAR}",
        "used to",
        "back then",
        r"before (?:it|that|this|they|he|she|we|i|you|the \w+) (?:was |were |got |had )?(?:changed|updated)",
    ),
    homonyms=(
        "(?:electric|electrical|alternating|direct|eddy|ocean|air) currents?",
        "current account",
        "still life",
    ),
)

LANGUAGES: Mapping[str, TemporalLexicon] = MappingProxyType({"en": ENGLISH})
"""A language more is a lexicon more: pass it to `recall` as `lexicon`."""


MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Replacement:
    """The replacement of a memory, and its kind."""

    relation: Relation
    memory: Memory


class SupersessionStore(Protocol):
    """A store of the chains of replacements."""

    def replacements(self, ids: Sequence[str]) -> Mapping[str, Sequence[Replacement]]:
        """The direct replacements of each of `ids` (sorted, without repetition); one without any may be left out."""
        ...


def latest(
    hits: Sequence[Hit], store: SupersessionStore, notes: Notes, *, max_depth: int = MAX_DEPTH
) -> tuple[list[Hit], int]:
    """The hits, of distinct ids, with each chain at its head; and the number of store queries: one, and one more a hop.

    The head is the furthest memory of the chain that is not archived, the hit itself included; `max_depth` hops on the
    walk ends, and says `truncated` if there was more. A cycle keeps its newest member that is not archived. A memory
    that replaces itself is not replaced. Where several replaced one memory, the way goes to the newest that is not
    archived (the smallest id of equals). A head takes over the best score of those it stands in for, and names them.
    An archived hit without a head is left out.
    """
    check_count("max_depth", max_depth, 1)
    steps, queries = _steps(hits, store, notes, max_depth)
    own = {hit.memory.id: hit for hit in hits if hit.memory.id not in steps and not hit.memory.archived}
    replaced: dict[str, list[tuple[Hit, Replaced]]] = {}
    heads: dict[str, Memory] = {}
    for hit in sort_hits(hit for hit in hits if hit.memory.id not in own):
        head, truncated = _walk(hit.memory, steps, max_depth)
        if truncated:
            notes.add("truncated", hit.memory.id)
        if head is None:
            notes.add("archived", hit.memory.id)
        elif head.id == hit.memory.id:
            own[head.id] = hit
        else:
            heads.setdefault(head.id, head)
            origin = Replaced(hit.memory.id, steps[hit.memory.id].relation, truncated)
            replaced.setdefault(head.id, []).append((hit, origin))
    for name, standing_in in replaced.items():
        mine = own.get(name)
        sources = ([mine] if mine else []) + [hit for hit, _ in standing_in]
        origins = (mine.replaces if mine else ()) + tuple(origin for _, origin in standing_in)
        memory = mine.memory if mine else heads[name]
        own[name] = Hit(memory, max(hit.score for hit in sources), origins, partial(_best_of, sources))
    return list(own.values()), queries


def _best_of(sources: list[Hit]) -> Term:
    parts = [combined(hit.memory.id, "sum", [hit.explanation]) for hit in sources]
    return combined("score", "max", parts)


def _steps(
    hits: Sequence[Hit], store: SupersessionStore, notes: Notes, max_depth: int
) -> tuple[dict[str, Replacement], int]:
    """The way on from every memory within reach, in batches, each memory asked about once."""
    steps: dict[str, Replacement] = {}
    asked: set[str] = set()
    frontier = {hit.memory.id for hit in hits}
    queries = 0
    while frontier and queries <= max_depth:
        asked |= frontier
        answer = store.replacements(sorted(frontier))
        queries += 1
        for name in sorted(frontier):
            others = [found for found in answer.get(name, ()) if found.memory.id != name]
            if len(others) < len(answer.get(name, ())):
                notes.add("self_loop", name)
            if others:
                steps[name] = min(others, key=_preference)
        frontier = {step.memory.id for step in steps.values()} - asked
    return steps, queries


def _preference(replacement: Replacement) -> tuple[bool, float, str, str]:
    memory = replacement.memory
    return (memory.archived, -age_rank(memory.timestamp), memory.id, replacement.relation)


def _walk(start: Memory, steps: Mapping[str, Replacement], max_depth: int) -> tuple[Memory | None, bool]:
    """The head of the chain from `start`, None when nothing of it is valid, and whether the walk was cut."""
    path = [start]
    places = {start.id: 0}
    while (step := steps.get(path[-1].id)) is not None:
        if step.memory.id in places:
            ring = [memory for memory in path[places[step.memory.id] :] if not memory.archived]
            newest = min(ring, key=lambda memory: (-age_rank(memory.timestamp), memory.id), default=None)
            return newest or _last_valid(path), False
        if len(path) > max_depth:
            return _last_valid(path), True
        places[step.memory.id] = len(path)
        path.append(step.memory)
    return _last_valid(path), False


def _last_valid(path: Sequence[Memory]) -> Memory | None:
    return next((memory for memory in reversed(path) if not memory.archived), None)


Expand = Callable[[Sequence[Hit]], Iterable[Hit]]
"""Finds what belongs to the hits at hand, such as neighbours in a graph, already scored."""
StateMode = Literal["current", "history"]

DEFAULT = RecallSettings()


@dataclass(frozen=True, slots=True)
class Recall:
    """The hits, best first, and what a reader of them should know."""

    hits: tuple[Hit, ...]
    recency_bias: Literal["on"] | None
    """`on` when the recency bias was active, whether or not it had times to work with."""
    floor: float | None
    """The score that the adaptive floor cut below; None when it did not."""
    store_queries: int
    notes: Notes


def recall(
    candidates: Iterable[Hit],
    question: str,
    now: datetime,
    settings: RecallSettings = DEFAULT,
    *,
    limit: int = 5,
    store: SupersessionStore | None = None,
    state_mode: StateMode = "current",
    expand: Expand | None = None,
    floor: FloorConfig | None = None,
    recency_bias: RecencyBias | None = None,
    lexicon: TemporalLexicon = ENGLISH,
) -> Recall:
    """Dedup, expansion, state filter, recency bias, adaptive floor, top: in this order.

    Of candidates with one id the best is kept. `state_mode` `current` resolves chains of `store` to their heads and
    leaves archived memories out; `history` shows everything. `recency_bias` overrides the setting for this question.
    Without `floor` nothing is cut but what is beyond `limit`. Faults in the data are noted and never raise.
    """
    check_count("limit", limit, 1)
    check_choice("state_mode", state_mode, ("current", "history"))
    bias = settings.recency_bias if recency_bias is None else recency_bias
    check_choice("recency_bias", bias, ("auto", "on", "off"))
    notes = Notes()
    hits = _distinct(candidates, notes)
    if expand is not None:
        hits = _distinct([*hits, *expand(sort_hits(hits))], notes)
    for hit in hits:
        note_faults(hit.memory, notes)
    queries = 0
    if state_mode == "current":
        if store is not None and hits:
            hits, queries = latest(hits, store, notes)
        hits = [hit for hit in hits if not hit.memory.archived]
    active = bias == "on" or (bias == "auto" and lexicon.asks_for_the_present(question, now.year))
    if active:
        hits = with_recency(hits, now, settings.weight_temporal)
    hits = sort_hits(hits)
    cut = adaptive_floor(hits, floor) if floor is not None else None
    if cut is not None:
        hits = [hit for hit in hits if hit.score >= cut]
    return Recall(tuple(hits[:limit]), "on" if active else None, cut, queries, notes)


def _distinct(hits: Iterable[Hit], notes: Notes) -> list[Hit]:
    """The best of each id."""
    best: dict[str, Hit] = {}
    for given in hits:
        hit = _sound(given, notes)
        other = best.get(hit.memory.id)
        if other is None or sort_key(hit) < sort_key(other):
            best[hit.memory.id] = hit
    return list(best.values())


def _sound(hit: Hit, notes: Notes) -> Hit:
    """The hit; with the score 0 if what it has is no finite number."""
    if is_number(hit.score):
        return hit
    notes.add("bad_score", hit.memory.id, hit.score)
    return Hit(hit.memory, 0.0, hit.replaces)
