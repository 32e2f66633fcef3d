"""Rows as texts on a server: the same ones come back, and whatever else is there is no row and no fault."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.shared_state import (
    BreakerRow,
    BucketRow,
    BudgetRow,
    ClockReading,
    Deadline,
    MemberRow,
    OperatorRow,
    RestRow,
)
from smart_model_router_stats.server_rows import AttemptTables, KnownRows, is_newer, row_id, row_of, text_of

HERE = ClockReading("1-a", 1_000.1, 1_700_000_000.3)
UNTIL = Deadline.after(30.7, HERE)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
RATES = st.floats(min_value=1e-9, max_value=1e9)
ROWS: dict[str, Any] = {
    "breaker": BreakerRow(owner="a/m", kind="whole", provider="a", state="open", until=UNTIL, step=2, gen=7),
    "rest": RestRow(owner="a/m", reason="wait", until=UNTIL, cause=FailureClass.RATE_LIMITED, hinted=True, gen=3),
    "budget": BudgetRow(key="guest cafe0123 usd", used=7, reserved=2, until=UNTIL),
    "operator": OperatorRow(target="a/m", word="isolate", by="ä\tb", why='"quoted"\n', at=HERE, gen=1),
    "member": MemberRow(holder="h", machine="m", version="1", pid=7, at=HERE),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=14) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=30,
)


@pytest.mark.parametrize("table", ROWS)
def test_a_row_comes_back_as_it_was(table: str) -> None:
    """Every field, to the last bit of its numbers."""
    assert row_of(table, text_of(table, ROWS[table])) == ROWS[table]


@given(NUMBERS, NUMBERS, RATES, st.none() | RATES)
def test_a_limit_comes_back_to_the_last_bit(at: float, level: float, rate: float, window: float | None) -> None:
    """Its level is what all machines calculate with."""
    row = BucketRow(
        key="k", boot="b", at=at, level=level, capacity=60.0, rate=rate, window=window, resets_at=at, held_until=level
    )
    assert row_of("limit", text_of("limit", row)) == row


@given(st.sampled_from(["breaker", "rest", "limit", "budget", "operator", "slots", "member"]), st.text() | JSON)
def test_whatever_is_there_is_a_row_or_none(table: str, text: object) -> None:
    """Also a text of the right version with values of other types."""
    for written in (str(text), json.dumps(text), json.dumps([1, text])):
        row_of(table, written)
        assert is_newer(written) in (True, False)


def test_a_row_of_a_later_version_is_not_read_and_not_replaced() -> None:
    """A process that does not know what it means leaves it alone."""
    known = KnownRows()
    known.take("1-a", 0, 1, [(row_id("breaker", "a/m", "whole"), 1, '[2,["of later"]]')], full=True)
    tables = AttemptTables(known)
    assert tables.breaker(("a/m", "whole")) is None
    tables.put_breaker(ROWS["breaker"])
    assert tables.writes(HERE) == []


def test_an_answer_that_was_overtaken_changes_nothing() -> None:
    """Answers on two connections come in any order."""
    known, name = KnownRows(), row_id("operator", "a/m")
    known.take("1-a", 2, 5, [(name, 5, text_of("operator", ROWS["operator"]))], full=True)
    known.take("1-a", 1, 3, [(name, 3, "")], full=False)
    known.take("1-a", 1, 3, [], full=True)
    assert known.get(name).row == ROWS["operator"]
    assert (known.news, known.last) == (2, 5)


def test_a_new_epoch_forgets_the_rows_of_the_one_before() -> None:
    """The server may have lost some of them."""
    known, name = KnownRows(), row_id("operator", "a/m")
    known.take("1-a", 2, 5, [(name, 5, text_of("operator", ROWS["operator"]))], full=True)
    known.take("2-b", 0, 0, [], full=True)
    assert known.get(name).row is None
    assert (known.epoch, known.news, known.last) == ("2-b", 0, 0)


def test_an_answer_to_a_question_of_the_epoch_before_changes_nothing() -> None:
    """It has what changed since a revision of that epoch, which is not everything."""
    known, name = KnownRows(), row_id("operator", "a/m")
    known.take("2-b", 2, 5, [(name, 5, text_of("operator", ROWS["operator"]))], full=True)
    known.take("1-a", 9, 9, [], full=False)
    assert known.get(name).row == ROWS["operator"]
    assert (known.epoch, known.news, known.last) == ("2-b", 2, 5)


def test_rows_of_tables_that_are_not_known_are_passed_over() -> None:
    """A later version may have more of them."""
    known = KnownRows()
    known.take("1-a", 0, 1, [("weather\tm", 1, "[1,[]]")], full=True)
    assert known.last == 1
