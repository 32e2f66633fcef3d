"""What one process holds of a limit that several processes share: tokens leased ahead, and a little on credit."""

from __future__ import annotations

import math

from smart_model_router.domain.shared_state import chunk_of, is_plenty

IDLE = 2.0
"""Seconds. What was leased and not used goes back after that."""
_LOOK_AGAIN = 0.25
_EPSILON = 1e-6


class TokenLease:
    """Tokens of one limit. `level` below 0 was taken on credit, and is owed. Pure: instants are arguments."""

    __slots__ = ("_capacity", "_due", "_taken_at", "_wanted", "level", "plenty", "suspended")

    def __init__(self, capacity: float) -> None:
        self._capacity = capacity
        self.level = 0.0
        self.plenty = True
        """Whether there was more than enough when somebody last looked; nobody has looked yet.

        Then a chunk is taken first and leased afterwards.
        """
        self.suspended = False
        """Whether the processes cannot be asked: this one takes what its own count of the limit allows."""
        self._due = 0.0
        self._wanted = 0.0
        self._taken_at = -math.inf

    @property
    def chunk(self) -> float:
        """How much is leased at a time."""
        return chunk_of(self._capacity)

    @property
    def short(self) -> bool:
        """Whether more should be leased."""
        return not self.suspended and (self._wanted > 0 or self.level < self.chunk / 2)

    def due_at(self, amount: float, now: float) -> float:
        """The instant at which `amount` may be there; `now` when it is. What is missing is noted."""
        credit = self.chunk if self.plenty else 0.0
        if self.suspended or self.level + max(credit, amount * self.plenty) + _EPSILON >= amount:
            return now
        self._wanted = max(self._wanted, amount - self.level)
        return self._due if self._due > now else now + _LOOK_AGAIN

    def take(self, amount: float, now: float) -> None:
        """Take it; `due_at` was asked just now."""
        if not self.suspended:
            self.level -= amount
            self._taken_at = now

    def give_back(self, amount: float) -> None:
        """Refund, or (negative) charge."""
        if not self.suspended:
            self.level += amount

    def account(self, capacity: float, now: float) -> tuple[float, float, float, float]:
        """What to settle: (debt, back, want, least), each >= 0."""
        self._capacity = capacity
        debt = max(0.0, -self.level)
        wanted = self._wanted
        if wanted <= 0 and now - self._taken_at >= IDLE:
            return debt, max(0.0, self.level), 0.0, 0.0
        back = max(0.0, self.level - 2 * self.chunk)
        held = max(0.0, self.level)
        least = max(0.0, wanted - debt)
        lacks = least > 0 or held < self.chunk / 2
        want = max(least, self.chunk - held) if lacks and now >= self._due else 0.0
        return debt, back, want, min(want, least)

    def settled(self, debt: float, back: float, granted: float, left: float, due: float) -> None:
        """The account was settled: so much came, so much is left for others, and more is there at the instant `due`."""
        self.level += debt - back + granted
        self.hear(left)
        self._due = due
        if granted or self.plenty:
            self._wanted = 0.0

    def hear(self, left: float) -> None:
        """So much was left for everybody when somebody settled."""
        self.plenty = is_plenty(left, self._capacity)

    def see(self, left: float) -> None:
        """An answer said that no more than so much is left, whatever others have leased of it."""
        self.plenty = self.plenty and is_plenty(left, self._capacity)

    def suspend(self, *, suspended: bool) -> None:
        """Stop (or go on) keeping this account; nothing that was leased before is worth anything after a stop.

        Meanwhile nobody counted what others took: there may be nothing left.
        """
        if suspended and not self.suspended:
            self.forget()
            self.plenty = False
        self.suspended = suspended

    def forget(self) -> None:
        """What was leased is another process's."""
        self.level = self._wanted = 0.0
