"""OpenAI's SDK over a router: a whole answer, a stream, and a provider that fails under both.

Runs without a key: the providers are fault servers. The client is the SDK's own, with the router as its transport.
"""

# /// script
# dependencies = ["smart-model-router", "openai>=3,<4"]
# ///

from __future__ import annotations

import asyncio

import httpx2
import openai

from smart_model_router import SmartModelRouter
from smart_model_router.clients import RouterTransport
from smart_model_router_providers.fault import Fault, FaultServer

QUESTION = [{"role": "user", "content": "What is a circuit breaker?"}]


async def main() -> None:
    """The first provider answers nothing but 503; the client gets both answers from the second."""
    with FaultServer([Fault.status(503)]) as down, FaultServer([Fault.reply("A switch that opens by itself.")]) as up:
        config = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
                for name, server in (("down", down), ("up", up))
            },
            "models": {"smart": {"tiers": [{"targets": ["down/big", "up/big"]}], "last_resort": []}},
        }
        async with (
            SmartModelRouter.from_config(config) as router,
            httpx2.AsyncClient(transport=RouterTransport(router)) as transport,
        ):
            client = openai.AsyncOpenAI(base_url="http://router/v1", api_key="unused", http_client=transport)
            answer = await client.chat.completions.create(model="smart", messages=QUESTION)
            print(answer.choices[0].message.content, "- by", answer.model)
            async for chunk in await client.chat.completions.create(model="smart", messages=QUESTION, stream=True):
                print(chunk.choices[0].delta.content or "", end="")
            print()
    assert down.calls() > 0
    assert up.calls() == 2


if __name__ == "__main__":
    asyncio.run(main())
