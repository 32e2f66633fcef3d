"""What the demo measures of its own story, from the events that the router tells."""

from __future__ import annotations

from typing import Literal

import pytest

from smart_model_router.cli.demo_fleet import most_at_once, probe_spans
from smart_model_router.domain.events import AttemptFinished, BreakerChanged, Event


def ended(admitted_at: float, at: float, *, ttft: float | None = None, probe: bool = True) -> AttemptFinished:
    """A call that ended; a stream where `ttft` is given."""
    return AttemptFinished(
        at=at,
        admitted_at=admitted_at,
        target="a/big",
        provider="a",
        model="big",
        stream=ttft is not None,
        seconds=at - admitted_at,
        ttft_seconds=ttft,
        probe=probe,
    )


def moved(at: float, to_state: str, owner: str = "a/big") -> BreakerChanged:
    """A breaker that changed its state."""
    came_from = "open" if to_state == "closed" else "closed"
    kind: Literal["whole", "transport"] = "whole" if "/" in owner else "transport"
    return BreakerChanged(at=at, owner=owner, kind=kind, from_state=came_from, to_state=to_state, reason="test")


def test_a_stream_is_a_probe_until_its_first_content() -> None:
    """Its first content is the verdict: what it says after that overlaps with no other probe."""
    spans = probe_spans([moved(0.0, "open"), ended(0.0, 9.0, ttft=1.0), ended(2.0, 3.0), ended(0.0, 9.0, probe=False)])
    assert spans == {"a": [(0.0, 1.0), (2.0, 3.0)]}
    assert most_at_once(spans["a"]) == 1


@pytest.mark.parametrize("owner", ["a/big", "a"])
def test_two_probes_at_once_are_seen(owner: str) -> None:
    """The second is sent before the first has a verdict; the breaker may be the target's or its provider's."""
    events: list[Event] = [moved(0.0, "open", owner), ended(0.0, 2.0), ended(1.0, 3.0)]
    assert most_at_once(probe_spans(events)["a"]) == 2


def test_calls_on_probation_are_no_probes_of_a_breaker() -> None:
    """Where nothing else is free several may be on probation at once, before a breaker opened and after it closed."""
    before, after = [ended(0.0, 2.0), ended(1.0, 3.0)], [ended(7.0, 9.0), ended(8.0, 9.0)]
    events: list[Event] = [*before, moved(4.0, "open"), ended(5.0, 6.0), moved(6.0, "closed"), *after]
    assert probe_spans(events) == {"a": [(5.0, 6.0)]}
