"""A LangGraph agent whose model is a router: the graph plans, the router keeps the model answering.

Needs the extra `langgraph`. Runs without a key: the providers are fault servers, and the first one hangs up on every
question. The graph's nodes call the router itself; a node that calls an SDK would use smart_model_router.clients.
"""

# /// script
# dependencies = ["smart-model-router", "langgraph>=1.2,<1.3"]
# ///

from __future__ import annotations

import asyncio
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from smart_model_router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer


class Notes(TypedDict, total=False):
    """The state that the graph passes from node to node."""

    question: str
    draft: str
    verdict: str
    served_by: list[str]


def graph_over(router: SmartModelRouter) -> Any:
    """Write a draft, have it reviewed, and again until the reviewer is content."""

    async def ask(notes: Notes, tier: str, words: str) -> tuple[str, list[str]]:
        reply = await router.chat({"model": "smart", "messages": [{"role": "user", "content": words}]}, tier=tier)
        text: str = reply.body["choices"][0]["message"]["content"]
        return text, [*notes.get("served_by", []), str(reply.report.target)]

    async def write(notes: Notes) -> Notes:
        draft, served = await ask(notes, "frontier", f"Answer: {notes['question']}")
        return {"draft": draft, "served_by": served}

    async def review(notes: Notes) -> Notes:
        verdict, served = await ask(notes, "standard", f"Is this right? {notes['draft']}")
        return {"verdict": verdict, "served_by": served}

    graph = StateGraph(Notes)
    graph.add_node("write", write)
    graph.add_node("review", review)
    graph.add_edge(START, "write")
    graph.add_edge("write", "review")
    graph.add_conditional_edges("review", lambda notes: END if "yes" in notes["verdict"] else "write")
    return graph.compile()


async def main() -> None:
    """The first provider of the upper tier is gone; the graph does not notice."""
    writer, reviewer = [Fault.reply("A switch that opens by itself.")], [Fault.reply("yes, it is")]
    async with FaultServer([Fault.reset()]) as gone, FaultServer(writer) as large, FaultServer(reviewer) as small:
        urls = {"gone": gone.base_url, "large": large.base_url, "small": small.base_url}
        config = {
            "version": 1,
            "providers": {name: {"kind": "openai_compatible", "base_url": url} for name, url in urls.items()},
            "models": {
                "smart": {
                    "tiers": [{"targets": ["gone/big", "large/big"]}, {"targets": ["small/one"]}],
                    "last_resort": [],
                }
            },
        }
        async with SmartModelRouter.from_config(config) as router:
            notes = await graph_over(router).ainvoke({"question": "What is a circuit breaker?"})
    print(notes["draft"], "-", notes["verdict"])
    print("served by", ", ".join(notes["served_by"]), f"({gone.calls()} calls hung up on)")


if __name__ == "__main__":
    asyncio.run(main())
