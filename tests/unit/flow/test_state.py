"""What all requests share: sinks and stores that fail harm nobody, and every change is told once."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    Event,
    ProbeStarted,
    RequestFinished,
    RestStarted,
    SheddingChanged,
    TargetRefused,
    WaitFinished,
)
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.request import Target
from smart_model_router.flow.reference_resolution import REMEMBERED
from smart_model_router.flow.state import RECENT_EVENTS
from smart_model_router.testing import FakeProvider, FakeReply, LoopClock, RecordingSink
from tests.world import BODY, limited, now, served_by, virtual, world

SLOW_DOWN = FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR, "500"))


class BrokenSink:
    """A sink that raises at everything."""

    inline = True

    def emit(self, event: Event) -> None:
        raise OSError("full")


class BrokenStore:
    """A store that raises at everything."""

    def observe(self, observation: AttemptFinished) -> None:
        raise OSError("full")

    async def aclose(self) -> None:
        raise OSError("full")


@virtual
async def test_a_sink_and_a_store_that_raise_are_isolated_and_counted() -> None:
    """The request is served, the other sink hears everything, the errors are counted."""
    heard = RecordingSink()
    config = {
        "version": 1,
        "providers": {"a": {"kind": "scripted"}},
        "models": {"smart": {"tiers": [{"targets": ["a/big"]}], "last_resort": []}},
    }
    router = SmartModelRouter.from_config(
        config, clock=LoopClock(), providers={"a": FakeProvider()}, store=BrokenStore(), sinks=[BrokenSink(), heard]
    )
    assert (await router.chat(BODY)).report.complete
    assert [type(event) for event in heard.events] == [AttemptFinished, RequestFinished]
    assert router._state.sink_errors == 3


@virtual
async def test_an_outage_is_told_event_by_event() -> None:
    """Opening, the wait, the probe, closing: each once, with what people need to know."""
    w = world(["a/big"])
    w.providers["a"].set(SLOW_DOWN)
    await asyncio.gather(*(served_by(w, timeout=0.5) for _ in range(5)))
    w.providers["a"].set(FakeReply())
    assert await served_by(w) == "a/big"
    moves = [(event.owner, event.kind, event.to_state, event.reason) for event in w.sink.of(BreakerChanged)]
    assert moves == [
        ("a/big", "whole", "open", "consecutive_failures"),
        ("a/big", "whole", "closed", "probe_succeeded"),
    ]
    assert [(event.target, event.kind) for event in w.sink.of(ProbeStarted)] == [("a/big", "whole")]
    served = w.sink.of(RequestFinished)[-1].request_id
    assert [event.woken_by for event in w.sink.of(WaitFinished) if event.request_id == served] == ["a/big"]
    assert [event.shedding for event in w.sink.of(SheddingChanged)][:1] == [True]
    assert {event.reason for event in w.sink.of(TargetRefused) if event.request_id == served} == {"open"}


@virtual
async def test_a_rest_is_told_with_its_length() -> None:
    """A Retry-After of 3 is told as a hinted wait of 3 seconds."""
    w = world(["a/big"])
    w.providers["a"].set([limited(3.0), FakeReply()])
    await served_by(w)
    (rest,) = w.sink.of(RestStarted)
    assert (rest.target, rest.reason, rest.hinted) == ("a/big", "wait", True)
    assert rest.seconds == pytest.approx(3.0)
    assert rest.failure_class is FailureClass.RATE_LIMITED


@virtual
async def test_every_event_is_stamped_in_order() -> None:
    """Monotonic instants that never go back."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set([SLOW_DOWN, limited(1.0), FakeReply(seconds=1.0)])
    await asyncio.gather(*(served_by(w) for _ in range(5)))
    stamps = [event.at for event in w.sink.events]
    assert all(earlier <= later for earlier, later in pairwise(stamps))
    assert stamps[-1] == now()


@virtual
async def test_the_newest_events_are_kept() -> None:
    """A bounded number, oldest first."""
    w = world(["a/big"])
    for _ in range(RECENT_EVENTS):
        await served_by(w)
    assert list(w.router.events()) == w.sink.events[-RECENT_EVENTS:]


@virtual
async def test_request_ids_are_unique() -> None:
    """Within a router no two requests share an id."""
    w = world(["a/big"])
    ids = [(await w.router.chat(BODY)).report.request_id for _ in range(50)]
    assert len(set(ids)) == 50


@virtual
async def test_who_made_a_thing_is_remembered_and_the_oldest_is_forgotten() -> None:
    """A bounded memory of the things kept at providers."""
    makers, target = world(["a/big"]).state.makers, Target("a/big", "a", "big")
    for number in range(REMEMBERED + 1):
        makers.note(target, "", [f"c{number}"])
    assert makers.of("c0") is None
    assert makers.of("c1") == makers.of(f"c{REMEMBERED}") == target
