"""The routers that are compared, each with a server to share over, and their processes once they are ready."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from typing import Any, cast

from benchmarks.peers.drivers import Driver, started
from benchmarks.peers.driving import Endpoint, Job
from benchmarks.peers.rows import Row

from smart_model_router_providers.fault import FaultServer
from tests.database_servers import ValkeyServer, running

TIMEOUT = 90.0
PAUSE = 0.5
"""Seconds in which a request is answered; after which a caller that was refused asks again."""


@dataclass(frozen=True)
class Kind:
    """A router with its options, which may depend on the port of the server to share over."""

    name: str
    driver: str
    options: Callable[[int], Mapping[str, Any]]


def _ours(port: int) -> Mapping[str, Any]:
    return {"store": {"shared_url": f"valkey://127.0.0.1:{port}/0"}}


def _redis(port: int) -> Mapping[str, Any]:
    return {"redis_host": "127.0.0.1", "redis_port": port}


def _usage(port: int) -> Mapping[str, Any]:
    return {**_redis(port), "routing_strategy": "usage-based-routing-v2", "enable_pre_call_checks": True}


OURS_ALONE = Kind("smart-model-router, nothing shared", "ours", lambda _: {})
OURS = Kind("smart-model-router, Valkey", "ours", _ours)
LITELLM_ALONE = Kind("LiteLLM, nothing shared", "litellm_router", lambda _: {})
SHUFFLE = Kind("LiteLLM, Redis, simple-shuffle", "litellm_router", _redis)
USAGE = Kind("LiteLLM, Redis, usage-based-routing-v2", "litellm_router", _usage)


@dataclass(frozen=True)
class Member:
    """A process that is ready."""

    kind: Kind
    driver: Driver
    server: ValkeyServer


class Reads:
    """The times that a server reads from others' connections: once for a command, or for several sent as one."""

    def __init__(self, server: ValkeyServer) -> None:
        self._client = server.client()
        self._before = self._now()

    def _now(self) -> int:
        return int(self._client.info("stats")["total_reads_processed"])

    def stop(self) -> int:
        """Return those since it was made."""
        with self._client:
            return self._now() - self._before - 1  # the last one was our own


@asynccontextmanager
async def ready(
    kinds: Sequence[Kind],
    *providers: str,
    processes: int = 1,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> AsyncGenerator[list[Member]]:
    """Start so many processes of each kind before these providers; those of one kind share a server.

    `more` are options by driver. Providers after the first back it up.
    """
    with ExitStack() as servers:
        async with AsyncExitStack() as stack:
            warm_up = await stack.enter_async_context(FaultServer())
            own = [(kind, cast("ValkeyServer", servers.enter_context(running(ValkeyServer)))) for kind in kinds]
            endpoints = tuple(Endpoint(name, url, "k") for name, url in zip("ab", providers, strict=False))

            async def member(kind: Kind, server: ValkeyServer, number: int) -> Member:
                options = {**kind.options(server.port), **(more or {}).get(kind.driver, {}), "question": f"p{number}"}
                job = Job(
                    warm_up=Endpoint("w", warm_up.base_url, "k"),
                    endpoints=endpoints,
                    ranked=len(endpoints) > 1,
                    arrivals=(),
                    timeout=TIMEOUT,
                    pause=PAUSE,
                    options=options,
                )
                driver = await stack.enter_async_context(started(Row(kind.name, kind.driver), asdict(job)))
                return Member(kind, driver, server)

            everyone = (member(*one, number) for one in own for number in range(processes))
            yield list(await asyncio.gather(*everyone))
