"""What a process holds of a shared limit: leased ahead, a little on credit, given back when it is not used."""

from __future__ import annotations

import pytest

from smart_model_router.core.bucket import TokenBucket
from smart_model_router.core.limit_bucket import SETTLING, STOPPED, LimitBucket, TokenLease
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.domain.outcome import BucketReading, LimitReading, Refusal, Usage
from smart_model_router.domain.shared_state import BucketAsk, ToldLimit, chunk_of

ONE = Cost(0, 0)


def scarce(level: float = 0.0, now: float = 0.0, due: float = 0.0) -> TokenLease:
    """A stock of a limit of 300 (chunks of 6) of which nobody has much left."""
    stock = TokenLease(300)
    stock.settled(0.0, 0.0, level, 0.0, due)
    return stock


@pytest.mark.parametrize(("capacity", "chunk"), [(30, 1), (60, 1), (300, 6), (1_049, 20), (400_000, 8_000)])
def test_a_chunk_is_two_percent_at_least_one(capacity: float, chunk: float) -> None:
    """Whole tokens."""
    assert chunk_of(capacity) == chunk


def test_a_new_stock_asks_for_nothing_and_may_be_used_at_once() -> None:
    """Nobody has wanted anything yet, and there is plenty until somebody looks."""
    stock = TokenLease(300)
    assert stock.account(300, 0.0) == (0.0, 0.0, 0.0, 0.0)
    assert stock.suspended is False
    assert stock.plenty is True


@pytest.mark.parametrize(("left", "plenty"), [(24.0, True), (23.0, False), (1.0, False)])
def test_four_chunks_are_plenty(left: float, plenty: bool) -> None:
    """So much has to be left for everybody when the processes settle."""
    stock = TokenLease(300)
    stock.settled(0.0, 0.0, 0.0, left, 0.0)
    assert stock.plenty is plenty


def test_while_there_is_plenty_a_chunk_is_taken_first_and_leased_afterwards() -> None:
    """No request waits for the others to be asked; what was taken is owed."""
    stock = TokenLease(300)
    for _ in range(6):
        assert stock.due_at(1, 0.0) == 0.0
        stock.take(1, 0.0)
    assert stock.due_at(1, 0.0) > 0.0
    debt, back, want, least = stock.account(300, 0.0)
    assert (debt, back, want, least) == (6.0, 0.0, 6.0, 1.0)
    stock.settled(debt, back, 6.0, 200.0, 0.0)
    assert stock.level == 6.0


def test_with_plenty_a_call_larger_than_a_chunk_is_let_through() -> None:
    """One at a time, as long as nothing is owed."""
    stock = TokenLease(300)
    assert stock.due_at(50, 0.0) == 0.0
    stock.take(50, 0.0)
    assert stock.due_at(50, 0.0) > 0.0


def test_where_little_is_left_nothing_is_on_credit() -> None:
    """What is not leased is not there; the instant at which there is more is known."""
    stock = scarce(due=3.5)
    assert stock.due_at(1, 3.0) == 3.5
    assert stock.due_at(1, 4.0) == 4.25
    stock = scarce(2.0)
    assert stock.due_at(2, 3.0) == 3.0


def test_a_millionth_of_a_token_is_not_waited_for() -> None:
    """Levels are floats: what a sum of fractions lacks by rounding is there."""
    assert scarce().due_at(1e-6, 3.0) == 3.0
    assert scarce().due_at(2e-6, 3.0) > 3.0


def test_a_single_token_that_a_call_lacks_is_asked_for() -> None:
    """Also by a stock that is half full, and with it what fills a chunk."""
    stock = scarce(3.0)
    stock.due_at(4, 0.0)
    assert stock.account(300, 0.0) == (0.0, 0.0, 3.0, 1.0)


@pytest.mark.parametrize(("granted", "left"), [(8.0, 0.0), (0.0, 24.0)])
def test_what_was_granted_or_is_there_in_plenty_is_wanted_no_more(granted: float, left: float) -> None:
    """The next account asks for a chunk as always, and for nothing at the least."""
    stock = scarce(2.0)
    stock.due_at(10, 0.0)
    stock.settled(0.0, 0.0, granted, left, 0.0)
    stock.take(stock.level, 0.0)
    assert stock.account(300, 0.1) == (0.0, 0.0, 6.0, 0.0)


def test_what_a_call_lacks_is_asked_for_as_a_whole() -> None:
    """At least what the largest of them lacks, else a part would be hoarded that serves nobody."""
    stock = scarce(2.0)
    stock.due_at(10, 0.0)
    stock.due_at(5, 0.0)
    assert stock.short
    assert stock.account(300, 0.0) == (0.0, 0.0, 8.0, 8.0)
    stock.settled(0.0, 0.0, 8.0, 0.0, 0.0)
    assert stock.due_at(10, 0.0) == 0.0


def test_a_call_lacks_no_debt_that_was_told() -> None:
    """Two were taken before the limit was known: the third needs three, and one once the others know of the two."""
    stock = scarce()
    stock.take(2, 0.0)
    stock.due_at(1, 0.0)
    debt, back, _, least = stock.account(300, 0.0)
    stock.settled(debt, back, 0.0, 0.0, 1.0)
    assert (debt, least, stock.account(300, 1.0)) == (2.0, 1.0, (0.0, 0.0, 6.0, 1.0))


def test_a_chunk_that_was_refused_is_lacked_by_no_call() -> None:
    """Nothing waits: it is asked for while the stock is used, and never as needed."""
    stock = scarce()
    stock.settled(0.0, 0.0, 0.0, 0.0, 1.0)
    assert stock.account(300, 1.0) == (0.0, 0.0, 0.0, 0.0)


def test_what_is_owed_of_a_part_is_nothing_that_a_call_lacks() -> None:
    """It lacks one beside it, and after it was told."""
    stock = scarce()
    stock.suspend(TokenBucket(300, 5), 4, 60.0, 0.0)
    stock.take(10, 0.0)
    stock.resume(0.0)
    stock.due_at(1, 2.0)
    debt, back, _, least = stock.account(300, 2.0)
    stock.settled(debt, back, 0.0, 0.0, 3.0)
    assert (debt, least, stock.account(300, 3.0)) == (10.0, 1.0, (0.0, 0.0, 6.0, 1.0))


def test_a_refund_is_lacked_no_more() -> None:
    """Of ten a call lacks eight, and three after a refund of five; a charge changes nothing, the rest ends it."""
    stock = scarce(2.0)
    stock.due_at(10, 0.0)
    stock.give_back(5, 0.0)
    assert stock.account(300, 0.0) == (0.0, 0.0, 3.0, 3.0)
    stock.give_back(-1, 0.0)
    assert stock.account(300, 0.0) == (0.0, 0.0, 3.0, 3.0)
    stock.give_back(4, 0.0)
    assert stock.account(300, 0.0)[2:] == (0.0, 0.0)


def test_nobody_asks_again_before_the_instant_it_was_told() -> None:
    """A limit that is used up is not asked for every request, but for what is owed."""
    stock = scarce()
    stock.due_at(1, 0.0)
    stock.settled(0.0, 0.0, 0.0, 0.0, 2.0)
    assert stock.account(300, 1.9) == (0.0, 0.0, 0.0, 0.0)
    assert stock.account(300, 2.0) == (0.0, 0.0, 6.0, 1.0)


def test_a_stock_in_use_is_filled_up_before_it_is_empty() -> None:
    """Below half a chunk."""
    stock = scarce(6.0)
    stock.take(3, 0.0)
    assert stock.account(300, 0.1) == (0.0, 0.0, 0.0, 0.0)
    before = stock.short
    stock.take(1, 0.0)
    assert (before, stock.short) == (False, True)
    assert stock.account(300, 0.1) == (0.0, 0.0, 4.0, 0.0)


def test_what_is_not_used_goes_back_after_two_seconds() -> None:
    """So that a process that falls silent keeps nothing from the others."""
    stock = scarce(6.0)
    stock.take(1, 10.0)
    assert stock.account(300, 11.9)[1] == 0.0
    debt, back, want, least = stock.account(300, 12.0)
    assert (debt, back, want, least) == (0.0, 5.0, 0.0, 0.0)
    stock.settled(debt, back, 0.0, 5.0, 0.0)
    assert stock.level == 0.0


def test_a_large_refund_goes_back_at_once() -> None:
    """More than two chunks is nobody's to keep."""
    stock = scarce(6.0)
    stock.take(1, 0.0)
    stock.give_back(20, 0.0)
    assert stock.account(300, 0.0)[1] == 13.0


def test_out_of_reach_of_the_others_each_process_decides_alone() -> None:
    """Then its own count of the limit is all there is; afterwards nobody knows what the others took, and asks."""
    stock = scarce(2.0)
    stock.suspend(TokenBucket(300, 5), 1, 60.0, 0.0)
    assert stock.due_at(50, 0.0) == 0.0
    assert not stock.short
    stock.take(50, 0.0)
    stock.give_back(10, 0.0)
    assert stock.level == 0.0
    stock.resume(0.0)
    assert stock.due_at(1, 0.0) > 0.0
    assert stock.short


def test_one_of_four_takes_its_part_and_owes_it() -> None:
    """From what it had leased on; back among them it keeps what is left of it, and leases nothing for a while."""
    stock = scarce(6.0)
    stock.account(300, 0.0)
    stock.suspend(TokenBucket(300, 5), 4, 60.0, 0.0)
    assert not stock.short
    assert stock.account(300, 0.0) == (0.0, 0.0, 0.0, 0.0)
    stock.take(6, 0.0)
    assert stock.due_at(1, 0.0) == pytest.approx(0.8)
    stock.give_back(2, 0.0)
    stock.take(10, 8.0)
    stock.suspend(TokenBucket(300, 5), 9, 60.0, 8.0)
    stock.resume(8.0)
    assert stock.due_at(2, 8.0) == 8.0
    assert stock.due_at(3, 8.0) == 8.0 + SETTLING
    assert stock.account(300, 8.0) == (14.0 - 6.0 + 2.0, 0.0, 0.0, 0.0)
    stock.settled(10.0, 0.0, 0.0, 200.0, 8.0)
    assert stock.account(300, 8.0 + SETTLING)[::2] == (0.0, 4.0)


def test_while_others_tell_what_they_used_nothing_is_on_credit_and_the_providers_word_waits() -> None:
    """The row does not know yet what they used. The provider does: that would be subtracted twice."""
    meter = LimitBucket("requests", 300)
    stock = meter.stock = TokenLease(300)
    meter.suspend(4, 0.0)
    meter.bucket.refill_from_headers(20, 8.0)
    stock.resume(8.0)
    stock.hear(300)
    assert stock.due_at(30, 9.0) == 8.0 + SETTLING
    assert meter.ask("key", stock, 9.0).most == 300
    assert stock.due_at(30, 8.0 + SETTLING) == 8.0 + SETTLING
    assert meter.ask("key", stock, 8.0 + SETTLING).most == pytest.approx(20 + 5 * SETTLING - stock.level)


def test_what_is_kept_is_owed_once_however_often_the_others_are_lost() -> None:
    """It was leased in the first place, or owed when they were back before."""
    stock, limit = scarce(6.0), TokenBucket(300, 5)
    for _ in range(9):
        stock.suspend(limit, 2, 60.0, 0.0)
        stock.resume(0.0)
        assert (stock.level, stock.account(300, 0.0)[0]) == (6.0, 0.0)


def test_a_part_that_was_not_told_is_owed_after_the_next_outage() -> None:
    """Also where the answer was on its way when the others were lost again."""
    stock, limit = scarce(0.0), TokenBucket(300, 5)
    for _ in range(2):
        stock.suspend(limit, 2, 60.0, 0.0)
        stock.take(10, 0.0)
        stock.resume(0.0)
    assert stock.account(300, 0.0)[0] == 20.0
    stock.suspend(limit, 2, 60.0, 0.0)
    stock.settled(20.0, 0.0, 9.0, 100.0, 0.0)
    stock.resume(0.0)
    assert stock.level == 0.0


@pytest.mark.parametrize(("period", "part"), [(60.0, 0.0), (3_600.0, 25.0)])
def test_a_long_window_begins_with_a_part_of_what_is_left(period: float, part: float) -> None:
    """As the others said last, or as this process knows where that is less."""
    for left, known in ((100.0, 300.0), (300.0, 100.0)):
        limit = TokenBucket(300, 300 / period)
        limit.refill_from_headers(known, 0.0)
        stock = scarce(0.0)
        stock.hear(left)
        stock.suspend(limit, 4, period, 0.0)
        assert (stock.due_at(part, 0.0) == 0.0) is True
        assert stock.due_at(part + 1, 0.0) > 0.0


def test_a_long_window_is_divided_by_what_an_answer_said_is_left() -> None:
    """The least that was heard of."""
    stock = scarce(0.0)
    stock.hear(300.0)
    stock.see(100.0)
    stock.see(200.0)
    stock.suspend(TokenBucket(300, 300 / 3_600), 4, 3_600.0, 0.0)
    assert stock.due_at(25, 0.0) == 0.0
    assert stock.due_at(26, 0.0) > 0.0


def test_the_only_process_of_the_next_outage_takes_all_there_is() -> None:
    """The part of the last one is over."""
    stock, limit = scarce(0.0), TokenBucket(300, 5)
    stock.suspend(limit, 4, 60.0, 0.0)
    stock.resume(0.0)
    stock.suspend(limit, 1, 60.0, 0.0)
    assert stock.due_at(300, 0.0) == 0.0


def test_a_part_follows_the_windows_of_its_limit() -> None:
    """Full at the instant at which they begin, once, and of the size that the provider names."""
    limit = TokenBucket(300, 5)
    limit.refills_at(10.0, 60.0, 0.0)
    stock = scarce(0.0)
    stock.suspend(limit, 4, 60.0, 0.0)
    assert stock.due_at(1, 0.0) == 10.0
    assert stock.due_at(75, 10.0) == 10.0
    stock.take(75, 10.0)
    assert stock.due_at(1, 10.5) == 70.0
    limit.resize(600, 10, 11.0)
    limit.refills_at(20.0, 60.0, 11.0)
    assert stock.due_at(1, 11.0) == 20.0
    assert stock.due_at(150, 20.0) == 20.0
    limit.refills_steadily(20.0)
    stock.take(150, 20.0)
    assert stock.due_at(1, 20.0) == pytest.approx(20.4)


def test_what_was_leased_before_a_process_was_stopped_is_void() -> None:
    """The others count without it by now; what it owes, it owes."""
    stock = scarce(6.0)
    stock.account(300, 0.0)
    assert stock.due_at(6, STOPPED) == STOPPED
    assert stock.due_at(6, STOPPED + 0.1) > STOPPED + 0.1
    assert stock.level == 0.0
    stock.take(1, STOPPED + 0.1)
    assert stock.account(300, 9.0)[0] == 1.0


def test_what_others_found_left_decides_whether_a_chunk_is_on_credit() -> None:
    """Who last settled when there was plenty does not take what is gone since."""
    stock = TokenLease(300)
    stock.hear(23.0)
    assert stock.due_at(1, 0.0) > 0.0
    stock.hear(24.0)
    assert stock.due_at(1, 0.0) == 0.0


def test_a_forked_process_has_leased_nothing() -> None:
    """What its parent has leased is its parent's; whether there is plenty is still known."""
    stock = scarce(5.0)
    stock.due_at(9, 0.0)
    stock.forget()
    assert (stock.level, stock.short) == (0.0, True)
    assert stock.account(300, 0.0)[3] == 0.0


def test_who_was_within_reach_all_the_time_keeps_what_is_leased() -> None:
    """Being told so again changes nothing."""
    stock = scarce(5.0)
    stock.resume(0.0)
    assert stock.level == 5.0


# -------------------------------------------------------------------------------- limits that are shared


def shared(rpm: float = 300.0) -> RateLimitTracker:
    """A key of which little is left for this process."""
    limits = RateLimitTracker(rpm)
    limits.share_out()
    for _, _, stock in limits.stocks:
        stock.settled(0.0, 0.0, 1.0, 0.0, 9.0)
    return limits


def test_a_shared_limit_admits_what_is_leased() -> None:
    """Its own count of the limit is full; the second call waits for the next lease all the same."""
    limits = shared()
    assert limits.refusal(ONE, 0.0) is None
    limits.reserve(ONE, 0.0)
    assert limits.refusal(ONE, 0.0) == Refusal("requests", 9.0)
    assert limits.short


def test_a_lease_is_kept_for_two_seconds_after_the_last_call() -> None:
    """Half of it was used at 5 s: the rest goes back at 7."""
    limits = RateLimitTracker(300.0)
    limits.share_out()
    ((_, meter, stock),) = limits.stocks
    stock.settled(0.0, 0.0, 6.0, 0.0, 0.0)
    for _ in range(3):
        limits.reserve(ONE, 5.0)
    assert [meter.ask("key", stock, now).back for now in (6.75, 7.0)] == [0.0, 3.0]


def test_a_call_that_was_not_sent_gives_its_lease_back() -> None:
    """And nothing is short any more."""
    limits = shared()
    reservation = limits.reserve(ONE, 0.0)
    limits.settle(reservation, None, 0.0, sent=False)
    ((_, _, stock),) = limits.stocks
    assert stock.level == 1.0


def test_a_limit_learned_later_is_shared_as_well() -> None:
    """A process that takes part shares whatever it learns of."""
    limits = RateLimitTracker()
    limits.share_out()
    limits.update(LimitReading((BucketReading("requests", 300, 100),)), 0, 0.0)
    ((name, _, stock),) = limits.stocks
    limits.share_out()
    assert (name, stock.chunk) == ("requests", 6.0)
    assert limits.stocks[0][2] is stock


def limit(left: float, **given: float | None) -> ToldLimit:
    """What another process has left of a limit of 600 a minute."""
    facts = {"capacity": 600.0, "rate": 10.0, "window": None, "resets_in": 0.0, **given}
    return ToldLimit(left=left, **facts)  # type: ignore[arg-type] # only the window may be None


def test_a_process_that_begins_where_nothing_is_left_asks_first() -> None:
    """It had no answer of its own yet: what the others know keeps its first calls from being refused."""
    limits = RateLimitTracker()
    limits.share_out()
    assert limits.refusal(ONE, 0.0) is None
    limits.hear("requests", limit(0.0), 0.0)
    assert limits.refusal(ONE, 0.0) == Refusal("requests", 0.25)
    assert (limits.known, limits.short) == (True, True)
    bucket = limits.buckets["requests"]
    assert (bucket.capacity, bucket.rate, bucket.window, bucket.level(0.0)) == (600.0, 10.0, None, 600.0)


def test_a_limit_of_the_day_is_heard_of_as_one() -> None:
    """Its name says what it counts, its rate how long it is."""
    limits = RateLimitTracker()
    limits.share_out()
    limits.hear("tokens/86400", limit(5.0, capacity=86_400.0, rate=1.0), 0.0)
    limits.hear("requests/86400", limit(5.0, rate=600 / 86_400, window=86_400.0, resets_in=7.0), 0.0)
    ((_, tokens, _), (_, requests, _)) = limits.stocks
    assert (tokens.counted, tokens.window, tokens.bucket.window) == ("total", 86_400.0, None)
    assert (requests.counted, requests.window, requests.bucket.resets_at) == ("requests", 86_400.0, 7.0)


@pytest.mark.parametrize(("capacity", "rate", "window"), [(600.0, 10.0, 60.0), (5.0, 2.0, 2.5), (2.0, 3.0, 0.667)])
def test_how_long_a_limit_takes_is_what_it_holds_over_what_comes_back(
    capacity: float, rate: float, window: float
) -> None:
    """To a thousandth of a second; a bucket without a slash in its name counts what that says, too."""
    limits = RateLimitTracker()
    limits.share_out()
    limits.hear("tokens", limit(0.0, capacity=capacity, rate=rate), 0.0)
    ((_, tokens, _),) = limits.stocks
    assert (tokens.counted, tokens.window) == ("total", window)


@pytest.mark.parametrize(("learns", "left"), [(True, 600.0), (False, 0.0)])
def test_old_news_and_the_owners_no_make_no_limit(learns: bool, left: float) -> None:
    """Of a limit that is full the first answer will tell; who keeps to the owner's figures hears of no others."""
    limits = RateLimitTracker(learns=learns)
    limits.share_out()
    limits.hear("requests", limit(left), 0.0)
    assert not limits.known


def test_a_window_that_one_process_found_is_everybodys() -> None:
    """It ends when they say, and what was counted as if it refilled all the time counts no more."""
    limits = RateLimitTracker(600.0)
    limits.share_out()
    ((_, meter, _),) = limits.stocks
    meter.bucket.refill_from_headers(3.0, 0.0)
    limits.hear("requests", limit(500.0, window=60.0, resets_in=40.0), 1.0)
    assert (meter.bucket.window, meter.bucket.resets_at, meter.bucket.level(1.0)) == (60.0, 41.0, 500.0)
    limits.hear("requests", limit(500.0, window=60.0, resets_in=20.0), 2.0)
    assert meter.bucket.resets_at == 41.0


def test_who_has_seen_a_limit_refill_all_the_time_believes_in_no_window() -> None:
    """And says so to the others; until it sees a window itself."""
    limits = RateLimitTracker(refill="window")
    limits.share_out()
    limits.update(LimitReading((BucketReading("requests", 600, 590, 1.0),)), 0, 0.0)
    ((_, meter, stock),) = limits.stocks
    limits.update(LimitReading((BucketReading("requests", 600, 500, 10.0),)), 1, 3.0)
    limits.update(LimitReading((BucketReading("requests", 600, 400, 20.0),)), 2, 6.0)
    assert meter.ask("key", stock, 6.0).steady
    limits.hear("requests", limit(500.0, window=60.0, resets_in=40.0), 6.0)
    assert meter.bucket.window is None
    limits.update(LimitReading((BucketReading("requests", 600, 300, 20.0),)), 3, 6.1)
    assert not meter.ask("key", stock, 6.1).steady
    assert meter.bucket.window == 60.0


def test_calls_sent_before_a_limit_was_known_are_owed() -> None:
    """The answered one and two that are open: nobody leased for them, and the provider counts them all the same."""
    limits = RateLimitTracker()
    limits.share_out()
    for number in range(3):
        limits.reserve(ONE, 0.0, number)
    limits.update(LimitReading((BucketReading("requests", 600, 599),)), 0, 0.0)
    ((_, meter, stock),) = limits.stocks
    assert meter.ask("key", stock, 0.0).debt == 3.0


def test_calls_that_are_open_when_others_tell_of_a_limit_are_owed() -> None:
    """Two were sent before anybody told this process that there is a limit; their answers owe nothing more."""
    limits = RateLimitTracker()
    limits.share_out()
    for number in range(2):
        limits.reserve(ONE, 0.0, number)
    limits.hear("requests", limit(3.0), 0.1)
    limits.update(LimitReading((BucketReading("requests", 600, 3),)), 0, 0.1)
    ((_, meter, stock),) = limits.stocks
    assert meter.ask("key", stock, 0.1).debt == 2.0


@pytest.mark.parametrize("rpm", [None, 600.0])
@pytest.mark.parametrize(("remaining", "credit"), [(9, False), (500, True)])
def test_an_answer_that_says_little_is_left_ends_the_credit(rpm: float | None, remaining: int, credit: bool) -> None:
    """A bucket may hold far less than it gives a minute: each process would help itself before anybody has looked."""
    limits = RateLimitTracker(rpm)
    limits.share_out()
    limits.reserve(ONE, 0.0, 0)
    limits.update(LimitReading((BucketReading("requests", 600, remaining),)), 0, 0.0)
    assert (limits.refusal(ONE, 0.0) is None) is credit


def test_an_answer_that_says_much_is_left_gives_no_credit() -> None:
    """Others may have leased it."""
    stock = TokenLease(600.0)
    stock.settled(0.0, 0.0, 0.0, 5.0, 0.0)
    stock.see(500.0)
    assert not stock.plenty


def test_while_the_others_cannot_be_asked_our_own_count_of_a_limit_decides() -> None:
    """Of those that are learned meanwhile as well; and once they can be asked again, what is leased does."""
    limits = shared(2.0)
    limits.suspend(1, 0.0)
    limits.update(LimitReading((BucketReading("tokens", 600, 600),)), 0, 0.0)
    assert [stock.suspended for _, _, stock in limits.stocks] == [True, True]
    limits.reserve(ONE, 0.0)
    assert limits.refusal(ONE, 0.0) is None
    limits.resume(0.0)
    assert [stock.suspended for _, _, stock in limits.stocks] == [False, False]


def test_of_every_limit_of_a_key_a_process_takes_its_part() -> None:
    """Of 240 a minute one of four takes one a second. A limit that is learned once they are back is leased."""
    limits = shared(240.0)
    limits.suspend(4, 0.0)
    reservation = limits.reserve(ONE, 0.0)
    assert limits.refusal(ONE, 0.0) == Refusal("requests", 1.0)
    limits.settle(reservation, None, 0.0, sent=False)
    assert limits.refusal(ONE, 0.0) is None
    limits.resume(0.0)
    limits.update(LimitReading((BucketReading("tokens", 600, 600),)), 0, 0.0)
    assert [stock.suspended for _, _, stock in limits.stocks] == [False, False]


def test_the_account_of_a_limit_says_what_can_be_left_at_most() -> None:
    """What a provider told this process, less what it keeps; how it refills; until when nobody may use it."""
    limits = shared()
    limits.update(LimitReading((BucketReading("requests", 600, 40, 50.0),)), 0, 0.0)
    ((_, meter, stock),) = limits.stocks
    told = meter.ask("key", stock, 0.0)
    assert (told.key, told.capacity, told.rate, told.most, told.back) == ("key", 300.0, 5.0, 40.0, 1.0)
    limits.hold_until(3.0, 0.0)
    assert meter.ask("key", stock, 1.0).held_for == 2.0


def test_the_account_of_a_limit_says_what_is_owed_and_what_is_wanted() -> None:
    """One call more than was leased went out, the next one waits: one is owed, one needed, a chunk wanted."""
    limits = shared()
    limits.reserve(ONE, 0.0)
    limits.reserve(ONE, 0.0)
    limits.refusal(ONE, 0.0)
    ((_, meter, stock),) = limits.stocks
    assert meter.ask("key", stock, 9.0) == BucketAsk(
        key="key",
        capacity=300.0,
        rate=5.0,
        most=300.0,
        window=None,
        resets_in=0.0,
        held_for=0.0,
        debt=1.0,
        back=0.0,
        want=6.0,
        least=1.0,
    )


def test_the_account_of_a_window_says_when_it_ends() -> None:
    """In seconds: instants of one process mean nothing to another."""
    limits = RateLimitTracker(refill="window")
    limits.share_out()
    limits.update(LimitReading((BucketReading("requests", 300, 100, 20.0),)), 0, 0.0)
    ((_, meter, stock),) = limits.stocks
    told = meter.ask("key", stock, 5.0)
    assert (told.window, told.resets_in, told.most) == (60.0, 15.0, 100.0)


def test_a_part_of_less_than_one_call_admits_none() -> None:
    """Two a minute for four processes: the owner's figure is never exceeded (the configuration refuses such a part)."""
    assert RateLimitTracker(2.0, share=0.25).refusal(ONE, 0.0) is not None


@pytest.mark.parametrize("rpm", [None, 300.0])
def test_without_a_store_each_process_uses_its_part(rpm: float | None) -> None:
    """A quarter of what is configured, and a quarter of what is learned; a reading never raises it to the whole."""
    limits = RateLimitTracker(rpm, share=0.25)
    limits.update(LimitReading((BucketReading("requests", 300, 300),)), 0, 0.0)
    requests = limits.requests
    assert requests is not None
    assert (requests.capacity, requests.rate) == (75.0, 1.25)
    reservation = limits.reserve(ONE, 0.0, 1)
    limits.settle(reservation, Usage(1, 1), 0.0, sent=True)
    limits.update(LimitReading((BucketReading("requests", 300, 299),)), 1, 0.0)
    assert requests.level(0.0) == 74.0
    limits.update(LimitReading((BucketReading("requests", 200),)), 2, 0.0)
    assert (requests.capacity, requests.level(0.0)) == (50.0, 50.0)


def test_a_limit_that_is_not_shared_yet_hears_of_the_window_alone() -> None:
    """What is left for everybody matters to who leases."""
    limits = RateLimitTracker(600.0)
    limits.hear("requests", limit(500.0, window=60.0, resets_in=40.0), 1.0)
    assert limits.buckets["requests"].resets_at == 41.0
    assert limits.stocks == ()
