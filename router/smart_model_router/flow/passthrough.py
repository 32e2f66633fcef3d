"""A request that passes through: admitted, sent once, its answer handed on piece by piece, and settled once.

Neither body is held or read: status, transport and the answer's completeness decide whose fault a failure is. Another
target of the route takes over only while nothing of the request's body was taken. One timer ends a call whose provider
moves nothing; no patience, no attempt's timeout and no retry cut it short.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import TypeVar

from smart_model_router.core.fallback import least_retry_after
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease, Settlement
from smart_model_router.core.passthrough_rules import Route, RouteTarget, is_passed_on, judged
from smart_model_router.core.ratelimit import Cost
from smart_model_router.domain.errors import (
    AllTargetsFailed,
    DeadlineExceeded,
    Interruption,
    InvalidRequest,
    NotFound,
    Overloaded,
    RouterUnavailable,
    SmartRouterError,
    StreamInterrupted,
)
from smart_model_router.domain.events import NAME_LIMIT, RequestFinished, RequestOutcome
from smart_model_router.domain.forwarded_headers import Destination, access_named, keyed, lost_at, sent_to
from smart_model_router.domain.outcome import NO_READING, Failure, FailureClass, LimitReading
from smart_model_router.domain.ports import PassedCall, PassedReply, SupportsPassthrough, TimerHandle
from smart_model_router.domain.report import Attempt, RouteReport, failure_facts
from smart_model_router.domain.request import RequestOptions, Target
from smart_model_router.flow.attempt import provider_bug
from smart_model_router.flow.clock import EARLY, Expired, Watchdog
from smart_model_router.flow.guard import settle
from smart_model_router.flow.passage_admission import PassageAdmission
from smart_model_router.flow.state import RouterState

T = TypeVar("T")
_FREE = Cost(0, 0)
_LONGEST = 86_400.0
_NOT_FOUND = 404
_GONE_AFTER = 3
"""So many 404s in a row of a path that has answered: it was taken away."""
_LEFT = Failure(FailureClass.CANCELLED, "the caller left")
_HANDED_ON = ("content-type", "content-length", "content-disposition", "content-language")
"""The provider's headers that a client gets: those about the body. Its keys, cookies and traces are for us alone."""
_FRAMED = frozenset({"content-encoding", "transfer-encoding"})
_OF_OPENAI = "responses"
"""The dialect by which forwarded_headers.py decides: these paths are of OpenAI's API."""
_WORDS: Mapping[FailureClass, str] = {
    FailureClass.AUTH: "; the provider does not let the gateway's key in: see its api_key, and what it is allowed",
    FailureClass.QUOTA: "; the account of the gateway's key is used up",
    FailureClass.MISCONFIGURED: "; its base_url leads elsewhere",
}
"""Advice that follows the provider's own message."""


class RoutePassage:
    """One request on a route. `report` is live all the way; `status` and `headers` are there once it is open."""

    def __init__(
        self, state: RouterState, route: Route, call: PassedCall, options: RequestOptions, *, silence: float
    ) -> None:
        self.route = route
        self.report = RouteReport(next(state.request_ids), route.name, "", advice=state.advice)
        self.status = 0
        self.headers: dict[str, str] = {}
        self._state = state
        self._call = call
        self._options = options
        self._silence = silence
        self._started = self._moved_at = state.clock.now()
        self._deadline = self._started + min(_LONGEST, options.get("timeout") or _LONGEST)
        self._watchdog = Watchdog(state.clock, state.ticking)
        self._timer: TimerHandle | None = None
        self._waits_for_client = self._awaits_provider = self._silent = False
        self._body: _Body | None = None
        self._held: tuple[RouteTarget, Gate, Lease] | None = None
        self._reply: PassedReply | None = None
        self._rest = b""
        self._admission = PassageAdmission(state, route, call, options, self.report, self._deadline, self._watchdog)
        self._finished = False

    async def open(self) -> None:
        """Send the request; return once the head of an answer is there. Raises SmartRouterError, and as the body does.

        An answer may be the provider's own word on the request, such as a 400.
        """
        try:
            await self._open()
        except SmartRouterError as error:
            error.report = self.report
            local = isinstance(error, Overloaded)
            self._finish("rejected_local" if local else "failed", type(error).__name__)
            raise
        except BaseException:
            self._finish("cancelled")
            raise
        finally:
            if self._reply is None:
                self._settle(_LEFT)
                self._stop()

    @property
    def settled(self) -> bool:
        """True when the call has its verdict."""
        return self._held is None

    async def next_piece(self) -> bytes | None:
        """The next bytes of the answer, as they come; None after the last. Raises StreamInterrupted."""
        if self._reply is None:
            rest, self._rest = self._rest, b""
            return rest or None
        self._moved_at = self._state.clock.now()
        try:
            piece = await self._within(self._reply.next_piece)
        except Expired:
            piece = self._expired()
        except Exception as bug:  # noqa: BLE001 - providers return failures: whatever they raise is their bug
            piece = provider_bug(bug, answering=True)
        if self._body is not None and self._body.error is not None:
            raise self._body.error
        if isinstance(piece, Failure):
            failure = self._state.scrub(piece)
            self._settle(failure)
            self._finish("failed", StreamInterrupted.__name__)
            message = f"{self.report.target}: {failure.message}"
            closed = self._state.closed and failure.failure_class is FailureClass.CANCELLED
            reason: Interruption = "closed" if closed else "cut"
            raise StreamInterrupted(message, report=self.report, reason=reason, failure=failure)
        if piece:
            return piece
        self._settle(None, self._reply.reading)
        self.report.complete = True
        self._finish("fallback" if self.report.fallback or len(self.report.attempts) > 1 else "ok")
        return None

    async def aclose(self) -> None:
        """End what is under way: the call is given up where its answer was not read to the end. Safe to call twice."""
        self._settle(_LEFT)
        self._finish("cancelled")
        self._stop()
        reply, self._reply = self._reply, None
        if reply is not None:
            await reply.aclose()

    # Before the head ------------------------------------------------------------------------------------------

    async def _open(self) -> None:
        left = self._admission.asked()
        coordinator = self._state.coordinator
        if coordinator is not None and not coordinator.touch():
            await coordinator.first_look()
        self._admission.check_shed()
        while True:
            target, gate, lease = await self._admission.admitted(left)
            self._held = (target, gate, lease)
            outcome = await self._sent(target)
            if not isinstance(outcome, Failure):
                self._reply = outcome
                self._state.not_found[target.id] = 0
                self._served(target, outcome.status, outcome.headers)
                return
            theirs = bool(access_named(*self._to(target), self._options.get("headers", {})))
            found = judged(outcome, self.route, target, clients_account=theirs, answered=self._answers(target, outcome))
            failure = self._state.scrub(found)
            self._settle(failure)
            if is_passed_on(failure):
                self._pass_on(target, failure)
                return
            left = [other for other in left if other is not target]
            if self._body_taken or not left:
                raise self._error(failure)

    def _answers(self, target: RouteTarget, failure: Failure) -> bool:
        """Return whether the path is there: it has answered since the start, and not said 404 three times since."""
        times = self._state.not_found.get(target.id)
        if times is None or failure.status != _NOT_FOUND:
            return False
        self._state.not_found[target.id] = times + 1
        return times + 1 < _GONE_AFTER

    async def _sent(self, target: RouteTarget) -> PassedReply | Failure:
        """The head of the target's answer, or the failure it comes to. Raises as the body does, DeadlineExceeded."""
        state, call = self._state, self._call
        provider = state.providers[target.provider]
        assert isinstance(provider, SupportsPassthrough)  # noqa: S101 - assembly.py has seen to it
        self._body = body = _Body(call.body, self._waiting)
        made = replace(
            call,
            headers={**call.headers, **self._forwarded(target)},
            body=body,
            deployment=target.deployment or call.deployment,
            credential=target.credential,
            connect_timeout=state.timeouts.connect,
        )
        self._moved_at, self._silent = state.clock.now(), False
        if self._timer is not None:
            self._timer.cancel()
        self._timer = state.clock.call_at(self._moved_at + self._silence, self._look)
        outcome: PassedReply | Failure
        try:
            outcome = await self._within(partial(provider.pass_through, made))
        except Expired:
            outcome = self._expired()
        except asyncio.CancelledError:
            self._settle(_LEFT)
            raise
        except Exception as bug:  # noqa: BLE001 - the body's own, or the provider's bug
            outcome = provider_bug(bug, answering=True)
        if body.error is not None or (isinstance(outcome, Failure) and outcome.failure_class is FailureClass.CANCELLED):
            self._settle(_LEFT)
            if not isinstance(outcome, Failure):
                await outcome.aclose()
            if body.error is not None:
                raise body.error
            if state.closed:
                raise RouterUnavailable("the router was closed")
            raise DeadlineExceeded(f"{target.id}: no answer within the time that x-router-timeout gives")
        return outcome

    def _forwarded(self, target: RouteTarget) -> Mapping[str, str]:
        given, to = self._options.get("headers", {}), self._to(target)
        self.report.losses += lost_at(*to, given)
        first = self.report.attempts[0].target if self.report.attempts else target.id
        return keyed(target.id, first, sent_to(*to, given))

    def _to(self, target: RouteTarget) -> tuple[Destination, str, str]:
        """The destination, and the dialects asked and spoken: forwarded_headers.py decides by them."""
        named = Target(target.id, target.provider, target.deployment)
        return self._state.destination(named), _OF_OPENAI, _OF_OPENAI

    def _pass_on(self, target: RouteTarget, failure: Failure) -> None:
        """The client gets the provider's own word on its request; in our words where that has no body."""
        if not failure.raw:
            kind = NotFound if failure.status == _NOT_FOUND else InvalidRequest
            raise kind(f"{target.id}: {failure.message}", status=failure.status)
        self._rest = failure.raw
        self._served(target, failure.status or _NOT_FOUND, failure.headers)
        self.headers["content-length"] = str(len(failure.raw))  # a key may have been taken out
        self._finish("failed", InvalidRequest.__name__)

    def _served(self, target: RouteTarget, status: int, headers: Mapping[str, str]) -> None:
        self.status, self.headers = status, {name: headers[name] for name in _HANDED_ON if name in headers}
        if not _FRAMED.isdisjoint(headers):  # the body has no length, or is decoded and has another one
            self.headers.pop("content-length", None)
        self.report.target = target.id
        self.report.fallback = target is not self.route.targets[0]

    def _error(self, failure: Failure) -> SmartRouterError:
        """The error of a request that no target served: what each came to, and what would be right."""
        state, now = self._state, self._state.clock.now()
        if failure.failure_class is FailureClass.INVALID_REQUEST:
            return InvalidRequest(failure.message)
        told = ", ".join(f"{a.target} {a.failure_class}: {a.message}" for a in self.report.attempts)
        sent = self._body_taken and len(self.route.targets) > 1
        others = "; no other target was asked, for the body was sent already" if sent else ""
        gates = (state.fleet.gates[target.id] for target in self.route.targets)
        after = least_retry_after((gate.refusal(_FREE, now, pacing="eager") for gate in gates), now)
        if failure.wait is not None:
            after = max(failure.wait.seconds, after or 0.0)
        return AllTargetsFailed(f"{told}{_WORDS.get(failure.failure_class, '')}{others}", retry_after=after)

    @property
    def _body_taken(self) -> bool:
        return self._body is not None and self._body.begun

    # Time -----------------------------------------------------------------------------------------------------

    async def _within(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Await the provider, until the caller's time is up, it is silent for too long, or the router closes.

        Raises Expired at once where the router was closed before: it ends only what is awaited at that instant.
        """
        if self._state.closed:
            raise Expired
        self._awaits_provider = True
        try:
            return await self._watchdog.within(ask(), self._deadline, goes_on=True)
        finally:
            self._awaits_provider = False

    def _waiting(self, waits: bool) -> None:
        """The client's next piece is awaited, or has come: meanwhile the provider has nothing to take."""
        self._waits_for_client = waits
        self._moved_at = now = self._state.clock.now()
        if self._held is not None and self._held[2].probes_breaker:  # the body is taken: there is a connection
            _, gate, lease = self._held
            self._state.apply(gate, lease.connected(now), now, None, since=lease.admitted_at)

    def _look(self) -> None:
        """End a call whose provider has moved nothing for so long; look again otherwise."""
        now = self._state.clock.now()
        if not self._awaits_provider or self._waits_for_client:
            self._moved_at = now
        due = self._moved_at + self._silence
        if now >= due - EARLY:
            self._silent = True
            self._watchdog.expire()
            return
        self._timer = self._state.clock.call_at(due, self._look)

    def _expired(self) -> Failure:
        if self._silent:
            return Failure(FailureClass.TIMEOUT, f"the provider neither took nor sent anything for {self._silence:g} s")
        closed = self._state.closed
        return Failure(FailureClass.CANCELLED, "the router was closed" if closed else "its caller's time was up")

    # The end --------------------------------------------------------------------------------------------------

    def _settle(self, failure: Failure | None, reading: LimitReading = NO_READING) -> None:
        """Give back what the call holds, with its verdict; nothing when it is settled."""
        if self._held is None:
            return
        (target, gate, lease), self._held, state = self._held, None, self._state
        told = reading if failure is None else failure.reading
        if told.rejected:
            state.count_rejected(target.provider, told)
        model, request_id = target.id.partition("/")[2], self.report.request_id
        settle(
            state, gate, lease, failure, provider=target.provider, model=model, reading=reading, request_id=request_id
        )
        if failure is not None and failure.failure_class is FailureClass.RATE_LIMITED:
            self._tell_beside(target, lease, failure)
        self.report.attempts.append(
            Attempt(
                target=target.id,
                seconds=state.clock.now() - lease.admitted_at,
                probe=lease.probe,
                **({} if failure is None else failure_facts(failure, state.wall)),
            )
        )

    def _tell_beside(self, target: RouteTarget, lease: Lease, failure: Failure) -> None:
        """A provider that says "later" of a model says so of all its paths: the target of that name waits as well."""
        state, now = self._state, self._state.clock.now()
        gate = state.fleet.gates.get(target.beside)
        if gate is None:
            return
        rest = gate.cooldown.failed(
            failure,
            admitted_at=lease.admitted_at,
            sent_seq=lease.sequence,
            now=now,
            roll=state.dice.roll(),
            paced=gate.limits.seen,
            advise=False,
            honour_hints=gate.config.measures.rate_limit_awareness,
        )
        if rest is not None:
            state.apply(gate, Settlement(rest=rest), now, failure)

    def _finish(self, outcome: RequestOutcome, error: str = "") -> None:
        """Finish the report of the request; once."""
        if self._finished:
            return
        self._finished = True
        now, report = self._state.clock.now(), self.report
        report.seconds = now - self._started
        self._state.emit(
            RequestFinished(
                at=now,
                request_id=report.request_id,
                dialect="passthrough",
                model=self._call.path[:NAME_LIMIT],
                configured_model=self.route.name,
                outcome=outcome,
                target=report.target,
                requested_tier="",
                actual_tier=None,
                degraded=False,
                last_resort=False,
                attempts=len(report.attempts),
                refusals=len(report.refusals),
                seconds=report.seconds,
                waited_seconds=report.waited_seconds,
                error=error,
                complete=report.complete,
            )
        )

    def _stop(self) -> None:
        self._watchdog.close()
        if self._timer is not None:
            self._timer.cancel()


class _Body:
    """The request's body, with the one thing that decides whether another target may have it: `begun`.

    `error` is what reading it raised: the client's fault, or its leave, and never the provider's. `waiting` is told
    when the client's next piece is awaited, and when it is there.
    """

    def __init__(self, pieces: AsyncIterator[bytes], waiting: Callable[[bool], object]) -> None:
        self._pieces = pieces
        self._waiting = waiting
        self.begun = False
        self.error: Exception | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        self.begun = True
        self._waiting(True)
        try:
            return await anext(self._pieces)
        except StopAsyncIteration:
            raise
        except Exception as error:
            self.error = error
            raise
        finally:
            self._waiting(False)
