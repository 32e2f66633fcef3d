"""Sinks that take events many at a time show what they would show had they taken each at once."""

from __future__ import annotations

import pytest

from smart_model_router.domain.events import BreakerChanged, Event, OfflineChanged, RequestFinished
from smart_model_router.observability.dashboard_history import DashboardHistory
from smart_model_router.observability.metrics import Metrics
from smart_model_router.observability.registry import Sample
from smart_model_router.observability.worker import Batcher
from tests.unit.observability.test_log import finished

OPENED = BreakerChanged(at=100.0, owner="a/big", kind="whole", from_state="closed", to_state="open", reason="ratio")


def gathering() -> tuple[Batcher, list[Event]]:
    """A sink of requests and breakers, and what it took in."""
    taken: list[Event] = []
    return Batcher({RequestFinished: taken.append, BreakerChanged: taken.append}), taken


def test_a_batch_is_taken_in_at_once_and_in_order() -> None:
    """127 events wait, the 128th brings all of them; what nobody asked for does not wait at all."""
    sink, taken = gathering()
    told = [finished(number) for number in range(128)]
    for event in told[:-1]:
        sink.emit(event)
        sink.emit(OfflineChanged(at=100.0, offline=True))
    assert taken == []
    sink.emit(told[-1])
    assert taken == told


def test_news_does_not_wait() -> None:
    """A breaker that moved is taken in at once, after what came before it."""
    sink, taken = gathering()
    sink.emit(finished(1))
    sink.emit(OPENED)
    assert taken == [finished(1), OPENED]


def test_an_event_that_fails_holds_up_no_other() -> None:
    """It is given up; those behind it are taken in next time."""

    def take(event: RequestFinished) -> None:
        if event.request_id == "req-1":
            raise ValueError("a mistake")
        taken.append(event)

    taken: list[Event] = []
    sink = Batcher({RequestFinished: take})
    for number in range(3):
        sink.emit(finished(number))
    with pytest.raises(ValueError, match="a mistake"):
        sink.catch_up()
    sink.catch_up()
    assert taken == [finished(0), finished(2)]


def test_counters_know_of_the_last_event() -> None:
    """Whoever asks for the figures gets them as of now."""
    metrics = Metrics()
    for number in range(3):
        metrics.emit(finished(number))
        counted = {sample for sample in metrics.samples() if sample.name == "smr_requests_total"}
        assert counted == {Sample("smr_requests_total", (("model", "smart"), ("outcome", "ok")), number + 1.0)}


def test_the_router_before_still_counts_where_the_new_one_is_asked() -> None:
    """After a reload, requests of the one before end: nobody looks at it any more, and yet they are in the figures."""
    before, after = Metrics(), Metrics()
    before.emit(finished(1))
    after.continue_from(before)
    before.emit(finished(2))
    after.emit(finished(3))
    [counted] = [sample for sample in after.samples() if sample.name == "smr_requests_total"]
    assert counted.value == 3.0


def test_the_dashboards_past_knows_of_the_last_event() -> None:
    """Steps, requests, who serves and failures in a row are those of now, whichever is asked for first."""
    looks = (
        lambda recorder: recorder.steps[-1].served["a/big"],
        lambda recorder: len(recorder.requests),
        lambda recorder: len(recorder.serving),
        lambda recorder: len(list(recorder.recent(60))),
    )
    for look in looks:
        recorder = DashboardHistory(clock=lambda: 100.0, wall=lambda: 1_700_000_000.0)
        recorder.emit(finished(1))
        assert look(recorder) == 1
