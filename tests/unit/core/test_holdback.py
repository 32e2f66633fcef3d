"""The newest text waits; calls and ends do not."""

from __future__ import annotations

import math

import pytest

from smart_model_router.core.stream import HoldBack
from smart_model_router.domain.outcome import EventKind, StreamEvent

META = StreamEvent(EventKind.META, b"meta")
PING = StreamEvent(EventKind.PING, b": ping")
CALL = StreamEvent(EventKind.CONTENT, b"call")
FINISH = StreamEvent(EventKind.FINISH, b"finish", finish="stop")


def text(words: str) -> StreamEvent:
    """An event that adds these words."""
    return StreamEvent(EventKind.CONTENT, words.encode())


def fed(held: HoldBack, *words: str) -> list[StreamEvent]:
    """What comes out for some text."""
    return [out for word in words for out in held.take(text(word), len(word))]


def test_an_event_waits_for_so_much_text_after_it() -> None:
    """With 4 characters held back, `one` is delivered once 4 more have come, and the head with it."""
    held = HoldBack(4)
    assert held.take(META, 0) == []
    assert fed(held, "one", "two") == []
    assert fed(held, "3") == [META, text("one")]
    assert held.waiting == 4


def test_nothing_held_back_is_delivered_at_once() -> None:
    """Zero characters: every event as it comes."""
    held = HoldBack(0)
    assert held.passes
    assert [held.take(event, 0) for event in (META, CALL, PING)] == [[META], [CALL], [PING]]
    assert fed(held, "one") == [text("one")]


def test_a_call_and_an_end_let_everything_go() -> None:
    """What says more than text is not held, nor is what came before it."""
    for event in (CALL, FINISH):
        held = HoldBack(100)
        fed(held, "one")
        assert held.take(event, 0) == [text("one"), event]
        assert held.waiting == 0


def test_infinity_holds_everything_until_it_is_told() -> None:
    """Also calls and the end: only `flush` delivers."""
    held = HoldBack(math.inf)
    assert [held.take(event, 0) for event in (META, CALL, FINISH)] == [[], [], []]
    assert held.flush() == [META, CALL, FINISH]


class Counted(int):
    """No characters; it counts how often anybody asks."""

    asked = 0

    def __bool__(self) -> bool:
        Counted.asked += 1
        return False


@pytest.mark.parametrize("characters", [1000, math.inf])
def test_events_without_text_are_not_looked_at_again_and_again(characters: float) -> None:
    """A model that thinks for a thousand events, or sends as many that mean nothing, costs a look or two an event."""
    Counted.asked = 0
    held, none = HoldBack(characters), Counted()
    for _ in range(1000):
        held.take(META, none)
    assert Counted.asked <= 2000


def test_pings_do_not_wait() -> None:
    """A ping behind text that waits would be late: it is left out."""
    held = HoldBack(10)
    fed(held, "one")
    assert held.take(PING, 0) == []
    assert held.flush() == [text("one")]


def test_what_is_dropped_is_counted_and_gone() -> None:
    """Characters of the text that was never delivered."""
    held = HoldBack(10)
    fed(held, "one", "two")
    assert held.drop() == 6
    assert held.flush() == []
    assert held.waiting == 0


def test_nothing_waits_after_a_release_where_nothing_waited_before() -> None:
    """With 0 characters `release` goes back to delivering every event at once, pings included."""
    held = HoldBack(0)
    held.hold()
    assert held.take(META, 0) == []
    assert held.release() == [META]
    assert [held.take(event, 0) for event in (META, PING)] == [[META], [PING]]


def test_everything_waits_from_hold_to_release() -> None:
    """A call, a finish reason, any text; afterwards it is as before."""
    held = HoldBack(2)
    assert not held.passes
    held.hold()
    assert [held.take(event, 0) for event in (CALL, FINISH)] == [[], []]
    assert fed(held, "one", "two") == []
    assert held.release() == [CALL, FINISH, text("one"), text("two")]
    assert fed(held, "three", "four") == [text("three")]
