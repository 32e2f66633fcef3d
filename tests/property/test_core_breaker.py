"""The breaker under any history: one probe, verdicts fenced by generation, one OPEN a trip, bounded open times."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from smart_model_router.core.breaker import BreakerConfig, BreakerState, CircuitBreaker, Permit, Transition, Verdict
from smart_model_router.domain.outcome import Refusal

# Steps that line up with the back-off of eager probes (1, 2, 4, 5 s), the bases (5 and 30 s), reopenings and the caps.
STEPS = st.sampled_from([0.0, 0.001, 1.0, 2.0, 4.0, 4.999, 5.0, 7.5, 15.0, 29.999, 30.0, 30.001, 45.0, 600.0])
LOSSES = st.sampled_from([None, 0.0, 0.05, 0.5, 1.0, 3.0, 30.0])
ROLLS = st.sampled_from([0.0, 0.5, 0.999])
VERDICTS: st.SearchStrategy[Verdict] = st.sampled_from(["failure", "failure", "failure", "success", "ignored"])
CONFIGS = st.sampled_from(
    [BreakerConfig(), BreakerConfig(half_open_successes=2), BreakerConfig(consecutive_failures=1, open_cap=50.0)]
)


class BreakerHistory(RuleBasedStateMachine):
    """Calls begin and end in any order; the operator interferes; time moves by steps that line up."""

    @initialize(config=CONFIGS, start=st.sampled_from([0.0, 1e6]))
    def begin(self, config: BreakerConfig, start: float) -> None:
        """A new breaker at some instant."""
        self.breaker = CircuitBreaker(config)
        self.now = start
        self.permits: list[Permit] = []
        self.recorded: list[Permit] = []
        self.last_length = 0.0
        self.losses: list[float | None] = []

    @rule(step=STEPS)
    def wait(self, step: float) -> None:
        """Time passes."""
        self.now += step

    @rule()
    def wait_until_due(self) -> None:
        """Time passes to the very instant a probe is due."""
        self.now = max(self.now, self.breaker.open_until or 0.0)

    @rule()
    def wait_until_eager(self) -> None:
        """Time passes to the instant a probe is due where no other target is free: never after `open_until`."""
        due = self.breaker.open_until
        if due is not None:
            assert self.breaker.eager_at <= due
            self.now = max(self.now, self.breaker.eager_at)

    @rule(times=st.sampled_from([1, 5, 10]), eager=st.booleans())
    def acquire(self, times: int, eager: bool) -> None:
        """Several callers ask at one instant: all pass while CLOSED, one at most when a probe is due, else none."""
        state, busy = self.breaker.state(self.now), self.breaker.probe_in_flight
        if eager and state is BreakerState.OPEN and self.now >= self.breaker.eager_at:
            state = BreakerState.HALF_OPEN
        told = self.breaker.refusal(self.now, eager=eager)
        got = [self.breaker.try_acquire(self.now, eager=eager) for _ in range(times)]
        granted = [permit for permit in got if isinstance(permit, Permit)]
        refused = [refusal for refusal in got if isinstance(refusal, Refusal)]
        allowed = {BreakerState.CLOSED: times, BreakerState.HALF_OPEN: 0 if busy else 1}.get(state, 0)
        assert len(granted) == allowed
        assert (told is None) == (allowed > 0)
        assert all(permit.probe == (state is BreakerState.HALF_OPEN) for permit in granted)
        assert all(refusal.retry_at is None or refusal.retry_at > self.now for refusal in refused)
        self.permits += granted

    @precondition(lambda self: self.permits)
    @rule(data=st.data(), verdict=VERDICTS, roll=ROLLS, down=st.booleans(), lost=LOSSES)
    def record(self, data: st.DataObject, verdict: Verdict, roll: float, down: bool, lost: float | None) -> None:
        """A call ends, or is recorded a second time. A call of a CLOSED breaker opens it only where it is down."""
        permit = data.draw(st.sampled_from(self.permits))
        stale = permit in self.recorded or permit.generation != self.breaker.generation
        self.recorded.append(permit)
        before = self.seen()
        moved = self.breaker.record(permit, verdict, self.now, roll=roll, down=down, lost=lost)
        if stale or verdict == "ignored":  # I2, I3, I4: late verdicts move nothing and extend nothing
            assert moved is None
            assert self.seen() == before
        assert moved is None or permit.probe or down
        self.check(moved, lost)

    @rule(roll=ROLLS, lost=LOSSES, down=st.booleans())
    def fail_in_a_row(self, roll: float, lost: float | None, down: bool) -> None:
        """A burst of calls that all fail: the breaker opens where they say that the target is down."""
        for _ in range(self.breaker.config.consecutive_failures):
            got = self.breaker.try_acquire(self.now)
            if isinstance(got, Permit):
                moved = self.breaker.record(got, "failure", self.now, roll=roll, down=down, lost=lost)
                assert moved is None or got.probe or down
                self.check(moved, lost)

    @rule(step=STEPS, eager=st.booleans(), lost=LOSSES)
    def ask_a_tripped_one(self, step: float, eager: bool, lost: float | None) -> None:
        """The breaker opens, and some time later callers ask."""
        self.close()
        self.fail_in_a_row(0.0, lost, down=True)
        self.now += step
        self.acquire(2, eager)

    @rule(times=st.integers(1, 6), roll=ROLLS, lost=LOSSES)
    def fail_probes(self, times: int, roll: float, lost: float | None) -> None:
        """An outage of which so many probes notice in a row."""
        for _ in range(times):
            self.wait_until_due()
            self.fail_in_a_row(roll, lost, down=True)

    @rule(verdict=VERDICTS, steps=st.sampled_from(["isolated", "tripped", "due"]))
    def stale_permit(self, verdict: Verdict, steps: str) -> None:
        """A call of the closed breaker ends when that is long past: whatever came of it, it moves nothing (I3)."""
        self.breaker.close(self.now)
        permit = self.breaker.try_acquire(self.now)
        assert isinstance(permit, Permit)
        if steps == "isolated":
            self.breaker.isolate(self.now)
        else:
            self.fail_in_a_row(0.0, 3.0, down=True)
        if steps == "due":
            self.wait_until_due()
            self.breaker.try_acquire(self.now)
        before = self.seen()
        assert self.breaker.record(permit, verdict, self.now) is None
        assert self.seen() == before
        self.close()

    @rule(seconds=st.sampled_from([-1.0, 0.0, 10.0, 600.0]), index=st.sampled_from([0, 1, 5, 10**6]))
    def adopt(self, seconds: float, index: int) -> None:
        """Another process tells that it is OPEN: told once, never until a nearer instant, no probe of ours decides."""
        before, was = self.breaker.open_until, self.breaker.snapshot()
        moved = self.breaker.adopt(self.now + seconds, index, self.now, reason="shared")
        assert (moved is not None) == was.closed
        if self.breaker.isolated:
            assert self.breaker.snapshot() == was
            return
        due = self.breaker.open_until
        assert due == max(self.now + seconds, before if before is not None else self.now + seconds)
        assert self.breaker.generation == was.generation + 1
        assert not self.breaker.probe_in_flight

    @rule()
    def isolate(self) -> None:
        """The operator's no wins."""
        self.check(self.breaker.isolate(self.now))
        assert self.breaker.state(self.now) is BreakerState.ISOLATED

    @rule()
    def close(self) -> None:
        """The operator's yes wins."""
        self.check(self.breaker.close(self.now))
        assert self.breaker.state(self.now) is BreakerState.CLOSED
        self.last_length, self.losses = 0.0, []

    @rule()
    def make_due(self) -> None:
        """Whatever was OPEN may be probed."""
        self.breaker.make_due(self.now)
        assert self.breaker.state(self.now) is not BreakerState.OPEN

    @invariant()
    def one_probe_at_most(self) -> None:
        """I1: of all permits out there at most one is a probe that can still decide."""
        out = [p for p in self.permits if p.probe and p not in self.recorded]
        probes = [p for p in out if p.generation == self.breaker.generation]
        assert len(probes) <= 1
        assert self.breaker.probe_in_flight == bool(probes)

    def seen(self) -> tuple[BreakerState, float | None, int]:
        """What an observer can see, a probe in flight apart."""
        return self.breaker.state(self.now), self.breaker.open_until, self.breaker.generation

    def check(self, moved: Transition | None, lost: float | None = 0.0) -> None:
        """Every transition is told once, from where it was, and an open time is above 0 and within its cap (D7)."""
        if moved is None:
            return
        assert moved.from_state is not moved.to_state
        assert moved.at == self.now
        if moved.to_state is not BreakerState.OPEN:
            assert moved.open_until is None
            self.last_length, self.losses = 0.0, []
            return
        assert moved.from_state in (BreakerState.CLOSED, BreakerState.HALF_OPEN)  # I4: never OPEN -> OPEN
        assert moved.open_until is not None
        length = moved.open_until - self.now
        assert 0 < length <= self.breaker.config.open_cap + 1e-6  # I5
        self.losses.append(lost)
        known = [seconds for seconds in self.losses if seconds is not None]
        assert len(known) < len(self.losses) or length <= max(15.0, 20 * max(known)) + 1e-6
        if moved.from_state is BreakerState.HALF_OPEN:
            assert length >= self.last_length - 1e-6  # I5: non-decreasing over consecutive failed probes
        self.last_length = length


BreakerHistory.TestCase.settings = settings(stateful_step_count=40)
TestBreakerHistory = BreakerHistory.TestCase
