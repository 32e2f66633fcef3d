"""The parts of workflows by the configuration: the only module here that reads it."""

from __future__ import annotations

from pathlib import Path

from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router_research.engine.sqlite_store import SqliteRunStore

FILE_NAME = "runs.db"


def runs_file(config: WorkflowsConfig, data_directory: Path) -> Path:
    """Return the file of runs: as configured, else in the user's data directory."""
    return Path(config.runs).expanduser() if config.runs is not None else data_directory / FILE_NAME


def run_store(config: WorkflowsConfig, data_directory: Path) -> SqliteRunStore:
    """Return the store of runs by the configuration. The file is opened when it is first used."""
    return SqliteRunStore(runs_file(config, data_directory), retention_days=config.retention_days)
