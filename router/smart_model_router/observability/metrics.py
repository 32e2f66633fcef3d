"""The metrics of a router: counters and histograms from events, gauges from its state."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    GuardsExpired,
    RequestFinished,
    RequestShed,
    TargetsEvicted,
)
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.ports import StatsStore, SupportsLossCount
from smart_model_router.flow.inspection import statuses
from smart_model_router.flow.state import RouterState
from smart_model_router.observability.registry import BREAKER_STATES, Cell, Histogram, Registry, Sample, labelled
from smart_model_router.observability.worker import Batcher, OpenRequests


class Metrics(Batcher):
    """Counts events."""

    def __init__(self) -> None:
        super().__init__(
            {
                AttemptFinished: self._attempt,
                RequestFinished: self._request,
                BreakerChanged: self._transition,
                RequestShed: self._shed,
                GuardsExpired: self._forget,
                TargetsEvicted: self._forget,
            }
        )
        self._calls = OpenRequests[tuple[float, float]]()
        """The begin and the end of each call of a request."""
        self._count_in(Registry())

    def _count_in(self, registry: Registry) -> None:
        """The counters that every request adds to are kept at hand, beside the registry they belong to."""
        self._registry = registry
        self._attempts: dict[tuple[str, FailureClass | None], Cell] = {}
        self._tokens: dict[str, tuple[Cell, Cell]] = {}
        self._outcomes: dict[tuple[str, str], tuple[Cell, Histogram]] = {}
        self._overhead: Histogram | None = None

    def continue_from(self, before: Metrics) -> None:
        """Continue the counters of another sink, which still counts as well."""
        self.catch_up()
        before.stop_gathering()
        self._count_in(before._registry)

    def samples(self) -> list[Sample]:
        """Every counter and histogram, of every event until now."""
        self.catch_up()
        return self._registry.samples()

    def _attempt(self, event: AttemptFinished) -> None:
        target, failure, usage, registry = event.target, event.failure_class, event.usage, self._registry
        cell = self._attempts.get((target, failure))
        if cell is None:
            outcome = "OK" if failure is None else failure.value
            cell = self._attempts[target, failure] = registry.cell("smr_attempts_total", target, outcome)
        cell[0] += 1.0
        if event.ttft_seconds is not None:
            registry.histogram("smr_time_to_first_token_seconds", target).observe(event.ttft_seconds)
        if usage is not None:
            tokens = self._tokens.get(target)
            if tokens is None:
                prompt = registry.cell("smr_tokens_total", target, "prompt")
                tokens = self._tokens[target] = (prompt, registry.cell("smr_tokens_total", target, "completion"))
            tokens[0][0] += usage.prompt_tokens
            tokens[1][0] += usage.completion_tokens
            if usage.cached_prompt_tokens:
                registry.count("smr_tokens_total", target, "cached_prompt", by=usage.cached_prompt_tokens)
        elif failure is None:
            registry.count("smr_usage_missing_total", target)
        if event.cost_usd:
            registry.count("smr_cost_usd_total", target, by=event.cost_usd)
        if event.upkeep:
            registry.count("smr_upkeep_calls_total", target)
            registry.count("smr_upkeep_cost_usd_total", target, by=event.cost_usd or 0.0)
        else:
            self._calls.note(event.request_id, (event.at - event.seconds, event.at))

    def _request(self, event: RequestFinished) -> None:
        model, outcome, registry = event.configured_model, event.outcome, self._registry
        known = self._outcomes.get((model, outcome))
        if known is None:
            duration = registry.histogram("smr_request_duration_seconds", model)
            known = self._outcomes[model, outcome] = (registry.cell("smr_requests_total", model, outcome), duration)
        known[0][0] += 1.0
        known[1].observe(event.seconds)
        calls = self._calls.take(event.request_id)
        if len(calls) >= event.attempts:  # a call that still runs has no figures yet
            overhead = self._overhead
            if overhead is None:
                overhead = self._overhead = registry.histogram("smr_overhead_seconds")
            overhead.observe(max(0.0, event.seconds - _seconds_in(calls) - event.waited_seconds))
        if event.degraded:
            registry.count("smr_degraded_total", model, event.requested_tier, event.actual_tier or "")
        if event.last_resort:
            registry.count("smr_last_resort_total")

    def _transition(self, event: BreakerChanged) -> None:
        self._registry.count(
            "smr_breaker_transitions_total", event.owner, event.from_state, event.to_state, event.reason
        )

    def _forget(self, event: GuardsExpired | TargetsEvicted) -> None:
        for key in [key for key in self._attempts if key[0] in event.names]:
            del self._attempts[key]
        for name in event.names:
            self._tokens.pop(name, None)
        self._registry.forget(event.names)

    def _shed(self, event: RequestShed) -> None:
        self._registry.count("smr_shed_total", event.criticality)


def _seconds_in(calls: list[tuple[float, float]]) -> float:
    """Seconds in which at least one of the calls was under way: a hedge overlaps another."""
    if len(calls) == 1:  # the usual case
        [(began, ended)] = calls
        return ended - began
    total, until = 0.0, -math.inf
    for began, ended in sorted(calls):
        total += max(0.0, ended - max(began, until))
        until = max(until, ended)
    return total


def gauges(state: RouterState) -> list[Sample]:
    """Return every gauge."""
    return [Sample(name, labelled(name, values), value) for name, values, value in _figures(state)]


def counters(state: RouterState) -> Counter[str]:
    """Return the counters of this router and its predecessors, by metric, that no event carries."""
    counted = state.counted_before.copy()
    counted["smr_stats_dropped_total"] += _stats_dropped(state.store)
    counted["smr_header_rejected_total"] += sum(state.rejected_fields.values())
    if state.coordinator is not None and state.coordinator.traffic is not None:
        counted["smr_shared_conflicts_total"] += state.coordinator.traffic.conflicts
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
    if (coordinator := state.coordinator) is not None:
        yield "smr_shared_reachable", (), float(not coordinator.reason)
        yield "smr_fleet_members", (), float(len(coordinator.members.living()))
        if coordinator.traffic is not None and coordinator.traffic.round_trip is not None:
            yield "smr_shared_round_trip_seconds", (), coordinator.traffic.round_trip
