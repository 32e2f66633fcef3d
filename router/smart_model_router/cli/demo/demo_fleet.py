"""The demo's fleet: three providers on loopback sockets, the real local model, and one router over them."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AsyncExitStack
from types import MappingProxyType, TracebackType
from typing import Any, Self

from smart_model_router.domain.events import Event
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer

MODEL = "demo"
PRIMARY, SECOND, LOWER = "atlas", "boreas", "cirrus"
REMOTES = (PRIMARY, SECOND, LOWER)
LAST_RESORT = "local/smollm2"

TIMINGS: Mapping[str, float] = MappingProxyType(
    {
        "breaker open": 3.0,
        "cooldown after failures": 1.0,
        "cooldown after timeouts": 1.0,
        "slow start after a recovery": 1.0,
        "patience with a silent stream": 1.0,
        "wait before the last resort, at most": 4.0,
    }
)
"""Seconds. All short, so that the demo is; the defaults are ten times as long."""

LOCAL_SECONDS = 90.0
"""The most that the model may take to load, and to answer. It is real, and machines differ."""


def target(provider: str) -> str:
    """The one target of a provider."""
    return f"{provider}/{'small' if provider == LOWER else 'large'}"


def configuration(urls: Mapping[str, str]) -> dict[str, Any]:
    """The configuration as a user would write it, but for the short timings. `urls` are the providers' by name."""
    remotes = {name: {"kind": "openai_compatible", "base_url": url, "api_key": "demo"} for name, url in urls.items()}
    return {
        "version": 1,
        "providers": {**remotes, "local": {"kind": "local"}},
        "models": {
            MODEL: {
                "strategy": "ordered",
                "tiers": [
                    {"name": "frontier", "targets": [target(PRIMARY), target(SECOND)]},
                    {"name": "standard", "targets": [target(LOWER)]},
                ],
                "last_resort": [{"target": LAST_RESORT, "timeout": LOCAL_SECONDS}],
            }
        },
        "local": {"start_timeout": LOCAL_SECONDS},
        "routing": {"last_resort_after": TIMINGS["wait before the last resort, at most"]},
        "resilience": {
            "breaker": {"open": TIMINGS["breaker open"]},
            "cooldown": {
                "failure": TIMINGS["cooldown after failures"],
                "timeout": TIMINGS["cooldown after timeouts"],
            },
            "slow_start": TIMINGS["slow start after a recovery"],
            "timeouts": {"first_content": TIMINGS["patience with a silent stream"]},
        },
    }


class DemoFleet:
    """Servers and router, alive within `async with`. `events` are all the router told, oldest first."""

    inline = True

    def __init__(self) -> None:
        self.servers = {name: FaultServer(name=name, models=[target(name).partition("/")[2]]) for name in REMOTES}
        self.events: list[Event] = []
        self.router: SmartModelRouter
        self._stack = AsyncExitStack()

    def emit(self, event: Event) -> None:
        """Take an event of the router (ports.EventSink)."""
        self.events.append(event)

    def fail(self, *faults: Fault, at: tuple[str, ...] = (PRIMARY,)) -> None:
        """Let these providers follow this script from now on."""
        for name in at:
            self.servers[name].set(list(faults))

    def heal(self) -> None:
        """Let every provider be well again."""
        for server in self.servers.values():
            server.set(None)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for server in self.servers.values():
                await stack.enter_async_context(server)
            urls = {name: server.base_url for name, server in self.servers.items()}
            router = SmartModelRouter.from_config(configuration(urls), sinks=[self])
            self.router = await stack.enter_async_context(router)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()
