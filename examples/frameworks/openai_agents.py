"""openai-agents over a router: an agent that hands over to another one, while its provider fails.

Runs without a key: the providers are fault servers.
"""

# /// script
# dependencies = ["smart-model-router", "openai-agents>=0.24,<1"]
# ///

from __future__ import annotations

import asyncio

import agents
import httpx2
from openai import AsyncOpenAI

from smart_model_router import SmartModelRouter
from smart_model_router.clients import RouterTransport
from smart_model_router_providers.fault import Fault, FaultServer

HAND_OVER = Fault.reply(tool_calls=[{"name": "transfer_to_expert", "arguments": {}}])


async def main() -> None:
    """The first provider hands over to the expert and is down from then on; the expert answers by the second."""
    agents.set_tracing_disabled(True)  # it would be sent to OpenAI
    answers = [Fault.reply("A switch that opens by itself.")]
    with FaultServer([HAND_OVER]) as first, FaultServer(answers) as second:
        config = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
                for name, server in (("first", first), ("second", second))
            },
            "models": {"smart": {"tiers": [{"targets": ["first/big", "second/big"]}], "last_resort": []}},
        }
        async with (
            SmartModelRouter.from_config(config) as router,
            httpx2.AsyncClient(transport=RouterTransport(router)) as transport,
        ):
            client = AsyncOpenAI(base_url="http://router/v1", api_key="unused", http_client=transport)
            model = agents.OpenAIChatCompletionsModel("smart", openai_client=client)
            expert = agents.Agent(name="expert", instructions="Explain.", model=model)
            over = agents.handoff(expert, on_handoff=lambda _: first.set([Fault.status(500)]))
            desk = agents.Agent(name="desk", instructions="Hand over.", model=model, handoffs=[over])
            run = await agents.Runner.run(desk, "What is a circuit breaker?")
            print(run.final_output, "- by the agent", run.last_agent.name)
    assert run.last_agent is expert
    assert first.calls() > 1
    assert second.calls() == 1


if __name__ == "__main__":
    asyncio.run(main())
