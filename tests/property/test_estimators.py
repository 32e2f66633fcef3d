"""The estimators against plain lists: percentile error, merging, ageing, bounds."""

from __future__ import annotations

import math
from itertools import accumulate

from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_stats.estimators import (
    NEVER,
    Ema,
    LatencyHistogram,
    OutcomeWindow,
    RollingHistogram,
)

# Values all over the range, and runs of close ones, where the edges of the buckets are.
VALUES = st.lists(
    st.one_of(
        st.just(0.0),
        st.floats(min_value=1e-6, max_value=1e6),
        st.integers(min_value=-690, max_value=690).map(lambda power: 1.02**power),
    ),
    max_size=60,
)
# Gaps between events that line up with what is tested: a minute, 5 and 15 minutes, and one second beside.
GAPS = st.sampled_from([0.0, 1.0, 30.0, 59.0, 60.0, 61.0, 299.0, 300.0, 301.0, 899.0, 900.0])
# About as many outcomes as the window holds, close enough together that none leaves by age.
CROWDED = st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.booleans()), min_size=48, max_size=54)
QUIET = st.sampled_from([0.0, 1.0, 60.0, 240.0, 299.0, 300.0, 840.0, 899.0, 900.0])


def histogram(values: list[float]) -> LatencyHistogram:
    """Make a histogram of `values`."""
    made = LatencyHistogram()
    for value in values:
        made.record(value)
    return made


def merged(*parts: LatencyHistogram) -> LatencyHistogram:
    """Merge `parts` from left to right into a new histogram."""
    made = LatencyHistogram()
    for part in parts:
        made.merge(part)
    return made


def contents(made: LatencyHistogram) -> tuple[dict[int, int], int, list[float | None]]:
    """All that can be seen of a histogram."""
    return (
        dict(made.counts),
        made.total,
        [made.percentile(percent) for percent in (1, 50, 75, 90, 95, 99, 100)],
    )


def nearest_rank(values: list[float], percent: int) -> float:
    """The percentile by its definition."""
    ordered = sorted(values)
    return ordered[math.ceil(percent * len(ordered) / 100) - 1]


@given(VALUES.filter(bool), st.integers(min_value=1, max_value=100))
def test_a_percentile_is_at_most_one_percent_off(values: list[float], percent: int) -> None:
    """Whatever the samples, a percentile differs from the nearest rank by at most 1 %."""
    exact = nearest_rank(values, percent)
    got = histogram(values).percentile(percent)
    assert got is not None
    assert abs(got - exact) <= 0.01 * exact


@given(VALUES, VALUES)
def test_merging_is_commutative(one: list[float], other: list[float]) -> None:
    """It does not matter which of two histograms is merged into which."""
    left = merged(histogram(one), histogram(other))
    right = merged(histogram(other), histogram(one))
    assert contents(left) == contents(right)


@given(VALUES, VALUES, VALUES)
def test_merging_is_associative(one: list[float], two: list[float], three: list[float]) -> None:
    """It does not matter how parts are grouped when they are merged."""
    a, b, c = histogram(one), histogram(two), histogram(three)
    assert contents(merged(merged(a, b), c)) == contents(merged(a, merged(b, c)))


@given(VALUES, VALUES)
def test_a_merge_loses_nothing(one: list[float], other: list[float]) -> None:
    """Merged histograms are the histogram of all samples; the one merged from stays as it was."""
    source = histogram(other)
    assert contents(merged(histogram(one), source)) == contents(histogram(one + other))
    assert contents(source) == contents(histogram(other))


@given(VALUES, VALUES)
def test_removing_undoes_a_merge(one: list[float], other: list[float]) -> None:
    """What was added and is taken out leaves no trace."""
    got = merged(histogram(one), histogram(other))
    got.remove(histogram(other))
    assert contents(got) == contents(histogram(one))


@given(st.lists(st.tuples(GAPS, st.booleans()), max_size=60) | CROWDED, QUIET)
def test_the_window_is_the_newest_50_of_the_last_5_minutes(steps: list[tuple[float, bool]], quiet: float) -> None:
    """Never an outcome of 5 minutes or more, never more than 50, and always the newest of them."""
    window = OutcomeWindow()
    instants = list(accumulate(gap for gap, _ in steps))
    outcomes = list(zip(instants, (success for _, success in steps), strict=True))
    for at, success in outcomes:
        window.add(at, success=success)
    now = (instants[-1] if instants else 0.0) + quiet
    counted = [(at, success) for at, success in outcomes[-50:] if now - at < 300.0]
    assert window.counts(now) == (sum(success for _, success in counted), len(counted))
    assert window.newest_at(now) == (counted[-1][0] if counted else None)


@given(st.lists(st.tuples(GAPS, st.floats(min_value=0.001, max_value=1000.0)), max_size=40), QUIET)
def test_the_rolling_histogram_forgets_whole_minutes_and_nothing_else(
    steps: list[tuple[float, float]], quiet: float
) -> None:
    """Recent is what began less than 15 whole minutes ago, never older than 15; all time is everything."""
    rolling = RollingHistogram()
    instants = list(accumulate(gap for gap, _ in steps))
    samples = list(zip(instants, (value for _, value in steps), strict=True))
    for at, value in samples:
        rolling.record(value, at)
    now = (instants[-1] if instants else 0.0) + quiet
    recent = [value for at, value in samples if now // 60 - at // 60 < 15]
    assert contents(rolling.recent(now)) == contents(histogram(recent))
    assert contents(rolling.all_time()) == contents(histogram([value for _, value in samples]))


@given(st.lists(st.tuples(GAPS, st.floats(min_value=0.0, max_value=1e6)), min_size=1, max_size=40))
def test_an_average_stays_between_its_samples(steps: list[tuple[float, float]]) -> None:
    """The average is never below the least nor above the greatest sample since it was last unknown."""
    ema = Ema()
    now = 0.0
    known: list[float] = []
    for gap, sample in steps:
        now += gap
        known = [*known, sample] if gap < 300.0 else [sample]
        ema.add(sample, now)
        value = ema.value(now)
        assert value is not None
        assert min(known) - 1e-9 <= value <= max(known) + 1e-9


@given(st.lists(GAPS, min_size=1, max_size=20), st.sampled_from([0.0, 1.0, 100.0, 299.0, 300.0, 899.0]))
def test_nothing_changes_before_its_announced_instant(gaps: list[float], quiet: float) -> None:
    """What a reader computed stays right until the announced instant, and is different from then on."""
    ema, window, rolling = Ema(), OutcomeWindow(), RollingHistogram()
    now = 0.0
    for gap in gaps:
        now += gap
        ema.add(1.0, now)
        window.add(now, success=True)
        rolling.record(1.0, now)
    now += quiet
    readings = (
        (ema.changes_at, ema.value),
        (window.changes_at, window.counts),
        (rolling.changes_at, lambda at: rolling.recent(at).total),
    )
    for changes_at, read in readings:
        before = read(now)
        until = changes_at(now)
        ends = min(until, now + 1e6)
        assert until > now
        assert read(math.nextafter(ends, -math.inf)) == before
        assert (read(ends) == before) is (until == NEVER)
