"""Statistics for people: the figures of a target, a model or a provider, and all of them at one instant."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from smart_model_router_stats.estimators import LatencyHistogram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.outcome import FailureClass


@dataclass(frozen=True, slots=True)
class Percentiles:
    """Nearest-rank percentiles in seconds, at most 1 % off, of `count` samples; None when there are none."""

    count: int
    p50: float | None
    p75: float | None
    p90: float | None
    p95: float | None
    p99: float | None

    @classmethod
    def of(cls, histogram: LatencyHistogram) -> Percentiles:
        """Read them off `histogram`."""
        return cls(histogram.total, *(histogram.percentile(percent) for percent in (50, 75, 90, 95, 99)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStats:
    """The statistics of one target; or, summed over targets, of one model or one provider. None is unknown.

    `calls` are all that ended, by whatever cause; `failures` has the classes that occurred.
    `recent_successes` of `recent_outcomes` are the newest 50 of the last 5 minutes of each target, and
    `success_rate` is (s + 4) / (n + 5) of them. `latency_*` is the duration of whole answers, `ttft_*` the
    time to first content of streams, both in seconds. `last_*_age` is in seconds, `last_*_wall` in seconds
    since the epoch; a cancelled call is neither a success nor a failure there. Tokens and cost are totals of
    what was reported; `cached_prompt_tokens` is the part of `prompt_tokens` that providers read from their caches.
    """

    calls: int
    successes: int
    failures: Mapping[FailureClass, int]
    success_rate: float
    recent_successes: int
    recent_outcomes: int
    latency_ema: float | None
    ttft_ema: float | None
    seconds_per_100_tokens: float | None
    latency_15_min: Percentiles
    latency_all_time: Percentiles
    ttft_15_min: Percentiles
    ttft_all_time: Percentiles
    last_success_age: float | None
    last_success_wall: float | None
    last_failure_age: float | None
    last_failure_wall: float | None
    prompt_tokens: int
    cached_prompt_tokens: int
    completion_tokens: int
    cost_usd: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain JSON values."""
        plain = asdict(self)
        plain["failures"] = {failure.value: count for failure, count in self.failures.items()}
        return plain


@dataclass(frozen=True, slots=True)
class StatsView:
    """All figures at one instant. `scope` says whose calls they are: this process's, a file's or a server's."""

    targets: Mapping[str, ModelStats]
    models: Mapping[str, ModelStats]
    providers: Mapping[str, ModelStats]
    scope: Literal["process", "store", "fleet"] = "process"

    def to_dict(self) -> dict[str, Any]:
        """The view as plain JSON values."""
        levels = {"targets": self.targets, "models": self.models, "providers": self.providers}
        plain: dict[str, Any] = {"scope": self.scope}
        for level, stats in levels.items():
            plain[level] = {name: figures.to_dict() for name, figures in stats.items()}
        return plain
