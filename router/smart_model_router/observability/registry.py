"""Metrics in memory: their definitions, counters and histograms, and the text that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Literal, NamedTuple

Kind = Literal["counter", "gauge", "histogram"]
Merge = Literal["sum", "max", "min", "worst"]
"""The way figures of several processes become one. `worst`: one-hot over a label whose values stand worst first."""

BREAKER_STATES = ("isolated", "open", "half_open", "closed")
"""Worst first."""
_SECONDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0)
_OVERHEAD = (0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.05, 0.25, 1.0)


@dataclass(frozen=True, slots=True)
class Metric:
    """One row. `buckets` are the upper bounds of a histogram, in its unit."""

    name: str
    kind: Kind
    labels: tuple[str, ...]
    help: str
    merge: Merge = "sum"
    buckets: tuple[float, ...] = ()


TABLE: tuple[Metric, ...] = (
    Metric("smr_requests_total", "counter", ("model", "outcome"), "Requests that ended, by what became of them."),
    Metric("smr_attempts_total", "counter", ("target", "class"), "Calls to providers that ended; OK or FailureClass."),
    Metric("smr_request_duration_seconds", "histogram", ("model",), "From the question to its end.", buckets=_SECONDS),
    Metric(
        "smr_time_to_first_token_seconds",
        "histogram",
        ("target",),
        "From a stream's admission to its first content.",
        buckets=_SECONDS,
    ),
    Metric(
        "smr_overhead_seconds",
        "histogram",
        (),
        "What a request took beyond its calls and waits.",
        buckets=_OVERHEAD,
    ),
    Metric("smr_inflight", "gauge", ("target",), "Calls under way."),
    Metric("smr_breaker_state", "gauge", ("target", "state"), "1 for the state a target is in.", merge="worst"),
    Metric(
        "smr_breaker_transitions_total",
        "counter",
        ("target", "from", "to", "reason"),
        "Moves of circuit breakers; a provider's name stands for its transport breaker.",
    ),
    Metric("smr_cooldown_seconds", "gauge", ("target",), "How long a rest still lasts; 0 without one.", merge="max"),
    Metric("smr_throttle_probability", "gauge", ("provider",), "Chance that a call is held back, 0 to 1.", merge="max"),
    Metric("smr_bucket_level", "gauge", ("target", "kind"), "What a rate limit has left; below 0 is debt."),
    Metric("smr_retry_budget", "gauge", (), "Retries of the same target that are allowed now."),
    Metric(
        "smr_tokens_total", "counter", ("target", "kind"), "Tokens used: prompt, cached_prompt (of it), completion."
    ),
    Metric("smr_cost_usd_total", "counter", ("target",), "US dollars, where the price is known."),
    Metric("smr_upkeep_calls_total", "counter", ("target",), "Calls that ran on for their verdict without a caller."),
    Metric("smr_upkeep_cost_usd_total", "counter", ("target",), "US dollars of those calls, part of the cost."),
    Metric("smr_usage_missing_total", "counter", ("target",), "Answers that did not say what they used."),
    Metric("smr_stats_dropped_total", "counter", (), "Observations the store had to give up."),
    Metric("smr_header_rejected_total", "counter", (), "Rate-limit fields that made no sense."),
    Metric("smr_system_health_open_ratio", "gauge", (), "OPEN providers of all enabled, 0 to 1.", merge="max"),
    Metric("smr_load_shedding", "gauge", (), "1 while sheddable requests are turned away.", merge="max"),
    Metric("smr_shed_total", "counter", ("criticality",), "Requests turned away."),
    Metric(
        "smr_degraded_total",
        "counter",
        ("model", "requested_tier", "actual_tier"),
        "Answers from a lower tier than asked for, or from the last resort.",
    ),
    Metric("smr_last_resort_total", "counter", (), "Answers from the last resort."),
    Metric("smr_shared_reachable", "gauge", (), "1 while the shared state answers, 0 while one decides alone.", "min"),
    Metric("smr_shared_round_trip_seconds", "gauge", (), "The newest answer of the server of shared state.", "max"),
    Metric("smr_shared_conflicts_total", "counter", (), "Writes to that server that others came before."),
    Metric("smr_fleet_members", "gauge", (), "Processes that share state, as counted last.", "max"),
)

METRICS = {metric.name: metric for metric in TABLE}


Cell = list[float]
"""A counter, a list of one number: frequent users keep a reference to it."""


class Sample(NamedTuple):
    """One figure. `name` is as it is exposed (`..._bucket`, `..._sum`, `..._count` of a histogram)."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Histogram:
    """Counts by upper bound, one count beyond the last bound, and the sum."""

    __slots__ = ("_bounds", "cells")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.cells = [0.0] * (len(bounds) + 2)

    def observe(self, seconds: float) -> None:
        """Add a value."""
        cells = self.cells
        cells[bisect_left(self._bounds, seconds)] += 1.0
        cells[-1] += seconds


class Registry:
    """Counters and histograms by name and label values, the values in the order of the table's labels."""

    __slots__ = ("_counts", "_histograms")

    def __init__(self) -> None:
        self._counts: dict[tuple[str, tuple[str, ...]], Cell] = {}
        self._histograms: dict[tuple[str, tuple[str, ...]], Histogram] = {}

    def cell(self, name: str, *values: str) -> Cell:
        """Return the counter itself."""
        return self._counts.setdefault((name, values), [0.0])

    def count(self, name: str, *values: str, by: float = 1.0) -> None:
        """Add to a counter."""
        self.cell(name, *values)[0] += by

    def histogram(self, name: str, *values: str) -> Histogram:
        """Return the histogram itself, which may be kept as well."""
        known = self._histograms.get((name, values))
        if known is None:
            known = self._histograms[name, values] = Histogram(METRICS[name].buckets)
        return known

    def forget(self, targets: AbstractSet[str]) -> None:
        """Drop every figure of targets that no longer exist."""
        for name, values in (*self._counts, *self._histograms):
            if values and values[0] in targets and METRICS[name].labels[0] == "target":
                self._counts.pop((name, values), None)
                self._histograms.pop((name, values), None)

    def samples(self) -> list[Sample]:
        """Every figure, histograms cumulative as they are exposed."""
        counts = self._counts.copy().items()
        made = [Sample(name, labelled(name, values), cell[0]) for (name, values), cell in counts]
        for (name, values), histogram in self._histograms.copy().items():
            made += _exposed(name, labelled(name, values), histogram.cells.copy())
        return made


def labelled(name: str, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Label values with their names, as the table has them."""
    return tuple(zip(METRICS[name].labels, values, strict=True))


def _exposed(name: str, labels: tuple[tuple[str, str], ...], cells: list[float]) -> list[Sample]:
    made, so_far = [], 0.0
    for bound, count in zip((*METRICS[name].buckets, float("inf")), cells, strict=False):
        so_far += count
        made.append(
            Sample(f"{name}_bucket", (*labels, ("le", "+Inf" if bound == float("inf") else f"{bound:g}")), so_far)
        )
    return [*made, Sample(f"{name}_sum", labels, cells[-1]), Sample(f"{name}_count", labels, so_far)]


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_PARTS = ("_bucket", "_sum", "_count")


def rendered(samples: Iterable[Sample]) -> bytes:
    """The page. Every metric of the table has its HELP and TYPE, also while it has no sample."""
    lines: dict[str, list[str]] = {metric.name: [] for metric in TABLE}
    for sample in samples:
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in sample.labels)
        metric = metric_of(sample.name)
        if metric is not None:
            told = f"{sample.name}{{{labels}}}" if labels else sample.name
            lines[metric.name].append(f"{told} {_number(sample.value)}")
    page = []
    for metric in TABLE:
        page += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}", *lines[metric.name]]
    return ("\n".join(page) + "\n").encode("utf-8", "replace")


def metric_of(sample: str) -> Metric | None:
    """The row of the table that a sample belongs to; None for one of another version, whose table has more."""
    whole = (sample.removesuffix(part) for part in _PARTS if sample.endswith(part))
    return METRICS.get(sample) or next((METRICS[name] for name in whole if name in METRICS), None)


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)
