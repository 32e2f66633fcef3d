"""How a framework gets to the router: over its transport, by a drop-in client, and through `smr serve`."""

from __future__ import annotations

import os

import anthropic
import httpx2
import openai

from smart_model_router import SmartModelRouter
from smart_model_router.clients import AsyncAnthropic, AsyncOpenAI, RouterTransport

CONFIG = os.environ["SMR_AGENTS_CONFIG"]
GATEWAY = os.environ["SMR_AGENTS_GATEWAY"]
INVALID = "http://router.invalid"
KEY = "unused"


def openai_clients(router: SmartModelRouter) -> dict[str, openai.AsyncOpenAI]:
    """OpenAI's client for each way."""
    over = httpx2.AsyncClient(transport=RouterTransport(router))
    return {
        "transport": openai.AsyncOpenAI(base_url=f"{INVALID}/v1", api_key=KEY, http_client=over),
        "drop-in": AsyncOpenAI(router),
        "gateway": openai.AsyncOpenAI(base_url=f"{GATEWAY}/v1", api_key=KEY),
    }


def anthropic_clients(router: SmartModelRouter) -> dict[str, anthropic.AsyncAnthropic]:
    """Anthropic's client for each way."""
    over = httpx2.AsyncClient(transport=RouterTransport(router))
    return {
        "transport": anthropic.AsyncAnthropic(base_url=INVALID, api_key=KEY, http_client=over),
        "drop-in": AsyncAnthropic(router),
        "gateway": anthropic.AsyncAnthropic(base_url=GATEWAY, api_key=KEY),
    }
