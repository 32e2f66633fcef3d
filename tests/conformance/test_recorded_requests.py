"""Every recorded request by every dialect a provider may speak, through the router and over real sockets."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.request import Dialect
from smart_model_router_providers.fault import FaultServer
from tests.conformance.recorded_requests import EVENTS, REQUESTS, TOOL_IDS, WHOLE, told

pytestmark = pytest.mark.asyncio

KINDS: dict[Dialect, str] = {"chat": "groq", "messages": "anthropic", "responses": "openai"}
MATRIX = [
    pytest.param(kind, client, dialect, body, id=f"{client} by {kind}")
    for kind in sorted(KINDS.values())
    for client, dialect, body in REQUESTS
    if KINDS[dialect] != kind
]


@asynccontextmanager
async def routed(kind: str) -> AsyncGenerator[tuple[Any, FaultServer]]:
    """A router with one provider, of this kind, which is the fault server."""
    async with FaultServer(text="Paris it is.") as server:
        tree = {
            "version": 1,
            "providers": {"p": {"kind": kind, "base_url": server.base_url, "api_key": "k"}},
            "models": {
                "mock-model": {
                    "tiers": [{"name": "frontier", "targets": [{"target": "p/upstream"}]}],
                    "last_resort": [],
                }
            },
        }
        async with SmartModelRouter.from_config(tree, seed=1) as router:
            yield router, server


@pytest.mark.parametrize(("kind", "client", "dialect", "body"), MATRIX)
async def test_a_recorded_request_is_served_by_every_other_dialect(
    kind: str, client: str, dialect: Dialect, body: dict[str, Any]
) -> None:
    """The client's SDK can parse the answer, whole and streamed; ids of tools reach the provider in order."""
    request = {"model": "mock-model", **body}
    async with routed(kind) as (router, server):
        reply = await getattr(router, dialect)(request)
        stream = getattr(router, f"stream_{dialect}")(request)
        events = [event async for event in stream]
    WHOLE[dialect].validate_python(reply.body, strict=False)
    for event in events:
        EVENTS[dialect].validate_python(event)
    assert "Paris it is." in json.dumps(reply.body)
    assert stream.text == "Paris it is."
    assert all(told(sent.body) == TOOL_IDS.get(client, []) for sent in server.requests)


@pytest.mark.parametrize(
    ("client", "dialect", "body"),
    [pytest.param(client, dialect, body, id=client) for client, dialect, body in REQUESTS],
)
async def test_the_same_dialect_is_sent_as_it_came(client: str, dialect: Dialect, body: dict[str, Any]) -> None:
    """Equal as JSON but for `model` and what says how to stream, which is the router's to say: nothing is lost."""
    async with routed(KINDS[dialect]) as (router, server):
        reply = await getattr(router, dialect)({"model": "mock-model", **body})
    sent = dict(server.requests[-1].body)
    assert (sent.pop("model"), reply.report.losses) == ("upstream", [])
    assert sent == {key: value for key, value in body.items() if key not in ("stream", "stream_options")}
