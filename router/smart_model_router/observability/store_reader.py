"""The store that a configuration, or a command line, names: a file, or a database of a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

from smart_model_router.config.secret import MASK
from smart_model_router.config.server_urls import POSTGRES_SCHEMES, server_fault
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.reading import FileReader, StoreReader

if TYPE_CHECKING:
    from smart_model_router.config import Secret, StoreConfig
    from smart_model_router_stats.postgres_server import StatsServer

EXTRA = "statistics on PostgreSQL come with an extra: pip install 'smart-model-router[postgres]'"


def reader_of(store: StoreConfig) -> StoreReader | None:
    """The reader of the configured store; None when statistics live in memory. Raises ConfigurationError."""
    file = None if store.path is None else Path(store.path).expanduser()
    state = file if store.shared_url is None else None  # what the operator said is on the other server
    if store.stats_url is not None:
        return _server_reader(configured_server(store), state)
    return None if file is None else FileReader(file, state)


def reader_at(place: str) -> StoreReader:
    """The reader of a store that is named at the command line: a path, or a URL. Raises ConfigurationError."""
    if not place.startswith(tuple(f"{scheme}:" for scheme in POSTGRES_SCHEMES)):
        return FileReader(Path(place), Path(place))
    fault = server_fault(place, POSTGRES_SCHEMES)
    if fault:
        raise ConfigurationError("--db", MASK, fault)
    return _server_reader(_server(place, "--db", ""), None)


def configured_server(store: StoreConfig) -> StatsServer:
    """The server of `store.stats_url`, which has to be there. Raises ConfigurationError."""
    return _server(cast("Secret", store.stats_url).reveal(), "store.stats_url", store.namespace)


def _server(url: str, key: str, namespace: str) -> StatsServer:
    try:
        from smart_model_router_stats.postgres_server import StatsServer  # noqa: PLC0415 - an extra
    except ImportError as missing:  # psycopg, or the libpq that it needs
        raise ConfigurationError(key, missing.name or "psycopg", EXTRA) from None
    try:
        return StatsServer(url, f"{namespace}_stats") if namespace else StatsServer(url)
    except StoreUnavailableError as error:
        raise ConfigurationError(key, MASK, error.reason) from None


def _server_reader(server: StatsServer, state: Path | None) -> StoreReader:
    from smart_model_router_stats.postgres_reading import FleetReader  # noqa: PLC0415 - an extra

    return FleetReader(server, state)
