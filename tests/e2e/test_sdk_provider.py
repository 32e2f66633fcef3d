"""SDK clients as providers over real sockets: answers, streams, faults, and cancellation that reaches the server."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, Success
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.domain.request import Dialect
from smart_model_router.wires import text_of
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_providers.sdk import SdkProvider
from tests.e2e.eventually import becomes

pytestmark = pytest.mark.asyncio

CLIENTS: dict[Dialect, Callable[[str], Any]] = {
    "chat": lambda url: AsyncOpenAI(api_key="k", base_url=url),
    "messages": lambda url: AsyncAnthropic(api_key="k", base_url=url.removesuffix("/v1")),
}


@asynccontextmanager
async def running(dialect: Dialect, script: Sequence[Fault] = ()) -> AsyncGenerator[tuple[SdkProvider, FaultServer]]:
    """A provider over an SDK client and the fault server it talks to."""
    async with FaultServer(list(script), text="Paris.") as server:
        provider = SdkProvider(CLIENTS[dialect](server.base_url))
        try:
            yield provider, server
        finally:
            await provider.aclose()


def a_call(dialect: Dialect, *, stream: bool = False) -> ProviderCall:
    """A small call, as the router would make it."""
    body: dict[str, Any] = {"model": "fault", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 50}
    if stream:
        body["stream"] = True
    return ProviderCall(dialect, "fault", json.dumps(body).encode(), body, stream)


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_a_whole_answer(dialect: Dialect) -> None:
    """An answer comes back with its JSON and usage, on the client's own key."""
    async with running(dialect) as (provider, server):
        outcome = await provider.call(a_call(dialect))
        assert server.calls("k") == 1
    assert isinstance(outcome, Success)
    assert "Paris." in outcome.raw.decode()
    assert outcome.usage is not None


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_a_stream(dialect: Dialect) -> None:
    """A stream gives its text and its terminator."""
    async with running(dialect) as (provider, _):
        stream = await provider.open_stream(a_call(dialect, stream=True))
        assert not isinstance(stream, Failure)
        events = [event async for event in stream]
        await stream.aclose()
    assert "".join(text_of(dialect, event.data) for event in events if event.data) == "Paris."
    assert events[-1].kind is EventKind.END


@pytest.mark.parametrize("dialect", CLIENTS)
@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        (Fault.status(500), "SERVER_ERROR"),
        (Fault.status(529), "OVERLOADED"),
        (Fault.html(), "MALFORMED"),
        (Fault.cut(at_byte=20), "TRUNCATED"),
        (Fault.reset(), "TRANSPORT"),
        (Fault.down(), "TRANSPORT"),
    ],
    ids=str,
)
async def test_every_fault_has_its_class(dialect: Dialect, fault: Fault, expected: str) -> None:
    """What an SDK hides or raises comes back as a value of its class, after one call."""
    async with running(dialect, [fault]) as (provider, server):
        outcome = await provider.call(a_call(dialect))
        assert server.calls() <= 1
    assert isinstance(outcome, Failure)
    assert outcome.failure_class == expected


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_a_cut_stream_is_truncated(dialect: Dialect) -> None:
    """A cut is the last event of a stream."""
    async with running(dialect, [Fault.cut(after=1)]) as (provider, _):
        stream = await provider.open_stream(a_call(dialect, stream=True))
        assert not isinstance(stream, Failure)
        events = [event async for event in stream]
        await stream.aclose()
    assert events[-1].failure is not None
    assert events[-1].failure.failure_class is FailureClass.TRUNCATED


@pytest.mark.parametrize("dialect", CLIENTS)
async def test_leaving_a_stream_reaches_the_server(dialect: Dialect) -> None:
    """aclose in the middle of a stream closes the connection at once."""
    async with running(dialect, [Fault.stall(after=1)]) as (provider, server):
        stream = await provider.open_stream(a_call(dialect, stream=True))
        assert not isinstance(stream, Failure)
        await anext(aiter(stream))
        await stream.aclose()
        assert await becomes(lambda: server.requests[0].ending == "abandoned")
