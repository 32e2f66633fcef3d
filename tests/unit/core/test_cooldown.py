"""Cooldowns against routing.md section 4: advice and law, hints and guesses, walls, and the way back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from smart_model_router.core.cooldown import (
    LADDER,
    Cooldown,
    CooldownConfig,
    CooldownSnapshot,
    LawReason,
    LawSnapshot,
    Rest,
    RestRecord,
)
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal, Scope, Wait

RATE_LIMITED, SERVER_ERROR, TIMEOUT, AUTH, QUOTA = (
    FailureClass.RATE_LIMITED,
    FailureClass.SERVER_ERROR,
    FailureClass.TIMEOUT,
    FailureClass.AUTH,
    FailureClass.QUOTA,
)


def fail(
    rests: Cooldown,
    failure_class: FailureClass,
    now: float,
    hint: float | None = None,
    scope: Scope = "minute",
    lost: float = 0.0,
    **given: Any,
) -> Rest | None:
    """A call that failed at `now` after `lost` seconds, of a target that is ill; the rest is `given`."""
    usual = {"admitted_at": now - lost, "sent_seq": 0, "roll": 0.0, "paced": False, "advise": True, "ill": True}
    facts: dict[str, Any] = {**usual, **given}
    wait = None if hint is None else Wait(hint, scope)
    return rests.failed(Failure(failure_class, wait=wait), now=now, **facts)


def seconds(rest: Rest | None, now: float) -> float:
    """How long a rest that must be there lasts from `now`."""
    assert rest is not None
    return rest.until - now


def limited(rests: Cooldown, now: float, hint: float | None = None, **given: Any) -> Rest | None:
    """A 429 at `now` from a provider whose buckets are known."""
    return fail(rests, RATE_LIMITED, now, hint, paced=True, **given)


def cooling(now: float = 0.0) -> Cooldown:
    """Make one that cools for 10 s from `now`."""
    rests = Cooldown()
    fail(rests, SERVER_ERROR, now)
    return rests


# ------------------------------------------------------------------------------------------------ advice


def test_nothing_rests_at_first() -> None:
    """No law, no advice, no probation."""
    rests = Cooldown()
    assert rests.law(0.0) is None
    assert rests.advice(0.0) is None
    assert not rests.returning
    assert not rests.on_probation(0.0)
    assert rests.due_since(0.0) is None


@pytest.mark.parametrize("failure_class", [SERVER_ERROR, TIMEOUT])
def test_a_failure_of_an_ill_target_starts_a_cooldown(failure_class: FailureClass) -> None:
    """The evidence decides that it is ill; the cooldown is over at its instant."""
    rests = Cooldown()
    assert fail(rests, failure_class, 0.0, ill=False) is None
    assert rests.advice(0.0) is None
    assert fail(rests, failure_class, 5.0) == Rest("cooldown", 15.0, hinted=False)
    assert rests.advice(14.999) == Refusal("cooldown", 15.0)
    assert rests.advice(15.0) is None
    assert rests.law(5.0) is None


def test_failures_of_a_target_that_is_not_ill_never_start_a_cooldown() -> None:
    """Not even a hundred in a row: the streak says nothing."""
    rests = Cooldown()
    assert [fail(rests, SERVER_ERROR, float(n), ill=False) for n in range(100)] == [None] * 100


@pytest.mark.parametrize(
    ("failure_class", "starts"),
    [(failure_class, failure_class.policy.cooldown in ("failure", "timeout")) for failure_class in FailureClass],
)
def test_only_failures_that_say_so_start_a_cooldown(failure_class: FailureClass, starts: bool) -> None:
    """The table's cooldown column decides."""
    rests = Cooldown()
    fail(rests, failure_class, 0.0)
    assert (rests.advice(9.999) is not None) is starts


@pytest.mark.parametrize(
    ("lost", "lengths"),
    [
        (0.05, [10.0, 15.0, 15.0, 15.0]),
        (1.25, [12.5, 18.75, 25.0, 25.0]),
        (2.0, [20.0, 30.0, 40.0, 40.0]),
        (30.0, [30.0, 45.0, 67.5, 101.25, 151.875, 227.8125, 341.71875, 512.578125, 600.0, 600.0]),
    ],
    ids=["50 ms", "1.25 s", "2 s", "30 s"],
)
def test_what_a_failure_costs_sets_how_long_it_rests(lost: float, lengths: list[float]) -> None:
    """Ten times the loss, from 10 to 30 s, x 1.5 each, at most 20 times the loss, at least 15 s, at most 600 (D7)."""
    rests, now, seen = Cooldown(), 100.0, []
    for _ in lengths:
        seen.append(seconds(fail(rests, SERVER_ERROR, now, lost=lost), now))
        now += seen[-1] + lost + 1.0
    assert seen == pytest.approx(lengths)


def test_growth_never_ends_in_an_error() -> None:
    """The three-hundredth cooldown in a row is the cap."""
    rests, now, length = Cooldown(), 0.0, 0.0
    for _ in range(400):
        length = seconds(fail(rests, SERVER_ERROR, now, lost=30.0), now)
        now += length + 31.0
    assert length == 600.0


@pytest.mark.parametrize(("multiplier", "length"), [(1.0, 10.0), (1.001, 10.0 * 1.001**299)])
def test_an_owner_can_have_cooldowns_grow_hardly_or_not_at_all(multiplier: float, length: float) -> None:
    """The three-hundredth is as long as the first, or by 299 thousandths longer."""
    rests, now = Cooldown(CooldownConfig(multiplier=multiplier)), 0.0
    for _ in range(299):
        now += seconds(fail(rests, SERVER_ERROR, now), now) + 1.0
    assert seconds(fail(rests, SERVER_ERROR, now), now) == pytest.approx(length)


def test_the_base_is_that_of_the_failure_which_starts_it() -> None:
    """A hang of 30 s, then an error in no time: 30 s, then 10 x 1.5; the cap is that of the hang."""
    rests = Cooldown()
    assert seconds(fail(rests, TIMEOUT, 0.0, lost=30.0), 0.0) == 30.0
    assert [seconds(fail(rests, SERVER_ERROR, now), now) for now in (100.0, 200.0, 300.0)] == [15.0, 22.5, 33.75]


def test_three_successes_forget_the_largest_loss_too() -> None:
    """A hang, three answers, then errors in no time: 10, 15 and 15 s."""
    rests = Cooldown()
    fail(rests, TIMEOUT, 0.0, lost=30.0)
    for _ in range(3):
        rests.succeeded(40.0, 41.0)
    lengths = [seconds(fail(rests, SERVER_ERROR, now), now) for now in (100.0, 200.0, 300.0)]
    assert lengths == [10.0, 15.0, 15.0]


@pytest.mark.parametrize(("successes", "length"), [(2, 15.0), (3, 10.0)])
def test_three_successes_reset_the_growth(successes: int, length: float) -> None:
    """After two successes the next cooldown is the second, after three it is the first again."""
    rests = cooling()
    for _ in range(successes):
        rests.succeeded(30.0, 31.0)
    assert seconds(fail(rests, SERVER_ERROR, 40.0), 40.0) == length


def test_successes_are_counted_in_a_row() -> None:
    """Two, a failure, two more are no three."""
    rests = cooling()
    for _ in range(2):
        rests.succeeded(30.0, 31.0)
    fail(rests, SERVER_ERROR, 32.0, ill=False)
    for _ in range(2):
        rests.succeeded(33.0, 34.0)
    assert seconds(fail(rests, SERVER_ERROR, 40.0), 40.0) == 15.0


def test_the_callers_fault_changes_nothing() -> None:
    """A 400 neither rests the target nor interrupts its three successes, not even with a hint."""
    rests = cooling()
    for _ in range(2):
        rests.succeeded(30.0, 31.0)
    assert fail(rests, FailureClass.INVALID_REQUEST, 32.0, hint=60.0) is None
    rests.succeeded(33.0, 34.0)
    assert seconds(fail(rests, SERVER_ERROR, 40.0), 40.0) == 10.0


def test_failures_of_calls_from_before_a_cooldown_do_not_make_it_longer() -> None:
    """Ten calls in flight when it began, some of which fail after it: one wave is one cooldown."""
    rests = cooling()
    for n in range(10):
        assert fail(rests, SERVER_ERROR, 5.0 + n, admitted_at=0.0) is None
    assert rests.advice(0.0) == Refusal("cooldown", 10.0)
    assert seconds(fail(rests, SERVER_ERROR, 15.0), 15.0) == 15.0


def test_a_failure_never_changes_a_cooldown() -> None:
    """A call that was sent during a hang's 30 s and fails at once: the instant stands (I6), and nothing is counted."""
    rests = Cooldown()
    fail(rests, TIMEOUT, 0.0, lost=30.0)
    assert fail(rests, SERVER_ERROR, 1.0) is None
    assert rests.advice(1.0) == Refusal("cooldown", 30.0)
    assert seconds(fail(rests, TIMEOUT, 61.0, lost=30.0), 61.0) == 45.0


def test_a_success_of_a_later_call_ends_a_cooldown() -> None:
    """The call on probation that succeeds ends it at once, and is its recovery."""
    rests = cooling()
    assert rests.succeeded(10.0, 11.0)
    assert rests.advice(11.0) is None
    assert not rests.returning
    assert not rests.on_probation(30.0)


def test_a_success_of_a_call_sent_as_it_cooled_ends_it() -> None:
    """Our own guess gives way to an answer that is as new."""
    assert cooling(now=10.0).succeeded(10.0, 12.0)


def test_a_success_of_an_older_call_ends_nothing() -> None:
    """A call admitted before the cooldown began proves nothing about now."""
    rests = cooling(now=10.0)
    assert not rests.succeeded(9.999, 12.0)
    assert rests.advice(12.0) == Refusal("cooldown", 20.0)
    assert rests.returning


def test_only_the_recovery_is_one() -> None:
    """The second success after a cooldown is an ordinary success."""
    rests = cooling()
    assert rests.succeeded(30.0, 31.0)
    assert not rests.succeeded(31.0, 32.0)
    assert not Cooldown().succeeded(0.0, 1.0)


def test_while_a_breaker_decides_failures_advise_nothing() -> None:
    """With `advise` off neither kind of advice begins, and none is counted."""
    rests = Cooldown()
    for _ in range(5):
        assert fail(rests, SERVER_ERROR, 0.0, advise=False) is None
        assert fail(rests, FailureClass.OVERLOADED, 0.0, advise=False) is None
    assert rests.advice(0.0) is None
    assert seconds(fail(rests, SERVER_ERROR, 0.0), 0.0) == 10.0


def test_a_trip_ends_advice_and_resets_the_growth() -> None:
    """From here on the breaker decides; afterwards it is the base of a cheap failure again, and its cap."""
    rests = Cooldown()
    fail(rests, TIMEOUT, 0.0, lost=30.0)
    rests.breaker_tripped()
    assert rests.advice(0.0) is None
    assert not rests.returning
    assert not rests.on_probation(30.0)
    assert [seconds(fail(rests, SERVER_ERROR, now), now) for now in (60.0, 90.0, 120.0)] == [10.0, 15.0, 15.0]


def test_a_trip_leaves_law() -> None:
    """What the provider said binds a probe too, and the return from it is still one."""
    rests = cooling()
    fail(rests, RATE_LIMITED, 1.0, hint=300.0)
    rests.breaker_tripped()
    assert rests.law(1.0) == Refusal("wait", 301.0)
    assert rests.returning
    assert not rests.on_probation(300.999)
    assert rests.on_probation(301.0)


@pytest.mark.parametrize("ill", [False, True])
def test_overload_rests_for_a_second_from_the_second_in_a_row_on(ill: bool) -> None:
    """Without a hint: a second of advice, whatever the evidence says."""
    rests = Cooldown()
    assert fail(rests, FailureClass.OVERLOADED, 0.0, ill=ill) is None
    assert fail(rests, FailureClass.OVERLOADED, 0.0, ill=ill) == Rest("cooldown", 1.0, hinted=False)
    assert fail(rests, FailureClass.OVERLOADED, 2.0, ill=ill) == Rest("cooldown", 3.0, hinted=False)


def test_warming_up_is_law_for_a_second() -> None:
    """Without a hint, from the first on, and again for each one that is told after it."""
    rests = Cooldown()
    assert fail(rests, FailureClass.WARMING, 0.0) == Rest("wait", 1.0, hinted=False)
    assert rests.law(0.999) == Refusal("wait", 1.0)
    assert rests.law(1.0) is None
    assert rests.advice(0.0) is None
    assert fail(rests, FailureClass.WARMING, 2.0) == Rest("wait", 3.0, hinted=False)
    assert rests.cause(2.0) is FailureClass.WARMING


def test_a_model_that_warms_up_is_asked_by_one_call_at_a_time_until_one_succeeds() -> None:
    """The gate reads `warming`; it returns by that, and not by probation."""
    rests = Cooldown()
    assert not rests.snapshot().warming
    fail(rests, FailureClass.WARMING, 0.0)
    assert rests.snapshot().warming
    assert not rests.on_probation(1.0)
    assert not rests.succeeded(0.0, 1.0)
    assert limited(rests, 1.0, 0.5) is not None
    assert rests.snapshot().warming
    assert rests.succeeded(1.5, 2.0)
    assert not rests.snapshot().warming


def test_a_breaker_that_is_not_closed_does_not_bind_the_law_of_warming_up() -> None:
    """Law binds a probe, too."""
    rests = Cooldown()
    assert fail(rests, FailureClass.WARMING, 0.0, advise=False) == Rest("wait", 1.0, hinted=False)


def test_warming_up_does_not_replace_a_hint() -> None:
    """The provider said 7 s; a later answer without a word changes nothing."""
    rests = Cooldown()
    fail(rests, FailureClass.WARMING, 0.0, hint=7.0)
    assert fail(rests, FailureClass.WARMING, 1.0) is None
    assert rests.law(1.0) == Refusal("wait", 7.0)
    assert not rests.warming


def test_a_success_makes_the_next_overload_the_first() -> None:
    """Overload, success, overload: no rest."""
    rests = Cooldown()
    fail(rests, FailureClass.OVERLOADED, 0.0)
    rests.succeeded(0.0, 1.0)
    assert fail(rests, FailureClass.OVERLOADED, 2.0) is None


@pytest.mark.parametrize("failure_class", [FailureClass.OVERLOADED, FailureClass.WARMING])
def test_a_hint_makes_an_overload_law(failure_class: FailureClass) -> None:
    """With a hint it is the provider's word, and no advice besides."""
    rests = Cooldown()
    for now in (0.0, 1.0):
        rest = fail(rests, failure_class, now, hint=7.0, scope="overload")
        assert rest == Rest("wait", now + 7.0, hinted=True)
    assert rests.advice(0.0) is None


def test_a_hint_on_any_failure_is_law() -> None:
    """A 503 with Retry-After rests at the first failure, for as long as it says."""
    assert fail(Cooldown(), SERVER_ERROR, 0.0, hint=4.0) == Rest("wait", 4.0, hinted=True)


def test_where_hints_are_not_honoured_guesses_are_left() -> None:
    """The founding measure switched off: a loading model waits its second, a hinted 429 rests its flat 120 s."""
    rests = Cooldown()
    assert fail(rests, FailureClass.WARMING, 0.0, hint=50.0, honour_hints=False) == Rest("wait", 1.0, hinted=False)
    rests.succeeded(1.0, 2.0)
    assert seconds(fail(rests, RATE_LIMITED, 2.0, hint=3.0, honour_hints=False), 2.0) == 120.0
    assert seconds(fail(rests, RATE_LIMITED, 122.0, hint=3.0, honour_hints=False), 122.0) == 180.0


# ------------------------------------------------------------------------------------------------ hints


@pytest.mark.parametrize(
    ("hint", "length"),
    [(3.0, 3.0), (1.5, 1.5), (1.0, 1.0), (0.25, 0.25), (0.05, 0.05), (0.001, 0.05), (0.0, 0.05), (300.0, 300.0)],
)
def test_a_hint_is_exact(hint: float, length: float) -> None:
    """3 s is 3 s, not 120; milliseconds are taken from 50 up; the instant itself is allowed again."""
    rests = Cooldown()
    rest = fail(rests, RATE_LIMITED, 100.0, hint=hint, roll=0.999)
    assert rest == Rest("wait", 100.0 + length, hinted=True)
    assert rests.law(100.0 + length - 0.001) == Refusal("wait", 100.0 + length)
    assert rests.law(100.0 + length) is None


@pytest.mark.parametrize(
    ("scope", "reason", "length"),
    [
        ("concurrency", "wait", 86_400.0),
        ("minute", "wait", 86_400.0),
        ("hour", "wait", 86_400.0),
        ("overload", "wait", 86_400.0),
        ("day", "wall", 86_400.0),
        ("credit", "wall", 86_400.0),
    ],
)
def test_a_hint_is_capped_at_a_day(scope: Scope, reason: str, length: float) -> None:
    """A day, whether it may be waited for or is a wall: a wait of six hours that reports one is not exact."""
    rest = fail(Cooldown(), RATE_LIMITED, 0.0, hint=1e6, scope=scope)
    assert rest is not None
    assert (rest.reason, rest.until) == (reason, length)


@pytest.mark.parametrize("scope", ["day", "credit"])
def test_a_wall_has_a_floor(scope: Scope) -> None:
    """A wall of no length is still one of 50 ms."""
    assert seconds(fail(Cooldown(), RATE_LIMITED, 0.0, hint=0.0, scope=scope), 0.0) == 0.05
    assert seconds(fail(Cooldown(), QUOTA, 0.0, hint=0.0, scope=scope), 0.0) == 0.05


def test_too_many_at_once_is_no_wait() -> None:
    """Concurrency with zero seconds: fewer, not later; nothing rests."""
    rests = Cooldown()
    assert fail(rests, RATE_LIMITED, 0.0, hint=0.0, scope="concurrency") is None
    assert rests.law(0.0) is None
    assert not rests.returning


@pytest.mark.parametrize("hint", [0.5, 1.0])
def test_too_many_at_once_with_a_wait_is_a_wait(hint: float) -> None:
    """Concurrency and an instant: fewer, and later."""
    assert fail(Cooldown(), RATE_LIMITED, 0.0, hint=hint, scope="concurrency") == Rest("wait", hint, hinted=True)


def test_a_hint_gives_way_to_that_of_a_later_sent_call() -> None:
    """The newer word counts, also when it is shorter."""
    rests = Cooldown()
    fail(rests, RATE_LIMITED, 0.0, hint=60.0, sent_seq=1)
    assert fail(rests, RATE_LIMITED, 1.0, hint=5.0, sent_seq=2) == Rest("wait", 6.0, hinted=True)
    assert rests.law(1.0) == Refusal("wait", 6.0)


def test_a_hint_gives_way_to_a_longer_one_of_an_earlier_call() -> None:
    """An older call that ends later may extend, never shorten."""
    rests = Cooldown()
    fail(rests, RATE_LIMITED, 0.0, hint=10.0, sent_seq=2)
    assert fail(rests, RATE_LIMITED, 1.0, hint=5.0, sent_seq=1) is None
    assert fail(rests, RATE_LIMITED, 1.0, hint=9.0, sent_seq=2) is None
    assert rests.law(1.0) == Refusal("wait", 10.0)
    assert fail(rests, RATE_LIMITED, 1.0, hint=20.0, sent_seq=1) == Rest("wait", 21.0, hinted=True)


def test_a_guess_never_replaces_a_hint() -> None:
    """A 429 without a word does not make the provider's word longer or shorter."""
    rests = Cooldown()
    fail(rests, RATE_LIMITED, 0.0, hint=0.5, sent_seq=1)
    assert fail(rests, RATE_LIMITED, 0.1, sent_seq=2) is None
    assert rests.law(0.1) == Refusal("wait", 0.5)


def test_a_hint_replaces_a_guess_in_both_directions() -> None:
    """The provider knows; it does not matter which was sent first or is longer."""
    shorter, longer = Cooldown(), Cooldown()
    for rests in (shorter, longer):
        for now in (0.0, 1.0, 3.0):
            limited(rests, now, sent_seq=9)
        assert rests.law(3.0) == Refusal("wait", 33.0)
    assert limited(shorter, 4.0, hint=2.0, sent_seq=1) == Rest("wait", 6.0, hinted=True)
    assert limited(longer, 4.0, hint=200.0, sent_seq=1) == Rest("wait", 204.0, hinted=True)


def test_an_expired_hint_binds_no_later_word() -> None:
    """At its instant a wait is over: what comes next counts, a shorter one of an older call and a guess too."""
    hinted, guessed = Cooldown(), Cooldown()
    for rests in (hinted, guessed):
        limited(rests, 0.0, hint=10.0, sent_seq=5)
    assert limited(hinted, 10.0, hint=2.0, sent_seq=1) == Rest("wait", 12.0, hinted=True)
    assert limited(guessed, 10.0, sent_seq=1) == Rest("wait", 11.0, hinted=False)


@pytest.mark.parametrize(("failure_class", "scope"), [(RATE_LIMITED, "day"), (QUOTA, "credit")])
def test_a_walls_hint_gives_way_like_any_other(failure_class: FailureClass, scope: Scope) -> None:
    """To that of a later-sent call, to a longer one of an earlier call, to no shorter one of an earlier call."""
    rests = Cooldown()
    fail(rests, failure_class, 0.0, hint=7200.0, scope=scope, sent_seq=2)
    assert fail(rests, failure_class, 0.0, hint=60.0, scope=scope, sent_seq=1) is None
    shorter = fail(rests, failure_class, 0.0, hint=60.0, scope=scope, sent_seq=3)
    assert shorter == Rest("wall", 60.0, hinted=True)
    longer = fail(rests, failure_class, 0.0, hint=90.0, scope=scope, sent_seq=1)
    assert longer == Rest("wall", 90.0, hinted=True)


def test_law_is_ended_by_a_success_of_a_later_call_only() -> None:
    """A call admitted at the instant it began, or before, was admitted without knowing of it."""
    rests = Cooldown()
    fail(rests, RATE_LIMITED, 10.0, hint=300.0)
    assert not rests.succeeded(9.0, 11.0)
    assert not rests.succeeded(10.0, 11.0)
    assert rests.law(11.0) == Refusal("wait", 310.0)
    assert rests.succeeded(10.001, 12.0)
    assert rests.law(12.0) is None


# ------------------------------------------------------------------------------------------------ the ladder


def test_an_unhinted_429_of_unknown_buckets_is_no_rest() -> None:
    """It lowers the learned limit and its caller backs off; others are asked on."""
    rests = Cooldown()
    assert [fail(rests, RATE_LIMITED, float(n)) for n in range(10)] == [None] * 10
    assert rests.law(9.0) is None
    assert not rests.returning
    assert seconds(limited(rests, 10.0), 10.0) == 1.0


def test_an_unhinted_429_of_a_known_bucket_climbs_the_ladder() -> None:
    """1, 2, 30, 60 s, then 120 x 1.5^(n-1) up to the cap, each rung when the last is over."""
    rests, now, lengths = Cooldown(), 0.0, []
    for _ in range(220):
        lengths.append(seconds(limited(rests, now), now))
        now += lengths[-1]
    assert lengths[:9] == pytest.approx([1.0, 2.0, 30.0, 60.0, 120.0, 180.0, 270.0, 405.0, 600.0])
    assert lengths[-1] == 600.0
    assert LADDER == (1.0, 2.0, 30.0, 60.0)


@pytest.mark.parametrize(("rung", "length"), [(0, 1.1), (1, 2.2), (2, 33.0), (3, 66.0), (4, 120.0)])
def test_the_dice_spread_the_rungs_by_a_fifth(rung: int, length: float) -> None:
    """Half a roll is a tenth more; the long rest is exact."""
    rests, now = Cooldown(), 0.0
    for _ in range(rung):
        limited(rests, now)
        now += 1000.0
    assert seconds(limited(rests, now, roll=0.5), now) == pytest.approx(length)


def test_a_guess_is_law_but_no_hint() -> None:
    """It is refused as a wait, and says that it is ours."""
    rests = Cooldown()
    assert limited(rests, 5.0) == Rest("wait", 6.0, hinted=False)
    assert rests.law(5.0) == Refusal("wait", 6.0)


def test_one_wave_is_one_rung() -> None:
    """Twenty calls in flight that all come back with 429: the first rung, not the twentieth."""
    rests = Cooldown()
    limited(rests, 5.0, admitted_at=0.0)
    for n in range(19):
        assert limited(rests, 5.0 + n, admitted_at=5.0) is None
    assert seconds(limited(rests, 30.0), 30.0) == 2.0


def test_a_known_end_of_a_window_is_waited_for() -> None:
    """Without a hint the window's end is the best guess; when it was wrong the ladder goes on from its second rung."""
    rests = Cooldown()
    assert seconds(limited(rests, 0.0, expected=42.0), 0.0) == 42.0
    assert seconds(limited(rests, 42.0, expected=60.0), 42.0) == 2.0


def test_the_dice_put_off_the_return_at_a_windows_end() -> None:
    """By up to a fifth: not all processes come back at once."""
    rest = limited(Cooldown(), 0.0, expected=40.0, roll=0.5)
    assert seconds(rest, 0.0) == pytest.approx(44.0)


def test_what_it_took_before_is_waited_for() -> None:
    """Cleared within three seconds once: the next un-hinted refusal waits a little less than that."""
    rests = Cooldown()
    for now in (0.0, 1.0):
        limited(rests, now)
    rests.succeeded(3.0, 3.5)
    assert seconds(limited(rests, 100.0), 100.0) == 2.5


def test_a_success_resets_the_ladder() -> None:
    """Three rungs, a success, and it begins at one second."""
    rests = Cooldown()
    for now in (0.0, 10.0, 20.0):
        limited(rests, now)
    rests.succeeded(60.0, 61.0)
    assert seconds(limited(rests, 62.0), 62.0) == 1.0


# ------------------------------------------------------------------------------------------------ walls and off


@pytest.mark.parametrize(
    ("failure_class", "length"),
    [(FailureClass.MODEL_GONE, 3600.0), (FailureClass.MISCONFIGURED, 900.0), (AUTH, 900.0)],
)
def test_what_is_switched_off_stays_off_for_its_time(failure_class: FailureClass, length: float) -> None:
    """An hour for a model that is gone, a quarter of one for a wrong address or a key that never worked."""
    rests = Cooldown()
    assert fail(rests, failure_class, 0.0) == Rest("off", length, hinted=False)
    assert rests.law(length - 0.001) == Refusal("off", length)
    assert rests.law(length) is None
    assert rests.on_probation(length)


@pytest.mark.parametrize(("since", "length"), [(0.0, 10.0), (300.0, 10.0), (300.001, 900.0)])
def test_a_key_that_worked_lately_is_off_for_ten_seconds(since: float, length: float) -> None:
    """Within five minutes of a success the first refusal may be a hiccup."""
    rests = Cooldown()
    rests.succeeded(0.0, 1000.0)
    assert seconds(fail(rests, AUTH, 1000.0 + since), 1000.0 + since) == pytest.approx(length)


def test_the_second_refusal_of_a_key_in_a_row_is_no_hiccup() -> None:
    """10 s, then 15 min; after a success 10 s again."""
    rests = Cooldown()
    rests.succeeded(0.0, 0.0)
    assert seconds(fail(rests, AUTH, 1.0), 1.0) == 10.0
    assert seconds(fail(rests, AUTH, 11.0), 11.0) == 900.0
    rests.succeeded(911.0, 912.0)
    assert seconds(fail(rests, AUTH, 913.0), 913.0) == 10.0


def test_one_wave_of_refused_keys_is_one_refusal() -> None:
    """Ten calls in flight with the same key (one sent as the first came back) make ten seconds no fifteen minutes."""
    rests = Cooldown()
    rests.succeeded(0.0, 0.0)
    fail(rests, AUTH, 5.0, admitted_at=1.0)
    assert [fail(rests, AUTH, 5.0 + n, admitted_at=1.0 + n / 2) for n in range(9)] == [None] * 9
    assert rests.law(5.0) == Refusal("off", 15.0)


def test_a_used_up_quota_is_a_wall() -> None:
    """An hour when no date is stated, else until then, at most a day."""
    assert fail(Cooldown(), QUOTA, 0.0) == Rest("wall", 3600.0, hinted=False)
    assert fail(Cooldown(), QUOTA, 0.0, hint=7200.0, scope="credit") == Rest("wall", 7200.0, hinted=True)
    assert fail(Cooldown(), QUOTA, 0.0, hint=1e7, scope="credit") == Rest("wall", 86_400.0, hinted=True)


def test_off_comes_before_wall_before_wait() -> None:
    """The reason told is the one that lasts by its nature; each ends at its own instant."""
    rests = Cooldown()
    fail(rests, RATE_LIMITED, 0.0, hint=2000.0)
    assert rests.law(0.0) == Refusal("wait", 2000.0)
    fail(rests, QUOTA, 0.0, hint=1500.0)
    assert rests.law(0.0) == Refusal("wall", 1500.0)
    fail(rests, FailureClass.MISCONFIGURED, 0.0)
    assert rests.law(0.0) == Refusal("off", 900.0)
    assert rests.law(900.0) == Refusal("wall", 1500.0)
    assert rests.law(1500.0) == Refusal("wait", 2000.0)
    assert rests.law(2000.0) is None


def test_nothing_shorter_of_its_own_kind_shortens_off() -> None:
    """A wrong address during an hour without the model: the hour stands."""
    rests = Cooldown()
    fail(rests, FailureClass.MODEL_GONE, 0.0)
    assert fail(rests, FailureClass.MISCONFIGURED, 1.0) is None
    assert rests.law(1.0) == Refusal("off", 3600.0)


# ------------------------------------------------------------------------------------------------ the way back


BEGINNINGS: list[Callable[[Cooldown], object]] = [
    lambda rests: fail(rests, SERVER_ERROR, 0.0),
    lambda rests: fail(rests, AUTH, 0.0),
    lambda rests: fail(rests, QUOTA, 0.0),
    lambda rests: fail(rests, FailureClass.MODEL_GONE, 0.0),
    lambda rests: fail(rests, FailureClass.MISCONFIGURED, 0.0),
    lambda rests: fail(rests, RATE_LIMITED, 0.0, hint=300.0),
    lambda rests: fail(rests, RATE_LIMITED, 0.0, hint=300.0, scope="day", paced=True),
    lambda rests: fail(rests, RATE_LIMITED, 0.0, honour_hints=False),
]


@pytest.mark.parametrize(
    "begin", BEGINNINGS, ids=["cooldown", "auth", "quota", "gone", "misconfigured", "hint", "day", "guess"]
)
def test_what_returns_by_expiry_is_on_probation(begin: Callable[[Cooldown], object]) -> None:
    """From the instant the rest ends until a later call succeeds; the instant is known to those who probe."""
    rests = Cooldown()
    begin(rests)
    told = rests.law(0.0) or rests.advice(0.0)
    assert told is not None
    assert told.retry_at is not None
    assert not rests.on_probation(told.retry_at - 0.001)
    assert rests.due_since(told.retry_at - 0.001) is None
    assert rests.on_probation(told.retry_at)
    assert rests.due_since(1e6) == told.retry_at
    assert rests.succeeded(told.retry_at, told.retry_at + 1)
    assert not rests.on_probation(1e6)
    assert rests.due_since(1e6) is None


def test_a_known_bucket_paces_the_return_from_a_wait() -> None:
    """No probation then, hinted or guessed; the first success is a recovery all the same."""
    for hint in (30.0, None):
        rests = Cooldown()
        fail(rests, RATE_LIMITED, 0.0, hint=hint, paced=True)
        assert not rests.on_probation(1e6)
        assert rests.returning
        assert rests.succeeded(100.0, 101.0)


@pytest.mark.parametrize(("answered_at", "on_probation"), [(0.0, True), (19.999, True), (20.0, False), (25.0, False)])
def test_who_answered_in_the_ten_seconds_before_needs_no_probation(answered_at: float, on_probation: bool) -> None:
    """A wait until 30: an answer at 20 or later (of a call admitted before it) shows that it is alive."""
    rests = Cooldown()
    fail(rests, RATE_LIMITED, 0.0, hint=30.0)
    rests.succeeded(-5.0, answered_at)
    assert rests.law(29.0) is not None
    assert rests.on_probation(30.0) is on_probation


def test_an_answer_shortly_before_a_short_wait_counts() -> None:
    """A second's wait of a busy target is no reason to ask it one at a time."""
    rests = Cooldown()
    rests.succeeded(0.0, 5.0)
    fail(rests, RATE_LIMITED, 6.0, hint=1.0)
    assert not rests.on_probation(7.0)


def test_being_alive_excuses_from_waits_only() -> None:
    """Walls, off and cooldowns return by probation whatever answered before."""
    for failure_class in (AUTH, QUOTA, FailureClass.MODEL_GONE):
        rests = Cooldown(CooldownConfig(quota=5.0, model_gone=5.0, auth_after_success=5.0))
        rests.succeeded(0.0, 0.0)
        fail(rests, failure_class, 0.0)
        assert rests.on_probation(5.0)


def test_probation_begins_when_the_last_rest_ends() -> None:
    """A cooldown of 10 s and a wait of 100: on probation from 100 on."""
    rests = cooling()
    fail(rests, RATE_LIMITED, 0.0, hint=100.0, paced=True)
    assert not rests.on_probation(99.999)
    assert rests.due_since(100.0) == 100.0


def test_a_return_that_has_to_be_proven_stays_one() -> None:
    """A wait without a bucket, and a longer one paced by a bucket that is known by then: still on probation."""
    rests = Cooldown()
    fail(rests, RATE_LIMITED, 0.0, hint=3.0)
    fail(rests, RATE_LIMITED, 1.0, hint=20.0, paced=True)
    assert rests.on_probation(21.0)


def test_a_pause_of_less_than_a_second_ends_at_its_instant() -> None:
    """Set to a quarter of a second, an overload rests for that and a loading model waits for that."""
    rests = Cooldown(CooldownConfig(brief=0.25))
    for _ in range(2):
        fail(rests, FailureClass.OVERLOADED, 0.0)
    assert rests.due_since(0.25) == 0.25
    assert fail(rests, FailureClass.WARMING, 1.0) == Rest("wait", 1.25, hinted=False)


def test_a_recovery_needs_every_rest_to_be_over() -> None:
    """The success of a call from between two rests ends the first and is not yet the recovery."""
    rests = cooling()
    fail(rests, RATE_LIMITED, 40.0, hint=60.0)
    assert not rests.succeeded(35.0, 41.0)
    assert rests.advice(41.0) is None
    assert rests.law(41.0) == Refusal("wait", 100.0)
    assert rests.on_probation(100.0)
    assert rests.succeeded(100.0, 101.0)


def test_a_cooldown_that_ended_before_this_process_began_is_a_step() -> None:
    """The second of the process before it: nothing rests, and the next one is the third."""
    rests = Cooldown()
    assert not rests.adopt(RestRecord("cooldown", -5.0, hinted=False, cause=None, step=2), 0.0)
    assert seconds(fail(rests, SERVER_ERROR, 30.5, lost=30.0), 30.5) == 67.5


@pytest.mark.parametrize(("successes", "length"), [(2, 15.0), (3, 10.0)])
def test_the_growth_of_another_process_is_reset_by_three_successes_too(successes: int, length: float) -> None:
    """It saw one cooldown: after two successes here the next one is the second."""
    rests = Cooldown()
    rests.adopt(RestRecord("cooldown", 30.0, hinted=False, cause=None, step=1), 0.0)
    for _ in range(successes):
        rests.succeeded(30.0, 31.0)
    assert seconds(fail(rests, SERVER_ERROR, 40.0), 40.0) == length


def test_the_first_refusal_of_a_key_is_written_down_as_the_first() -> None:
    """Whoever takes it over counts on from there."""
    rests = Cooldown()
    fail(rests, AUTH, 0.0)
    assert rests.records() == (RestRecord("off", 900.0, hinted=False, cause=AUTH, step=1),)


def test_clear_forgets_everything() -> None:
    """The operator's word: no rest, no probation, every count from the beginning."""
    rests = Cooldown()
    fail(rests, TIMEOUT, 0.0, lost=30.0)
    for now in (1.0, 5.0, 10.0):
        limited(rests, now)
    fail(rests, AUTH, 50.0)
    fail(rests, FailureClass.WARMING, 51.0)
    rests.clear()
    assert rests.law(51.0) is None
    assert rests.advice(50.0) is None
    assert rests.records() == ()
    assert not rests.returning
    assert not rests.warming
    assert not rests.on_probation(1e6)
    assert [seconds(fail(rests, SERVER_ERROR, now), now) for now in (60.0, 90.0, 120.0)] == [10.0, 15.0, 15.0]
    assert seconds(limited(rests, 60.0), 60.0) == 1.0


@pytest.mark.parametrize("origin", [0.0, 1.0e6, 1.7e9])
def test_time_is_only_what_the_caller_says(origin: float) -> None:
    """The same story at any origin of time has the same lengths: no clock is looked at (I7)."""
    rests = Cooldown()
    told = [
        fail(rests, RATE_LIMITED, origin, hint=3.0),
        fail(rests, SERVER_ERROR, origin + 4.0, ill=False),
        fail(rests, SERVER_ERROR, origin + 4.0, lost=2.0),
        fail(rests, QUOTA, origin + 5.0),
    ]
    assert [None if rest is None else rest.until - origin for rest in told] == [3.0, None, 24.0, 3605.0]


def test_the_defaults_are_those_of_the_specification() -> None:
    """Section 4's figures."""
    assert CooldownConfig() == CooldownConfig(
        failing_share=0.9,
        odds=50,
        odds_per_call=10,
        failure=10.0,
        timeout=30.0,
        rate_limit=120.0,
        brief=1.0,
        multiplier=1.5,
        cap=600.0,
        hint_cap=86_400.0,
        success_count_to_clear=3,
        auth=900.0,
        auth_after_success=10.0,
        model_gone=3600.0,
        misconfigured=900.0,
        quota=3600.0,
    )


def test_a_snapshot_is_every_rest_that_is_remembered() -> None:
    """A cooldown since when and until when, each law, the calls on trial, whether the model warms up."""
    rests = Cooldown()
    assert rests.snapshot() == CooldownSnapshot(0.0, 0.0, {}, 0, warming=False)
    rests.adopt(RestRecord("cooldown", 30.0, False, None, 1), 5.0)
    told = Failure(FailureClass.WARMING, wait=Wait(3.0))
    rests.failed(told, admitted_at=6.0, sent_seq=7, now=6.5, roll=0.0, paced=False, advise=True)
    rests.on_trial = 2
    laws: dict[LawReason, LawSnapshot] = {"wait": LawSnapshot(9.5, 6.5, 7, hinted=True)}
    assert rests.snapshot() == CooldownSnapshot(30.0, 5.0, laws, 2, warming=False)
