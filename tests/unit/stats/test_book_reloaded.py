"""A book goes on with that of the router before: figures are of the process, and nothing is counted twice."""

from __future__ import annotations

from smart_model_router.domain.request import Target
from smart_model_router_stats.book import StatsBook
from smart_model_router_stats.estimators import LatencyHistogram, RollingHistogram
from smart_model_router_stats.reading import Past
from tests.unit.stats.test_book import BIG, ELSEWHERE, SMALL, attempt, book_of

NEW = Target("a/new", "a", "new")
ALL = frozenset({BIG.id, SMALL.id, ELSEWHERE.id})


def book_after(before: StatsBook, *targets: Target, unchanged: frozenset[str] = ALL) -> StatsBook:
    """The book of a router that took the place of another at second 10."""
    after = StatsBook(targets, wall=lambda: 5000.0)
    after.continue_from(before, unchanged, 10.0)
    return after


def past(target: Target) -> Past:
    """What a store knows: one answer of 2 s, of all time."""
    seen = LatencyHistogram()
    seen.record(2.0)
    empty = RollingHistogram.of(LatencyHistogram(), {})
    return Past(target=target.id, latency=RollingHistogram.of(seen, {}), ttft=empty, averaged_at=0.0)


def test_both_see_what_comes_of_a_call_whoever_is_told() -> None:
    """The router before ends its calls: decisions of the new one know of them."""
    before = book_of(attempt(1.0))
    after = book_after(before, BIG, NEW)
    before.observe(attempt(11.0))
    after.observe(attempt(12.0))
    assert before.snapshot(BIG.id, 12.0) == after.snapshot(BIG.id, 12.0)
    assert after.snapshot(BIG.id, 12.0).outcomes == 3
    assert set(after.figures(12.0).targets) == {BIG.id, NEW.id}


def test_a_new_target_counts_among_those_of_its_provider() -> None:
    """Averages of a provider and of a model go on with whatever is theirs now."""
    after = book_after(book_of(attempt(1.0, seconds=2.0)), BIG, NEW)
    after.observe(attempt(11.0, NEW, seconds=7.0))
    figures = after.figures(11.0)
    assert figures.providers["a"].latency_ema == 3.0
    assert figures.models["new"].latency_ema == 7.0


def test_a_changed_target_is_not_judged_by_what_it_was() -> None:
    """Its counters go on; its window and its pace begin anew."""
    after = book_after(book_of(attempt(1.0), attempt(1.0, SMALL)), BIG, SMALL, unchanged=frozenset({SMALL.id}))
    assert after.snapshot(BIG.id, 10.0).outcomes == 0
    assert after.snapshot(BIG.id, 10.0).latency_ema is None
    assert after.snapshot(SMALL.id, 10.0).outcomes == 1
    assert after.figures(10.0).targets[BIG.id].calls == 1


def test_the_store_is_not_asked_for_what_the_book_before_knows() -> None:
    """It has written down the same calls; of a target that is new it is told."""
    after = book_after(book_of(attempt(1.0)), BIG, NEW)
    for target in (BIG, NEW):
        after.remember(past(target), 10.0)
    figures = after.figures(10.0).targets
    assert figures[BIG.id].latency_all_time.count == 1
    assert figures[NEW.id].latency_all_time.count == 1
