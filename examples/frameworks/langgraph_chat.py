"""A LangGraph conversation on LangChain's ChatOpenAI, with a router below and its checkpoints in a file.

Needs the extra `langgraph`, and `pip install langchain-openai`. Runs without a key: the providers are fault servers,
and the first one is down. The second half knows nothing but the file and the thread's name, as a process that is
started later would.
"""

# /// script
# dependencies = ["smart-model-router", "langgraph>=1.2,<1.3", "langchain-openai>=1,<2"]
# ///

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import httpx2
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from langgraph.graph import START, MessagesState, StateGraph

from smart_model_router import SmartModelRouter
from smart_model_router.clients import RouterTransport
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_research.engine import RunSaver, SqliteRunStore


async def turn(config: dict[str, Any], runs: Path, question: str) -> list[str]:
    """Ask one question in the conversation; returns all that was said in it."""
    store = SqliteRunStore(runs)
    async with (
        SmartModelRouter.from_config(config) as router,
        httpx2.AsyncClient(transport=RouterTransport(router)) as client,
    ):
        model = ChatOpenAI(model="smart", api_key="unused", base_url="http://router/v1", http_async_client=client)

        async def talk(state: MessagesState) -> dict[str, Any]:
            return {"messages": [await model.ainvoke(state["messages"])]}

        graph = StateGraph(MessagesState)
        graph.add_node("talk", talk)
        graph.add_edge(START, "talk")
        app = graph.compile(checkpointer=RunSaver(store))
        thread = {"configurable": {"thread_id": "chat/ann"}}
        state = await app.ainvoke({"messages": [HumanMessage(question)]}, thread, durability="sync")
    await store.aclose()
    return [message.text for message in state["messages"]]


async def main() -> None:
    """Two turns; the second one has the first in it."""
    replies = [Fault.reply("Ten thousand.", times=1), Fault.reply("As I said: ten thousand.")]
    with FaultServer([Fault.status(503)]) as down, FaultServer(replies) as up, tempfile.TemporaryDirectory() as folder:
        config = {
            "version": 1,
            "providers": {
                name: {"kind": "openai_compatible", "base_url": server.base_url, "api_key": "k"}
                for name, server in (("down", down), ("up", up))
            },
            "models": {"smart": {"tiers": [{"targets": ["down/a", "up/a"]}], "last_resort": []}},
        }
        runs = Path(folder) / "runs.db"
        await turn(config, runs, "How many bees are in a hive?")
        said = await turn(config, runs, "How many?")
        print(*said, sep="\n")
        assert len(said) == 4, said
        assert up.calls() == 2


if __name__ == "__main__":
    asyncio.run(main())
