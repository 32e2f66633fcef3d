"""The rules by which shared rows are read: what is left of a deadline, who may write, what of a limit may be leased."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketAsk,
    BucketRow,
    ClockReading,
    Deadline,
    OperatorRow,
    RestRow,
    SlotAsk,
    ToldLimit,
    accepts_breaker,
    accepts_rest,
    accepts_word,
    age,
    is_due,
    is_news,
    lease_slots,
    lease_tokens,
    remaining,
    told,
)

WRITTEN = ClockReading("boot-1", 1_000.0, 1_700_000_000.0)
DEADLINE = Deadline.after(60.0, WRITTEN)


def at(boot: str = "boot-1", boottime: float = 0.0, wall: float = 0.0) -> ClockReading:
    """An instant so many seconds after WRITTEN on either clock."""
    return ClockReading(boot, WRITTEN.boottime + boottime, WRITTEN.wall + wall)


@pytest.mark.parametrize(
    ("here", "left"),
    [
        pytest.param(at(boottime=10, wall=10), 50.0, id="same boot"),
        pytest.param(at(boottime=60, wall=60), 0.0, id="same boot, over at the instant"),
        pytest.param(at(boottime=600, wall=600), 0.0, id="same boot, long over"),
        pytest.param(at(boottime=50, wall=50), 10.0, id="suspended: CLOCK_BOOTTIME went on"),
        pytest.param(at(boottime=10, wall=-86_400), 50.0, id="same boot, wall set back: it is not looked at"),
        pytest.param(at(boottime=10, wall=86_400), 50.0, id="same boot, wall set forward: it is not looked at"),
        pytest.param(at(boottime=-10, wall=10), 60.0, id="same boot, CLOCK_BOOTTIME went back: all of it"),
        pytest.param(at("boot-2", -990, 20), 40.0, id="reboot: the wall tells"),
        pytest.param(at("boot-2", 5_000, 20), 40.0, id="reboot: the other boot's CLOCK_BOOTTIME is not looked at"),
        pytest.param(at("boot-2", -990, 61), 0.0, id="reboot, over"),
        pytest.param(at("boot-2", -990, -3_600), 60.0, id="reboot, wall went back: all of it"),
        pytest.param(at("boot-2", -990, 86_400), 0.0, id="reboot, wall set forward: over"),
        pytest.param(at("another host", 77, 20), 40.0, id="another host: the wall tells"),
        pytest.param(at("", 0, 20), 40.0, id="no boots here: the wall tells"),
        pytest.param(ClockReading("boot-2", 1.0, 0.0), 60.0, id="a clock in 1970: all of it"),
    ],
)
def test_what_is_left_after_a_restart(here: ClockReading, left: float) -> None:
    """The restart table of stats.md, for a deadline written to last 60 s."""
    assert remaining(DEADLINE, here, 600.0) == left


def test_a_deadline_without_a_boot_is_never_of_the_same_one() -> None:
    """Where boots have no names CLOCK_BOOTTIME says nothing, even when both sides have none."""
    nowhere = Deadline.after(60.0, ClockReading("", 0.0, 1_000.0))
    assert remaining(nowhere, ClockReading("", 50.0, 1_020.0), 600.0) == 40.0


@pytest.mark.parametrize("cap", [30.0, 59.0])
def test_no_more_than_the_cap_of_its_cause_is_left(cap: float) -> None:
    """The configuration may have changed since, and a file may say anything."""
    assert remaining(DEADLINE, at(), cap) == cap


@pytest.mark.parametrize("field", ["boottime", "boottime_until", "wall", "wall_until", "duration"])
@pytest.mark.parametrize("garbage", [math.nan, math.inf, -math.inf, -1e9, 1e300])
@pytest.mark.parametrize("here", [at(boottime=10, wall=10), at("boot-2", 0, 10)])
def test_garbage_is_clamped(field: str, garbage: float, here: ClockReading) -> None:
    """Whatever a file holds, what is left lies between 0 and the cap."""
    facts: dict[str, Any] = {field: garbage}
    spoilt = replace(DEADLINE, **facts)
    assert 0.0 <= remaining(spoilt, here, 600.0) <= 600.0


def test_an_age_goes_by_the_same_rule() -> None:
    """The last success comes back as an age: by CLOCK_BOOTTIME, else by the wall; 0 after a clock went back."""
    assert age(WRITTEN, at(boottime=20, wall=99), 3600.0) == 20.0
    assert age(WRITTEN, at("boot-2", 0, 20), 3600.0) == 20.0
    assert age(WRITTEN, at("boot-2", 0, -20), 3600.0) == 0.0
    assert age(WRITTEN, at(boottime=99_999), 3600.0) == 3600.0


def breaker(**given: Any) -> BreakerRow:
    """A row that was written at WRITTEN."""
    facts: dict[str, Any] = {"owner": "a/m", "kind": "whole", "provider": "a", "state": "open", "until": DEADLINE}
    return BreakerRow(**{**facts, **given})


def rest(seconds: float = 60.0, **given: Any) -> RestRow:
    """A wait of so many seconds, written at WRITTEN."""
    facts: dict[str, Any] = {"owner": "a/m", "reason": "wait", "until": Deadline.after(seconds, WRITTEN)}
    return RestRow(**{**facts, **given})


@pytest.mark.parametrize(
    ("state", "seconds", "due"),
    [("open", 59, False), ("open", 60, True), ("half_open", 59, False), ("half_open", 60, True), ("closed", 99, False)],
)
def test_a_probe_is_due_when_the_open_time_or_its_holders_lease_is_over(state: Any, seconds: float, due: bool) -> None:
    """At the instant itself, and never of a closed breaker."""
    assert is_due(breaker(state=state), at(boottime=seconds)) is due


def test_a_breaker_is_written_by_who_knows_its_newest_generation() -> None:
    """A stale holder's generation is an older one, or of a boot whose last writes were lost: it changes nothing."""
    assert accepts_breaker(None, breaker(), WRITTEN)
    assert accepts_breaker(breaker(gen=4), breaker(gen=4), WRITTEN)
    assert not accepts_breaker(breaker(gen=5), breaker(gen=4), WRITTEN)
    assert not accepts_breaker(None, breaker(gen=4), WRITTEN)
    later = replace(WRITTEN, boot="the boot after it")
    assert not accepts_breaker(breaker(gen=4), breaker(gen=4), later)
    assert accepts_breaker(breaker(gen=4), breaker(gen=4, until=Deadline.after(60.0, later)), later)


@pytest.mark.parametrize(
    ("known", "new", "accepted"),
    [
        pytest.param(None, rest(), True, id="new"),
        pytest.param(None, rest(over=True), False, id="the end of none"),
        pytest.param(rest(gen=2), rest(5, gen=2), True, id="who knows the newest may shorten it"),
        pytest.param(rest(gen=2), rest(over=True, gen=2), True, id="and end it"),
        pytest.param(rest(gen=2), rest(over=True, gen=1), False, id="nobody else ends it"),
        pytest.param(rest(gen=2), rest(5, gen=1), False, id="nobody else shortens it"),
        pytest.param(rest(gen=2), rest(90, gen=1), True, id="anybody may lengthen it"),
        pytest.param(rest(gen=2), rest(5, gen=0, hinted=True), True, id="a hint replaces a guess"),
        pytest.param(rest(gen=2, hinted=True), rest(90, gen=0), False, id="a guess never replaces a hint"),
        pytest.param(rest(gen=2, over=True, hinted=True), rest(5, gen=0), True, id="after its end a new one begins"),
    ],
)
def test_who_may_write_a_rest(known: RestRow | None, new: RestRow, accepted: bool) -> None:
    """No process shortens what another knows more of (invariant I6)."""
    assert accepts_rest(known, new, WRITTEN) is accepted


# ------------------------------------------------------------------------------------------------ limits

NOW = WRITTEN.ticks


def ask(**given: Any) -> BucketAsk:
    """A limit of 300 a minute that refills all the time; 6 are wanted, 1 is enough."""
    facts: dict[str, Any] = {"key": "a/m requests", "capacity": 300.0, "rate": 5.0, "most": 300.0}
    facts |= {"want": 6.0, "least": 1.0, **given}
    return BucketAsk(**facts)


def bucket(level: float, **given: Any) -> BucketRow:
    """That limit with so much left at WRITTEN."""
    facts: dict[str, Any] = {"key": "a/m requests", "boot": "boot-1", "at": NOW, "capacity": 300.0, "rate": 5.0}
    facts |= {"window": None, "resets_at": NOW, "held_until": 0.0, "level": level, **given}
    return BucketRow(**facts)


def test_a_limit_nobody_knows_begins_full() -> None:
    """The first process to ask makes it; but for what comes back while the first call is under way."""
    row, grant = lease_tokens(None, ask(), WRITTEN)
    assert (row.level, grant.granted, grant.left, grant.due_in) == (289.0, 6.0, 289.0, 0.0)
    row, _ = lease_tokens(None, ask(want=0.0, window=60.0, resets_in=60.0), WRITTEN)
    assert row.level == 300.0


def test_a_provider_that_hears_of_us_late_is_not_run_into() -> None:
    """The first call arrives 0.9 s after the first lease, and only then its full bucket begins to refill."""
    row, granted = lease_tokens(None, ask(), WRITTEN)
    leased = granted.granted
    for tick in range(1, 1_200):
        row, grant = lease_tokens(row, ask(), at(boottime=tick / 20))
        leased += grant.granted
        assert leased <= 300.0 + 5.0 * max(0.0, tick / 20 - 0.9)
    assert leased >= 590.0


@pytest.mark.parametrize(
    ("most", "debt", "level"), [(9.0, 0.0, 4.0), (7.0, 2.0, 2.0), (3.0, 0.0, 0.0), (1.0, 2.0, 0.0), (-1.0, 2.0, -1.0)]
)
def test_a_limit_nobody_knows_begins_a_second_behind_what_its_provider_says(
    most: float, debt: float, level: float
) -> None:
    """Others have sent their first calls as well, and nobody has told of them; what is owed was sent already."""
    assert lease_tokens(None, ask(want=0.0, most=most, debt=debt), WRITTEN)[0].level == level


def test_what_is_granted_is_gone_and_comes_back_at_the_rate() -> None:
    """Ten processes that ask for what is there share it; the eleventh is told when the next one is there."""
    row, granted = bucket(4.0), []
    for _ in range(10):
        row, grant = lease_tokens(row, ask(), WRITTEN)
        granted.append(grant)
    assert sum(grant.granted for grant in granted) == 4.0
    assert granted[-1].due_in == pytest.approx(0.2)
    assert lease_tokens(row, ask(), at(boottime=0.2))[1].granted == 1.0
    assert lease_tokens(row, ask(want=0.0), at(boottime=1_000))[0].level == 300.0


def test_little_is_shared_not_hoarded() -> None:
    """A quarter of what is left is the most anybody gets, unless that is less than it needs."""
    assert lease_tokens(bucket(12.0), ask(), WRITTEN)[1].granted == 3.0
    assert lease_tokens(bucket(12.0), ask(least=5.0), WRITTEN)[1].granted == 5.0
    assert lease_tokens(bucket(4.0), ask(least=5.0), WRITTEN)[1].granted == 0.0


def test_a_debt_is_charged_whatever_is_there_and_what_comes_back_is_there_again() -> None:
    """The level may go below nothing; it never exceeds the capacity."""
    assert lease_tokens(bucket(1.0), ask(debt=3.0, want=0.0), WRITTEN)[0].level == -2.0
    assert lease_tokens(bucket(1.0), ask(back=3.0, want=0.0), WRITTEN)[0].level == 4.0
    assert lease_tokens(bucket(299.0), ask(back=3.0, want=0.0), WRITTEN)[0].level == 300.0


def test_the_providers_word_lowers_the_level_for_everybody() -> None:
    """A reading of one process counts at once for all."""
    row, grant = lease_tokens(bucket(200.0), ask(most=0.5), WRITTEN)
    assert (row.level, grant.granted) == (0.5, 0.0)


def test_a_capacity_learned_by_one_is_everybodys() -> None:
    """A larger limit adds the difference, a smaller one cuts the level."""
    assert lease_tokens(bucket(0.0), ask(capacity=600.0, most=600.0, want=0.0), WRITTEN)[0].level == 300.0
    assert lease_tokens(bucket(300.0), ask(capacity=60.0, most=300.0, want=0.0), WRITTEN)[0].level == 60.0


def test_nothing_is_there_while_a_provider_says_so() -> None:
    """A held limit grants nothing before the instant, then refills at its rate from nothing."""
    row, grant = lease_tokens(bucket(200.0), ask(held_for=3.0, most=0.0), WRITTEN)
    assert grant.granted == 0.0
    assert grant.due_in == pytest.approx(3.2)
    assert lease_tokens(row, ask(most=300.0), at(boottime=2.9))[1].granted == 0.0
    assert lease_tokens(row, ask(most=300.0), at(boottime=3.2))[1].granted == 1.0


def windowed(level: float, ends_in: float = 20.0) -> BucketRow:
    """A limit of 300 a fixed minute with so much left until it ends."""
    return bucket(level, window=60.0, resets_at=NOW + ends_in)


def test_a_window_refills_at_its_end_and_not_before() -> None:
    """All of it at once."""
    row, grant = lease_tokens(windowed(0.0), ask(window=60.0, resets_in=20.0), WRITTEN)
    assert (grant.granted, grant.due_in) == (0.0, 20.0)
    row, grant = lease_tokens(row, ask(window=60.0, resets_in=60.0), at(boottime=20))
    assert (grant.granted, row.resets_at) == (6.0, NOW + 80.0)
    assert lease_tokens(windowed(0.0), ask(window=60.0, resets_in=55.0), at(boottime=145))[0].resets_at == NOW + 200.0


def test_a_window_that_began_for_one_process_does_not_begin_twice() -> None:
    """Clocks of answers differ by up to a second: who still is in the old window does not empty the new one."""
    row, _ = lease_tokens(windowed(0.0), ask(window=60.0, resets_in=60.0, want=0.0), at(boottime=19.5))
    assert (row.level, row.resets_at) == (300.0, NOW + 79.5)
    row, grant = lease_tokens(row, ask(window=60.0, resets_in=0.3, most=0.0), at(boottime=19.8))
    assert (row.level, grant.granted, row.resets_at) == (294.0, 6.0, NOW + 79.5)
    row, _ = lease_tokens(row, ask(window=60.0, resets_in=60.0, most=290.0, want=0.0), at(boottime=20.1))
    assert (row.level, row.resets_at) == (290.0, NOW + 80.1)


def test_a_limit_of_another_boot_begins_anew() -> None:
    """Its instants are of another clock."""
    row, _ = lease_tokens(bucket(-50.0, boot="boot-0"), ask(want=0.0), WRITTEN)
    assert (row.level, row.boot) == (295.0, "boot-1")
    assert lease_tokens(bucket(-50.0, at=NOW + 9.0), ask(want=0.0), WRITTEN)[0].level == 295.0


def test_a_new_limit_that_turns_out_to_be_a_window_has_gained_nothing_meanwhile() -> None:
    """What was granted is missing, and what was thought to come back is not there."""
    row, _ = lease_tokens(None, ask(debt=40.0), WRITTEN)
    row, _ = lease_tokens(row, ask(want=0.0, window=60.0, resets_in=56.0), at(boottime=4.0))
    assert (row.level, row.window, row.resets_at) == (249.0, 60.0, NOW + 60.0)
    row, _ = lease_tokens(bucket(100.0), ask(want=0.0, window=60.0, resets_in=60.0, most=60.0), WRITTEN)
    assert row.level == 60.0


def test_a_known_limit_that_turns_out_to_be_a_window_has_what_its_provider_says() -> None:
    """It may have begun anew since; but for what others may hold of it."""
    old = bucket(0.5, resets_at=NOW - 60.1)
    row, _ = lease_tokens(old, ask(want=0.0, window=60.0, resets_in=50.0, most=280.0), WRITTEN)
    assert (row.level, row.window, row.resets_at) == (256.0, 60.0, NOW + 50.0)


def test_who_does_not_know_of_a_window_neither_ends_nor_empties_it() -> None:
    """A process that thinks it refills all the time has nothing left by its own count; only its account is settled."""
    row, grant = lease_tokens(windowed(250.0), ask(most=0.0, debt=2.0), WRITTEN)
    assert (row.level, grant.granted, row.window, row.resets_at) == (242.0, 6.0, 60.0, NOW + 20.0)


def test_who_has_seen_it_refill_ends_a_window() -> None:
    """There was none: what comes back counts from now on."""
    row, _ = lease_tokens(windowed(250.0), ask(most=100.0, want=0.0, steady=True), WRITTEN)
    assert (row.level, row.window) == (100.0, None)
    assert lease_tokens(row, ask(want=0.0), at(boottime=2.0))[0].level == 110.0
    row, _ = lease_tokens(row, ask(want=0.0, window=60.0, resets_in=18.0), at(boottime=2.0))
    assert row.level == 100.0


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        pytest.param(None, bucket(300.0), True, id="nobody knew it"),
        pytest.param(bucket(300.0), bucket(100.0), False, id="some is used"),
        pytest.param(bucket(24.0), bucket(23.0), True, id="it runs out"),
        pytest.param(bucket(23.0), bucket(24.0), True, id="it is back"),
        pytest.param(bucket(9.0), bucket(0.0), False, id="it is gone"),
        pytest.param(bucket(300.0), bucket(300.0, capacity=600.0), True, id="it has grown"),
        pytest.param(bucket(300.0), windowed(300.0), True, id="it is a window"),
        pytest.param(bucket(300.0, boot="boot-0"), bucket(300.0), True, id="it is of another boot"),
    ],
)
def test_what_others_hear_of_a_limit(before: BucketRow | None, after: BucketRow, news: bool) -> None:
    """What they would go wrong without, and not every call."""
    assert is_news(before, after) is news


def test_what_is_left_of_a_limit_now() -> None:
    """With what came back since it was written, and nothing while a provider says so."""
    heard = told(bucket(100.0), at(boottime=4.0))
    assert heard == ToldLimit(capacity=300.0, rate=5.0, window=None, resets_in=0.0, left=120.0)
    held = told(bucket(100.0, held_until=NOW + 5.0), at(boottime=4.0))
    assert held is not None
    assert held.left == 0.0
    window = told(windowed(3.0), at(boottime=25.0))
    assert window == ToldLimit(capacity=300.0, rate=5.0, window=60.0, resets_in=55.0, left=300.0)


@pytest.mark.parametrize("row", [bucket(100.0, boot="boot-0"), bucket(100.0, at=NOW + 1.0)])
def test_of_another_boot_nothing_is_heard(row: BucketRow) -> None:
    """Its instants are of another clock."""
    assert told(row, WRITTEN) is None


def test_tokens_may_be_leased_in_parts() -> None:
    """Only what is asked for in whole numbers is granted in whole numbers."""
    assert lease_tokens(bucket(2.5), ask(want=1.5, least=1.5), WRITTEN)[1].granted == 1.5
    assert lease_tokens(bucket(10.0), ask(want=6.0), WRITTEN)[1].granted == 2.0


# The operator's word -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("known", "new", "here", "accepted"),
    [
        pytest.param(at(), at(boottime=1, wall=-50), at(), True, id="same boot: later, though the wall went back"),
        pytest.param(at(), at(boottime=-1, wall=50), at(), False, id="same boot: earlier, though the wall went on"),
        pytest.param(at(), at(), at(), False, id="the same instant"),
        pytest.param(
            at("boot-0", 500, 50), at(wall=-50), at(), True, id="this boot after another one, in spite of the wall"
        ),
        pytest.param(at(wall=-50), at("boot-0", 500, 50), at(), False, id="another boot before this one"),
        pytest.param(at("boot-0"), at("boot-1", wall=1), at("boot-2"), True, id="two boots before this one: the wall"),
        pytest.param(at("boot-0", wall=1), at("boot-1"), at("boot-2"), False, id="two boots before this one: earlier"),
        pytest.param(at("", -5, 1), at("", -9, 2), at(""), True, id="no boots: the wall"),
        pytest.param(at(boottime=math.nan), at(), at(), False, id="what somebody wrote by hand is not earlier"),
    ],
)
def test_the_later_word_of_the_operator_counts(
    known: ClockReading, new: ClockReading, here: ClockReading, accepted: bool
) -> None:
    """Unless the new one is said in knowledge of the old one: then it counts whatever the clocks say."""
    there = OperatorRow(target="a/m", word="isolate", by="ada", why="", at=known, gen=7)
    said = replace(there, word="enable", at=new, gen=3)
    assert accepts_word(there, said, here) is accepted
    assert accepts_word(there, replace(said, gen=7), here)
    assert accepts_word(None, said, here)


def test_clocks_of_two_machines_may_differ_a_little() -> None:
    """A machine that is behind another goes on with its row, and gains nothing by it; a row of the future is none."""
    ask = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=50, least=1)
    row, _ = lease_tokens(None, ask, at(boottime=0.2))
    first = row.level
    row, _ = lease_tokens(row, replace(ask, want=0.0), at())
    assert (row.level, row.at) == (first, at(boottime=0.2).ticks)
    assert told(row, at()) == told(row, at(boottime=0.2))
    assert told(row, at(boottime=-1)) is None


def test_slots_leased_by_a_clock_that_is_ahead_are_held() -> None:
    """Else two machines would have the same slots."""
    row, grant = lease_slots((), SlotAsk(key="a", holder="p", slots=2, keeps=0, least=2, want=2), at(boottime=0.2))
    assert grant.held == 2
    assert row.alive(at())
    assert not row.alive(at(boottime=-1))
