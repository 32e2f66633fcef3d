"""Metrics read from the parts of a router at one instant: gauges, and counters that no event carries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from smart_model_router.domain.ports import StatsStore, SupportsLossCount
from smart_model_router.flow.inspection import statuses
from smart_model_router.flow.state import RouterState
from smart_model_router.observability.metric_definitions import BREAKER_STATES
from smart_model_router.observability.registry import Sample, labelled


def gauges(state: RouterState) -> list[Sample]:
    """Return every gauge."""
    return [Sample(name, labelled(name, values), value) for name, values, value in _figures(state)]


def counters(state: RouterState) -> Counter[str]:
    """Return the counters of this router and its predecessors, by metric, that no event carries."""
    counted = state.counted_before.copy()
    counted["smr_stats_dropped_total"] += _stats_dropped(state.store)
    counted["smr_header_rejected_total"] += sum(state.rejected_fields.values())
    return counted


def _stats_dropped(store: StatsStore | None) -> int:
    return store.stats_dropped if store is not None and isinstance(store, SupportsLossCount) else 0


def _figures(state: RouterState) -> Iterator[tuple[str, tuple[str, ...], float]]:
    now = state.clock.now()
    state.update_shedding(now)
    for status in statuses(state):
        target = (status.id,)
        yield "smr_inflight", target, status.in_flight
        for name in BREAKER_STATES:
            yield "smr_breaker_state", (status.id, name), float(name == status.state)
        gate = state.fleet.gates[status.id]
        # Not the refusal that a call would meet: that one ends last, and may be a breaker's.
        rests = (gate.cooldown.law(now), gate.credential.law(now), gate.cooldown.advice(now))
        until = max((rest.retry_at or now for rest in rests if rest is not None), default=now)
        yield "smr_cooldown_seconds", target, until - now
        for kind, bucket in gate.limits.buckets.items():
            yield "smr_bucket_level", (status.id, kind), bucket.level(now)
    for name, provider in state.fleet.providers.items():
        yield "smr_throttle_probability", (name,), provider.throttle.probability(now)
    yield "smr_retry_budget", (), state.budget.balance
    yield "smr_system_health_open_ratio", (), state.fleet.open_ratio(now)
    yield "smr_load_shedding", (), float(state.shedding.active)
