"""The sections `evaluation` and `research`: how research is judged, what it reads, and the most that it may use."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from smart_model_router.config.files import placed_in_columns, read_file
from smart_model_router.config.hints import ByReference
from smart_model_router.config.secret import Secret, masked_urls
from smart_model_router.core.checked_options import Count, CountOrZero, Interval, Options, Unit
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.hosts import as_domain
from smart_model_router.domain.tree_path import spelled

if TYPE_CHECKING:
    from pathlib import Path

_DEEP = ("evaluation", "deep_research")
CORPUS = "corpus"
"""The back-end that `research.corpora` are searched by."""
_BACKEND = re.compile(r"[\w.:-]{1,64}", re.ASCII)
_ANALYST = re.compile(r"[a-z][a-z0-9_]{0,31}")
Part = Annotated[float, Unit("ratio"), Interval(ge=0, le=1)]
MetricWeight = Annotated[float, Interval(ge=0, le=1_000_000)]


@dataclass(frozen=True, kw_only=True)
class FloorThresholdsConfig(Options):
    """The least of each metric (0..1) that passes the gate of the policy `two_tier`."""

    coverage: Part = 0.35
    source_quality: Part = 0.40
    agreement: Part = 0.35
    verification: Part = 0.40
    recency: Part = 0.30


@dataclass(frozen=True, kw_only=True)
class TiebreakerWeightsConfig(Options):
    """The weight of each metric in the confidence index; they are divided by their sum."""

    coverage: MetricWeight = 0.25
    source_quality: MetricWeight = 0.20
    agreement: MetricWeight = 0.20
    verification: MetricWeight = 0.20
    recency: MetricWeight = 0.15


@dataclass(frozen=True, kw_only=True)
class DeepResearchConfig(Options):
    """The judging of rounds of research, under the founding names. A run may override most of it.

    `scoring_engine` is the gate, and when to stop: `two_tier` or `matrix`, of which `multidimensional` is the old name.
    `min_recent_sources` None is 10, or 1 where every source is a corpus; `patience` None is 2, or 1 of `matrix`;
    `on_contradiction` None is `continue`, or `halt` of `matrix`. `tier_thresholds` are the least scores that are called
    Elite, High and Medium. `recency_windows` are days in which a source of a domain is recent, over the built-in ones.
    """

    scoring_engine: Literal["two_tier", "matrix", "multidimensional"] = "two_tier"
    min_ci: Part = 0.80
    min_recent_sources: CountOrZero | None = None
    floor_thresholds: FloorThresholdsConfig = field(default_factory=FloorThresholdsConfig)
    tier_thresholds: tuple[Part, ...] = (0.90, 0.75, 0.50)
    recency_windows: Mapping[str, Count] = field(default_factory=dict)
    recency_mode: Literal["decay", "binary"] = "decay"
    tiebreaker_weights: TiebreakerWeightsConfig = field(default_factory=TiebreakerWeightsConfig)
    aggregation: Literal["arithmetic", "geometric"] = "arithmetic"
    patience: Count | None = None
    on_contradiction: Literal["continue", "halt"] | None = None

    @property
    def stop_policy(self) -> Literal["two_tier", "matrix"]:
        """The gate by its present name."""
        return "matrix" if self.scoring_engine == "multidimensional" else self.scoring_engine


@dataclass(frozen=True, kw_only=True)
class EvaluationConfig:
    """The evaluation of answers."""

    deep_research: DeepResearchConfig = field(default_factory=DeepResearchConfig)

    def recency_windows(self) -> Mapping[str, int]:
        """The days of every domain, the built-in ones included, read-only."""
        # Imported when asked: a router that judges nothing need not load it.
        from smart_model_router_scoring.decay import load_recency_windows  # noqa: PLC0415

        windows = dict(self.deep_research.recency_windows)
        return load_recency_windows({"evaluation": {"deep_research": {"recency_windows": windows}}})

    def faults(self) -> Iterator[ConfigurationError]:
        """Yield what no single key shows."""
        found = self.deep_research.tier_thresholds
        if len(found) != 3 or not 1 >= found[0] > found[1] > found[2] >= 0:
            wanted = "three falling scores are needed, such as [0.90, 0.75, 0.50]"
            yield ConfigurationError(spelled((*_DEEP, "tier_thresholds")), list(found), wanted)
        weights = self.deep_research.tiebreaker_weights
        if not any(vars(weights).values()):
            yield ConfigurationError(spelled((*_DEEP, "tiebreaker_weights")), 0, "a weight above 0 is needed")


@dataclass(frozen=True, kw_only=True)
class EvaluationFile:
    """A file of its own for the section `evaluation`. Raises ConfigurationError."""

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}

    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)

    def __post_init__(self) -> None:
        if found := list(self.evaluation.faults()):
            raise found[0].with_others(found[1:])


def load_evaluation(path: str | Path, *, environ: Mapping[str, str] | None = None) -> EvaluationConfig:
    """Read the section `evaluation` of a file of its own. Raises ConfigurationError with file, line and column."""
    given = os.environ if environ is None else environ
    return read_file(EvaluationFile, path, given, placed_in_columns).evaluation


@dataclass(frozen=True, kw_only=True)
class AnalystConfig(Options):
    """An analyst: its name, and what it looks for, `evidence` or `quantities`, or all for `any`."""

    name: str
    lens: Literal["evidence", "quantities", "any"] = "any"


@dataclass(frozen=True, kw_only=True)
class ResearchBudgetConfig(Options):
    """The most that a run of research may use. Of each a share, `reserve`, is kept for the report at its end.

    `searches` are questions put to sources, `fetches` documents that are read.
    """

    seconds: Annotated[float, Unit("seconds"), Interval(ge=0.001, le=604_800)] = 900.0
    searches: CountOrZero = 60
    fetches: CountOrZero = 120
    tokens: CountOrZero = 400_000
    usd: Annotated[float, Interval(ge=0, le=1_000_000)] = 2.0
    model_calls: CountOrZero = 120
    reserve: Annotated[float, Unit("ratio"), Interval(ge=0, le=0.5)] = 0.15


@dataclass(frozen=True, kw_only=True)
class SearchBackendConfig(Options):
    """A search back-end: `corpus`, a shipped kind, an entry point of `smart_model_router.search` or `package.module:X`.

    `name` is the kind unless it is given. `url` is the address of SearXNG, `file` that of recorded searches; `options`
    are for the back-ends of others.
    """

    kind: str
    name: str | None = None
    url: str | None = None
    api_key: Annotated[Secret, ByReference()] | None = None
    file: str | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @staticmethod
    def written_out(given: object) -> object:
        """Return the mapping that a short form stands for: text is the kind itself."""
        return {"kind": given} if isinstance(given, str) else given

    @property
    def label(self) -> str:
        """The name by which runs know it."""
        return self.name or self.kind

    def faults(self, at: int) -> Iterator[ConfigurationError]:
        """Yield what no single key shows, for the back-end of this number."""
        path = ("research", "backends", at)
        if not _BACKEND.fullmatch(self.label):
            wanted = "a name of letters, digits, '_', '-' and '.' is needed, at most 64"
            yield ConfigurationError(spelled((*path, "name")), self.label, wanted)
        for key, kind in (("url", "searxng"), ("api_key", "tavily"), ("file", "recorded")):
            if self.kind == kind and getattr(self, key) is None:
                yield ConfigurationError(spelled((*path, key)), None, f"the kind {kind} needs it")
        if self.url is not None and not _is_base_url(self.url):
            wanted = "an http:// or https:// URL is needed, without a password and without a query"
            yield ConfigurationError(spelled((*path, "url")), masked_urls(self.url), wanted)


def _is_base_url(url: str) -> bool:
    return re.fullmatch(r"https?://[^\s/@?#]+(?:/[^\s?#]*)?", url) is not None


@dataclass(frozen=True, kw_only=True)
class ResearchConfig(Options):
    """Runs of research: their sources, and their limits.

    `backends` are where sources are looked for; without any it is `corpora` alone. With `egress` `local_only` nothing
    is searched and fetched outside of this machine. `corpora` are folders, files of documents, or indices that `smr
    index` made. `allow`, `block` and `source_tiers` (A, B or C) are domains; each stands for all below it. Without
    `analysts` there are two: `ai`, which looks for evidence, and `swe`, for quantities. `delivery` `always` shows a
    report that is too weak, too. `model` is a public name of `models`, None for research without one; `tiers` are tiers
    of it by the wish of a step. With `gateway` the gateway has routes of research: at most `runs_per_key` runs of a
    key go on at once, and a run that ended is deleted with its report after `keep_days`.
    """

    corpora: tuple[str, ...] = ()
    backends: tuple[SearchBackendConfig, ...] = ()
    egress: Literal["public", "local_only"] = "public"
    allow: tuple[str, ...] = ()
    block: tuple[str, ...] = ()
    source_tiers: Mapping[str, Literal["A", "B", "C"]] = field(default_factory=dict)
    analysts: tuple[AnalystConfig, ...] = ()
    budget: ResearchBudgetConfig = field(default_factory=ResearchBudgetConfig)
    rounds: Annotated[int, Unit("count"), Interval(ge=1, le=4)] = 4
    delivery: Literal["auto", "always"] = "auto"
    model: str | None = None
    tiers: Mapping[Literal["frontier", "standard", "economy"], str] = field(default_factory=dict)
    criticality: Literal["critical_plus", "critical", "sheddable_plus", "sheddable"] = "critical"
    gateway: bool = False
    runs_per_key: Count = 2
    keep_days: Annotated[int, Unit("count"), Interval(ge=1, le=3650)] = 30

    def faults(self) -> Iterator[ConfigurationError]:
        """Yield what no single key shows."""
        for key in ("allow", "block", "source_tiers"):
            for at, domain in enumerate(getattr(self, key)):
                if as_domain(domain) is None:
                    where = ("research", key, domain if key == "source_tiers" else at)
                    wanted = "a domain, such as example.org, without a scheme or a path, is needed"
                    yield ConfigurationError(spelled(where), domain, wanted)
        labels = [backend.label for backend in self.backends]
        for at, backend in enumerate(self.backends):
            yield from backend.faults(at)
            if backend.label in labels[:at]:
                wanted = "a name that no other back-end has is needed"
                yield ConfigurationError(spelled(("research", "backends", at, "name")), backend.label, wanted)
            if self.egress == "local_only" and backend.kind != CORPUS:
                wanted = "`corpus` alone is needed where research.egress is local_only: it would search the web"
                yield ConfigurationError(spelled(("research", "backends", at)), backend.label, wanted)
        names = [analyst.name for analyst in self.analysts]
        for at, name in enumerate(names):
            if not _ANALYST.fullmatch(name) or name in names[:at]:
                wanted = "a name of its own is needed: small letters, digits and '_', at most 32"
                yield ConfigurationError(spelled(("research", "analysts", at, "name")), name, wanted)
