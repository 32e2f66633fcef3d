"""Calls in process at the expense of a key: bounded, admitted and charged as its requests are."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import pytest

from smart_model_router.config import GatewayConfig, GatewayKeyConfig
from smart_model_router.config.secret import Secret
from smart_model_router.domain.errors import Overloaded, RequestRejected
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.gateway.client_keys import ApiClient
from smart_model_router.gateway.research.charged_router import ChargedRouter
from smart_model_router.gateway.research.loop_thread import LoopThread
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.router import RouterReply
from smart_model_router.testing import FakeProvider
from tests.e2e.eventually import becomes
from tests.world import BLACK_HOLE, BODY, World, failing, world

T = TypeVar("T")


def generation_over(made: World, **limits: Any) -> tuple[RouterGeneration, ApiClient]:
    """Return a generation with one key, and its client."""
    key = GatewayKeyConfig(key=Secret("team-key"), **limits)
    config = replace(made.router.config, gateway=GatewayConfig(keys={"team": key}))
    generation = RouterGeneration(config, made.router)
    return generation, generation.ring.api_client({"authorization": "Bearer team-key"})


async def from_another_loop(work: Callable[[], Awaitable[T]]) -> T:
    """Do something on a loop of its own, on a thread of its own."""
    thread = LoopThread("test")

    async def done() -> T:
        return await work()

    try:
        return await thread.call(done())
    finally:
        await thread.stop()


def has_left(client: ApiClient, tokens: float) -> bool:
    """Return whether the key may use so many tokens now."""
    now = asyncio.get_running_loop().time()
    return client._limits["tokens"].ready_at(tokens, now) == now


@pytest.mark.asyncio
async def test_a_call_uses_what_a_request_of_the_key_uses(monkeypatch: pytest.MonkeyPatch) -> None:
    """From another loop: a request of the minute; the router is told the key's rank and mark, not the caller's."""
    made = world(["a/big"])
    generation, client = generation_over(made, rpm=2, criticality="sheddable")
    router, told = ChargedRouter(generation, client, asyncio.get_running_loop()), list[Mapping[str, Any]]()
    real = made.router.chat

    async def chat(body: Mapping[str, Any], **options: Any) -> RouterReply:
        told.append(options)
        return await real(body, **options)

    monkeypatch.setattr(made.router, "chat", chat)
    reply = await from_another_loop(lambda: router.chat(BODY, criticality="critical", timeout=60.0))
    assert reply.body["choices"][0]["message"]["content"]
    await router.chat(BODY)
    assert told[0] == {"criticality": "sheddable", "timeout": 60.0, "owner": client.owner}
    with pytest.raises(Overloaded, match="the key 'team' has used up its requests a minute") as refused:
        await from_another_loop(lambda: router.chat(BODY))
    assert refused.value.retry_after is not None
    assert 0 < refused.value.retry_after <= 60
    await made.router.aclose()


@pytest.mark.asyncio
async def test_a_model_that_the_key_may_not_use_is_refused() -> None:
    """As a request for it is: nothing is sent."""
    made = world(["a/big"])
    generation, client = generation_over(made, models=("other",))
    router = ChargedRouter(generation, client, asyncio.get_running_loop())
    with pytest.raises(RequestRejected, match="the key 'team' may not use 'smart'"):
        await from_another_loop(lambda: router.chat(BODY))
    assert made.providers["a"].calls == []
    await made.router.aclose()


@pytest.mark.asyncio
async def test_a_call_that_fails_or_is_left_gives_back_what_it_reserved() -> None:
    """A failure is the router's own; a caller that goes uses nothing."""
    refusal = failing(FailureClass.INVALID_REQUEST, 400)
    made = world(["a/big"], replies={"a": FakeProvider([refusal, BLACK_HOLE])})
    generation, client = generation_over(made, tpm=100)
    router = ChargedRouter(generation, client, asyncio.get_running_loop())
    body: Mapping[str, Any] = {**BODY, "messages": [{"role": "user", "content": "x" * 300}]}
    with pytest.raises(RequestRejected):
        await router.chat(body)
    left = asyncio.create_task(from_another_loop(lambda: router.chat(body)))
    assert await becomes(lambda: made.providers["a"].in_flight == 1)
    assert not has_left(client, 75.0)
    left.cancel()
    with pytest.raises(asyncio.CancelledError):
        await left
    assert await becomes(lambda: has_left(client, 75.0))
    await made.router.aclose()
