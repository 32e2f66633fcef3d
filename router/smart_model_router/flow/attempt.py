"""One call to one admitted target: how long it may last, whose fault its end is, and what is written down about it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from json import JSONDecodeError
from typing import Any

from smart_model_router.core.budget import full_jitter
from smart_model_router.core.evidence import PATIENCE
from smart_model_router.core.fallback import AttemptHistory, gate_waits
from smart_model_router.core.final_error import final_rejection, of_operation, of_target
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.media_tokens import media_tokens
from smart_model_router.core.ratelimit import Cost, estimate
from smart_model_router.core.selection.exploration import ExplorationCall
from smart_model_router.core.tiers import Plan, TargetFacts
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.forwarded_headers import USUAL_VERSION, VERSION, access_named, keyed, sent_query, sent_to
from smart_model_router.domain.outcome import NO_READING, Failure, FailureClass, LimitReading, Success, Usage
from smart_model_router.domain.ports import Provider, ProviderCall
from smart_model_router.domain.report import Attempt, RouteReport
from smart_model_router.domain.request import RouteRequest
from smart_model_router.flow.clock import EARLY
from smart_model_router.flow.detached_calls import DetachedCalls
from smart_model_router.flow.reference_resolution import ResolvedRequest
from smart_model_router.flow.request_translation import Answers, RequestTranslations, TranslatedRequest
from smart_model_router.flow.state import RouterState
from smart_model_router.flow.watchdog import Expired, Watchdog
from smart_model_router.wires.dialects import NOT_UTF8
from smart_model_router.wires.translate import Losses, Translation, Untranslatable
from smart_model_router.wires.translate.words import dumps

KNOWN_ANSWERS = 20
"""Of fewer answers nothing tells slow from dead."""
_SPREAD = 1.1
"""Answers that all take the same time lie at their own percentiles, give or take the histogram's error."""
_OF_ACCESS = frozenset({FailureClass.AUTH, FailureClass.QUOTA, FailureClass.MODEL_GONE, FailureClass.MISCONFIGURED})
"""Failures that another account, or another way to send the key, may not have."""
_FREE = Cost(0, 0)
_OF_FIELDS = (TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""A field of a request that is of another type or value than a provider's own code expects raises one of these."""
_OF_ANSWERS = (JSONDecodeError, UnicodeDecodeError)
"""Values too, but those of an answer."""


@quick
@dataclass(frozen=True, slots=True)
class AdmittedTarget:
    """A target that said yes, and what it holds for us."""

    facts: TargetFacts
    tier: str
    gate: Gate
    lease: Lease
    last_resort: bool = False
    beside: str | None = None
    """The target whose head was late, when this is a hedge."""
    look: ExplorationCall | None = None
    """When it is to find out whether the target is its old self again."""
    home: str | None = None
    """Under what the home of the request's conversation is remembered, when this target is it or may become it."""
    watchdog: Watchdog | None = None
    """A hedge's own, as another call is under way beside it; None for all others."""

    @property
    def hedge(self) -> bool:
        """Whether it was asked because another target's head was late."""
        return self.beside is not None


@dataclass(kw_only=True)
class AttemptRunner:
    """Makes the calls of one request. `deadline` is the request's, monotonic."""

    state: RouterState
    request: RouteRequest
    plan: Plan
    progress: AttemptHistory
    report: RouteReport
    deadline: float
    asked: ResolvedRequest | None = None
    """What was asked before references were resolved, as it is kept with the answer; None: nothing was referred to."""
    ends_at: float = math.inf
    """When a stream that is gone on with has to be over, monotonic."""
    watchdog: Watchdog = field(init=False)
    _asked_first: str = field(init=False, default="")
    _usual: tuple[float, float] = field(init=False, default=(-math.inf, 0.0))
    """At an instant, what `usual_seconds` is then: it is asked for each tier's wait."""
    _begun: str = field(init=False, default="")
    """What the answer begins with already."""
    _media: dict[str, int] = field(init=False, default_factory=dict)
    """What the request's media cost, by family: a target is asked about its cost many times."""
    translations: RequestTranslations = field(init=False)
    _answers: Answers | None = field(init=False)
    left: set[Lease] = field(init=False, default_factory=set)
    """The calls that run on for their verdict without their caller: they are their targets' upkeep."""

    def __post_init__(self) -> None:
        self.watchdog = self.state.watchdog()
        self._answers = self._named()
        self.translations = RequestTranslations(self.request, self.state.wall, answers=self._answers)

    def _named(self) -> Answers | None:
        kept, request = self.state.kept, self.request
        if kept is None or request.dialect != "responses":
            return None
        previous = None if self.asked is None else self.asked.parent
        issue = partial(kept.issue, owner=request.owner)
        return Answers(issue, request.body.get("store") is not False, previous)

    def keep(self, step: AdmittedTarget, answer: Mapping[str, Any]) -> None:
        """Keep an answer of Responses that was made by translation, where it may be kept."""
        answers, kept = self._answers, self.state.kept
        if answers is None or kept is None or not answers.kept or step.lease in self.left:
            return
        kept.keep({**answer, "model": self.request.model}, self.asked or ResolvedRequest(self.request))

    @property
    def answers(self) -> bool:
        """Return whether the request is one for an answer, not for another operation of Responses."""
        return self.request.operation == "create"

    @property
    def continues(self) -> bool:
        """Return whether the request goes on with an answer of which its caller has a part, or begins it again."""
        return self.ends_at < math.inf

    def expired(self, now: float) -> bool:
        """Whether the deadline is there, or so near that a timer which was to fire at it has fired."""
        return now >= self.deadline - EARLY

    async def whole(self, step: AdmittedTarget) -> Success | Failure:
        """One whole-answer call: everything the lease holds is given back, whatever happens."""
        limit, own = self.limit(step)
        verdicts = DetachedCalls(self)
        if verdicts.wanted(step):
            return await verdicts.performed(step, limit, self._whole)
        return await self._whole(step, limit, own)

    async def _whole(self, step: AdmittedTarget, limit: float, own: bool) -> Success | Failure:
        lease = step.lease
        outcome: Success | Failure
        sent = self.sent(step)
        try:
            answering = self.provider(step).call(self.provider_call(step, sent.request))
            outcome = await self.watchdog_of(step).within(answering, limit)
            if isinstance(outcome, Success) and outcome.mended and "schema" in self.request.needs:
                outcome = Failure(FailureClass.MALFORMED, NOT_UTF8.message, reading=outcome.reading)
            if sent.translation is not None and isinstance(outcome, Success):
                outcome = self._translated(step, sent.translation, outcome)
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
        self.made(step, outcome.body)
        return outcome

    def made(self, step: AdmittedTarget, data: Mapping[str, Any]) -> None:
        """An answer of the target (or an event of one), as it came, may have made things at its provider."""
        if self.request.dialect in step.facts.dialects:
            self.state.makers.note(step.facts.target, self.request.owner, data)

    def _translated(self, step: AdmittedTarget, translation: Translation, success: Success) -> Success | Failure:
        """The answer in the caller's dialect."""
        losses = Losses()
        body = translation.answer(success.body, losses)
        if isinstance(body, Untranslatable):
            return Failure(FailureClass.MALFORMED, str(body), reading=success.reading)
        if step.lease not in self.left:
            self.report.losses += losses.entries
        self.keep(step, body)
        return replace(success, body=body, raw=dumps(body).encode(errors="backslashreplace"))

    def sent(self, step: AdmittedTarget) -> TranslatedRequest:
        """What this target is sent, in its own dialect."""
        return self.translations.sent(step.facts)

    def limit(self, step: AdmittedTarget) -> tuple[float, bool]:
        """Until when the call may last (streams: to first content), and whether that is the target's own limit."""
        facts, lease, now = step.facts, step.lease, step.lease.admitted_at
        remaining = self.deadline - now
        own = self._own_limit(step, now)
        verdict, last = lease.probe or lease.paced, self.progress.left <= 1
        if not (verdict or last) and own <= remaining - remaining * self.state.timeouts.margin:
            return now + own, True  # as mostly: it comes first, whatever is left for others
        another = self.another_left(facts, step.beside)
        if not another and last:  # its last attempt may take what is left
            own = max(own, remaining)
        allowed, known = remaining, self.is_known(facts, now)
        # A silent call of an unknown target is not cut off for another real target: that one is asked beside it.
        if another and (known or (self.last_resort_left and not self.another_is_free(facts, now))):
            allowed = remaining - self._margin(step, remaining, now)
            if known and not (self.progress.failures or self.report.waited_seconds):
                # Nor is the first call before it can be called silent.
                allowed = min(remaining, max(allowed, self.patience(facts, now)))
        if verdict:
            own, allowed = self._verdict_limit(step, now, own, allowed)
        return now + min(own, allowed), own <= allowed

    def _margin(self, step: AdmittedTarget, remaining: float, now: float) -> float:
        """Seconds of those that remain that are left for another candidate: none where it could not answer in them.

        One of which nothing is known is taken to be quick; after a failure, to be like the others of the plan, but for
        a last resort.
        """
        margin, plan = remaining * self.state.timeouts.margin, self.plan
        usual = self.usual_seconds(now) if self.progress.failures else 0.0
        for other in self._others(step.facts, step.beside):
            median = self.state.book.median(other.id, now, stream=self.request.stream)
            takes = _SPREAD * median if median is not None else 0.0 if other in plan.last_resort else usual
            if takes <= margin:
                return margin
        return 0.0

    def _own_limit(self, step: AdmittedTarget, now: float) -> float:
        """The target's own limit in seconds: for whole answers what they take, once that is known."""
        own = self._own_timeout(step.facts)
        if self.request.stream or not self.answers:  # an operation has a pace of its own
            return own
        snapshot = self.state.book.snapshot(step.facts.id, now)
        if snapshot.latency_p99 is None:
            return own
        usual = 2 * snapshot.latency_p99
        if snapshot.latencies >= KNOWN_ANSWERS:
            own = min(own, max(self.patience(step.facts, now), usual))
        return max(own, usual)

    def _verdict_limit(self, step: AdmittedTarget, now: float, own: float, allowed: float) -> tuple[float, float]:
        """How many seconds a probe or paced call may be silent; it runs on for its verdict when its caller leaves.

        A probe that others wait for, or that another target could answer for, is left after patience. Where somebody
        else can answer, a request with less than twice that left goes on there at half of its time.
        """
        facts = step.facts
        patience = self.patience(facts, now)
        free = self.another_is_free(facts, now)
        if step.lease.probe and (free or self.state.room.queued(facts.id)):
            own = min(own, patience)
        if (free or self.last_resort_left) and self.deadline - now < 2 * patience:
            allowed = min(allowed, (self.deadline - now) / 2)
        return own, allowed

    def is_known(self, facts: TargetFacts, now: float) -> bool:
        """Whether enough answers of this kind are known to tell a slow target from a dead one."""
        snapshot = self.state.book.snapshot(facts.id, now)
        return (snapshot.ttfts if self.request.stream else snapshot.latencies) >= KNOWN_ANSWERS

    def usual_seconds(self, now: float) -> float:
        """What an answer usually takes at the quickest of the plan's targets; 0 while it is known for none of them."""
        if self._usual[0] != now:
            median = self.state.book.least_median(self.plan.tier_of, now, stream=self.request.stream)
            self._usual = now, _SPREAD * (median or 0.0)
        return self._usual[1]

    @property
    def last_resort_left(self) -> bool:
        """Whether a target of the last resort has not been asked yet."""
        tried = self.progress.last_resort_tried
        return self.progress.last_resort_allowed() and any(f.id not in tried for f in self.plan.last_resort)

    def note(self, step: AdmittedTarget, failure: Failure, *, delivered: bool = False) -> None:
        """The call failed: what the request may still try, and when it may try this target again.

        `delivered`: after content, which is billed; such a call is an attempt, even where it was a probe.
        """
        now = self.state.clock.now()
        again_at = now
        if failure.context_tokens is not None:
            self.state.windows[step.facts.id] = failure.context_tokens
        if not gate_waits(failure):
            again_at += full_jitter(self.state.backoff, self.progress.tries(step.facts.id), self.state.dice.roll())
        self.progress.note(
            step.facts,
            step.tier,
            failure,
            again_at,
            last_resort=step.last_resort,
            probe=step.lease.probes_breaker and not delivered,
        )

    def patience(self, facts: TargetFacts, at: float) -> float:
        """After how many silent seconds giving up on a call admitted `at` is the target's fault."""
        config = self.state.patience
        snapshot = self.state.book.snapshot(facts.id, at)
        usual = snapshot.ttft_p99 if self.request.stream else snapshot.latency_p99
        if usual is None:
            usual = config.stream if self.request.stream else config.whole
        else:
            usual *= _SPREAD
        return min(max(config.minimum, usual), self._own_timeout(facts))

    def timed_out(self, step: AdmittedTarget, own: bool, silent_since: float) -> Failure:
        """The limit came first: the target's fault, unless our caller was in more of a hurry than is fair."""
        seconds = self.state.clock.now() - silent_since
        if own or seconds >= self.patience(step.facts, step.lease.admitted_at):
            return Failure(FailureClass.TIMEOUT, f"nothing for {seconds:.1f} s")
        return Failure(FailureClass.CANCELLED, f"the caller's deadline left it only {seconds:.1f} s")

    def watchdog_of(self, step: AdmittedTarget) -> Watchdog:
        """Who keeps time for a call: one for all calls of a request, as they are made in turn, but for a hedge."""
        return self.watchdog if step.watchdog is None else step.watchdog

    def final_rejection(self, step: AdmittedTarget, failure: Failure) -> SmartRouterError | None:
        """The error that ends the request, where the failure is its own fault."""
        fallback = self.state.routing.content_filter_fallback
        return final_rejection(step.facts.id, failure, content_filter_fallback=fallback)

    def outrun(self, step: AdmittedTarget) -> None:
        """Another target's head came first: give everything back."""
        self.settle(step, self.given_up(step, step.lease.admitted_at, who="another target answered"))
        self.watchdog_of(step).close()

    def given_up(self, step: AdmittedTarget, silent_since: float, *, who: str = "the caller left") -> Failure:
        """The caller left: TIMEOUT when the target had been silent beyond patience, else nobody's fault."""
        silent = self.state.clock.now() - silent_since
        if silent >= self.patience(step.facts, step.lease.admitted_at):
            return Failure(FailureClass.TIMEOUT, f"{who} after {silent:.1f} silent seconds")
        return Failure(FailureClass.CANCELLED, who)

    def provider(self, step: AdmittedTarget) -> Provider:
        """Who is called."""
        return self.state.providers[step.facts.target.provider]

    def provider_call(self, step: AdmittedTarget, request: RouteRequest) -> ProviderCall:
        """What is sent: `request`, in the target's dialect."""
        target = step.facts.target
        self._asked_first = self._asked_first or target.id
        # To go on from somewhere is another request than the one that began: it has an idempotency key of its own.
        place = f"{target.id} after {len(self._begun)}" if self._begun else target.id
        headers, asked, spoken = self.request.headers, self.request.dialect, request.dialect
        if headers:
            headers = keyed(place, self._asked_first, sent_to(self.state.destination(target), asked, spoken, headers))
        return ProviderCall(
            dialect=request.dialect,
            model=target.model,
            payload=request.payload(target.model),
            body=request.body,
            stream=request.stream,
            credential=target.credential,
            connect_timeout=self.state.timeouts.connect,
            operation=request.operation,
            headers=headers,
            query=sent_query(self.request.query, asked, spoken),
        )

    def settle(
        self,
        step: AdmittedTarget,
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
        if not self.answers:
            failure = of_operation(failure)
        rejected = (
            failure.failure_class is FailureClass.INVALID_REQUEST
            or self._foreign_endpoint(failure)
            or self._access_of_the_client(step, failure)
        )
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
        return missing and self.answers and self.request.dialect != "chat"

    def _access_of_the_client(self, step: AdmittedTarget, failure: Failure) -> bool:
        """The client named an account, or a version that has never worked here: no reason to rest the target."""
        if failure.failure_class not in _OF_ACCESS or not self.request.headers:
            return False
        named = self._access_named(step)
        proof = step.facts.target.provider, named.get(VERSION, USUAL_VERSION)
        proven = VERSION not in named or proof in self.state.proven_versions
        return not proven or bool(named.keys() - {VERSION})

    def _note_version(self, step: AdmittedTarget, failure: Failure | None) -> None:
        """The call was answered: its version is let in here."""
        if failure is None and VERSION in self.request.headers:
            version = self._access_named(step).get(VERSION)
            if version is not None:
                self.state.proven_versions.add((step.facts.target.provider, version))

    def _access_named(self, step: AdmittedTarget) -> Mapping[str, str]:
        to, asked, spoken = self.state.destination(step.facts.target), self.request.dialect, self.sent(step).request
        return access_named(to, asked, spoken.dialect, self.request.headers)

    def settled(
        self,
        step: AdmittedTarget,
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
        self._note_version(step, failure)
        if lease.settled:
            return  # a hedge's loser, or a call whose loop had stopped: its end was told before it knew
        now = state.clock.now()
        seconds = now - lease.admitted_at - away
        slow_after = step.gate.config.breaker.slow_call
        slow = slow_after is not None and self.answers and (seconds if ttft is None else ttft) > slow_after
        counted = failure if failure is None or self.answers else of_target(failure)
        told = usage if failure is None else None  # of a call that broke off the bucket keeps its own estimate
        lease.unread = away
        settlement = lease.settle(
            counted,
            now,
            usage=told,
            reading=reading,
            roll=state.dice.roll(),
            slow=slow,
            patience=PATIENCE if failure is None else self.patience(facts, now),
        )
        state.held.pop(lease, None)
        if failure is not None:
            reading = failure.reading
        if reading.rejected:
            state.count_rejected(facts.target.provider, reading)
        cost = None if usage is None else state.price(facts, usage)
        failure_class = None if failure is None else failure.failure_class
        status = None if failure is None else failure.status
        upkeep = lease in self.left
        if not upkeep:
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
        if step.home is not None and failure is None:
            state.homes.served(step.home, facts.id, now, usage)
            if ttft is not None and usage is not None:
                state.homes.prefilled(facts.id, ttft, usage)
        # First: a recovery empties the window that this call then enters.
        state.apply(step.gate, settlement, now, counted, since=lease.admitted_at)
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
                upkeep=upkeep,
                request_id=self.report.request_id,
                reason="" if failure is None else failure.reason,
            ),
            of_answers=self.answers,
        )
        if upkeep:
            return
        if self.report.recoveries:
            self.report.add_up()
        elif failure is None:
            self.report.usage, self.report.cost_usd = usage, cost

    def spent(self, step: AdmittedTarget, told: Usage | None, pieces: int) -> Usage:
        """What a stream that broke off has cost at least: what it told, our estimate of the prompt, a token a piece."""
        prompt = told.prompt_tokens if told is not None else self.state.weigh(step.facts, self.request, self._begun)
        said = told.completion_tokens if told is not None else 0
        return Usage(prompt, max(said, pieces), 0 if told is None else told.cached_prompt_tokens)

    def held_until(self, step: AdmittedTarget) -> float:
        """Until when a stream of which nothing is delivered yet may go on: time is left for another candidate."""
        now = self.state.clock.now()
        margin = self.state.timeouts.margin if self.another_left(step.facts) else 0.0
        return now + (self.deadline - now) * (1 - margin)

    def go_on_from(self, text: str, deadline: float, ends_at: float) -> None:
        """From now on the request is one whose answer begins with `text`: its next stream begins by `deadline`."""
        self.deadline, self.ends_at, self._begun = deadline, ends_at, text
        self.watchdog.close()
        self.watchdog = self.state.watchdog()  # the loser of a race may still have to leave the one before
        self.translations = RequestTranslations(self.request, self.state.wall, begun=text, answers=self._answers)

    def cost(self, facts: TargetFacts, now: float) -> Cost:
        """What the call will probably cost the target's buckets."""
        limits = self.state.fleet.gates[facts.id].limits
        if not limits.known:
            return _FREE
        usual = self.state.book.snapshot(facts.id, now).completion_tokens_p95
        request = self.request
        media = self._media.get(facts.media)
        if media is None:
            media = self._media[facts.media] = media_tokens(request.media, facts.media)
        return estimate(
            request.text_bytes + len(self._begun.encode(errors="surrogatepass")),
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
        """Whether another target of the plan would take this request now."""
        return any(self.is_free(f, now) for tier in self.plan.tiers for f in tier.targets if f.id != facts.id)

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

    def another_left(self, facts: TargetFacts, beside: str | None = None) -> bool:
        """Whether somebody else could be asked after this call; not who is asked already."""
        return any(True for _ in self._others(facts, beside))

    def _others(self, facts: TargetFacts, beside: str | None) -> Iterator[TargetFacts]:
        asked = (facts.id, beside)
        for tier in self.plan.tiers:
            for other in tier.targets:
                if other.id not in asked and not self.progress.tried(other.id):
                    yield other
        for other in self.plan.last_resort:
            if other.id != facts.id and other.id not in self.progress.last_resort_tried:
                yield other


def _pace(seconds: float, usage: Usage | None) -> float | None:
    """Seconds per 100 output tokens; None where they were not counted."""
    return 100.0 * seconds / usage.completion_tokens if usage is not None and usage.completion_tokens else None


def provider_bug(bug: Exception, *, answering: bool = False) -> Failure:
    """A provider that raised instead of returning: its call failed, our books stay right.

    Before it is `answering`, an error of types and values is taken for a field of the request that it cannot read: no
    client can open the breaker of a target by sending one.
    """
    told = f"the provider raised {type(bug).__name__}: {bug}"[:300]
    if answering or not isinstance(bug, _OF_FIELDS) or isinstance(bug, _OF_ANSWERS):
        return Failure(FailureClass.SERVER_ERROR, told)
    return Failure(FailureClass.REJECTED_BY_FALLBACK, told)
