"""Two gates of one provider and one credential under any history: what is taken is given back, deadlines stand."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from smart_model_router.core.breaker import BreakerState
from smart_model_router.core.cooldown import Cooldown
from smart_model_router.core.gate import Gate, GateSnapshot, Pacing
from smart_model_router.core.lease import Lease, Settlement
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal, Scope, Usage, Wait

SLOTS = 6
STEPS = st.sampled_from([0.0, 0.001, 1.0, 2.0, 3.0, 29.999, 30.0, 30.001, 60.0, 120.0, 900.0, 3600.0])
CLASSES = st.sampled_from(list(FailureClass))
STORMS = st.sampled_from(
    [
        FailureClass.OVERLOADED,
        FailureClass.TIMEOUT,
        FailureClass.TRANSPORT,
        FailureClass.RATE_LIMITED,
        FailureClass.QUOTA,
    ]
)
HINTS = st.sampled_from([None, None, 0.0, 0.05, 1.5, 3.0, 300.0])
SCOPES: st.SearchStrategy[Scope] = st.sampled_from(["minute", "minute", "concurrency", "overload", "day"])
USAGES = st.sampled_from([None, Usage(10, 10), Usage(1000, 1000)])
ROLLS = st.sampled_from([0.0, 0.5, 0.999, 0.999])
PACINGS: st.SearchStrategy[Pacing] = st.sampled_from(["off", "on", "eager"])


@dataclass
class Held:
    """A lease somebody holds, and what its admission knew."""

    gate: Gate
    lease: Lease
    breaker_probe: bool


@dataclass(frozen=True)
class Deadlines:
    """The instants that bind a set of rests; None where nothing binds."""

    law: Refusal | None
    advice: float | None


class GateHistory(RuleBasedStateMachine):
    """Calls of both kinds begin and end in any order and way; the operator interferes; time moves in steps."""

    @initialize(limited=st.booleans(), start=st.sampled_from([0.0, 1e6]))
    def begin(self, limited: bool, start: float) -> None:
        """Two targets of one remote provider, the first with known limits or without."""
        self.now = start
        self.provider = ProviderState("p", slots=SLOTS, remote=True, connectivity=Connectivity(1))
        limits = RateLimitTracker(rpm=30, tpm=60_000) if limited else None
        self.gates = [Gate("p/m", self.provider, limits=limits), Gate("p/n", self.provider)]
        self.held: list[Held] = []
        self.began: dict[tuple[int, str], float] = {}
        self.hinted: dict[int, int] = {}

    # ---------------------------------------------------------------------------------------- what happens

    @rule(step=STEPS)
    def wait(self, step: float) -> None:
        """Time passes."""
        self.now += step

    @rule(which=st.integers(0, 1), stream=st.booleans())
    def wait_for_the_refusal_to_end(self, which: int, stream: bool) -> None:
        """Time passes to the very instant a refusal named."""
        self.sit_out(which, stream)

    def sit_out(self, which: int, stream: bool) -> None:
        """Jump to the instant at which the refusal that stands now ends."""
        refusal = self.gates[which].refusal(Cost(10, 10), self.now, stream=stream)
        if refusal is not None:
            self.now = max(self.now, refusal.retry_at or 0.0)

    @rule(
        which=st.integers(0, 1),
        times=st.sampled_from([1, 2, 20]),
        stream=st.booleans(),
        pacing=PACINGS,
        roll=ROLLS,
    )
    def ask(self, which: int, times: int, stream: bool, pacing: Pacing, roll: float) -> None:
        """Several callers ask at one instant."""
        self.ask_for(self.gates[which], times, stream, pacing, roll)

    @rule(pacing=PACINGS)
    def rush(self, pacing: Pacing) -> None:
        """Everybody asks everyone at one instant."""
        for gate in self.gates:
            for stream in (False, True):
                self.ask_for(gate, 2, stream, pacing, 0.999)

    def ask_for(self, gate: Gate, times: int, stream: bool, pacing: Pacing, roll: float) -> None:
        """Ask so often, and look at what a refusal left and what an admission passed over."""
        for _ in range(times):
            before, counted, share = self.taken(), self.counted(), gate.evidence.success_share(self.now)
            probing = not gate.steady_breakers(stream=stream)
            got = gate.try_admit(Cost(10, 10), self.now, roll, stream=stream, pacing=pacing)
            if isinstance(got, Lease):
                self.admitted(gate, got, stream, pacing, probing, share)
            else:
                assert self.taken() == before  # all or none
                assert got.reason == "throttle" or self.counted() == counted  # I12
                assert got.retry_at is None or got.retry_at > self.now
                assert pacing == "off" or self.binds(gate, got)

    def admitted(
        self, gate: Gate, lease: Lease, stream: bool, pacing: Pacing, probing: bool, success_share: float
    ) -> None:
        """Law was not passed over under any pacing, judgement under none but its own (D3, D4)."""
        assert gate.cooldown.law(self.now) is None
        assert gate.credential.law(self.now) is None
        assert pacing != "off" or probing or gate.cooldown.advice(self.now) is None
        for breaker in (gate.breakers["stream" if stream else "whole"], self.provider.transport):
            assert not breaker.isolated
            assert breaker.state(self.now) is not BreakerState.OPEN or (
                pacing == "eager" and self.now >= breaker.eager_at
            )
        assert not gate.cooldown.on_probation(self.now) or lease.probe
        assert not probing or lease.probe
        trials = lease.snapshot().trials
        assert pacing != "off" or not any(
            trial in held.lease.snapshot().trials for held in self.held for trial in trials
        )
        assert not lease.paced or gate.in_flight <= max(1.0, SLOTS * success_share / 0.2 + 1e-6)
        self.held.append(Held(gate, lease, probing))

    def binds(self, gate: Gate, refusal: Refusal) -> bool:
        """Whether a refusal where no other target is free is law, a probe's, or pacing of what is in flight (D3)."""
        if refusal.reason in {"paced", "throttle"}:
            return gate.in_flight > 0
        if refusal.reason == "probation":
            return gate.in_flight > 0 and (gate.cooldown.warming or gate.credential.warming)
        return refusal.reason not in {"cooldown", "slow_start"}

    @precondition(lambda self: self.held)
    @rule(data=st.data(), failure_class=CLASSES, hint=HINTS, scope=SCOPES, wide=st.booleans(), usage=USAGES, roll=ROLLS)
    def fail(
        self,
        data: st.DataObject,
        failure_class: FailureClass,
        hint: float | None,
        scope: Scope,
        wide: bool,
        usage: Usage | None,
        roll: float,
    ) -> None:
        """A call ends badly: no deadline of its kind gets shorter, but by a later-sent hint or a trip (I6)."""
        held = self.pick(data)
        wait = None if hint is None else Wait(hint, scope)
        failure = Failure(failure_class, wait=wait, credential_wide=wide)
        before = [self.deadlines(rests) for rests in self.all_rests()]
        settlement = held.lease.settle(failure, self.now, usage=usage, roll=roll)
        for old, rests in zip(before, self.all_rests(), strict=True):
            new = self.deadlines(rests)
            mine = self.hinted.get(id(rests), 0)
            if old.law is not None and (hint is None or old.law.reason == "off" or held.lease.sequence < mine):
                assert new.law is not None
                assert new.law.reason != old.law.reason or (new.law.retry_at or 0) >= (old.law.retry_at or 0)
            if old.advice is not None and not opened(settlement):
                assert new.advice is not None
                assert new.advice >= old.advice
            self.note(rests, old, new)
            if new.law is not None and new.law != old.law:
                self.hinted[id(rests)] = 0 if hint is None else held.lease.sequence
        self.settled(held, settlement)

    @rule(which=st.integers(0, 1), stream=st.booleans(), failure_class=STORMS, sit_out=st.booleans())
    def storm(self, which: int, stream: bool, failure_class: FailureClass, sit_out: bool) -> None:
        """Everybody who is let in fails at once; whoever sits it out comes back at the instant it ends."""
        self.storm_over(self.gates[which], stream, failure_class)
        if sit_out:
            self.sit_out(which, stream)

    @rule(which=st.integers(0, 1), older_ends_last=st.booleans())
    def hints_cross(self, which: int, older_ends_last: bool) -> None:
        """Two calls are told to wait, for 300 s and for 3: the later-sent answer holds, or the longer (I6)."""
        gate = self.let_in(which)
        older, newer = (self.must_admit(gate) for _ in range(2))
        long, short = Wait(300.0), Wait(3.0)
        first, last = ((newer, long), (older, short)) if older_ends_last else ((older, long), (newer, short))
        for lease, wait in (first, last):
            lease.settle(Failure(FailureClass.RATE_LIMITED, wait=wait), self.now)
        law = gate.cooldown.law(self.now)
        assert law is not None
        assert law.retry_at == self.now + (long if older_ends_last else short).seconds
        gate.close(self.now)

    @rule(which=st.integers(0, 1), told=st.booleans(), step=st.sampled_from([0.001, 1.0]))
    def success_of_an_older_call(self, which: int, told: bool, step: float) -> None:
        """A rest begins while a call is under way: that call's success leaves it alone (I6)."""
        gate = self.let_in(which)
        older = self.must_admit(gate)
        self.now += step
        wait = Wait(300.0) if told else None
        for _ in range(2):
            failing = self.must_admit(gate)
            failing.settle(Failure(FailureClass.RATE_LIMITED if told else FailureClass.TIMEOUT, wait=wait), self.now)
            if told:
                break
        before = self.deadlines(gate.cooldown)
        assert before.law or before.advice
        self.now += step
        older.settle(None, self.now)
        assert self.deadlines(gate.cooldown) == before
        gate.close(self.now)

    @rule(which=st.integers(0, 1), times=st.integers(2, SLOTS))
    def crowd_at_the_end_of_a_cooldown(self, which: int, times: int) -> None:
        """A cooldown ends, everybody comes at once: one is let in, by our own count, until it has answered (I1)."""
        gate = self.let_in(which)
        for _ in range(2):
            self.must_admit(gate).settle(Failure(FailureClass.TIMEOUT), self.now)
        self.now = max(self.now, self.deadlines(gate.cooldown).advice or 0.0)
        asked = [gate.try_admit(Cost(10, 10), self.now, 0.999) for _ in range(times)]
        leases = [lease for lease in asked if isinstance(lease, Lease)]
        for lease in leases:
            lease.release(self.now)
        gate.close(self.now)
        assert len(leases) <= 1

    @rule(which=st.integers(0, 1))
    def crowd_on_an_ill_target(self, which: int) -> None:
        """Four failures of each kind and one success: nothing else is free, and the calls are paced (D4)."""
        gate = self.let_in(which)
        for stream in (False, True):
            for _ in range(4):
                lease = self.must_admit(gate, stream, "on")
                self.now += 1.0  # calls in flight that are younger than this have outlived nothing
                lease.settle(Failure(FailureClass.TIMEOUT), self.now)
        self.ask_for(gate, SLOTS, False, "on", 0.999)
        assert 1 <= gate.in_flight < SLOTS

    @rule(failure_class=st.sampled_from([FailureClass.SERVER_ERROR, FailureClass.TIMEOUT]))
    def outage(self, failure_class: FailureClass) -> None:
        """Both targets are as new; both fail for both kinds; everybody comes back when all are due."""
        self.let_in(0)
        for which in (0, 1):
            for stream in (False, True):
                self.storm_over(self.gates[which], stream, failure_class)
        for which in (0, 1):
            for stream in (False, True):
                self.sit_out(which, stream)
        self.rush("off")

    @precondition(lambda self: self.held)
    @rule(data=st.data(), usage=USAGES, slow=st.sampled_from([False, False, False, True]))
    def succeed(self, data: st.DataObject, usage: Usage | None, slow: bool) -> None:
        """A call succeeds: it ends only what began before it was admitted (I6)."""
        held = self.pick(data)
        before = [self.deadlines(rests) for rests in self.all_rests()]
        settlement = held.lease.settle(None, self.now, usage=usage, slow=slow)
        self.check_success(held, before, settlement)
        self.settled(held, settlement)

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def prove(self, data: st.DataObject) -> None:
        """A stream delivers enough; the call goes on."""
        held = data.draw(st.sampled_from(self.held))
        before = [self.deadlines(rests) for rests in self.all_rests()]
        settlement = held.lease.prove(self.now)
        self.check_success(held, before, settlement)
        held.breaker_probe = False
        assert held.lease.prove(self.now) == Settlement()

    @precondition(lambda self: self.held)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        """The caller leaves: nothing is concluded."""
        held = self.pick(data)
        assert held.lease.release(self.now) == Settlement()
        self.settled(held, Settlement())

    @rule(which=st.integers(0, 1))
    def operate(self, which: int) -> None:
        """The operator isolates a target and lets it in again: everything of it is forgotten."""
        gate = self.gates[which]
        gate.isolate(self.now)
        assert gate.refusal(Cost(1, 1), self.now) == Refusal("isolated")
        gate.close(self.now)
        assert gate.cooldown.law(self.now) is None
        assert gate.credential.law(self.now) is None
        assert gate.cooldown.advice(self.now) is None

    # ---------------------------------------------------------------------------------------- what always holds

    @invariant()
    def what_is_taken_is_what_is_held(self) -> None:
        """I2, I10: every slot belongs to a lease that somebody holds, and there are never more than slots."""
        assert self.provider.bulkhead.in_flight == len(self.held) <= SLOTS
        for gate in self.gates:
            assert gate.in_flight == sum(held.gate is gate for held in self.held)

    @invariant()
    def one_probe_and_one_trial_at_most(self) -> None:
        """I1: one probe in flight per provider; every call on probation is one that somebody holds."""
        probes = sum(held.breaker_probe for held in self.held)
        assert probes <= 1
        assert self.provider.probe_in_flight == bool(probes)
        for rests in self.all_rests():
            assert rests.on_trial == sum(rests in held.lease.snapshot().trials for held in self.held)

    @invariant()
    def buckets_are_within_their_bounds(self) -> None:
        """I11: never above the capacity."""
        limits = self.gates[0].limits
        for bucket in (limits.requests, limits.tokens):
            assert bucket is None or bucket.level(self.now) <= bucket.capacity
            assert bucket is None or bucket.snapshot().level == bucket.level(self.now)

    def teardown(self) -> None:
        """When everybody has left nothing is taken any more (I2)."""
        for held in list(self.held):
            self.held.remove(held)
            self.settled(held, held.lease.release(self.now))
        assert self.provider.bulkhead.in_flight == 0
        assert not self.provider.probe_in_flight
        assert all(rests.on_trial == 0 for rests in self.all_rests())

    # ---------------------------------------------------------------------------------------- helpers

    def storm_over(self, gate: Gate, stream: bool, failure_class: FailureClass) -> None:
        """Everybody who is let in fails at once."""
        asked = (gate.try_admit(Cost(10, 10), self.now, 0.999, stream=stream) for _ in range(SLOTS + 1))
        leases = [lease for lease in asked if isinstance(lease, Lease)]
        assert len(leases) + len(self.held) <= SLOTS  # I10
        for lease in leases:
            before = [self.deadlines(rests) for rests in self.all_rests()]
            lease.settle(Failure(failure_class), self.now)
            for old, rests in zip(before, self.all_rests(), strict=True):
                self.note(rests, old, self.deadlines(rests))
                self.hinted[id(rests)] = 0

    def let_in(self, which: int) -> Gate:
        """A gate as new, to which nothing else is under way."""
        for held in list(self.held):
            self.held.remove(held)
            held.lease.release(self.now)
        self.now += 3600.0  # whatever the buckets owe is paid
        gate = self.gates[which]
        for each in self.gates:
            each.close(self.now)
        self.must_admit(gate).settle(None, self.now)  # slots that "too many at once" had taken are back
        self.now += 1.0  # an answer to a call of the same instant would speak against failures
        return gate

    def must_admit(self, gate: Gate, stream: bool = False, pacing: Pacing = "off") -> Lease:
        """A lease of a gate to which nothing stands in the way."""
        got = gate.try_admit(Cost(10, 10), self.now, 0.999, stream=stream, pacing=pacing)
        assert isinstance(got, Lease)
        return got

    def pick(self, data: st.DataObject) -> Held:
        """Take one of the held leases out."""
        return self.held.pop(data.draw(st.integers(0, len(self.held) - 1)))

    def settled(self, held: Held, settlement: Settlement) -> None:
        """Once settled, nothing moves any more; and one trip is one OPEN (I2, I4)."""
        for moved in settlement.moved:
            assert moved.transition.from_state is not moved.transition.to_state
        before = self.taken()
        assert held.lease.settle(Failure(FailureClass.SERVER_ERROR), self.now) == Settlement()
        assert held.lease.release(self.now) == Settlement()
        assert self.taken() == before

    def check_success(self, held: Held, before: list[Deadlines], settlement: Settlement) -> None:
        """Rests of other targets stand; own ones stand when they began at or after the call's admission."""
        own = (held.gate.cooldown, held.gate.credential)
        for old, rests in zip(before, self.all_rests(), strict=True):
            new = self.deadlines(rests)
            law_began = self.began.get((id(rests), old.law.reason if old.law else ""), 0.0)
            if old.law is not None and (rests not in own or held.lease.admitted_at <= law_began):
                assert new.law == old.law
            advice_began = self.began.get((id(rests), "advice"), 0.0)
            older = rests not in own or held.lease.admitted_at < advice_began
            if old.advice is not None and older and not opened(settlement):
                assert new.advice == old.advice

    def note(self, rests: Cooldown, old: Deadlines, new: Deadlines) -> None:
        """Remember when what binds now began."""
        if new.law is not None and new.law != old.law:
            self.began[(id(rests), new.law.reason)] = self.now
        if new.advice is not None and new.advice != old.advice:
            self.began[(id(rests), "advice")] = self.now

    def all_rests(self) -> list[Cooldown]:
        """Both targets' and the credential's."""
        return [gate.cooldown for gate in self.gates] + [self.gates[0].credential]

    def deadlines(self, rests: Cooldown) -> Deadlines:
        """What binds now."""
        advice = rests.advice(self.now)
        return Deadlines(rests.law(self.now), None if advice is None else advice.retry_at)

    def taken(self) -> object:
        """Everything a refusal must leave alone."""
        limits = self.gates[0].limits
        return (
            self.provider.bulkhead.in_flight,
            self.provider.probe_in_flight,
            [gate.in_flight for gate in self.gates],
            [rests.on_trial for rests in self.all_rests()],
            [bucket and bucket.level(self.now) for bucket in (limits.requests, limits.tokens)],
            [(shot.own, shot.transport, shot.rests) for shot in self.shots()],
        )

    def counted(self) -> object:
        """What the throttles of both targets and of their provider count at this instant."""
        for throttle in (self.provider.throttle, *(gate.throttle for gate in self.gates)):
            throttle.probability(self.now)
        return [shot.throttles for shot in self.shots()]

    def shots(self) -> list[GateSnapshot]:
        """Both gates, for both kinds of calls."""
        return [gate.snapshot(stream=stream) for gate in self.gates for stream in (False, True)]


def opened(settlement: Settlement) -> bool:
    """Whether a breaker tripped: it decides among advice from then on."""
    return any(moved.transition.to_state is BreakerState.OPEN for moved in settlement.moved)


GateHistory.TestCase.settings = settings(stateful_step_count=50)
TestGateHistory = GateHistory.TestCase
