"""pydantic-ai over a router: an agent with a tool whose provider fails while the tool runs.

Runs without a key: the providers are fault servers.
"""

# /// script
# dependencies = ["smart-model-router", "pydantic-ai-slim[openai]>=2,<3"]
# ///

from __future__ import annotations

import asyncio

import httpx2
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from smart_model_router import SmartModelRouter
from smart_model_router.clients import RouterTransport
from smart_model_router_providers.fault import Fault, FaultServer

CALL = Fault.reply(tool_calls=[{"name": "temperature", "arguments": {"city": "Oslo"}}])


async def main() -> None:
    """The first provider asks for the tool and is down from then on; the second one answers."""
    with FaultServer([CALL]) as first, FaultServer([Fault.reply("It is 4 degrees.")]) as second:
        config = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
                for name, server in (("first", first), ("second", second))
            },
            "models": {"smart": {"tiers": [{"targets": ["first/big", "second/big"]}], "last_resort": []}},
        }

        def temperature(city: str) -> str:
            """Return how warm it is in a city."""
            first.set([Fault.status(503)])
            return f"4 degrees in {city}"

        async with (
            SmartModelRouter.from_config(config) as router,
            httpx2.AsyncClient(transport=RouterTransport(router)) as transport,
        ):
            client = AsyncOpenAI(base_url="http://router/v1", api_key="unused", http_client=transport)
            model = OpenAIChatModel("smart", provider=OpenAIProvider(openai_client=client))
            run = await Agent(model, tools=[temperature]).run("How warm is it in Oslo?")
            print(run.output, "- by", run.response.model_name)
    assert run.output == "It is 4 degrees."
    assert first.calls() > 1
    assert second.calls() == 1


if __name__ == "__main__":
    asyncio.run(main())
