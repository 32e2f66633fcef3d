"""pydantic-ai's FallbackModel behind an Agent; the SDK's own retries are off, as its documentation advises."""

from __future__ import annotations

import importlib
from typing import Any

from benchmarks.peers.driving import QUESTION, Ask, Job, drive


def make(job: Job) -> Ask:
    """The endpoints in their order."""
    openai: Any = importlib.import_module("openai")
    models: Any = importlib.import_module("pydantic_ai.models.openai")
    provider: Any = importlib.import_module("pydantic_ai.providers.openai").OpenAIProvider
    fallback: Any = importlib.import_module("pydantic_ai.models.fallback").FallbackModel
    agent_of: Any = importlib.import_module("pydantic_ai").Agent

    def model(base_url: str, key: str) -> Any:
        client = openai.AsyncOpenAI(base_url=base_url, api_key=key, max_retries=0, timeout=job.timeout)
        return models.OpenAIChatModel("m", provider=provider(openai_client=client))

    agent = agent_of(fallback(*(model(endpoint.base_url, endpoint.key) for endpoint in job.endpoints)))

    async def ask() -> object:
        return (await agent.run(QUESTION)).output

    return ask


if __name__ == "__main__":
    drive("pydantic-ai-slim", make)
