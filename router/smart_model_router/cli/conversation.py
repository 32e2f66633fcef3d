"""The router of a conversation: that of a configuration in this process, or that of a gateway."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from smart_model_router.cli.configured import configured
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import AllTargetsFailed, ModelNotFound, SmartRouterError
from smart_model_router.domain.outcome import FailureClass


@dataclass(frozen=True, slots=True)
class Used:
    """A configuration, the model to ask, and the tier when this process chooses it (a gateway is told by a header)."""

    config: RouterConfig
    model: str
    tier: str | None


def as_the_gateway_said(error: SmartRouterError, url: str | None) -> SmartRouterError:
    """The error in a gateway's own words where it does not know the model: here it is a provider without one."""
    report = error.report
    if url is None or report is None or not isinstance(error, AllTargetsFailed) or not report.attempts:
        return error
    last = report.attempts[-1]
    if last.failure_class is not FailureClass.MODEL_GONE:
        return error
    return ModelNotFound(last.message, report=report)


def used_for(url: str | None, *, config: Path | None, model: str | None, tier: str | None) -> Used:
    """Return configuration, model and tier. Raises ConfigurationError, and RouterUnavailable without a gateway."""
    if url is None:
        found = configured(config)
        return Used(found.config, found.default_model if model is None else model, tier)
    from smart_model_router.cli.gateway_access import through_gateway  # noqa: PLC0415 - brings an HTTP client

    made = through_gateway(url, config=config, model=model, tier=tier)
    return Used(made, next(iter(made.models)), None)
