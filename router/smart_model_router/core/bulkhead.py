"""The bulkhead: how many calls may be in flight at one provider."""

from __future__ import annotations

from smart_model_router.core.adaptive import AdaptiveConfig, AdaptiveLimit


class Bulkhead:
    """Slots of one provider. The limit may be learned from 429s about concurrency and grows back with success.

    With an `adaptive` limit it also follows the pace of answers and every 429 and 529.
    """

    __slots__ = ("_adaptive", "_changed_at", "_learned", "_regrow_seconds", "in_flight", "slots")

    def __init__(self, slots: int, *, regrow_seconds: float = 10.0, adaptive: AdaptiveConfig | None = None) -> None:
        self.slots = slots
        self._adaptive = AdaptiveLimit(slots, adaptive) if adaptive is not None and adaptive.enabled else None
        self.in_flight = 0
        self._learned: int | None = None
        self._changed_at = 0.0
        self._regrow_seconds = regrow_seconds

    @property
    def limit(self) -> int:
        """How many calls may be in flight now; what is already in flight is never cut off."""
        limit = self.slots if self._learned is None else min(self._learned, self.slots)
        return limit if self._adaptive is None else min(limit, self._adaptive.limit)

    @property
    def free(self) -> int:
        """Slots left, at least 0."""
        return max(0, self.limit - self.in_flight)

    def enter(self) -> None:
        """Take a slot. The gate asked `free` first, in the same breath."""
        self.in_flight += 1

    def leave(self) -> None:
        """Give a slot back."""
        self.in_flight -= 1

    def resize(self, slots: int) -> None:
        """Change the configured number of slots; never blocks and cuts nothing off."""
        self.slots = slots
        if self._adaptive is not None:
            self._adaptive.resize(slots)

    def shrink(self, now: float) -> None:
        """The provider said 'too many at once': one less than are in flight, at least 1."""
        self._learned = max(1, self.in_flight - 1)
        self._changed_at = now

    def refused(self, admitted_at: float, now: float) -> None:
        """The provider turned away a call: 429 or 529, whatever it was about."""
        if self._adaptive is not None:
            self._adaptive.refused(admitted_at, now)

    def succeeded(self, now: float, pace: float | None = None) -> None:
        """A success: a learned limit grows by one for every `regrow_seconds` without a new complaint.

        `pace` is the call's seconds per output token, None when that is not known.
        """
        if self._adaptive is not None:
            self._adaptive.succeeded(pace, self.in_flight)
        if self._learned is None:
            return
        grown = int((now - self._changed_at) / self._regrow_seconds)
        if grown:
            self._changed_at += grown * self._regrow_seconds
            self._learned += grown
            if self._learned >= self.slots:
                self._learned = None
