"""The public front: what it takes, what it refuses by name, what it gives back, and how it ends."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest

from smart_model_router import (
    AllTargetsFailed,
    ContextTooLong,
    InvalidRequest,
    RouterUnavailable,
    SmartModelRouter,
    SmartRouterError,
    UnsupportedFeature,
)
from smart_model_router.domain.errors import RequestRejected
from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import Failure, FailureClass, Success
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.domain.report import RouteReport
from smart_model_router.testing import FakeProvider, FakeReply, LoopClock
from tests.world import BODY, DOWN, EMBED, World, failing, limited, now, served_by, virtual, world

HELLO = [{"role": "user", "content": "hello"}]
TOOLS = [{"type": "function", "function": {"name": "f"}}]


# Answers ----------------------------------------------------------------------------------------------


@virtual
async def test_an_answer_comes_with_its_bytes_and_its_report() -> None:
    """`body` is the dialect's object, `raw` the bytes it came as, `report` how it came about."""
    w = world(["a/big"])
    reply = await w.router.chat(BODY)
    assert reply.body["choices"][0]["message"]["content"] == "Hello, world."
    assert json.loads(reply.raw) == reply.body
    assert (reply.report.target, reply.report.complete, reply.report.degraded) == ("a/big", True, False)


@virtual
async def test_a_report_survives_json() -> None:
    """`to_json` is one line that says everything: target, tiers, attempts, refusals, waits, usage."""
    w = world(["a/big"], ["b/small"])
    w.providers["a"].set(limited(60.0))
    await served_by(w)
    report = (await w.router.chat(BODY)).report
    told = json.loads(report.to_json())
    assert "\n" not in report.to_json()
    assert told == json.loads(json.dumps(report.to_dict()))
    assert (told["target"], told["requested_tier"], told["actual_tier"]) == ("b/small", "frontier", "standard")
    assert told["degraded"] is True
    assert told["attempts"][0]["failure_class"] is None
    assert told["refusals"] == [{"target": "a/big", "reason": "wait", "retry_after": pytest.approx(60.0)}]
    assert told["usage"]["prompt_tokens"] == 10


@virtual
async def test_a_failed_report_survives_json() -> None:
    """The report of an error has its attempts with their classes."""
    w = world(["a/big"])
    w.providers["a"].set(failing(FailureClass.AUTH, 401))
    with pytest.raises(AllTargetsFailed) as caught:
        await w.router.chat(BODY)
    report = caught.value.report
    assert isinstance(report, RouteReport)
    assert json.loads(report.to_json())["attempts"][0]["failure_class"] == "AUTH"
    assert not report.complete


class Counting(FakeProvider):
    """Answers every dialect with its name."""

    async def call(self, call: ProviderCall) -> Success:
        await super().call(call)
        return Success({"dialect": call.dialect}, b"{}")


@virtual
async def test_each_dialect_has_its_method() -> None:
    """chat, messages and embeddings are told apart by the method, not by guessing."""
    speaks = {"a": {"wires": ["chat", "messages", "embeddings"]}}
    w = world(["a/big"], replies={"a": Counting()}, kinds=speaks)
    assert (await w.router.chat(BODY)).body["dialect"] == "chat"
    assert (await w.router.messages({**BODY, "max_tokens": 5})).body["dialect"] == "messages"
    assert (await w.router.embeddings(EMBED)).body["dialect"] == "embeddings"


@virtual
async def test_embeddings_come_from_one_embedding_space_only() -> None:
    """A vector of another model is a wrong answer, not a degraded one."""
    w = world(["a/embed", "b/embed", "c/other"], replies={"b": Counting()})
    w.providers["a"].set(DOWN)
    assert (await w.router.embeddings(EMBED)).report.target == "b/embed"
    w.router.isolate("b/embed")
    with pytest.raises(AllTargetsFailed):
        await w.router.embeddings(EMBED, timeout=1.0)
    assert w.calls("c") == 0


@virtual
async def test_a_tier_may_be_asked_for() -> None:
    """Starting lower is no degradation."""
    w = world(["a/big"], ["b/small"])
    report = (await w.router.chat(BODY, tier="standard")).report
    assert (report.target, report.requested_tier, report.degraded) == ("b/small", "standard", False)


@virtual
async def test_upward_only_when_it_is_allowed() -> None:
    """The asked tier is gone: without `allow_escalation` an error, with it a better model, marked."""
    strict = world(["a/big"], ["b/small"])
    strict.router.isolate("b/small")
    with pytest.raises(AllTargetsFailed):
        await strict.router.chat(BODY, tier="standard")
    w = world(["a/big"], ["b/small"], config={"routing": {"allow_escalation": True}})
    w.router.isolate("b/small")
    report = (await w.router.chat(BODY, tier="standard")).report
    assert (report.target, report.escalated, report.degraded) == ("a/big", True, False)


@virtual
async def test_get_model_for_tier_raises_with_reasons() -> None:
    """Nothing is left: the error names what ruled out each target and when to ask again; None never comes."""
    w = world(["a/big"], ["b/small"])
    w.providers["a"].set(limited(40.0))
    await served_by(w)
    w.router.isolate("b/small")
    with pytest.raises(AllTargetsFailed, match="a/big wait, b/small isolated") as caught:
        w.router.get_model_for_tier("frontier")
    assert caught.value.retry_after == pytest.approx(40.0)


# What is refused by name ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ([1, 2], "JSON object, not list"),
        (None, "JSON object, not NoneType"),
        ({"messages": HELLO}, "model"),
        ({"model": 5, "messages": HELLO}, "model"),
        ({"model": "", "messages": HELLO}, "model"),
        ({"model": "nobody", "messages": HELLO}, "'nobody' is unknown"),
        ({"model": "smart"}, "messages"),
        ({"model": "smart", "messages": []}, "messages"),
        ({"model": "smart", "messages": "hi"}, "messages"),
        ({"model": "smart", "messages": ["hi"]}, r"messages\[0\]"),
        ({"model": "smart", "messages": HELLO, "temperature": math.nan}, "body.temperature"),
        ({"model": "smart", "messages": [{"role": "user", "content": math.inf}]}, r"body.messages\[0\].content"),
        ({"model": "smart", "messages": HELLO, "stop": {1, 2}}, "body.stop"),
        ({"model": "smart", "messages": HELLO, "metadata": b"bytes"}, "body.metadata"),
    ],
)
@virtual
async def test_a_body_that_is_no_request_is_refused_by_name(body: Any, named: str) -> None:
    """InvalidRequest that names the thing; nothing is sent and nothing is kept."""
    w = world(["a/big"])
    with pytest.raises(InvalidRequest, match=named):
        await w.router.chat(body)
    with pytest.raises(InvalidRequest, match=named):
        w.router.stream_chat(body)
    assert w.calls("a") == 0
    w.assert_idle()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"timeout": 0}, "timeout"),
        ({"timeout": -1}, "timeout"),
        ({"timeout": math.nan}, "timeout"),
        ({"timeout": "soon"}, "timeout"),
        ({"max_cost": -0.5}, "max_cost"),
        ({"criticality": "urgent"}, "criticality"),
        ({"tier": "gold"}, "tier"),
        ({"avoid": 5}, "avoid"),
        ({"avoid": ["a", "a/bigg"]}, "avoid: 'a/bigg' is no provider and no target; there are a, a/big"),
    ],
)
@virtual
async def test_an_option_that_makes_no_sense_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    """InvalidRequest that names the option."""
    w = world(["a/big"])
    with pytest.raises(InvalidRequest, match=named):
        await w.router.chat(BODY, **options)
    assert w.calls("a") == 0


@virtual
async def test_what_nobody_can_do_is_said_with_the_reasons() -> None:
    """Tools, and no target takes any: UnsupportedFeature, at once."""
    w = world(["a/big"], kinds={"a": {"kind": "local"}})
    with pytest.raises(UnsupportedFeature, match=r"a/big cannot do what the request needs \(tools\)"):
        await w.router.chat({**BODY, "tools": TOOLS})
    assert w.calls("a") == 0


@virtual
async def test_a_prompt_of_ten_megabytes_goes_where_it_fits_or_nowhere() -> None:
    """Too long for every context: ContextTooLong at once; without a known limit it is sent."""
    huge = {"model": "smart", "messages": [{"role": "user", "content": "x" * 10_000_000}]}
    small = world(
        ["a/big"],
        config={"models": {"smart": {"tiers": [{"targets": [{"target": "a/big", "context_tokens": 8000}]}]}}},
    )
    with pytest.raises(ContextTooLong, match="context"):
        await small.router.chat(huge)
    assert small.calls("a") == 0
    large = world(["a/big"])
    assert (await large.router.chat(huge)).report.target == "a/big"


@virtual
async def test_a_prompt_larger_than_the_bucket_is_refused_at_once() -> None:
    """It could never be admitted: waiting for it would be a hang."""
    w = world(["a/big"], kinds={"a": {"tpm": 1000}})
    began = now()
    with pytest.raises(SmartRouterError, match="takes fewer tokens a minute than this request has"):
        await w.router.chat({"model": "smart", "messages": [{"role": "user", "content": "x" * 100_000}]})
    assert now() == began


@virtual
async def test_max_cost_leaves_out_what_has_no_known_price() -> None:
    """A price nobody knows is not known to be low enough."""
    w = world(["a/big"])
    with pytest.raises(RequestRejected, match="max_cost"):
        await w.router.chat(BODY, max_cost=0.01)


# The operator -----------------------------------------------------------------------------------------


@virtual
async def test_an_isolated_target_is_not_asked_until_it_is_closed() -> None:
    """The operator's no and yes win over everything."""
    w = world(["a/big", "b/big"])
    w.router.isolate("a/big")
    assert await served_by(w) == "b/big"
    assert await served_by(w, stream=True) == "b/big"
    w.router.close("a/big")
    await served_by(w, avoid=["b"])
    assert w.calls("a") == 1


@virtual
async def test_the_operator_ends_every_rest() -> None:
    """A wait of five minutes, a wall, an open breaker: closed means that the next request is sent."""
    for wrong in (limited(300.0), failing(FailureClass.QUOTA, 429), failing(FailureClass.AUTH, 401)):
        w = world(["a/big"])
        w.providers["a"].set([wrong, FakeReply()])
        assert await served_by(w, timeout=60.0) is None
        w.router.close("a/big")
        began = now()
        assert await served_by(w) == "a/big"
        assert now() == began


@pytest.mark.parametrize("failure_class", [FailureClass.SERVER_ERROR, FailureClass.TRANSPORT])
@virtual
async def test_the_operator_closes_whatever_breaker_is_open(failure_class: FailureClass) -> None:
    """The target's own, or its provider's for transport faults."""
    w = world(["a/big", "b/big"])
    w.providers["a"].set(FakeReply(seconds=0.1, failure=Failure(failure_class, "down")))
    await asyncio.gather(*(served_by(w, avoid=["b"], timeout=0.5) for _ in range(5)))
    w.providers["a"].set(FakeReply())
    assert w.router.predict_availability("a/big").reason == "open"
    w.router.close("a/big")
    began = now()
    assert await served_by(w, avoid=["b"]) == "a/big"
    assert now() == began


@virtual
async def test_who_waits_hears_of_the_operators_yes() -> None:
    """A request that waits for an open breaker goes out the moment it is closed by hand."""
    w = world(["a/big"])
    w.providers["a"].set(FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR, "down")))
    await asyncio.gather(*(served_by(w, timeout=0.5) for _ in range(5)))
    w.providers["a"].set(FakeReply())
    ask = asyncio.ensure_future(w.router.chat(BODY))
    await asyncio.sleep(0.2)  # the probe is due by back-off after a second
    w.router.close("a/big")
    reply = await ask
    assert reply.report.waited_seconds == pytest.approx(0.2)


@virtual
async def test_an_unknown_target_is_named() -> None:
    """A typing error of the operator is no silent success."""
    w = world(["a/big"])
    for verb in (w.router.isolate, w.router.close, w.router.predict_availability):
        with pytest.raises(InvalidRequest, match="'a/bog' is none of a/big"):
            verb("a/bog")


# Beginning and end ------------------------------------------------------------------------------------


class Stubborn(FakeProvider):
    """A provider that cannot be closed."""

    async def aclose(self) -> None:
        raise OSError("busy")


class ClosableStore:
    """A store that knows whether it was closed."""

    closed = False

    def observe(self, observation: AttemptFinished) -> None:
        """Nothing is kept."""

    async def aclose(self) -> None:
        self.closed = True


@virtual
async def test_closing_closes_every_provider_and_store_whatever_one_of_them_does() -> None:
    """A provider whose `aclose` raises keeps nobody else open, and its error is not hidden."""
    w = world(["a/1", "b/1", "c/1"], replies={"b": Stubborn()})
    w.state.store = store = ClosableStore()
    with pytest.raises(OSError, match="busy"):
        await w.router.aclose()
    assert w.providers["a"].closed
    assert w.providers["c"].closed
    assert store.closed


@virtual
async def test_closing_twice_is_fine() -> None:
    """The second time nothing is left to do."""
    w = world(["a/big"])
    await w.router.aclose()
    await w.router.aclose()
    assert w.providers["a"].closed


@virtual
async def test_a_router_is_a_context_manager() -> None:
    """Leaving it closes it, also by an exception."""
    w = world(["a/big"])
    with pytest.raises(ZeroDivisionError):
        async with w.router:
            raise ZeroDivisionError
    assert w.providers["a"].closed


@virtual
async def test_routers_share_nothing() -> None:
    """Two routers of one configuration: what one learns, the other does not know."""
    one, other = world(["a/big"]), world(["a/big"])
    one.router.isolate("a/big")
    assert await served_by(other) == "a/big"


@virtual
async def test_the_same_seed_gives_the_same_history() -> None:
    """Chance comes from the seed alone."""

    async def history(seed: int) -> list[object]:
        w = world(["a/big", "b/big"], seed=seed)
        w.providers["a"].set([DOWN, FakeReply(), limited(None), FakeReply()])
        began = now()
        return [(await served_by(w), round(now() - began, 9)) for _ in range(6)]

    assert await history(3) == await history(3)
    assert await history(3) != await history(4)


@virtual
async def test_given_providers_need_no_configuration() -> None:
    """A provider object is enough; its entry under `providers` may be left out."""
    tree = {"version": 1, "providers": {}, "models": {"m": {"tiers": [{"targets": ["mine/x"]}], "last_resort": []}}}
    router = SmartModelRouter.from_config(tree, clock=LoopClock(), providers={"mine": FakeProvider()})
    assert (await router.chat({"model": "m", "messages": HELLO})).report.target == "mine/x"


@virtual
async def test_a_thousand_requests_leave_nothing_behind() -> None:
    """Successes, failures, waits, fallbacks, streams, leavers: afterwards every gate is idle."""
    w: World = world(["a/big", "b/big"], ["c/small"], kinds={"a": {"bulkhead": 3}, "b": {"rpm": 600}})
    w.providers["a"].set(
        [FakeReply(seconds=0.2), DOWN, limited(0.5), FakeReply(cut=Failure(FailureClass.TRUNCATED))] * 50
        + [FakeReply(seconds=0.1)]
    )
    tasks = asyncio.all_tasks()
    for number in range(1000):
        ask = asyncio.ensure_future(served_by(w, stream=number % 3 == 0, timeout=5.0))
        if number % 7 == 0:
            await asyncio.sleep(0.05)
            ask.cancel()
        await asyncio.sleep(0.02)
    await asyncio.sleep(10.0)
    assert asyncio.all_tasks() == tasks
    w.assert_idle()


@virtual
async def test_given_providers_need_no_section_of_their_own() -> None:
    """A configuration that names only models is enough when every provider is an object."""
    tree = {"version": 1, "models": {"smart": {"tiers": [{"targets": ["mine/m"]}]}}}
    router = SmartModelRouter.from_config(tree, clock=LoopClock(), providers={"mine": FakeProvider()})
    assert (await router.chat(BODY)).report.target == "mine/m"


@virtual
async def test_a_closed_router_says_so() -> None:
    """After aclose() no request is mistaken for an outage of the providers."""
    w = world(["a/x"])
    await w.router.aclose()
    with pytest.raises(RouterUnavailable, match="closed"):
        await w.router.chat(BODY)


@virtual
async def test_an_option_nobody_knows_is_refused_by_name() -> None:
    """A misspelt option is the caller's mistake, told with the options there are."""
    w = world(["a/x"])
    misspelt: dict[str, Any] = {"sesion": "s"}
    with pytest.raises(InvalidRequest, match="sesion: no such option; there are tier"):
        await w.router.chat(BODY, **misspelt)


@virtual
async def test_an_endpoint_a_server_lacks_does_not_take_the_server_out() -> None:
    """A 404 to Messages is no reason to refuse Chat for a quarter of an hour."""
    w = world(["a/x"], replies={"a": FakeProvider([failing(FailureClass.MISCONFIGURED, 404), FakeReply()])})
    with pytest.raises(SmartRouterError):
        await w.router.messages({**BODY, "max_tokens": 5})
    assert await served_by(w) == "a/x"
