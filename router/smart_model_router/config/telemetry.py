"""The section `telemetry`: metrics, log and traces. Statistics have a section of their own, `store`."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from smart_model_router.core.checked_options import Options, Ratio


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
