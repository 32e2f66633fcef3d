"""The cost of statistics for a request: one observation, one snapshot, against a dict increment and a list append.

CPU time, each figure the median of several runs, the baseline measured between them. Fails when an
observation costs 5 us or more, or a snapshot that is still right 1 us or more.
"""

from __future__ import annotations

import random
import statistics
import sys
import time
from typing import TYPE_CHECKING

from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.domain.request import Target
from smart_model_router_stats.book import StatsBook

if TYPE_CHECKING:
    from collections.abc import Callable

RUNS = 9
CALLS = 20_000
TARGETS = [Target(f"p{number % 4}/m{number}", f"p{number % 4}", f"m{number}") for number in range(10)]
LIMITS_US = {"observe": 5.0, "snapshot, unchanged": 1.0}


def attempts() -> list[AttemptFinished]:
    """Twenty minutes of calls: half of them streams, one in ten failed, latencies spread as real ones are."""
    dice = random.Random(1)  # noqa: S311 - a repeatable load, not a secret
    made: list[AttemptFinished] = []
    for number in range(CALLS):
        target = TARGETS[number % len(TARGETS)]
        at = number * 1200.0 / CALLS
        seconds = dice.lognormvariate(1.0, 0.6)
        stream = dice.random() < 0.5
        failed = dice.random() < 0.1
        made.append(
            AttemptFinished(
                at=at,
                admitted_at=at - seconds,
                target=target.id,
                provider=target.provider,
                model=target.model,
                stream=stream,
                seconds=seconds,
                failure_class=FailureClass.SERVER_ERROR if failed else None,
                ttft_seconds=seconds / 5 if stream and not failed else None,
                usage=None if failed else Usage(800, dice.randint(1, 900)),
            )
        )
    return made


def new_book() -> StatsBook:
    """A book that knows the ten targets."""
    return StatsBook(TARGETS, wall=lambda: 0.0)


def baseline(events: list[AttemptFinished]) -> None:
    """The least work that counts calls."""
    counts: dict[str, int] = {}
    seen: list[float] = []
    for event in events:
        counts[event.target] = counts.get(event.target, 0) + 1
        seen.append(event.seconds)


def observe(events: list[AttemptFinished]) -> None:
    """One observation a call."""
    book = new_book()
    for event in events:
        book.observe(event)


def observe_and_ask(events: list[AttemptFinished]) -> None:
    """As the router does it: a snapshot of each of ten targets before a call, one observation after it."""
    book = new_book()
    for event in events:
        for target in TARGETS:
            book.snapshot(target.id, event.at)
        book.observe(event)


def unchanged(events: list[AttemptFinished]) -> Callable[[list[AttemptFinished]], None]:
    """Make the run that asks for snapshots nothing has happened to."""
    book = new_book()
    for event in events:
        book.observe(event)
    now = events[-1].at

    def ask(events: list[AttemptFinished]) -> None:
        for event in events:
            book.snapshot(event.target, now)

    return ask


def cpu_us(work: Callable[[list[AttemptFinished]], None], events: list[AttemptFinished]) -> float:
    """Microseconds of CPU a call."""
    start = time.process_time()
    work(events)
    return (time.process_time() - start) / len(events) * 1e6


def main() -> int:
    """Measure, print, and say by the exit code whether the limits hold."""
    events = attempts()
    works = {
        "baseline": baseline,
        "observe": observe,
        "snapshot, unchanged": unchanged(events),
        "10 snapshots + observe": observe_and_ask,
    }
    taken: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(RUNS):
        for name, work in works.items():
            taken[name].append(cpu_us(work, events))
    medians = {name: statistics.median(figures) for name, figures in taken.items()}
    for name, median in medians.items():
        limit = f"  (limit {LIMITS_US[name]:g} us)" if name in LIMITS_US else ""
        print(f"{name:24} {median:8.3f} us  {median / medians['baseline']:7.1f} x baseline{limit}")
    return int(any(medians[name] >= limit for name, limit in LIMITS_US.items()))


if __name__ == "__main__":
    sys.exit(main())
