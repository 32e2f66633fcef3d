"""A provider of your own: anything with three methods. This one answers from a table, and says so when it cannot.

Failures are returned, not raised; their class decides what follows (a cooldown, the breaker, the next target).
"""

from __future__ import annotations

import asyncio
import json

from smart_model_router import FailureClass, SmartModelRouter
from smart_model_router.domain.outcome import Failure, Outcome, Success, Usage
from smart_model_router.domain.ports import ProviderCall, ProviderStream

ANSWERS = {"What is the capital of France?": "Paris."}
CONFIG = {
    "version": 1,
    "providers": {
        "table": {"kind": "groq"},
        "model": {"kind": "scripted"},
    },  # the kind: what it speaks; here Chat alone
    "models": {"smart": {"tiers": [{"targets": ["table/facts", "model/big"]}], "last_resort": []}},
}


class Table:
    """Answers what it knows (ports.Provider)."""

    async def call(self, call: ProviderCall) -> Outcome:
        """A whole answer, or a failure of which everyone knows what it means."""
        question = call.body["messages"][-1]["content"]
        answer = ANSWERS.get(question)
        if answer is None:
            return Failure(FailureClass.EMPTY, "not in the table")
        choice = {"index": 0, "message": {"role": "assistant", "content": answer}, "finish_reason": "stop"}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": call.model, "choices": [choice]}
        return Success(body, json.dumps(body).encode(), usage=Usage(len(question) // 4, len(answer) // 4))

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """It does not stream: streams go to the next target."""
        return Failure(FailureClass.MISCONFIGURED, f"{call.model} does not stream")

    async def aclose(self) -> None:
        """Nothing to close."""


async def main() -> None:
    """One question it knows, and one that the next target answers instead."""
    async with SmartModelRouter.from_config(CONFIG, providers={"table": Table()}) as router:
        for question in ("What is the capital of France?", "And of the moon?"):
            reply = await router.chat({"model": "smart", "messages": [{"role": "user", "content": question}]})
            print(reply.report.target, "says:", reply.body["choices"][0]["message"]["content"])


if __name__ == "__main__":
    asyncio.run(main())
