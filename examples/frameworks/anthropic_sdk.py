"""Anthropic's SDK over a router: Claude is overloaded, and a model that speaks another dialect answers in its place.

Runs without a key: the providers are fault servers. The second one speaks Chat Completions; the router translates.
"""

# /// script
# dependencies = ["smart-model-router", "anthropic>=2,<3"]
# ///

from __future__ import annotations

import asyncio

import anthropic
import httpx2

from smart_model_router import SmartModelRouter
from smart_model_router.clients import RouterTransport
from smart_model_router_providers.fault import Fault, FaultServer

QUESTION = [{"role": "user", "content": "What is a circuit breaker?"}]


async def main() -> None:
    """The first provider answers nothing but 529; the stream comes from the second."""
    with (
        FaultServer([Fault.status(529)]) as claude,
        FaultServer([Fault.reply("A switch that opens by itself.")]) as other,
    ):
        config = {
            "version": 1,
            "providers": {
                "claude": {"kind": "anthropic", "base_url": claude.base_url, "api_key": "k"},
                "other": {"kind": "openai_compatible", "base_url": other.base_url, "api_key": "k"},
            },
            "models": {
                "smart": {"tiers": [{"targets": ["claude/opus"]}, {"targets": ["other/big"]}], "last_resort": []}
            },
        }
        async with (
            SmartModelRouter.from_config(config) as router,
            httpx2.AsyncClient(transport=RouterTransport(router)) as transport,
        ):
            client = anthropic.AsyncAnthropic(base_url="http://router", api_key="unused", http_client=transport)
            async with client.messages.stream(model="smart", max_tokens=200, messages=QUESTION) as stream:
                async for text in stream.text_stream:
                    print(text, end="")
                print(" - by", (await stream.get_final_message()).model)
    assert claude.calls() > 0
    assert other.calls() == 1


if __name__ == "__main__":
    asyncio.run(main())
