"""Promises to every request: an end in time that names the tried targets, and no more retries than the budget has."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

from smart_model_router.domain.errors import AllTargetsFailed, DeadlineExceeded
from smart_model_router.domain.events import AttemptFinished, RequestFinished, TargetRefused
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.rehearsal.simulation.scenario import Checker

if TYPE_CHECKING:
    from smart_model_router.domain.events import Event
    from smart_model_router.flow.state import RouterState
    from smart_model_router.rehearsal.simulation.scenario import History
    from smart_model_router.rehearsal.simulation.trace import Held, Settled
    from smart_model_router.rehearsal.simulation.workload import WorkloadRequest

_EPSILON = 1e-6
_KNOWN_ANSWERS = 20
_PATIENCE = 5.0
"""Seconds. The least silence after which a second target is asked beside one of which too little is known."""
_LATER = frozenset({FailureClass.RATE_LIMITED, FailureClass.OVERLOADED, FailureClass.WARMING, FailureClass.CANCELLED})
"""Failures from which no further failure of the call follows."""


class PaidRetries(Checker):
    """I9: same-target retries and hedges <= 10 % of requests + 10, hedges alone <= 5 %; none after first content.

    Retries count while another target is free that the request has not called; else they are bounded by D2. So is the
    call that is made beside one that was silent for patience, to a target that may be slow or dead. The
    shares are the setting's. Where the caller asked for the recovery of cut streams, calls after content are what was
    asked for.
    """

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._failed: dict[WorkloadRequest, set[str]] = {}
        self._unknown: set[Held] = set()
        self._looks: set[Held] = set()
        """Calls made after another one was silent for patience, to a target of which too little is known."""
        self._last: Held | None = None
        self._delivered: dict[str, float] = {}
        self._after: dict[str, tuple[float, str]] = {}
        self.retries = self.hedges = 0

    def admitted(self, held: Held, now: float) -> None:
        if held.asked is None or held.last_resort:
            return
        snapshot = self.state.book.snapshot(held.gate.id, now)
        known = snapshot.ttfts if held.lease.stream else snapshot.latencies
        if known < _KNOWN_ANSWERS:
            self._unknown.add(held)
        before = self.recorder.called[held.asked][:-1]
        if before and before[-1] in self._unknown and now - before[-1].at >= _PATIENCE - _EPSILON:
            self._looks.add(held)
        if held.alternative is not None and held.gate.id in self._failed.get(held.asked, ()):
            self.retries += 1
            self._paid(now)

    def settled(self, settled: Settled) -> None:
        self._last = held = settled.held
        failure = settled.failure
        if held.asked is not None and failure is not None and failure.failure_class not in _LATER:
            self._failed.setdefault(held.asked, set()).add(held.gate.id)

    def event(self, event: Event) -> None:
        if not isinstance(event, AttemptFinished) or event.upkeep:  # no caller got its result
            return
        request = event.request_id
        since = event.admitted_at - self._delivered.get(request, math.inf)
        if since > 0 or (since == 0 and not event.hedge):  # a hedge may go out in the instant in which a head comes
            self._after.setdefault(request, (event.at, event.target))
        if event.hedge and self._last not in self._looks:
            self.hedges += 1
            self._paid(event.at)
        if event.failure_class is None or event.ttft_seconds is not None:
            delivered = event.at if event.ttft_seconds is None else event.admitted_at + event.ttft_seconds
            self._delivered[request] = min(delivered, self._delivered.get(request, delivered))

    def ended(self, asked: WorkloadRequest) -> None:
        self._failed.pop(asked, None)
        if asked.report is not None and (asked.recovery is not None or asked.report.recoveries):
            self._after.pop(asked.report.request_id, None)

    def finish(self) -> None:
        for request, (at, target) in self._after.items():
            self.violate("I9", at, f"{request}: {target} was called after content was delivered")

    def _paid(self, now: float) -> None:
        retry, hedges, begun = self.state.budget.config, self.state.hedges, self.history.begun
        if self.retries + self.hedges > retry.ratio * begun + retry.start + _EPSILON:
            self.violate("I9", now, f"{self.retries} retries and {self.hedges} hedges of {begun} requests")
        paid = 0.0 if hedges is None else hedges.config.ratio * begun + hedges.config.start
        if self.hedges > paid + _EPSILON:
            self.violate("I9", now, f"{self.hedges} hedges of {begun} requests")


class Endings(Checker):
    """I13: every request ends by its deadline, and an exception names every attempt and refusal."""

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._refusals: dict[str, list[str]] = {}
        self._finished: dict[str, int] = {}

    def event(self, event: Event) -> None:
        if isinstance(event, TargetRefused):
            self._refusals.setdefault(event.request_id, []).append(event.target)
        elif isinstance(event, RequestFinished):
            self._finished[event.request_id] = self._finished.get(event.request_id, 0) + 1

    def ended(self, asked: WorkloadRequest) -> None:
        now = asked.ended or 0.0
        total = self.state.timeouts.total
        deadline = asked.began + (total if asked.timeout is None else min(total, asked.timeout))
        decided = now if asked.first_content is None else asked.first_content
        if decided > deadline + _EPSILON:
            self.violate("I13", now, f"the request of {asked.at:.3f} ended {decided - deadline:.3f} s too late")
        if asked.error is None and asked.report is None and not asked.left:
            self.violate("I13", now, f"the request of {asked.at:.3f} ended with neither answer nor error")
        if asked.error is not None:
            self._account(asked, now)

    def finish(self) -> None:
        now = self.history.began + self.history.lasted
        if self._finished and max(self._finished.values()) > 1:
            self.violate("I13", now, "a request was finished twice")
        if len(self._finished) != self.history.begun:
            self.violate("I13", now, f"{self.history.begun} requests began, {len(self._finished)} were finished")

    def _account(self, asked: WorkloadRequest, now: float) -> None:
        report = asked.report
        if report is None:
            self.violate("I13", now, f"the error of the request of {asked.at:.3f} has no report")
            return
        attempts = [held.gate.id for held in self.recorder.called.get(asked, [])]
        refusals = self._refusals.get(report.request_id, [])
        told = sorted(attempt.target for attempt in report.attempts)
        if told != sorted(attempts) or [r.target for r in report.refusals] != refusals:
            self.violate("I13", now, f"{report.request_id}: the report leaves out an attempt or a refusal")
        if isinstance(asked.error, AllTargetsFailed | DeadlineExceeded):
            silent = _unnamed({*attempts, *refusals}, str(asked.error))
            if silent:
                self.violate("I13", now, f"{report.request_id}: the error does not name {', '.join(silent)}")


def _unnamed(targets: set[str], text: str) -> list[str]:
    """The targets that a text does not name; the provider's name is enough where only one of its targets is meant."""
    providers = Counter(target.partition("/")[0] for target in targets)
    alone = {target: providers[target.partition("/")[0]] == 1 for target in targets}
    words = set(text.split())
    return sorted(t for t in targets if t not in text and not (alone[t] and t.partition("/")[0] in words))
