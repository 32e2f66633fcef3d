"""The rule of shared slots: never more leases than slots, some always free of idle ones, none lost."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.shared_state import ClockReading, SlotAsk, SlotGrant, SlotRow, lease_slots
from smart_model_router.domain.shared_state.slots import (
    SLOT_SECONDS,
    WAITING_SECONDS,
    kept_slots,
    lot_of,
    slots_alone,
)

HERE = ClockReading("boot", 1_000.0, 1_700_000_000.0)


def row(holder: str, held: int, *, until: float = SLOT_SECONDS, waits: float = 0.0, boot: str = "boot") -> SlotRow:
    """A lease that ends `until` seconds from now, of a process that has waited for `waits` seconds."""
    since = HERE.ticks - waits if waits else 0.0
    return SlotRow(key="a", holder=holder, boot=boot, held=held, until=HERE.ticks + until, waits=since)


def asked(slots: int, keeps: int, least: int, want: int | None = None) -> SlotAsk:
    """The question of the process `me`."""
    want = least if want is None else want
    return SlotAsk(key="a", holder="me", slots=slots, keeps=keeps, least=least, want=want)


def granted(held: int, idle: int, most: int, *, others_wait: bool = False) -> SlotGrant:
    """An answer."""
    return SlotGrant(held, idle, most, others_wait)


@pytest.mark.parametrize(("slots", "lot"), [(1, 1), (20, 1), (39, 1), (40, 2), (100, 5)])
def test_slots_are_leased_in_lots_of_five_percent(slots: int, lot: int) -> None:
    """At least one."""
    assert lot_of(slots) == lot


@pytest.mark.parametrize(
    ("slots", "least", "want", "held"),
    [(8, 0, 8, 6), (8, 7, 8, 7), (8, 8, 8, 8), (1, 0, 1, 0), (1, 1, 1, 1), (2, 1, 2, 1), (3, 0, 3, 2)],
)
def test_a_quarter_stays_free_of_idle_leases(slots: int, least: int, want: int, held: int) -> None:
    """What is needed is leased all the same."""
    made, grant = lease_slots([], asked(slots, 0, least, want), HERE)
    assert grant == granted(held, slots - -(-slots // 4), slots)
    assert (made.held, made.until, made.waiting(HERE)) == (held, HERE.ticks + SLOT_SECONDS, False)


def test_a_process_that_is_refused_counts_as_waiting_for_some_seconds() -> None:
    """It writes again before."""
    made, grant = lease_slots([row("other", 3)], asked(4, 0, 2), HERE)
    assert (grant.held, made.waits) == (1, HERE.ticks)
    instants = (0.0, WAITING_SECONDS, WAITING_SECONDS + 0.01, 60.0)
    waiting = [made.waiting(replace(HERE, boottime=HERE.boottime + seconds)) for seconds in instants]
    assert waiting == [True, True, False, False]


def test_a_place_in_the_queue_is_kept_until_a_slot_is_given_or_given_back() -> None:
    """However late it writes again."""
    late = row("me", 1, until=SLOT_SECONDS - WAITING_SECONDS - 1.0, waits=4.0)
    full = row("other", 3)
    assert lease_slots([late, full], asked(4, 1, 2), HERE)[0].waits == HERE.ticks - 4.0
    assert lease_slots([late, replace(full, held=2)], asked(4, 1, 3), HERE)[0].waits == HERE.ticks
    assert lease_slots([late, replace(full, held=2)], asked(4, 1, 2), HERE)[0].waits == 0.0
    assert lease_slots([late, row("other", 4)], asked(4, 0, 2), HERE)[0].waits == HERE.ticks


@pytest.mark.parametrize(("mine", "held"), [(0.1, 0), (0.3, 1)])
def test_with_less_slots_than_processes_the_longest_waiting_one_is_next(mine: float, held: int) -> None:
    """Three processes on two slots: each holder gives its slot back as its call ends."""
    rows = [row("busy", 1), row("other", 0, waits=0.2), row("me", 0, waits=mine)]
    assert lease_slots(rows, asked(2, 0, 1), HERE)[1] == granted(held, 0, 0, others_wait=True)


def test_what_others_lack_of_their_part_is_left_to_them() -> None:
    """It holds one of three and waits; the process that is at its part gets the rest."""
    rows = [row("other", 1, waits=0.1), row("third", 2)]
    assert lease_slots(rows, asked(9, 3, 9), HERE)[1] == granted(4, 0, 3, others_wait=True)


def test_a_part_is_filled_before_anything_beyond_it() -> None:
    """Also for a process that waits for less long; what it needs beyond its part, it gets from what nobody lacks."""
    rows = [row("other", 0, waits=9.0)]
    assert lease_slots(rows, asked(4, 0, 4), HERE)[1] == granted(2, 0, 2, others_wait=True)
    assert lease_slots(rows, asked(4, 0, 1, 4), HERE)[1] == granted(1, 0, 2, others_wait=True)


def test_no_process_has_to_give_up_more_than_others_lack() -> None:
    """While one waits that has its part already, calls go on with the slots they have, and idle ones are given back."""
    waiting = row("other", 2, waits=0.1)
    assert lease_slots([waiting], asked(4, 2, 2, 4), HERE)[1] == granted(2, 0, 4, others_wait=True)
    assert lease_slots([replace(waiting, held=1)], asked(4, 3, 4), HERE)[1] == granted(3, 0, 2, others_wait=True)


def test_more_leases_than_slots_shrink_to_equal_parts() -> None:
    """After the store was out of reach: nothing is leased, and whoever has more than its part gives back."""
    assert lease_slots([row("other", 4)], asked(8, 8, 8), HERE)[1] == granted(8, 2, 4, others_wait=True)


def test_a_process_that_waits_no_more_has_no_part() -> None:
    """It wrote nothing for some seconds, and holds nothing."""
    gone = row("gone", 0, until=SLOT_SECONDS - WAITING_SECONDS - 1.0, waits=9.0)
    assert lease_slots([gone, row("other", 1, waits=0.1)], asked(4, 3, 4), HERE)[1].most == 2


@pytest.mark.parametrize(
    ("grant", "held", "in_use", "needed", "recent", "kept"),
    [
        (granted(4, 3, 4), 4, 1, 1, 2, 2),  # as many as were in use lately
        (granted(4, 3, 4), 4, 1, 1, 4, 3),  # a quarter is left free
        (granted(4, 3, 4), 4, 1, 4, 4, 4),
        (granted(4, 0, 4, others_wait=True), 4, 1, 2, 4, 2),  # no idle ones
        (granted(4, 0, 2, others_wait=True), 4, 1, 4, 4, 2),  # its part
        (granted(4, 0, 2, others_wait=True), 4, 3, 4, 4, 3),  # no slot in use
        (granted(4, 0, 2, others_wait=True), 1, 1, 4, 4, 1),  # never more than it holds
    ],
)
def test_a_process_keeps_what_the_rule_leaves_it(
    grant: SlotGrant, held: int, in_use: int, needed: int, recent: int, kept: int
) -> None:
    """The slots in use, those needed within its part, and idle ones while no other process waits."""
    assert kept_slots(grant, held, in_use=in_use, needed=needed, recent=recent) == kept


@pytest.mark.parametrize(
    ("slots", "held", "others", "alone"), [(8, 0, 0, 8), (8, 0, 2, 3), (8, 6, 2, 6), (2, 0, 7, 1), (1, 0, 0, 1)]
)
def test_a_process_alone_has_its_part_of_the_slots(slots: int, held: int, others: int, alone: int) -> None:
    """No less than it held, and never none."""
    assert slots_alone(slots, held, others) == alone


@pytest.mark.parametrize(
    "dead", [row("d", 4, until=0.0), row("d", 4, boot="before"), row("d", 4, until=SLOT_SECONDS + 1)]
)
def test_a_lease_that_is_over_binds_nothing(dead: SlotRow) -> None:
    """It ended, it is of an earlier boot, or no process can have made it."""
    assert lease_slots([dead], asked(4, 0, 4), HERE)[1] == granted(4, 3, 4)


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)), max_size=40),
)
def test_never_more_are_leased_than_there_are(slots: int, questions: list[tuple[int, int, int, int]]) -> None:
    """Whatever each process gives back, needs and wants."""
    rows: dict[str, SlotRow] = {}
    for process, left, least, want in questions:
        holder = f"p{process}"
        keeps = min(left, rows[holder].held if holder in rows else 0)
        ask = SlotAsk(key="a", holder=holder, slots=slots, keeps=keeps, least=min(slots, least), want=min(slots, want))
        rows[holder], grant = lease_slots(rows.values(), ask, HERE)
        assert keeps <= grant.held <= max(keeps, ask.least, ask.want)
        assert sum(one.held for one in rows.values()) <= slots


@given(st.integers(1, 8), st.integers(2, 6), st.randoms(use_true_random=False))
def test_each_process_that_waits_has_its_turn(slots: int, processes: int, dice: random.Random) -> None:
    """All want every slot, and calls end in any order: over twenty rounds none has less than a third of its part."""
    rows: dict[str, SlotRow] = {}
    served = dict.fromkeys((f"p{number}" for number in range(processes)), 0)
    instants = count(start=HERE.boottime, step=1e-3)
    for _ in range(20 * processes):
        order = list(served)
        dice.shuffle(order)
        for holder, boottime in zip(order, instants, strict=False):
            here = replace(HERE, boottime=boottime)
            held = rows[holder].held if holder in rows else 0
            served[holder] += held
            keeps = kept_slots(_rule(rows, holder, slots, here), held, in_use=0, needed=slots, recent=slots)
            ask = SlotAsk(key="a", holder=holder, slots=slots, keeps=keeps, least=slots, want=slots)
            rows[holder], _ = lease_slots(rows.values(), ask, here)
    assert min(served.values()) >= sum(served.values()) / processes / 3


def _rule(rows: dict[str, SlotRow], holder: str, slots: int, here: ClockReading) -> SlotGrant:
    """What a process hears from the rows."""
    held = rows[holder].held if holder in rows else 0
    ask = SlotAsk(key="a", holder=holder, slots=slots, keeps=held, least=held, want=held)
    return lease_slots(rows.values(), ask, here)[1]
