"""A supersession store in memory that remembers what it was asked, for the tests of recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from smart_model_router_scoring.recall.memory import Hit, Memory, Relation
from smart_model_router_scoring.recall.ranking import Replacement


class Chains:
    """Memories by name, and what replaced them."""

    def __init__(self, *memories: Memory) -> None:
        self.memories = {memory.id: memory for memory in memories}
        self.edges: dict[str, list[Replacement]] = {}
        self.asked: list[list[str]] = []

    def link(self, old: str, new: str, relation: Relation = "EVOLVED_INTO") -> Chains:
        """Say that `new` replaced `old`."""
        self.edges.setdefault(old, []).append(Replacement(relation, self.memories[new]))
        return self

    def replacements(self, ids: Sequence[str]) -> Mapping[str, Sequence[Replacement]]:
        """As the protocol says."""
        self.asked.append(list(ids))
        return {name: self.edges[name] for name in ids if name in self.edges}

    def hit(self, name: str, score: float = 0.5) -> Hit:
        """A memory found by a search."""
        return Hit(self.memories[name], score)


def day(name: str, number: int, *, archived: bool = False) -> Memory:
    """A memory of a day in January."""
    return Memory(id=name, content=name.upper(), timestamp=f"2026-01-{number:02}", archived=archived)
