"""What the doctor says of SQLite and of the statistics file."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from smart_model_router.cli.finding import Finding
from smart_model_router.config import StoreConfig
from smart_model_router_stats.opening import (
    OLDEST_SQLITE,
    StoreUnavailableError,
    has_wal_reset_bug,
    open_to_read,
    refuse,
    writable_problem,
)
from smart_model_router_stats.schema import STATS_MIGRATIONS


def store_findings(store: StoreConfig) -> list[Finding]:
    """The library's version, and the configured file. A problem: routers keep their statistics in memory."""
    if store.path is None:
        return [_library(), Finding("ok", "store", "none: statistics live in memory (store.path)")]
    return [_library(), _file(Path(store.path).expanduser())]


def _library() -> Finding:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return Finding("warning", "SQLite", f"{version} is too old for a store")
    if has_wal_reset_bug(sqlite3.sqlite_version_info):
        bug = "has the WAL-reset bug (3.7.0 to 3.51.2): one elected process makes all checkpoints"
        return Finding("ok", "SQLite", f"{version} {bug}")
    return Finding("ok", "SQLite", version)


def _file(path: Path) -> Finding:
    try:
        refuse(path)
        made = path.exists()
        if made:
            open_to_read(path, STATS_MIGRATIONS).close()
        problem = writable_problem(path)
    except StoreUnavailableError as error:
        return _unusable(path, error.reason)
    if problem is not None:
        return _unusable(path, problem)
    return Finding("ok", "store", str(path) if made else f"{path} will be made when there is something to write")


def _unusable(path: Path, reason: str) -> Finding:
    return Finding("problem", "store", f"{path}: {reason}: statistics stay in memory")
