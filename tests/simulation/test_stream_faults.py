"""Broken streams are each seen for what they are, and fall back exactly when nothing was delivered."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import StreamInterrupted
from smart_model_router.flow.router_stream import RouterStream
from smart_model_router.testing import LoopClock
from smart_model_router_providers.fault import Fault, ScriptedProvider
from tests.world import virtual

BODY: dict[str, Any] = {"model": "smart", "messages": [{"role": "user", "content": "hello"}], "max_tokens": 50}
INPUT: dict[str, Any] = {"model": "smart", "input": "hello", "max_output_tokens": 50}
KINDS = ["openai_compatible", "anthropic", "openai"]
"""Asked in Chat, in Messages, and in Responses."""
TEXT = "one two three four five six seven eight"
HTML = {"content-type": "text/event-stream"}


def fleet(kind: str, fault: Fault) -> SmartModelRouter:
    """The first target's streams have the fault, the second's are good."""
    bad = ScriptedProvider([fault], clock=LoopClock(), text=TEXT, kind=kind)
    good = ScriptedProvider(clock=LoopClock(), text="good", kind=kind)
    one = {"kind": kind, "base_url": "http://p.invalid/v1"}
    tree = {
        "version": 1,
        "providers": {"bad": one, "good": one},
        "models": {"smart": {"tiers": [{"targets": ["bad/m", "good/m"]}], "last_resort": [], "strategy": "ordered"}},
    }
    return SmartModelRouter.from_config(tree, clock=LoopClock(), seed=1, providers={"bad": bad, "good": good})


def streamed(router: SmartModelRouter, kind: str, recovery: str | None = None) -> RouterStream:
    """A stream in the dialect that this kind of provider stands for."""
    if kind == "openai":
        return router.stream_responses(INPUT)
    return (router.stream_messages if kind == "anthropic" else router.stream_chat)(BODY, recovery=recovery)


BEFORE = [
    ("cut in the head", Fault.cut(after=0), "TRUNCATED"),
    ("an error first", Fault.error_event(after=None), "SERVER_ERROR OVERLOADED"),
    ("silence", Fault.stall(after=0), "TIMEOUT"),
    ("comments only", Fault.stall(after=0, comments=True), "TIMEOUT"),
    ("pings only", Fault.stall(after=0, comments="pings"), "TIMEOUT"),
    ("a head and nothing", Fault.headers_only(), "TIMEOUT"),
    ("no answer", Fault.hang(), "TIMEOUT"),
    ("nothing said", Fault.empty(), "EMPTY"),
    ("no body", Fault.empty("body"), "TRUNCATED EMPTY MALFORMED"),
    (
        "HTML for events",
        Fault.status(200, headers=HTML, body="<html><title>Login</title></html>"),
        "TRUNCATED MALFORMED",
    ),
    ("a web page", Fault.html(), "MALFORMED"),
    ("JSON of no dialect", Fault.wrong_json(), "MALFORMED"),
    ("JSON instead", Fault.json_instead_of_stream(), "MALFORMED"),
    ("wrong JSON for events", Fault.status(200, headers=HTML, body='data: {"a": 1}\n\n'), "TRUNCATED MALFORMED"),
    ("a reset", Fault.reset(), "TRANSPORT"),
]
AFTER = [
    ("cut", Fault.cut(after=3), "TRUNCATED"),
    ("no terminator", Fault.no_terminator(), "TRUNCATED"),
    ("an error after content", Fault.error_event(after=3), "SERVER_ERROR OVERLOADED"),
    ("silence", Fault.stall(after=3), "TIMEOUT"),
    ("comments only", Fault.stall(after=3, comments=True), "TIMEOUT"),
    ("pings only", Fault.stall(after=3, comments="pings"), "TIMEOUT"),
]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fault", "classes"), [case[1:] for case in BEFORE], ids=[case[0] for case in BEFORE])
@virtual
async def test_nothing_delivered_falls_back_unseen(kind: str, fault: Fault, classes: str) -> None:
    """The caller gets the second target's answer, whole, and the report says what the first one's fault was."""
    async with fleet(kind, fault) as router:
        stream = streamed(router, kind)
        async with stream:
            async for _ in stream:
                pass
    assert (stream.text, stream.report.target) == ("good", "good/m")
    assert stream.report.attempts[0].target == "bad/m"
    assert stream.report.attempts[0].failure_class in classes.split()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("fault", "classes"), [case[1:] for case in AFTER], ids=[case[0] for case in AFTER])
@virtual
async def test_delivered_content_is_never_followed_by_anothers(kind: str, fault: Fault, classes: str) -> None:
    """Under `none` the caller is told, with what arrived; no other target is asked."""
    async with fleet(kind, fault) as router:
        stream = streamed(router, kind, "none")
        with pytest.raises(StreamInterrupted) as caught:
            async for _ in stream:
                pass
    assert caught.value.text
    assert TEXT.startswith(caught.value.text)
    assert [attempt.target for attempt in stream.report.attempts] == ["bad/m"]
    assert stream.report.attempts[0].failure_class in classes.split()
