"""LangChain: bound tools and streams on ChatOpenAI (both APIs) and ChatAnthropic; plain completions, embeddings."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
from _doors import CONFIG, GATEWAY, INVALID, KEY
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings

from smart_model_router import SmartModelRouter
from smart_model_router.clients import AsyncOpenAI, RouterTransport
from tests.agents.plan import DIALECTS, QUESTION, model
from tests.agents.telling import Weather, check_answer, check_pieces, play, told

OPENAI = ("chat", "responses")


async def main() -> None:
    """Play every task. ChatAnthropic takes no client of its user's: it goes through the gateway only."""
    async with SmartModelRouter.from_config(CONFIG) as router:
        over = {"http_async_client": httpx2.AsyncClient(transport=RouterTransport(router))}
        dropped = AsyncOpenAI(router)
        ways: dict[str, dict[str, Any]] = {
            "transport": {"base_url": f"{INVALID}/v1", **over},
            "drop-in": {"async_client": dropped.chat.completions, "root_async_client": dropped},
            "gateway": {"base_url": f"{GATEWAY}/v1"},
        }

        def chosen(way: str, api: str, name: str) -> Any:
            if api == "messages":
                return ChatAnthropic(model=name, base_url=GATEWAY, api_key=KEY)
            return ChatOpenAI(model=name, api_key=KEY, use_responses_api=api == "responses", **ways[way])

        async def called(bound: Any, name: str) -> Any:
            if "stream" not in name:
                return await bound.ainvoke([HumanMessage(QUESTION)])
            first, *rest = [piece async for piece in bound.astream([HumanMessage(QUESTION)])]
            return sum(rest, first)

        async def asked(way: str, api: str, name: str, weather: Weather) -> tuple[Any, list[Any]]:
            """The model with its tool, and the conversation up to the tool's result."""
            look = tool("weather", description="How warm it is.")(weather.look)
            bound = chosen(way, api, name).bind_tools([look])
            said = await called(bound, name)
            results = [ToolMessage(look.invoke(call["args"]), tool_call_id=call["id"]) for call in said.tool_calls]
            return bound, [HumanMessage(QUESTION), said, *results]

        async def pieces(of: Any, conversation: list[Any]) -> list[str]:
            return [piece.text async for piece in of.astream(conversation) if piece.text]

        async def whole(way: str, api: str, name: str, weather: Weather) -> str:
            bound, conversation = await asked(way, api, name, weather)
            return (await bound.ainvoke(conversation)).text

        async def streamed(way: str, api: str, name: str, weather: Weather | None) -> list[str]:
            if weather is None:
                return await pieces(chosen(way, api, name), [HumanMessage(QUESTION)])
            return await pieces(*await asked(way, api, name, weather))

        await play(OPENAI, whole, streamed)
        await play(["messages"], whole, streamed, ["gateway"])
        for way, dialect in [(way, dialect) for way in ("transport", "gateway") for dialect in DIALECTS]:
            name = model(way, dialect, "completions", "whole")
            async with told(name):
                check_answer(await OpenAI(model=name, api_key=KEY, **ways[way]).ainvoke(QUESTION))
            name = model(way, dialect, "completions", "stream")
            async with told(name):
                legacy = OpenAI(model=name, api_key=KEY, **ways[way])
                check_pieces([piece async for piece in legacy.astream(QUESTION) if piece])
        for way in ("transport", "gateway"):
            name = model(way, "chat", "embeddings", "embed")
            async with told(name):
                # The tokenizer would be fetched from the network: texts go out as texts.
                embeddings = OpenAIEmbeddings(model=name, api_key=KEY, check_embedding_ctx_length=False, **ways[way])
                vectors = await embeddings.aembed_documents([QUESTION, "And in Bergen?"])
                assert len(vectors) == 2
                assert all(vectors)


asyncio.run(main())
