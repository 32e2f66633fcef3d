"""One result of fusion, and all of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from smart_model_router_scoring.calibration.curves import Calibration
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.notes import Note

Id = TypeVar("Id", str, int)


@dataclass(frozen=True, slots=True)
class Basis:
    """The data that all hits of one fusion share: the weight of each strategy that answered, `k`, the curve, the best.

    `attainable` is the sum an id would have that is first in every one of these strategies.
    """

    weights: Mapping[str, float]
    k: float
    calibration: Calibration
    attainable: float


@dataclass(frozen=True, slots=True)
class Hit(Generic[Id]):
    """A result. `score` is calibrated (0..1), `fused` is what it was calibrated from: rrf x recency x evidence.

    `ranks` are its ranks in the strategies that found it, `age_days` its age where known, `notes` what was wrong with
    its data.
    """

    id: Id
    score: float
    fused: float
    rrf: float
    recency: float
    evidence: float
    ranks: Mapping[str, int]
    age_days: float | None
    notes: tuple[Note, ...]
    basis: Basis = field(repr=False)

    def explain(self) -> Term:
        """How the score came about. It recomposes to `score`."""
        basis = self.basis
        strategies = [
            combined(
                strategy,
                "ratio",
                [
                    given("weight", basis.weights[strategy]),
                    combined("k + rank", "sum", [given("k", basis.k), given("rank", rank)]),
                ],
            )
            for strategy, rank in self.ranks.items()
        ]
        told = {} if self.age_days is None else {"age in days": round(self.age_days, 1)}
        fused = combined(
            "fused",
            "product",
            [
                combined("reciprocal ranks", "sum", strategies),
                given("recency", self.recency, **told),
                given("evidence", self.evidence),
            ],
        )
        return basis.calibration.explain(fused, basis.attainable)


@dataclass(frozen=True, slots=True)
class Fused(Generic[Id]):
    """Hits, best first. `degraded` are the strategies that gave no answer; `considered` counts the distinct ids."""

    hits: tuple[Hit[Id], ...]
    degraded: tuple[str, ...]
    considered: int

    @property
    def pairs(self) -> list[tuple[Id, float]]:
        """(id, score) of each hit."""
        return [(hit.id, hit.score) for hit in self.hits]

    @property
    def notes(self) -> tuple[Note, ...]:
        """The faults in the data of these hits."""
        return tuple(note for hit in self.hits for note in hit.notes)
