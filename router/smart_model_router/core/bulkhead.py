"""The bulkhead: how many calls may be in flight at one provider."""

from __future__ import annotations


class Bulkhead:
    """Slots of one provider. The limit may be learned from a hint about concurrency and grows back with success.

    `granted` is how many this process has while the other processes of the host need all others; None: as many as
    there are. Until `returned_by` other processes give back those of their slots that are idle.
    """

    __slots__ = ("_changed_at", "_learned", "_regrow_seconds", "granted", "in_flight", "returned_by", "slots")

    def __init__(self, slots: int, *, regrow_seconds: float = 10.0) -> None:
        self.slots = slots
        self.in_flight = 0
        self.granted: int | None = None
        self.returned_by = 0.0
        self._learned: int | None = None
        self._changed_at = 0.0
        self._regrow_seconds = regrow_seconds

    @property
    def limit(self) -> int:
        """How many calls may be in flight now; what is already in flight is never cut off."""
        return self.slots if self._learned is None else min(self._learned, self.slots)

    @property
    def free(self) -> int:
        """Slots left, at least 0."""
        most = self.slots if self._learned is None else self.limit
        if self.granted is not None and self.granted < most:
            most = self.granted
        return most - self.in_flight if most > self.in_flight else 0  # `max` takes thrice as long

    def enter(self) -> None:
        """Take a slot. The gate asked `free` first, in the same breath."""
        self.in_flight += 1

    def leave(self) -> None:
        """Give a slot back."""
        self.in_flight -= 1

    def resize(self, slots: int) -> None:
        """Change the configured number of slots; never blocks and cuts nothing off."""
        self.slots = slots

    def shrink(self, now: float) -> None:
        """The provider said 'too many at once': one less than are in flight, at least 1."""
        self._learned = max(1, self.in_flight - 1)
        self._changed_at = now

    def succeeded(self, now: float) -> None:
        """A success: a learned limit that is used grows by one for every `regrow_seconds` without a new complaint."""
        if self._learned is None:
            return
        grown = int((now - self._changed_at) / self._regrow_seconds)
        if self.in_flight < self.limit:  # callers want no more: nothing was learned about one more call
            self._changed_at = max(self._changed_at, now - self._regrow_seconds)
        elif grown:
            self._changed_at += grown * self._regrow_seconds
            self._learned += grown
            if self._learned >= self.slots:
                self._learned = None
