"""What every part of scoring stands on: explanations, notes, times, options, and the package itself."""

from __future__ import annotations

import math
import pickle
import tomllib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

import smart_model_router_scoring
from smart_model_router_scoring.decay import age_days, epoch_seconds, is_future
from smart_model_router_scoring.explain import OPERATIONS, Term, combined, given, sigmoid
from smart_model_router_scoring.options import (
    ConfigError,
    Note,
    Notes,
    check_choice,
    check_count,
    check_number,
    check_positive,
    is_number,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("operation", "values", "result"),
    [
        ("sum", [1, 2, 3.5], 6.5),
        ("product", [2, 3, 4], 24),
        ("ratio", [1, 4], 0.25),
        ("power", [2, 3], 8),
        ("max", [1, 3, 2], 3),
        ("min", [3, 1, 2], 1),
        ("sigmoid", [0], 0.5),
    ],
)
def test_an_operation_makes_a_number_of_its_parts(operation: str, values: list[float], result: float) -> None:
    """Each of the table, by example."""
    term = combined("x", operation, [given(str(value), value) for value in values])
    assert (term.value, term.recompose()) == (result, result)


def test_every_operation_has_an_example() -> None:
    """The table above is the table of the code."""
    assert set(OPERATIONS) == {"sum", "product", "ratio", "power", "max", "min", "sigmoid"}


def test_recomposing_starts_at_the_leaves() -> None:
    """A wrong number in the middle is found out."""
    leaf = given("leaf", 2.0)
    wrong = Term("middle", 99.0, "product", (leaf, given("other", 3.0)))
    assert Term("top", 100.0, "sum", (wrong, given("one", 1.0))).recompose() == 7.0


def test_a_term_is_found_by_name() -> None:
    """The first from the top; the term itself counts; None when there is none."""
    tree = combined("a", "sum", [combined("b", "sum", [given("c", 1.0)]), given("c", 2.0)])
    assert tree.find("a") is tree
    assert tree.find("c") == given("c", 1.0)
    assert tree.find("z") is None


def test_a_given_term_has_no_operation_and_no_parts() -> None:
    """It is where the computation starts; what else is to be known stands beside it."""
    assert given("c", 1.0, rank=2) == Term("c", 1.0, "", (), {"rank": 2})


def test_a_term_reads_as_indented_text() -> None:
    """Name, number, how it was made, what else is to be known."""
    tree = combined("a", "sum", [given("b", 0.123456789, rank=3), given("c", 1)], unit="points")
    assert list(tree.lines()) == ["a = 1.12346 (sum; unit: points)", "  b = 0.123457 (rank: 3)", "  c = 1"]


@pytest.mark.parametrize(
    ("x", "y"), [(0, 0.5), (-1e308, 0.0), (1e308, 1.0), (math.log(3), 0.75), (-math.log(3), 0.25), (-745, 5e-324)]
)
def test_the_sigmoid_overflows_nowhere(x: float, y: float) -> None:
    """Both branches, both ends."""
    assert sigmoid(x) == pytest.approx(y, rel=1e-15)


def test_notes_are_counted_all_and_kept_to_a_limit() -> None:
    """Bad data cannot fill the memory."""
    notes = Notes(keep=2)
    for number in range(5):
        notes.add("odd" if number % 2 else "even", number, number * 1.5)
    notes.add("plain")
    assert notes.kept == (Note("even", "0", "0.0"), Note("odd", "1", "1.5"))
    assert notes.counts == {"even": 3, "odd": 2, "plain": 1}
    with pytest.raises(TypeError):
        notes.counts["even"] = 0  # type: ignore[index]


def test_a_hundred_notes_are_kept_unless_told() -> None:
    """The limit of a collector that nobody set."""
    notes = Notes()
    for _ in range(101):
        notes.add("x")
    assert (len(notes.kept), notes.counts["x"]) == (100, 101)
    assert notes.kept[0] == Note("x", "", "")


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        (0, 0.0),
        (-1.5, -1.5),
        ("1970-01-02", 86_400.0),
        ("1970-01-01T01:00:00+01:00", 0.0),
        (" 1970-01-01T00:00:01Z\n", 1.0),
        (datetime(1970, 1, 1, 0, 0, 2), 2.0),  # noqa: DTZ001 - naive on purpose
        (datetime(1970, 1, 1, 5, tzinfo=timezone(timedelta(hours=5))), 0.0),
        (datetime.max.replace(tzinfo=UTC), 253_402_300_799.999999),
    ],
)
def test_a_time_in_any_form_is_seconds(time: object, seconds: float) -> None:
    """Numbers, ISO 8601 text and datetimes; naive ones are UTC."""
    assert epoch_seconds(time) == seconds


@pytest.mark.parametrize(
    "time", [None, "", "yesterday", "2026-13-01", math.nan, math.inf, True, 10**400, [], b"2026-01-01"]
)
def test_what_is_no_time_is_none(time: object) -> None:
    """And has no age, and is not of the future."""
    assert epoch_seconds(time) is None
    assert age_days(time, NOW) is None
    assert not is_future(time, NOW)


def test_an_age_is_in_days_and_never_below_zero() -> None:
    """A time to come counts as now."""
    assert age_days(NOW - timedelta(hours=36), NOW) == 1.5
    assert age_days(NOW + timedelta(hours=36), NOW) == 0.0
    assert age_days(NOW - timedelta(days=1), NOW.replace(tzinfo=None)) == 1.0
    assert [is_future(NOW + timedelta(seconds=step), NOW) for step in (-1, 0, 1)] == [False, False, True]


@pytest.mark.parametrize("value", [0, 1.5, -3, 1e308])
def test_numbers_are_numbers(value: object) -> None:
    """Finite ints and floats."""
    assert is_number(value)


@pytest.mark.parametrize("value", [True, False, None, "1", math.nan, math.inf, -math.inf, 10**400, 1j])
def test_what_is_no_number_is_not(value: object) -> None:
    """Not a bool either, and not an int too large for a float."""
    assert not is_number(value)


def test_checks_name_field_value_and_range() -> None:
    """The bounds belong to the range; the message says it in words."""
    check_number("n", 0, 0, 1)
    check_number("n", 1, 0, 1)
    check_positive("p", 1e-9)
    check_count("c", 1, 1, 3)
    check_count("c", 3, 1, 3)
    check_choice("o", "a", ("a", "b"))
    told = []
    refusals: list[Callable[[], None]] = [
        lambda: check_number("n", 1.5, 0, 1),
        lambda: check_number("n", -1, 0),
        lambda: check_positive("p", 0),
        lambda: check_count("c", 0, 1, 3),
        lambda: check_count("c", 4, 1, 3),
        lambda: check_count("c", 0, 1),
        lambda: check_count("c", 2.0, 1),
        lambda: check_count("c", True, 1),
        lambda: check_choice("o", "c", ("a", "b")),
    ]
    for check in refusals:
        with pytest.raises(ConfigError) as refused:
            check()
        told.append(str(refused.value))
    assert told == [
        "n: 1.5 - a number from 0 to 1 is needed",
        "n: -1 - a number of at least 0 is needed",
        "p: 0 - a number above 0 is needed",
        "c: 0 - a whole number from 1 to 3 is needed",
        "c: 4 - a whole number from 1 to 3 is needed",
        "c: 0 - a whole number of at least 1 is needed",
        "c: 2.0 - a whole number of at least 1 is needed",
        "c: True - a whole number of at least 1 is needed",
        "o: 'c' - one of a, b is needed",
    ]


def test_a_config_error_travels() -> None:
    """It is a ValueError with its facts, pickled and back."""
    error = pickle.loads(pickle.dumps(ConfigError("k", -1, "more")))
    assert isinstance(error, ConfigError)
    assert issubclass(ConfigError, ValueError)
    assert (error.field, error.value, error.allowed) == error.args == ("k", -1, "more")


def test_every_module_but_retrieval_is_held_to_be_pure() -> None:
    """The import contract names every module and sub-package."""
    package = Path(smart_model_router_scoring.__file__).parent
    found = {path.stem for path in package.iterdir() if path.suffix == ".py" or (path / "__init__.py").is_file()}
    settings = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))
    [contract] = [one for one in settings["tool"]["importlinter"]["contracts"] if one["id"] == "scoring"]
    named = {module.rpartition(".")[2] for module in contract["source_modules"]}
    assert named == found - {"__init__", "retrieval"}
