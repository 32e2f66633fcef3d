"""An agent written for the OpenAI SDK, with one import changed: its provider fails under it, and it finishes its work.

Runs without a key: both providers are fault servers on this machine. In your program the configuration names real
ones, and the only line that changes is `from openai import OpenAI`.
"""

from __future__ import annotations

import json
from typing import Any

from smart_model_router.clients import OpenAI, report_of
from smart_model_router_providers.fault import Fault, FaultServer

TOOLS: list[Any] = [
    {
        "type": "function",
        "function": {
            "name": "add",
            "description": "Add two numbers.",
            "parameters": {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}},
        },
    }
]
# What a model would say: a call of the tool first, then the answer.
WORDS = [
    Fault.reply(tool_calls=[{"name": "add", "arguments": {"a": 19, "b": 23}}], times=1),
    Fault.reply("The sum is 42."),
]


def agent(client: OpenAI, question: str) -> str:
    """The usual loop: ask, do what the model wants done, ask again, until it has an answer."""
    messages: list[Any] = [{"role": "user", "content": question}]
    for _ in range(5):
        answer = client.chat.completions.create(model="smart", messages=messages, tools=TOOLS)
        said = answer.choices[0].message
        print("answered by", report_of(answer).target)
        if not said.tool_calls:
            return said.content or ""
        messages.append(said.model_dump(exclude_none=True))
        for call in said.tool_calls:
            if call.type == "function":
                result = sum(json.loads(call.function.arguments).values())
                messages.append({"role": "tool", "tool_call_id": call.id, "content": str(result)})
    raise RuntimeError("the agent is going in circles")


def main() -> None:
    """The first provider has nothing but errors; the agent never hears of it."""
    with FaultServer([Fault.status(503)]) as first, FaultServer(WORDS) as second:
        config = {
            "version": 1,
            "providers": {
                "first": {"kind": "openai_compatible", "base_url": first.base_url, "api_key": "k"},
                "second": {"kind": "openai_compatible", "base_url": second.base_url, "api_key": "k"},
            },
            "models": {"smart": {"tiers": [{"targets": ["first/big", "second/big"]}], "last_resort": []}},
        }
        with OpenAI(config) as client:
            print(agent(client, "What is 19 + 23?"))
        print("calls at the first provider:", first.calls(), "- at the second:", second.calls())


if __name__ == "__main__":
    main()
