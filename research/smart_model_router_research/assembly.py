"""The parts of workflows and of research by the configuration: the only module here that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from smart_model_router.config.research_sections import EvaluationConfig, ResearchConfig, SearchBackendConfig
from smart_model_router.config.secret import Secret
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.rounds import PATIENCE_OF
from smart_model_router_research.engine.postgres_store import PostgresRunStore
from smart_model_router_research.engine.sqlite_store import SqliteRunStore
from smart_model_router_research.engine.table_store import TableRunStore
from smart_model_router_research.pipeline.run_inputs import (
    ANALYSTS,
    BACKENDS,
    CORPUS,
    AnalystRole,
    ResearchBudget,
    RunInputs,
    absolute_paths,
)
from smart_model_router_research.web.backend_kinds import KINDS, backend_of
from smart_model_router_research.web.backends import SearchBackend
from smart_model_router_scoring.confidence.gates import MIN_RECENT_SOURCES
from smart_model_router_scoring.options import ConfigError

FILE_NAME = "runs.db"
TAVILY_KEY = "TAVILY_API_KEY"


def runs_file(config: WorkflowsConfig, data_directory: Path) -> Path:
    """Return the file of runs: as configured, else in the user's data directory."""
    return Path(config.runs).expanduser() if config.runs is not None else data_directory / FILE_NAME


def run_store(config: WorkflowsConfig, data_directory: Path, *, keep_days: float = 0.0) -> TableRunStore:
    """Return the store of runs by the configuration. The file, or the server, is opened when it is first used.

    Runs that ended are kept for `keep_days` at least, and else as configured. Raises ConfigurationError where a server
    needs an extra that is not installed.
    """
    days = max(config.retention_days, keep_days)
    if config.store_url is not None:
        return PostgresRunStore(config.store_url.reveal(), retention_days=days)
    return SqliteRunStore(runs_file(config, data_directory), retention_days=days)


def research_backends(
    research: ResearchConfig, environ: Mapping[str, str], names: Iterable[str]
) -> list[SearchBackend]:
    """Return the search back-ends of these names: those of the configuration, and those that need none (`offered`).

    A name that neither has is left out. Raises ConfigurationError, with the key.
    """
    wanted = set(names) - {CORPUS}
    known = {each.label: ("backends", each) for each in offered(environ)}
    known |= {each.label: (f"research.backends[{at}]", each) for at, each in enumerate(research.backends)}
    return [_backend(*known[name]) for name in known if name in wanted]


def configured_backends(research: ResearchConfig, environ: Mapping[str, str]) -> list[SearchBackend]:
    """Return all search back-ends of the configuration. Raises ConfigurationError, with the key."""
    return research_backends(research, environ, [each.label for each in research.backends])


def offered(environ: Mapping[str, str]) -> tuple[SearchBackendConfig, ...]:
    """Return the back-ends that can be used without a configuration: arXiv, and Tavily where `$TAVILY_API_KEY` is."""
    key = environ.get(TAVILY_KEY, "").strip()
    tavily = (SearchBackendConfig(kind="tavily", api_key=Secret(key)),) if key else ()
    return (SearchBackendConfig(kind="arxiv"), *tavily)


def _backend(key: str, config: SearchBackendConfig) -> SearchBackend:
    options: dict[str, str] = {**config.options, "name": config.label}
    options |= {name: value for name in ("url", "file") if (value := getattr(config, name)) is not None}
    if config.api_key is not None:
        options["api_key"] = config.api_key.reveal()
    if config.kind not in KINDS and config.name is None:
        del options["name"]  # the back-ends of others need not take one
    return backend_of(config.kind, options, key)


def research_inputs(
    topic: str,
    *,
    now: datetime,
    research: ResearchConfig | None = None,
    evaluation: EvaluationConfig | None = None,
    **given: Any,
) -> RunInputs:
    """Return the inputs of a run by the configuration, and by what was given for this run, under the same names.

    What is given as None is as configured; of `budget`, a mapping, each entry. Nothing is left to be computed later:
    `as_of` is the day of `now` in UTC, a window is that of the domain, and corpora are absolute paths, each once.
    Raises ConfigError, which names the input: also for an unknown domain, and a day that is to come.
    """
    research = research or ResearchConfig()
    evaluation = evaluation or EvaluationConfig()
    judged, windows = evaluation.deep_research, dict(evaluation.recency_windows())
    known = {name: value for name, value in given.items() if value is not None}
    policy = known.get("stop_policy", judged.stop_policy)
    backends = tuple(known.get("backends", [each.label for each in research.backends] or BACKENDS))
    domain = known.setdefault("domain", "default")
    if domain not in windows:
        raise ConfigError("domain", domain, f"a domain with a window of recency ({did_you_mean(str(domain), windows)})")
    budget = {name: value for name, value in dict(known.pop("budget", {})).items() if value is not None}
    inputs: dict[str, Any] = {
        "as_of": now.astimezone(UTC).date().isoformat(),
        "analysts": tuple(AnalystRole(name=each.name, lens=each.lens) for each in research.analysts) or ANALYSTS,
        "stop_policy": policy,
        "min_ci": judged.min_ci,
        "max_rounds": research.rounds,
        "min_recent_sources": judged.min_recent_sources,
        "recency_window_days": windows[domain],
        "recency_mode": judged.recency_mode,
        "recency_windows": windows,
        "floor_thresholds": asdict(judged.floor_thresholds),
        "tier_thresholds": judged.tier_thresholds,
        "tiebreaker_weights": asdict(judged.tiebreaker_weights),
        "aggregation": judged.aggregation,
        "patience": judged.patience or PATIENCE_OF.get(policy),
        "on_contradiction": judged.on_contradiction or ("halt" if policy == "matrix" else "continue"),
        "egress": research.egress,
        "deliver": research.delivery,
        "allow": research.allow,
        "block": research.block,
        "tiers": {domain: SourceTier(tier) for domain, tier in research.source_tiers.items()},
        "model": research.model or "",
        "model_tiers": dict(research.tiers),
        "criticality": research.criticality,
        "budget": ResearchBudget(**{**asdict(research.budget), **budget}),
        **known,
        "backends": backends,
        "corpora": absolute_paths(known.get("corpora", research.corpora)),
    }
    if inputs["min_recent_sources"] is None:
        inputs["min_recent_sources"] = MIN_RECENT_SOURCES if set(backends) - {CORPUS} else 1
    found = RunInputs(topic=topic, **inputs)
    if found.moment().date() > now.astimezone(UTC).date():
        raise ConfigError("as_of", found.as_of, f"a day up to today, {date.isoformat(now.astimezone(UTC).date())},")
    return found
