"""Every metric: its name, kind, labels and help, and the way the figures of several processes are joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["counter", "gauge", "histogram"]
Merge = Literal["sum", "max", "worst"]
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
)

METRICS = {metric.name: metric for metric in TABLE}
