"""The parts of workflows and of research by the configuration: the only module here that reads it."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from smart_model_router.config.research_sections import EvaluationConfig, ResearchConfig
from smart_model_router.config.sections import WorkflowsConfig
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.rounds import PATIENCE_OF
from smart_model_router_research.engine.sqlite_store import SqliteRunStore
from smart_model_router_research.pipeline.run_inputs import (
    ANALYSTS,
    AnalystRole,
    ResearchBudget,
    RunInputs,
    absolute_paths,
)
from smart_model_router_scoring.confidence.gates import MIN_RECENT_SOURCES
from smart_model_router_scoring.options import ConfigError

FILE_NAME = "runs.db"


def runs_file(config: WorkflowsConfig, data_directory: Path) -> Path:
    """Return the file of runs: as configured, else in the user's data directory."""
    return Path(config.runs).expanduser() if config.runs is not None else data_directory / FILE_NAME


def run_store(config: WorkflowsConfig, data_directory: Path, *, keep_days: float = 0.0) -> SqliteRunStore:
    """Return the store of runs by the configuration. The file is opened when it is first used.

    Runs that ended are kept for `keep_days` at least, and else as configured.
    """
    days = max(config.retention_days, keep_days)
    return SqliteRunStore(runs_file(config, data_directory), retention_days=days)


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
    backends = tuple(known.get("backends", research.backends))
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
        inputs["min_recent_sources"] = 1 if set(backends) == {"corpus"} else MIN_RECENT_SOURCES
    found = RunInputs(topic=topic, **inputs)
    if found.moment().date() > now.astimezone(UTC).date():
        raise ConfigError("as_of", found.as_of, f"a day up to today, {date.isoformat(now.astimezone(UTC).date())},")
    return found
