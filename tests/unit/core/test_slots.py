"""The rule of shared slots: never more leases than slots, some always free of idle ones, none lost."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.shared_state import ClockReading, SlotAsk, SlotGrant, SlotRow, lease_slots
from smart_model_router.domain.shared_state.slots import SLOT_SECONDS, lot_of, slots_alone

HERE = ClockReading("boot", 1_000.0, 1_700_000_000.0)


def row(holder: str, held: int, *, until: float = SLOT_SECONDS, waits: float = 0.0, boot: str = "boot") -> SlotRow:
    """A lease that ends `until` seconds from now, of a process that has waited for `waits` seconds."""
    since = HERE.ticks - waits if waits else 0.0
    return SlotRow(key="a", holder=holder, boot=boot, held=held, until=HERE.ticks + until, waits=since)


def asked(slots: int, in_flight: int, least: int, want: int | None = None) -> SlotAsk:
    """The question of the process `me`."""
    want = least if want is None else want
    return SlotAsk(key="a", holder="me", slots=slots, in_flight=in_flight, least=least, want=want)


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
    assert grant == SlotGrant(held, keeps=slots - -(-slots // 4), others_wait=False)
    assert (made.held, made.until, made.waiting(HERE)) == (held, HERE.ticks + SLOT_SECONDS, False)


def test_a_process_that_is_refused_counts_as_waiting_for_half_a_second() -> None:
    """It asks again before."""
    made, grant = lease_slots([row("other", 3)], asked(4, 0, 2), HERE)
    assert (grant.held, made.waits) == (1, HERE.ticks)
    waiting = [made.waiting(replace(HERE, boottime=HERE.boottime + seconds)) for seconds in (0.0, 0.5, 0.51, 60.0)]
    assert waiting == [True, True, False, False]


def test_a_place_in_the_queue_is_kept_until_a_slot_is_given() -> None:
    """However late it asks again."""
    late = row("me", 0, until=SLOT_SECONDS - 2.0, waits=4.0)
    full = row("other", 4)
    assert lease_slots([late, full], asked(4, 0, 1), HERE)[0].waits == HERE.ticks - 4.0
    assert lease_slots([late, replace(full, held=3)], asked(4, 0, 2), HERE)[0].waits == HERE.ticks
    assert lease_slots([late, replace(full, held=3)], asked(4, 0, 1), HERE)[0].waits == 0.0


@pytest.mark.parametrize(("mine", "held"), [(0.1, 0), (0.3, 1)])
def test_the_slots_left_over_go_to_the_process_that_waited_longest(mine: float, held: int) -> None:
    """Three processes on two slots: nothing is an equal part of any."""
    rows = [row("busy", 1), row("other", 0, waits=0.2), row("me", 0, waits=mine)]
    assert lease_slots(rows, asked(2, 0, 1), HERE)[1].held == held


def test_what_others_are_owed_is_left_to_them() -> None:
    """The slots of a process that has less than its part and waits, but no more than those."""
    rows = [row("other", 1, waits=0.1), row("idle", 0)]
    assert lease_slots(rows, asked(9, 3, 9), HERE)[1].held == 6


def test_while_others_wait_a_process_has_an_equal_part_at_most() -> None:
    """No call under way loses its slot."""
    waiting = row("other", 0, waits=0.1)
    assert lease_slots([waiting], asked(4, 1, 4, 4), HERE)[1] == SlotGrant(2, keeps=0, others_wait=True)
    assert lease_slots([waiting], asked(4, 3, 4, 4), HERE)[1] == SlotGrant(3, keeps=0, others_wait=True)
    assert lease_slots([waiting], asked(4, 1, 1, 3), HERE)[1] == SlotGrant(1, keeps=0, others_wait=True)


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
    assert lease_slots([dead], asked(4, 0, 4), HERE)[1] == SlotGrant(4, keeps=3, others_wait=False)


@given(
    st.integers(1, 50),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60)), max_size=40),
)
def test_never_more_are_leased_than_there_are(slots: int, questions: list[tuple[int, int, int, int]]) -> None:
    """Calls in flight without a slot excepted: a process that had no answer let them go on."""
    rows: dict[str, SlotRow] = {}
    for process, *numbers in questions:
        holder = f"p{process}"
        before = rows[holder].held if holder in rows else 0
        in_flight, least, want = sorted(min(slots, number) for number in numbers)
        in_flight = min(in_flight, before)
        ask = SlotAsk(key="a", holder=holder, slots=slots, in_flight=in_flight, least=least, want=want)
        rows[holder], grant = lease_slots(rows.values(), ask, HERE)
        assert in_flight <= grant.held <= max(least, want)
        assert sum(one.held for one in rows.values()) <= slots
