"""The drop-in AsyncOpenAI (SDK, router and HTTP in one process) against the plain SDK, to the same loopback server."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING

import openai
from benchmarks._measure import Figure, medians, report
from benchmarks._server import served

from smart_model_router.clients import AsyncOpenAI

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam

RUNS = 7
CALLS = 200
EVENTS = 50
MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "How much is two and two?"}]


async def whole(client: openai.AsyncOpenAI, model: str) -> None:
    """One answer."""
    await client.chat.completions.create(model=model, messages=MESSAGES)


async def stream(client: openai.AsyncOpenAI, model: str) -> None:
    """One stream, read to its end."""
    async for _ in await client.chat.completions.create(model=model, messages=MESSAGES, stream=True):
        pass


async def measure(base_url: str) -> list[Figure]:
    """Microseconds of CPU of whole answers and of streams."""
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": base_url, "api_key": "k"}},
        "models": {"fault": {"tiers": [{"targets": ["a/fault"]}], "last_resort": []}},
    }
    async with AsyncOpenAI(config) as ours, openai.AsyncOpenAI(base_url=base_url, api_key="k") as plain:
        answers = await medians(
            {"ours": lambda: whole(ours, "fault"), "plain": lambda: whole(plain, "fault")}, runs=RUNS, calls=CALLS
        )
        streams = await medians(
            {"ours": lambda: stream(ours, "fault"), "plain": lambda: stream(plain, "fault")},
            runs=RUNS,
            calls=CALLS // 8,
        )
    against = "openai SDK over loopback"
    return [
        Figure("drop_in", answers["ours"], "us CPU", answers["plain"], against, answers["plain"]),
        Figure(
            "drop_in_stream", streams["ours"], f"us CPU ({EVENTS} events)", streams["plain"], against, streams["plain"]
        ),
    ]


def main() -> int:
    """Measure against a server in another process."""
    with served(events=EVENTS) as base_url:
        return report(*asyncio.run(measure(base_url)))


if __name__ == "__main__":
    sys.exit(main())
