"""`make bench-gateways`: CPU a request of `smr serve`, LiteLLM's proxy and Portkey's gateway, in the same minutes.

Each is a process of its own before the same scripted provider: small requests of 8 clients at once. LiteLLM is in its
best configuration: one worker, opentelemetry-sdk installed, a model name that it knows, no callbacks, no database, no
keys. Portkey is pinned, and so are the two packages below it. Needs npm for Portkey.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Generator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field

import aiohttp
from benchmarks._measure import Figure, report
from benchmarks._server import served
from benchmarks.gateway import CLIENTS, SMALL, Process, gateway, many, measured, relay
from benchmarks.gateway_peers.servers import litellm_proxy, portkey_gateway, versions

REQUESTS = 240
KNOWN_MODEL = "gpt-4o-mini"
TIMES_LESS: Mapping[str, int] = {"LiteLLM's proxy": 20, "Portkey's gateway": 2}
"""The factor by which ours has to use less than each of them."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request for the same answer at a server."""

    server: Process
    model: str = "smart"
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """The request."""
        return json.dumps({**SMALL, "model": self.model}).encode()


@contextmanager
def litellm(upstream: str) -> Generator[Asked]:
    """LiteLLM's proxy before one deployment."""
    deployment = {"model": f"openai/{KNOWN_MODEL}", "api_base": upstream, "api_key": "k"}
    config = {
        "model_list": [{"model_name": KNOWN_MODEL, "litellm_params": deployment}],
        "litellm_settings": {"callbacks": [], "telemetry": False, "set_verbose": False},
    }
    with litellm_proxy(config) as server:
        yield Asked(server, KNOWN_MODEL)


@contextmanager
def portkey(upstream: str) -> Generator[Asked]:
    """Portkey's gateway before one provider."""
    headers = {
        "x-portkey-provider": "openai",
        "x-portkey-custom-host": upstream,
        "authorization": "Bearer k",
        "content-type": "application/json",
    }
    with portkey_gateway() as server:
        yield Asked(server, KNOWN_MODEL, headers)


async def compare(asked: Mapping[str, Asked]) -> dict[str, float]:
    """Microseconds of CPU a request, by name."""
    by_url = {one.server.url: one for one in asked.values()}
    async with AsyncExitStack() as stack:
        sessions = {
            url: await stack.enter_async_context(aiohttp.ClientSession(headers=one.headers))
            for url, one in by_url.items()
        }
        return await measured(
            {name: one.server for name, one in asked.items()},
            lambda url: many(sessions[url], url, by_url[url].body, REQUESTS, CLIENTS),
            REQUESTS,
        )


def main() -> int:
    """Install, measure, report."""
    with ExitStack() as stack:
        upstream = stack.enter_context(served(events=10))
        asked = {
            "ours": Asked(stack.enter_context(gateway(upstream))),
            "relay": Asked(stack.enter_context(relay(upstream))),
            "LiteLLM's proxy": stack.enter_context(litellm(upstream)),
            "Portkey's gateway": stack.enter_context(portkey(upstream)),
        }
        taken = asyncio.run(compare(asked))
    print(versions())
    print(f"bare relay: {taken['relay']:,.0f} us CPU a request")
    return report(
        *(
            Figure(
                "gateway",
                taken["ours"],
                "us CPU a request",
                taken[name],
                name,
                taken[name] / times,
                f"{taken[name] / taken['ours']:.1f} times less",
            )
            for name, times in TIMES_LESS.items()
        )
    )


if __name__ == "__main__":
    sys.exit(main())
