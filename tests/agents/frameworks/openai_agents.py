"""openai-agents: an agent with a tool, run whole and as a stream, on its Chat model and its Responses model."""

from __future__ import annotations

import asyncio

import agents
from _doors import CONFIG, openai_clients
from openai.types.responses import ResponseTextDeltaEvent

from smart_model_router import SmartModelRouter
from tests.agents.plan import QUESTION
from tests.agents.telling import Weather, play

MODELS = {"chat": agents.OpenAIChatCompletionsModel, "responses": agents.OpenAIResponsesModel}


async def main() -> None:
    """Play every task."""
    agents.set_tracing_disabled(True)
    async with SmartModelRouter.from_config(CONFIG) as router:
        clients = openai_clients(router)

        def agent(way: str, api: str, name: str, weather: Weather | None) -> agents.Agent:
            tools = [agents.function_tool(weather.look, name_override="weather")] if weather else []
            chosen = MODELS[api](name, openai_client=clients[way])
            return agents.Agent(name="assistant", instructions="Be brief.", model=chosen, tools=tools)

        async def whole(way: str, api: str, name: str, weather: Weather) -> str:
            return (await agents.Runner.run(agent(way, api, name, weather), QUESTION)).final_output

        async def streamed(way: str, api: str, name: str, weather: Weather | None) -> list[str]:
            run = agents.Runner.run_streamed(agent(way, api, name, weather), QUESTION)
            return [
                event.data.delta
                async for event in run.stream_events()
                if event.type == "raw_response_event" and isinstance(event.data, ResponseTextDeltaEvent)
            ]

        await play(MODELS, whole, streamed)


asyncio.run(main())
