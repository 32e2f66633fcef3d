"""Durations, dates and the environment's proxies, as the world writes them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_providers.signals.families import seconds, until

DATE = "Sat, 21 Nov 2026 20:00:00 GMT"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", 1.0),
        (" 1.5 ", 1.5),
        (".5", 0.5),
        ("7.66s", 7.66),
        ("120ms", 0.12),
        ("6m0s", 360.0),
        ("8.64s", 8.64),
        ("1m26.4s", 86.4),
        ("1h2m3s", 3723.0),
        ("1m", 60.0),
        ("0", 0.0),
    ],
)
def test_durations_are_read(text: str, expected: float) -> None:
    """Bare seconds and Go durations; `1m` is a minute, `1ms` is not."""
    assert seconds(text) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text", ["", " ", "-5", "nan", "inf", "1e400", "1e3", "soon", "1x", "1s2", "0x10", "1_0", "\u0661", "9" * 99, "+1"]
)
def test_nonsense_is_no_duration(text: str) -> None:
    """Negatives, infinities, exponents, foreign digits and words are no durations."""
    assert seconds(text) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Sat, 21 Nov 2026 20:00:05 GMT", 5.0),
        ("2026-11-21T20:01:00Z", 60.0),
        ("2026-11-21T21:00:30+01:00", 30.0),
        ("2026-11-21T20:00:01", 1.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_dates_are_relative_to_the_response(text: str, expected: float) -> None:
    """HTTP and RFC 3339 dates count from the response's own Date; a past one is now."""
    assert until(text, DATE) == expected


@pytest.mark.parametrize(("text", "date"), [("tomorrow", DATE), ("2026-11-21T20:01:00Z", None), ("2026-11-21", "?")])
def test_a_date_needs_another_one(text: str, date: str | None) -> None:
    """Without two readable dates there is no duration."""
    assert until(text, date) is None


@given(text=st.text(max_size=70), date=st.none() | st.text(max_size=40) | st.just(DATE))
def test_no_text_makes_it_raise(text: str, date: str | None) -> None:
    """Any text is a finite number of seconds >= 0, or nothing."""
    found = [value for value in (seconds(text), until(text, date)) if value is not None]
    assert all(math.isfinite(value) and value >= 0 for value in found)
