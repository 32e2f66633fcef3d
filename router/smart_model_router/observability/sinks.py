"""The sinks of a router: the given and the configured ones, each behind a queue unless it returns at once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.observability.log_file import opened
from smart_model_router.observability.metrics import Metrics
from smart_model_router.observability.worker import CLOSING_SECONDS, HasWorker, Worker, kept_apart

if TYPE_CHECKING:
    from smart_model_router.domain.ports import Clock, EventSink

_STEP_SECONDS = 0.01


@dataclass(frozen=True, slots=True)
class SinkStatus:
    """The condition of a sink on a thread of its own: events on which it raised, and those it was too slow for."""

    name: str
    errors: int
    dropped: int


def sinks_of(
    config: RouterConfig, given: Sequence[EventSink], *, clock: Clock, secrets: tuple[str, ...] = ()
) -> tuple[EventSink, ...]:
    """All sinks of a router. `secrets` never appear in a log. Raises ConfigurationError."""
    telemetry = config.telemetry
    own: list[EventSink] = []
    try:
        if telemetry.metrics:
            own.append(Metrics())
        if telemetry.log.to is not None:
            own.append(kept_apart(_log(telemetry.log.to, telemetry.log.fine_share, secrets, clock)))
        if telemetry.traces.enabled:
            own.append(_spans(config))
    except ConfigurationError:
        for worker in _behind_queues(own):
            worker.close()
        raise
    return (*map(kept_apart, given), *own)


def statuses(sinks: Sequence[EventSink]) -> tuple[SinkStatus, ...]:
    """Every sink that works behind a queue."""
    return tuple(SinkStatus(worker.name, worker.errors, worker.dropped) for worker in _behind_queues(sinks))


def metrics_in(sinks: Sequence[EventSink]) -> Metrics | None:
    """The metrics among the sinks, when they are counted."""
    return next((sink for sink in sinks if isinstance(sink, Metrics)), None)


async def close(sinks: Sequence[EventSink]) -> None:
    """Let sinks behind queues catch up and close, for at most CLOSING_SECONDS; one that hangs is left behind."""
    waiting = list(_behind_queues(sinks))
    for worker in waiting:
        worker.close()
    until = time.monotonic() + CLOSING_SECONDS
    while not all(worker.ended for worker in waiting) and time.monotonic() < until:  # noqa: ASYNC110 - threads
        await asyncio.sleep(_STEP_SECONDS)


def _behind_queues(sinks: Sequence[EventSink]) -> Iterator[Worker[Any]]:
    for sink in sinks:
        if isinstance(sink, HasWorker) and isinstance(worker := sink.worker, Worker):
            yield worker


def _log(target: str, fine_share: float, secrets: tuple[str, ...], clock: Clock) -> EventSink:
    try:
        from smart_model_router.observability.log import LogSink  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        expected = "the log is an extra: pip install 'smart-model-router[log]'"
        raise ConfigurationError("telemetry.log.to", missing.name, expected) from None
    try:
        stream = opened(target)
    except OSError as error:
        expected = f"a file that can be written is needed: {error.strerror}"
        raise ConfigurationError("telemetry.log.to", target, expected) from None
    return LogSink(stream, fine_share=fine_share, secrets=secrets, clock=clock.now)


def _spans(config: RouterConfig) -> EventSink:
    try:
        from smart_model_router.observability.spans import SpanSink  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        expected = "traces are an extra: pip install 'smart-model-router[otel]'"
        raise ConfigurationError("telemetry.traces.enabled", missing.name, expected) from None
    kinds = {name: provider.kind for name, provider in config.providers.items()}
    return SpanSink(kinds, names=config.telemetry.traces.names)
