"""The token bucket: exact waits, debt, and a hold that ends in a trickle."""

from __future__ import annotations

import pytest

from smart_model_router.core.bucket import BucketSnapshot, TokenBucket


def emptied(now: float = 0.0) -> TokenBucket:
    """Make a bucket of 60 at one a second, with nothing left at `now`."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.take(60.0, now)
    return bucket


def test_a_new_bucket_is_full() -> None:
    """The first asker finds a burst, at whatever instant he comes."""
    bucket = TokenBucket(60.0, 1.0)
    assert bucket.level(1e6) == 60.0
    assert bucket.due_at(60.0, 1e6) == 1e6


@pytest.mark.parametrize(("now", "level"), [(0.0, 0.0), (1.0, 1.0), (29.5, 29.5), (60.0, 60.0), (61.0, 60.0)])
def test_it_refills_at_its_rate_up_to_its_capacity(now: float, level: float) -> None:
    """One a second, never more than sixty."""
    assert emptied().level(now) == level


def test_time_that_stands_still_or_goes_back_adds_nothing() -> None:
    """Asking twice at one instant, or at an earlier one, changes nothing."""
    bucket = emptied()
    bucket.level(10.0)
    assert bucket.level(10.0) == 10.0
    assert bucket.level(5.0) == 10.0
    assert bucket.level(11.0) == 11.0


def test_a_wait_is_exact() -> None:
    """Two and a half tokens of an empty bucket are there in two and a half seconds: not before, and then indeed."""
    bucket = emptied()
    assert bucket.due_at(2.5, 0.0) == 2.5
    assert bucket.due_at(2.5, 2.0) == 2.5
    assert bucket.due_at(2.5, 2.499) == 2.5
    assert bucket.due_at(2.5, 2.5) == 2.5
    bucket.take(2.5, 2.5)
    assert bucket.level(2.5) == 0.0


def test_what_is_there_is_due_now() -> None:
    """No wait for what the bucket holds."""
    assert emptied().due_at(10.0, 20.0) == 20.0


def test_rounding_does_not_make_anyone_wait_twice() -> None:
    """Who comes back at the very instant he was told is served, at awkward rates and instants too."""
    bucket = TokenBucket(7.0, 7.0 / 60.0)
    now = 12345.678
    bucket.take(7.0, now)
    for _ in range(50):
        due = bucket.due_at(1.0, now)
        assert bucket.due_at(1.0, due) == due
        bucket.take(1.0, due)
        now = due
    assert now == pytest.approx(12345.678 + 50 * 60 / 7)


def test_a_millionth_of_a_token_is_not_waited_for() -> None:
    """So much may be lost to rounding; two millionths are missing."""
    assert emptied().due_at(1e-6, 0.0) == 0.0
    assert emptied().due_at(2e-6, 0.0) == 2e-6


def test_debt_is_paid_by_waiting() -> None:
    """A call that used more than it reserved leaves debt; the next token is there once it is paid."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.take(50.0, 0.0)
    bucket.give_back(-30.0, 0.0)
    assert bucket.level(0.0) == -20.0
    assert bucket.due_at(1.0, 0.0) == 21.0


def test_a_refund_never_overfills() -> None:
    """Given back more than was taken: full."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.take(10.0, 0.0)
    bucket.give_back(20.0, 0.0)
    assert bucket.level(0.0) == 60.0


def test_a_held_bucket_trickles_after_its_instant() -> None:
    """Held for 10 s: nothing before, then one a second, not a burst of sixty."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.level(0.0)
    bucket.empty_until(10.0, 0.0)
    assert bucket.level(9.999) == 0.0
    assert bucket.level(10.0) == 0.0
    assert bucket.due_at(1.0, 0.0) == 11.0
    assert bucket.due_at(1.0, 10.5) == 11.0
    assert bucket.level(12.0) == 2.0


def test_nothing_is_due_while_held() -> None:
    """Even an amount of nothing waits for the instant."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.empty_until(10.0, 0.0)
    assert bucket.due_at(0.0, 3.0) == 10.0
    assert bucket.due_at(0.0, 10.0) == 10.0


def test_a_hold_keeps_debt() -> None:
    """Twenty in debt before the hold: still twenty in debt after it."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.take(80.0, 0.0)
    bucket.empty_until(10.0, 0.0)
    assert bucket.level(5.0) == -20.0
    assert bucket.due_at(1.0, 5.0) == 31.0


def test_a_refund_while_held_pays_debt_only() -> None:
    """What older calls give back during a hold makes no burst at its end."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.take(80.0, 0.0)
    bucket.empty_until(10.0, 0.0)
    bucket.give_back(15.0, 1.0)
    assert bucket.level(1.0) == -5.0
    bucket.give_back(50.0, 2.0)
    assert bucket.level(2.0) == 0.0
    assert bucket.due_at(1.0, 2.0) == 11.0


def test_a_refund_at_the_instant_a_hold_ends_is_a_whole_one() -> None:
    """The trickle begins with it."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.empty_until(10.0, 0.0)
    bucket.give_back(5.0, 10.0)
    assert bucket.level(10.0) == 5.0


def test_the_newest_hold_stands_also_when_it_is_sooner() -> None:
    """A guess of 60 s that a hint of 3 s replaces holds for 3 s."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.empty_until(60.0, 0.0)
    bucket.empty_until(3.0, 0.0)
    assert bucket.due_at(1.0, 0.0) == 4.0
    bucket.empty_until(20.0, 1.0)
    assert bucket.due_at(1.0, 1.0) == 21.0


def test_a_hold_in_the_past_only_empties() -> None:
    """An instant that is over holds nothing."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.level(100.0)
    bucket.empty_until(50.0, 100.0)
    assert bucket.level(100.0) == 0.0
    assert bucket.level(101.0) == 1.0


def test_release_ends_a_hold_with_a_trickle() -> None:
    """Released at 2 s of a hold until 60: empty then, one a second from there."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.empty_until(60.0, 0.0)
    bucket.release(2.0)
    assert bucket.level(2.0) == 0.0
    assert bucket.due_at(1.0, 2.0) == 3.0


def test_release_without_a_hold_changes_nothing() -> None:
    """A bucket nobody held keeps its level, also one never looked at."""
    bucket = emptied()
    bucket.release(5.0)
    assert bucket.level(6.0) == 6.0
    fresh = TokenBucket(60.0, 1.0)
    fresh.release(5.0)
    assert fresh.level(5.0) == 60.0


def test_release_at_the_instant_a_hold_ends_takes_nothing_away() -> None:
    """What was refused fits then, released or not."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.empty_until(10.0, 0.0, keep=1.0)
    bucket.release(10.0)
    assert bucket.level(10.0) == 1.0


def test_consume_takes_all_or_nothing() -> None:
    """What is there is taken; what is not there leaves the bucket as it was."""
    bucket = TokenBucket(60.0, 1.0)
    assert bucket.consume(50.0, 0.0)
    assert not bucket.consume(20.0, 0.0)
    assert bucket.level(0.0) == 10.0
    assert bucket.consume(20.0, 10.0)


def test_what_was_refused_fits_at_the_instant() -> None:
    """Held for 3 s with room for one call: one at the instant, the next when the rate has brought it."""
    bucket = TokenBucket(30.0, 0.5)
    bucket.empty_until(3.0, 0.0, keep=1.0)
    assert bucket.level(2.999) == 0.0
    assert bucket.due_at(1.0, 0.0) == 3.0
    assert bucket.consume(1.0, 3.0)
    assert bucket.due_at(1.0, 3.0) == 5.0


def test_a_hold_never_brings_more_than_the_rate_would() -> None:
    """An empty bucket held for a second at one in two seconds has half a call then, whatever is kept."""
    bucket = TokenBucket(30.0, 0.5)
    bucket.take(30.0, 0.0)
    bucket.empty_until(1.0, 0.0, keep=1.0)
    assert bucket.level(1.0) == 0.5
    assert bucket.due_at(1.0, 0.0) == 2.0


def test_a_hold_is_measured_from_its_beginning() -> None:
    """Emptied and held at 10 s for two seconds: two came back, whatever the clock says."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.take(60.0, 10.0)
    bucket.empty_until(12.0, 10.0, keep=5.0)
    assert bucket.level(12.0) == 2.0


def test_a_window_refills_at_once_and_not_before() -> None:
    """Empty until its instant, full at it, and again every minute."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.refills_at(40.0, 60.0, 0.0)
    bucket.take(60.0, 0.0)
    assert bucket.resets_at == 40.0
    assert bucket.level(39.999) == 0.0
    assert bucket.due_at(1.0, 10.0) == 40.0
    assert bucket.level(40.0) == 60.0
    bucket.take(60.0, 40.0)
    assert bucket.due_at(60.0, 99.0) == 100.0
    assert bucket.level(250.0) == 60.0
    assert bucket.resets_at == 280.0


def test_more_than_a_window_holds_takes_several() -> None:
    """A hundred and thirty of sixty a window: the third window from now has the last of them."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.refills_at(40.0, 60.0, 0.0)
    bucket.take(60.0, 0.0)
    assert bucket.due_at(130.0, 0.0) == 160.0


def test_a_hold_up_to_the_end_of_a_window_begins_the_next() -> None:
    """Full at the instant the provider named, and every minute after it."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.refills_at(40.0, 60.0, 0.0)
    bucket.empty_until(43.0, 10.0)
    assert bucket.level(42.0) == 0.0
    assert bucket.due_at(60.0, 10.0) == 43.0
    assert bucket.level(43.0) == 60.0
    assert bucket.resets_at == 103.0


def test_a_shorter_hold_does_not_end_a_window() -> None:
    """What was refused fits at the instant; the rest comes when the window ends."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.refills_at(40.0, 60.0, 0.0)
    bucket.empty_until(20.0, 10.0, keep=1.0)
    assert bucket.consume(1.0, 20.0)
    assert bucket.due_at(1.0, 20.0) == 40.0


def test_released_a_window_begins_now() -> None:
    """The operator's word fills it."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.refills_at(40.0, 60.0, 0.0)
    bucket.empty_until(43.0, 10.0)
    bucket.release(20.0)
    assert bucket.level(20.0) == 60.0


def test_a_window_may_turn_out_to_be_none() -> None:
    """From then on it refills at its rate."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.refills_at(40.0, 60.0, 0.0)
    bucket.take(60.0, 0.0)
    bucket.refills_steadily(10.0)
    assert bucket.resets_at is None
    assert bucket.level(15.0) == 5.0


def test_the_providers_figure_replaces_ours() -> None:
    """Up or down, never above the capacity; while it is held only down."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.refill_from_headers(10.0, 0.0)
    assert bucket.level(0.0) == 10.0
    bucket.refill_from_headers(100.0, 0.0)
    assert bucket.level(0.0) == 60.0
    bucket.empty_until(5.0, 0.0)
    bucket.refill_from_headers(50.0, 1.0)
    assert bucket.level(5.0) == 0.0


def test_the_providers_figure_counts_again_at_the_instant_a_hold_ends() -> None:
    """Held until 10 s: what it says at 9 s cannot be more than nothing, what it says at 10 s can."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.empty_until(10.0, 0.0)
    bucket.refill_from_headers(40.0, 9.0)
    assert bucket.level(10.0) == 0.0
    bucket.refill_from_headers(40.0, 10.0)
    assert bucket.level(10.0) == 40.0


def test_a_smaller_size_cuts_what_is_there() -> None:
    """Half the size: at most half is left; a larger size brings nothing by itself."""
    bucket = TokenBucket(60.0, 1.0)
    bucket.resize(30.0, 0.5, 0.0)
    assert bucket.level(0.0) == 30.0
    bucket.resize(90.0, 1.5, 0.0)
    assert bucket.level(0.0) == 30.0
    assert bucket.level(2.0) == 33.0


def test_a_snapshot_refills_nothing() -> None:
    """The level as of the last call, and the terms."""
    bucket = TokenBucket(10.0, 2.0)
    bucket.take(4.0, 0.0)
    assert bucket.snapshot() == BucketSnapshot(6.0, 10.0, 2.0, None)
    bucket.refills_at(60.0, 30.0, 0.0)
    assert bucket.snapshot() == BucketSnapshot(6.0, 10.0, 2.0, 30.0)
