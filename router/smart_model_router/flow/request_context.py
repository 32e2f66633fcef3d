"""One request: its plan, its deadline, its attempts so far, and the cost and time limits of its calls.

Everything that serves a request (executor, admission, waits, attempts, streams) is handed its `RequestContext`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import chain

from smart_model_router.core.fallback import AttemptHistory, full_jitter, gate_waits, hedge_after
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.media_tokens import media_tokens
from smart_model_router.core.ratelimit import DEFAULT_OUTPUT_TOKENS, Cost, estimate
from smart_model_router.core.selection.exploration import ExplorationCall
from smart_model_router.core.tiers import ModelRoute, Plan, TargetFacts, plan
from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.outcome import Failure, FailureClass, Snapshot, Usage
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import RouteRequest
from smart_model_router.flow.clock import Watchdog
from smart_model_router.flow.reference_resolution import ResolvedRequest
from smart_model_router.flow.request_translation import Answers, RequestTranslations, continued
from smart_model_router.flow.state import RouterState

KNOWN_ANSWERS = 20
"""Fewer answers cannot tell a slow target from a dead one."""
_SPREAD = 1.1
"""Answers that all take the same time lie at their own percentiles, give or take the histogram's error."""
_FREE = Cost(0, 0)


@quick
@dataclass(frozen=True, slots=True)
class AdmittedTarget:
    """A target that admitted the request, with its lease."""

    facts: TargetFacts
    tier: str
    gate: Gate
    lease: Lease
    snapshot: Snapshot
    """The statistics of the target as of its admission, for all that is decided before its call is made."""
    last_resort: bool = False
    beside: str | None = None
    """The target whose head was late, when this is a hedge."""
    look: ExplorationCall | None = None
    """Set when the call explores whether the target is as good as before again."""
    home: str | None = None
    """The key of the home of the request's conversation, when this target is it or may become it."""
    watchdog: Watchdog | None = None
    """A hedge's own, as another call is under way beside it; None for all others."""

    @property
    def hedge(self) -> bool:
        """True when it was called because another target's head was late."""
        return self.beside is not None


@dataclass(kw_only=True, slots=True, eq=False)
class RequestContext:
    """One request on its way. `deadline` and all other instants are monotonic."""

    state: RouterState
    request: RouteRequest
    route: ModelRoute
    """Held: the targets of a wildcard exist as long as it does."""
    plan: Plan
    history: AttemptHistory
    report: RouteReport
    started: float
    deadline: float
    translations: RequestTranslations
    answers: bool
    """True when the request is one for an answer, not for another operation of Responses."""
    asked: ResolvedRequest | None
    """The request before references were resolved, as it is kept with the answer; None when it has no references."""
    ends_at: float = field(default=math.inf, init=False)
    """When a stream that is continued has to be over."""
    begun: str = field(default="", init=False)
    """The beginning of the answer that its caller has already."""
    left: set[Lease] = field(default_factory=set, init=False)
    """The calls that run on for their verdict after their caller left: they count as upkeep."""
    timer: Watchdog | None = field(default=None, init=False)
    _usual: tuple[float, float] = field(default=(-math.inf, 0.0), init=False)
    """At an instant, `usual_seconds` then: it is asked for each tier's wait."""
    _media: dict[str, int] = field(default_factory=dict, init=False)
    """The cost of the request's media by family: a target is asked about its cost many times."""

    @classmethod
    def begin(
        cls,
        state: RouterState,
        request: RouteRequest,
        report: RouteReport,
        started: float,
        asked: ResolvedRequest | None,
    ) -> RequestContext:
        """Plan a request. Raises InvalidRequest and ModelNotFound for unknown names."""
        total = state.timeouts.total
        route = state.model_routes[request.model]
        plan = plan_of(state, request, route)
        report.requested_tier = plan.asked
        return cls(
            state=state,
            request=request,
            route=route,
            plan=plan,
            report=report,
            started=started,
            deadline=started + (min(request.timeout, total) if request.timeout is not None else total),
            translations=RequestTranslations(
                request, state.wall, answers=_named(state, request, asked) if request.dialect == "responses" else None
            ),
            answers=request.operation == "create",
            asked=asked,
            history=AttemptHistory(state.routing, plan),
        )

    @property
    def watchdog(self) -> Watchdog:
        """The timer of all calls and back-offs of the request, as they are made in turn, but for a hedge's."""
        if self.timer is None:
            self.timer = Watchdog(self.state.clock, self.state.ticking)
        return self.timer

    def continue_from(self, text: str, deadline: float, ends_at: float) -> None:
        """Continue the request with an answer that begins with `text`: its next stream begins by `deadline`."""
        self.deadline, self.ends_at, self.begun = deadline, ends_at, text
        self.timer = None  # the loser of a race may still have to leave the one before
        request = continued(self.request, text) if text else self.request
        naming = self.translations.answers
        self.translations = RequestTranslations(request, self.state.wall, has_begun=bool(text), answers=naming)

    @property
    def continues(self) -> bool:
        """Return whether the request goes on with an answer of which its caller has a part, or begins it again."""
        return self.ends_at < math.inf

    def late_at(self, admitted: AdmittedTarget, *, delayed: bool) -> float | None:
        """The instant from which a second target is called beside the call; None where none is."""
        lease = admitted.lease
        if admitted.last_resort or (lease.stream and (delayed or self.continues)):
            return None
        if lease.probe or lease.paced:
            return None  # it is made for its verdict: losing a race is none
        # First: that call is free, and must not be made sooner than at patience.
        if self.waits_beside(admitted, admitted.snapshot):
            return lease.admitted_at + self.patience(admitted.facts, lease.admitted_at, admitted.snapshot)
        if self.state.hedges is not None and lease.stream:
            after = hedge_after(self.state.book.snapshot(admitted.facts.id, self.state.clock.now()))
            if after is not None:
                return lease.admitted_at + after
        return None

    def waits_beside(self, admitted: AdmittedTarget, snapshot: Snapshot) -> bool:
        """True when silence of this call leads to a second call beside it, not to a cut."""
        if self.is_known(snapshot) or self.request.state_ids:
            return False
        return self.another_left(admitted.facts)

    def needs_verdict(self, admitted: AdmittedTarget) -> bool:
        """Return whether the call has to come to its verdict, also when its caller leaves.

        Callers in a hurry must neither shield a black hole nor keep a recovered target out: a probe or a paced call has
        its verdict, and so has one call at a time to a target of which too little is known (routing.md 0a, D5a).
        """
        lease = admitted.lease
        if admitted.last_resort or admitted.watchdog is not None or not self.answers:
            return False
        if lease.probe or lease.paced:
            return True
        if self.is_known(admitted.snapshot):
            return False
        return admitted.facts.id not in self.state.detached.values()

    def note(self, admitted: AdmittedTarget, failure: Failure) -> None:
        """Record a failed call, and the instant at which the request may call this target again.

        A probe that was answered is an attempt like any other: content and empty answers are billed.
        """
        billed = admitted.lease.has_begun or failure.failure_class is FailureClass.EMPTY
        now = self.state.clock.now()
        again_at = now
        if failure.context_tokens is not None:
            self.state.windows[admitted.facts.id] = failure.context_tokens
        if not gate_waits(failure):
            again_at += full_jitter(self.state.backoff, self.history.tries(admitted.facts.id), self.state.dice.roll())
        self.history.note(
            admitted.facts,
            admitted.tier,
            failure,
            again_at,
            last_resort=admitted.last_resort,
            probe=admitted.lease.probes_breaker and not billed,
        )

    def limit(self, admitted: AdmittedTarget) -> tuple[float, bool]:
        """The instant by which the call has to end (streams: have content), and if that is the target's own limit."""
        facts, lease, now = admitted.facts, admitted.lease, admitted.lease.admitted_at
        remaining = self.deadline - now
        own = self._own_limit(admitted, now)
        verdict, last = lease.probe or lease.paced, self.history.left <= 1
        if not (verdict or last) and own <= remaining - remaining * self.state.timeouts.margin:
            return now + own, True  # as mostly: it comes first, whatever is left for others
        another = self.another_left(facts, admitted.beside)
        if not another and last:  # its last attempt may take what is left
            own = max(own, remaining)
        allowed, known = remaining, self.is_known(admitted.snapshot)
        # A silent call of an unknown target is not cut off for another real target: that one is asked beside it.
        if another and (known or (self.last_resort_left and not self.another_is_free(facts, now))):
            allowed = remaining - self._margin(admitted, remaining, now)
            if known and not (self.history.failures or self.report.waited_seconds):
                # Nor is the first call before it can be called silent.
                allowed = min(remaining, max(allowed, self.patience(facts, now)))
        if verdict:
            own, allowed = self._verdict_limit(admitted, now, own, allowed)
        return now + min(own, allowed), own <= allowed

    def _margin(self, admitted: AdmittedTarget, remaining: float, now: float) -> float:
        """The part of the remaining seconds that is left for another candidate; 0 where none could answer in it.

        A candidate without known answers is taken to be quick; after a failure, to be like the others of the plan, but
        for a last resort.
        """
        margin, plan = remaining * self.state.timeouts.margin, self.plan
        usual = self.usual_seconds(now) if self.history.failures else 0.0
        for other in self._others(admitted.facts, admitted.beside):
            median = self.state.book.median(other.id, now, stream=self.request.stream)
            takes = _SPREAD * median if median is not None else 0.0 if other in plan.last_resort else usual
            if takes <= margin:
                return margin
        return 0.0

    def _own_limit(self, admitted: AdmittedTarget, now: float) -> float:
        """The target's own limit in seconds: for whole answers their usual duration, once that is known."""
        facts, snapshot = admitted.facts, admitted.snapshot
        usual = snapshot.latency_p99
        if self.request.stream or not self.answers or usual is None:  # an operation has a pace of its own
            return self._own_timeout(facts)
        known = snapshot.latencies >= KNOWN_ANSWERS
        return max(self.patience(facts, now, snapshot) if known else self._own_timeout(facts), 2 * usual)

    def _verdict_limit(self, admitted: AdmittedTarget, now: float, own: float, allowed: float) -> tuple[float, float]:
        """The seconds that a probe or paced call may be silent; it runs on for its verdict when its caller leaves.

        A probe that others wait for, or that another target could replace, is left after patience. Where another target
        can answer, a request with less than twice the patience left changes to it at half of its time.
        """
        facts = admitted.facts
        patience = self.patience(facts, now)
        free = self.another_is_free(facts, now)
        if admitted.lease.probe and (free or self.state.wait_queue.queued(facts.id)):
            own = min(own, patience)
        if (free or self.last_resort_left) and self.deadline - now < 2 * patience:
            allowed = min(allowed, (self.deadline - now) / 2)
        return own, allowed

    def is_known(self, snapshot: Snapshot) -> bool:
        """Return whether enough answers of this kind are known to tell a slow target from a dead one."""
        return (snapshot.ttfts if self.request.stream else snapshot.latencies) >= KNOWN_ANSWERS

    def usual_seconds(self, now: float) -> float:
        """The usual seconds of an answer at the quickest of the plan's targets; 0 while none is known."""
        if self._usual[0] != now:
            median = self.state.book.least_median(self.plan.tier_of, now, stream=self.request.stream)
            self._usual = now, _SPREAD * (median or 0.0)
        return self._usual[1]

    @property
    def last_resort_left(self) -> bool:
        """True when a target of the last resort has not been called yet."""
        tried = self.history.last_resort_tried
        return self.history.last_resort_allowed() and any(f.id not in tried for f in self.plan.last_resort)

    def patience(self, facts: TargetFacts, at: float, snapshot: Snapshot | None = None) -> float:
        """Return after how many silent seconds giving up on a call admitted `at` is the target's fault."""
        config = self.state.patience
        snapshot = snapshot or self.state.book.snapshot(facts.id, at)
        usual = snapshot.ttft_p99 if self.request.stream else snapshot.latency_p99
        if usual is None:
            usual = config.stream if self.request.stream else config.whole
        else:
            usual *= _SPREAD
        return min(max(config.minimum, usual), self._own_timeout(facts))

    def spent(self, admitted: AdmittedTarget, told: Usage | None, pieces: int) -> Usage:
        """The least usage of a stream that broke off: as reported, else estimated with a token a piece."""
        prompt = told.prompt_tokens if told is not None else weigh(self.state, admitted.facts, self.request, self.begun)
        said = told.completion_tokens if told is not None else 0
        return Usage(prompt, max(said, pieces), 0 if told is None else told.cached_prompt_tokens)

    def held_until(self, admitted: AdmittedTarget) -> float:
        """The latest instant for the first delivery of a stream: it leaves time for another candidate."""
        now = self.state.clock.now()
        margin = self.state.timeouts.margin if self.another_left(admitted.facts) else 0.0
        return now + (self.deadline - now) * (1 - margin)

    def cost(self, facts: TargetFacts, now: float) -> Cost:
        """The probable charge of the call at the target's buckets."""
        limits = self.state.fleet.gates[facts.id].limits
        if not limits.known:
            return _FREE
        usual = self.state.book.snapshot(facts.id, now).completion_tokens_p95
        request = self.request
        media = self._media.get(facts.media)
        if media is None:
            media = self._media[facts.media] = media_tokens(request.media, facts.media)
        return estimate(
            request.text_bytes + len(self.begun.encode(errors="surrogatepass")),
            request.max_tokens,
            usual,
            counts_max_tokens=facts.counts_max_tokens,
            media_tokens=media,
            factor=limits.factor,
        )

    def costs(self, targets: Iterable[str], now: float) -> dict[str, Cost]:
        """The `cost` at each of these targets of the plan."""
        gates, by_id = self.state.fleet.gates, self.plan.by_id
        return {target: self.cost(by_id[target], now) if gates[target].limits.known else _FREE for target in targets}

    def another_is_free(self, facts: TargetFacts, now: float) -> bool:
        """True when another target of the plan would take this request now."""
        return any(self.is_free(f, now) for tier in self.plan.tiers for f in tier.targets if f.id != facts.id)

    def is_free(self, facts: TargetFacts, now: float) -> bool:
        """True when this request could be admitted there now."""
        if self.history.refusal(facts, now) is not None or self.translations.refusal(facts) is not None:
            return False
        gate = self.state.fleet.gates[facts.id]
        return gate.refusal(self.cost(facts, now), now, stream=self.request.stream) is None

    def _own_timeout(self, facts: TargetFacts) -> float:
        if facts.timeout is not None:
            return facts.timeout
        timeouts = self.state.timeouts
        if self.request.stream:
            return timeouts.first_content_reasoning if facts.reasoning else timeouts.first_content
        return timeouts.attempt_reasoning if facts.reasoning else timeouts.attempt

    def another_left(self, facts: TargetFacts, beside: str | None = None) -> bool:
        """True when another target could be called after this one; the targets of calls under way do not count."""
        return any(True for _ in self._others(facts, beside))

    def _others(self, facts: TargetFacts, beside: str | None) -> Iterator[TargetFacts]:
        asked = (facts.id, beside)
        for tier in self.plan.tiers:
            for other in tier.targets:
                if other.id not in asked and not self.history.tried(other.id):
                    yield other
        for other in self.plan.last_resort:
            if other.id != facts.id and other.id not in self.history.last_resort_tried:
                yield other


def _named(state: RouterState, request: RouteRequest, asked: ResolvedRequest | None) -> Answers | None:
    """Return how answers of Responses are named that are kept here."""
    kept = state.kept
    if kept is None:
        return None
    issue = partial(kept.issue, owner=request.owner)
    return Answers(issue, request.body.get("store") is not False, None if asked is None else asked.parent)


def plan_of(state: RouterState, request: RouteRequest, model_route: ModelRoute) -> Plan:
    """The plan of `request`. Raises InvalidRequest for an unknown name or tier."""
    if request.avoid:
        _check_avoided(state, request)
    if request.target is not None:
        _check_target(request.target, model_route)
    return plan(
        request,
        model_route,
        tokens=partial(weigh, state),
        estimate_usd=partial(estimate_usd, state),
        made_by=state.makers.of,
        unpriced=state.routing.unpriced == "allow",
        allow_escalation=state.routing.allow_escalation,
        degrade=state.degrade,
    )


def weigh(state: RouterState, facts: TargetFacts, request: RouteRequest, begun: str = "") -> int:
    """The probable tokens of a prompt at a target; `begun` is the answer's beginning where that is sent, too."""
    text_bytes = request.text_bytes + len(begun.encode(errors="surrogatepass"))
    factor = state.fleet.gates[facts.id].limits.factor
    return factor.weigh(text_bytes, media_tokens(request.media, facts.media))[0]


def estimate_usd(state: RouterState, facts: TargetFacts, request: RouteRequest, *, usual: int = 0) -> float | None:
    """The cost of a request at a target in USD; None when its price is unknown.

    An answer without a limit is taken to have 1,024 tokens, or `usual` when that is more.
    """
    longest = request.max_tokens or max(DEFAULT_OUTPUT_TOKENS, usual)
    output = 0 if request.dialect == "embeddings" else longest
    if facts.cost_usd is None:
        return None
    return facts.cost_usd(Usage(weigh(state, facts, request), output))


def _check_avoided(state: RouterState, request: RouteRequest) -> None:
    """Raises InvalidRequest for an unknown name in `avoid`, which would be ignored in silence."""
    if unknown := request.avoid - state.fleet.gates.keys() - state.providers.keys():
        known = ", ".join((*state.providers, *state.fleet.gates))
        raise InvalidRequest(f"avoid: {min(unknown)!r} is no provider and no target; there are {known}")


def _check_target(target: str, model_route: ModelRoute) -> None:
    """Raises InvalidRequest for a `target` that is none of the model's."""
    known = [facts.id for facts in (*chain(*(tier.targets for tier in model_route.tiers)), *model_route.last_resort)]
    if target not in known:
        raise InvalidRequest(
            f"target: {target[:100]!r} is no target of {model_route.model!r}; there are {', '.join(known)}"
        )
