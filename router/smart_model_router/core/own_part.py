"""The part of a shared limit that one of several processes takes while they cannot ask each other."""

from __future__ import annotations

from smart_model_router.core.bucket import TokenBucket


class OwnPart:
    """1/`members` of `limit`. Pure: instants are arguments, in seconds. Not thread-safe.

    It begins with `held` tokens, those that this process had leased already: what the others leased is not spent
    twice; and with its part of `left`, tokens that all processes divide. `used` are tokens that the others do not know
    of yet.
    """

    __slots__ = ("_bucket", "_held", "_limit", "_members", "_used")

    def __init__(
        self,
        limit: TokenBucket,
        members: int,
        now: float,
        *,
        held: float,
        used: float,
        left: float = 0.0,
    ) -> None:
        self._limit = limit
        self._members = members
        self._held = held
        self._used = used
        """Tokens that the others do not know of."""
        self._bucket = TokenBucket(*self._size)
        self._bucket.refill_from_headers(held + max(0.0, left) / members, now)
        self._follow(now)

    def due_at(self, amount: float, now: float) -> float:
        """The instant at which `amount` is there, or all that fits: a larger call owes the rest."""
        self._follow(now)
        return self._bucket.due_at(min(amount, self._bucket.capacity), now)

    def take(self, amount: float, now: float) -> None:
        """Take `amount` (or, negative, give back)."""
        self._follow(now)
        self._used += amount
        self._bucket.give_back(-amount, now)

    def settled(self, now: float) -> tuple[float, float]:
        """Return the tokens that this process keeps, and those that all together have less: used and kept ones.

        Those that it held at the beginning were leased then. What was used longer ago than the part takes to refill is
        over, also for the others.
        """
        self._follow(now)
        level = self._bucket.level(now)
        kept = max(0.0, level)
        return kept, max(0.0, min(self._used - self._held, self._bucket.capacity - level) + kept)

    @property
    def _size(self) -> tuple[float, float]:
        return max(1.0, self._limit.capacity / self._members), self._limit.rate / self._members

    def _follow(self, now: float) -> None:
        """Take over the size and the refill of the limit, which the provider's answers may have changed."""
        self._limit.level(now)  # begin the windows that are due, here and there
        self._bucket.level(now)
        size, window, resets_at = self._size, self._limit.window, self._limit.resets_at
        if size != (self._bucket.capacity, self._bucket.rate):
            self._bucket.resize(*size, now)
        if window is None or resets_at is None:
            if self._bucket.window is not None:
                self._bucket.refills_steadily(now)
        elif (window, resets_at) != (self._bucket.window, self._bucket.resets_at):
            self._bucket.refills_at(resets_at, window, now)
