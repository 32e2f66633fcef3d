"""The section `telemetry`: metrics, log and traces. Statistics have a section of their own, `store`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from smart_model_router.core.options import Options, Ratio


@dataclass(frozen=True, kw_only=True)
class LogConfig(Options):
    """JSON lines, one a request and one a transition. `to` is stderr, stdout or a file; None is no log.

    `fine_share` is the share of requests without trouble that get a line; every other request always does.
    """

    to: str | None = None
    fine_share: Ratio = 1.0


@dataclass(frozen=True, kw_only=True)
class TracesConfig(Options):
    """Spans through the OpenTelemetry API; what becomes of them is the application's SDK's affair.

    `names` are those of the GenAI conventions most backends read now (current), those to come (next), or both.
    """

    enabled: bool = False
    names: Literal["current", "next", "both"] = "current"


@dataclass(frozen=True, kw_only=True)
class TelemetryConfig:
    """Metrics, log and traces. `metrics` counts for `GET /metrics` and `router.metrics()`."""

    metrics: bool = True
    log: LogConfig = field(default_factory=LogConfig)
    traces: TracesConfig = field(default_factory=TracesConfig)
