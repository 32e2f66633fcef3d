"""Decides what one request waits for, and for how long; holds its place in the wait queue."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from smart_model_router.core.fallback import comes_due
from smart_model_router.core.gate import Gate, Pacing
from smart_model_router.domain.events import WaitFinished
from smart_model_router.domain.outcome import Refusal
from smart_model_router.flow.request_context import RequestContext
from smart_model_router.flow.wait_queue import Waiter

_BY_LAW = frozenset({"wait", "requests", "tokens"})
"""Refusals that end at an exact instant named by the provider."""
_DOWN = frozenset({"open", "half_open", "offline"})
"""Refusals of a target that is down, or out of reach: not ill, but gone."""
_LAST_RESORT_SHARE = 0.6
"""The share of a request's time after which the last resort is taken, at the latest."""


@dataclass(frozen=True, slots=True)
class PlannedWait:
    """A wait for one of `gates` (none: only for time), at most until `until`, when no target can be called now.

    `place` is the gate whose bucket the request will most likely take from, `pacing` the pacing of its calls. `budget`
    names the bound of several waits that this one counts toward. `resorts` are those of the gates that are waited for
    as a last resort.
    """

    gates: tuple[str, ...]
    place: str | None
    until: float
    budget: str = ""
    resorts: frozenset[str] = frozenset()
    pacing: Pacing = "off"


@dataclass(slots=True)
class WaitPolicy:
    """The waits of one request. Each method that plans one returns None where waiting cannot help, or is not allowed.

    `refused` are always the refusals of the targets just tried, by target.
    """

    context: RequestContext
    began_at: float
    """The instant from which the patience before the last resort counts."""
    waits: bool
    """True when requests like this one wait for as long as they have time."""
    rank: int
    """The place of requests like this one in a queue, 0 first."""
    waiter: Waiter | None = field(default=None, init=False)
    """Its place in the wait queue, from its first pause on."""
    _waited: defaultdict[str, float] = field(default_factory=partial(defaultdict, float), init=False)
    """Seconds waited, by budget."""

    def begin_anew(self) -> None:
        """Restart the patience before the last resort, as the request continues an answer that broke off."""
        self.began_at = self.context.state.clock.now()

    def in_asked_tier(self, refused: Mapping[str, Refusal], now: float) -> PlannedWait | None:
        """A wait before a lower tier is taken: for a refusal that ends by law, or for a slot that is free soon."""
        most = self.context.state.routing.degrade_after
        if most <= self._waited["asked tier"] or not refused:
            return None
        asked, within = self.context.plan.in_asked_tier, most - self._waited["asked tier"]
        worth = {t: refusal for t, refusal in refused.items() if t in asked and self._ends_soon(t, refusal, most)}
        if not worth and self._are_slots_coming_back(now):
            gates = self.context.state.fleet.gates
            returned = {target: gates[target].provider.bulkhead.returned_by for target in refused if target in asked}
            worth = {t: refused[t] for t, by in returned.items() if refused[t].reason == "bulkhead" and now < by}
            within = min(within, max(returned.values(), default=now) - now)
        return self._pause(worth, now, within, budget="asked tier")

    def _are_slots_coming_back(self, now: float) -> bool:
        """True when other processes hold idle slots of the host, which they give back."""
        providers = self.context.state.fleet.providers
        return any(now < providers[name].bulkhead.returned_by for name in self.context.plan.providers)

    def at_home(self, target: str, refused: Mapping[str, Refusal], now: float, worth: float) -> PlannedWait | None:
        """A wait for the target with the prompt in its cache, which saves `worth` seconds, before an equal is called.

        A request with less than twice its patience left does not wait: a cache is worth no request.
        """
        context, refusal = self.context, refused.get(target)
        within = min(worth, self.context.state.routing.affinity_wait) - self._waited["home"]
        within = min(within, context.deadline - now - 2 * context.patience(context.plan.by_id[target], now))
        if within <= 0 or refusal is None or refusal.reason == "wait" or not self._ends_soon(target, refusal, within):
            return None
        return self._pause({target: refusal}, now, within, budget="home")

    def before_last_resort(self, refused: Mapping[str, Refusal], now: float) -> PlannedWait | None:
        """A wait before the last resort is taken: while a real target is ill, but not gone."""
        if not self.waits or not self.context.last_resort_left:
            return None
        deadline = self.context.deadline
        share = self.began_at + _LAST_RESORT_SHARE * (deadline - self.began_at)
        due = min(self.began_at + self.context.state.routing.last_resort_after, share)
        worth = {target: refusal for target, refusal in refused.items() if refusal.reason not in _DOWN}
        return self._pause(worth, now, due - now, pacing="on")

    def to_the_end(self, refused: Mapping[str, Refusal], now: float, pacing: Pacing) -> PlannedWait | None:
        """A wait when no other target is left."""
        return self._pause(refused, now, math.inf, pacing=pacing)

    def in_queue(self, resorts: tuple[str, ...], refused: Mapping[str, Refusal], now: float) -> PlannedWait | None:
        """A wait for a slot of the last resort, and for any target that comes due before it is free."""
        until = min(now + self._time_left(now), self.context.deadline)
        if not resorts or until <= now:
            return None
        better = self._pause(refused, now, until - now, pacing="on") or PlannedWait((), None, until)
        return replace(better, gates=(*better.gates, *resorts), resorts=frozenset(resorts))

    def may_queue(self, target: str, gate: Gate) -> bool:
        """True when there is a place for this request in the queue of a target of the last resort."""
        wait_queue, limit = self.context.state.wait_queue, gate.provider.queue
        mine = self.waiter is not None and target in self.waiter.gates
        return mine or (not wait_queue.full and (limit is None or wait_queue.queued(target) < limit))

    async def take(self, pause: PlannedWait) -> str | None:
        """Wait, and report it. Returns the gate whose turn came; None when none came in time."""
        state, began = self.context.state, self.context.state.clock.now()
        self.context.history.waited()
        woken: str | None = None
        if pause.gates:
            if self.waiter is None:
                self.waiter = state.wait_queue.waiter(stream=self.context.request.stream, rank=self.rank)
            costs = self.context.costs(pause.gates, began)
            woken = await state.wait_queue.wait(
                self.waiter, costs, pause.place, pause.until, pause.resorts, pause.pacing
            )
        else:
            self.leave_queue()  # it waits for no gate: other waiters must not stand behind it
            await self.context.watchdog.sleep(pause.until)
        waited = state.clock.now() - began
        self.context.report.waited_seconds += waited
        if pause.budget:
            self._waited[pause.budget] += waited
        state.emit(
            WaitFinished(at=began + waited, request_id=self.context.report.request_id, seconds=waited, woken_by=woken)
        )
        return woken

    def leave_queue(self) -> None:
        """Give up the place in the queue after the request took its turn or gave up."""
        if self.waiter is not None:
            self.context.state.wait_queue.done(self.waiter)

    def _pause(
        self,
        refused: Mapping[str, Refusal],
        now: float,
        within: float,
        *,
        budget: str = "",
        pacing: Pacing = "off",
    ) -> PlannedWait | None:
        """A wait for those of `refused` that may come due within so many seconds.

        The sum of a request's waits and its deadline bound it in any case. It ends while an answer still fits into
        what is left of the deadline: a request that cannot be served any more gives its place away.
        """
        if not refused:
            return None
        state, context = self.context.state, self.context
        within = min(within, self._time_left(now), context.deadline - now - context.usual_seconds(now))
        until = now + within  # what is left of a sum of waits may be too little for any instant after `now`
        if until <= now or (state.wait_queue.full and self.waiter is None):
            return None
        due = {target: refusal for target, refusal in refused.items() if comes_due(refusal, now, within)}
        if not due:
            return None
        instants = [(refusal.retry_at, target) for target, refusal in due.items() if refusal.retry_at is not None]
        gates = []
        tried, by_id = context.history.touched, context.plan.by_id
        for target, refusal in due.items():
            if refusal.reason == "throttle" or (tried and context.history.pause(by_id[target], now) is not None):
                until = min(until, refusal.retry_at or until)  # our own pause: the gate itself would admit it
            else:
                gates.append(target)
        place = min(instants)[1] if instants else None
        place = place if place in gates else None
        return PlannedWait(tuple(gates), place, until, budget=budget, pacing=pacing)

    def _time_left(self, now: float) -> float:
        """The seconds that the request may still wait."""
        routing = self.context.state.routing
        most = math.inf if routing.max_wait is None else routing.max_wait
        if not self.waits:
            most = min(most, routing.sheddable_wait)
        return min(most - self.context.report.waited_seconds, self.context.deadline - now)

    def _ends_soon(self, target: str, refusal: Refusal, within: float) -> bool:
        """True when a refusal is worth a wait of `within` seconds, although others may be free."""
        if refusal.reason != "bulkhead":
            return refusal.reason in _BY_LAW
        wait = self.context.state.fleet.gates[target].expected_wait
        return wait <= within and (self.context.state.wait_queue.queued(target) + 1) * wait <= within
