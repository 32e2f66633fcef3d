"""Several processes report one truth: sums that never go back, gauges of who lives, one state a target."""

from __future__ import annotations

from pathlib import Path

import pytest

from smart_model_router.observability.multiprocess import LIVE_SECONDS, SharedMetrics
from smart_model_router.observability.registry import Registry, Sample

OK = ("smr_requests_total", (("model", "smart"), ("outcome", "ok")))
FLIGHT = ("smr_inflight", (("target", "a/big"),))


class Clock:
    """A wall clock by hand."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """Seconds since the epoch."""
    return Clock()


def given(ok: float, flight: float = 0.0, state: str = "closed") -> list[Sample]:
    """A process's figures."""
    states = [
        Sample("smr_breaker_state", (("target", "a/big"), ("state", one)), float(one == state))
        for one in ("closed", "half_open", "isolated", "open")
    ]
    return [Sample(*OK, ok), Sample(*FLIGHT, flight), *states]


def told(samples: list[Sample], of: tuple[str, tuple[tuple[str, str], ...]]) -> float | None:
    """One figure."""
    return next((sample.value for sample in samples if sample[:2] == of), None)


def states(samples: list[Sample]) -> dict[str, float]:
    """The one-hot state."""
    return {sample.labels[1][1]: sample.value for sample in samples if sample.name == "smr_breaker_state"}


def test_two_processes_report_one_truth(tmp_path: Path, clock: Clock) -> None:
    """Whichever is asked: counters and calls under way are the sum, the state is the worst and one alone."""
    one, two = (SharedMetrics(tmp_path / "m.db", wall=clock) for _ in range(2))
    one.exchange(given(3, 1, "open"))
    seen_by_two = two.exchange(given(4, 2, "half_open"))
    seen_by_one = one.exchange(given(3, 1, "open"))
    assert sorted(seen_by_one) == sorted(seen_by_two)
    assert (told(seen_by_one, OK), told(seen_by_one, FLIGHT)) == (7, 3)
    assert states(seen_by_one) == {"open": 1, "closed": 0, "half_open": 0, "isolated": 0}


def test_what_a_process_that_is_gone_counted_stays(tmp_path: Path, clock: Clock) -> None:
    """Its counters stay in the sum, once; its gauges were of then."""
    one, two = (SharedMetrics(tmp_path / "m.db", wall=clock) for _ in range(2))
    two.exchange(given(4, 2, "open"))
    for _ in range(3):
        clock.now += LIVE_SECONDS
        got = one.exchange(given(3, 1))
    clock.now += 0.1
    got = one.exchange(given(5, 1))
    assert (told(got, OK), told(got, FLIGHT)) == (9, 1)
    assert states(got)["closed"] == 1


def test_a_process_that_slept_is_not_counted_twice(tmp_path: Path, clock: Clock) -> None:
    """It was added up as gone; what it counts from then on is added, what it had counted is not added again."""
    one, two = (SharedMetrics(tmp_path / "m.db", wall=clock) for _ in range(2))
    two.exchange(given(4))
    clock.now += LIVE_SECONDS + 1
    one.exchange(given(3))
    assert told(two.exchange(given(4)), OK) == 7
    assert told(two.exchange(given(6)), OK) == 9
    assert told(one.exchange(given(3)), OK) == 9


def test_a_counter_never_goes_back(tmp_path: Path, clock: Clock) -> None:
    """Over restarts, deaths and sleeps the sum only grows."""
    seen, total = [], 0
    for _ in range(5):
        process = SharedMetrics(tmp_path / "m.db", wall=clock)
        for count in range(1, 4):
            clock.now += 7
            seen.append(told(process.exchange(given(count)), OK))
        total += 3
    assert seen == sorted(seen, key=lambda one: one or 0)
    assert seen[-1] == total


def test_what_a_process_no_longer_has_is_no_longer_shown(tmp_path: Path, clock: Clock) -> None:
    """A target that a reload dropped: its gauges go, those of another process stay, and no counter goes back."""
    one, two = (SharedMetrics(tmp_path / "m.db", wall=clock) for _ in range(2))
    two.exchange(given(4, 2))
    one.exchange(given(3, 1, "open"))
    got = one.exchange([])
    assert (told(got, OK), told(got, FLIGHT)) == (7, 2)
    assert states(got)["closed"] == 1
    got = one.exchange(given(3, 1, "open"))
    assert (told(got, OK), told(got, FLIGHT)) == (7, 3)
    assert states(got)["open"] == 1


def test_a_counter_that_was_forgotten_goes_on(tmp_path: Path, clock: Clock) -> None:
    """A name that was unused for an hour counts from 0 again: in the file that is added to what there was."""
    one, two = (SharedMetrics(tmp_path / "m.db", wall=clock) for _ in range(2))
    two.exchange(given(4))
    one.exchange(given(3))
    one.exchange([])
    assert told(one.exchange(given(1)), OK) == 8
    assert told(one.exchange(given(2)), OK) == 9
    assert told(one.exchange(given(1)), OK) == 10
    assert told(two.exchange(given(4)), OK) == 10


def test_figures_of_a_newer_version_are_left_to_it(tmp_path: Path, clock: Clock) -> None:
    """A process of another version on the same file: what only it knows is not shown, and in nobody's way."""
    ours, newer = (SharedMetrics(tmp_path / "m.db", wall=clock) for _ in range(2))
    newer.exchange([*given(4), Sample("smr_newer", (), 1), Sample("smr_newer_seconds_bucket", (("le", "1"),), 1)])
    got = ours.exchange(given(3))
    assert told(got, OK) == 7
    assert not [sample for sample in got if sample.name.startswith("smr_newer")]


def test_histograms_add_up(tmp_path: Path, clock: Clock) -> None:
    """Bucket by bucket."""
    one, two = Registry(), Registry()
    one.histogram("smr_overhead_seconds").observe(0.0002)
    two.histogram("smr_overhead_seconds").observe(0.9)
    first, second = (SharedMetrics(tmp_path / "m.db", wall=clock) for _ in range(2))
    first.exchange(one.samples())
    got = second.exchange(two.samples())
    assert told(got, ("smr_overhead_seconds_count", ())) == 2
    assert told(got, ("smr_overhead_seconds_bucket", (("le", "0.00025"),))) == 1
    assert told(got, ("smr_overhead_seconds_bucket", (("le", "+Inf"),))) == 2


def test_a_file_that_cannot_be_used_leaves_a_process_its_own_figures(
    tmp_path: Path, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, and over when the file is well again; nothing is counted twice."""
    path = tmp_path / "no" / "m.db"
    alone = SharedMetrics(path, wall=clock)
    for _ in range(3):
        assert told(alone.exchange(given(3)), OK) == 3
    assert alone.problem
    assert len(caplog.records) == 1
    path.parent.mkdir()
    assert told(alone.exchange(given(4)), OK) == 4
    assert alone.problem == ""
    assert path.stat().st_mode & 0o077 == 0
