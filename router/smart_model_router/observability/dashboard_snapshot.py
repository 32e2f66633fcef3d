"""One snapshot of a live router for the dashboard: plain JSON values, the same for every reader."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from smart_model_router.core.tiers import ModelRoute
from smart_model_router.domain.errors import RouterUnavailable
from smart_model_router.flow.inspection import TargetStatus, select, statuses, system_health
from smart_model_router.flow.state import RouterState
from smart_model_router.observability.dashboard_history import STEP_SECONDS, STEPS, UNSERVED, DashboardHistory, told
from smart_model_router.observability.worker import statuses as sink_statuses
from smart_model_router_stats.book import StatsBook

VERSION = 1
RATE_SECONDS = 60
SERVING_SECONDS = 30
SHOWN_TRANSITIONS = 60
SHOWN_REQUESTS = 40
SHOWN_SERIES = 8
_FRESH_SECONDS = 3.0
"""Seconds between two computations of a target's percentiles: one costs a tenth of a millisecond."""
_TARGETS_AT_A_TIME = 10
OTHERS = "others"


class DashboardSnapshot:
    """Makes snapshots of one router. Belongs to its loop. It remembers parts of the last snapshot."""

    def __init__(
        self, state: RouterState, book: StatsBook, model_routes: Mapping[str, ModelRoute], recorder: DashboardHistory
    ) -> None:
        self._state = state
        self._book = book
        self._model_routes = model_routes
        self._recorder = recorder
        self._serving: dict[str, tuple[str | None, float]] = {}
        self._spreads: dict[str, tuple[float, dict[str, float | None]]] = {}

    async def picture(self) -> dict[str, Any]:
        """Return everything on the first screen. Yields to the loop after every few targets."""
        recorder, wall = self._recorder, self._recorder.wall()
        known = {status.id: status for status in statuses(self._state)}
        self._spreads = {target: spread for target, spread in self._spreads.items() if target in known}
        health = system_health(self._state)
        targets = []
        for place, status in enumerate(known.values()):
            targets.append(self._target(status))
            if place % _TARGETS_AT_A_TIME == _TARGETS_AT_A_TIME - 1:
                await asyncio.sleep(0)
        return {
            "version": VERSION,
            "scope": "process",
            "at": wall,
            "system": {
                "open_ratio": health.open_ratio,
                "offline": health.offline,
                "shedding": health.shedding,
                "alone": self._alone(wall),
            },
            "models": [self._model(name, model_route, known, wall) for name, model_route in self._model_routes.items()],
            "targets": targets,
            "served": served_by_step(recorder, wall),
            "errors": _errors(recorder),
            **newest(recorder),
            "sinks": [
                {"name": one.name, "errors": one.errors, "dropped": one.dropped}
                for one in sink_statuses(self._state.sinks)
            ],
        }

    def _alone(self, wall: float) -> dict[str, Any] | None:
        """Since when, and why, this process decides alone; None while it shares state, or has none to share."""
        coordinator = self._state.coordinator
        if coordinator is None or coordinator.alone_since is None:
            return None
        since = wall - (self._state.clock.now() - coordinator.alone_since)
        return {"since": since, "reason": coordinator.reason}

    def _target(self, status: TargetStatus) -> dict[str, Any]:
        recorder, target = self._recorder, status.id
        snapshot = self._book.snapshot(target, self._state.clock.now())
        minute = sum(step.calls[target] for step in recorder.recent(RATE_SECONDS))
        recent = tuple(recorder.recent(STEP_SECONDS * STEPS))
        cost = sum(step.cost_usd[target] for step in recent)
        prompt = sum(step.prompt_tokens[target] for step in recent)
        cached = sum(step.cached_prompt_tokens[target] for step in recent)
        limits = self._state.fleet.gates[target].limits
        now = self._state.clock.now()
        tokens = limits.tokens
        return {
            "id": target,
            "provider": status.provider,
            "state": status.state,
            "refusal": status.refusal,
            "because": status.because,
            "due": status.retry_after,
            "rate": minute / recorder.covered(RATE_SECONDS),
            "errors": 1 - snapshot.successes / snapshot.outcomes if snapshot.outcomes else None,
            **self._spread(target, now),
            "in_flight": status.in_flight,
            "slots": status.slots,
            "tokens": None if tokens is None else tokens.level(now),
            "tokens_limit": None if tokens is None else tokens.capacity,
            "cost_hour": cost * 3600 / recorder.covered(STEP_SECONDS * STEPS),
            "prompt_hour": prompt * 3600 / recorder.covered(STEP_SECONDS * STEPS),
            "cached": cached / prompt if prompt else None,
            "run": self._run(status),
        }

    def _spread(self, target: str, now: float) -> dict[str, float | None]:
        read_at, known = self._spreads.get(target, (-_FRESH_SECONDS, {}))
        if now - read_at >= _FRESH_SECONDS:
            latency, ttft = self._book.spread(target, now)
            known = {"p50": latency.p50, "p95": latency.p95, "p99": latency.p99, "ttft": ttft.p50}
            self._spreads[target] = (now, known)
        return known

    def _model(
        self, name: str, model_route: ModelRoute, known: Mapping[str, TargetStatus], wall: float
    ) -> dict[str, Any]:
        order = [(facts.id, tier.name) for tier in model_route.tiers for facts in tier.targets]
        order += [(facts.id, "last_resort") for facts in model_route.last_resort]
        places = {target: place for place, (target, _) in reversed(list(enumerate(order)))}
        target, since = self._served_by(name, model_route, wall)
        place = places.get(target or "")
        better = [one for one in places if place is None or places[one] < place]
        return {
            "name": name,
            "target": target,
            "choice": None if place is None else place + 1,
            "tier": None if place is None else order[place][1],
            "degraded": place is not None and order[place][1] != model_route.tiers[0].name,
            "since": since,
            "missing": [missing for one in reversed(better) if (missing := self._missing(known.get(one))) is not None],
        }

    def _missing(self, status: TargetStatus | None) -> dict[str, Any] | None:
        """The reason why a target does not serve; None when it may."""
        if status is None or (status.refusal is None and status.state == "closed"):
            return None
        why = status.state if status.state != "closed" else status.refusal
        run = self._run(status) or status.because
        return {"target": status.id, "why": why, "run": run, "due": status.retry_after}

    def _run(self, status: TargetStatus) -> str:
        """The cause of the state: the operator's word, else a run of failures."""
        return told(self._recorder.runs.get(status.id, {})) if status.isolated is None else status.isolated.told

    def _served_by(self, model: str, model_route: ModelRoute, wall: float) -> tuple[str | None, float]:
        """The target that serves the model and since when: the most frequent one of late, else the first choice."""
        serving = self._recorder.serving.get(model)
        if serving is not None and wall - serving.last_at < SERVING_SECONDS:
            target, since = serving.target or None, serving.since
        else:
            target = self._would_serve(model_route)
            known, since = self._serving.get(model, (None, 0.0))
            if target != known or not since:
                since = serving.since if serving is not None and serving.target == target else wall
        self._serving[model] = (target, since)
        return target, since

    def _would_serve(self, model_route: ModelRoute) -> str | None:
        try:
            return select(self._state, model_route, model_route.tiers[0].name).target
        except RouterUnavailable:
            return None


def served_by_step(recorder: DashboardHistory, wall: float) -> dict[str, Any]:
    """Answers by target in steps of ten seconds, the busiest targets by name; `end` is seconds since the epoch."""
    last = int(recorder.clock() // STEP_SECONDS)
    totals: Counter[str] = Counter()
    for step in recorder.steps:
        for target, count in step.served.items():
            totals[target] += count
    named = [target for target, _ in totals.most_common() if target != UNSERVED][:SHOWN_SERIES]
    series: dict[str, list[int]] = {name: [0] * STEPS for name in (*named, OTHERS, UNSERVED)}
    for step in recorder.steps:
        place = STEPS - 1 - (last - step.number)
        if not 0 <= place < STEPS:
            continue
        for target, count in step.served.items():
            series[target if target in series else OTHERS][place] += count
    if not any(series[OTHERS]):
        del series[OTHERS]
    return {"step": STEP_SECONDS, "end": wall, "series": [[name, counts] for name, counts in series.items()]}


def newest(recorder: DashboardHistory) -> dict[str, Any]:
    """The newest transitions and requests, newest first."""
    moves = list(recorder.transitions)[-SHOWN_TRANSITIONS:]
    traces = list(recorder.requests.values())[-SHOWN_REQUESTS:]
    return {
        "transitions": [moved.to_dict() for moved in reversed(moves)],
        "requests": [trace.line() for trace in reversed(traces)],
    }


def _errors(recorder: DashboardHistory) -> list[dict[str, Any]]:
    counts: Counter[tuple[str, str]] = Counter()
    for step in recorder.recent(STEP_SECONDS * STEPS):
        counts.update(step.errors)
    return errors_of((failure, target, count) for (failure, target), count in counts.items())


def errors_of(counts: Iterable[tuple[str, str, int]]) -> list[dict[str, Any]]:
    """Failure classes with their targets, the most frequent first."""
    by_class: dict[str, Counter[str]] = {}
    for failure, target, count in counts:
        by_class.setdefault(failure, Counter())[target] += count
    lines = [
        {"class": failure, "count": sum(targets.values()), "targets": targets.most_common()}
        for failure, targets in by_class.items()
    ]
    return sorted(lines, key=lambda line: -int(str(line["count"])))
