"""Facts about ids beside their ranks, and their effect on the sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.fusion.evidence import EvidenceGate
from smart_model_router_scoring.fusion.recency import multiplier_of_age
from smart_model_router_scoring.notes import Note
from smart_model_router_scoring.options import is_number
from smart_model_router_scoring.times import age_days, is_future

Id = TypeVar("Id", str, int)


@dataclass(frozen=True, slots=True)
class Facts(Generic[Id]):
    """None: not asked for. An id that is not in a mapping: unknown.

    `modified_times` are datetimes, epoch seconds or ISO text; `evidence` is the best relevance (0..1). Raises
    ConfigError for times without `now`.
    """

    modified_times: Mapping[Id, object] | None = None
    now: datetime | None = None
    evidence: Mapping[Id, float] | None = None

    def __post_init__(self) -> None:
        if self.modified_times is not None and self.now is None:
            raise ConfigError("now", None, "the present time, where modified_times are given,")

    def age(self, key: Id) -> float | None:
        """The age in days; None when it is not known."""
        if self.modified_times is None or self.now is None:
            return None
        return age_days(self.modified_times.get(key), self.now)

    def recency(self, key: Id) -> float:
        """The multiplier for recency."""
        return multiplier_of_age(self.age(key))

    def relevance(self, key: Id) -> float | None:
        """The best relevance; None when it is not known."""
        value = None if self.evidence is None else self.evidence.get(key)
        return value if is_number(value) else None

    def apply(self, sums: Mapping[Id, float], gate: EvidenceGate) -> Mapping[Id, float]:
        """Sums times recency times evidence, without what the gate leaves out."""
        if self.modified_times is None and self.evidence is None:
            return sums
        factors = {key: gate.factor(self.relevance(key)) for key in sums}
        return {key: sums[key] * self.recency(key) * factor for key, factor in factors.items() if factor is not None}

    def notes(self, key: Id) -> tuple[Note, ...]:
        """The faults in the data of this id."""
        found: list[Note] = []
        if self.modified_times is not None and self.now is not None:
            time = self.modified_times.get(key)
            if time is None:
                found.append(Note("missing_time", str(key)))
            elif self.age(key) is None:
                found.append(Note("bad_time", str(key), repr(time)))
            elif is_future(time, self.now):
                found.append(Note("future_time", str(key), repr(time)))
        if self.evidence is not None and key in self.evidence and self.relevance(key) is None:
            found.append(Note("bad_evidence", str(key), repr(self.evidence[key])))
        return tuple(found)
