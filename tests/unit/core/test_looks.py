"""Second looks: when whoever lost its place to its figures alone is asked again, and when it is back (I14)."""

from __future__ import annotations

import pytest

from smart_model_router.core.selection import Candidate, View
from smart_model_router.core.selection.exploration import Exploration, ExplorationCall
from smart_model_router.domain.outcome import Snapshot

A, B, C = (Candidate(name, name, position) for position, name in enumerate("abc"))
WHOLE = View({"b": Snapshot(seconds_per_100_tokens=2.0, ttft_ema=0.5)})
STREAM = View(WHOLE.snapshots, stream=True)


def look_at(looks: Exploration, now: float) -> ExplorationCall | None:
    """What is due when `b` goes before `a`."""
    return looks.due([B, A], WHOLE, now)


def taken(looks: Exploration, now: float) -> ExplorationCall:
    """A look that was due, and was admitted."""
    look = look_at(looks, now)
    assert look is not None
    looks.began(look, now)
    return look


def test_the_first_look_is_due_an_open_interval_after_the_place_was_lost() -> None:
    """Not before the 30th second, and until it is taken."""
    looks = Exploration()
    assert look_at(looks, 100.0) is None
    assert look_at(looks, 129.9) is None
    assert look_at(looks, 130.0) == ExplorationCall("a", False, 4.5)
    assert look_at(looks, 131.0) == ExplorationCall("a", False, 4.5)


def test_whoever_has_its_place_is_not_looked_at() -> None:
    """Who stands behind because it is configured to lost nothing."""
    looks = Exploration()
    for now in (0.0, 1e6):
        assert looks.due([A, B, C], WHOLE, now) is None


def test_looks_grow_apart() -> None:
    """A look that changes nothing makes the next one wait half as long again, at most five minutes."""
    looks, now, waits = Exploration(), 0.0, []
    look_at(looks, now)
    now = 30.0
    for _ in range(8):
        taken(looks, now)
        wait = next(seconds / 4 for seconds in range(4, 10_000) if look_at(looks, now + seconds / 4))
        waits.append(wait)
        now += wait
    assert waits == [45.0, 67.5, 101.25, 152.0, 228.0, 300.0, 300.0, 300.0]


def test_another_model_that_has_the_target_further_down_holds_up_no_look() -> None:
    """There it lost nothing, and is not called either: that it stands behind proves nothing."""
    looks, last = Exploration(), Candidate("a", "a", 2)
    for now in range(30):
        assert look_at(looks, now) is None
        assert looks.due([B, last], WHOLE, now + 0.5) is None
    assert look_at(looks, 30.0) == ExplorationCall("a", False, 4.5)


def test_streams_and_whole_answers_are_looked_at_apart() -> None:
    """One may be slow while the other is not: each has its own times and its own measure."""
    looks = Exploration()
    assert looks.due([B, A], WHOLE, 0.0) is None
    assert looks.due([B, A], STREAM, 20.0) is None
    assert looks.due([B, A], STREAM, 30.0) is None
    assert looks.due([B, A], STREAM, 50.0) == ExplorationCall("a", True, 3.0)


def test_of_two_that_lost_their_places_the_longer_one_goes_first() -> None:
    """One look a request: the other one is next."""
    looks = Exploration()
    looks.due([C, B], WHOLE, 0.0)
    looks.due([C, A, B], WHOLE, 10.0)
    first = looks.due([C, A, B], WHOLE, 50.0)
    assert first is not None
    assert first.target == "b"
    looks.began(first, 50.0)
    second = looks.due([C, A, B], WHOLE, 50.0)
    assert second is not None
    assert second.target == "a"


@pytest.mark.parametrize(("latency", "back"), [(None, True), (0.0, True), (4.5, True), (4.51, False), (60.0, False)])
def test_a_target_is_back_when_it_was_as_quick_as_the_one_asked_instead(latency: float | None, back: bool) -> None:
    """As quick but for what makes a tie; where nobody can tell, the answer alone counts."""
    looks = Exploration()
    look_at(looks, 0.0)
    assert looks.ended(taken(looks, 30.0), latency, 31.0) is back


def test_nobody_is_too_slow_where_nothing_is_known_of_the_other() -> None:
    """There is no measure: the answer alone counts."""
    looks, unknown = Exploration(), View({})
    looks.due([B, A], unknown, 0.0)
    look = looks.due([B, A], unknown, 30.0)
    assert look is not None
    looks.began(look, 30.0)
    assert looks.ended(look, 1e9, 31.0)


def test_who_is_back_and_falls_again_is_looked_at_less_often() -> None:
    """Half of the calls fail: a look that went well by luck does not begin everything anew."""
    looks = Exploration()
    look_at(looks, 0.0)
    look = taken(looks, 30.0)
    assert looks.ended(look, 1.0, 31.0)
    looks.due([A, B], WHOLE, 31.0)
    look_at(looks, 40.0)
    assert look_at(looks, 84.9) is None
    assert look_at(looks, 85.0) is not None


@pytest.mark.parametrize(("fell", "wait"), [(60.9, 45.0), (61.0, 30.0)])
def test_what_it_proved_meanwhile_counts(fell: float, wait: float) -> None:
    """Each 30 seconds in its place take one look back."""
    looks = Exploration()
    look_at(looks, 0.0)
    looks.ended(taken(looks, 30.0), 1.0, 31.0)
    look_at(looks, fell)
    assert look_at(looks, fell + wait - 0.1) is None
    assert look_at(looks, fell + wait) is not None


def test_looks_are_taken_back_to_none_and_no_further() -> None:
    """However long it had its place, the first look comes after 30 seconds."""
    looks = Exploration()
    look_at(looks, 0.0)
    looks.ended(taken(looks, 30.0), 1.0, 31.0)
    look_at(looks, 1000.0)
    assert look_at(looks, 1029.9) is None
    assert look_at(looks, 1030.0) is not None


def test_who_gets_its_place_back_by_itself_is_back() -> None:
    """Its figures grew old before anybody looked: from then on it proves itself, and is forgotten in time."""
    looks = Exploration()
    look_at(looks, 0.0)
    taken(looks, 30.0)
    looks.due([A, B], WHOLE, 50.0)
    look_at(looks, 60.0)
    assert look_at(looks, 104.9) is None
    assert look_at(looks, 105.0) is not None
    looks.due([A, B], WHOLE, 110.0)
    assert len(looks._lost) == 1
    looks.due([A, B], WHOLE, 139.9)
    assert len(looks._lost) == 1
    looks.due([A, B], WHOLE, 140.0)
    assert looks._lost == {}


def test_a_late_answer_of_one_that_is_forgotten_changes_nothing() -> None:
    """The look took so long that the target had its place back and was forgotten meanwhile."""
    looks = Exploration()
    look_at(looks, 0.0)
    look = taken(looks, 30.0)
    for now in (40.0, 80.0):
        looks.due([A, B], WHOLE, now)
    assert looks.ended(look, 1.0, 90.0)
    assert looks._lost == {}
