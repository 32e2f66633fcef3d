"""`smr doctor`: is there a configuration, can its providers be asked, and what if they all fail? Spends no tokens."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path
from platform import python_version
from typing import TYPE_CHECKING

from smart_model_router.cli.configured import check_router, configured
from smart_model_router.cli.doctor_finding import DoctorFinding
from smart_model_router.cli.output import ExitCode, print_json, print_table
from smart_model_router.config import (
    ModelConfig,
    ProviderConfig,
    ResearchConfig,
    RouterConfig,
    StoreConfig,
    TargetConfig,
)
from smart_model_router.config.lint import findings_of
from smart_model_router.config.provider_loading import keys_of
from smart_model_router.config.secret import MASK, masked_urls
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router.domain.errors import ConfigurationError, SmartRouterError
from smart_model_router.observability.span_export import lint_environment
from smart_model_router.observability.store_reader import configured_server
from smart_model_router_providers.catalog import kind_of
from smart_model_router_providers.local import Readiness, is_loadable
from smart_model_router_providers.local.model_file import data_directory
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

if TYPE_CHECKING:
    from smart_model_router.cli.app import Doctor


_LEVELS = ("problem", "warning", "note", "ok")
_SHOWN_RUNS = 5
_MOST_RUNS = 10_000


def store_findings(store: StoreConfig) -> list[DoctorFinding]:
    """The library's version, and the configured store. A problem: routers keep their statistics in memory."""
    found = [_library()]
    if store.stats_url is not None:
        found.append(_statistics_server(store))
    if store.shared_url is not None and store.shared_state:
        from smart_model_router.cli.doctor_servers import shared_server_findings  # noqa: PLC0415 - brings its client

        found += shared_server_findings(store)
    if store.path is None:
        if store.stats_url is None:
            found.append(DoctorFinding("ok", "store", "none: statistics live in memory (store.path)"))
        return found
    path = Path(store.path).expanduser()
    if store.stats_url is None:
        told = "statistics stay in memory until `store.path` names a file that can be written"
        found.append(_file("store", path, STATS_MIGRATIONS, told))
    if store.shared_state and store.shared_url is None:
        told = "breakers, cooldowns, limits and what the operator says are not shared and end with the process"
        found.append(_file("shared state", state_path(path), STATE_MIGRATIONS, told))
    if store.response_ttl > 0:
        told = "answers by translation can be referred to in the process that made them only, while it lives"
        found.append(_file("kept responses", responses_path(path), RESPONSE_MIGRATIONS, told))
    return found


def workflow_findings(workflows: WorkflowsConfig) -> Iterator[DoctorFinding]:
    """The file or server of runs, and the runs there that go on in no process. A warning: requests need none of it."""
    # Imported when asked: requests and most commands do without workflows.
    from smart_model_router_research.assembly import runs_file  # noqa: PLC0415
    from smart_model_router_research.engine.engine_selector import dbos_fault, version_fault  # noqa: PLC0415
    from smart_model_router_research.engine.run_schema import RUN_MIGRATIONS  # noqa: PLC0415
    from smart_model_router_research.engine.sqlite_store import unheld_runs  # noqa: PLC0415

    fault = version_fault()
    yield DoctorFinding(
        "ok" if fault is None or workflows.engine in ("auto", "kahn", "dbos") else "warning",
        "engines",
        f"kahn, and langgraph {version('langgraph')}" if fault is None else f"kahn alone: no loops ({fault})",
    )
    if workflows.engine == "dbos" or workflows.store_url is not None:
        lacking = dbos_fault() or ("" if workflows.store_url is not None else "`workflows.store_url` is needed")
        yield DoctorFinding(
            "warning" if lacking and workflows.engine == "dbos" else "ok",
            "engines",
            f"dbos: no workers ({lacking})" if lacking else f"dbos {version('dbos')}: smr workflow worker",
        )
    if workflows.store_url is not None:
        yield from _server_findings(workflows)
        return
    path = runs_file(workflows, data_directory())
    found = _file("workflows", path, RUN_MIGRATIONS, "no workflow can run")
    if found.level == "problem":
        yield replace(found, level="warning")
        return
    yield replace(found, text=f"{found.text}, schema {len(RUN_MIGRATIONS)}")
    if path.exists():
        try:
            yield from _unheld_findings(unheld_runs(path))
        except SmartRouterError as error:
            yield DoctorFinding("warning", "workflows", error.message)


def _server_findings(workflows: WorkflowsConfig) -> Iterator[DoctorFinding]:
    """The server of runs, and the runs on it that go on in no process."""
    from smart_model_router_research.assembly import run_store  # noqa: PLC0415 - as above
    from smart_model_router_research.engine.states import RunState  # noqa: PLC0415 - as above

    async def look() -> tuple[str, list[str]]:
        store = run_store(workflows, data_directory())
        try:
            standing = await store.standing()
            running = await store.runs(_MOST_RUNS, state=RunState.RUNNING)
            return f"{store.place}: {standing}", [run.run_id for run in running if not run.owner]
        finally:
            await store.aclose()

    try:
        standing, unheld = asyncio.run(look())
    except SmartRouterError as error:
        yield DoctorFinding("warning", "workflows", error.message)
        return
    yield DoctorFinding("ok", "workflows", standing)
    yield from _unheld_findings(unheld)


def _unheld_findings(unheld: Sequence[str]) -> Iterator[DoctorFinding]:
    if unheld:
        more = ", ..." if len(unheld) > _SHOWN_RUNS else ""
        shown = f"{', '.join(unheld[:_SHOWN_RUNS])}{more}"
        text = f"interrupted runs ({len(unheld)}): {shown}; to go on: smr workflow resume RUN"
        yield DoctorFinding("warning", "workflows", text)


def research_findings(research: ResearchConfig) -> Iterator[DoctorFinding]:
    """Each corpus of the configuration: how many documents its index has, or why it cannot be read; each back-end."""
    if not research.corpora and not research.backends:
        return
    # Imported when asked: requests and most commands do without research.
    from smart_model_router_research.deep.corpus_file import CorpusError  # noqa: PLC0415
    from smart_model_router_research.pipeline.opened_corpora import standing_of  # noqa: PLC0415
    from smart_model_router_research.pipeline.run_inputs import absolute_paths  # noqa: PLC0415

    for path in map(Path, absolute_paths(research.corpora)):
        try:
            text = standing_of(path, data_directory() / "research")
            yield DoctorFinding("ok", f"corpus {path.name}", f"{path}: {text}")
        except CorpusError as error:
            others = f" (and {len(error.others)} more)" if error.others else ""
            yield DoctorFinding("warning", f"corpus {path.name}", f"{error.message}{others}")
    yield from _backend_findings(research)


def _backend_findings(research: ResearchConfig) -> Iterator[DoctorFinding]:
    from smart_model_router_research.assembly import research_backends  # noqa: PLC0415 - as above

    for backend in research.backends:
        topic = f"backend {backend.label}"
        try:
            made = research_backends(research, os.environ, [backend.label])
        except ConfigurationError as error:
            yield DoctorFinding("warning", topic, error.message)
            continue
        for each in made:
            place = f" at {each.caps.place}" if each.caps.place else ""
            yield DoctorFinding("ok", topic, f"{backend.kind}{place}; --online asks whether it answers")


def _statistics_server(store: StoreConfig) -> DoctorFinding:
    """The server that the statistics of a fleet are kept on, its version, and its schema."""
    try:
        server = configured_server(store)
    except ConfigurationError as error:
        return DoctorFinding("problem", "statistics", f"{error.message}: statistics stay in memory")
    try:
        return DoctorFinding("ok", "statistics", f"{server.name}: {server.standing()}")
    except StoreUnavailableError as error:
        return DoctorFinding("problem", "statistics", f"{server.name}: {error.reason}: statistics stay in memory")


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


def run(asked: Doctor) -> int:
    """Look and tell; 1 when something prevents serving. Raises ConfigurationError."""
    found = configured(asked.config)
    check_router(found.config)
    findings = [
        DoctorFinding(
            "ok", "version", f"smart-model-router {version('smart-model-router')}, Python {python_version()}"
        ),
        DoctorFinding("ok", "configuration", found.source),
        *_look(found.config, is_loadable()),
    ]
    store = store_findings(found.config.store)
    findings += [*store, *workflow_findings(found.config.workflows), *research_findings(found.config.research)]
    if asked.online:
        from smart_model_router.cli.doctor_online import online_findings  # noqa: PLC0415 - brings an HTTP client

        findings += asyncio.run(online_findings(found.config))
    healthy = all(finding.level != "problem" for finding in findings)
    if asked.as_json:
        print_json({"ok": healthy, "findings": [asdict(finding) for finding in findings]})
    else:
        worst_first = sorted(findings, key=lambda finding: _LEVELS.index(finding.level))
        print_table((), [(f.level, f.topic, f.text) for f in worst_first], sys.stdout)
    if any(finding.level == "problem" for finding in store):
        return ExitCode.CONFIGURATION
    return ExitCode.OK if healthy else ExitCode.FAILED


def _look(config: RouterConfig, embedded: Readiness) -> Iterator[DoctorFinding]:
    ready = {name: _is_ready(provider, embedded) for name, provider in config.providers.items()}
    for name, provider in config.providers.items():
        if provider.kind != "local":
            yield DoctorFinding("ok" if ready[name] else "warning", f"provider {name}", _described(provider))
    yield DoctorFinding("ok" if embedded.ready else "warning", "embedded model", embedded.reason or f"{embedded.model}")
    for model in config.models.values():
        yield _served(model, ready)
        yield _last_resort(model, ready)
    yield from linted(config)


def linted(config: RouterConfig) -> Iterator[DoctorFinding]:
    """Findings about what the configuration says and cannot do in this environment."""
    for finding in findings_of(config, lint_environment(config, os.environ)):
        yield DoctorFinding(finding.level, finding.key, finding.text)


def _is_ready(provider: ProviderConfig, embedded: Readiness) -> bool:
    """True when nothing needed to call the provider is missing; only a call would show whether it answers."""
    if provider.kind == "local":
        return embedded.ready
    return bool(keys_of(provider)) or not kind_of(provider.kind).key_variables


def _described(provider: ProviderConfig) -> str:
    kind = kind_of(provider.kind)
    address = provider.base_url or kind.base_url
    where = f"at {masked_urls(address)}" if address else "in this process"
    return f"{provider.kind} {where}; {_key(provider, kind.key_variables)}"


def _key(provider: ProviderConfig, variables: tuple[str, ...]) -> str:
    if provider.api_key:
        return "key " + ", ".join(MASK for _ in provider.api_key)
    variable = next((name for name in variables if os.environ.get(name)), None)
    if variable is not None:
        return f"key {MASK} from ${variable}"
    return f"no key: set api_key or ${variables[0]}" if variables else "no key, and none is asked for"


def _served(model: ModelConfig, ready: dict[str, bool]) -> DoctorFinding:
    topic = f"model {model.name}"
    mentions = [mention for tier in model.tiers for mention in tier.targets]
    count = _ready_in(mentions, ready)
    if count:
        return DoctorFinding("ok", topic, f"{count} of {len(mentions)} targets can be called")
    if _ready_in(model.last_resort or (), ready):
        return DoctorFinding("warning", topic, "only its last resort can be called: every answer will be degraded")
    return DoctorFinding("problem", topic, "no target can be called")


def _ready_in(mentions: Iterable[TargetConfig], ready: dict[str, bool]) -> int:
    return sum(ready[mention.provider] for mention in mentions)


def _last_resort(model: ModelConfig, ready: dict[str, bool]) -> DoctorFinding:
    topic = f"last resort of {model.name}"
    named = [mention.target for mention in model.last_resort or ()]
    if _ready_in(model.last_resort or (), ready):
        return DoctorFinding("ok", topic, f"ready: {', '.join(named)}")
    if named:
        return DoctorFinding("warning", topic, f"not ready: {', '.join(named)}")
    if model.last_resort is None:
        return DoctorFinding(
            "warning", topic, "none: when every provider fails, so will the request (smr local install)"
        )
    return DoctorFinding("ok", topic, "none, as configured")
