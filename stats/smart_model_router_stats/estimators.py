"""Running figures from single samples: an average, percentiles, recent outcomes. Pure: `now` is an argument.

Instants are monotonic seconds and do not go back between the calls on one object. Nothing here is
thread-safe. An entry of age `a` has left a period of length `p` once a >= p. Whatever can change by ageing
alone says when it will (`changes_at`), so that a reader may keep what it computed until then.
"""

from __future__ import annotations

import math
from bisect import insort
from collections import deque
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import POLICIES, BreakerCount, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTED = frozenset(
    failure for failure, policy in POLICIES.items() if policy.breaker in {BreakerCount.YES, BreakerCount.PROVIDER}
)
"""The failures that say something about the target's health; the others are in the counters only."""

_MOST_TOKENS = 1_000_000_000
"""Providers report usage themselves: a call of more tokens than this is a mistake, and left out."""


def plausible(usage: Usage | None) -> Usage | None:
    """Return a provider's own count of tokens; None where it cannot be true.

    An impossible number of cached tokens does not cost the other figures: it is cut to the prompt.
    """
    if usage is None:
        return None
    prompt, cached = usage.prompt_tokens, usage.cached_prompt_tokens
    if not (0 <= prompt <= _MOST_TOKENS and 0 <= usage.completion_tokens <= _MOST_TOKENS):
        return None
    return usage if 0 <= cached <= prompt else replace(usage, cached_prompt_tokens=max(0, min(cached, prompt)))


FORGET_SECONDS = 300.0
"""Without a sample for so long, a figure is unknown (docs/design/routing.md section 1)."""

NEVER = math.inf


class Ema:
    """Exponential moving average: a sample moves it by `alpha` (0 < alpha <= 1) of the difference.

    The first sample sets it, and so does the first one after it became unknown: old news must not outvote the
    only news there is. A true 0.0 is a sample like any other.
    """

    __slots__ = ("_alpha", "_at", "_value")

    def __init__(self, alpha: float = 0.2) -> None:
        self._alpha = alpha
        self.forget()

    def forget(self) -> None:
        """Be unknown until the next sample."""
        self._value = 0.0
        self._at = -math.inf

    def add(self, sample: float, now: float) -> None:
        """Take a finite sample."""
        if now >= self._at + FORGET_SECONDS:
            self._value = sample
        else:
            self._value += self._alpha * (sample - self._value)
        self._at = now

    def value(self, now: float) -> float | None:
        """The average, None when there was no sample for `FORGET_SECONDS`."""
        return self._value if now < self._at + FORGET_SECONDS else None

    def changes_at(self, now: float) -> float:
        """When it becomes unknown without another sample; NEVER when it already is."""
        until = self._at + FORGET_SECONDS
        return until if now < until else NEVER


_LEAST = 1e-6
_MOST = 1e6
# Buckets this far apart have their middle within (1.02 - 1) / (1.02 + 1) = 0.99 % of everything in them: a
# little less than the 1 % promised, so that the rounding of log() at a bucket's edge is covered too.
_GROWTH = 1.02
_SCALE = 1.0 / math.log(_GROWTH)
_MIDDLE = _LEAST * 2.0 / (1.0 + _GROWTH)
LAST_BUCKET = int(math.log(_MOST / _LEAST) * _SCALE) + 1


def bucket_of(value: float) -> int:
    """The bucket of a value >= 0: 0 below a millionth, then one for each 2 %, the last from a million on."""
    if value < _LEAST:
        return 0
    if value >= _MOST:
        return LAST_BUCKET
    return int(math.log(value / _LEAST) * _SCALE) + 1


def middle_of(bucket: int) -> float:
    """The value that stands for those in `bucket`: at most 1 % off; bucket 0 reads as 0."""
    return _MIDDLE * _GROWTH**bucket if bucket else 0.0


class LatencyHistogram:
    """Counts in logarithmic buckets: percentiles with a relative error of at most 1 %, merged by addition.

    Exact to that degree from a millionth to a million (seconds, or tokens): less reads as 0, more as a
    million. The method is DDSketch's (Masson, Rim and Lee, VLDB 2019) with fixed buckets, so that any two can
    be merged.
    """

    __slots__ = ("_counts", "_order", "_total")

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}
        self._order: list[int] = []
        self._total = 0

    @property
    def total(self) -> int:
        """The number of samples in it."""
        return self._total

    @property
    def counts(self) -> Mapping[int, int]:
        """Samples by bucket, a live view; buckets without samples are not in it."""
        return MappingProxyType(self._counts)

    def record(self, value: float) -> None:
        """Take one sample >= 0."""
        self.add(bucket_of(value), 1)

    def add(self, bucket: int, count: int) -> None:
        """Take `count` (> 0) samples that are known by their bucket only."""
        if bucket in self._counts:
            self._counts[bucket] += count
        else:
            self._counts[bucket] = count
            insort(self._order, bucket)
        self._total += count

    def merge(self, other: LatencyHistogram) -> None:
        """Add every sample of `other`."""
        counts = self._counts
        for bucket, count in other.counts.items():
            counts[bucket] = counts.get(bucket, 0) + count
        self._order = sorted(counts)
        self._total += other.total

    def remove(self, other: LatencyHistogram) -> None:
        """Take out every sample of `other`, which were added before."""
        for bucket, count in other.counts.items():
            self._counts[bucket] -= count
        self._counts = {bucket: count for bucket, count in self._counts.items() if count}
        self._order = sorted(self._counts)
        self._total -= other.total

    def percentile(self, percent: int) -> float | None:
        """By nearest rank: the least value with `percent` % of all at or below it; None when it is empty.

        Raises ValueError when `percent` is not in 1..100.
        """
        if not 1 <= percent <= 100:
            raise ValueError(f"percent: {percent} is not in 1..100")
        if not self._total:
            return None
        above = self._total + (-percent * self._total // 100)  # how many are above the nearest rank
        for bucket in reversed(self._order):  # from the top: the percentiles asked for on the request path are near it
            above -= self._counts[bucket]
            if above < 0:
                return middle_of(bucket)
        return None


class RollingHistogram:
    """A LatencyHistogram of the last 15 minutes, made of one a minute, and one of all time.

    A whole minute leaves at once: what is 14 minutes old is still counted, what is 15 minutes old never.
    """

    __slots__ = ("_archive", "_minutes", "_recent")

    MINUTES = 15

    def __init__(self) -> None:
        self._archive = LatencyHistogram()
        self._recent = LatencyHistogram()
        self._minutes: deque[tuple[float, LatencyHistogram]] = deque()

    @classmethod
    def of(cls, everything: LatencyHistogram, minutes: Mapping[float, LatencyHistogram]) -> RollingHistogram:
        """One of samples that are known by their buckets: all there are, and those of some minutes among them."""
        made = cls()
        made._minutes = deque(sorted(minutes.items()))
        for histogram in minutes.values():
            made._recent.merge(histogram)
        made._archive.merge(everything)
        made._archive.remove(made._recent)
        return made

    def record(self, value: float, now: float) -> None:
        """Take one sample >= 0."""
        minute = now // 60.0
        if not self._minutes or minute > self._minutes[-1][0]:
            self._drop_old(minute)
            self._minutes.append((minute, LatencyHistogram()))
        bucket = bucket_of(value)
        self._minutes[-1][1].add(bucket, 1)
        self._recent.add(bucket, 1)

    @property
    def total(self) -> int:
        """The number of samples of all time."""
        return self._archive.total + self._recent.total

    def recent(self, now: float) -> LatencyHistogram:
        """The last 15 minutes; to read, valid until the next call."""
        self._drop_old(now // 60.0)
        return self._recent

    def merge(self, other: RollingHistogram, now: float) -> None:
        """Add every sample of `other`, each in its minute."""
        self._drop_old(now // 60.0)
        other._drop_old(now // 60.0)
        minutes = dict(self._minutes)
        for minute, histogram in other._minutes:
            minutes.setdefault(minute, LatencyHistogram()).merge(histogram)
        self._minutes = deque(sorted(minutes.items()))
        self._recent.merge(other._recent)
        self._archive.merge(other._archive)

    def remove(self, other: RollingHistogram, now: float) -> None:
        """Take out every sample of `other`, which were recorded here as well, in the same minutes."""
        self._drop_old(now // 60.0)
        other._drop_old(now // 60.0)
        minutes = dict(self._minutes)
        for minute, histogram in other._minutes:
            minutes[minute].remove(histogram)
        self._recent.remove(other._recent)
        self._archive.remove(other._archive)

    def all_time(self) -> LatencyHistogram:
        """Everything since the start, as a new histogram."""
        everything = LatencyHistogram()
        everything.merge(self._archive)
        everything.merge(self._recent)
        return everything

    def changes_at(self, now: float) -> float:
        """When the oldest minute leaves, NEVER when there is none."""
        self._drop_old(now // 60.0)
        return (self._minutes[0][0] + self.MINUTES) * 60.0 if self._minutes else NEVER

    def _drop_old(self, minute: float) -> None:
        while self._minutes and self._minutes[0][0] + self.MINUTES <= minute:
            _, old = self._minutes.popleft()
            self._recent.remove(old)
            self._archive.merge(old)


class OutcomeWindow:
    """The newest 50 outcomes of the last 5 minutes: how many, and how many of them successes."""

    __slots__ = ("_entries", "_successes")

    SIZE = 50
    SECONDS = 300.0

    def __init__(self) -> None:
        self._entries: deque[tuple[float, bool]] = deque()
        self._successes = 0

    def add(self, now: float, *, success: bool) -> None:
        """Take one outcome."""
        if len(self._entries) == self.SIZE:
            self._drop_oldest()
        self._entries.append((now, success))
        self._successes += success

    def clear(self) -> None:
        """Forget every outcome."""
        self._entries.clear()
        self._successes = 0

    def counts(self, now: float) -> tuple[int, int]:
        """(successes, outcomes)."""
        while self._entries and now >= self._entries[0][0] + self.SECONDS:
            self._drop_oldest()
        return self._successes, len(self._entries)

    def newest_at(self, now: float) -> float | None:
        """The instant of the newest outcome that still counts."""
        _, outcomes = self.counts(now)
        return self._entries[-1][0] if outcomes else None

    def changes_at(self, now: float) -> float:
        """When the oldest outcome leaves by age, NEVER when there is none."""
        _, outcomes = self.counts(now)
        return self._entries[0][0] + self.SECONDS if outcomes else NEVER

    def _drop_oldest(self) -> None:
        _, success = self._entries.popleft()
        self._successes -= success
