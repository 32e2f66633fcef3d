"""The parts of every benchmark: CPU time of work, medians, and the line that compares a figure with its limit."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

NOISE = 1.5
"""A limit counts as missed for the exit code when a figure is this many times over it: machines are shared."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A measured number, what it is compared with, and the limit it promises to stay at or below.

    `against` names the baseline; `note` says what else a reader should know, such as a stretch.
    """

    name: str
    value: float
    unit: str
    baseline: float
    against: str
    limit: float
    note: str = ""

    def line(self) -> str:
        """Figure, baseline, ratio, limit, verdict."""
        ratio = f"{self.value / self.baseline:.2f} x" if self.baseline else "no ratio"
        verdict = "ok" if self.value <= self.limit else "MISSED"
        note = f" ({self.note})" if self.note else ""
        return (
            f"{self.name}: {_shown(self.value)} {self.unit}, baseline {_shown(self.baseline)} ({self.against}), "
            f"ratio {ratio}, limit {_shown(self.limit)}, {verdict}{note}"
        )


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def report(*figures: Figure) -> int:
    """Print a line for each figure. The exit code: 1 when one is over its limit by more than noise explains."""
    for figure in figures:
        print(figure.line())
    return int(any(figure.value > NOISE * figure.limit for figure in figures))


async def cpu_us(work: Callable[[], Awaitable[object]], calls: int) -> float:
    """Microseconds of this process's CPU that one of `calls` calls of `work`, one after another, takes."""
    start = time.process_time()
    for _ in range(calls):
        await work()
    return (time.process_time() - start) / calls * 1e6


async def medians(works: Mapping[str, Callable[[], Awaitable[object]]], *, runs: int, calls: int) -> dict[str, float]:
    """The median `cpu_us` of each of `works` over `runs` runs, taken in turn so that a busy moment hits all of them."""
    taken: dict[str, list[float]] = {name: [] for name in works}
    for work in works.values():
        await cpu_us(work, max(1, calls // 4))  # caches fill and connections open before anything counts
    for _ in range(runs):
        for name, work in works.items():
            taken[name].append(await cpu_us(work, calls))
    return {name: statistics.median(figures) for name, figures in taken.items()}
