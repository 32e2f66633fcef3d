"""Supersession: a memory that was replaced gives its place to the last one of the chain that is still valid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Protocol

from smart_model_router_scoring.explain import Term, combined
from smart_model_router_scoring.options import check_count
from smart_model_router_scoring.recall.memory import Hit, Memory, Relation, Replaced
from smart_model_router_scoring.recall.sort import age_rank, sort_hits

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_model_router_scoring.notes import Notes

MAX_DEPTH = 5


@dataclass(frozen=True, slots=True)
class Replacement:
    """The replacement of a memory, and its kind."""

    relation: Relation
    memory: Memory


class SupersessionStore(Protocol):
    """Where the chains are kept."""

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
