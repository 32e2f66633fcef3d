"""What the demo measures of its own story, from the events that the router tells."""

from __future__ import annotations

from smart_model_router.cli.demo_fleet import most_at_once, probe_spans
from smart_model_router.domain.events import AttemptFinished


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


def test_a_stream_is_a_probe_until_its_first_content() -> None:
    """Its first content is the verdict: what it says after that overlaps with no other probe."""
    spans = probe_spans([ended(0.0, 9.0, ttft=1.0), ended(2.0, 3.0), ended(0.0, 9.0, probe=False)])
    assert spans == {"a": [(0.0, 1.0), (2.0, 3.0)]}
    assert most_at_once(spans["a"]) == 1


def test_two_probes_at_once_are_seen() -> None:
    """The second is sent before the first has a verdict."""
    assert most_at_once(probe_spans([ended(0.0, 2.0), ended(1.0, 3.0)])["a"]) == 2
