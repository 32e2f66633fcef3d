"""The composition root: a configuration becomes the parts of a router. The adapters are named here and in the CLI."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from smart_model_router.config import RouterConfig
from smart_model_router.config.discovery import default_config, with_last_resort
from smart_model_router.config.provider_loading import advice_of, check_kind, make_provider, secrets_of
from smart_model_router.config.sections import ContentConfig
from smart_model_router.config.server_urls import POSTGRES_SCHEMES
from smart_model_router.config.target_parts import TargetParts
from smart_model_router.coordination import Coordinator
from smart_model_router.core.fallback import RetryBudget, Shedding
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.events import StoreChanged
from smart_model_router.domain.forwarded_headers import Destination
from smart_model_router.domain.ports import (
    EventSink,
    SupportsClientHeaders,
    SupportsDroppedParams,
    SupportsKind,
    SupportsStatus,
)
from smart_model_router.domain.redaction import ContentCapture, Scrubber
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.flow.clock import SystemClock, SystemDice, WallClock, boottime, here
from smart_model_router.flow.kept_responses import KeptResponses
from smart_model_router.flow.state import RouterState
from smart_model_router.flow.wildcards import WildcardRoutes
from smart_model_router.observability.monitor import sinks_of
from smart_model_router_providers.classify import classify_exception
from smart_model_router_stats.book import StatsBook, SupportsPast

if TYPE_CHECKING:
    from smart_model_router.config import Secret, StoreConfig
    from smart_model_router.domain.ports import Clock, ProbeLocks, Provider, ResponseStore, SharedState, StatsStore
    from smart_model_router_stats.row_server import RowServer

KEPT_IN_MEMORY = 32 * 1024 * 1024
"""Bytes of answers that a router without a file keeps for requests that refer to them, at most."""


def assemble(
    config: RouterConfig,
    *,
    clock: Clock | None = None,
    seed: int | None = None,
    providers: Mapping[str, Provider] | None = None,
    store: StatsStore | None = None,
    sinks: Sequence[EventSink] = (),
) -> dict[str, Any]:
    """The arguments of SmartModelRouter for `config`. Raises ConfigurationError."""
    given = dict(providers or {})
    measures = config.resilience.measures
    for name in config.providers:
        check_kind(config, name)
    parts = TargetParts(config, given)
    for name in given.keys() - set(parts.called):
        raise ConfigurationError("providers", name, did_you_mean(name, parts.called))
    # Before anything is opened: most of what can be wrong is found here.
    made = {name: given[name] if name in given else make_provider(config, name) for name in parts.called}
    book = StatsBook((*parts.targets.values(), *parts.passing), wall=WallClock().now)
    used_clock = clock or (SystemClock() if measures.monotonic_clock else WallClock())
    secrets = secrets_of(config)
    scrubber = Scrubber(secrets)
    watching = sinks_of(config, sinks, clock=used_clock, secrets=secrets)
    kept = store if store is not None else open_store(config, used_clock)
    state = RouterState(
        clock=used_clock,
        dice=SystemDice(seed),
        fleet=parts.fleet,
        providers=made,
        dropped={name: _dropped_params(provider) for name, provider in made.items()},
        destinations={name: _destination(config.providers[name].kind, provider) for name, provider in made.items()},
        advice=advice_of(config),
        book=book,
        windows=parts.windows,
        routes=parts.routes,
        budget=RetryBudget(config.resilience.retry_budget),
        hedges=RetryBudget(hedging.budget) if (hedging := config.resilience.hedging).enabled else None,
        shedding=Shedding(config.resilience.shedding),
        routing=config.routing,
        timeouts=config.resilience.timeouts,
        patience=config.resilience.patience,
        backoff=config.resilience.backoff,
        classify=classify_exception,
        scrub=scrubber.failure,
        scrub_text=scrubber.text,
        here=here,
        sinks=(*watching, kept) if kept is not None and isinstance(kept, EventSink) else watching,
        store=kept,
        degrade=measures.tiered_degradation,
        content=_content(config.telemetry.content, scrubber.text),
    )
    state.model_routes = model_routes = WildcardRoutes(config, parts, state)
    if kept is not None and isinstance(kept, SupportsStatus):
        kept.on_change(lambda reason: _store_changed(state, reason))
    if kept is not None and isinstance(kept, SupportsPast):
        kept.on_past(lambda past: book.remember(past, used_clock.now()))
    if store is None and config.store.shares_state:
        state.coordinator = _share(config, state, parts, model_routes)
    if config.store.response_ttl > 0:
        state.kept = _keep(config, state)
    return {"config": config, "state": state, "book": book, "model_routes": parts.model_routes}


def _destination(kind: str, provider: Provider) -> Destination:
    """The kind that decides which headers a provider gets: the provider's own, else the configured one."""
    return Destination(
        provider.kind if isinstance(provider, SupportsKind) else kind,
        provider.client_headers if isinstance(provider, SupportsClientHeaders) else {},
    )


def _dropped_params(provider: Provider) -> frozenset[str]:
    return frozenset(provider.dropped_params) if isinstance(provider, SupportsDroppedParams) else frozenset()


def _content(config: ContentConfig, scrub: Callable[[str], str]) -> ContentCapture | None:
    """The capture of prompts and answers as configured; None when it is off."""
    if config.mode == "off":
        return None
    return ContentCapture(config.mode, scrub=scrub, wall=WallClock().now, until=config.ends_at)


def _store_changed(state: RouterState, reason: str) -> None:
    state.emit(StoreChanged(at=state.clock.now(), store="stats", degraded=bool(reason), reason=reason))


def _share(config: RouterConfig, state: RouterState, parts: TargetParts, model_routes: WildcardRoutes) -> Coordinator:
    """This router's part in the state that processes share: those of a host in a file, those of many on a server."""
    locks: ProbeLocks | None = None
    if config.store.shared_url is None:
        from smart_model_router_stats.shared_schema import state_path  # noqa: PLC0415 - brings sqlite3
        from smart_model_router_stats.shared_sqlite import SqliteSharedState  # noqa: PLC0415 - as above

        shared: SharedState = SqliteSharedState(state_path(Path(cast("str", config.store.path))), here)
    else:
        from smart_model_router_stats.probe_locks import FileProbeLocks, folder_of_locks  # noqa: PLC0415 - for a server
        from smart_model_router_stats.server_clock import ServerClock  # noqa: PLC0415 - only for a server
        from smart_model_router_stats.shared_optimistic import ServerSharedState  # noqa: PLC0415 - as above

        clock = ServerClock(boottime, here)
        shared = ServerSharedState(server_rows(config.store), clock, boottime)
        state.here = clock
        locks = FileProbeLocks(folder_of_locks(), config.store.namespace, here)
    return Coordinator(
        state,
        shared,
        parts.owners,
        holder=lambda: uuid.uuid4().hex,
        machine=socket.gethostname(),
        version=_package_version(),
        processes=config.store.processes,
        machines=config.store.machines,
        locks=locks,
        revive=model_routes.revive,
    )


def server_rows(store: StoreConfig) -> Callable[[], RowServer]:
    """Connections to the server of `store.shared_url`. Raises ConfigurationError when its extra is not installed."""
    url = cast("Secret", store.shared_url).reveal()
    if url.startswith(POSTGRES_SCHEMES):
        from smart_model_router_stats.shared_postgres import postgres_rows  # noqa: PLC0415 - an extra

        return postgres_rows(url, store.namespace)
    from smart_model_router_stats.shared_valkey import valkey_rows  # noqa: PLC0415 - as above

    return valkey_rows(url, store.namespace)


def _package_version() -> str:
    """The version that other processes see; "" where the package was not installed."""
    from importlib.metadata import PackageNotFoundError, version  # noqa: PLC0415 - slow, and only this needs it

    try:
        return version("smart-model-router")
    except PackageNotFoundError:
        return ""


def _keep(config: RouterConfig, state: RouterState) -> KeptResponses:
    """The store of answers that were made by translation, for requests that refer to them."""
    settings = config.store
    ttl, most = settings.response_ttl, settings.response_limit_mb * 1024 * 1024
    kept: ResponseStore
    if settings.path is None:
        from smart_model_router_stats.memory import MemoryResponses  # noqa: PLC0415 - as below

        kept = MemoryResponses(ttl=ttl, most=min(most, KEPT_IN_MEMORY), wall=WallClock().now)
        where = "in the process that made them, as there is no store.path"
    else:
        from smart_model_router_stats.responses_sqlite import (  # noqa: PLC0415 - brings aiosqlite
            SqliteResponses,
            responses_path,
        )

        kept = SqliteResponses(responses_path(Path(settings.path)), ttl=ttl, most=most, wall=WallClock().now)
        where = "on the host that made them"
    return KeptResponses(state, kept, lifetime=f"{where}, for {ttl:g} s (store.response_ttl)")


def open_store(config: RouterConfig, clock: Clock) -> StatsStore | None:
    """The configured store, None when statistics stay in memory. Its file is made when there is something to write.

    Raises ConfigurationError when what a server needs is not installed.
    """
    settings = config.store
    if settings.path is None and settings.stats_url is None:
        return None
    from smart_model_router_stats.housekeeping import Limits  # noqa: PLC0415 - brings sqlite3

    limits = Limits(retention=86_400.0 * settings.retention_days, size_bytes=settings.size_limit_mb * 1024 * 1024)
    if settings.stats_url is not None:
        from smart_model_router.observability.store_reader import configured_server  # noqa: PLC0415 - brings sqlite3

        server = configured_server(settings)
        from smart_model_router_stats.postgres_stats import PostgresStatsStore  # noqa: PLC0415 - an extra

        return PostgresStatsStore(server, monotonic=clock.now, limits=limits)
    from smart_model_router_stats.sqlite import SqliteStore  # noqa: PLC0415 - brings sqlite3

    return SqliteStore(Path(cast("str", settings.path)), monotonic=clock.now, limits=limits)


def load(
    config: RouterConfig | Mapping[str, Any] | str | os.PathLike[str] | None, *, given: frozenset[str]
) -> RouterConfig:
    """The configuration from wherever it is; see SmartModelRouter.from_config.

    Providers that are `given` as objects need no entry under `providers`.
    """
    if config is None:
        return default_config(os.environ)
    if isinstance(config, RouterConfig):
        return with_last_resort(config)
    if isinstance(config, Mapping):
        named = config.get("providers", {})
        if isinstance(named, Mapping):
            own = {name: {"kind": "openai_compatible"} for name in sorted(given) if name not in named}
            config = {**config, "providers": {**named, **own}}
        return with_last_resort(RouterConfig.from_mapping(config))
    return with_last_resort(RouterConfig.load(Path(config)))
