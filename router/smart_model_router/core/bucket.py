"""The token bucket: a rate with a burst, taken by reservation and settled by what was really used."""

from __future__ import annotations

import math
from dataclasses import dataclass

_EPSILON = 1e-6
"""A millionth of a token: instants are floats, and a wait computed from a level must find that level."""


@dataclass(frozen=True, slots=True)
class BucketSnapshot:
    """A bucket as it was last asked or changed. `window` is None for one that refills all the time."""

    level: float
    capacity: float
    rate: float
    window: float | None


class TokenBucket:
    """`capacity` tokens that refill at `rate` a second. A level below 0 is debt from an underestimate.

    A bucket that `refills_at` an instant belongs to a fixed window: full at the instant, and nothing before it.
    """

    __slots__ = ("_at", "_held_until", "_level", "_resets_at", "capacity", "rate", "window")

    def __init__(self, capacity: float, rate: float) -> None:
        self.capacity = capacity
        self.rate = rate
        self.window: float | None = None
        """Seconds from one refill to the next; None refills all the time."""
        self._level = capacity
        self._at: float | None = None
        self._held_until = -math.inf
        self._resets_at = 0.0

    def snapshot(self) -> BucketSnapshot:
        """The level and the terms, for checkers; unlike `level` it refills nothing."""
        return BucketSnapshot(self._level, self.capacity, self.rate, self.window)

    @property
    def resets_at(self) -> float | None:
        """The instant of the next refill; None for a bucket that refills all the time."""
        return None if self.window is None else self._resets_at

    @property
    def held_until(self) -> float:
        """Nothing is there before this instant: a provider named it."""
        return self._held_until

    def level(self, now: float) -> float:
        """Tokens there at `now`; at most the capacity."""
        if self._at is None:
            self._at = now
        if now < self._held_until:
            return min(0.0, self._level)
        if self.window is not None:
            if now >= self._resets_at:
                self._resets_at += self.window * (1 + math.floor((now - self._resets_at) / self.window))
                self._level = self.capacity
        elif now > self._at:
            self._level = min(self.capacity, self._level + (now - self._at) * self.rate)
        self._at = max(self._at, now)
        return self._level

    def due_at(self, amount: float, now: float) -> float:
        """The instant at which `amount` tokens are there: `now` when they are, else exact."""
        level = self.level(now)
        held = now < self._held_until
        if held:
            level = self._level  # what will be there when the hold ends
        elif amount - level <= _EPSILON:
            return now
        if self.window is not None:
            more_windows = max(0, math.ceil((amount - _EPSILON) / self.capacity) - 1)
            return self._resets_at + more_windows * self.window
        return (self._held_until if held else now) + max(0.0, amount - level) / self.rate

    def consume(self, amount: float, now: float) -> bool:
        """Take `amount` when it is there; when it is not take nothing, and say so."""
        if self.due_at(amount, now) > now:
            return False
        self.take(amount, now)
        return True

    def take(self, amount: float, now: float) -> None:
        """Take `amount`; the gate asked `due_at` first, in the same breath."""
        self._level = self.level(now) - amount

    def give_back(self, amount: float, now: float) -> None:
        """Refund (or, negative, charge) what a settled reservation did not (or did) use.

        While the bucket is held a refund only pays debt: the return stays a trickle.
        """
        self.level(now)
        most = max(0.0, self._level) if now < self._held_until else self.capacity
        self._level = min(most, self._level + amount)

    def refill_from_headers(self, figure: float, now: float) -> None:
        """The provider's word: `figure` tokens are there now. While the bucket is held they can only be fewer."""
        self.level(now)
        most = self._level if now < self._held_until else self.capacity
        self._level = min(most, figure)

    def empty_until(self, instant: float, now: float, keep: float = 0.0) -> None:
        """Hold nothing until `instant`, then refill at the rate: a paced trickle, not a burst.

        At the instant itself at most `keep` are there (what was refused will fit then), and no more than would have
        been without the hold. An instant at or after the end of the window begins a new one. The newest instant
        stands, also when it is sooner: the cooldown decides which hint replaces which.
        """
        level, at = self.level(now), max(instant, now)
        self._level = level if level < 0 else min(keep, level + (at - now) * self.rate)
        self._at = self._held_until = at
        self._resets_at = max(self._resets_at, at)

    def release(self, now: float) -> None:
        """End a hold: the rate fills the bucket from `now` on; a window begins now."""
        if now < self._held_until:
            self._level = min(0.0, self._level)
            self._at = self._held_until = self._resets_at = now

    def resize(self, capacity: float, rate: float, now: float) -> None:
        """Change the size; what is there stays there, as far as it fits."""
        self.level(now)
        self.capacity, self.rate = capacity, rate
        self._level = min(self._level, capacity)

    def refills_at(self, instant: float, window: float, now: float) -> None:
        """Refill at once at `instant` and every `window` seconds after it, and not between."""
        self.level(now)
        self.window, self._resets_at = window, instant

    def refills_steadily(self, now: float) -> None:
        """Refill all the time at the rate."""
        self.level(now)
        self.window = None
