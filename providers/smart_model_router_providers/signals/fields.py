"""Header fields of an answer, read one by one: what makes no sense is left out and counted. Nothing here raises."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from smart_model_router.domain.outcome import BucketReading
from smart_model_router_providers.signals.durations import seconds, until, until_epoch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_T = TypeVar("_T")
_MOST_DIGITS = 15

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0


class Fields:
    """The headers of one answer (lower-case names). `rejected` counts the fields that were there and made no sense."""

    __slots__ = ("headers", "rejected")

    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers
        self.rejected = 0

    @property
    def date(self) -> str | None:
        """The answer's own clock."""
        return self.headers.get("date")

    def whole(self, name: str, *, least: int = 0) -> int | None:
        """A whole number of at least `least`."""
        return self._read(name, lambda text: whole(text, least=least))

    def duration(self, name: str) -> float | None:
        """A duration (see durations.seconds)."""
        return self._read(name, seconds)

    def instant(self, name: str) -> float | None:
        """Seconds to a date, by the answer's own clock; a past one is 0."""
        return self._read(name, lambda text: until(text, self.date))

    def duration_or_instant(self, name: str) -> float | None:
        """A duration, or seconds to a date (RFC 9110, Retry-After)."""

        def read(text: str) -> float | None:
            found = seconds(text)
            return until(text, self.date) if found is None else found

        return self._read(name, read)

    def epoch(self, name: str) -> float | None:
        """Seconds to an instant in seconds or milliseconds since the epoch."""
        return self._read(name, lambda text: until_epoch(text, self.date))

    def share(self, name: str) -> float | None:
        """A number from 0 up, 1 being all of it."""
        return self._read(name, seconds)

    def bucket(
        self,
        name: str,
        *,
        limit: str,
        remaining: str,
        reset: str,
        read_reset: Callable[[str], float | None],
        window_seconds: float | None = None,
    ) -> list[BucketReading]:
        """The bucket three header names speak of; none when they are absent, or when no figure in them is usable."""
        if limit not in self.headers and remaining not in self.headers and reset not in self.headers:
            return []
        full_in = read_reset(reset)
        if full_in is not None and full_in > DAY:  # no window is longer: it is in another unit, or made up
            full_in = None
            self.rejected += 1
        found = BucketReading(name, self.whole(limit, least=1), self.whole(remaining), full_in, window_seconds)
        unusable = found.limit is None and found.remaining is None
        only_reset = limit not in self.headers and remaining not in self.headers and found.reset_seconds is not None
        return [] if unusable and not only_reset else [found]

    def _read(self, name: str, read: Callable[[str], _T | None]) -> _T | None:
        text = self.headers.get(name)
        if text is None:
            return None
        value = read(text)
        self.rejected += value is None
        return value


def whole(text: str, *, least: int = 0) -> int | None:
    """A whole number of at least `least`, written in ASCII digits; None for anything else."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS):
        return None
    number = int(text)
    return number if number >= least else None
