"""The token bucket under any history: never above its capacity, never more than burst + rate x time, exact waits."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from smart_model_router.core.bucket import TokenBucket

STEPS = st.sampled_from([0.0, 0.001, 0.5, 1.0, 29.999, 30.0, 30.001, 60.0, 3600.0])
AMOUNTS = st.sampled_from([1.0, 2.5, 30.0, 59.999, 60.0])
BUCKETS = st.sampled_from([(60.0, 1.0), (60.0, 60.0), (60.0, 7.0 / 60.0)])
TOLERANCE = 1e-3
"""Tokens: instants are floats, and a million seconds of them are added up here."""


class BucketHistory(RuleBasedStateMachine):
    """Askers take what is due, settle with less or more, a provider holds the bucket, time passes."""

    @initialize(size=BUCKETS, start=st.sampled_from([0.0, 1e6]))
    def begin(self, size: tuple[float, float], start: float) -> None:
        """A full bucket at some instant."""
        self.capacity, self.rate = size
        self.bucket = TokenBucket(self.capacity, self.rate)
        self.start = self.now = start
        self.bucket.level(start)
        self.taken: list[float] = []
        self.granted = self.refunded = self.owed = 0.0
        self.held_until = start

    @rule(step=STEPS)
    def wait(self, step: float) -> None:
        """Time passes."""
        self.now += step

    @rule(amount=AMOUNTS)
    def ask(self, amount: float) -> None:
        """Whoever is due takes; whoever is not is told an instant that is exact."""
        due = self.bucket.due_at(amount, self.now)
        assert due >= self.now
        if due == self.now:
            assert self.now >= self.held_until
            self.bucket.take(amount, self.now)
            self.taken.append(amount)
            self.granted += amount
        else:
            assert self.twin().due_at(amount, due) <= due + 1e-6  # neither too late ...
            if due - self.now > 0.01:
                assert self.twin().due_at(amount, due - 0.01) > due - 0.01  # ... nor too early

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), share=st.sampled_from([0.0, 0.5, 1.0, 2.0]))
    def settle(self, data: st.DataObject, share: float) -> None:
        """A reservation is settled by `share` of what it took: a refund below 1, debt above."""
        amount = self.taken.pop(data.draw(st.integers(0, len(self.taken) - 1)))
        self.bucket.give_back(amount - share * amount, self.now)
        self.refunded += max(0.0, amount - share * amount)
        self.owed += max(0.0, share * amount - amount)

    @rule(seconds=st.sampled_from([0.05, 3.0, 300.0]))
    def hold(self, seconds: float) -> None:
        """The provider names an instant: nothing at all is there before it."""
        self.bucket.empty_until(self.now + seconds, self.now)
        self.held_until = self.now + seconds
        assert self.bucket.level(self.now) <= 0.0
        assert self.bucket.due_at(1.0, self.now) >= self.held_until + 1.0 / self.rate - 1e-6

    @rule()
    def release(self) -> None:
        """The operator forgets the instant."""
        self.bucket.release(self.now)
        self.held_until = min(self.held_until, self.now)

    @invariant()
    def the_level_is_within_its_bounds(self) -> None:
        """I11: 0 <= level <= capacity, except explicit debt; asking for it changes nothing."""
        level = self.bucket.level(self.now)
        assert -self.owed - TOLERANCE <= level <= self.capacity
        assert self.bucket.level(self.now) == level
        if self.now < self.held_until:
            assert level <= 0.0

    @invariant()
    def grants_are_bounded_over_the_whole_run(self) -> None:
        """I11: grants <= burst + rate x window, plus what was given back."""
        elapsed = self.now - self.start
        assert self.granted <= self.capacity + self.rate * elapsed + self.refunded + TOLERANCE

    def twin(self) -> TokenBucket:
        """The same bucket again, to look ahead without moving this one."""
        twin = TokenBucket(self.capacity, self.rate)
        level = self.bucket.level(self.now)
        twin.take(self.capacity - level, self.now)
        if self.now < self.held_until:
            twin.empty_until(self.held_until, self.now)
        return twin


BucketHistory.TestCase.settings = settings(stateful_step_count=40)
TestBucketHistory = BucketHistory.TestCase
