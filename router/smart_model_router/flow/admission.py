"""Choose the next target for a request and record why the others refused."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from smart_model_router.core.fallback import least_retry_after
from smart_model_router.core.gate import Gate, Pacing
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.selection import Candidate, View
from smart_model_router.core.selection.exploration import ExplorationCall
from smart_model_router.core.selection.scoring import scores
from smart_model_router.core.selection.strategies import elsewhere_first, redistribute, spread
from smart_model_router.core.target_state import Kind
from smart_model_router.core.tiers import TargetFacts, Tier
from smart_model_router.domain.events import ProbeStarted
from smart_model_router.domain.outcome import CAPACITY_REASONS, Refusal
from smart_model_router.flow.clock import Watchdog
from smart_model_router.flow.report_builder import ReportBuilder
from smart_model_router.flow.request_context import AdmittedTarget, RequestContext
from smart_model_router.flow.request_translation import PREFILL
from smart_model_router.flow.state import RouterState
from smart_model_router.flow.wait_policy import PlannedWait, WaitPolicy

_FREE = Cost(0, 0)
_NO_SLOT = Refusal("bulkhead")
_TOSS_SECONDS = 1.0


@dataclass(slots=True)
class AdmissionController:
    """Choose the targets of one request. `wait_policy` has its place in the wait queue."""

    context: RequestContext
    state: RouterState
    report_builder: ReportBuilder
    wait_policy: WaitPolicy
    refused: dict[str, Refusal] = field(default_factory=dict, init=False)
    """The refusals of the targets since the request was last woken, by target."""
    _tossed: dict[tuple[str, Pacing], Refusal] = field(default_factory=dict, init=False)
    """The last refusal by a throttle, by target: it holds while the throttle may refuse, also after a wait."""
    _probe_taken: bool = field(default=False, init=False)
    _conversations: dict[str, str | None] = field(default_factory=dict, init=False)
    """The name of the request's conversation, by tier."""
    _homes: dict[str, str] = field(default_factory=dict, init=False)
    """The key of the conversation's home, by target that is it or may become it."""
    _look: ExplorationCall | None = field(default=None, init=False)
    """The exploration that this request makes, when its target admits it."""

    def prepare(self) -> None:
        """Prepare everything that calls of the plan's targets need from the body; no gate is asked."""
        for tier in self.context.plan.tiers:
            self._conversation(tier)
        translations = self.context.translations
        for facts in self.context.plan.by_id.values():
            if translations.refusal(facts) is None:
                translations.sent(facts)

    def in_tier(self, tier: Tier, now: float) -> AdmittedTarget | PlannedWait | None:
        """The best target of a tier that admits the call, or a wait for the one that has the prompt in its cache."""
        self._look = None
        able = self._able(tier, now)
        if not able or (self.context.history.touched and self._is_spent(tier, now)):
            return None
        if self.state.wait_queue.shared.waiting and self._is_crowded(able.values(), tier):
            return self._first_of(able.values(), tier.name, now)
        order = self._order(able, tier, now)
        first, rest = order[0], order[1:]
        if (admitted := self.ask(first, tier.name, now) or self._at_home(first.id, now)) is not None:
            return admitted
        if self.context.route.selector.redistributes and len(rest) > 1 and self._conversation(tier) is None:
            rest = self._redistributed(rest, now)
        return self._first_of(rest, tier.name, now)

    def _first_of(self, order: Iterable[TargetFacts], tier: str, now: float) -> AdmittedTarget | None:
        """The first of these targets that admits the call. Those that only lack a slot are reported together."""
        gates, stream, able = (
            self.state.fleet.gates,
            self.context.request.stream,
            self.context.translations.refusal,
        )
        full: list[str] = []
        for facts in order:
            if not self._tossed and gates[facts.id].is_full(now, stream=stream) and able(facts) is None:
                full.append(facts.id)
                continue
            self._have_no_slot(full, now)
            full.clear()
            if (admission := self.ask(facts, tier, now)) is not None:
                return admission
        self._have_no_slot(full, now)
        return None

    def _is_crowded(self, able: Collection[TargetFacts], tier: Tier) -> bool:
        """Return whether each of these targets lacks a slot or has older waiters.

        None admits the request then, not even as a probe or an exploration, so that no order is needed. A
        conversation's targets are ordered all the same: it may wait for its home, and the target that serves it becomes
        that.
        """
        if self._conversation(tier) is not None:
            return False
        wait_queue, plan, providers = self.state.wait_queue, self.context.plan, self.state.fleet.providers
        with_slot = {name for name in plan.providers if providers[name].has_slot}
        if len(with_slot) == len(plan.providers):
            return False  # reading the places of others in the queues takes longer than ordering the targets
        waiter, rank = self.wait_policy.waiter, self.wait_policy.rank
        return all(one.target.provider not in with_slot or wait_queue.is_behind(waiter, one.id, rank) for one in able)

    def _have_no_slot(self, targets: Sequence[str], now: float) -> None:
        """Refuse as `ask` would for each: with many waiters a thousand full targets are usual, and most of the cost."""
        self.refused.update(dict.fromkeys(targets, _NO_SLOT))
        self.report_builder.tell_all(targets, _NO_SLOT, now)
        if self.state.coordinator is not None:
            for target in targets:
                self.state.coordinator.asked(self.state.fleet.gates[target])

    def anyway(self, now: float, pacing: Pacing) -> AdmittedTarget | None:
        """Try the targets that only our own judgement refuses, paced: the least tried, not OPEN first. None is free.

        A target that failed this request before is tried again after its back-off.
        """
        self._look = None
        able: list[tuple[bool, int, int, TargetFacts, str]] = []
        for tier in self.context.plan.tiers:
            for facts in tier.targets:
                told = self.refused.get(facts.id)
                if told is not None and told.reason in CAPACITY_REASONS:
                    continue
                refusal = self.context.history.pause(facts, now)
                if refusal is None:
                    gate = self.state.fleet.gates[facts.id]
                    down = not gate.steady_breakers(stream=self.context.request.stream)
                    able.append((down, self.context.history.tries(facts.id), len(able), facts, tier.name))
                elif not refusal.reason.startswith("filtered:"):
                    self.refused[facts.id] = refusal
        for *_, facts, name in sorted(able, key=lambda one: one[:3]):
            if (admission := self.ask(facts, name, now, pacing=pacing)) is not None:
                return admission
        return None

    def finding_out(self, now: float) -> AdmittedTarget | None:
        """Admit the request only as a call that finds out whether a target is back: a probe, or a try while offline."""
        self._look = None
        for facts, refusal in self._away(now):
            if refusal is None and (
                admission := self.ask(facts, self.context.plan.tier_of[facts.id], now, pacing="eager")
            ):
                return admission
        return None

    def due_to_find_out(self, now: float) -> float | None:
        """Return the seconds until `finding_out` may admit a request; None when no target is away."""
        return least_retry_after((refusal for _, refusal in self._away(now)), now)

    def _away(self, now: float) -> Iterator[tuple[TargetFacts, Refusal | None]]:
        """Yield each target that is away, with its refusal of a call that would find out whether it is back."""
        stream = self.context.request.stream
        for facts in self.context.plan.by_id.values():
            gate = self.state.fleet.gates[facts.id]
            if facts.id in self.context.plan.tier_of and gate.away(stream=stream):
                refusal = self.context.history.pause(facts, now)
                yield (
                    facts,
                    refusal or gate.refusal(self.context.cost(facts, now), now, stream=stream, pacing="eager"),
                )

    def in_turn(self, target: str, pacing: Pacing, now: float) -> AdmittedTarget | None:
        """The target whose turn for this request has come, while the others that it waits for refuse it.

        One that it does not wait for may have become free unnoticed (a wall has ended): then no call is paced (D3).
        """
        facts = self.context.plan.by_id[target]
        tier = self.context.plan.tier_of.get(target)
        if tier is None or self.context.history.pause(facts, now) is not None:
            return None
        self._look = None
        if (admission := self.ask(facts, tier, now)) is not None or self.context.another_is_free(facts, now):
            return admission
        return self.ask(facts, tier, now, pacing=pacing)

    def last_resort(self, now: float) -> AdmittedTarget | tuple[str, ...]:
        """A target of the last resort that takes the call, or those whose slots the request may queue for."""
        full: list[str] = []
        for facts in self.context.plan.last_resort:
            if (
                facts.id in self.context.history.last_resort_tried
                or self.context.history.refusal(facts, now) is not None
            ):
                continue
            if self._ruled_out(facts, now):
                continue
            gate = self.state.fleet.gates[facts.id]
            behind = self.state.wait_queue.is_behind(self.wait_policy.waiter, facts.id, self.wait_policy.rank)
            got = _NO_SLOT if behind else gate.try_admit(_FREE, now, 0.0, last_resort=True)
            if isinstance(got, Lease):
                self.state.held[got] = gate
                tier, snapshot = self._last_resort_tier(facts), self.state.book.snapshot(facts.id, now)
                return AdmittedTarget(facts, tier, gate, got, snapshot, last_resort=True)
            self.report_builder.tell(facts.id, got, now)
            if got.reason == "bulkhead" and self.wait_policy.may_queue(facts.id, gate):
                full.append(facts.id)
        return tuple(full)

    def beside(self, late: AdmittedTarget, *, anywhere: bool = False) -> AdmittedTarget | None:
        """A target of another provider that takes the call at once, and is no probe: of the same tier, or `anywhere`.

        From another tier only targets that this request has not asked yet.
        """
        own, providers = late.facts.target.provider, self.state.fleet.providers
        if not any(providers[name].has_slot for name in self.context.plan.providers if name != own):
            return None  # no need to order the targets, once for each silent call of a full fleet
        tiers = (
            self.context.plan.tiers
            if anywhere
            else [tier for tier in self.context.plan.tiers if tier.name == late.tier]
        )
        return next((found for tier in tiers if (found := self._beside_in(tier, late)) is not None), None)

    def _beside_in(self, tier: Tier, late: AdmittedTarget) -> AdmittedTarget | None:
        state, now, stream = self.state, self.state.clock.now(), self.context.request.stream
        own = late.facts.target.provider
        for facts in self._order(self._able(tier, now), tier, now, looking=False):
            gate = state.fleet.gates[facts.id]
            if facts.target.provider == own or state.wait_queue.queued(facts.id) or not gate.steady(now, stream=stream):
                continue
            if self.context.translations.refusal(facts) is not None:
                continue
            got = gate.try_admit(self.context.cost(facts, now), now, state.dice.roll(), stream=stream)
            if state.coordinator is not None:
                state.coordinator.asked(gate)
            if isinstance(got, Lease):
                state.held[got] = gate
                timer, snapshot = Watchdog(state.clock, state.ticking), state.book.snapshot(facts.id, now)
                admitted = AdmittedTarget(facts, tier.name, gate, got, snapshot, beside=late.facts.id, watchdog=timer)
                if self.stands_at_once(admitted):
                    return admitted
                withdraw(state, gate, got)  # a second call waits for no slot of the host
        return None

    def ask(self, facts: TargetFacts, tier: str, now: float, *, pacing: Pacing = "off") -> AdmittedTarget | None:
        """Ask one target; a refusal is told once and kept in `refused`."""
        if self._ruled_out(facts, now):
            return None
        state, gate = self.state, self.state.fleet.gates[facts.id]
        cost, waiter, stream = self.context.cost(facts, now), self.wait_policy.waiter, self.context.request.stream
        tossed = self._tossed.get((facts.id, pacing))
        if tossed is not None and now < (tossed.retry_at or now) and gate.tosses(now):
            self.refused[facts.id] = tossed  # a new draw at each wake would not be the throttle's probability any more
            return None
        if state.wait_queue.shared.waiting and state.wait_queue.is_behind(waiter, facts.id, self.wait_policy.rank):
            got: Lease | Refusal = (
                gate.refusal(cost, now, stream=stream, pacing=pacing)
                or gate.limits.refusal(cost, now, state.wait_queue.ahead(waiter, facts.id))
                or _NO_SLOT
            )
        else:
            got = gate.try_admit(cost, now, state.dice.roll(), stream=stream, pacing=pacing)
        if state.coordinator is not None:
            state.coordinator.asked(gate)
        if isinstance(got, Refusal):
            if got.reason == "throttle":
                got = self._tossed[facts.id, pacing] = self._tossed_for(now)
            self.refused[facts.id] = got
            self.report_builder.tell(facts.id, got, now)
            return None
        state.held[got] = gate
        look = self._look if self._look is not None and self._look.target == facts.id else None
        if look is not None:
            state.looks.began(look, now)
            self._look, self._probe_taken = None, True
        snapshot, home = state.book.snapshot(facts.id, now), self._homes.get(facts.id)
        return AdmittedTarget(facts, tier, gate, got, snapshot, look=look, home=home)

    def _at_home(self, target: str, now: float) -> PlannedWait | None:
        """A wait for the home of the request's key, which has just refused it: no longer than its cache is worth."""
        key, homes = self._homes.get(target), self.state.homes
        if key is None or homes.of(key) != target:
            return None
        return self.wait_policy.at_home(target, self.refused, now, homes.worth(key))

    def _tossed_for(self, now: float) -> Refusal:
        """The refusal by a throttle, which holds for about a second."""
        return Refusal("throttle", now + _TOSS_SECONDS * (0.5 + self.state.dice.roll()))

    def stands_at_once(self, admitted: AdmittedTarget) -> bool:
        """True when there is nothing to ask other processes about this admission."""
        coordinator = self.state.coordinator
        return not admitted.lease.probe and (coordinator is None or coordinator.has_slot(admitted.gate))

    async def stands(self, admitted: AdmittedTarget) -> bool:
        """Ask the other processes for the probe and the slot of this admission; withdraw it where they have them."""
        if self.stands_at_once(admitted):
            return True
        lease = admitted.lease
        if not await is_granted(self.state, admitted.gate, lease, self.context.deadline):
            return False
        if lease.probe:
            self._probe_taken = True
            kind: Kind = "stream" if self.context.request.stream else "whole"
            self.state.emit(ProbeStarted(at=lease.admitted_at, target=admitted.facts.id, kind=kind))
        return True

    def somebody_else(self, facts: TargetFacts, now: float) -> bool:
        """True when another target of the plan may still be called, now or soon."""
        able, refusal = self.context.translations.refusal, self.context.history.refusal
        return any(
            other.id != facts.id and refusal(other, now) is None and able(other) is None
            for tier in self.context.plan.tiers
            for other in tier.targets
        )

    def _able(self, tier: Tier, now: float) -> dict[str, TargetFacts]:
        """Return the targets of a tier that this request may still ask, by id, as they are configured."""
        able, history = {facts.id: facts for facts in tier.targets}, self.context.history
        for facts in tier.targets if history.touched else ():
            refusal = history.refusal(facts, now)
            if refusal is not None:
                del able[facts.id]
                if not refusal.reason.startswith("filtered:"):
                    self.refused[facts.id] = refusal
        return able

    def _order(
        self, able: Mapping[str, TargetFacts], tier: Tier, now: float, *, looking: bool = True
    ) -> list[TargetFacts]:
        """Return these targets of a tier, best first; one that is due for its probe before all.

        Without one that is due, and where `looking`, one that is due for exploration.
        """
        state, history = self.state, self.context.history
        if len(able) < 2:
            return list(able.values())
        session, key = self.context.request.session_key, self._conversation(tier)
        home_name = "" if key is None else self.context.route.home_name(tier.name, key)
        home = state.homes.of(home_name)
        view = state.view(able, now, stream=self.context.request.stream, session=session, key=key, home=home)
        candidates = [facts.candidate for facts in able.values()]
        ranked = order = self.context.route.selector.order(candidates, view, now, state.dice.roll())
        if tier.grouped:
            order = spread(order, view, state.dice.roll())
        if key is not None:
            self._homes |= dict.fromkeys(_homes_among(order, session), home_name)
        if history.failures:
            failed_facts, failure = history.failures[-1]
            order = elsewhere_first(order, failed_facts.candidate, failure.failure_class, scores(order, view, now))
        due = self._due_for_probe(able.values(), now) or (
            self._due_for_look(able, ranked, view, now) if looking else None
        )
        if due is not None:
            order.sort(key=lambda c: c.id != due)
        return [able[c.id] for c in order]

    def _conversation(self, tier: Tier) -> str | None:
        if tier.name not in self._conversations:
            self._conversations[tier.name] = tier.conversation(self.context.request)
        return self._conversations[tier.name]

    def _due_for_probe(self, able: Iterable[TargetFacts], now: float) -> str | None:
        """The target due the longest; at most one probe a request, none of a pinned one."""
        if self._probe_taken or self.context.request.state_ids:
            return None
        gates, stream = self.state.fleet.gates, self.context.request.stream
        dues = [
            (since, facts.candidate.position, facts.id)
            for facts in able
            if (since := gates[facts.id].due_since(now, stream=stream)) is not None
        ]
        return min(dues)[2] if dues else None

    def _due_for_look(
        self, able: Mapping[str, TargetFacts], order: Sequence[Candidate], view: View, now: float
    ) -> str | None:
        """The target that is due for exploration: at most one a request, as a probe, and only where it has time."""
        request = self.context.request
        if self.context.route.strategy != "health" or self._probe_taken or self.context.history.failures:
            return None
        if request.state_ids or view.session is not None or not self.context.answers:
            return None
        look = self.state.looks.due(order, view, now)
        if look is None or self.context.deadline - now < 2 * self.context.patience(able[look.target], now):
            return None
        self._look = look
        return look.target

    def _redistributed(self, rest: list[TargetFacts], now: float) -> list[TargetFacts]:
        """Those that have a slot by health and free capacity, then the others."""
        state, gates = self.state, self.state.fleet.gates
        by_id = {facts.id: facts for facts in rest if gates[facts.id].free_slots}
        if not by_id:
            return rest
        free = {target: gates[target].free_share(now) for target in by_id}
        view = state.view(by_id, now, stream=self.context.request.stream)
        candidates = [facts.candidate for facts in by_id.values()]
        drawn = redistribute(candidates, scores(candidates, view, now), free, state.dice.roll())
        return [by_id[c.id] for c in drawn] + [facts for facts in rest if facts.id not in by_id]

    def _is_spent(self, tier: Tier, now: float) -> bool:
        """Return whether the tier has had its attempts, and one after it has a candidate that would be admitted."""
        if not self.context.history.tier_is_spent(tier.name):
            return False
        below = self.context.plan.tiers[self.context.plan.tiers.index(tier) + 1 :]
        return any(self.context.is_free(facts, now) for lower in below for facts in lower.targets)

    def _ruled_out(self, facts: TargetFacts, now: float) -> bool:
        """Exclude a target in whose dialect the request would mean something else; True when it is excluded."""
        why = self.context.translations.refusal(facts)
        if why is not None:
            need = PREFILL if why.where == PREFILL else "translation"
            self.report_builder.tell(facts.id, self.context.history.rule_out(facts.id, str(why), need), now)
        return why is not None

    def _last_resort_tier(self, facts: TargetFacts) -> str:
        """The tier a last-resort target is reported under: its own when it has one."""
        for tier in self.context.route.tiers:
            if any(f.id == facts.id for f in tier.targets):
                return tier.name
        return "last_resort"


async def is_granted(state: RouterState, gate: Gate, lease: Lease, until: float) -> bool:
    """Ask the other processes for an admission's probe and slot of the host; withdraw it where they have them."""
    coordinator = state.coordinator
    if coordinator is None:
        return True
    granted = False
    try:
        # The probe first: while a slot is waited for no other request may take it.
        probes = not lease.probes_breaker or await coordinator.may_probe(gate, lease)
        granted = probes and await coordinator.may_enter(gate, until - state.clock.now())
    finally:
        if not granted:
            withdraw(state, gate, lease)
    return granted


def withdraw(state: RouterState, gate: Gate, lease: Lease) -> None:
    """Give back an admission without a call."""
    now = state.clock.now()
    settlement = lease.withdraw(now)
    state.held.pop(lease, None)
    state.apply(gate, settlement, now, None)


def _homes_among(order: Sequence[Candidate], session: str | None) -> list[str]:
    """The two targets that may be home to the key of this order: equals of the first."""
    first = order[0]
    return [c.id for c in order[:2] if c is first or session is not None or c.group == first.group != ""]
