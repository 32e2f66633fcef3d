"""LlamaIndex: a tool and streams on OpenAILike, OpenAIResponses and Anthropic; OpenAILike's prompts are Completions."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
from _doors import CONFIG, GATEWAY, INVALID, KEY
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.tools import FunctionTool
from llama_index.llms.anthropic import Anthropic
from llama_index.llms.openai import OpenAIResponses
from llama_index.llms.openai_like import OpenAILike

from smart_model_router import SmartModelRouter
from smart_model_router.clients import AsyncOpenAI, RouterTransport
from tests.agents.plan import CLAUDES, DIALECTS, QUESTION, WAYS, model
from tests.agents.telling import Weather, check_answer, check_pieces, play, told

WINDOW = {"context_window": 8192}


async def main() -> None:
    """Play every task. Its Anthropic class takes no client of its user's: it goes through the gateway only."""
    async with SmartModelRouter.from_config(CONFIG) as router:
        over = httpx.AsyncClient(transport=RouterTransport(router))
        ways: dict[str, dict[str, Any]] = {
            "transport": {"api_base": f"{INVALID}/v1", "async_http_client": over},
            "drop-in": {"async_openai_client": AsyncOpenAI(router)},
            "gateway": {"api_base": f"{GATEWAY}/v1"},
        }

        def chosen(way: str, api: str, name: str) -> Any:
            if api == "messages":
                return Anthropic(model=CLAUDES[name], base_url=GATEWAY, api_key=KEY)
            if api == "responses":
                return OpenAIResponses(model=name, api_key=KEY, **WINDOW, **ways[way])
            chat = {"is_chat_model": True, "is_function_calling_model": True}
            return OpenAILike(model=name, api_key=KEY, **WINDOW, **chat, **ways[way])

        async def asked(way: str, api: str, name: str, weather: Weather) -> tuple[Any, list[ChatMessage]]:
            """The model, and the conversation up to the tool's result."""
            look = FunctionTool.from_defaults(weather.look, name="weather")
            llm, question = chosen(way, api, name), ChatMessage(role=MessageRole.USER, content=QUESTION)
            if "stream" in name:
                *_, said = [piece async for piece in await llm.astream_chat_with_tools([look], chat_history=[question])]
            else:
                said = await llm.achat_with_tools([look], chat_history=[question])
            calls = llm.get_tool_calls_from_response(said)
            results = [
                ChatMessage(
                    role=MessageRole.TOOL,
                    content=look(**call.tool_kwargs).content,
                    additional_kwargs={"tool_call_id": call.tool_id},
                )
                for call in calls
            ]
            return llm, [question, said.message, *results]

        async def pieces(llm: Any, conversation: list[ChatMessage]) -> list[str]:
            return [piece.delta async for piece in await llm.astream_chat(conversation) if piece.delta]

        async def whole(way: str, api: str, name: str, weather: Weather) -> str:
            llm, conversation = await asked(way, api, name, weather)
            return (await llm.achat(conversation)).message.content

        async def streamed(way: str, api: str, name: str, weather: Weather | None) -> list[str]:
            if weather is None:
                return await pieces(chosen(way, api, name), [ChatMessage(role=MessageRole.USER, content=QUESTION)])
            return await pieces(*await asked(way, api, name, weather))

        await play(["chat", "responses"], whole, streamed)
        await play(["messages"], whole, streamed, ["gateway"])
        for way, dialect in [(way, dialect) for way in WAYS for dialect in DIALECTS]:
            name = model(way, dialect, "completions", "whole")
            async with told(name):
                check_answer(
                    (await OpenAILike(model=name, api_key=KEY, **WINDOW, **ways[way]).acomplete(QUESTION)).text
                )
            name = model(way, dialect, "completions", "stream")
            async with told(name):
                llm = OpenAILike(model=name, api_key=KEY, **WINDOW, **ways[way])
                check_pieces([piece.delta async for piece in await llm.astream_complete(QUESTION) if piece.delta])


asyncio.run(main())
