"""The relevance gate: importance and age may not carry a memory that has nothing to do with the question."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING

from smart_model_router_scoring.clamp import unit
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.options import check_number
from smart_model_router_scoring.recall.memory import Hit, Memory
from smart_model_router_scoring.recall.settings import RecallSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router_scoring.notes import Notes

EVIDENCE = ("vector", "keyword", "metadata", "exact")
"""The components that show that a memory is about the question."""
INDEPENDENT = ("tag", "recency", "importance", "confidence", "relevance")
"""Those that would be the same for any question (of the same tags)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComponentWeights:
    """The most that each component adds; the founding project's figures."""

    vector: float = 0.35
    keyword: float = 0.35
    metadata: float = 0.35
    relation: float = 0.25
    tag: float = 0.20
    exact: float = 0.20
    recency: float = 0.10
    importance: float = 0.10
    confidence: float = 0.05
    relevance: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            check_number(field.name, getattr(self, field.name), 0, 1_000)


NAMES = frozenset(field.name for field in fields(ComponentWeights))
DEFAULT_WEIGHTS = ComponentWeights()
DEFAULT_SETTINGS = RecallSettings()


def relevance_hit(
    memory: Memory,
    components: Mapping[str, float],
    notes: Notes,
    settings: RecallSettings = DEFAULT_SETTINGS,
    weights: ComponentWeights = DEFAULT_WEIGHTS,
    *,
    has_query: bool = True,
) -> Hit:
    """A memory scored by the weighted sum of its components, each 0 to 1.

    Evidence is the best of the components that depend on the query. When there is a query and the evidence is below
    the gate, the parts that do not depend on it are scaled by evidence / gate: a ramp, not a cliff. A component
    outside of 0 to 1 is noted and moved to the nearer end; one that has no weight is noted and left out.
    """
    values: dict[str, float] = {}
    for name, value in components.items():
        if name in NAMES:
            values[name] = unit(value, f"{memory.id}.{name}", notes)
        else:
            notes.add("unknown_component", f"{memory.id}.{name}")
    evidence = max([values[name] for name in EVIDENCE if name in values], default=0.0)
    gate = settings.relevance_gate if has_query and evidence < settings.relevance_gate else None
    shares = [
        getattr(weights, name) * value * (1.0 if gate is None or name not in INDEPENDENT else evidence / gate)
        for name, value in values.items()
    ]
    return Hit(memory, math.fsum(shares), why=partial(_why, values, weights, evidence, gate))


def _why(values: dict[str, float], weights: ComponentWeights, evidence: float, gate: float | None) -> Term:
    parts = []
    for name, value in values.items():
        factors = [given("weight", getattr(weights, name)), given(name, value)]
        if gate is not None and name in INDEPENDENT:
            factors.append(combined("damping", "ratio", [given("evidence", evidence), given("gate", gate)]))
        parts.append(combined(name, "product", factors))
    return combined("relevance", "sum", parts, evidence=evidence, gated=gate is not None)
