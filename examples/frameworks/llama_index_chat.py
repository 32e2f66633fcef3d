"""LlamaIndex over a router: OpenAILike chats and streams, and never meets the provider that is down.

Runs without a key: the providers are fault servers. LlamaIndex uses the second major version of OpenAI's SDK, which is
built on httpx: the router's transport goes into an httpx client.
"""

# /// script
# dependencies = ["smart-model-router", "llama-index-llms-openai-like>=0.8,<0.9"]
# ///

from __future__ import annotations

import asyncio

import httpx
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike

from smart_model_router import SmartModelRouter
from smart_model_router.clients import RouterTransport
from smart_model_router_providers.fault import Fault, FaultServer


async def main() -> None:
    """The first provider hangs up on every call; both answers come from the second."""
    with FaultServer([Fault.reset()]) as gone, FaultServer([Fault.reply("A switch that opens by itself.")]) as up:
        config = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
                for name, server in (("gone", gone), ("up", up))
            },
            "models": {"smart": {"tiers": [{"targets": ["gone/big", "up/big"]}], "last_resort": []}},
        }
        async with (
            SmartModelRouter.from_config(config) as router,
            httpx.AsyncClient(transport=RouterTransport(router)) as transport,
        ):
            llm = OpenAILike(
                model="smart",
                api_base="http://router/v1",
                api_key="unused",
                is_chat_model=True,
                context_window=8192,
                async_http_client=transport,
            )
            question = [ChatMessage("What is a circuit breaker?")]
            answer = await llm.achat(question)
            print(answer.message.content, "- by", answer.raw.model)
            pieces = [piece.delta async for piece in await llm.astream_chat(question)]
            print("".join(piece or "" for piece in pieces))
    assert gone.calls() > 0
    assert up.calls() == 2


if __name__ == "__main__":
    asyncio.run(main())
