"""The token bucket: a rate with a burst, taken by reservation and settled by what was really used."""

from __future__ import annotations

_EPSILON = 1e-6
"""A millionth of a token: instants are floats, and a wait computed from a level must find that level."""


class TokenBucket:
    """`capacity` tokens that refill at `rate` a second. A level below 0 is debt from an underestimate."""

    __slots__ = ("_at", "_level", "capacity", "rate")

    def __init__(self, capacity: float, rate: float) -> None:
        self.capacity = capacity
        self.rate = rate
        self._level = capacity
        self._at: float | None = None

    def level(self, now: float) -> float:
        """Tokens there at `now`; at most the capacity."""
        if self._at is None:
            self._at = now
        if now > self._at:
            self._level = min(self.capacity, self._level + (now - self._at) * self.rate)
            self._at = now
        return self._level

    def due_at(self, amount: float, now: float) -> float:
        """The instant at which `amount` tokens are there: `now` when they are, else exact."""
        missing = amount - self.level(now)
        if self._held(now):
            return self._at_or(now) + max(0.0, missing) / self.rate
        return now if missing <= _EPSILON else now + missing / self.rate

    def take(self, amount: float, now: float) -> None:
        """Take `amount`; the gate asked `due_at` first, in the same breath."""
        self._level = self.level(now) - amount

    def give_back(self, amount: float, now: float) -> None:
        """Refund (or, negative, charge) what a settled reservation did not (or did) use.

        While the bucket is held a refund only pays debt: the return stays a trickle.
        """
        level = self.level(now)
        self._level = min(0.0 if self._held(now) else self.capacity, level + amount)

    def empty_until(self, instant: float, now: float) -> None:
        """Hold nothing until `instant`, then refill at the rate: a paced trickle, not a burst.

        The newest instant stands, also when it is sooner: who may replace whose word is the cooldown's affair.
        """
        self._level = min(0.0, self.level(now))
        self._at = max(instant, now)

    def release(self, now: float) -> None:
        """End a hold: the rate fills the bucket from `now` on."""
        if self._held(now):
            self._at = now

    def _held(self, now: float) -> bool:
        return self._at_or(now) > now

    def _at_or(self, now: float) -> float:
        return now if self._at is None else self._at
