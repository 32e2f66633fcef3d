"""The tests of claims are tested: each way to break the checker makes one of them fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests import claim_breaks as breaks
from tests.unit.research.deep import test_checking as claims

BOUNDS = claims.test_what_bounds_may_not_go
MOVES = claims.test_edits_do_not_change_what_is_said
NOTICED: list[tuple[breaks.Break, Callable[..., None], tuple[str, ...]]] = [
    (breaks.any_part_may_go, BOUNDS, ("All users (other than root) can log in.", "All users can log in.")),
    (breaks.any_number_will_do, BOUNDS, ("The term is 365 days.", "The term is 370 days.")),
    (breaks.order_is_free, MOVES, ("The server fails to start.", "To start, the server fails.")),
    (
        breaks.an_adverbial_is_of_any_verb,
        BOUNDS,
        ("In 1990, the firm tried to close the plant.", "The firm tried to close the plant in 1990."),
    ),
    (breaks.also_tells_nothing, BOUNDS, ("Users who also pay are kept.", "Users who pay are kept.")),
    (
        breaks.everything_is_about_its_heading,
        MOVES,
        ("The timeout limits the wait. The default is 5.", "The default of max_size is 5."),
    ),
    (
        breaks.no_line_turns_its_list,
        claims.test_what_turns_a_statement_is_never_left_out,
        ("Closing a file twice.", "closing a file twice", ""),
    ),
    (breaks.no_heading_turns_its_text, BOUNDS, ("### Removed\n\nThe log is kept.", "The log is kept.")),
    (breaks.quotations_are_said, BOUNDS, ("> The server is down.", "The server is down.")),
    (
        breaks.denials_are_overlooked,
        BOUNDS,
        ("The dam is safe. This statement was retracted in 2021.", "The dam is safe."),
    ),
    (
        breaks.pronouns_are_of_anything,
        BOUNDS,
        ("Ice made the lake. The tower was built in 1900. It is 38 m high.", "Ice made the lake. It is 38 m high."),
    ),
    (breaks.lists_are_references, BOUNDS, ("The list is [1, 2].", "The list is [3].")),
    (breaks.sentences_end_in_parentheses, BOUNDS, ("The peak (elev. 2,829 m) is old.", "2,829 m) is old.")),
]


@pytest.mark.parametrize(("broken", "noticing", "row"), NOTICED, ids=[each.__name__ for each, _, _ in NOTICED])
def test_what_is_broken_is_noticed(
    broken: breaks.Break, noticing: Callable[..., None], row: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of a test of claims that holds fails when the checker is broken."""
    noticing(*row)
    broken(monkeypatch)

    with pytest.raises(AssertionError):
        noticing(*row)


def test_every_way_to_break_is_tried() -> None:
    """Each function of claim_breaks.py is in the list."""
    ways = {each for each in vars(breaks).values() if getattr(each, "__module__", "") == breaks.__name__}
    assert ways - {breaks.Break} == {each for each, _, _ in NOTICED}
