"""LangChain over a router: ChatOpenAI with a tool, whose provider fails between the call of the tool and the answer.

Runs without a key: the providers are fault servers.
"""

# /// script
# dependencies = ["smart-model-router", "langchain-openai>=1,<2"]
# ///

from __future__ import annotations

import asyncio

import httpx2
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI

from smart_model_router import SmartModelRouter
from smart_model_router.clients import RouterTransport
from smart_model_router_providers.fault import Fault, FaultServer


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


CALL = Fault.reply(tool_calls=[{"name": "add", "arguments": {"a": 19, "b": 23}}])


async def main() -> None:
    """The first provider asks for the tool and is down from then on; the second one answers."""
    with FaultServer([CALL]) as first, FaultServer([Fault.reply("The sum is 42.")]) as second:
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
            model = ChatOpenAI(
                model="smart", api_key="unused", base_url="http://router/v1", http_async_client=transport
            )
            bound = model.bind_tools([add])
            asked = [HumanMessage("What is 19 + 23?")]
            wanted = await bound.ainvoke(asked)
            first.set([Fault.status(500)])
            results = [
                ToolMessage(str(add.invoke(call["args"])), tool_call_id=call["id"]) for call in wanted.tool_calls
            ]
            answer = await bound.ainvoke([*asked, wanted, *results])
            print(answer.text, "- by", answer.response_metadata["model_name"])
    assert [message.content for message in results] == ["42"]
    assert first.calls() > 1
    assert second.calls() == 1


if __name__ == "__main__":
    asyncio.run(main())
