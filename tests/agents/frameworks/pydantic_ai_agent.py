"""pydantic-ai: an agent with a tool, run whole and as a stream, on its Chat, Responses and Messages models."""

from __future__ import annotations

import asyncio

from _doors import CONFIG, anthropic_clients, openai_clients
from pydantic_ai import Agent, Tool
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from smart_model_router import SmartModelRouter
from tests.agents.plan import QUESTION
from tests.agents.telling import Weather, play

OPENAI = {"chat": OpenAIChatModel, "responses": OpenAIResponsesModel}


async def main() -> None:
    """Play every task."""
    async with SmartModelRouter.from_config(CONFIG) as router:
        of_openai, of_anthropic = openai_clients(router), anthropic_clients(router)

        def agent(way: str, api: str, name: str, weather: Weather | None) -> Agent:
            tools = [Tool(weather.look, name="weather")] if weather else []
            if api == "messages":
                provider = AnthropicProvider(anthropic_client=of_anthropic[way])
                return Agent(AnthropicModel(name, provider=provider), tools=tools)
            return Agent(OPENAI[api](name, provider=OpenAIProvider(openai_client=of_openai[way])), tools=tools)

        async def whole(way: str, api: str, name: str, weather: Weather) -> str:
            return (await agent(way, api, name, weather).run(QUESTION)).output

        async def streamed(way: str, api: str, name: str, weather: Weather | None) -> list[str]:
            async with agent(way, api, name, weather).run_stream(QUESTION) as run:
                return [piece async for piece in run.stream_text(delta=True, debounce_by=None)]

        await play((*OPENAI, "messages"), whole, streamed)


asyncio.run(main())
