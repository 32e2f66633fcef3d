"""Looking without sending: what a target would say now, which one would serve, and why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from smart_model_router.core.breaker import BreakerState
from smart_model_router.core.fallback import least_retry_after
from smart_model_router.core.gate import Gate
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.selection import View
from smart_model_router.core.selection.scoring import scores
from smart_model_router.core.selection.strategies import spread
from smart_model_router.core.tiers import ModelRoute, ModelSelection, TargetFacts, Tier
from smart_model_router.domain.errors import AllTargetsFailed, InvalidRequest
from smart_model_router.domain.outcome import Refusal
from smart_model_router.domain.request import RouteRequest
from smart_model_router.domain.shared_state import Isolation
from smart_model_router.flow.request_context import estimate_usd, plan_of
from smart_model_router.flow.request_translation import RequestTranslations
from smart_model_router.flow.state import RouterState

_FREE = Cost(0, 0)


@dataclass(frozen=True, slots=True)
class SystemHealth:
    """`open_ratio` is OPEN providers / enabled providers, in [0, 1]."""

    open_ratio: float
    offline: bool
    shedding: bool


@dataclass(frozen=True, slots=True)
class Availability:
    """A gate's answer to a call made now: `available`, the `confidence` in it (0..1), the `reason` of a refusal.

    `confidence` is n / (n + 5) x (1 - age / 5 min): n outcomes, the newest `age` old.
    """

    available: bool
    confidence: float
    reason: str | None
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class TargetStatus:
    """A target at present. `state` is the worse of its breakers'; `refusal` is that of a call made now.

    `because` is the failure class behind a wait, a wall or being off; `isolated` is set while the operator keeps the
    target out. `retry_after` is in seconds; `success_rate` in [0, 1] is of the newest outcomes, None before the
    first (decisions use a smoothed one, see Snapshot); latencies are seconds.
    """

    id: str
    provider: str
    state: str
    refusal: str | None
    retry_after: float | None
    because: str | None
    in_flight: int
    slots: int
    success_rate: float | None
    latency_seconds: float | None
    ttft_seconds: float | None
    isolated: Isolation | None


@dataclass(frozen=True, slots=True)
class PlannedTarget:
    """One line of an explanation. `rank` is the order within its tier; `refusal` is None when it would be admitted."""

    target: str
    tier: str
    rank: int | None
    health: float | None
    refusal: str | None
    retry_after: float | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """The plan of a request made now: `serves` is the target that would get it, None when none would."""

    model: str
    requested_tier: str
    strategy: str
    serves: str | None
    degraded: bool
    targets: tuple[PlannedTarget, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def predict_availability(state: RouterState, target: str) -> Availability:
    """The gate's answer to a call made now, and how much recent outcomes support it."""
    now = state.clock.now()
    refusal = state.fleet.gates[target].refusal(_FREE, now)
    snapshot = state.book.snapshot(target, now)
    age = 0.0 if snapshot.newest_outcome_at is None else now - snapshot.newest_outcome_at
    confidence = snapshot.outcomes / (snapshot.outcomes + 5) * max(0.0, 1 - age / 300)
    return Availability(refusal is None, confidence, None if refusal is None else refusal.reason, _after(refusal, now))


def system_health(state: RouterState) -> SystemHealth:
    """The share of OPEN providers, and what follows from it."""
    now = state.clock.now()
    state.update_shedding(now)
    return SystemHealth(state.fleet.open_ratio(now), state.fleet.connectivity.offline, state.shedding.active)


def statuses(state: RouterState) -> tuple[TargetStatus, ...]:
    """Every target, in configured order."""
    now = state.clock.now()
    return tuple(_status(state, gate, now) for gate in state.fleet.gates.values())


def select(state: RouterState, model_route: ModelRoute, tier: str) -> ModelSelection:
    """The target that would serve `tier` now, in the order of a request's plan.

    Lower tiers and the last resort are degraded; a higher tier, which `routing.allow_escalation` allows, is not.
    """
    names = [t.name for t in model_route.tiers]
    if tier not in names:
        raise InvalidRequest(f"tier: {tier!r} is none of {', '.join(names)}")
    at = names.index(tier)
    lower = model_route.tiers[at + 1 :] if state.degrade else ()
    higher = tuple(reversed(model_route.tiers[:at])) if state.degrade and state.routing.allow_escalation else ()
    now = state.clock.now()
    reasons: dict[str, str] = {}
    refusals: list[Refusal] = []
    for one in (model_route.tiers[at], *lower, *higher):
        for facts in _ordered(state, model_route, one, now):
            refusal = state.fleet.gates[facts.id].refusal(_FREE, now)
            if refusal is None:
                return ModelSelection(facts.id, tier, one.name, one in lower, reasons)
            refusals.append(refusal)
            reasons[facts.id] = refusal.reason
    for facts in model_route.last_resort if state.degrade else ():
        refusal = state.fleet.gates[facts.id].resort_refusal()
        if refusal is None:
            return ModelSelection(facts.id, tier, "last_resort", degraded=True, reasons=reasons)
        reasons[facts.id] = refusal.reason
    told = ", ".join(f"{target} {reason}" for target, reason in reasons.items())
    raise AllTargetsFailed(f"no target can serve {tier}: {told}", retry_after=least_retry_after(refusals, now))


def explain(state: RouterState, request: RouteRequest) -> Explanation:
    """The plan of a request, each gate's answer to it, and the target that would serve it."""
    now = state.clock.now()
    model_route = state.model_routes[request.model]
    drawn = plan_of(state, request, model_route)
    lines: list[PlannedTarget] = []
    untranslatable = RequestTranslations(request, state.wall).refusal
    for tier in drawn.tiers:
        view = _view(state, model_route, tier, now, request)
        health = scores([f.candidate for f in tier.targets], view, now) if tier.targets else {}
        for rank, facts in enumerate(_ordered(state, model_route, tier, now, request), 1):
            refusal = state.fleet.gates[facts.id].refusal(_FREE, now, stream=request.stream)
            refusal = refusal if untranslatable(facts) is None else Refusal("filtered:translation")
            lines.append(_line(facts.id, tier.name, refusal, now, rank, health[facts.id]))
    for facts in drawn.last_resort:
        refusal = state.fleet.gates[facts.id].resort_refusal()
        refusal = refusal if untranslatable(facts) is None else Refusal("filtered:translation")
        lines.append(_line(facts.id, "last_resort", refusal, now))
    serves = next((line for line in lines if line.refusal is None), None)
    lines += [_line(target, "-", refusal, now) for target, refusal in drawn.left_out]
    degraded = serves is not None and serves.tier != drawn.asked and serves.tier not in drawn.escalations
    strategy, target = model_route.strategy, None if serves is None else serves.target
    return Explanation(request.model, drawn.asked, strategy, target, degraded, tuple(lines))


def dearest_usd(state: RouterState, request: RouteRequest) -> float:
    """The cost of a request at the dearest target of its plan; a target of unknown price counts as free.

    An answer without a limit of its own is taken to be as long as most of the target's are.
    """
    plan, now = plan_of(state, request, state.model_routes[request.model]), state.clock.now()
    costs = []
    for facts in plan.by_id.values():
        usual = state.book.snapshot(facts.id, now).completion_tokens_p95
        costs.append(estimate_usd(state, facts, request, usual=usual or 0) or 0.0)
    return max(costs, default=0.0)


def _line(
    target: str, tier: str, refusal: Refusal | None, now: float, rank: int | None = None, health: float | None = None
) -> PlannedTarget:
    reason = None if refusal is None else refusal.reason
    return PlannedTarget(target, tier, rank, health, reason, _after(refusal, now))


def _ordered(
    state: RouterState, model_route: ModelRoute, tier: Tier, now: float, request: RouteRequest | None = None
) -> list[TargetFacts]:
    """The targets of a tier in the order in which they would be asked, but for chance."""
    if not tier.targets:
        return []
    by_id = {facts.id: facts for facts in tier.targets}
    view = _view(state, model_route, tier, now, request)
    order = model_route.selector.order([facts.candidate for facts in tier.targets], view, now, 0.0)
    return [by_id[c.id] for c in (spread(order, view, 0.0) if tier.grouped else order)]


def _view(state: RouterState, model_route: ModelRoute, tier: Tier, now: float, request: RouteRequest | None) -> View:
    ids = [facts.id for facts in tier.targets]
    if request is None:
        return state.view(ids, now)
    key = tier.conversation(request)
    home = None if key is None else state.homes.of(model_route.home_name(tier.name, key))
    return state.view(ids, now, stream=request.stream, session=request.session_key, key=key, home=home)


def _status(state: RouterState, gate: Gate, now: float) -> TargetStatus:
    snapshot = state.book.snapshot(gate.id, now)
    refusal = gate.refusal(_FREE, now)
    return TargetStatus(
        id=gate.id,
        provider=gate.provider.name,
        state=_worst(gate, now),
        refusal=None if refusal is None else refusal.reason,
        retry_after=_after(refusal, now),
        because=_because(gate, now),
        in_flight=gate.in_flight,
        slots=gate.provider.bulkhead.limit,
        success_rate=snapshot.successes / snapshot.outcomes if snapshot.outcomes else None,
        latency_seconds=snapshot.latency_ema,
        ttft_seconds=snapshot.ttft_ema,
        isolated=state.words.isolation(gate.id),
    )


def _because(gate: Gate, now: float) -> str | None:
    """The failure that a wait, a wall or being off goes back to: the credential's before the target's own."""
    cause = gate.credential.cause(now) or gate.cooldown.cause(now)
    return None if cause is None else cause.value


def _worst(gate: Gate, now: float) -> str:
    states = [breaker.state(now) for breaker in (*gate.breakers.values(), gate.provider.transport)]
    order = (BreakerState.ISOLATED, BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED)
    return next(state.value for state in order if state in states)


def _after(refusal: Refusal | None, now: float) -> float | None:
    if refusal is None or refusal.retry_at is None:
        return None
    return max(0.0, refusal.retry_at - now)
