"""StatsBook: the statistics of every target, in memory, cheap enough for the request path."""

from __future__ import annotations

import math
from collections import defaultdict
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from smart_model_router.domain.outcome import EMPTY_SNAPSHOT, FailureClass, Snapshot, Usage
from smart_model_router.domain.request import Target
from smart_model_router_stats.estimators import (
    COUNTED,
    Ema,
    LatencyHistogram,
    OutcomeWindow,
    RollingHistogram,
    plausible,
)
from smart_model_router_stats.figures import ModelStats, Percentiles, StatsView

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable

    from smart_model_router.domain.events import AttemptFinished
    from smart_model_router_stats.reading import Past

_COMPLETIONS_NEEDED = 20
"""Completions that must be known before their p95 is (docs/design/routing.md section 5)."""

_FEW = 10
"""With fewer outcomes in its window a target is judged by its place instead (docs/design/routing.md section 2)."""


@runtime_checkable
class SupportsPast(Protocol):
    """A store (ports.StatsStore) that remembers targets from before this process."""

    def on_past(self, listener: Callable[[Past], None]) -> None:
        """Call `listener` once for each of these targets, as soon as they can be read."""
        ...


class StatsBook:
    """Takes every finished attempt, and answers with immutable statistics.

    Not thread-safe: it belongs to the router's loop. Instants (`now`, and those of the attempts) are
    monotonic and do not go back. `wall` gives seconds since the epoch, for `figures` only: no decision rests
    on it.
    """

    __slots__ = ("_known", "_models", "_named", "_providers", "_records", "_wall")

    def __init__(self, targets: Iterable[Target], *, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._records: dict[str, _Record] = {}
        self._known: frozenset[str] = frozenset()
        self._models: defaultdict[str, _Averages] = defaultdict(_Averages)
        self._providers: defaultdict[str, _Averages] = defaultdict(_Averages)
        for target in targets:
            self._add(target)
        self._named = self._models.keys() | self._providers.keys()
        """The models and providers that are configured."""

    def observe(self, event: AttemptFinished) -> None:
        """Take what came of one call. A target not heard of before is added."""
        record = self._records.get(event.target)
        if record is None:
            record = self._add(Target(event.target, event.provider, event.model))
        record.observe(event)

    def restore(self, event: AttemptFinished) -> None:
        """Take what came of a call before the restart, oldest first: decisions know of it, no counter does."""
        record = self._records.get(event.target)
        if record is not None:
            record.restored.append(event)
            record.learn(event, event.usage)

    def continue_from(self, before: StatsBook, unchanged: Container[str], now: float) -> None:
        """Go on with another book of this process, which is written to for a while still: both see what comes of it.

        A target that both have keeps its figures; unless it is `unchanged`, it begins anew (see `reset_window`).
        """
        self._models, self._providers = before._models, before._providers
        self._known = frozenset(self._records.keys() & before._records.keys())
        for record in self._records.values():
            target = record.target
            record.groups = (record.averages, self._models[target.model], self._providers[target.provider])
        for name in self._known:
            self._records[name] = before._records[name]
            if name not in unchanged:
                self.reset_window(name, now)

    def remember(self, past: Past, now: float) -> None:
        """Take what a store knows of before this process, calls that were restored included.

        Percentiles are those of before as well from then on, and so are averages that nothing is known of: not those
        of a target that began anew. No counter knows of it.
        """
        record = self._records.get(past.target)
        if record is not None and past.target not in self._known:  # of those the book before was told
            record.remember(past, now)

    def snapshot(self, target_id: str, now: float) -> Snapshot:
        """The statistics that decisions about the target use; the same object until something changed."""
        record = self._records.get(target_id)
        if record is None:
            return EMPTY_SNAPSHOT
        if now >= record.fresh_until:
            record.refresh(now)
        return record.snapshot

    def reset_window(self, target_id: str, now: float) -> None:
        """Forget the recent outcomes and the average latencies: the target begins anew (its breaker closed).

        What is told later of calls admitted before `now` is of the time before: it is counted, not held against it.
        Counters, percentiles and the last success stay, and so do the averages of its model and provider.
        """
        record = self._records.get(target_id)
        if record is not None:
            record.window.clear()
            record.averages.forget()
            record.began_at = now
            record.refresh(now)

    def add(self, target: Target) -> None:
        """Know a target from before its first call on; one that is known stays as it is."""
        if target.id not in self._records:
            self._add(target)

    def forget(self, name: str) -> None:
        """Keep nothing of a target that no longer exists, nor of a model and a provider that only it had."""
        record = self._records.pop(name, None)
        if record is None:
            return
        left = [other.target for other in self._records.values()]
        model, provider = record.target.model, record.target.provider
        if model not in self._named and all(other.model != model for other in left):
            self._models.pop(model, None)
        if provider not in self._named and all(other.provider != provider for other in left):
            self._providers.pop(provider, None)

    def median(self, target_id: str, now: float, *, stream: bool) -> float | None:
        """Half of the answers of the last 15 minutes took no longer: whole ones, or streams to first content."""
        return self.least_median((target_id,), now, stream=stream)

    def least_median(self, target_ids: Iterable[str], now: float, *, stream: bool) -> float | None:
        """The `median` of the quickest of these targets; None when none of them has one."""
        least = None
        for target_id in target_ids:
            record = self._records.get(target_id)
            if record is None:
                continue
            if now >= record.fresh_until:
                record.refresh(now)
            median = (record.medians or record.find_medians(now))[stream]
            if median is not None and (least is None or median < least):
                least = median
        return least

    def spread(self, target_id: str, now: float) -> tuple[Percentiles, Percentiles]:
        """Percentiles of the last 15 minutes of a target: of whole answers, and of first content. About 0.1 ms."""
        record = self._records.get(target_id)
        if record is None:
            return Percentiles.of(LatencyHistogram()), Percentiles.of(LatencyHistogram())
        return Percentiles.of(record.latency.recent(now)), Percentiles.of(record.ttft.recent(now))

    def figures(self, now: float) -> StatsView:
        """Everything, for people: by target, by model and by provider.

        Takes about 1 ms a target: nothing for the request path.
        """
        models: defaultdict[str, list[_Record]] = defaultdict(list)
        providers: defaultdict[str, list[_Record]] = defaultdict(list)
        for record in self._records.values():
            models[record.target.model].append(record)
            providers[record.target.provider].append(record)
        wall = self._wall()
        return StatsView(
            targets={name: _summed([record], record.averages, now, wall) for name, record in self._records.items()},
            models={name: _summed(group, self._models[name], now, wall) for name, group in models.items()},
            providers={name: _summed(group, self._providers[name], now, wall) for name, group in providers.items()},
        )

    def _add(self, target: Target) -> _Record:
        record = _Record(target, self._models[target.model], self._providers[target.provider])
        self._records[target.id] = record
        return record


class _Averages:
    """The three moving averages that a target, a model and a provider each have."""

    __slots__ = ("latency", "pace", "ttft")

    def __init__(self) -> None:
        self.latency = Ema()
        self.ttft = Ema()
        self.pace = Ema()

    def forget(self) -> None:
        self.latency.forget()
        self.ttft.forget()
        self.pace.forget()


class _Record:
    """All that is kept of one target. `snapshot` is right until `fresh_until`, and so are `medians`.

    `medians` are those of whole answers and of first content; None: they were not asked for since the last refresh.
    """

    __slots__ = (
        "averages",
        "began_at",
        "cached_prompt_tokens",
        "completion_tokens",
        "completions",
        "cost_usd",
        "counters",
        "fresh_until",
        "groups",
        "judged",
        "last_failure_at",
        "last_success_at",
        "latency",
        "medians",
        "prompt_tokens",
        "restored",
        "snapshot",
        "target",
        "ttft",
        "window",
    )

    def __init__(self, target: Target, model: _Averages, provider: _Averages) -> None:
        self.target = target
        self.averages = _Averages()
        # An average cannot be computed from averages: model and provider see every sample themselves.
        self.groups = (self.averages, model, provider)
        self.window = OutcomeWindow()
        self.judged = False
        self.began_at = -math.inf
        self.restored: list[AttemptFinished] = []
        """Calls of before this process, until a store has told of all of them."""
        self.latency = RollingHistogram()
        self.ttft = RollingHistogram()
        self.completions = LatencyHistogram()
        self.counters: defaultdict[FailureClass | None, int] = defaultdict(int)
        self.last_success_at: float | None = None
        self.last_failure_at: float | None = None
        self.prompt_tokens = 0
        self.cached_prompt_tokens = 0
        self.completion_tokens = 0
        self.cost_usd = 0.0
        self.snapshot = EMPTY_SNAPSHOT
        self.medians: tuple[float | None, float | None] | None = None
        self.fresh_until = math.inf

    def observe(self, event: AttemptFinished) -> None:
        failure = event.failure_class
        self.counters[failure] += 1
        usage = plausible(event.usage)
        if usage is not None:
            self.prompt_tokens += usage.prompt_tokens
            self.cached_prompt_tokens += usage.cached_prompt_tokens
            self.completion_tokens += usage.completion_tokens
        if event.cost_usd is not None:
            self.cost_usd += event.cost_usd
        if failure is not FailureClass.CANCELLED:
            self.learn(event, usage)

    def learn(self, event: AttemptFinished, usage: Usage | None) -> None:
        """Take a call into the statistics that decisions use."""
        failure = event.failure_class
        self.fresh_until = -math.inf
        # Its window is nearly empty: without calls for a while it gets a new trial. With the averages of
        # before, ten good answers would not make up for a slow spell, and it would be left for another 5 minutes.
        if self.judged and self.window.counts(event.at)[1] < _FEW:
            self.averages.forget()
            self.judged = False
        groups = self.groups if event.admitted_at >= self.began_at else self.groups[1:]  # a pace of before says nothing
        self._observe_times(event, usage, groups)
        if failure is None:
            self.last_success_at = event.at
            self.window.add(event.at, success=True)
        else:
            self.last_failure_at = event.at
            if failure in COUNTED and event.admitted_at >= self.began_at:
                self.window.add(event.at, success=False)
        self.judged = self.judged or self.window.counts(event.at)[1] >= _FEW

    def _observe_times(self, event: AttemptFinished, usage: Usage | None, groups: tuple[_Averages, ...]) -> None:
        """Take the time to first content of a stream; of an answer its seconds, and those for each token."""
        now = event.at
        if event.stream and event.ttft_seconds is not None:
            self.ttft.record(event.ttft_seconds, now)
            for averages in groups:
                averages.ttft.add(event.ttft_seconds, now)
        if event.failure_class is not None:
            return
        if not event.stream:
            self.latency.record(event.seconds, now)
            for averages in groups:
                averages.latency.add(event.seconds, now)
        if usage is not None and usage.completion_tokens:
            self.completions.record(usage.completion_tokens)
            pace = 100.0 * event.seconds / usage.completion_tokens
            for averages in groups:
                averages.pace.add(pace, now)

    def remember(self, past: Past, now: float) -> None:
        """Take the place of what was restored, and more."""
        restored = _Record(self.target, _Averages(), _Averages())
        for event in self.restored:
            restored.learn(event, event.usage)
        self.restored = []
        for ours, some, all_of_them in (
            (self.latency, restored.latency, past.latency),
            (self.ttft, restored.ttft, past.ttft),
        ):
            if all_of_them.total >= some.total:  # else the store was begun anew meanwhile
                ours.remove(some, now)
                ours.merge(all_of_them, now)
        averages = (self.averages.latency, self.averages.ttft, self.averages.pace)
        for average, value in zip(averages, past.averages, strict=True):
            if value is not None and self.began_at == -math.inf and average.value(now) is None:
                average.add(value, past.averaged_at)
        self.fresh_until = -math.inf

    def refresh(self, now: float) -> None:
        """Compute the snapshot, and until when it will do."""
        averages, self.medians = self.averages, None
        successes, outcomes = self.window.counts(now)
        latency, ttft = self.latency.recent(now), self.ttft.recent(now)
        # Of all time: how much a model writes changes with its use, not with the minute.
        tokens = self.completions.percentile(95) if self.completions.total >= _COMPLETIONS_NEEDED else None
        self.snapshot = Snapshot(
            successes=successes,
            outcomes=outcomes,
            last_success_at=self.last_success_at,
            newest_outcome_at=self.window.newest_at(now),
            latency_ema=averages.latency.value(now),
            ttft_ema=averages.ttft.value(now),
            seconds_per_100_tokens=averages.pace.value(now),
            latency_p99=latency.percentile(99),
            ttft_p95=ttft.percentile(95),
            ttft_p99=ttft.percentile(99),
            completion_tokens_p95=None if tokens is None else round(tokens),
            latencies=latency.total,
            ttfts=ttft.total,
        )
        self.fresh_until = min(
            self.window.changes_at(now),
            averages.latency.changes_at(now),
            averages.ttft.changes_at(now),
            averages.pace.changes_at(now),
            self.latency.changes_at(now),
            self.ttft.changes_at(now),
        )

    def find_medians(self, now: float) -> tuple[float | None, float | None]:
        """Compute the medians: not with the snapshot, as only waiting requests ask for them."""
        self.medians = self.latency.recent(now).percentile(50), self.ttft.recent(now).percentile(50)
        return self.medians


def _summed(records: list[_Record], averages: _Averages, now: float, wall: float) -> ModelStats:
    """The figures of one target, or those of several taken together."""
    counters: defaultdict[FailureClass | None, int] = defaultdict(int)
    for record in records:
        for failure, count in record.counters.items():
            counters[failure] += count
    windows = [record.window.counts(now) for record in records]
    recent = Snapshot(sum(successes for successes, _ in windows), sum(outcomes for _, outcomes in windows))
    success_age = _age([record.last_success_at for record in records], now)
    failure_age = _age([record.last_failure_at for record in records], now)
    return ModelStats(
        calls=sum(counters.values()),
        successes=counters[None],
        failures={failure: counters[failure] for failure in FailureClass if failure in counters},
        success_rate=recent.success_rate,
        recent_successes=recent.successes,
        recent_outcomes=recent.outcomes,
        latency_ema=averages.latency.value(now),
        ttft_ema=averages.ttft.value(now),
        seconds_per_100_tokens=averages.pace.value(now),
        latency_15_min=_percentiles(record.latency.recent(now) for record in records),
        latency_all_time=_percentiles(record.latency.all_time() for record in records),
        ttft_15_min=_percentiles(record.ttft.recent(now) for record in records),
        ttft_all_time=_percentiles(record.ttft.all_time() for record in records),
        last_success_age=success_age,
        last_success_wall=None if success_age is None else wall - success_age,
        last_failure_age=failure_age,
        last_failure_wall=None if failure_age is None else wall - failure_age,
        prompt_tokens=sum(record.prompt_tokens for record in records),
        cached_prompt_tokens=sum(record.cached_prompt_tokens for record in records),
        completion_tokens=sum(record.completion_tokens for record in records),
        cost_usd=sum(record.cost_usd for record in records),
    )


def _percentiles(histograms: Iterable[LatencyHistogram]) -> Percentiles:
    merged = LatencyHistogram()
    for histogram in histograms:
        merged.merge(histogram)
    return Percentiles.of(merged)


def _age(instants: list[float | None], now: float) -> float | None:
    known = [instant for instant in instants if instant is not None]
    return now - max(known) if known else None
