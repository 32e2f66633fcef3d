"""The smallest use: ask, stream, and see which target answered. Runs without a key: both providers are in this process.

Put `kind: openai` and `api_key: ${OPENAI_API_KEY}` in the place of `kind: scripted` and the same code asks OpenAI.
"""

from __future__ import annotations

import asyncio

from smart_model_router import SmartModelRouter

CONFIG = {
    "version": 1,
    "providers": {"first": {"kind": "scripted"}, "second": {"kind": "scripted"}},
    "models": {"smart": {"tiers": [{"targets": ["first/big", "second/big"]}, {"targets": ["second/small"]}]}},
}
QUESTION = {"model": "smart", "messages": [{"role": "user", "content": "What is a circuit breaker?"}]}


async def main() -> None:
    """Ask once, stream once, and take the first target out."""
    async with SmartModelRouter.from_config(CONFIG) as router:
        reply = await router.chat(QUESTION, timeout=30)
        print(reply.body["choices"][0]["message"]["content"])
        print("answered by", reply.report.target, "after", len(reply.report.attempts), "attempt(s)")

        stream = router.stream_chat(QUESTION)
        async for chunk in stream:
            for choice in chunk["choices"]:
                print(choice["delta"].get("content") or "", end="", flush=True)
        print("\nstreamed by", stream.report.target, "complete:", stream.report.complete)

        router.isolate("first/big")
        print("without first/big:", router.get_model_for_tier("frontier").target)


if __name__ == "__main__":
    asyncio.run(main())
