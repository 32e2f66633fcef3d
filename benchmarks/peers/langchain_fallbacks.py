"""LangChain's with_fallbacks over ChatOpenAI; the SDK's own retries are off, as its documentation advises."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.peers.driving import QUESTION, Ask, Job, drive


def make(job: Job) -> Ask:
    """The endpoints in their order."""
    chat: Any = importlib.import_module("langchain_openai").ChatOpenAI
    first, *others = (
        chat(model="m", base_url=endpoint.base_url, api_key=endpoint.key, max_retries=0, timeout=job.timeout)
        for endpoint in job.endpoints
    )
    chain = first.with_fallbacks(others) if others else first

    async def ask() -> object:
        return (await chain.ainvoke(QUESTION)).content

    return ask


if __name__ == "__main__":
    drive("langchain-core", make)
