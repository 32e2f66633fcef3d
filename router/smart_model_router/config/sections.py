"""The sections `gateway`, `telemetry`, `search` and `workflows`.

`evaluation` and `research` are in research_sections.py, the others in tree.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Literal

from smart_model_router.config.secret import Secret
from smart_model_router.core.checked_options import Count, Interval, Options, Ratio, Seconds, SecondsOrZero, Unit
from smart_model_router.domain.request import Criticality


@dataclass(frozen=True, kw_only=True)
class GatewayKeyConfig(Options):
    """One virtual key that a client of the gateway shows, with its permissions and limits.

    Either `key` or `sha256` (64 hexadecimal digits of the key's hash) is needed. `models` are public names, `*`
    standing for any text; none is all. `rpm` and `tpm` are a minute's, `usd_per_day` is of 24 hours from its first use;
    with shared state (`store`) they are those of all processes of the host together. `criticality` is the most a client
    may ask for; a request that names none has `critical`, or this if it is less. An `admin` may also enable and
    isolate targets.
    """

    key: Secret | None = None
    sha256: str | None = None
    models: tuple[str, ...] = ()
    rpm: Count | None = None
    tpm: Count | None = None
    usd_per_day: Annotated[float, Interval(gt=0, le=1_000_000)] | None = None
    criticality: Criticality = "critical"
    admin: bool = False


@dataclass(frozen=True, kw_only=True)
class PassthroughConfig(Options):
    """Paths beside the dialects, whose requests and answers pass through as they come. Durations are seconds.

    `routes` are paths (`/v1/moderations`, `/v1/rerank`, those below `/v1/audio/` and `/v1/images/`, `*` as the last
    segment standing for any), each with its servers, in order: providers, or `provider/model`, which shares its rate
    limits with the target of that name and names Azure's deployment. A body has at most `max_body` bytes. A call ends
    when its provider neither takes nor sends anything for `silence`.
    """

    routes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    max_body: Annotated[int, Unit("count"), Interval(ge=1024, le=1_099_511_627_776)] = 1_073_741_824
    silence: Seconds = 300.0


@dataclass(frozen=True, kw_only=True)
class GatewayConfig(Options):
    """The HTTP gateway. Without `keys` it listens on this machine's own addresses only. Durations are seconds.

    A stream's head is held for `hold_head` at most; a silent stream is pinged every `ping`. A request's head must
    be there within `head_timeout`, its body within `body_timeout` more; they have at most so many bytes, and the body
    at most `max_elements` JSON values (counted before it is decoded: commas and opening brackets outside of strings).
    `drain` is how long requests under way may go on after SIGTERM. With `stream_report` streams have a `router` object
    beside their finish reason. Web pages of the origins in `cors` may read answers in a browser; `*` is every page, for
    a gateway with keys. `passthrough` are paths beside the dialects.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, Interval(ge=0, le=65_535)] = 8000
    keys: Mapping[str, GatewayKeyConfig] = field(default_factory=dict)
    hold_head: Seconds = 15.0
    ping: Seconds = 15.0
    head_timeout: Seconds = 10.0
    body_timeout: Seconds = 60.0
    head_bytes: Annotated[int, Unit("count"), Interval(ge=1024, le=16_777_216)] = 65_536
    body_bytes: Annotated[int, Unit("count"), Interval(ge=1024, le=1_073_741_824)] = 33_554_432
    max_elements: Annotated[int, Unit("count"), Interval(ge=1000, le=100_000_000)] = 200_000
    drain: SecondsOrZero = 30.0
    cors: tuple[str, ...] = ()
    stream_report: bool = True
    passthrough: PassthroughConfig = field(default_factory=PassthroughConfig)


@dataclass(frozen=True, kw_only=True)
class LogConfig(Options):
    """JSON lines, one a request and one a transition. `to` is stderr, stdout or a file; None is no log.

    `fine_share` is the share of requests without trouble that get a line; every other request always does.
    """

    to: str | None = None
    fine_share: Ratio = 1.0


@dataclass(frozen=True, kw_only=True)
class TracesConfig(Options):
    """Spans through the OpenTelemetry API; the application's SDK decides about them.

    `names` are those of the GenAI conventions most backends read now (current), those to come (next), or both.
    """

    enabled: bool = False
    names: Literal["current", "next", "both"] = "current"


@dataclass(frozen=True, kw_only=True)
class ContentConfig(Options):
    """The prompts and answers in log and traces: none, as a hash, as redacted text, or whole without keys.

    `until` is an instant (ISO 8601 with its zone, in quotation marks) from which nothing is told any more; `full`
    needs one.
    """

    mode: Literal["off", "hash", "redacted", "full"] = "off"
    until: str | None = None

    @property
    def ends_at(self) -> float | None:
        """`until` as seconds since the epoch. Raises ValueError for a text that is no such instant."""
        if self.until is None:
            return None
        instant = datetime.fromisoformat(self.until)
        if instant.tzinfo is None:
            raise ValueError("it has no zone")
        return instant.timestamp()


@dataclass(frozen=True, kw_only=True)
class TelemetryConfig:
    """Metrics, log, traces and what these may tell. `metrics`: for `GET /metrics` and `router.monitor.metrics()`."""

    metrics: bool = True
    log: LogConfig = field(default_factory=LogConfig)
    traces: TracesConfig = field(default_factory=TracesConfig)
    content: ContentConfig = field(default_factory=ContentConfig)


Weight = Annotated[float, Interval(ge=0, le=1_000_000)]
Share = Annotated[float, Unit("ratio"), Interval(ge=0, le=1)]


@dataclass(frozen=True, kw_only=True)
class SearchWeightsConfig(Options):
    """The weight of each strategy's ranks; 0 switches one off.

    Without a weight, vectors weigh what suits their embedder: see `SearchConfig.embedder`.
    """

    vector: Weight | None = None
    keyword: Weight = 1.0
    graph: Weight = 0.05


@dataclass(frozen=True, kw_only=True)
class SearchTimeoutsConfig(Options):
    """The seconds that each strategy may take; then the others answer without it."""

    vector: Seconds = 5.0
    keyword: Seconds = 2.0
    graph: Seconds = 1.0


@dataclass(frozen=True, kw_only=True)
class CurveConfig:
    """A logistic function of evidence: `smr evaluate --fit` writes it. Its features are those of `EvidenceModel`."""

    bias: Annotated[float, Interval(ge=-1_000_000, le=1_000_000)]
    weights: Mapping[str, Weight]


@dataclass(frozen=True, kw_only=True)
class SearchEvidenceConfig(Options):
    """Functions in the place of the shipped ones: of a question (`answers`), and of a passage (`relevance`)."""

    answers: CurveConfig | None = None
    relevance: CurveConfig | None = None


@dataclass(frozen=True, kw_only=True)
class SearchConfig(Options):
    """Retrieval. Threshold and steepness default to those of a founding scale (`raw`: 0.035 and 150, as founded).

    `index` is the file that `smr index` makes; `model` writes answers from the results, `embedding_model` makes
    vectors (both are public names). `embedder` says what makes them without such a model: `auto` is `wordllama` where
    the extra `embed` is installed, else `hashed` where `uses_hashed_vectors`, else none.
    """

    index: str | None = None
    model: str | None = None
    embedding_model: str | None = None
    embedder: Literal["auto", "wordllama", "hashed", "none"] = "auto"
    fusion: Literal["rrf", "relative", "distribution"] = "rrf"
    rrf_k_constant: Annotated[float, Interval(ge=0, le=1_000_000)] = 60.0
    weights: SearchWeightsConfig = field(default_factory=SearchWeightsConfig)
    timeouts: SearchTimeoutsConfig = field(default_factory=SearchTimeoutsConfig)
    score_calibration_scale: Literal["evidence", "attainment", "raw"] | None = None
    score_calibration_threshold: Annotated[float, Interval(ge=0, le=1_000_000)] | None = None
    score_calibration_steepness: Annotated[float, Interval(gt=0, le=1_000_000)] | None = None
    min_confidence: Share = 0.3
    evidence: SearchEvidenceConfig = field(default_factory=SearchEvidenceConfig)
    evidence_gate: Share = 0.0
    recency: bool = False

    @property
    def uses_hashed_vectors(self) -> bool:
        """True when hashed vectors, which rank worse than keywords, take part without being named by `embedder`.

        Their weight asks for them, a founding scale, which counts on them, or keywords that weigh 0.
        """
        return bool(self.weights.vector) or self.scale != "evidence" or not self.weights.keyword

    @property
    def scale(self) -> Literal["evidence", "attainment", "raw"]:
        """The scale of scores: as configured, else `evidence`; `attainment` where a key of founding scales is set.

        So a configuration that was tuned to the former default keeps its scores.
        """
        if self.score_calibration_scale is not None:
            return self.score_calibration_scale
        tuned = (self.score_calibration_threshold, self.score_calibration_steepness) != (None, None)
        return "attainment" if tuned or self.evidence_gate else "evidence"


@dataclass(frozen=True, kw_only=True)
class WorkflowsConfig(Options):
    """Workflows and the file that their runs survive in, `runs`; None is `runs.db` in the user's data directory.

    `store_url` is a PostgreSQL database instead, as in postgresql://user:password@host/database: then any machine goes
    on with any run. `engine` runs them: `auto` is the one that a workflow needs. At most `max_concurrency` steps of a
    run are under way. A process holds a run for `lease` seconds and says so again every `heartbeat`; of one that
    stopped, another process can take it then. Runs that ended `retention_days` ago are deleted.
    """

    engine: Literal["auto", "kahn", "langgraph", "dbos", "shadow"] = "auto"
    runs: str | None = None
    store_url: Secret | None = None
    max_concurrency: Annotated[int, Unit("count"), Interval(ge=1, le=10_000)] = 10
    lease: Annotated[float, Unit("seconds"), Interval(ge=1, le=3600)] = 30.0
    heartbeat: Annotated[float, Unit("seconds"), Interval(ge=0.1, le=1800)] = 5.0
    retention_days: Annotated[int, Unit("count"), Interval(ge=1, le=3650)] = 30
