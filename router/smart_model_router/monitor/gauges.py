"""The gauges of a router: what its parts say of themselves at one instant, as metrics."""

from __future__ import annotations

from collections.abc import Iterator

from smart_model_router.runtime.inspection import statuses
from smart_model_router.runtime.state import RouterState
from smart_model_router.telemetry.registry import Sample, labelled
from smart_model_router.telemetry.table import BREAKER_STATES

RESTS = frozenset({"cooldown", "wait", "wall", "off"})
"""Refusals that are rests."""


def gauges(state: RouterState) -> list[Sample]:
    """Everything that is not counted by events."""
    return [Sample(name, labelled(name, values), value) for name, values, value in _figures(state)]


def stats_dropped(state: RouterState) -> int:
    """Observations the store gave up; 0 for a store that does not say."""
    return int(getattr(state.store, "stats_dropped", 0))


def _figures(state: RouterState) -> Iterator[tuple[str, tuple[str, ...], float]]:
    now = state.clock.now()
    state.update_shedding(now)
    for status in statuses(state):
        target = (status.id,)
        yield "smr_inflight", target, status.in_flight
        for name in BREAKER_STATES:
            yield "smr_breaker_state", (status.id, name), float(name == status.state)
        rest = (status.retry_after or 0.0) if status.refusal in RESTS else 0.0
        yield "smr_cooldown_seconds", target, rest
        for kind, bucket in state.fleet.gates[status.id].limits.buckets.items():
            yield "smr_bucket_level", (status.id, kind), bucket.level(now)
    for name, provider in state.fleet.providers.items():
        yield "smr_throttle_probability", (name,), provider.throttle.probability(now)
    yield "smr_retry_budget", (), state.budget.balance
    yield "smr_stats_dropped_total", (), stats_dropped(state)
    yield "smr_header_rejected_total", (), sum(state.rejected_fields.values())
    yield "smr_system_health_open_ratio", (), state.fleet.open_ratio(now)
    yield "smr_load_shedding", (), float(state.shedding.active)
