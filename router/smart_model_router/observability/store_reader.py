"""The store that a configuration, or a command line, names: a file, or a database of a PostgreSQL server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from smart_model_router.config.secret import MASK
from smart_model_router.config.server_urls import POSTGRES_SCHEMES, server_fault
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_stats.open_db import StoreUnavailableError
from smart_model_router_stats.reading import FileReader, StoreReader

if TYPE_CHECKING:
    from smart_model_router.config import StoreConfig
    from smart_model_router_stats.postgres_server import StatsServer

EXTRA = "statistics on PostgreSQL come with an extra: pip install 'smart-model-router[postgres]'"


def reader_of(store: StoreConfig) -> StoreReader | None:
    """The reader of the configured store; None when statistics live in memory. Raises ConfigurationError."""
    file = None if store.path is None else Path(store.path).expanduser()
    if store.stats_url is not None:
        return _server_reader(store.stats_url.reveal(), "store.stats_url", file)
    return None if file is None else FileReader(file)


def reader_at(place: str) -> StoreReader:
    """The reader of a store that is named at the command line: a path, or a URL. Raises ConfigurationError."""
    if not place.startswith(tuple(f"{scheme}:" for scheme in POSTGRES_SCHEMES)):
        return FileReader(Path(place))
    fault = server_fault(place, POSTGRES_SCHEMES)
    if fault:
        raise ConfigurationError("--db", MASK, fault)
    return _server_reader(place, "--db", None)


def stats_server(url: str, key: str) -> StatsServer:
    """The server at `url`, which `key` names. Raises ConfigurationError."""
    try:
        from smart_model_router_stats.postgres_server import StatsServer  # noqa: PLC0415 - an extra
    except ImportError as missing:  # psycopg, or the libpq that it needs
        raise ConfigurationError(key, missing.name or "psycopg", EXTRA) from None
    try:
        return StatsServer(url)
    except StoreUnavailableError as error:
        raise ConfigurationError(key, MASK, error.reason) from None


def _server_reader(url: str, key: str, file: Path | None) -> StoreReader:
    server = stats_server(url, key)
    from smart_model_router_stats.postgres_reading import FleetReader  # noqa: PLC0415 - an extra

    return FleetReader(server, file)
