"""Counters and histograms in memory. Belongs to one event loop; a copy (`samples`) may be made by another thread."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from smart_model_router.observability.metric_definitions import METRICS

Cell = list[float]
"""A counter, a list of one number: frequent users keep a reference to it."""


class Sample(NamedTuple):
    """One figure. `name` is as it is exposed (`..._bucket`, `..._sum`, `..._count` of a histogram)."""

    name: str
    labels: tuple[tuple[str, str], ...]
    value: float


class Histogram:
    """Counts by upper bound, one count beyond the last bound, and the sum."""

    __slots__ = ("_bounds", "cells")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.cells = [0.0] * (len(bounds) + 2)

    def observe(self, seconds: float) -> None:
        """Add a value."""
        cells = self.cells
        cells[bisect_left(self._bounds, seconds)] += 1.0
        cells[-1] += seconds


class Registry:
    """Counters and histograms by name and label values, the values in the order of the table's labels."""

    __slots__ = ("_counts", "_histograms")

    def __init__(self) -> None:
        self._counts: dict[tuple[str, tuple[str, ...]], Cell] = {}
        self._histograms: dict[tuple[str, tuple[str, ...]], Histogram] = {}

    def cell(self, name: str, *values: str) -> Cell:
        """Return the counter itself."""
        return self._counts.setdefault((name, values), [0.0])

    def count(self, name: str, *values: str, by: float = 1.0) -> None:
        """Add to a counter."""
        self.cell(name, *values)[0] += by

    def histogram(self, name: str, *values: str) -> Histogram:
        """Return the histogram itself, which may be kept as well."""
        known = self._histograms.get((name, values))
        if known is None:
            known = self._histograms[name, values] = Histogram(METRICS[name].buckets)
        return known

    def forget(self, targets: AbstractSet[str]) -> None:
        """Drop every figure of targets that no longer exist."""
        for name, values in (*self._counts, *self._histograms):
            if values and values[0] in targets and METRICS[name].labels[0] == "target":
                self._counts.pop((name, values), None)
                self._histograms.pop((name, values), None)

    def samples(self) -> list[Sample]:
        """Every figure, histograms cumulative as they are exposed."""
        counts = self._counts.copy().items()
        made = [Sample(name, labelled(name, values), cell[0]) for (name, values), cell in counts]
        for (name, values), histogram in self._histograms.copy().items():
            made += _exposed(name, labelled(name, values), histogram.cells.copy())
        return made


def labelled(name: str, values: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    """Label values with their names, as the table has them."""
    return tuple(zip(METRICS[name].labels, values, strict=True))


def _exposed(name: str, labels: tuple[tuple[str, str], ...], cells: list[float]) -> list[Sample]:
    made, so_far = [], 0.0
    for bound, count in zip((*METRICS[name].buckets, float("inf")), cells, strict=False):
        so_far += count
        made.append(
            Sample(f"{name}_bucket", (*labels, ("le", "+Inf" if bound == float("inf") else f"{bound:g}")), so_far)
        )
    return [*made, Sample(f"{name}_sum", labels, cells[-1]), Sample(f"{name}_count", labels, so_far)]
