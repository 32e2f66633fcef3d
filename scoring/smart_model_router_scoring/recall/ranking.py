"""One recall from candidates to the hits that are shown: each stage in its place, each opt-in off until asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from smart_model_router_scoring.notes import Notes
from smart_model_router_scoring.options import check_choice, check_count, is_number
from smart_model_router_scoring.recall.bias import with_recency
from smart_model_router_scoring.recall.floor import FloorConfig, adaptive_floor
from smart_model_router_scoring.recall.intent import ENGLISH, TemporalLexicon
from smart_model_router_scoring.recall.memory import Hit
from smart_model_router_scoring.recall.settings import RecallSettings, RecencyBias
from smart_model_router_scoring.recall.sort import note_faults, sort_hits, sort_key
from smart_model_router_scoring.recall.supersession import SupersessionStore, latest

if TYPE_CHECKING:
    from datetime import datetime

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
