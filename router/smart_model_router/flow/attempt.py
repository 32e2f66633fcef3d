"""Calls to admitted targets: each is made, its end is judged, settled and written down."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from json import JSONDecodeError
from typing import Any, TypeVar

from smart_model_router.core.evidence import PATIENCE
from smart_model_router.core.final_error import final_rejection, of_operation, of_target
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.forwarded_headers import USUAL_VERSION, VERSION, access_named, keyed, sent_query, sent_to
from smart_model_router.domain.outcome import NO_READING, Failure, FailureClass, LimitReading, Success, Usage
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.domain.report import Attempt, failure_facts
from smart_model_router.domain.request import RouteRequest, state_made
from smart_model_router.flow.clock import EARLY, Expired, Watchdog, ended_by
from smart_model_router.flow.reference_resolution import ResolvedRequest
from smart_model_router.flow.request_context import AdmittedTarget, RequestContext
from smart_model_router.flow.state import RouterState
from smart_model_router.wires.dialects import NOT_UTF8
from smart_model_router.wires.translate import Losses, Translation, Untranslatable
from smart_model_router.wires.values import dumps

T = TypeVar("T")
_OF_ACCESS = frozenset({FailureClass.AUTH, FailureClass.QUOTA, FailureClass.MODEL_GONE, FailureClass.MISCONFIGURED})
"""Failures that another account, or another way to send the key, may not have."""
_OF_FIELDS = (TypeError, ValueError, LookupError, AttributeError, RecursionError)
"""A field of a request that is of another type or value than a provider's own code expects raises one of these."""
_OF_ANSWERS = (JSONDecodeError, UnicodeDecodeError)
"""Values too, but those of an answer."""


@dataclass(slots=True)
class AttemptRunner:
    """Makes the calls of one request, settles them, and writes them down."""

    context: RequestContext
    state: RouterState
    request: RouteRequest
    _asked_first: str = field(default="", init=False)
    """The first target that was called."""

    def keep(self, admitted: AdmittedTarget, answer: Mapping[str, Any]) -> None:
        """Keep an answer of Responses that was made by translation, where it may be kept."""
        answers, kept = self.context.translations.answers, self.state.kept
        if answers is None or kept is None or not answers.kept or admitted.lease in self.context.left:
            return
        kept.keep({**answer, "model": self.request.model}, self.context.asked or ResolvedRequest(self.request))

    def whole(self, admitted: AdmittedTarget) -> Awaitable[Success | Failure]:
        """One whole-answer call: everything the lease holds is given back, whatever happens."""
        limit, own = self.context.limit(admitted)
        if self.context.needs_verdict(admitted):
            patience = self.context.patience(admitted.facts, admitted.lease.admitted_at, admitted.snapshot)
            return self.call_to_verdict(admitted, limit, patience, self._whole)
        return self._whole(admitted, limit, own)

    async def _whole(self, admitted: AdmittedTarget, limit: float, own: bool) -> Success | Failure:
        lease = admitted.lease
        outcome: Success | Failure
        watchdog, sent = self.watchdog_of(admitted), self.context.translations.sent(admitted.facts)
        try:
            self.check_open()
            answering = self.state.providers[admitted.facts.target.provider].call(
                self.provider_call(admitted, sent.request)
            )
            outcome = await watchdog.within(answering, limit)
            if isinstance(outcome, Success) and outcome.mended and "schema" in self.request.needs:
                outcome = Failure(FailureClass.MALFORMED, NOT_UTF8.message, reading=outcome.reading)
            if sent.translation is not None and isinstance(outcome, Success):
                outcome = self._translated(admitted, sent.translation, outcome)
        except Expired:
            outcome = self.timed_out(admitted, own, lease.admitted_at)
        except asyncio.CancelledError:
            self.settle(admitted, self.given_up(admitted, silent_since=lease.admitted_at))
            raise
        except Exception as bug:  # noqa: BLE001 - providers return failures: whatever they raise is their bug
            outcome = provider_bug(bug)
        if isinstance(outcome, Failure):
            return self.settle(admitted, outcome)
        self.settled(admitted, None, usage=outcome.usage, reading=outcome.reading)
        self.made(admitted, outcome.body)
        return outcome

    def made(self, admitted: AdmittedTarget, data: Mapping[str, Any]) -> None:
        """An answer of the target (or an event of one), as it came, may have made things at its provider."""
        if self.request.dialect in admitted.facts.dialects and (things := state_made(data)):
            self.state.makers.note(admitted.facts.target, self.request.owner, things)

    def _translated(self, admitted: AdmittedTarget, translation: Translation, success: Success) -> Success | Failure:
        """The answer in the caller's dialect."""
        losses = Losses()
        body = translation.answer(success.body, losses)
        if isinstance(body, Untranslatable):
            return Failure(FailureClass.MALFORMED, str(body), reading=success.reading)
        if admitted.lease not in self.context.left:
            self.context.report.losses += losses.entries
        self.keep(admitted, body)
        return replace(success, body=body, raw=dumps(body).encode(errors="backslashreplace"))

    def check_open(self) -> None:
        """Raise Expired where the router was closed before the task of a call began: it keeps time for no new call."""
        if self.state.closed:
            raise Expired

    def timed_out(self, admitted: AdmittedTarget, own: bool, silent_since: float) -> Failure:
        """The failure of a call at its limit: the target's fault, unless the caller's deadline left too little time."""
        seconds = self.state.clock.now() - silent_since
        if own or seconds >= self.context.patience(admitted.facts, admitted.lease.admitted_at):
            return Failure(FailureClass.TIMEOUT, f"nothing for {seconds:.1f} s")
        return Failure(FailureClass.CANCELLED, f"the caller's deadline left it only {seconds:.1f} s")

    def watchdog_of(self, admitted: AdmittedTarget) -> Watchdog:
        """The timer of a call: one for all calls of a request, as they are made in turn, but for a hedge."""
        return self.context.watchdog if admitted.watchdog is None else admitted.watchdog

    def final_rejection(self, admitted: AdmittedTarget, failure: Failure) -> SmartRouterError | None:
        """The error that ends the request, where the failure is its own fault."""
        fallback = self.state.routing.content_filter_fallback
        return final_rejection(admitted.facts.id, failure, content_filter_fallback=fallback)

    def outrun(self, admitted: AdmittedTarget) -> None:
        """Another target's head came first: give everything back."""
        self.settle(admitted, self.given_up(admitted, admitted.lease.admitted_at, why="another target answered"))

    def given_up(self, admitted: AdmittedTarget, silent_since: float, *, why: str = "the caller left") -> Failure:
        """The failure of a call that was given up: TIMEOUT when it was silent beyond patience, else CANCELLED."""
        silent = self.state.clock.now() - silent_since
        if silent >= self.context.patience(admitted.facts, admitted.lease.admitted_at):
            return Failure(FailureClass.TIMEOUT, f"{why} after {silent:.1f} silent seconds")
        return Failure(FailureClass.CANCELLED, why)

    def provider_call(self, admitted: AdmittedTarget, request: RouteRequest) -> ProviderCall:
        """The call to make: `request`, in the target's dialect."""
        target = admitted.facts.target
        self._asked_first = self._asked_first or target.id
        # A continuation is another request than the one that began: it has an idempotency key of its own.
        place = f"{target.id} after {len(self.context.begun)}" if self.context.begun else target.id
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
            query=sent_query(self.request.query, asked, spoken) if self.request.query else "",
        )

    def settle(
        self,
        admitted: AdmittedTarget,
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
        if not self.context.answers:
            failure = of_operation(failure)
        rejected = (
            failure.failure_class is FailureClass.INVALID_REQUEST
            or self._foreign_endpoint(failure)
            or self._access_of_the_client(admitted, failure)
        )
        if self.request.dialect not in admitted.facts.dialects:
            failure = replace(failure, raw=b"")  # an error body of another dialect is nothing to hand back
        elif failure.failure_class is FailureClass.INVALID_REQUEST:
            rejected = not self.context.history.native_rejection(admitted.facts, failure)
        if rejected:
            failure = replace(failure, failure_class=FailureClass.REJECTED_BY_FALLBACK)
        self.settled(admitted, failure, ttft=ttft, usage=usage, away=away)
        return failure

    def _foreign_endpoint(self, failure: Failure) -> bool:
        """A server that has Chat and not this endpoint is no broken server: others may go on asking it."""
        missing = failure.failure_class is FailureClass.MISCONFIGURED and failure.status in (404, 405, 501)
        return missing and self.context.answers and self.request.dialect != "chat"

    def _access_of_the_client(self, admitted: AdmittedTarget, failure: Failure) -> bool:
        """The client named an account, or a version that has never worked here: no reason to rest the target."""
        if failure.failure_class not in _OF_ACCESS or not self.request.headers:
            return False
        named = self._access_named(admitted)
        proof = admitted.facts.target.provider, named.get(VERSION, USUAL_VERSION)
        proven = VERSION not in named or proof in self.state.proven_versions
        return not proven or bool(named.keys() - {VERSION})

    def _prove_version(self, admitted: AdmittedTarget) -> None:
        """The call was answered: the version that it named is let in here."""
        version = self._access_named(admitted).get(VERSION)
        if version is not None:
            self.state.proven_versions.add((admitted.facts.target.provider, version))

    def _access_named(self, admitted: AdmittedTarget) -> Mapping[str, str]:
        to, asked, spoken = (
            self.state.destination(admitted.facts.target),
            self.request.dialect,
            self.context.translations.sent(admitted.facts).request,
        )
        return access_named(to, asked, spoken.dialect, self.request.headers)

    def settled(
        self,
        admitted: AdmittedTarget,
        failure: Failure | None,
        *,
        usage: Usage | None = None,
        reading: LimitReading = NO_READING,
        ttft: float | None = None,
        away: float = 0.0,
    ) -> None:
        """Settle the lease of an ended call, then update statistics, events and the report.

        `away` are the seconds in which the caller did not read the stream: they do not count as the call's.
        """
        context, state, lease, facts = self.context, self.state, admitted.lease, admitted.facts
        if failure is None and VERSION in self.request.headers:
            self._prove_version(admitted)
        if lease.settled:
            return  # a hedge's loser, or a call whose loop had stopped: its end was told before it knew
        now = state.clock.now()
        seconds = now - lease.admitted_at - away
        slow_after = admitted.gate.config.breaker.slow_call
        slow = slow_after is not None and context.answers and (seconds if ttft is None else ttft) > slow_after
        counted = failure if failure is None or context.answers else of_target(failure)
        told = usage if failure is None else None  # of a call that broke off the bucket keeps its own estimate
        lease.unread = away
        hedge = admitted.beside is not None
        settlement = lease.settle(
            counted,
            now,
            usage=told,
            reading=reading,
            roll=state.dice.roll(),
            slow=slow,
            patience=PATIENCE if failure is None else context.patience(facts, now),
        )
        state.held.pop(lease, None)
        if failure is not None:
            reading = failure.reading
        if reading.rejected:
            state.count_rejected(facts.target.provider, reading)
        cost = None if usage is None or facts.cost_usd is None else facts.cost_usd(usage)
        failure_class = None if failure is None else failure.failure_class
        status = None if failure is None else failure.status
        upkeep = lease in context.left
        if not upkeep:
            context.report.attempts.append(
                Attempt(
                    target=facts.id,
                    seconds=seconds,
                    ttft_seconds=ttft,
                    usage=usage,
                    cost_usd=cost,
                    probe=lease.probe,
                    hedge=hedge,
                    estimated=failure is not None and usage is not None,
                    **({} if failure is None else failure_facts(failure, state.wall)),
                )
            )
        if failure is None:
            self._answered(admitted, seconds, ttft, usage, now)
        # First: a recovery empties the window that this call then enters.
        state.apply(admitted.gate, settlement, now, counted, since=lease.admitted_at)
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
                hedge=hedge,
                upkeep=upkeep,
                request_id=context.report.request_id,
                reason="" if failure is None else failure.reason,
            ),
            of_answers=context.answers,
        )
        if upkeep:
            return
        if context.report.recoveries:
            context.report.add_up()
        elif failure is None:
            context.report.usage, context.report.cost_usd = usage, cost

    def _answered(
        self, admitted: AdmittedTarget, seconds: float, ttft: float | None, usage: Usage | None, now: float
    ) -> None:
        """Tell exploration and the homes of conversations of an answer."""
        state, target = self.state, admitted.facts.id
        if admitted.look is not None:
            latency = ttft if admitted.look.stream else _pace(seconds, usage)
            if state.looks.ended(admitted.look, latency, now):
                state.begin_anew(target, admitted.lease.admitted_at)
        if admitted.home is not None:
            state.homes.served(admitted.home, target, now, usage)
            if ttft is not None and usage is not None:
                state.homes.prefilled(target, ttft, usage)

    async def call_to_verdict(
        self,
        admitted: AdmittedTarget,
        limit: float,
        patience: float,
        perform: Callable[[AdmittedTarget, float, bool], Awaitable[T | Failure]],
        drop: Callable[[T, AdmittedTarget], Awaitable[None]] | None = None,
    ) -> T | Failure:
        """Return the outcome of the call by the instant `limit`; the call goes on until patience has passed.

        `drop` gives back the result of a call whose caller left.
        """
        lease, state = admitted.lease, self.state
        patient_until = lease.admitted_at + patience
        verdict_at = max(limit, patient_until)
        alone = replace(admitted, watchdog=Watchdog(state.clock, state.ticking))
        gone = False

        async def performing() -> T | Failure:
            served = await perform(alone, verdict_at, True)
            if gone and drop is not None and not isinstance(served, Failure):
                await drop(served, alone)
            return served

        async def leave(why: str) -> None:
            """The caller goes: the call runs on, or ends now and gives back what it has brought."""
            nonlocal gone
            gone = True
            if not task.done() and self._runs_on(admitted, patience):
                self._leave(admitted, task, why)
                if verdict_at > patient_until:  # the caller left before its limit: `perform` would go on until that
                    end = state.clock.call_at(patient_until + EARLY, task.cancel)
                    task.add_done_callback(lambda _: end.cancel())
                return
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            elif drop is not None and not isinstance(served := task.result(), Failure):
                await drop(served, alone)

        task = asyncio.get_running_loop().create_task(performing())
        try:
            await (ended_by(state.clock, task, limit) if limit < verdict_at else asyncio.wait((task,)))
        except asyncio.CancelledError:
            await leave("the caller left")
            raise
        if task.done():
            return task.result()
        why = f"left after {state.clock.now() - lease.admitted_at:.1f} s"
        await leave(why)
        return Failure(FailureClass.CANCELLED, why)

    def _runs_on(self, admitted: AdmittedTarget, patience: float) -> bool:
        """Return whether a call under way runs on without its caller: one at a time to a target of unknown pace."""
        lease, state = admitted.lease, self.state
        if lease.settled or state.closed or state.clock.now() - lease.admitted_at >= patience:
            return False
        return lease.probe or lease.paced or admitted.facts.id not in state.detached.values()

    def _leave(self, admitted: AdmittedTarget, task: asyncio.Task[T | Failure], why: str) -> None:
        """Let the call run on without its caller."""
        context = self.context
        context.left.add(admitted.lease)
        context.state.detach(task, admitted.facts.id)
        context.report.attempts.append(
            Attempt(
                target=admitted.facts.id,
                seconds=context.state.clock.now() - admitted.lease.admitted_at,
                failure_class=FailureClass.CANCELLED,
                message=f"{why}; the call runs on for its verdict",
                probe=admitted.lease.probe,
            )
        )


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
