"""Capability match: how well it fits what was asked for, times how far its record can be relied upon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_scoring.clamp import unit
from smart_model_router_scoring.errors import ConfigError
from smart_model_router_scoring.explain import Term, combined, given
from smart_model_router_scoring.notes import Notes
from smart_model_router_scoring.options import check_count, check_number
from smart_model_router_scoring.tools.suggestion import Suggestions, ranked

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Record:
    """How often a capability was run, and how often that ended well."""

    runs: int
    successes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityConfig:
    """The value of a success rate: below `low` almost nothing, above `high` a little extra, else the rate itself."""

    low: float = 0.5
    low_factor: float = 0.1
    high: float = 0.9
    high_factor: float = 1.2
    min_runs: int = 5
    """With fewer runs nothing is known yet, and the factor is 1."""

    def __post_init__(self) -> None:
        check_number("low", self.low, 0, 1)
        check_number("low_factor", self.low_factor, 0, 1)
        check_number("high", self.high, 0, 1)
        check_number("high_factor", self.high_factor, 1, 10)
        check_count("min_runs", self.min_runs, 1)
        if self.low > self.high:
            raise ConfigError("high", self.high, f"a number of at least low, {self.low},")


DEFAULT = ReliabilityConfig()
UNKNOWN = Record(0, 0)


def reliability(record: Record, config: ReliabilityConfig = DEFAULT) -> float:
    """The factor of a record. One that cannot be (more successes than runs) is worth as much as none: 1."""
    if record.runs < config.min_runs or not 0 <= record.successes <= record.runs:
        return 1.0
    rate = record.successes / record.runs
    if rate < config.low:
        return config.low_factor
    return config.high_factor if rate > config.high else 1.0


def match_capabilities(
    similarity: Mapping[str, float],
    records: Mapping[str, Record],
    config: ReliabilityConfig = DEFAULT,
    *,
    limit: int | None = None,
) -> Suggestions:
    """Rank capabilities by similarity x reliability; `raw` ranks, `score` is at most 1.

    `similarity` is that of what was asked for with each description, 0 to 1; what is outside is noted and moved to
    the nearer end.
    """
    notes = Notes()
    fit = {name: unit(value, name, notes) for name, value in similarity.items()}
    for name in fit:
        record = records.get(name, UNKNOWN)
        if not 0 <= record.successes <= record.runs:
            notes.add("impossible_record", name, record)
    scores = {name: value * reliability(records.get(name, UNKNOWN), config) for name, value in fit.items()}

    def explain(name: str) -> Term:
        record = records.get(name, UNKNOWN)
        factor = given("reliability", reliability(record, config), runs=record.runs, successes=record.successes)
        return combined("match", "product", [given("similarity", fit[name]), factor])

    return ranked(scores, limit, explain, notes)
