"""The book: what an attempt changes, what a snapshot says and until when, what people are shown."""

from __future__ import annotations

import json
import random
import tracemalloc
from dataclasses import fields
from typing import Any

import pytest

from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import EMPTY_SNAPSHOT, FailureClass, Snapshot, Usage
from smart_model_router.domain.request import Target
from smart_model_router_stats.book import StatsBook
from smart_model_router_stats.figures import ModelStats

BIG = Target("a/big", "a", "big")
SECOND_KEY = Target("a/big#2", "a", "big", credential=1)
SMALL = Target("a/small", "a", "small")
ELSEWHERE = Target("b/big", "b", "big")

HEALTH = {
    FailureClass.OVERLOADED,
    FailureClass.SERVER_ERROR,
    FailureClass.TRANSPORT,
    FailureClass.TIMEOUT,
    FailureClass.TRUNCATED,
    FailureClass.MALFORMED,
}


def attempt(at: float = 0.0, target: Target = BIG, **facts: Any) -> AttemptFinished:
    """A whole answer after 2 s, but for the `facts` given."""
    given: dict[str, Any] = {"stream": False, "seconds": 2.0, **facts}
    return AttemptFinished(
        at=at, admitted_at=at - 2.0, target=target.id, provider=target.provider, model=target.model, **given
    )


def book_of(*events: AttemptFinished) -> StatsBook:
    """Make a book that has seen `events`; the wall clock stands at 5000."""
    book = StatsBook([BIG, SECOND_KEY, SMALL, ELSEWHERE], wall=lambda: 5000.0)
    for event in events:
        book.observe(event)
    return book


def snapshot_of(*events: AttemptFinished, now: float = 0.0) -> Snapshot:
    """What is known of BIG after `events`."""
    return book_of(*events).snapshot(BIG.id, now)


def test_an_untried_target_has_an_empty_snapshot() -> None:
    """Before the first call nothing is known of a target."""
    assert snapshot_of() == EMPTY_SNAPSHOT


def test_a_target_nobody_named_has_an_empty_snapshot() -> None:
    """Asking about an unknown target is no error: nothing is known of it."""
    assert book_of().snapshot("nobody/nothing", 0.0) == EMPTY_SNAPSHOT


def test_a_success_counts_in_the_window() -> None:
    """A success raises successes and outcomes, and is the last success."""
    got = snapshot_of(attempt(at=7.0), now=8.0)
    assert (got.successes, got.outcomes) == (1, 1)
    assert (got.last_success_at, got.newest_outcome_at) == (7.0, 7.0)
    assert got.success_rate == pytest.approx(5 / 6)


@pytest.mark.parametrize("failure", sorted(HEALTH))
def test_a_failure_of_the_target_lowers_its_success_rate(failure: FailureClass) -> None:
    """Failures that a breaker counts, the target's or the provider's, are outcomes without success."""
    got = snapshot_of(attempt(failure_class=failure))
    assert (got.successes, got.outcomes) == (0, 1)
    assert got.success_rate == pytest.approx(4 / 6)


@pytest.mark.parametrize("failure", sorted(set(FailureClass) - HEALTH))
def test_other_failures_are_in_the_counters_only(failure: FailureClass) -> None:
    """A 429, a caller's mistake, a bad key or an empty answer says nothing about the success rate."""
    book = book_of(attempt(failure_class=failure))
    assert book.snapshot(BIG.id, 0.0).outcomes == 0
    assert book.figures(0.0).targets[BIG.id].failures == {failure: 1}


def test_the_average_latency_is_that_of_whole_answers() -> None:
    """Successful whole answers move the latency average and its percentile."""
    got = snapshot_of(attempt(seconds=10.0), attempt(seconds=20.0))
    assert got.latency_ema == pytest.approx(12.0)
    assert got.latency_p99 == pytest.approx(20.0, rel=0.01)
    assert (got.ttft_ema, got.ttft_p95, got.ttft_p99) == (None, None, None)


def test_a_stream_is_measured_by_its_first_content() -> None:
    """A stream moves the time to first content, and not the latency of whole answers."""
    got = snapshot_of(attempt(stream=True, seconds=90.0, ttft_seconds=0.5))
    assert got.ttft_ema == 0.5
    assert got.ttft_p95 == got.ttft_p99 == pytest.approx(0.5, rel=0.01)
    assert (got.latency_ema, got.latency_p99) == (None, None)


def test_a_cut_stream_tells_when_it_began() -> None:
    """A stream that broke off after its first content still says how long that took."""
    got = snapshot_of(attempt(stream=True, ttft_seconds=0.5, failure_class=FailureClass.TRUNCATED))
    assert got.ttft_ema == 0.5


def test_a_whole_answer_has_no_time_to_first_content() -> None:
    """A figure that is meant for streams is not taken from whole answers."""
    assert snapshot_of(attempt(ttft_seconds=0.5)).ttft_ema is None


def test_a_failure_is_no_sample_of_latency() -> None:
    """A quick 500 does not make a target fast."""
    got = snapshot_of(attempt(failure_class=FailureClass.SERVER_ERROR, seconds=0.01, usage=Usage(1, 50)))
    assert (got.latency_ema, got.latency_p99, got.seconds_per_100_tokens) == (None, None, None)


@pytest.mark.parametrize("stream", [True, False])
def test_the_pace_is_seconds_per_100_output_tokens(stream: bool) -> None:
    """A success of 3 s and 150 output tokens took 2 s for 100, streamed or not."""
    got = snapshot_of(attempt(stream=stream, seconds=3.0, usage=Usage(10, 150)))
    assert got.seconds_per_100_tokens == pytest.approx(2.0)


def test_an_answer_without_output_tokens_has_no_pace() -> None:
    """Embeddings and empty completions say nothing of the seconds per token."""
    assert snapshot_of(attempt(usage=Usage(10, 0))).seconds_per_100_tokens is None


@pytest.mark.parametrize("usage", [Usage(10, -5), Usage(-1, 10), Usage(10, 10**400), Usage(10**400, 10)])
def test_a_usage_that_cannot_be_is_left_out(usage: Usage) -> None:
    """A provider that reports nonsense spoils neither pace nor totals; the call itself counts."""
    book = book_of(attempt(usage=usage))
    figures = book.figures(0.0).targets[BIG.id]
    assert book.snapshot(BIG.id, 0.0).seconds_per_100_tokens is None
    assert (figures.prompt_tokens, figures.completion_tokens, figures.successes) == (0, 0, 1)


@pytest.mark.parametrize(("told", "kept"), [(0, 0), (40, 40), (100, 100), (101, 100), (10**400, 100), (-5, 0)])
def test_cached_tokens_are_at_most_the_prompt(told: int, kept: int) -> None:
    """The cached part is summed beside the prompt; a count that cannot be true is cut to fit."""
    book = book_of(attempt(usage=Usage(100, 7, told)), attempt(target=SMALL, usage=Usage(50, 1, 20)))
    figures = book.figures(0.0)
    of_target, of_provider = figures.targets[BIG.id], figures.providers["a"]
    assert (of_target.prompt_tokens, of_target.cached_prompt_tokens, of_target.completion_tokens) == (100, kept, 7)
    assert (of_provider.prompt_tokens, of_provider.cached_prompt_tokens) == (150, kept + 20)


def test_the_p95_of_completions_needs_20_of_them() -> None:
    """Nineteen completions are too few to estimate from, twenty are enough."""
    book = book_of(*(attempt(usage=Usage(1, tokens)) for tokens in range(10, 200, 10)))
    assert book.snapshot(BIG.id, 0.0).completion_tokens_p95 is None
    book.observe(attempt(usage=Usage(1, 200)))
    assert book.snapshot(BIG.id, 0.0).completion_tokens_p95 == pytest.approx(190, abs=2)


def test_a_cancelled_call_touches_counters_only() -> None:
    """A caller who left says nothing about the target: the snapshot stays the very same object."""
    book = book_of(attempt())
    before = book.snapshot(BIG.id, 1.0)
    book.observe(attempt(1.0, stream=True, ttft_seconds=9.0, failure_class=FailureClass.CANCELLED, usage=Usage(5, 7)))
    figures = book.figures(1.0).targets[BIG.id]
    assert book.snapshot(BIG.id, 1.0) is before
    assert (figures.calls, figures.failures) == (2, {FailureClass.CANCELLED: 1})
    assert (figures.ttft_ema, figures.last_failure_age) == (None, None)
    assert (figures.prompt_tokens, figures.completion_tokens) == (5, 7)


def test_a_snapshot_is_the_same_object_until_something_changed() -> None:
    """Asking again costs nothing; an observation makes a new snapshot, of this target alone."""
    book = book_of(attempt(), attempt(target=SMALL))
    first, other = book.snapshot(BIG.id, 1.0), book.snapshot(SMALL.id, 1.0)
    assert book.snapshot(BIG.id, 2.0) is first
    book.observe(attempt(3.0))
    assert book.snapshot(BIG.id, 3.0) is not first
    assert book.snapshot(SMALL.id, 3.0) is other


def test_a_snapshot_ages_by_itself() -> None:
    """Without any call, outcomes and averages are gone after 5 minutes, and so is the kept snapshot."""
    book = book_of(attempt(usage=Usage(1, 100)), attempt(stream=True, ttft_seconds=1.0))
    assert book.snapshot(BIG.id, 299.0).outcomes == 2
    got = book.snapshot(BIG.id, 300.0)
    assert (got.successes, got.outcomes, got.newest_outcome_at) == (0, 0, None)
    assert (got.latency_ema, got.ttft_ema, got.seconds_per_100_tokens) == (None, None, None)
    assert got.last_success_at == 0.0


@pytest.mark.parametrize(
    ("figure", "sample"),
    [
        ("latency_ema", attempt()),
        ("ttft_ema", attempt(stream=True, ttft_seconds=1.0)),
        ("seconds_per_100_tokens", attempt(stream=True, usage=Usage(1, 100))),
    ],
)
def test_an_average_ages_before_the_outcomes_that_followed(figure: str, sample: AttemptFinished) -> None:
    """Fifty failures push a success out of the window: its averages age all the same, to the instant."""
    failures = [attempt(1.0, failure_class=FailureClass.SERVER_ERROR) for _ in range(50)]
    book = book_of(sample, *failures)
    assert getattr(book.snapshot(BIG.id, 299.0), figure) is not None
    got = book.snapshot(BIG.id, 300.0)
    assert getattr(got, figure) is None
    assert got.outcomes == 50


def test_percentiles_age_by_the_quarter_of_an_hour() -> None:
    """The percentiles of a snapshot are those of the last 15 minutes: afterwards they are unknown."""
    book = book_of(attempt(), attempt(stream=True, ttft_seconds=1.0))
    assert book.snapshot(BIG.id, 899.0).latency_p99 is not None
    got = book.snapshot(BIG.id, 900.0)
    assert (got.latency_p99, got.ttft_p95, got.ttft_p99) == (None, None, None)


def test_a_reset_empties_window_and_averages() -> None:
    """After a reset the target begins anew at once; its last success and its percentiles stay."""
    book = book_of(attempt(usage=Usage(1, 100)), attempt(stream=True, ttft_seconds=1.0))
    book.snapshot(BIG.id, 1.0)
    book.reset_window(BIG.id, 2.0)
    got = book.snapshot(BIG.id, 2.0)
    assert (got.successes, got.outcomes, got.newest_outcome_at) == (0, 0, None)
    assert (got.latency_ema, got.ttft_ema, got.seconds_per_100_tokens) == (None, None, None)
    assert got.last_success_at == 0.0
    assert got.latency_p99 is not None


def test_a_failure_of_before_a_reset_is_not_held_against_what_came_back() -> None:
    """A call admitted before the reset that times out after it is counted, and is no outcome of the time since."""
    book = book_of(attempt())
    book.reset_window(BIG.id, 10.0)
    book.observe(attempt(at=11.9, failure_class=FailureClass.TIMEOUT))
    assert book.snapshot(BIG.id, 12.0).outcomes == 0
    assert book.figures(12.0).targets[BIG.id].failures == {FailureClass.TIMEOUT: 1}
    book.observe(attempt(at=12.0, failure_class=FailureClass.TIMEOUT))
    assert book.snapshot(BIG.id, 12.0).outcomes == 1


def test_the_pace_of_before_a_reset_is_no_average_of_what_came_back() -> None:
    """A slow call of before the reset counts for its model and in percentiles, not in the averages of the target."""
    book = book_of(attempt())
    book.reset_window(BIG.id, 10.0)
    book.observe(attempt(at=11.9, stream=True, ttft_seconds=9.0, usage=Usage(1, 100)))
    got = book.snapshot(BIG.id, 12.0)
    assert (got.ttft_ema, got.seconds_per_100_tokens) == (None, None)
    assert got.ttft_p95 is not None
    assert book.figures(12.0).models["big"].ttft_ema == 9.0
    book.observe(attempt(at=12.0, stream=True, ttft_seconds=1.0))
    assert book.snapshot(BIG.id, 12.0).ttft_ema == 1.0


def test_a_reset_forgets_no_counter_and_no_neighbour() -> None:
    """A reset concerns one target's view of now: totals stay, as do the averages of its model."""
    book = book_of(attempt(), attempt(target=SMALL))
    book.reset_window(BIG.id, 1.0)
    figures = book.figures(1.0)
    assert figures.targets[BIG.id].successes == 1
    assert figures.targets[SMALL.id].recent_outcomes == 1
    assert figures.models["big"].latency_ema == 2.0


def test_a_reset_of_an_unknown_target_changes_nothing() -> None:
    """Resetting what was never seen is no error and adds nothing."""
    book = book_of()
    book.reset_window("nobody/nothing", 0.0)
    assert "nobody/nothing" not in book.figures(0.0).targets


def test_a_new_target_is_added_on_first_sight() -> None:
    """A guarded service that no configuration names has statistics from its first call on."""
    book = book_of(attempt(target=Target("tavily", "tavily", "")))
    assert book.snapshot("tavily", 0.0).successes == 1
    assert book.figures(0.0).providers["tavily"].calls == 1


def test_figures_are_by_target_model_and_provider() -> None:
    """Each call is found once in its target, once in its model, once in its provider."""
    book = book_of(attempt(), attempt(target=SECOND_KEY), attempt(target=SMALL), attempt(target=ELSEWHERE))
    view = book.figures(0.0)
    calls = [
        {name: figures.calls for name, figures in level.items()}
        for level in (view.targets, view.models, view.providers)
    ]
    assert calls == [
        {"a/big": 1, "a/big#2": 1, "a/small": 1, "b/big": 1},
        {"big": 3, "small": 1},
        {"a": 3, "b": 1},
    ]


def test_the_figures_of_a_provider_are_those_of_its_targets_together() -> None:
    """Percentiles come from merged histograms, the average from every sample in order, sums from sums."""
    failed = attempt(3.0, SMALL, failure_class=FailureClass.TIMEOUT)
    book = book_of(
        attempt(1.0, BIG, seconds=10.0, usage=Usage(5, 100), cost_usd=0.5),
        attempt(2.0, SMALL, seconds=20.0, usage=Usage(7, 100), cost_usd=0.25),
        failed,
    )
    got = book.figures(13.0).providers["a"]
    assert (got.calls, got.successes, got.failures) == (3, 2, {FailureClass.TIMEOUT: 1})
    assert (got.recent_successes, got.recent_outcomes) == (2, 3)
    assert got.success_rate == pytest.approx(6 / 8)
    assert got.latency_ema == pytest.approx(12.0)
    assert got.latency_15_min.count == 2
    assert got.latency_15_min.p50 == pytest.approx(10.0, rel=0.01)
    assert got.latency_15_min.p99 == pytest.approx(20.0, rel=0.01)
    assert (got.prompt_tokens, got.completion_tokens, got.cost_usd) == (12, 200, 0.75)
    assert (got.last_success_age, got.last_failure_age) == (11.0, 10.0)


def test_last_success_and_failure_have_a_wall_time_for_people() -> None:
    """The wall time is what the wall clock says now, less the age."""
    book = book_of(attempt(10.0), attempt(30.0, failure_class=FailureClass.RATE_LIMITED))
    got = book.figures(40.0).targets[BIG.id]
    assert (got.last_success_age, got.last_success_wall) == (30.0, 4970.0)
    assert (got.last_failure_age, got.last_failure_wall) == (10.0, 4990.0)


def test_percentiles_of_all_time_outlive_the_quarter_of_an_hour() -> None:
    """After 15 quiet minutes the recent percentiles are unknown, those of all time are not."""
    got = book_of(attempt()).figures(900.0).targets[BIG.id]
    assert (got.latency_15_min.count, got.latency_15_min.p99) == (0, None)
    assert got.latency_all_time.p99 == pytest.approx(2.0, rel=0.01)


def test_figures_are_plain_json() -> None:
    """The view goes through JSON unchanged and names every field of the figures and its scope."""
    book = book_of(attempt(usage=Usage(1, 2)), attempt(failure_class=FailureClass.TIMEOUT))
    plain = book.figures(1.0).to_dict()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    assert plain["scope"] == "process"
    assert set(plain["providers"]["a"]) == {field.name for field in fields(ModelStats)}
    assert plain["targets"]["a/big"]["failures"] == {"TIMEOUT": 1}
    assert set(plain["models"]["big"]["latency_15_min"]) == {"count", "p50", "p75", "p90", "p95", "p99"}


def test_memory_stays_bounded() -> None:
    """From observation 20,000 to 60,000, spread over hours, the book grows by less than 30 bytes for each."""
    dice = random.Random(7)
    seconds = [dice.lognormvariate(1.0, 0.8) for _ in range(997)]
    targets = [Target(f"p/m{number}", "p", f"m{number}") for number in range(10)]
    book = StatsBook(targets, wall=lambda: 0.0)

    def observe(numbers: range) -> None:
        for number in numbers:
            took = seconds[number % len(seconds)]
            book.observe(
                AttemptFinished(
                    at=number / 5.0,
                    admitted_at=number / 5.0 - took,
                    target=targets[number % 10].id,
                    provider="p",
                    model=targets[number % 10].model,
                    stream=number % 20 < 10,
                    seconds=took,
                    ttft_seconds=took / 5.0,
                    usage=Usage(100, 1 + number % 701),
                )
            )

    observe(range(20_000))
    tracemalloc.start()
    observe(range(20_000, 60_000))
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert book.figures(12_000.0).providers["p"].calls == 60_000
    assert grown < 30 * 40_000


def test_a_slow_spell_is_forgotten_when_the_window_has_run_empty() -> None:
    """Ten answers made a target slow; nobody asked it for minutes: its next answer counts alone."""
    slow = [attempt(float(at), seconds=20.0, usage=Usage(1, 100)) for at in range(10)]
    back = attempt(302.0, seconds=1.0, usage=Usage(1, 100))
    assert snapshot_of(*slow, now=9.0).seconds_per_100_tokens == 20.0
    assert snapshot_of(*slow, back, now=302.0).seconds_per_100_tokens == 1.0


def test_few_answers_keep_their_average() -> None:
    """A target that is asked seldom is known by its last five minutes, not by its last answer alone."""
    slow = [attempt(float(at), seconds=20.0, usage=Usage(1, 100)) for at in range(9)]
    again = attempt(200.0, seconds=10.0, usage=Usage(1, 100))
    assert snapshot_of(*slow, again, now=200.0).seconds_per_100_tokens == pytest.approx(18.0)


# Medians ----------------------------------------------------------------------------------------------


def test_the_least_median_is_that_of_the_quickest_target() -> None:
    """Targets without answers of that kind, and unknown ones, do not count; None where none counts."""
    ids = [BIG.id, SMALL.id, ELSEWHERE.id, "no/such"]
    book = book_of()
    assert book.least_median(ids, 0.0, stream=False) is None
    book.observe(attempt(1.0, BIG, seconds=4.0))
    book.observe(attempt(1.0, SMALL, seconds=2.0))
    assert book.least_median(ids, 1.0, stream=False) == pytest.approx(2.0, rel=0.01)
    assert book.least_median(ids, 1.0, stream=True) is None


def test_a_median_is_that_of_the_newest_answers_each_time_it_is_asked_for() -> None:
    """It is kept between two questions: a further answer changes it, and a quarter of an hour ends it."""
    book = book_of(attempt(1.0, seconds=2.0))
    assert book.median(BIG.id, 1.0, stream=False) == pytest.approx(2.0, rel=0.01)
    for at in (2.0, 3.0):
        book.observe(attempt(at, seconds=6.0))
    assert book.median(BIG.id, 3.0, stream=False) == pytest.approx(6.0, rel=0.01)
    assert book.median(BIG.id, 1000.0, stream=False) is None
