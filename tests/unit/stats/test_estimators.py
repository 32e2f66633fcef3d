"""The estimators by example: what a first sample, a gap, a full window and a passed minute do."""

from __future__ import annotations

import pytest

from smart_model_router_stats.estimators import (
    NEVER,
    Ema,
    LatencyHistogram,
    OutcomeWindow,
    RollingHistogram,
)


def histogram(*values: float) -> LatencyHistogram:
    """Make a histogram of `values`."""
    made = LatencyHistogram()
    for value in values:
        made.record(value)
    return made


def test_the_first_sample_sets_the_average() -> None:
    """The first sample is the average: it is not mixed with a made-up zero."""
    ema = Ema()
    ema.add(8.0, now=0.0)
    assert ema.value(now=0.0) == 8.0


def test_a_later_sample_moves_the_average_by_a_fifth() -> None:
    """With alpha 0.2, one sample counts a fifth."""
    ema = Ema()
    ema.add(10.0, now=0.0)
    ema.add(20.0, now=1.0)
    assert ema.value(now=1.0) == pytest.approx(12.0)


def test_alpha_is_the_weight_of_the_newest_sample() -> None:
    """Another alpha weighs the newest sample accordingly."""
    ema = Ema(alpha=0.5)
    ema.add(10.0, now=0.0)
    ema.add(20.0, now=1.0)
    assert ema.value(now=1.0) == pytest.approx(15.0)


def test_a_true_zero_is_a_sample() -> None:
    """A first sample of 0.0 is known to be 0.0, and the second is mixed with it."""
    ema = Ema()
    ema.add(0.0, now=0.0)
    assert ema.value(now=0.0) == 0.0
    ema.add(10.0, now=1.0)
    assert ema.value(now=1.0) == pytest.approx(2.0)


def test_an_average_without_samples_is_unknown() -> None:
    """Before the first sample there is no average, and nothing that could age."""
    assert Ema().value(now=0.0) is None
    assert Ema().changes_at(now=0.0) == NEVER


def test_an_average_is_forgotten_after_five_minutes() -> None:
    """Five minutes after the last sample the average is unknown, not an instant earlier."""
    ema = Ema()
    ema.add(8.0, now=100.0)
    assert ema.changes_at(now=100.0) == 400.0
    assert ema.value(now=399.999) == 8.0
    assert ema.value(now=400.0) is None
    assert ema.changes_at(now=400.0) == NEVER


def test_a_sample_after_a_long_silence_starts_over() -> None:
    """What was forgotten does not come back: the next sample sets the average again."""
    ema = Ema()
    ema.add(100.0, now=0.0)
    ema.add(2.0, now=300.0)
    assert ema.value(now=300.0) == 2.0


def test_an_empty_histogram_has_no_percentile() -> None:
    """Without a sample no percentile is made up."""
    assert LatencyHistogram().percentile(99) is None


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (75, 8), (90, 9), (91, 10), (99, 10), (100, 10)])
def test_percentiles_are_by_nearest_rank(percent: int, expected: float) -> None:
    """Of 1..10 the p-th percentile is the least value with p % of all at or below it, within 1 %."""
    assert histogram(*range(1, 11)).percentile(percent) == pytest.approx(expected, rel=0.01)


def test_a_zero_reads_as_zero() -> None:
    """Values below a microsecond are samples too, and read as 0."""
    assert histogram(0.0, 0.0, 3.0).percentile(50) == 0.0


@pytest.mark.parametrize("value", [1e6, 1e9, float("inf")])
def test_absurd_values_read_as_a_million(value: float) -> None:
    """Whatever is beyond a million is counted in the last bucket: the histogram stays small and finite."""
    assert histogram(value).percentile(100) == pytest.approx(1e6, rel=0.01)


@pytest.mark.parametrize("percent", [-1, 0, 101])
def test_a_percentile_outside_of_1_to_100_is_refused(percent: int) -> None:
    """There is no zeroth percentile by nearest rank, and none beyond the hundredth: asking is a bug."""
    with pytest.raises(ValueError, match=f"{percent} is not in 1"):
        histogram(1.0).percentile(percent)


def test_counts_are_a_view_to_read() -> None:
    """The counts by bucket can be stored elsewhere and added up again to the same histogram."""
    original = histogram(0.0, 0.2, 0.2, 7.0)
    copy = LatencyHistogram()
    for bucket, count in original.counts.items():
        copy.add(bucket, count)
    assert copy.counts == original.counts
    assert copy.total == 4


def test_a_sample_leaves_the_last_15_minutes_and_stays_in_all_time() -> None:
    """A sample of the first second is recent for 15 minutes and never again; of all time it is for ever."""
    rolling = RollingHistogram()
    rolling.record(2.0, now=0.0)
    assert rolling.changes_at(now=0.0) == 900.0
    assert rolling.recent(now=899.0).total == 1
    assert rolling.recent(now=900.0).total == 0
    assert rolling.changes_at(now=900.0) == NEVER
    assert rolling.all_time().total == 1


def test_minutes_leave_one_by_one() -> None:
    """When the oldest minute leaves, the younger ones stay."""
    rolling = RollingHistogram()
    rolling.record(2.0, now=0.0)
    rolling.record(4.0, now=59.0)
    rolling.record(8.0, now=60.0)
    assert rolling.recent(now=900.0).percentile(1) == pytest.approx(8.0, rel=0.01)
    assert rolling.all_time().total == 3


def test_a_sample_drops_the_minutes_that_passed_meanwhile() -> None:
    """Old minutes leave when a sample comes, too: nobody needs to read for memory to stay bounded."""
    rolling = RollingHistogram()
    rolling.record(2.0, now=0.0)
    rolling.record(4.0, now=6000.0)
    assert rolling.recent(now=6000.0).total == 1
    assert rolling.all_time().total == 2


def test_the_window_keeps_the_newest_50_outcomes() -> None:
    """The 51st outcome replaces the first."""
    window = OutcomeWindow()
    window.add(0.0, success=False)
    for second in range(50):
        window.add(float(second), success=True)
    assert window.counts(now=50.0) == (50, 50)


def test_an_outcome_leaves_after_five_minutes() -> None:
    """An outcome counts up to 5 minutes of age, and the window says when the next one leaves."""
    window = OutcomeWindow()
    window.add(0.0, success=True)
    window.add(10.0, success=False)
    assert window.changes_at(now=10.0) == 300.0
    assert window.counts(now=299.999) == (1, 2)
    assert window.counts(now=300.0) == (0, 1)
    assert window.changes_at(now=300.0) == 310.0


def test_the_newest_outcome_is_known_while_it_counts() -> None:
    """The instant of the newest outcome is known until that outcome leaves."""
    window = OutcomeWindow()
    assert window.newest_at(now=0.0) is None
    window.add(0.0, success=True)
    window.add(10.0, success=False)
    assert window.newest_at(now=20.0) == 10.0
    assert window.newest_at(now=310.0) is None
    assert window.changes_at(now=310.0) == NEVER
