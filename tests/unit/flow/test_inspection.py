"""Looking without sending: the same answer a request would get, and nothing changed by asking."""

from __future__ import annotations

import asyncio
import json

import pytest

from smart_model_router import AllTargetsFailed, InvalidRequest, ModelSelection, RouterUnavailable
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.testing import FakeReply
from tests.world import BODY, DOWN, limited, now, served_by, virtual, world

LOCAL = {"l": {"kind": "scripted", "bulkhead": 1}}


@virtual
async def test_a_tier_is_served_by_its_best_target() -> None:
    """Healthy: the tier asked for, not degraded."""
    w = world(["a/big"], ["b/small"])
    assert w.router.get_model_for_tier("frontier") == ModelSelection("a/big", "frontier", "frontier", degraded=False)
    assert w.router.get_model_for_tier("standard", model="smart").target == "b/small"
    assert w.calls("a") == w.calls("b") == 0


@virtual
async def test_a_lower_tier_is_marked_degraded_with_the_reasons() -> None:
    """What ruled out each better target is said."""
    w = world(["a/big"], ["b/small"])
    w.providers["a"].set(limited(60.0))
    await served_by(w)
    selection = w.router.get_model_for_tier("frontier")
    assert (selection.target, selection.actual_tier, selection.degraded) == ("b/small", "standard", True)
    assert selection.degraded_mode
    assert selection.reasons == {"a/big": "wait"}


@virtual
async def test_the_last_resort_is_selected_last() -> None:
    """When nobody in a tier would serve, the last resort is named, degraded."""
    w = world(["a/big"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set(limited(60.0))
    await served_by(w)
    selection = w.router.get_model_for_tier("frontier")
    assert (selection.target, selection.actual_tier, selection.degraded) == ("l/x", "last_resort", True)


@virtual
async def test_nobody_is_an_error_with_reasons_and_never_none() -> None:
    """It raises, names what ruled out each target, and says when asking again makes sense."""
    w = world(["a/big"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set(limited(40.0))
    w.providers["l"].set(FakeReply(seconds=30.0))
    busy = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(1.0)
    with pytest.raises(AllTargetsFailed, match="a/big wait, l/x bulkhead") as caught:
        w.router.get_model_for_tier("frontier")
    assert caught.value.retry_after == pytest.approx(39.0)
    await busy


def test_an_unknown_tier_or_model_is_named() -> None:
    """The error lists what there is."""

    @virtual
    async def scenario() -> None:
        w = world(["a/big"])
        with pytest.raises(InvalidRequest, match="'gold' is none of frontier"):
            w.router.get_model_for_tier("gold")
        with pytest.raises(InvalidRequest, match="unknown"):
            w.router.get_model_for_tier("frontier", model="nobody")

    scenario()


@virtual
async def test_an_explanation_is_what_would_happen() -> None:
    """Ranks, health, refusals and who would serve; the request then does exactly that."""
    w = world(["a/big", "b/big"], ["c/small"], last_resort=["l/x"], kinds=LOCAL)
    w.providers["a"].set(limited(60.0))
    await served_by(w)
    told = w.router.explain(BODY)
    assert told.serves == await served_by(w) == "b/big"
    assert not told.degraded
    lines = {line.target: (line.tier, line.refusal) for line in told.targets}
    assert lines == {
        "a/big": ("frontier", "wait"),
        "b/big": ("frontier", None),
        "c/small": ("standard", None),
        "l/x": ("last_resort", None),
    }
    assert json.loads(json.dumps(told.to_dict()))["serves"] == "b/big"


@virtual
async def test_an_explanation_calls_no_better_tier_degraded() -> None:
    """Where escalation is allowed a higher tier may serve: that is no degradation, there as in the report."""
    w = world(["a/big"], ["b/small"], config={"routing": {"allow_escalation": True}})
    w.router.isolate("b/small")
    explained = w.router.explain(BODY, tier="standard")
    assert (explained.serves, explained.degraded) == ("a/big", False)


@virtual
async def test_a_tier_is_selected_upwards_where_that_is_allowed() -> None:
    """As a request is served: lower tiers first, then the nearest higher one, which is no degradation."""
    tiers = (["a/big"], ["b/mid"], ["c/small"])
    w = world(*tiers, config={"routing": {"allow_escalation": True}})
    w.router.isolate("b/mid")
    assert w.router.get_model_for_tier("standard").target == "c/small"
    w.router.isolate("c/small")
    selection = w.router.get_model_for_tier("economy")
    assert (selection.target, selection.actual_tier, selection.degraded) == ("a/big", "frontier", False)
    assert w.router.explain(BODY, tier="economy").serves == "a/big"
    plain = world(*tiers)
    plain.router.isolate("c/small")
    with pytest.raises(AllTargetsFailed, match="economy: c/small isolated"):
        plain.router.get_model_for_tier("economy")


@virtual
async def test_an_explanation_names_what_is_left_out() -> None:
    """A target that cannot do it is listed with the need it does not meet."""
    w = world(["a/big"], last_resort=["l/x"], kinds={"l": {"kind": "local"}})
    told = w.router.explain({**BODY, "tools": [{"type": "function", "function": {"name": "f"}}]}, avoid=["a"])
    assert told.serves is None
    assert {(line.target, line.tier, line.refusal) for line in told.targets} == {
        ("a/big", "-", "filtered:avoid"),
        ("l/x", "-", "filtered:tools"),
    }


@virtual
async def test_an_explanation_refuses_what_a_request_is_refused_for() -> None:
    """A name that nobody has, an option that there is not, a closed router."""
    w = world(["a/big"])
    with pytest.raises(InvalidRequest, match="avoid: 'x' is no provider"):
        w.router.explain(BODY, avoid=["x"])
    with pytest.raises(InvalidRequest, match="teir: no such option"):
        w.router.explain(BODY, teir="standard")  # type: ignore[call-arg]  # what an unchecked caller does
    await w.router.aclose()
    with pytest.raises(RouterUnavailable, match="closed"):
        w.router.explain(BODY)


@virtual
async def test_statuses_show_every_target_as_it_stands() -> None:
    """State, refusal, time to wait, load and figures."""
    w = world(["a/big"], ["b/small"], kinds={"b": {"bulkhead": 3}})
    w.providers["a"].set(FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR, "500")))
    await asyncio.gather(*(served_by(w) for _ in range(5)))
    w.providers["b"].set(FakeReply(seconds=5.0))
    busy = asyncio.ensure_future(served_by(w))
    await asyncio.sleep(1.0)
    a, b = w.router.targets()
    assert (a.id, a.provider, a.state, a.refusal) == ("a/big", "a", "open", "open")
    assert a.retry_after is not None
    assert 4.0 <= a.retry_after <= 4.5  # it opened for 5 s a second ago
    assert (a.success_rate, b.success_rate) == (0.0, 1.0)  # what was measured, and no prior
    assert (b.state, b.refusal, b.in_flight, b.slots) == ("closed", None, 1, 3)
    w.router.isolate("b/small")
    assert w.router.targets()[1].state == "isolated"
    assert await busy == "b/small"


@virtual
async def test_availability_says_how_well_it_is_supported() -> None:
    """n / (n + 5) x (1 - age / 5 min), and the reason of a no."""
    w = world(["a/big"])
    assert w.router.predict_availability("a/big").confidence == 0.0
    for _ in range(5):
        await served_by(w)
    await asyncio.sleep(150.0)
    fresh = w.router.predict_availability("a/big")
    assert (fresh.available, fresh.reason) == (True, None)
    assert fresh.confidence == pytest.approx(0.5 * 0.5)
    w.router.isolate("a/big")
    isolated = w.router.predict_availability("a/big")
    assert (isolated.available, isolated.reason, isolated.retry_after) == (False, "isolated", None)


@virtual
async def test_looking_changes_nothing() -> None:
    """Asking a hundred times moves no breaker, takes no probe, no token and no turn."""
    w = world(["a/big"], kinds={"a": {"rpm": 60}})
    w.providers["a"].set(DOWN)
    await served_by(w, timeout=0.5)
    await asyncio.sleep(31.0)
    told = len(w.sink.events)
    for _ in range(100):
        w.router.explain(BODY)
        w.router.targets()
        w.router.system_health()
        w.router.predict_availability("a/big")
        w.router.get_model_for_tier("frontier")
    assert len(w.sink.events) == told
    w.providers["a"].set(FakeReply())
    began = now()
    assert await served_by(w) == "a/big"
    assert now() == began
    w.assert_idle()
