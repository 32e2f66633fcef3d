"""What a provider's answers teach about its limits: how much is left, how much there is, and how it comes back."""

from __future__ import annotations

import pytest

from smart_model_router.core.limit_bucket import Cost, LimitBucket, Outstanding
from smart_model_router.core.ratelimit import RateLimitTracker, TokenFactor
from smart_model_router.domain.outcome import BucketReading, LimitReading, Refusal, Usage

CALL = Cost(100, 100)


def requests(
    remaining: int | None = None, *, limit: int | None = 60, reset: float | None = None, window: float | None = None
) -> BucketReading:
    """What headers say of the requests."""
    return BucketReading("requests", limit, remaining, reset, window)


def said(*buckets: BucketReading) -> LimitReading:
    """What an answer says."""
    return LimitReading(buckets)


def known(remaining: int, *, limit: int = 60, refill: str = "continuous", now: float = 0.0) -> RateLimitTracker:
    """A key whose limit its provider has just told."""
    limits = RateLimitTracker(refill="window" if refill == "window" else "continuous")
    limits.update(said(requests(remaining, limit=limit)), 0, now)
    return limits


def level(limits: RateLimitTracker, now: float, name: str = "requests") -> float:
    """How much is left in a bucket."""
    return limits.buckets[name].level(now)


# What is left -----------------------------------------------------------------------------------------------------


def test_a_limit_nobody_configured_is_learned() -> None:
    """The first answer says sixty a minute, ten left: ten go at once, then one a second."""
    limits = known(10)
    assert limits.known
    for sent in range(10):
        assert limits.refusal(CALL, 0.0) is None
        limits.reserve(CALL, 0.0, sent + 1)
    assert limits.refusal(CALL, 0.0) == Refusal("requests", 1.0)


def test_a_new_bucket_leaves_out_what_is_under_way() -> None:
    """Fifty-nine left, seven others still open, some of which the provider has not seen: fifty-two."""
    limits = RateLimitTracker()
    for sent in range(8):
        limits.reserve(CALL, 0.0, sent)
    first = limits.reserve(CALL, 0.0, 8)
    limits.settle(first, None, 0.0, sent=True)
    limits.update(said(requests(59)), 8, 0.0)
    assert level(limits, 0.0) == 51.0


def test_a_limit_without_a_figure_of_what_is_left_is_taken_as_full() -> None:
    """The capacity alone."""
    limits = RateLimitTracker()
    limits.update(said(requests(limit=60, reset=0.12)), 0, 0.0)
    assert level(limits, 0.0) == 60.0


def test_without_a_limit_there_is_no_bucket() -> None:
    """A figure of what is left has no rate."""
    limits = RateLimitTracker()
    limits.update(said(requests(5, limit=None)), 0, 0.0)
    assert not limits.known


def test_a_limit_need_not_be_told_again() -> None:
    """What is left without the limit, and the limit without what is left: each figure counts by itself."""
    limits = known(30)
    limits.update(said(requests(10, limit=None)), 1, 0.0)
    assert level(limits, 0.0) == 10.0
    limits.update(said(requests(limit=120)), 2, 0.0)
    assert (level(limits, 0.0), limits.buckets["requests"].capacity) == (10.0, 120.0)


def test_the_provider_counts_more_than_we_do() -> None:
    """Somebody else uses the key as well: twenty left instead of fifty-nine."""
    limits = RateLimitTracker(rpm=60)
    limits.settle(limits.reserve(CALL, 0.0, 1), None, 0.0, sent=True)
    limits.update(said(requests(20)), 1, 0.0)
    assert level(limits, 0.0) == 20.0


def test_calls_sent_later_are_not_in_its_count() -> None:
    """Twenty left when the first of three was answered: the two sent after it will be taken from them."""
    limits = RateLimitTracker(rpm=60)
    first, *_ = (limits.reserve(CALL, 0.0, sent) for sent in (1, 2, 3))
    limits.settle(first, None, 0.0, sent=True)
    limits.update(said(requests(20)), 1, 0.0)
    assert level(limits, 0.0) == 18.0


def test_the_answered_call_is_counted_while_it_is_open_and_so_is_what_was_sent_before() -> None:
    """A stream's head says twenty: an older open call and its own are in that, only the two sent later are not."""
    limits = RateLimitTracker(rpm=60)
    for sent in (1, 2, 3, 4):
        limits.reserve(CALL, 0.0, sent)
    limits.update(said(requests(20)), 2, 0.0)
    assert level(limits, 0.0) == 18.0


def test_the_tokens_of_an_open_call_are_in_its_own_heads_count() -> None:
    """A thousand are left: what the stream may give back later is not taken from them now."""
    limits = RateLimitTracker(tpm=6_000)
    limits.reserve(CALL, 0.0, 1)
    limits.update(said(BucketReading("tokens", 6_000, 1_000)), 1, 0.0)
    assert level(limits, 0.0, "tokens") == 1_000.0


@pytest.mark.parametrize("sent_at", [0.0, 10.0])
def test_what_came_back_since_the_call_was_sent_is_not_lost(sent_at: float) -> None:
    """A slow answer's figure is as old as the call: thirty at one a second came back, whatever the clock began at."""
    limits = RateLimitTracker(rpm=60)
    answered_at = sent_at + 30.0
    limits.settle(limits.reserve(CALL, sent_at, 1), None, answered_at, sent=True)
    limits.update(said(requests(20)), 1, answered_at, sent_at=sent_at)
    assert level(limits, answered_at) == 50.0


def test_a_call_without_a_number_is_the_first() -> None:
    """Its own answer has counted it."""
    limits = RateLimitTracker(rpm=60)
    limits.reserve(CALL, 0.0)
    limits.update(said(requests(20)), 0, 0.0)
    assert level(limits, 0.0) == 20.0


def test_the_newest_answer_may_raise_the_level() -> None:
    """We counted too much: the provider says forty are left, and nothing is open."""
    limits = known(10)
    limits.update(said(requests(40)), 1, 0.0)
    assert level(limits, 0.0) == 40.0


@pytest.mark.parametrize(("share", "left"), [(1.0, 40.0), (0.5, 10.0)])
def test_a_figure_without_its_limit_raises_what_is_the_providers_alone(share: float, left: float) -> None:
    """Ten left, then forty: not of what this process may use of a shared limit."""
    limits = RateLimitTracker(share=share)
    limits.update(said(requests(10)), 0, 0.0)
    limits.update(said(requests(40, limit=None)), 1, 0.0)
    assert level(limits, 0.0) == left


def test_a_figure_without_its_limit_never_raises_the_owners() -> None:
    """Ten left, then forty, of a limit the provider may know to be lower."""
    limits = RateLimitTracker(rpm=60)
    for number, left in enumerate((10, 40)):
        limits.update(said(requests(left, limit=None)), number, 0.0)
    assert level(limits, 0.0) == 10.0


def test_a_rise_leaves_out_everything_still_open() -> None:
    """What an older open call will take is not promised to others."""
    limits = known(10)
    limits.reserve(CALL, 0.0, 1)
    limits.update(said(requests(40)), 2, 0.0)
    assert level(limits, 0.0) == 39.0


def test_a_head_has_counted_its_own_call() -> None:
    """A stream's head says that four are left: its own call, still open, is not one of them."""
    limits = RateLimitTracker()
    limits.reserve(CALL, 0.0, 1)
    limits.update(said(requests(4, limit=5), BucketReading("tokens", 6_000, 5_000)), 1, 0.0)
    assert (level(limits, 0.0), level(limits, 0.0, "tokens")) == (4.0, 5_000.0)


def test_what_an_open_call_may_give_back_is_not_given_twice() -> None:
    """A stream reserved 200 tokens, its head says that all are left: they come back when it ends, and only then."""
    limits = RateLimitTracker(tpm=6_000)
    limits.update(said(BucketReading("tokens", 6_000, 3_000)), 0, 0.0)
    stream = limits.reserve(CALL, 0.0, 1)
    limits.update(said(BucketReading("tokens", 6_000, 6_000)), 1, 0.0)
    assert level(limits, 0.0, "tokens") == 5_800.0
    limits.settle(stream, Usage(50, 50), 0.0, sent=True)
    assert level(limits, 0.0, "tokens") == 5_900.0


def test_an_older_answer_never_resurrects_capacity() -> None:
    """The answer of an earlier call arrives last and still remembers forty; it may take away, never give."""
    limits = known(30)
    limits.update(said(requests(10)), 7, 0.0)
    limits.update(said(requests(40)), 3, 0.0)
    assert level(limits, 0.0) == 10.0
    limits.update(said(requests(5)), 3, 0.0)
    assert level(limits, 0.0) == 5.0


def test_a_call_that_speaks_twice_is_believed_twice() -> None:
    """The head of the newest call, then its end: the later word may raise the level as well."""
    limits = known(10)
    limits.update(said(requests(20)), 0, 0.0)
    limits.update(said(requests(40)), 0, 0.0)
    assert level(limits, 0.0) == 40.0


def test_a_request_is_counted_by_the_answer_to_itself() -> None:
    """An open call's head says that forty are left: it is not taken from them again, as no request is refunded."""
    limits = known(10)
    limits.reserve(CALL, 0.0, 1)
    limits.update(said(requests(40)), 1, 0.0)
    assert level(limits, 0.0) == 40.0


def test_nothing_comes_back_within_a_window() -> None:
    """Ten left when the call was sent, ten left when it is answered."""
    limits = known(50, refill="window")
    limits.update(said(requests(10)), 1, 30.0, sent_at=5.0)
    assert level(limits, 30.0) == 10.0


def test_the_owners_figure_is_never_exceeded() -> None:
    """Thirty a minute by the owner, five hundred by the provider: thirty; twenty by the provider: twenty."""
    limits = RateLimitTracker(rpm=30)
    limits.settle(limits.reserve(CALL, 0.0, 1), None, 0.0, sent=True)
    limits.update(said(requests(499, limit=500)), 1, 0.0)
    assert (level(limits, 0.0), limits.buckets["requests"].capacity) == (29.0, 30.0)
    limits.update(said(requests(20, limit=20)), 2, 0.0)
    assert (level(limits, 0.0), limits.buckets["requests"].capacity) == (20.0, 20.0)


def test_the_capacity_follows_the_provider() -> None:
    """The account was upgraded: twice the limit, twice the rate."""
    limits = known(10)
    limits.update(said(requests(110, limit=120)), 1, 0.0)
    bucket = limits.buckets["requests"]
    assert (bucket.capacity, bucket.rate, bucket.level(0.0)) == (120.0, 2.0, 110.0)


def test_the_least_bucket_binds() -> None:
    """Requests and tokens abound, the project's tokens do not."""
    limits = RateLimitTracker()
    plenty = BucketReading("tokens", 100_000, 90_000)
    limits.update(said(requests(50), plenty, BucketReading("project_tokens", 6_000, 100)), 0, 0.0)
    assert limits.refusal(CALL, 0.0) == Refusal("tokens", 1.0)


def test_prompt_and_answer_have_buckets_of_their_own() -> None:
    """A call takes its prompt from one and its answer from the other, and is settled by what each really was."""
    limits = RateLimitTracker()
    limits.update(said(BucketReading("input_tokens", 6_000, 6_000), BucketReading("output_tokens", 600, 600)), 0, 0.0)
    reservation = limits.reserve(Cost(500, 100), 0.0, 1)
    assert (level(limits, 0.0, "input_tokens"), level(limits, 0.0, "output_tokens")) == (5_500.0, 500.0)
    limits.settle(reservation, Usage(400, 50), 0.0, sent=True)
    assert (level(limits, 0.0, "input_tokens"), level(limits, 0.0, "output_tokens")) == (5_600.0, 550.0)


def test_a_prompt_larger_than_the_bucket_of_prompts_is_refused_at_once() -> None:
    """However much room there is for answers."""
    limits = RateLimitTracker()
    limits.update(said(BucketReading("input_tokens", 600, 600), BucketReading("output_tokens", 6_000, 6_000)), 0, 0.0)
    assert limits.refusal(Cost(721, 0), 0.0) == Refusal("too_large")
    assert limits.refusal(Cost(720, 0), 0.0) is None


def test_limits_of_a_minute_and_of_a_day_are_two() -> None:
    """A minute's bucket is full, the day's is empty: the day decides, to the second."""
    limits = RateLimitTracker(rpm=60)
    limits.update(said(requests(0, limit=864, reset=86_400.0, window=86_400.0)), 0, 0.0)
    assert set(limits.buckets) == {"requests", "requests/86400"}
    assert limits.refusal(CALL, 0.0) == Refusal("requests", 100.0)


@pytest.mark.parametrize(
    ("reset", "rate"), [(30.0, 60 / 60), (61.0, 60 / 60), (1800.0, 60 / 3600), (43_200.0, 60 / 86_400), (0.5, 60 / 60)]
)
def test_a_long_reset_belongs_to_a_long_window(reset: float, rate: float) -> None:
    """Half of it used, full in half an hour: an hour's limit. A minute's limit is full within a minute."""
    limits = known(60)
    limits.update(said(requests(30, reset=reset)), 1, 0.0)
    assert limits.buckets["requests"].rate == pytest.approx(rate)


@pytest.mark.parametrize(
    ("limit", "remaining", "reset", "window"),
    [(200, 199, 432.0, 86_400.0), (60, 30, 1800.0, 3600.0), (60, 0, 60.0, 60.0), (60, 60, 1800.0, 60.0)],
)
def test_the_first_reading_of_a_longer_window_is_not_taken_for_a_minutes(
    limit: int, remaining: int, reset: float, window: float
) -> None:
    """Nobody knew the bucket: 200 a day, one used, are full in 432 s; as 200 a minute all would be gone at once."""
    limits = RateLimitTracker()
    limits.update(said(requests(remaining, limit=limit, reset=reset)), 1, 0.0)
    assert limits.buckets["requests"].rate == pytest.approx(limit / window)


def test_a_reset_without_anything_used_says_nothing_of_the_window() -> None:
    """All sixty are left, or nobody knows how many are: a minute's limit, however long the reset."""
    for reading in (requests(60, reset=1800.0), requests(reset=1800.0)):
        limits = known(60)
        limits.update(said(reading), 1, 0.0)
        assert limits.buckets["requests"].rate == 1.0


@pytest.mark.parametrize(
    ("remaining", "reset", "window"), [(30, 9_000.0, 3600.0), (30, 9_001.0, 86_400.0), (45, 4_501.0, 86_400.0)]
)
def test_what_would_take_over_five_hours_is_a_days(remaining: int, reset: float, window: float) -> None:
    """By what share of it is used: half of it back in 2.5 h is an hour's limit yet, a quarter in 1.26 h a day's."""
    limits = known(60)
    limits.update(said(requests(remaining, reset=reset)), 1, 0.0)
    assert limits.buckets["requests"].rate == pytest.approx(60 / window)


def test_a_long_window_stays_known() -> None:
    """A day's limit that is nearly full again is still a day's."""
    limits = known(60)
    limits.update(said(requests(30, reset=43_200.0)), 1, 0.0)
    limits.update(said(requests(59, reset=30.0)), 2, 0.0)
    assert limits.buckets["requests"].rate == pytest.approx(60 / 86_400)


def test_an_owner_may_forbid_learning() -> None:
    """Rate-limit awareness off: what answers say is not heard."""
    limits = RateLimitTracker(learns=False)
    limits.update_from_headers(said(requests(10)), 0, 0.0)
    assert not limits.known


# How it comes back ------------------------------------------------------------------------------------------------


def drain(limits: RateLimitTracker, resets: list[tuple[float, int, float]]) -> None:
    """Answers at these instants, with so much left, full in so many seconds."""
    for number, (now, remaining, reset) in enumerate(resets, 1):
        limits.update(said(requests(remaining, reset=reset)), number, now)


WINDOW = [(0.0, 59, 60.0), (1.0, 58, 59.0), (4.0, 50, 56.0), (10.0, 40, 50.0)]
BUCKET = [(0.0, 59, 1.0), (0.1, 58, 2.0), (0.2, 50, 10.0), (0.3, 40, 20.0), (0.4, 30, 30.0)]
SMALL_BURST = [(0.0, 0, 5.0), (1.0, 0, 5.0), (4.0, 0, 5.0), (6.0, 0, 5.0), (8.0, 0, 5.0)]


@pytest.mark.parametrize("refill", ["continuous", "window"])
def test_an_instant_that_stands_still_is_a_windows_end(refill: str) -> None:
    """Full at 60 s whatever is used: nothing comes back before, all of it then."""
    limits = known(60, refill=refill)
    drain(limits, WINDOW)
    bucket = limits.buckets["requests"]
    assert bucket.resets_at == 60.0
    assert (bucket.level(59.9), bucket.level(60.0)) == (40.0, 60.0)


@pytest.mark.parametrize("refill", ["continuous", "window"])
@pytest.mark.parametrize("readings", [BUCKET, SMALL_BURST])
def test_an_instant_that_moves_on_is_no_window(refill: str, readings: list[tuple[float, int, float]]) -> None:
    """Every call puts it off: what was used comes back all the time."""
    limits = known(60, refill=refill)
    drain(limits, readings)
    assert limits.buckets["requests"].resets_at is None


def test_a_window_that_did_not_begin_anew_is_none() -> None:
    """It should have been full a second ago, and says that as much is used as before."""
    limits = known(60, refill="window")
    drain(limits, [(0.0, 4, 1.0), (2.0, 4, 1.0)])
    assert limits.buckets["requests"].resets_at is None


@pytest.mark.parametrize(("reset", "window"), [(61.0, 60.0), (60.0, 60.0), (59.75, None)])
def test_the_next_window_is_still_a_window(reset: float, window: float | None) -> None:
    """The instant moves by a whole window when one ends: a slow answer of the old window makes it look like a step.

    A second of rounding is granted.
    """
    limits = known(60, refill="window")
    drain(limits, [(0.0, 40, 10.0), (9.0, 38, reset)])
    assert limits.buckets["requests"].window == window


@pytest.mark.parametrize(("used", "again", "window"), [(10, 10, None), (9, 10, 60.0), (10, 9, 60.0)])
def test_ten_used_at_the_very_end_of_a_window_are_many(used: int, again: int, window: float | None) -> None:
    """Full at 10 s, asked and answered at 10 s: ten still used then are no window's; nine may have been used since."""
    limits = known(60, refill="window")
    drain(limits, [(0.0, 60 - used, 10.0), (10.0, 60 - again, 20.0)])
    assert limits.buckets["requests"].window == window


@pytest.mark.parametrize(("now", "ends"), [(4.75, None), (5.0, 30.0)])
def test_five_seconds_tell_a_window_from_a_bucket(now: float, ends: float | None) -> None:
    """Full at 30 s, and still so when a bucket's instant must have moved by five: a window; not a moment before."""
    limits = known(60)
    drain(limits, [(0.0, 40, 30.0), (now, 40, 30.0 - now)])
    assert limits.buckets["requests"].resets_at == ends


@pytest.mark.parametrize(("now", "ends"), [(9.75, None), (10.0, 34.0)])
@pytest.mark.parametrize("slow", ["first", "second"])
def test_a_slow_answer_needs_four_times_as_long_to_tell(slow: str, now: float, ends: float | None) -> None:
    """One of the two took two seconds: the instant must have had to move by eight."""
    limits = known(60)
    limits.update(said(requests(40, reset=32.0)), 1, 2.0, sent_at=0.0 if slow == "first" else 2.0)
    limits.update(said(requests(40, reset=34.0 - now)), 2, now, sent_at=now - 2.0 if slow == "second" else now)
    assert limits.buckets["requests"].resets_at == ends


@pytest.mark.parametrize(("moved", "window"), [(9.0, 60.0), (9.25, None)])
def test_what_moves_by_less_than_half_of_what_it_should_stands_still(moved: float, window: float | None) -> None:
    """Twenty seconds passed: the instant of being full may move by 45 % of them for rounding and slowness."""
    limits = known(60)
    drain(limits, [(0.0, 40, 60.0), (20.0, 40, 40.0 + moved)])
    assert limits.buckets["requests"].window == window


def test_what_was_found_out_is_looked_at_again() -> None:
    """Still for five seconds, as in a window; then it moves on, second by second: no window after all."""
    limits = known(60)
    drain(limits, [(0.0, 40, 30.0), (5.0, 40, 25.0)])
    assert limits.buckets["requests"].window == 60.0
    limits.update(said(requests(40, reset=25.0)), 3, 10.0)
    assert limits.buckets["requests"].window is None


def test_a_slow_answer_tells_nothing_of_how_it_comes_back() -> None:
    """The age of its figures is as uncertain as the answer was slow."""
    limits = known(60)
    for number, (now, remaining, reset) in enumerate(WINDOW, 1):
        limits.update(said(requests(remaining, reset=reset)), number, now + 20.0, sent_at=now)
    assert limits.buckets["requests"].resets_at is None


def test_the_earliest_end_that_fits_is_believed() -> None:
    """A slow answer makes the end look later than it is; a quicker one corrects it, a slow one does not put it off."""
    limits = known(60, refill="window")
    limits.update(said(requests(50, reset=30.0)), 1, 5.0, sent_at=0.0)
    assert limits.buckets["requests"].resets_at == 35.0
    limits.update(said(requests(49, reset=25.0)), 2, 6.0, sent_at=5.5)
    assert limits.buckets["requests"].resets_at == 31.0
    limits.update(said(requests(48, reset=24.0)), 3, 9.0, sent_at=6.0)
    assert limits.buckets["requests"].resets_at == 31.0


def test_an_end_that_cannot_be_is_replaced() -> None:
    """The window is known to end at 20 s; an answer says that it lasts to 50 at the least."""
    limits = known(60, refill="window")
    limits.update(said(requests(50, reset=20.0)), 1, 0.0)
    limits.update(said(requests(49, reset=49.0)), 2, 1.0)
    assert limits.buckets["requests"].resets_at == 50.0


@pytest.mark.parametrize(("reset", "ends"), [(20.0, 20.0), (20.25, 21.25)])
def test_an_end_a_second_later_is_rounding(reset: float, ends: float) -> None:
    """The window is known to end at 20 s; that it ends at 21 is the same said in whole seconds, 21.25 is not."""
    limits = known(60, refill="window")
    limits.update(said(requests(50, reset=20.0)), 1, 0.0)
    limits.update(said(requests(49, reset=reset)), 2, 1.0)
    assert limits.buckets["requests"].resets_at == ends


def test_only_the_newest_answer_that_names_an_end_moves_it() -> None:
    """An older one, or one that is silent about it, leaves the window where it is."""
    limits = known(60, refill="window")
    limits.update(said(requests(50, reset=20.0)), 7, 0.0)
    limits.update(said(requests(49, reset=49.0)), 3, 1.0)
    limits.update(said(requests(48)), 8, 2.0)
    assert limits.buckets["requests"].resets_at == 20.0


def test_figures_are_believed_from_the_windows_first_instant_to_its_last() -> None:
    """Sent at the very beginning of a window they are about it; when it may end as they come they are not."""
    limits = known(60, refill="window")
    limits.update(said(requests(51, reset=10.0)), 1, 0.0)
    limits.update(said(requests(7, reset=59.0)), 2, 11.0, sent_at=10.0)
    assert level(limits, 11.0) == 7.0
    limits.update(said(requests(3, reset=2.0)), 3, 14.0, sent_at=12.0)
    assert level(limits, 14.0) == 7.0


def test_figures_of_a_window_that_is_over_are_not_believed() -> None:
    """Sent before the end, answered after it: nothing left then says nothing of now."""
    limits = known(60, refill="window")
    limits.update(said(requests(0, reset=10.0)), 1, 0.0)
    assert level(limits, 10.0) == 60.0
    limits.update(said(requests(0, reset=0.5)), 2, 11.0, sent_at=9.5)
    assert level(limits, 11.0) == 60.0
    limits.update(said(requests(0, reset=0.0)), 3, 11.0, sent_at=10.5)
    assert level(limits, 11.0) == 60.0


def test_a_window_without_a_word_on_its_end_is_taken_to_last_a_minute() -> None:
    """A window family told what is left, not until when."""
    limits = known(5, refill="window")
    assert limits.buckets["requests"].resets_at == 60.0
    limits.update(said(requests(3)), 1, 10.0)
    assert level(limits, 10.0) == 3.0


# Refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("until", [60.0, 15.25, 71.0])
def test_all_used_and_a_long_wait_is_a_windows_end(until: float) -> None:
    """Thirty a minute, all taken, come back in more than two calls' time: then there are thirty again."""
    limits = RateLimitTracker(rpm=30)
    for sent in range(30):
        limits.reserve(CALL, sent / 3, sent)
    limits.hold_until(until, 10.0, CALL)
    assert limits.refusal(CALL, 10.0) == Refusal("requests", until)
    assert level(limits, until) == 30.0


@pytest.mark.parametrize(("calls", "until"), [(29, 60.0), (30, 14.0), (30, 15.0), (30, 71.25), (30, 75.0)])
def test_any_other_wait_ends_in_a_trickle(calls: int, until: float) -> None:
    """Not all was used, or it is about one call's time, or more than a window: one call at the instant."""
    limits = RateLimitTracker(rpm=30)
    for sent in range(calls):
        limits.reserve(CALL, 0.0, sent)
    limits.hold_until(until, 10.0, CALL)
    assert limits.refusal(CALL, 10.0) == Refusal("requests", until)
    assert level(limits, until) == 1.0


def test_what_is_taken_is_counted_anew_each_window() -> None:
    """Thirty of thirty, but over two minutes: no window's end."""
    limits = RateLimitTracker(rpm=30)
    for sent in range(30):
        limits.reserve(CALL, sent * 4.0, sent)
    limits.hold_until(170.0, 120.0, CALL)
    assert level(limits, 170.0) == 1.0


def test_a_window_of_counting_ends_at_its_minute() -> None:
    """One in the first minute and twenty-nine at the instant the second begins are not thirty in one."""
    limits = RateLimitTracker(rpm=30)
    for sent in range(30):
        limits.reserve(CALL, 60.0 if sent else 0.0, sent)
    limits.hold_until(100.0, 60.0, CALL)
    assert level(limits, 100.0) == 1.0


def test_that_nothing_is_left_is_no_news_while_it_is_held() -> None:
    """Another answer says so before the instant: what was refused fits at the instant all the same."""
    limits = known(10)
    limits.hold_until(5.0, 0.0, CALL)
    limits.update(said(requests(0)), 1, 1.0)
    assert level(limits, 5.0) == 1.0


def test_only_the_exhausted_bucket_is_held() -> None:
    """No tokens left, requests in plenty: requests are left alone."""
    limits = RateLimitTracker(rpm=60, tpm=6000)
    limits.hold_until(30.0, 0.0, CALL, said(BucketReading("tokens", 6000, 0)))
    assert (level(limits, 1.0), level(limits, 1.0, "tokens")) == (60.0, 0.0)


def test_without_a_word_on_which_all_are_held() -> None:
    """A refusal that says nothing of buckets, or of ones nobody knows, is about each of them."""
    limits = RateLimitTracker(rpm=60, tpm=6000)
    limits.hold_until(30.0, 0.0, CALL, said(BucketReading("unified_5h", None, 0)))
    assert (level(limits, 1.0), level(limits, 1.0, "tokens")) == (0.0, 0.0)


def test_the_end_of_the_emptiest_window_is_known() -> None:
    """Requests and tokens have windows; that with the least left is the one that refused."""
    limits = RateLimitTracker(refill="window")
    assert limits.next_window(0.0) == 60.0
    tokens = BucketReading("tokens", 6000, 10, 20.0)
    limits.update(said(requests(50, reset=40.0), tokens), 0, 0.0)
    assert limits.next_window(5.0) == 15.0
    assert RateLimitTracker(rpm=60).next_window(0.0) is None


# Tokens a prompt has ----------------------------------------------------------------------------------------------


def test_the_estimate_learns_what_a_family_counts() -> None:
    """Prompts that turn out to have half the tokens are estimated at nearly half after a while."""
    limits = RateLimitTracker(tpm=1_000_000)
    for sent in range(100):
        estimated = round(1000 * limits.factor.value)
        limits.settle(limits.reserve(Cost(estimated, 10), 0.0, sent), Usage(500, 10), 0.0, sent=True)
    assert limits.factor.value == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize(("estimated", "counted"), [(49, 100), (1000, 0), (1000, 99), (1000, 4001)])
def test_what_is_no_text_teaches_nothing(estimated: int, counted: int) -> None:
    """Tiny prompts, missing counts and what nobody counts so leave the factor alone."""
    factor = TokenFactor()
    factor.learn(Cost(estimated, 0), counted)
    assert (factor.value, factor.media) == (1.0, 1.0)


@pytest.mark.parametrize(("estimated", "counted", "value"), [(50, 100, 1.1), (1000, 100, 0.91), (1000, 4000, 1.3)])
def test_what_is_just_text_teaches(estimated: int, counted: int, value: float) -> None:
    """Fifty tokens, a tenth of the estimate and four times of it are the bounds, and within them."""
    factor = TokenFactor()
    factor.learn(Cost(estimated, 0), counted)
    assert [factor.value, factor.media] == pytest.approx([value, 1.0])


@pytest.mark.parametrize(("text", "media"), [(0.6, 1.0), (1.0, 12.0), (1.4, 0.1), (0.5, 3.0)])
def test_the_estimate_learns_what_a_family_counts_for_media(text: float, media: float) -> None:
    """From prompts of text, of media and of both: each factor finds what it is about."""
    factor = TokenFactor()
    prompts = [(4_000, 0), (400, 1_500), (8_000, 1_500), (2_000, 6_000)]
    for _ in range(300):
        for text_bytes, tabled in prompts:
            prompt, of_media = factor.weigh(text_bytes, tabled)
            factor.learn(Cost(prompt, 10, of_media), round(text_bytes / 4 * text + tabled * media))
    assert [factor.value, factor.media] == pytest.approx([text, media], rel=0.05)


@pytest.mark.parametrize("counted", [-5, 0, 1, 10**6, 10**18])
def test_no_count_makes_an_estimate_absurd(counted: int) -> None:
    """Whatever a provider says a picture cost it, a thousand times over: the factors stay in their bounds."""
    factor = TokenFactor()
    for _ in range(1_000):
        prompt, media = factor.weigh(4_000, 1_500)
        factor.learn(Cost(prompt, 0, media), counted)
        assert 0.1 <= factor.value <= 4.0
        assert 0.05 <= factor.media <= 20.0


def test_a_family_learns_together() -> None:
    """Two keys with the same model share what was learned."""
    shared = TokenFactor()
    one, other = RateLimitTracker(tpm=6000, factor=shared), RateLimitTracker(tpm=6000, factor=shared)
    one.settle(one.reserve(Cost(1000, 0), 0.0, 1), Usage(2000, 0), 0.0, sent=True)
    assert other.factor.value == pytest.approx(1.1)


def test_a_name_nobody_knows_counts_requests() -> None:
    """A standard header may name its bucket as it likes."""
    meter = LimitBucket("default", 100.0)
    assert (meter.bucket.capacity, meter.take(CALL, 0.0)) == (100.0, 1)
    meter.begin(BucketReading("default", 100, 40), Outstanding(everyone=3.0), "continuous", 0.0)
    assert meter.bucket.level(0.0) == 37.0


def test_a_limit_that_is_not_shared_has_no_part() -> None:
    """Whoever shares with it, or does not: all of it is this process's."""
    meter = LimitBucket("default", 100.0)
    meter.suspend(4, 0.0)
    assert meter.stock is None
    assert meter.bucket.level(0.0) == 100.0
