"""Limits over real sockets: what a provider's headers say is heard, streams included, and its walls are respected."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router_providers.fault import Fault, FaultServer

pytestmark = pytest.mark.asyncio

BODY: dict[str, Any] = {"model": "smart", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 20}
FAMILIES = [
    ("openai", "openai"),
    ("azure", "azure"),
    ("github", "github"),
    ("anthropic", "anthropic"),
    ("mistral", "mistral"),
    ("cerebras", "cerebras"),
    ("openai_compatible", "ietf"),
    ("openai_compatible", "anthropic"),
]


def router_for(server: FaultServer, kind: str) -> SmartModelRouter:
    """One target; nobody waits for it."""
    tree = {
        "version": 1,
        "providers": {"p": {"kind": kind, "base_url": server.base_url, "api_key": "k"}},
        "routing": {"max_wait": "1ms"},
        "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
    }
    return SmartModelRouter.from_config(tree, seed=1)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(("kind", "style"), FAMILIES)
async def test_each_family_is_heard(kind: str, style: Any, stream: bool) -> None:
    """Five a minute, eight workers after the first answer: four more are sent, nothing is refused by the provider."""
    limit = Fault.limit(rpm=5, kind="window", headers=style)
    async with FaultServer([limit]) as server, router_for(server, kind) as router:
        messages = kind == "anthropic"

        async def ask() -> bool:
            try:
                if stream:
                    async with (router.stream_messages if messages else router.stream_chat)(BODY) as chunks:
                        async for _ in chunks:
                            pass
                else:
                    await (router.messages if messages else router.chat)(BODY)
            except SmartRouterError:
                return False
            return True

        first = await ask()
        later = await asyncio.gather(*(ask() for _ in range(8)))
        assert first
        assert sum(later) == 4
        assert [r.status for r in server.requests] == [200] * 5


async def test_milliseconds_are_waited_for_to_the_millisecond() -> None:
    """Retry-After-Ms 250 beats Retry-After 60: the provider is asked again after a quarter of a second."""
    refusal = Fault.status(429, headers={"retry-after": "60", "retry-after-ms": "250"}, times=1)
    async with FaultServer([refusal]) as server:
        tree = {
            "version": 1,
            "providers": {"p": {"kind": "openai", "base_url": server.base_url, "api_key": "k"}},
            "models": {"smart": {"tiers": [{"targets": ["p/m"]}], "last_resort": []}},
        }
        async with SmartModelRouter.from_config(tree, seed=1) as router:
            await router.chat(BODY)
        refused, again = server.requests
    assert 0.25 <= again.at - refused.at < 30


async def test_a_day_wall_sends_nothing() -> None:
    """The day is over: ten more requests do not reach the provider."""
    wall = Fault.status(429, headers={"x-ratelimit-type": "UserByModelByDay", "retry-after": "5631"})
    async with FaultServer([wall]) as server, router_for(server, "github") as router:
        for _ in range(11):
            with pytest.raises(SmartRouterError):
                await router.chat(BODY)
        assert server.calls() == 1
