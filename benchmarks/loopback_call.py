"""The cost of a routed call over loopback HTTP: at most half of what the plain `openai` SDK's `create()` does.

CPU time of this process a call, median of several runs taken in turn; the server runs in another process. The SDK is as
it comes (AsyncOpenAI, its default transport) but for its retries, which are off. httpx2 with nothing around it is
measured for orientation.
"""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import httpx2
from benchmarks._fleet import BODY
from benchmarks._measure import Figure, medians, report
from benchmarks._server import served
from openai import AsyncOpenAI

from smart_model_router import SmartModelRouter

RUNS = 7
CALLS = 300
HALF = 0.5


async def measure(base_url: str) -> Figure:
    """One call after another over one kept connection, by each of the three."""
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": base_url, "api_key": "k"}},
        "models": {"smart": {"tiers": [{"targets": ["a/fault"]}], "last_resort": []}},
    }
    sdk_body: dict[str, Any] = {**BODY, "model": "fault"}
    async with (
        SmartModelRouter.from_config(config) as router,
        AsyncOpenAI(base_url=base_url, api_key="k", max_retries=0) as sdk,
        httpx2.AsyncClient() as bare,
    ):
        taken = await medians(
            {
                "routed": lambda: router.chat(BODY),
                "sdk": lambda: sdk.chat.completions.create(**sdk_body),
                "bare": lambda: bare.post(f"{base_url}/chat/completions", json=sdk_body),
            },
            runs=RUNS,
            calls=CALLS,
        )
    return Figure(
        "loopback_call",
        taken["routed"],
        "us CPU",
        taken["sdk"],
        "openai SDK, create()",
        HALF * taken["sdk"],
        note=f"httpx2 alone {taken['bare']:.0f} us",
    )


def main() -> int:
    """Measure against a server in another process."""
    with served(events=20) as base_url:
        return report(asyncio.run(measure(base_url)))


if __name__ == "__main__":
    sys.exit(main())
