"""Fault servers in the place of a configuration's providers: the fleet, its time scale, and a guard of the network."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import fields, is_dataclass, replace
from functools import cache
from ipaddress import ip_address
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any, Self, TypeVar, get_args, get_origin, get_type_hints
from urllib.parse import urlsplit

from smart_model_router.config import (
    EvaluationConfig,
    GatewayConfig,
    ModelConfig,
    ProviderConfig,
    ResearchConfig,
    RouterConfig,
    SearchConfig,
    Secret,
    StoreConfig,
)
from smart_model_router.config.sections import TelemetryConfig
from smart_model_router.core.checked_options import Unit
from smart_model_router.flow.clock import WallClock
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.catalog import kind_of
from smart_model_router_providers.fault import Fault, FaultServer
from smart_model_router_providers.http import HttpProvider

if TYPE_CHECKING:
    from smart_model_router.domain.events import Event

SHORTEST = 0.25
"""Seconds. Nothing is shortened below it: below it a busy machine, not the router, would decide."""

T = TypeVar("T")


def shortened(options: T, speed: float) -> T:
    """The same options, each duration divided by `speed` (at least 1) down to `SHORTEST`. Counts and shares stay."""
    return options if speed <= 1 else _shortened(options, speed)


def _shortened(options: Any, speed: float) -> Any:
    if isinstance(options, tuple):
        return tuple(_shortened(one, speed) for one in options)
    if isinstance(options, Mapping):
        return {key: _shortened(value, speed) for key, value in options.items()}
    if not is_dataclass(options) or isinstance(options, type):
        return options
    durations = _durations(type(options))
    changed: dict[str, Any] = {}
    for field in fields(options):
        value = getattr(options, field.name)
        if field.name in durations and value is not None:
            changed[field.name] = max(value / speed, min(value, SHORTEST))
        else:
            changed[field.name] = _shortened(value, speed)
    return replace(options, **changed)


@cache
def _durations(kind: type) -> frozenset[str]:
    """The options of a class that are durations: their annotation says seconds."""
    return frozenset(
        name
        for name, hint in get_type_hints(kind, include_extras=True).items()
        for part in (hint, *get_args(hint))
        if get_origin(part) is Annotated and Unit("seconds") in get_args(part)
    )


class NetworkGuard:
    """Refuses, and remembers, every connection, packet and look-up that is not for its `ports` on this machine.

    It stands within `with`, for the whole process: one at a time. Python's audit events tell it, so it sees every
    library; it does not see what C code does by itself.
    """

    def __init__(self) -> None:
        self.ports: set[int] = set()
        self.refused: list[str] = []

    def __enter__(self) -> Self:
        _stand(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _stand(None)

    def look(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raises PermissionError for what may not leave."""
        check = _CHECKS.get(event)
        where = None if check is None else check(self, arguments)
        if where is not None:
            self.refused.append(where)
            raise PermissionError(f"the chaos drill does not let a connection out to {where}")

    def outside(self, arguments: tuple[Any, ...]) -> str | None:
        """The address of a forbidden connection; None for an allowed one."""
        address = arguments[1]
        if not isinstance(address, tuple):
            return None  # a Unix socket
        host, port = address[:2]
        return None if _is_here(host) and port in self.ports else f"{host}:{port}"

    def unknown(self, arguments: tuple[Any, ...]) -> str | None:
        """The name or address that may not be looked up; None for one of this machine's."""
        host = arguments[0][0] if isinstance(arguments[0], tuple) else arguments[0]
        name = host.decode(errors="replace") if isinstance(host, bytes) else host
        return None if not name or _is_here(name) else str(name)


_CHECKS = {
    "socket.connect": NetworkGuard.outside,
    "socket.sendto": NetworkGuard.outside,
    "socket.sendmsg": NetworkGuard.outside,
    "socket.getaddrinfo": NetworkGuard.unknown,
    "socket.gethostbyname": NetworkGuard.unknown,
    "socket.gethostbyaddr": NetworkGuard.unknown,
    "socket.getnameinfo": NetworkGuard.unknown,
}


def _is_here(host: object) -> bool:
    try:
        return ip_address(str(host)).is_loopback
    except ValueError:
        return host == "localhost"


_standing: list[NetworkGuard | None] = []


def _stand(guard: NetworkGuard | None) -> None:
    """An audit hook cannot be removed again: there is one, made with the first fence, for all of them."""
    if not _standing:
        _standing.append(None)
        sys.addaudithook(_hear)
    _standing[0] = guard


def _hear(event: str, arguments: tuple[Any, ...]) -> None:
    if event in _CHECKS and _standing[0] is not None:
        _standing[0].look(event, arguments)


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
        research=ResearchConfig(),
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
