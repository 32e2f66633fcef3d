"""How long an un-hinted rate limit takes to clear: nearer to the truth with every spell."""

from __future__ import annotations

import pytest

from smart_model_router.core.rest_seconds import RateLimitRecovery


def spell(clearing: RateLimitRecovery, began: float, cleared: float) -> float | None:
    """Refused at `began`, answered again when a wait had just ended at `cleared`; the guess that was made."""
    guess = clearing.refused(began)
    clearing.waits(cleared)
    clearing.admitted(cleared)
    return guess


def test_nothing_is_known_at_first() -> None:
    """The ladder has to guess."""
    assert RateLimitRecovery().refused(0.0) is None


def test_the_next_spell_is_taken_to_last_a_little_less() -> None:
    """Ten seconds were enough: seven and a half are tried."""
    clearing = RateLimitRecovery()
    spell(clearing, 0.0, 10.0)
    assert clearing.refused(100.0) == 7.5


def test_a_guess_that_was_too_short_is_a_bound() -> None:
    """Too short after 6, enough after 10: the next guess lies between, nearer to what was enough."""
    clearing = RateLimitRecovery()
    spell(clearing, 0.0, 10.0)
    clearing.refused(100.0)
    clearing.refused(106.0)
    clearing.waits(110.0)
    clearing.admitted(110.0)
    assert clearing.refused(200.0) == 9.0


@pytest.mark.parametrize("again", [110.0, 112.0])
def test_what_was_enough_once_may_be_too_short(again: float) -> None:
    """Refused again after all of it: nothing is known any more."""
    clearing = RateLimitRecovery()
    spell(clearing, 0.0, 10.0)
    clearing.refused(100.0)
    assert clearing.refused(again) is None


@pytest.mark.parametrize("admitted_at", [-1.0, 0.0])
def test_an_older_call_ends_no_spell(admitted_at: float) -> None:
    """Who was admitted before the refusal says nothing of it."""
    clearing = RateLimitRecovery()
    clearing.refused(0.0)
    clearing.waits(5.0)
    clearing.admitted(admitted_at)
    clearing.admitted(5.0)
    assert clearing.refused(100.0) == 3.75


def test_without_a_spell_a_success_says_nothing() -> None:
    """Nothing is learned from calls that were never refused."""
    clearing = RateLimitRecovery()
    clearing.admitted(3.0)
    assert clearing.refused(100.0) is None


@pytest.mark.parametrize(("admitted_at", "guess"), [(6.0, 4.5), (6.25, None), (3600.0, None)])
def test_an_idle_hour_is_no_spell(admitted_at: float, guess: float | None) -> None:
    """A wait of four seconds: who is sent two after it shows how long it took, who comes later only that it is over."""
    clearing = RateLimitRecovery()
    clearing.refused(0.0)
    clearing.waits(4.0)
    clearing.admitted(admitted_at)
    assert clearing.refused(4000.0) == guess
