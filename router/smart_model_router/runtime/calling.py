"""One call to one admitted target: how long it may last, whose fault its end is, and what is written down about it."""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass, field, replace

from smart_model_router.core.ending import final_rejection
from smart_model_router.core.fallback import Progress
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost, estimate
from smart_model_router.core.selection.looks import Look
from smart_model_router.core.tiers import Plan, TargetFacts
from smart_model_router.errors import SmartRouterError
from smart_model_router.events import AttemptFinished
from smart_model_router.forwarding import sent_to
from smart_model_router.outcome import NO_READING, Failure, FailureClass, LimitReading, Success, Usage
from smart_model_router.ports import Provider, ProviderCall
from smart_model_router.quick import quick
from smart_model_router.report import Attempt, RouteReport
from smart_model_router.request import RouteRequest
from smart_model_router.runtime.state import RouterState
from smart_model_router.runtime.translations import Sent, Translations
from smart_model_router.runtime.watchdog import Expired, Watchdog
from smart_model_router.wires.translate import Losses, Translation, Untranslatable
from smart_model_router.wires.translate.words import dumps

_FREE = Cost(0, 0)


@quick
@dataclass(frozen=True, slots=True)
class Admission:
    """A target that said yes, and what it holds for us."""

    facts: TargetFacts
    tier: str
    gate: Gate
    lease: Lease
    last_resort: bool = False
    beside: str | None = None
    """The target whose head was late, when this is a hedge."""
    look: Look | None = None
    """When it is to find out whether the target is its old self again."""
    watchdog: Watchdog | None = None
    """A hedge's own, as another call is under way beside it; None for all others."""

    @property
    def hedge(self) -> bool:
        """Whether it was asked because another target's head was late."""
        return self.beside is not None


@dataclass(kw_only=True)
class Caller:
    """Makes the calls of one request. `deadline` is the request's, monotonic."""

    state: RouterState
    request: RouteRequest
    plan: Plan
    progress: Progress
    report: RouteReport
    deadline: float
    ends_at: float = math.inf
    """When a stream that is gone on with has to be over, monotonic."""
    watchdog: Watchdog = field(init=False)
    _asked_first: str = field(init=False, default="")
    _begun: str = field(init=False, default="")
    """What the answer begins with already."""
    translations: Translations = field(init=False)

    def __post_init__(self) -> None:
        self.watchdog = Watchdog(self.state.clock)
        self.translations = Translations(self.request, self.state.wall)

    async def whole(self, step: Admission) -> Success | Failure:
        """One whole-answer call: everything the lease holds is given back here, whatever happens."""
        lease = step.lease
        limit, own = self.limit(step)
        outcome: Success | Failure
        sent = self.sent(step)
        try:
            answering = self.provider(step).call(self.provider_call(step, sent.request))
            outcome = await self.watchdog.within(answering, limit)
            if sent.translation is not None and isinstance(outcome, Success):
                outcome = self._translated(sent.translation, outcome)
        except Expired:
            outcome = self.timed_out(step, own, lease.admitted_at)
        except asyncio.CancelledError:
            self.settle(step, self.given_up(step, silent_since=lease.admitted_at))
            raise
        except Exception as bug:  # noqa: BLE001 - providers return failures: whatever they raise is their bug
            outcome = provider_bug(bug)
        if isinstance(outcome, Failure):
            return self.settle(step, outcome)
        self.settled(step, None, usage=outcome.usage, reading=outcome.reading)
        self.state.remember_maker(step.facts.id, outcome.body)
        return outcome

    def _translated(self, translation: Translation, success: Success) -> Success | Failure:
        """The answer in the caller's dialect."""
        losses = Losses()
        body = translation.answer(success.body, losses)
        if isinstance(body, Untranslatable):
            return Failure(FailureClass.MALFORMED, str(body), reading=success.reading)
        self.report.losses += losses.entries
        return replace(success, body=body, raw=dumps(body).encode(errors="backslashreplace"))

    def sent(self, step: Admission) -> Sent:
        """What this target is sent, in its own dialect."""
        return self.translations.sent(step.facts)

    def limit(self, step: Admission) -> tuple[float, bool]:
        """Until when the call may last (streams: to first content), and whether that is the target's own limit."""
        timeouts, facts, now = self.state.timeouts, step.facts, step.lease.admitted_at
        remaining = self.deadline - now
        another = self._another_left(facts, step.beside)
        own = self._own_timeout(facts)
        if not self.request.stream:
            p99 = self.state.book.snapshot(facts.id, now).latency_p99
            own = max(own, 2 * p99) if p99 is not None else own
            own = own if another else max(own, remaining)
        if step.lease.probe:
            own = min(own, self._probe_limit(step, now))
        allowed = remaining * (1 - timeouts.margin) if another else remaining
        return now + min(own, allowed), own <= allowed

    def _probe_limit(self, step: Admission, now: float) -> float:
        """How many seconds a probe may be silent: for patience where somebody else is free.

        Where nobody is and others wait for what it brings, also as long as its breaker is open when it fails: a probe
        that was sent before the target recovered holds up nobody for longer than two open intervals.
        """
        facts = step.facts
        if self._someone_free(facts, now):
            return self.patience(facts, now)
        if self.state.room.queued(facts.id):
            return max(self.patience(facts, now), step.lease.open_seconds)
        return math.inf

    def patience(self, facts: TargetFacts, at: float) -> float:
        """After how many silent seconds giving up on a call admitted `at` is the target's fault."""
        config = self.state.patience
        snapshot = self.state.book.snapshot(facts.id, at)
        usual = snapshot.ttft_p99 if self.request.stream else snapshot.latency_p99
        if usual is None:
            usual = config.stream if self.request.stream else config.whole
        return min(max(config.minimum, usual), self._own_timeout(facts))

    def timed_out(self, step: Admission, own: bool, silent_since: float) -> Failure:
        """The limit came first: the target's fault, unless our caller was in more of a hurry than is fair."""
        seconds = self.state.clock.now() - silent_since
        if own or seconds >= self.patience(step.facts, step.lease.admitted_at):
            return Failure(FailureClass.TIMEOUT, f"nothing for {seconds:.1f} s")
        return Failure(FailureClass.CANCELLED, f"the caller's deadline left it only {seconds:.1f} s")

    def watchdog_of(self, step: Admission) -> Watchdog:
        """Who keeps time for a call: one for all calls of a request, as they are made in turn, but for a hedge."""
        return self.watchdog if step.watchdog is None else step.watchdog

    def final_rejection(self, step: Admission, failure: Failure) -> SmartRouterError | None:
        """The error that ends the request, where the failure is its own fault."""
        fallback = self.state.routing.content_filter_fallback
        return final_rejection(step.facts.id, failure, content_filter_fallback=fallback)

    def outrun(self, step: Admission) -> None:
        """Another target's head came first: give everything back."""
        self.settle(step, self.given_up(step, step.lease.admitted_at, who="another target answered"))
        self.watchdog_of(step).close()

    def given_up(self, step: Admission, silent_since: float, *, who: str = "the caller left") -> Failure:
        """The caller left: TIMEOUT when the target had been silent beyond patience, else nobody's fault."""
        silent = self.state.clock.now() - silent_since
        if silent >= self.patience(step.facts, step.lease.admitted_at):
            return Failure(FailureClass.TIMEOUT, f"{who} after {silent:.1f} silent seconds")
        return Failure(FailureClass.CANCELLED, who)

    def provider(self, step: Admission) -> Provider:
        """Who is called."""
        return self.state.providers[step.facts.target.provider]

    def provider_call(self, step: Admission, request: RouteRequest) -> ProviderCall:
        """What is sent: `request`, in the target's dialect."""
        target = step.facts.target
        self._asked_first = self._asked_first or target.id
        # To go on from somewhere is another request than the one that began: it has an idempotency key of its own.
        asked = f"{target.id} after {len(self._begun)}" if self._begun else target.id
        return ProviderCall(
            dialect=request.dialect,
            model=target.model,
            payload=request.payload(target.model),
            body=request.body,
            stream=request.stream,
            credential=target.credential,
            connect_timeout=self.state.timeouts.connect,
            headers=sent_to(asked, self._asked_first, self.request.headers),
        )

    def settle(
        self,
        step: Admission,
        failure: Failure,
        *,
        ttft: float | None = None,
        usage: Usage | None = None,
        away: float = 0.0,
    ) -> Failure:
        """The call failed: give everything back, keep the books; the failure as this request sees it.

        `usage` is what a stream that broke off will be billed for at least.
        """
        failure = self.state.scrub(failure)
        if self.state.closed:
            failure = Failure(FailureClass.CANCELLED, f"the router was closed: {failure.message}")
        rejected = failure.failure_class is FailureClass.INVALID_REQUEST or self._foreign_endpoint(failure)
        if self.request.dialect not in step.facts.dialects:
            failure = replace(failure, raw=b"")  # an error body of another dialect is nothing to hand back
        elif failure.failure_class is FailureClass.INVALID_REQUEST:
            rejected = not self.progress.native_rejection(step.facts, failure)
        if rejected:
            failure = replace(failure, failure_class=FailureClass.REJECTED_BY_FALLBACK)
        self.settled(step, failure, ttft=ttft, usage=usage, away=away)
        return failure

    def _foreign_endpoint(self, failure: Failure) -> bool:
        """A server that has Chat and not this endpoint is no broken server: others may go on asking it."""
        missing = failure.failure_class is FailureClass.MISCONFIGURED and failure.status in (404, 405, 501)
        return missing and self.request.dialect != "chat"

    def settled(
        self,
        step: Admission,
        failure: Failure | None,
        *,
        usage: Usage | None = None,
        reading: LimitReading = NO_READING,
        ttft: float | None = None,
        away: float = 0.0,
    ) -> None:
        """The call ended: the lease is settled, then statistics, events and the report hear of it.

        `away` are the seconds in which nobody read the stream: they are not the call's.
        """
        state, lease, facts = self.state, step.lease, step.facts
        if lease.settled:
            return  # a hedge's loser, or a call whose loop had stopped: its end was told before it knew
        now = state.clock.now()
        seconds = now - lease.admitted_at - away
        slow_after = step.gate.config.breaker.slow_call
        slow = slow_after is not None and (seconds if ttft is None else ttft) > slow_after
        told = usage if failure is None else None  # of a call that broke off the bucket keeps its own estimate
        lease.unread = away
        settlement = lease.settle(failure, now, usage=told, reading=reading, roll=state.dice.roll(), slow=slow)
        state.held.pop(lease, None)
        if failure is not None:
            reading = failure.reading
        if reading.rejected:
            state.count_rejected(facts.target.provider, reading)
        cost = None if usage is None else state.price(facts, usage)
        failure_class = None if failure is None else failure.failure_class
        status = None if failure is None else failure.status
        self.report.attempts.append(
            Attempt(
                target=facts.id,
                seconds=seconds,
                failure_class=failure_class,
                message="" if failure is None else failure.message,
                status=status,
                ttft_seconds=ttft,
                usage=usage,
                cost_usd=cost,
                probe=lease.probe,
                hedge=step.hedge,
                estimated=failure is not None and usage is not None,
            )
        )
        if step.look is not None and failure is None:
            latency = ttft if step.look.stream else _pace(seconds, usage)
            if state.looks.ended(step.look, latency, now):
                state.begin_anew(facts.id, lease.admitted_at)
        # First: a recovery empties the window that this call then enters.
        state.apply(step.gate, settlement, now, failure, since=lease.admitted_at)
        state.observe(
            AttemptFinished(
                at=now,
                admitted_at=lease.admitted_at,
                target=facts.id,
                provider=facts.target.provider,
                model=facts.target.model,
                stream=self.request.stream,
                seconds=seconds,
                failure_class=failure_class,
                ttft_seconds=ttft,
                usage=usage,
                cost_usd=cost,
                status=status,
                probe=lease.probe,
                hedge=step.hedge,
                request_id=self.report.request_id,
            )
        )
        if self.report.recoveries:
            self.report.add_up()
        elif failure is None:
            self.report.usage, self.report.cost_usd = usage, cost

    def spent(self, step: Admission, told: Usage | None, pieces: int) -> Usage:
        """What a stream that broke off has cost at least: what it told, our estimate of the prompt, a token a piece."""
        factor = step.gate.limits.factor.value
        prompt = told.prompt_tokens if told is not None else round(self._prompt_bytes / 4 * factor)
        said = told.completion_tokens if told is not None else 0
        return Usage(prompt, max(said, pieces), 0 if told is None else told.cached_prompt_tokens)

    def held_until(self, step: Admission) -> float:
        """Until when a stream of which nothing is delivered yet may go on: time is left for another candidate."""
        now = self.state.clock.now()
        margin = self.state.timeouts.margin if self._another_left(step.facts) else 0.0
        return now + (self.deadline - now) * (1 - margin)

    def go_on_from(self, text: str, deadline: float, ends_at: float) -> None:
        """From now on the request is one whose answer begins with `text`: its next stream begins by `deadline`."""
        self.deadline, self.ends_at, self._begun = deadline, ends_at, text
        self.translations = Translations(self.request, self.state.wall, begun=text)

    def cost(self, facts: TargetFacts, now: float) -> Cost:
        """What the call will probably cost the target's buckets."""
        limits = self.state.fleet.gates[facts.id].limits
        if not limits.known:
            return _FREE
        usual = self.state.book.snapshot(facts.id, now).completion_tokens_p95
        request = self.request
        return estimate(
            self._prompt_bytes,
            request.max_tokens,
            usual,
            counts_max_tokens=facts.counts_max_tokens,
            factor=limits.factor.value,
        )

    @property
    def _prompt_bytes(self) -> int:
        return self.request.prompt_bytes + len(self._begun.encode(errors="surrogatepass"))

    def is_free(self, facts: TargetFacts, now: float) -> bool:
        """Whether this request could be admitted there now."""
        if self.progress.refusal(facts, now) is not None or self.translations.refusal(facts) is not None:
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

    def _another_left(self, facts: TargetFacts, beside: str | None = None) -> bool:
        """Whether somebody else could be asked after this call; not who is asked already."""
        asked = (facts.id, beside)
        for tier in self.plan.tiers:
            for other in tier.targets:
                if other.id not in asked and not self.progress.tried(other.id):
                    return True
        return any(f.id != facts.id and f.id not in self.progress.last_resort_tried for f in self.plan.last_resort)

    def _someone_free(self, facts: TargetFacts, now: float) -> bool:
        return any(self.is_free(f, now) for tier in self.plan.tiers for f in tier.targets if f.id != facts.id)


def _pace(seconds: float, usage: Usage | None) -> float | None:
    """Seconds per 100 output tokens; None where they were not counted."""
    return 100.0 * seconds / usage.completion_tokens if usage is not None and usage.completion_tokens else None


def provider_bug(bug: Exception) -> Failure:
    """A provider that raised instead of returning: its call failed, our books stay right."""
    return Failure(FailureClass.SERVER_ERROR, f"the provider raised {type(bug).__name__}: {bug}"[:300])
