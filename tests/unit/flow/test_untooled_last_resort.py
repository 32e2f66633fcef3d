"""`last_resort.tools: answer_without`: an agent is answered in words when nothing else can answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router import SmartRouterError
from smart_model_router.testing import FakeProvider
from smart_model_router.wires.untooled import TOOLS_LEFT_OUT
from tests.world import BODY, DOWN, World, virtual, world

TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
AGENT = {**BODY, "tools": TOOLS, "tool_choice": "required"}


def fleet(tools: str | None, *, first: FakeProvider | None = None, **facts: Any) -> World:
    """A target that is down, and a last resort that takes no tools."""
    resort = {"target": "l/tiny", "tools": False, **facts}
    config: dict[str, Any] = {
        "models": {"smart": {"tiers": [{"targets": ["a/big"]}], "last_resort": [resort]}},
        "last_resort": {} if tools is None else {"tools": tools},
    }
    return world(["a/big"], last_resort=["l/tiny"], replies={"a": first or FakeProvider(DOWN)}, config=config)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@virtual
async def test_an_agent_is_answered_without_its_tools_and_the_report_says_so(stream: bool) -> None:
    """Nothing of the tools is sent; the answer is marked as the last resort's and its loss is named."""
    made = fleet("answer_without")
    if stream:
        running = made.router.stream_chat(AGENT)
        assert [event async for event in running]
        report = running.report
    else:
        report = (await made.router.chat(AGENT)).report
    assert (report.target, report.last_resort, report.degraded) == ("l/tiny", True, True)
    assert report.losses.count(TOOLS_LEFT_OUT) == 1
    sent = json.loads(made.providers["l"].calls[0].payload)
    assert sent.keys().isdisjoint({"tools", "tool_choice"})
    assert sent["messages"] == BODY["messages"]
    made.assert_idle()


@pytest.mark.parametrize("tools", [None, "refuse"])
@virtual
async def test_without_the_word_it_is_refused(tools: str | None) -> None:
    """By default an agent's request fails, and the last resort is not asked."""
    made = fleet(tools)
    with pytest.raises(SmartRouterError):
        await made.router.chat(AGENT, timeout=60)
    assert made.calls("l") == 0


@virtual
async def test_a_target_with_tools_gets_them_and_goes_first() -> None:
    """Nothing changes while the first target answers; and a request without tools has no loss at the last resort."""
    made = fleet("answer_without", first=FakeProvider())
    reply = await made.router.chat(AGENT)
    assert (reply.report.target, reply.report.losses) == ("a/big", [])
    assert json.loads(made.providers["a"].calls[0].payload)["tools"] == TOOLS
    assert (await fleet("answer_without").router.chat(BODY)).report.losses == []


@virtual
async def test_a_last_resort_of_another_dialect_is_asked_by_translation() -> None:
    """Tools that run at a provider, which could not be translated, are left out before."""
    made = fleet("answer_without")
    body = {"model": "smart", "input": "hello", "tools": [{"type": "web_search"}, {"type": "function", "name": "f"}]}
    reply = await made.router.responses(body)
    assert (reply.report.target, reply.report.losses[0]) == ("l/tiny", TOOLS_LEFT_OUT)


@virtual
async def test_the_window_is_that_of_the_prompt_without_its_tools() -> None:
    """Tools of a thousand tokens rule out no last resort that does not get them."""
    large = {**AGENT, "tools": [{"type": "function", "function": {"name": "f", "description": "long " * 4000}}]}
    made = fleet("answer_without", context_tokens=300)
    assert (await made.router.chat(large)).report.target == "l/tiny"
