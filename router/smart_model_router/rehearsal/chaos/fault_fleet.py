"""A fault server in the place of every provider of a configuration, and the router over them."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from types import TracebackType
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

from smart_model_router.config import (
    EvaluationConfig,
    GatewayConfig,
    ModelConfig,
    ProviderConfig,
    RouterConfig,
    SearchConfig,
    Secret,
    StoreConfig,
)
from smart_model_router.config.telemetry import TelemetryConfig
from smart_model_router.flow.clock import WallClock
from smart_model_router.rehearsal.chaos.time_scale import shortened
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.catalog import kind_of
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_providers.http import HttpProvider

if TYPE_CHECKING:
    from smart_model_router.domain.events import Event

ANSWER = "chaos"
"""The name of every server: whichever of them serve, and however many share an answer, its text is the same."""


def drill(config: RouterConfig, model: str, speed: float) -> RouterConfig:
    """The part of a configuration under test: one model with its providers and every rule, durations shortened.

    Keys and headers are dummies of the same number; statistics stay in memory; no port is opened and no sink is called.
    """
    tested = config.resolve(model)
    resorts = tested.last_resort or ()
    used = {mention.provider for tier in tested.tiers for mention in tier.targets} | {one.provider for one in resorts}
    shared = config.store.path is not None and config.store.shared_state
    return replace(
        config,
        providers={name: _disguised(provider) for name, provider in config.providers.items() if name in used},
        models={tested.name: replace(shortened(tested, speed), last_resort=shortened(resorts, speed))},
        aliases={},
        routing=replace(shortened(config.routing, speed), default_model=tested.name),
        resilience=shortened(config.resilience, speed),
        store=StoreConfig(processes=1 if shared else config.store.processes),
        gateway=GatewayConfig(),
        search=SearchConfig(),
        evaluation=EvaluationConfig(),
        telemetry=TelemetryConfig(),
    )


def _disguised(provider: ProviderConfig) -> ProviderConfig:
    keys = tuple(Secret(f"chaos-{number}") for number, _ in enumerate(provider.api_key, 1))
    return replace(provider, api_key=keys, headers=dict.fromkeys(provider.headers, Secret("chaos")))


class FaultFleet:
    """Servers and router for one scenario, alive within `async with`. `config` comes from `drill`.

    `events` are all the router told, oldest first. `wall` is the wall clock as a router reads that was told not to use
    the monotonic one; setting it changes no other.
    """

    inline = True

    def __init__(self, config: RouterConfig, seed: int) -> None:
        self.config = config
        self.model: ModelConfig = config.models[config.default_name or next(iter(config.models))]
        self.servers = {name: FaultServer(seed=seed, name=ANSWER, keep_requests=10_000) for name in config.providers}
        self.events: list[Event] = []
        self.wall = SteppedWallClock()
        self.router: SmartModelRouter
        self._seed = seed
        self._stack = AsyncExitStack()

    def emit(self, event: Event) -> None:
        """Take an event of the router (ports.EventSink)."""
        self.events.append(event)

    def strike(self, *faults: Fault, at: str) -> None:
        """Let a provider follow this script from now on; no fault: it is well."""
        self.servers[at].set(list(faults) or None)

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            for server in self.servers.values():
                await stack.enter_async_context(server)
            self.router = SmartModelRouter.from_config(
                self.config,
                clock=None if self.config.resilience.measures.monotonic_clock else self.wall,
                seed=self._seed,
                providers={name: self._stand_in(name) for name in self.servers},
                sinks=[self],
            )
            await stack.enter_async_context(self.router)
            self._stack = stack.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stack.aclose()

    def _stand_in(self, name: str) -> HttpProvider:
        """The provider as it is configured, but for where it is: the path of its URL stays, too."""
        provider = self.config.providers[name]
        speaks_http = kind_of(provider.kind).path == kind_of("openai_compatible").path
        kind = provider.kind if speaks_http else "openai_compatible"
        path = urlsplit(provider.base_url or kind_of(kind).base_url or "http://x/v1").path
        return HttpProvider(
            kind=kind,
            base_url=f"http://127.0.0.1:{self.servers[name].port}{path}",
            api_keys=[key.reveal() for key in provider.api_key],
            api_version=provider.api_version,
            headers={header: value.reveal() for header, value in provider.headers.items()},
            drop_params=provider.drop_params,
        )


class SteppedWallClock(WallClock):
    """The wall clock of a machine after it was set: `ahead` is the difference in seconds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def now(self) -> float:
        """Seconds since the epoch, as this machine has it."""
        return super().now() + self.ahead
