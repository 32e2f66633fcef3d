"""A written date is the day that it names, or none."""

from __future__ import annotations

import pytest

from smart_model_router_research.deep.days import Grain, written_day

DAYS = {
    "2024-03-05": "2024-03-05",
    "2024-03-05T10:00:00": "2024-03-05",
    "2024-03-05T23:30:00-05:00": "2024-03-06",
    "2024-03-05 23:30:00 -0500": "2024-03-06",
    "2024-03-05 10:00:00 UTC": "2024-03-05",
    "20240305": "2024-03-05",
    "2024/3/5": "2024-03-05",
    "2024.03.05 at noon": "2024-03-05",
    "05.03.2024": "2024-03-05",
    "23/04/2024": "2024-04-23",
    "04/23/2024": "2024-04-23",
    "04/04/2024": "2024-04-04",
    "5 March 2024": "2024-03-05",
    "March 5th, 2024": "2024-03-05",
    "Tuesday, March 5, 2024 at 5pm": "2024-03-05",
    "5th of March 2024": "2024-03-05",
    "5. März 2024": "2024-03-05",
    "1er janvier 2023": "2023-01-01",
    "3 de marzo de 2022": "2022-03-03",
    "Tue, 05 Mar 2024 23:30:00 -0500": "2024-03-06",
}
VAGUE = {
    "2024": ("2024-07-01", Grain.YEAR),
    "2024-03": ("2024-03-15", Grain.MONTH),
    "Mar 2024": ("2024-03-15", Grain.MONTH),
    "March, 2024": ("2024-03-15", Grain.MONTH),
}
NO_DAYS = (
    "0001-01-01",
    "0000-01-01",
    "0000",
    "99999",
    "99999-01-01",
    "2024-02-30",
    "2024-13-01",
    "31.02.2024",
    "February 31, 2024",
    "1970-01-01T00:00:00Z",
    "1969-12-31T19:00:00",
    "0999-01-01",
    "03/04/2024",
    "3 days ago",
    "",
    "\0",
    "9" * 5_000,
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "Mon, 99 Foo 2024 25:61:61 +9999",
)


@pytest.mark.parametrize(("written", "day"), DAYS.items())
def test_a_day_is_read_in_the_forms_that_pages_use(written: str, day: str) -> None:
    """A date in digits or words is its day; a time with an offset is its day in UTC, a naive one is in UTC."""
    found = written_day(written)

    assert found is not None
    assert (found.day.isoformat(), found.grain) == (day, Grain.DAY)


@pytest.mark.parametrize(("written", "wanted"), VAGUE.items())
def test_a_month_is_its_15th_and_a_year_its_1_july(written: str, wanted: tuple[str, Grain]) -> None:
    """A date without a day stands in the middle of what it names, and says so."""
    found = written_day(written)

    assert found is not None
    assert (found.day.isoformat(), found.grain) == wanted


@pytest.mark.parametrize("written", NO_DAYS)
def test_what_names_no_day_is_none(written: str) -> None:
    """Days that cannot be, placeholders of programs, and days that are two in two countries are unknown."""
    assert written_day(written) is None


@pytest.mark.parametrize("value", [True, None, [], {}, float("nan"), float("inf"), -1e300, 0])
def test_a_value_of_another_type_is_none(value: object) -> None:
    """A field of a page may hold anything."""
    assert written_day(value) is None


def test_a_number_is_seconds_or_milliseconds() -> None:
    """Epochs are read in both units."""
    assert written_day(1_709_600_000) == written_day(1_709_600_000_000) == written_day("2024-03-05")
