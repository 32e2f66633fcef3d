"""The inputs of a run of research. They are fixed when it is created: nothing that changes later changes the run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.metrics import MetricsConfig
from smart_model_router_research.deep.quality import AuditConfig
from smart_model_router_research.deep.records import decode, encode
from smart_model_router_research.deep.rounds import MAX_ROUNDS, RoundsConfig
from smart_model_router_research.deep.tiers import SourcePolicy
from smart_model_router_research.web.fetch_rules import FetchRefused, target_of
from smart_model_router_research.workflow import StepInput
from smart_model_router_scoring.confidence import DEFAULT_WEIGHTS
from smart_model_router_scoring.confidence.gates import FLOORS, MIN_RECENT_SOURCES, TIER_THRESHOLDS
from smart_model_router_scoring.options import ConfigError, check_choice, check_count, check_number

MAX_TOPIC = 20_000
"""Characters of a topic, and of a goal."""
DELIVER = ("auto", "always")
ON_CONTRADICTION = ("continue", "halt")
CORPUS = "corpus"
BACKENDS = (CORPUS,)
EGRESS = ("public", "local_only")
MOST_SEEDS = 1_000
TIER_WISHES = ("frontier", "standard", "economy")
MODEL_FORMS = ("all", "prose")
CRITICALITIES = ("critical_plus", "critical", "sheddable_plus", "sheddable")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchBudget:
    """The most that a run may use. Of each a share, `reserve` (0 to 0.5), is kept for the end: a report can be written.

    `searches` are questions put to sources, `fetches` documents that are read; what was asked or read before is free.
    Of these two a model has the reserve, and code the rest.
    """

    seconds: float = 900.0
    searches: int = 60
    fetches: int = 120
    tokens: int = 400_000
    usd: float = 2.0
    model_calls: int = 120
    reserve: float = 0.15

    def __post_init__(self) -> None:
        check_number("budget.seconds", self.seconds, 0.001, 604_800)
        check_number("budget.usd", self.usd, 0, 1_000_000)
        check_number("budget.reserve", self.reserve, 0, 0.5)
        for name in ("searches", "fetches", "tokens", "model_calls"):
            check_count(f"budget.{name}", getattr(self, name), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalystRole:
    """An analyst: its name, and what it looks for. `lens` is `evidence` or `quantities`, or all for `any`."""

    name: str
    lens: str = "any"

    def __post_init__(self) -> None:
        if not (self.name.isascii() and f"_{self.name}".isidentifier()):
            raise ConfigError("analysts.name", self.name, "a name of letters, digits and `_`")
        check_choice("analysts.lens", self.lens, LENSES)


LENSES = ("evidence", "quantities", "any")
ANALYSTS = (AnalystRole(name="ai", lens="evidence"), AnalystRole(name="swe", lens="quantities"))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInputs:
    """Everything that decides what a run finds, beside its sources. Raises ConfigError, which names the input.

    `topic` is a question or several; `goal` says what it is for. `as_of` is the day that ages are counted to, ISO 8601.
    `corpora` are folders, or files of an index; `backends` are names: `corpus` for these, others for the web.
    `seed_urls` are pages to read. With `egress` `local_only` nothing of the web is searched and fetched. `model` is the
    public name of the model to ask, "" for none; `model_tiers` are tiers of its ladder by the wish of a step:
    frontier, standard, economy; `model_forms` is `all`, or `prose` for a model that is asked for a summary alone.
    The others are those of `RoundsConfig`, `AuditConfig`, `MetricsConfig`, `SourcePolicy` and `ResearchBudget`,
    under the founding names.
    """

    topic: str
    as_of: str
    goal: str = ""
    domain: str = "default"
    corpora: tuple[str, ...] = ()
    backends: tuple[str, ...] = BACKENDS
    seed_urls: tuple[str, ...] = ()
    egress: str = "public"
    analysts: tuple[AnalystRole, ...] = ANALYSTS
    stop_policy: str = "two_tier"
    min_ci: float = 0.80
    max_rounds: int = MAX_ROUNDS
    min_recent_sources: int = MIN_RECENT_SOURCES
    recency_window_days: int | None = None
    recency_mode: str = "decay"
    recency_windows: Mapping[str, int] = field(default_factory=dict)
    floor_thresholds: Mapping[str, float] = field(default_factory=lambda: dict(FLOORS))
    tier_thresholds: tuple[float, ...] = TIER_THRESHOLDS
    tiebreaker_weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))
    aggregation: str = "arithmetic"
    patience: int | None = None
    on_contradiction: str | None = None
    deliver: str = "auto"
    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    tiers: Mapping[str, SourceTier] = field(default_factory=dict)
    budget: ResearchBudget = field(default_factory=ResearchBudget)
    model: str = ""
    model_tiers: Mapping[str, str] = field(default_factory=dict)
    model_forms: str = "all"
    criticality: str = "critical"

    def __post_init__(self) -> None:
        for name in ("topic", "goal"):
            _check_text(name, getattr(self, name), MAX_TOPIC)
        if not any(character.isalnum() for character in self.topic):
            raise ConfigError("topic", self.topic, "a question or a subject, with a letter or a digit,")
        _check_text("domain", self.domain, 100)
        check_choice("deliver", self.deliver, DELIVER)
        _check_text("model", self.model, 300)
        check_choice("model_forms", self.model_forms, MODEL_FORMS)
        check_choice("criticality", self.criticality, CRITICALITIES)
        for wish in self.model_tiers:
            check_choice("model_tiers", wish, TIER_WISHES)
        check_choice("egress", self.egress, EGRESS)
        self._check_sources()
        if self.on_contradiction is not None:
            check_choice("on_contradiction", self.on_contradiction, ON_CONTRADICTION)
        names = [role.name for role in self.analysts]
        if not names or len(set(names)) < len(names):
            raise ConfigError("analysts", names, "at least one analyst, and each with a name of its own,")
        self.moment()
        self.audit_config()
        self.rounds_config()
        self.policy()

    def _check_sources(self) -> None:
        if len(set(self.backends)) < len(self.backends) or not all(self.backends):
            raise ConfigError("backends", list(self.backends), "names, each once,")
        if len(self.seed_urls) > MOST_SEEDS:
            raise ConfigError("seed_urls", f"{len(self.seed_urls)} addresses", f"at most {MOST_SEEDS} addresses")
        for url in self.seed_urls:
            try:
                target_of(url)
            except FetchRefused as error:
                raise ConfigError("seed_urls", error.url, f"an address of the web ({error.detail})") from None
        outside = [each for each in self.backends if each != CORPUS]
        if self.egress == "local_only" and (outside or self.seed_urls):
            name = "backends" if outside else "seed_urls"
            wanted = f"no source but {CORPUS}, as egress is local_only,"
            raise ConfigError(name, outside or list(self.seed_urls), wanted)

    def moment(self) -> datetime:
        """Return the end of the day that ages are counted to."""
        try:
            day = date.fromisoformat(self.as_of)
        except (TypeError, ValueError):
            raise ConfigError("as_of", self.as_of, "a day, such as 2026-03-31") from None
        return datetime(day.year, day.month, day.day, tzinfo=UTC)

    def audit_config(self) -> AuditConfig:
        """Return the settings of audits."""
        metrics = MetricsConfig(
            as_of=self.moment(),
            domain=self.domain,
            window_days=self.recency_window_days,
            recency_mode=self.recency_mode,
            windows=self.recency_windows or None,
            weights=self.tiebreaker_weights,
            aggregation=self.aggregation,
        )
        return AuditConfig(
            metrics=metrics,
            policy=self.stop_policy,
            min_ci=self.min_ci,
            min_recent_sources=self.min_recent_sources,
            floors=self.floor_thresholds,
            tier_thresholds=self.tier_thresholds,
        )

    def rounds_config(self) -> RoundsConfig:
        """Return the limits of rounds."""
        halts = None if self.on_contradiction is None else self.on_contradiction == "halt"
        return RoundsConfig(
            policy=self.stop_policy,
            max_rounds=self.max_rounds,
            min_ci=self.min_ci,
            patience=self.patience,
            halts_on_contradiction=halts,
        )

    def policy(self) -> SourcePolicy:
        """Return the operator's word on sources."""
        return SourcePolicy(allow=self.allow, block=self.block, tiers=self.tiers)

    def as_inputs(self) -> dict[str, Any]:
        """Return the inputs of the workflow, as JSON."""
        found: dict[str, Any] = encode(self)
        return found


def run_of(step: StepInput) -> RunInputs:
    """Return the inputs of the run that a step belongs to, which are its input `run`."""
    return decode(RunInputs, step.inputs["run"], "inputs")


def _check_text(name: str, value: object, most: int) -> None:
    if not isinstance(value, str) or len(value) > most:
        raise ConfigError(
            name,
            value if not isinstance(value, str) else f"{len(value)} characters",
            f"at most {most} characters of text",
        )
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise ConfigError(name, value, "text without halves of characters (surrogates)")


def absolute_paths(paths: Iterable[str | Path]) -> tuple[str, ...]:
    """Return paths from the root, each once: a run that goes on in another folder finds the same."""
    return tuple(dict.fromkeys(map(_absolute, paths)))


def _absolute(path: str | Path) -> str:
    try:
        return str(Path(path).expanduser().resolve())
    except RuntimeError:  # `~` of a user who is unknown, or links that lead to themselves
        return str(Path(path).absolute())
