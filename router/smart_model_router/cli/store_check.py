"""Findings of the doctor about SQLite, of the statistics file, of the shared state and of the kept responses."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

from smart_model_router.cli.finding import DoctorFinding
from smart_model_router.config import StoreConfig
from smart_model_router_stats.open_db import (
    OLDEST_SQLITE,
    Migration,
    StoreUnavailableError,
    has_wal_reset_bug,
    open_to_read,
    refuse,
    writable_problem,
)
from smart_model_router_stats.responses_sqlite import RESPONSE_MIGRATIONS, responses_path
from smart_model_router_stats.schema import STATS_MIGRATIONS
from smart_model_router_stats.shared_schema import STATE_MIGRATIONS, state_path


def store_findings(store: StoreConfig) -> list[DoctorFinding]:
    """The library's version, and the configured file. A problem: routers keep their statistics in memory."""
    if store.path is None:
        return [_library(), DoctorFinding("ok", "store", "none: statistics live in memory (store.path)")]
    path = Path(store.path).expanduser()
    found = [_library(), _file("store", path, STATS_MIGRATIONS, "statistics stay in memory")]
    if store.shared_state:
        told = "breakers, cooldowns, limits and what the operator says are not shared and end with the process"
        found.append(_file("shared state", state_path(path), STATE_MIGRATIONS, told))
    if store.response_ttl > 0:
        told = "answers by translation can be referred to in the process that made them only, while it lives"
        found.append(_file("kept responses", responses_path(path), RESPONSE_MIGRATIONS, told))
    return found


def _library() -> DoctorFinding:
    version = sqlite3.sqlite_version
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        return DoctorFinding("warning", "SQLite", f"{version} is too old for a store")
    if has_wal_reset_bug(sqlite3.sqlite_version_info):
        bug = "has the WAL-reset bug (3.7.0 to 3.51.2): one elected process makes all checkpoints"
        return DoctorFinding("ok", "SQLite", f"{version} {bug}")
    return DoctorFinding("ok", "SQLite", version)


def _file(topic: str, path: Path, migrations: Sequence[Migration], otherwise: str) -> DoctorFinding:
    try:
        refuse(path)
        made = path.exists()
        if made:
            open_to_read(path, migrations).close()
        problem = writable_problem(path)
    except StoreUnavailableError as error:
        return DoctorFinding("problem", topic, f"{path}: {error.reason}: {otherwise}")
    if problem is not None:
        return DoctorFinding("problem", topic, f"{path}: {problem}: {otherwise}")
    return DoctorFinding("ok", topic, str(path) if made else f"{path} will be made when there is something to write")
