"""What the dashboard remembers and how it draws a live router: bounded, in the order an incident asks."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from smart_model_router.domain.events import BreakerChanged, RequestFinished, StoreChanged
from smart_model_router.domain.outcome import FailureClass, Usage
from smart_model_router.observability.dashboard_history import (
    REQUESTS,
    STEP_SECONDS,
    STEPS,
    TRANSITIONS,
    DashboardHistory,
    ServedRequests,
)
from smart_model_router.observability.dashboard_snapshot import DashboardSnapshot
from smart_model_router.testing import FakeProvider, FakeReply
from tests.store_files import attempt
from tests.world import BODY, World, failing, limited, now, served_by, steady, virtual, world

BUSY = failing(FailureClass.OVERLOADED, 529)


def watched(*ladder: list[str], **given: Any) -> tuple[World, DashboardHistory, DashboardSnapshot]:
    """A world whose dashboard is on."""
    w = world(*ladder, **given)
    recorder = DashboardHistory(wall=lambda: 1_700_000_000.0 + now())
    painter = w.router.monitor.painter(recorder)
    w.router.monitor.watch(recorder)
    return w, recorder, painter


@virtual
async def test_the_sentence_has_who_serves_since_when_and_who_is_out_why() -> None:
    """The second choice serves since the first one failed; the failures in a row stand beside it, by status."""
    w, _, painter = watched(["a/big", "b/big"], replies={"a": FakeProvider(FakeReply())})
    await steady(w, 60)
    began = 1_700_000_000.0 + now()
    w.providers["a"].set(BUSY)
    await steady(w, 20)
    [model] = (await painter.picture())["models"]
    assert (model["target"], model["choice"], model["degraded"]) == ("b/big", 2, False)
    assert began <= model["since"] <= began + 10
    [out] = model["missing"]
    assert out["target"] == "a/big"
    assert out["run"].startswith("529 x ")
    assert out["due"] > 0


@virtual
async def test_without_traffic_the_sentence_says_who_would_serve() -> None:
    """Nobody has asked yet; an isolated first choice is not who would answer."""
    w, _, painter = watched(["a/big", "b/big"])
    assert (await painter.picture())["models"][0]["target"] == "a/big"
    w.router.isolate("a/big")
    assert (await painter.picture())["models"][0]["target"] == "b/big"
    w.router.isolate("b/big")
    assert (await painter.picture())["models"][0]["target"] is None


def test_a_store_out_of_reach_is_a_transition() -> None:
    """With which store, why, and when it is within reach again."""
    recorder = DashboardHistory(clock=lambda: 5.0, wall=lambda: 1_700_000_000.0)
    recorder.emit(StoreChanged(at=5.0, store="stats", degraded=True, reason="the disk is full"))
    recorder.emit(StoreChanged(at=5.0, store="stats", degraded=False, reason=""))
    lost, found = recorder.transitions
    assert (lost.subject, lost.text, lost.bad) == ("stats store", "out of reach: the disk is full", True)
    assert (found.text, found.bad) == ("within reach again", False)


def test_equals_that_share_the_load_do_not_change_the_sentence() -> None:
    """One in three answers by another target is no change; four in a row are one, since the first of them."""
    serving = ServedRequests()
    for at in range(30):
        serving.note("b/big" if at % 3 == 2 else "a/big", 100.0 + at)
    assert (serving.target, serving.since) == ("a/big", 100.0)
    for at in range(30, 50):
        serving.note("b/big", 100.0 + at)
    assert (serving.target, serving.since) == ("b/big", 129.0)


@virtual
async def test_a_request_is_drawn_with_calls_refusals_and_waits() -> None:
    """In seconds from its beginning: who was asked, who was not and why, how long it waited."""
    w, recorder, _ = watched(["a/big"], replies={"a": FakeProvider([limited(3.0), FakeReply(seconds=1.0)])})
    assert await served_by(w) == "a/big"
    [trace] = recorder.requests.values()
    drawn = trace.to_dict()
    kinds = [step["kind"] for step in drawn["steps"]]
    assert kinds[0] == "attempt"
    assert "wait" in kinds
    assert drawn["steps"][0]["failure"] == "RATE_LIMITED"
    assert drawn["steps"][-1]["until"] == pytest.approx(drawn["seconds"])
    assert drawn["waited_seconds"] == pytest.approx(3.0, abs=0.2)


@virtual
async def test_who_served_what_is_counted_in_steps_of_ten_seconds() -> None:
    """Fifteen minutes of them, the newest last; who failed is nobody."""
    w, _, painter = watched(["a/big"])
    await steady(w, 30)
    shown = (await painter.picture())["served"]
    assert shown["step"] == STEP_SECONDS
    series = dict(map(tuple, shown["series"]))
    assert len(series["a/big"]) == STEPS
    assert sum(series["a/big"]) == 60
    assert sum(series[""]) == 0


@virtual
async def test_a_request_that_ends_after_a_reload_is_drawn() -> None:
    """Also under a name that the new configuration does not have any more: as the model it was of."""
    old, recorder, _ = watched(["a/big"], config={"aliases": {"fast": "smart"}})
    new = world(["a/big"])
    painter = new.router.monitor.painter(recorder)
    new.router.monitor.watch(recorder)
    reply = await old.router.chat({**BODY, "model": "fast"})
    picture = await painter.picture()
    assert [line["request_id"] for line in picture["requests"]] == [reply.report.request_id]
    assert list(recorder.serving) == ["smart"]


@virtual
async def test_rates_are_of_now() -> None:
    """Calls a second are those of the steps that are counted, and what was spent is forgotten after 15 minutes."""
    w, recorder, painter = watched(["a/big"])
    await steady(w, 115, every=0.5)
    [target] = (await painter.picture())["targets"]
    assert target["rate"] == pytest.approx(2.0, rel=0.02)
    before = target["prompt_hour"]
    recorder.emit(replace(attempt("a/big", at=now()), cost_usd=1.0, usage=Usage(900, 1, 600)))
    [target] = (await painter.picture())["targets"]
    assert target["cost_hour"] == pytest.approx(4.0, rel=0.02)
    assert target["prompt_hour"] - before == pytest.approx(3_600, rel=0.02)
    assert target["cached"] == pytest.approx(600 / (target["prompt_hour"] / 4), rel=0.02)
    await asyncio.sleep(7_200)
    [target] = (await painter.picture())["targets"]
    assert (target["rate"], target["cost_hour"], target["prompt_hour"], target["cached"]) == (0.0, 0.0, 0.0, None)


def test_the_past_is_bounded() -> None:
    """A flood of transitions and requests leaves the newest."""
    recorder = DashboardHistory(clock=lambda: 100.0, wall=lambda: 0.0)
    for number in range(1_000):
        recorder.emit(
            BreakerChanged(at=1.0, owner=f"t{number}", kind="whole", from_state="closed", to_state="open", reason="x")
        )
        recorder.emit(
            RequestFinished(
                at=1.0,
                request_id=f"r{number}",
                dialect="chat",
                model=f"m{number}",
                outcome="ok",
                target="t",
                requested_tier="x",
                actual_tier="x",
                degraded=False,
                last_resort=False,
                attempts=1,
                refusals=0,
                seconds=0.1,
                waited_seconds=0.0,
            )
        )
    assert (len(recorder.transitions), len(recorder.requests)) == (TRANSITIONS, REQUESTS)
    assert next(reversed(recorder.requests)) == "r999"
