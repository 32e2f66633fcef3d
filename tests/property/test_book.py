"""The book's kept snapshots against a book that keeps none."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.domain.request import Target
from smart_model_router_stats.book import StatsBook

TARGET = Target("a/big", "a", "big")
WHOLE = AttemptFinished(at=0.0, admitted_at=0.0, target=TARGET.id, provider="a", model="big", stream=False, seconds=2.0)
KINDS = st.sampled_from(
    [
        WHOLE,
        replace(WHOLE, usage=Usage(10, 50), stream=True),
        replace(WHOLE, ttft_seconds=0.5, stream=True),
        replace(WHOLE, ttft_seconds=0.7, stream=True, failure_class=FailureClass.TRUNCATED),
        replace(WHOLE, failure_class=FailureClass.SERVER_ERROR),
        replace(WHOLE, failure_class=FailureClass.RATE_LIMITED),
        replace(WHOLE, failure_class=FailureClass.CANCELLED),
    ]
)
GAPS = st.sampled_from([0.0, 1.0, 60.0, 299.0, 300.0, 900.0])
LOOKS = st.lists(st.sampled_from([0.0, 1.0, 240.0, 299.0, 300.0, 301.0, 899.0, 900.0]), unique=True).map(sorted)


def book_of(events: list[AttemptFinished]) -> StatsBook:
    """Make a book that has seen `events` and was never asked."""
    book = StatsBook([TARGET], wall=lambda: 0.0)
    for event in events:
        book.observe(event)
    return book


@given(st.lists(st.tuples(GAPS, KINDS), max_size=8), LOOKS)
def test_a_kept_snapshot_is_what_a_fresh_one_would_be(
    steps: list[tuple[float, AttemptFinished]], looks: list[float]
) -> None:
    """However often it was asked before, the book says at each instant what its events say then."""
    asked = book_of([])
    seen: list[AttemptFinished] = []
    now = 0.0
    for gap, kind in steps:
        now += gap
        seen.append(replace(kind, at=now))
        asked.observe(seen[-1])
        assert asked.snapshot(TARGET.id, now) == book_of(seen).snapshot(TARGET.id, now)
    for later in looks:
        assert asked.snapshot(TARGET.id, now + later) == book_of(seen).snapshot(TARGET.id, now + later)
