"""The time a target stays away, and its return: to the instant, one call at a time, then step by step.

That binds while another target is free. Where none is, judgement only paces (docs/design/routing.md section 0a, D3,
D4).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar

from smart_model_router.domain.outcome import BreakerCount, FailureClass
from smart_model_router.rehearsal.simulation.cooldown_oracle import EPSILON, CooldownAccount
from smart_model_router.rehearsal.simulation.outcome_record import Bounds, Flight, OutcomeRecord
from smart_model_router.rehearsal.simulation.scenario import Checker

if TYPE_CHECKING:
    from smart_model_router.core.breaker import BreakerSnapshot
    from smart_model_router.core.cooldown import Cooldown, CooldownSnapshot
    from smart_model_router.core.gate import Gate
    from smart_model_router.core.lease import Lease
    from smart_model_router.core.target_state import TargetState
    from smart_model_router.flow.state import RouterState
    from smart_model_router.rehearsal.simulation.scenario import History
    from smart_model_router.rehearsal.simulation.trace import Held, Refused, Settled

_LAWS = frozenset({"wait", "wall", "off"})
_JUDGEMENT = frozenset({"cooldown", "slow_start"})
"""Refusals that no paced call meets."""
_PACED_FROM = 0.2
_LEAST_PATIENCE = 5.0
"""Seconds. Patience may change while a call is under way; it is never less."""


class Returns(Checker):
    """Rests last as long as the provider's own words and the rules say; probation and slow start follow them.

    No target is called while a rest binds, and none is refused for one that is over: by an account of its own
    (cooldown_oracle.py, outcome_record.py) of what became of every call. Law binds every call but one to a last resort;
    advice, probation and slow start bind those that are admitted while another target is free, and the success share
    the paced ones.
    """

    needs: ClassVar[frozenset[str]] = frozenset({"monotonic_clock"})

    def __init__(self, state: RouterState, history: History) -> None:
        super().__init__(state, history)
        self._accounts: dict[Cooldown, CooldownAccount] = {}
        self._records: dict[str, OutcomeRecord] = {}
        self._trials: dict[Lease, tuple[CooldownAccount, ...]] = {}
        self._decides: set[Lease] = set()
        """Calls that owe a verdict: probes, those on probation, and paced ones."""
        self._in_a_row: dict[tuple[str, bool], int] = {}
        """Failures in a row since the breaker last moved, by target and whether of streams."""
        self._back: dict[str, float] = {}
        gates = state.fleet.gates.values()
        self._hints = all(gate.config.measures.rate_limit_awareness for gate in gates)

    def admitted(self, held: Held, now: float) -> None:
        if held.last_resort:
            return
        gate, accounts = held.gate, self._both(held.gate)
        own = accounts[0]
        self._binds(held, accounts, now)
        cooling, in_flight = now < own.advice_until - EPSILON, self.recorder.in_flight(gate)
        trials = tuple(account for account in accounts if account.on_probation(now))
        if cooling and held.pacing != "off" and own not in trials:
            trials = (*trials, own)
        paced = held.pacing != "off" and bool(trials or self._steps(gate, now))
        if held.probing or trials or paced:
            self._decides.add(held.lease)
        if held.pacing == "off":
            self._judge(held, trials, now)
        elif not held.probing and paced:
            most = self._paced_limit(gate, now, but=held)
            if in_flight > most + EPSILON and (cooling or any(self._excluding(gate, trials, now))):
                self.violate("D4", now, f"{gate.id}: {in_flight} paced calls in flight, not {most:.2f}")
        if held.pacing != "off" and held.alternative is not None:
            self.violate("D3", now, f"{gate.id}: a paced call although {held.alternative} is free")
        if trials:
            self._trials[held.lease] = trials

    def _binds(self, held: Held, accounts: tuple[CooldownAccount, CooldownAccount], now: float) -> None:
        """Law binds every call, a cooldown those beside a free target, a model that is loading all but one."""
        gate, own = held.gate, accounts[0]
        for account in accounts:
            for reason, law in account.laws.items():
                if now < law.least - EPSILON and self._hints:
                    self.violate("rests", now, f"{gate.id}: asked {law.least - now:.3f} s before its {reason} ends")
        if now < own.advice_until - EPSILON and held.pacing == "off" and not held.probing:
            self.violate("rests", now, f"{gate.id}: asked {own.advice_until - now:.3f} s before its cooldown ends")
        in_flight = self.recorder.in_flight(gate)
        if in_flight > 1 and any(account.warming for account in accounts):
            self.violate("probation", now, f"{gate.id}: {in_flight} calls in flight while its model is loading")

    def refused(self, refused: Refused) -> None:
        gate, reason, now = refused.gate, refused.refusal.reason, refused.now
        accounts, due = self._both(gate), refused.refusal.retry_at or 0.0
        if refused.pacing != "off" and reason in _JUDGEMENT:
            self.violate("D3", now, f"{gate.id}: refused ({reason}) although no other target is free")
        if reason in _LAWS:
            laws = [law for account in accounts for kind, law in account.laws.items() if kind == reason]
            if self._hints and not any(law.least - EPSILON <= due <= law.most + EPSILON for law in laws):
                self.violate("rests", now, f"{gate.id}: told to come back {due - now:.3f} s after a {reason}")
        elif reason == "cooldown" and abs(due - accounts[0].advice_until) > EPSILON:
            self.violate("rests", now, f"{gate.id}: refused for a cooldown that is not, or not as long")
        elif reason == "probation":
            warming = any(account.warming for account in accounts) and self.recorder.in_flight(gate)
            on_trial = any(one is other for one in accounts for on in self._trials.values() for other in on)
            if not warming and (refused.pacing != "off" or not on_trial):
                self.violate("probation", now, f"{gate.id}: refused though no call is on probation")
        elif reason == "slow_start" and all(n + 1 <= allowed - EPSILON for _, n, allowed in self._steps(gate, now)):
            self.violate("slow_start", now, f"{gate.id}: refused though there is room")
        elif reason == "paced":
            in_flight, most = self.recorder.in_flight(gate), self._paced_limit(gate, now)
            if in_flight + 1 <= most - EPSILON and not self._record(gate).storms(now, in_flight):
                self.violate("D4", now, f"{gate.id}: refused with {in_flight} in flight of {most:.2f}")

    def proved(self, settled: Settled) -> None:
        self._answered(settled)
        self._compare(settled)

    def settled(self, settled: Settled) -> None:
        held, failure = settled.held, settled.failure
        if held.settlements > 1 or held.last_resort:
            return
        down = Bounds()
        if failure is None:
            if self._is_current(settled):
                self._in_a_row.pop((held.gate.id, held.lease.stream), None)
            if not held.proven:
                self._answered(settled)
        elif failure.failure_class is not FailureClass.CANCELLED:
            down = self._failed(settled)
        elif held.lease in self._decides:
            self._left(settled)
        self._trip(settled, down)
        self._breakers(settled)
        self._trials.pop(held.lease, None)
        self._decides.discard(held.lease)
        self._compare(settled)

    def let_in(self, gate: Gate, now: float) -> None:  # noqa: ARG002
        for account in self._both(gate):
            account.forgiven()
        self._record(gate).forgiven()
        for stream in (False, True):
            self._in_a_row.pop((gate.id, stream), None)
        self._back.pop(gate.id, None)
        self._back.pop(gate.provider.name, None)

    def _judge(self, held: Held, trials: tuple[CooldownAccount, ...], now: float) -> None:
        """The condition that binds an admission while another target is free."""
        for promise, what in self._excluding(held.gate, trials, now):
            self.violate(promise, now, what)

    def _excluding(self, gate: Gate, trials: tuple[CooldownAccount, ...], now: float) -> Iterator[tuple[str, str]]:
        """The promises that the newest call in flight breaks where another target is free: each with what it does."""
        if any(one is other for one in trials for on in self._trials.values() for other in on):
            yield "probation", f"{gate.id}: a second call on probation"
        for name, in_flight, allowed in self._steps(gate, now):
            if in_flight > allowed + EPSILON:
                yield "slow_start", f"{name}: {in_flight} in flight, not {allowed:.2f}"

    def _answered(self, settled: Settled) -> None:
        held, now = settled.held, settled.now
        own, shared = self._both(held.gate)
        record = self._record(held.gate)
        if record.counts_as_failure(None, load=False) is False and self._is_current(settled):
            record.succeeded(held.at, now, stream=held.lease.stream)
        ended = own.succeeded(held.at, now)
        ended = shared.succeeded(held.at, now) or ended
        if self._trials.pop(held.lease, ()) and ended:
            self._back[held.gate.id] = now
        self._breakers(settled)

    def _left(self, settled: Settled) -> None:
        """D5a: a call that decides over a return has a verdict, whether or not its caller stays.

        A stream with content is its caller's, and so is one whose recovery the caller asked for.
        """
        held, asked, failure = settled.held, settled.held.asked, settled.failure
        own = asked is not None and (asked.first_content is not None or asked.recovery is not None)
        sent = failure is not None and not failure.unsent
        early = settled.now - held.at < min(settled.patience, _LEAST_PATIENCE)
        if sent and early and not (own or held.proven or self.state.closed):
            self.violate("D5a", settled.now, f"{held.gate.id}: the verdict of {held.at:.3f} left with its caller")

    def _trip(self, settled: Settled, down: Bounds) -> None:
        """A closed breaker opens on failures in a row that the evidence calls down, and on nothing else."""
        held, before, after, now = settled.held, settled.before.own, settled.after.own, settled.now
        key, needed = (held.gate.id, held.lease.stream), held.gate.config.breaker.consecutive_failures
        in_a_row = self._in_a_row.get(key, 0)
        if before.closed and _opened(before, after):
            if in_a_row < needed or not down.may:
                self.violate("trips", now, f"{held.gate.id}: opened after {in_a_row} failures, without the evidence")
        elif before.closed and after.closed and in_a_row >= needed and down.must:
            self.violate("trips", now, f"{held.gate.id}: closed after {in_a_row} failures, against the evidence")
        if after.generation != before.generation:
            self._in_a_row.pop(key, None)

    def _failed(self, settled: Settled) -> Bounds:
        """Take in a failure; what bounds the breaker's test."""
        held, failure, gate, now = settled.held, settled.failure, settled.held.gate, settled.now
        assert failure is not None  # noqa: S101 - the caller has looked
        flights = self._flights(gate, but=held)
        record, ill, down = self._record(gate), Bounds(), Bounds()
        full = failure.failure_class is FailureClass.OVERLOADED
        load = full and record.is_load(held.at, now, flights, settled.patience)
        record.refused(failure, now)
        if record.counts_as_failure(failure.failure_class, load=load) and self._is_current(settled):
            ill, bounds = record.failed(held.at, now, flights, settled.patience, stream=held.lease.stream)
            if failure.failure_class.policy.breaker is not BreakerCount.PROVIDER:  # else it moves the transport's alone
                key, down = (gate.id, held.lease.stream), bounds
                self._in_a_row[key] = self._in_a_row.get(key, 0) + 1
        if load and failure.wait is None:
            return down
        owner = gate.credential if failure.credential_wide else gate.cooldown
        account = self._of(owner)
        offline = gate.provider.remote and gate.provider.connectivity.offline
        advised = settled.after.own.closed and settled.after.transport.closed and not offline
        began = self._began_advice(settled)
        if account.may_advise(failure.failure_class, held.at, now):
            if began and not ill.may:
                self.violate("rests", now, f"{gate.id}: a cooldown without the evidence for one")
            elif ill.must and advised and not began:
                self.violate("rests", now, f"{gate.id}: no cooldown, though the evidence calls for one")
        concurrency = failure.wait is not None and failure.wait.scope == "concurrency"
        until = account.failed(
            failure,
            held.at,
            held.lease.sequence,
            now,
            advised=advised,
            ill=began,
            paced=failure.failure_class is FailureClass.RATE_LIMITED and gate.limits.seen and not concurrency,
        )
        if began:
            record.rest_began()
        if until is not None:
            for other in self.state.fleet.gates.values():
                if owner in (other.cooldown, other.credential):
                    self.history.bind(other.id, now, until)
        return down

    def _breakers(self, settled: Settled) -> None:
        gate, before, after, now = settled.held.gate, settled.before, settled.after, settled.now
        if _opened(before.own, after.own):
            self._tripped(gate)
        if _opened(before.transport, after.transport):
            self._back.pop(gate.provider.name, None)
            for other in gate.provider.gates.values():
                self._tripped(other)
        if not before.transport.closed and after.transport.closed:
            self._back[gate.provider.name] = now
            self._back.update(dict.fromkeys(gate.provider.gates, now))
        if not before.own.closed and after.own.closed:
            self._back[gate.id] = now

    def _tripped(self, gate: TargetState) -> None:
        self._of(gate.cooldown).tripped()
        self._record(gate).tripped()

    def _compare(self, settled: Settled) -> None:
        gate = settled.held.gate
        for account, shot in zip(self._both(gate), settled.after.rests, strict=True):
            if self._hints:
                self._compare_laws(gate, account, shot, settled.now)
            if max(account.advice_until, shot.advice_until) > settled.now and (
                abs(account.advice_until - shot.advice_until) > EPSILON
            ):
                lasts, should = shot.advice_until - settled.now, account.advice_until - settled.now
                self.violate("rests", settled.now, f"{gate.id}: cools down for {lasts:.3f} s, not {should:.3f}")

    def _compare_laws(self, gate: Gate, account: CooldownAccount, shot: CooldownSnapshot, now: float) -> None:
        for reason in account.laws.keys() | shot.laws.keys():
            law, theirs = account.laws.get(reason), shot.laws.get(reason)
            if law is None or theirs is None or not law.least - EPSILON <= theirs.until <= law.most + EPSILON:
                should = "no such thing" if law is None else f"{law.least - now:.3f} to {law.most - now:.3f}"
                lasts = "none" if theirs is None else f"for {theirs.until - now:.3f} s"
                self.violate("rests", now, f"{gate.id}: {reason} {lasts}, not {should}")
            if law is not None and theirs is not None and law.least < law.most:
                law.least = law.most = min(max(theirs.until, law.least), law.most)

    def _steps(self, gate: Gate, now: float) -> list[tuple[str, int, float]]:
        """The calls in flight, and the number that slow start allows, while there is one."""
        back, provider = self._back, gate.provider
        takes, slots = gate.config.slow_start, provider.bulkhead.slots
        steps = []
        if (elapsed := now - back.get(gate.id, now - takes)) < takes:
            steps.append((gate.id, self.recorder.in_flight(gate), 1 + (slots - 1) * elapsed / takes))
        if (elapsed := now - back.get(provider.name, now - takes)) < takes:
            steps.append((provider.name, self.recorder.at_provider(provider.name), 1 + (slots - 1) * elapsed / takes))
        return steps

    def _paced_limit(self, gate: Gate, now: float, *, but: Held | None = None) -> float:
        """D4: slots x min(1, s / 0.2), at least one."""
        share = self._record(gate).success_share(self._flights(gate, but=but), now)
        return max(1.0, gate.provider.bulkhead.slots * min(1.0, share / _PACED_FROM))

    def _flights(self, gate: Gate, *, but: Held | None = None) -> list[Flight]:
        held = self.recorder.held.values()
        return [
            Flight(one.at, one.lease.stream, one.begun)
            for one in held
            if one.gate is gate and one is not but and not one.last_resort
        ]

    def _is_current(self, settled: Settled) -> bool:
        """True when the call's verdict still moves the target's breaker, and so is evidence."""
        held = settled.held
        return held.own is not None and held.own == settled.before.own.generation

    def _began_advice(self, settled: Settled) -> bool:
        before, after = settled.before.rests[0], settled.after.rests[0]
        return after.advice_until > settled.now and after.advice_until != before.advice_until

    def _both(self, gate: Gate) -> tuple[CooldownAccount, CooldownAccount]:
        return self._of(gate.cooldown), self._of(gate.credential)

    def _record(self, gate: TargetState) -> OutcomeRecord:
        if gate.id not in self._records:
            self._records[gate.id] = OutcomeRecord(gate.config.cooldown, gate.config.breaker)
        return self._records[gate.id]

    def _of(self, rests: Cooldown) -> CooldownAccount:
        account = self._accounts.get(rests)
        if account is None:
            config = next(iter(self.state.fleet.gates.values())).config.cooldown
            account = self._accounts[rests] = CooldownAccount(config)
        return account


def _opened(before: BreakerSnapshot, after: BreakerSnapshot) -> bool:
    return after.generation != before.generation and after.open_until is not None
