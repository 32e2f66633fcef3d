"""Statistics of a file from before this process, in the form of the book: percentiles and averages survive."""

# ruff: noqa: S608 - made of the constants of this file

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router_stats.estimators import LatencyHistogram, RollingHistogram
from smart_model_router_stats.schema import LATENCY, TTFT

if TYPE_CHECKING:
    import sqlite3

AVERAGED_MINUTES = 5
"""Older minutes have no part in an average (routing.md section 1)."""

_ALL_TIME = """
SELECT t.name, h.kind, h.bucket, h.count FROM hist_total h JOIN target t ON t.id = h.target
"""
_MINUTES = """
SELECT t.name, h.kind, h.minute, h.bucket, h.count FROM hist_minute h JOIN target t ON t.id = h.target
WHERE h.minute > :minute - :minutes AND h.minute <= :minute
"""
# A minute weighs half of the one after it, as in the views.
_WEIGHT = "1.0 / (1 << (:minute - s.minute))"
_AVERAGES = f"""
SELECT t.name, max(s.minute),
  sum(s.latency_sum * {_WEIGHT}) / nullif(sum(s.latency_count * {_WEIGHT}), 0),
  sum(s.ttft_sum * {_WEIGHT}) / nullif(sum(s.ttft_count * {_WEIGHT}), 0),
  sum(s.pace_sum * {_WEIGHT}) / nullif(sum(s.pace_count * {_WEIGHT}), 0)
FROM sum_minute s JOIN target t ON t.id = s.target
WHERE s.minute > :minute - :minutes AND s.minute <= :minute GROUP BY t.id
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """The past of one target: histograms of seconds, and averages as of the instant `averaged_at`.

    `pace` is seconds per 100 output tokens. An average is None when there was no sample in the last 5 minutes.
    """

    target: str
    latency: RollingHistogram
    ttft: RollingHistogram
    averaged_at: float
    averages: tuple[float | None, float | None, float | None] = (None, None, None)
    """latency, ttft, pace"""


def read_past(connection: sqlite3.Connection, wall: float, now: float) -> list[Past]:
    """Every target's past, `now` being the instant that is `wall` seconds since the epoch. Raises sqlite3.Error.

    Minutes count from their first second, so that nothing is recent for longer than it should be. Minutes that have
    not begun yet (the wall clock went back) are in the figures of all time alone.
    """
    minute = int(wall // 60)
    everything: defaultdict[tuple[str, int], LatencyHistogram] = defaultdict(LatencyHistogram)
    recent: defaultdict[tuple[str, int], dict[float, LatencyHistogram]] = defaultdict(dict)
    averages: dict[str, tuple[float, tuple[float | None, float | None, float | None]]] = {}
    connection.execute("BEGIN")  # all from one snapshot
    try:
        for name, kind, bucket, count in connection.execute(_ALL_TIME):
            everything[name, kind].add(bucket, count)
        spans = {"minute": minute, "minutes": RollingHistogram.MINUTES}
        for name, kind, number, bucket, count in connection.execute(_MINUTES, spans):
            begun = (now - wall + 60.0 * number) // 60.0
            recent[name, kind].setdefault(begun, LatencyHistogram()).add(bucket, count)
        spans["minutes"] = AVERAGED_MINUTES
        for name, number, *values in connection.execute(_AVERAGES, spans):
            averages[name] = (min(now, now - wall + 60.0 * (number + 1)), (values[0], values[1], values[2]))
    finally:
        connection.execute("COMMIT")
    found = []
    for name in dict.fromkeys([*(name for name, _ in everything), *averages]):
        latency, ttft = (RollingHistogram.of(everything[name, kind], recent[name, kind]) for kind in (LATENCY, TTFT))
        averaged_at, values_of = averages.get(name, (now, (None, None, None)))
        found.append(Past(target=name, latency=latency, ttft=ttft, averaged_at=averaged_at, averages=values_of))
    return found
