"""The observable side of a router: its sinks, its metrics and its dashboard snapshots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from smart_model_router.config import RouterConfig
from smart_model_router.core.tiers import ModelRoute
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.ports import SupportsStatus
from smart_model_router.domain.shared_state import MemberRow, silent_for
from smart_model_router.flow.state import RouterState
from smart_model_router.observability.metrics import Metrics, counters, gauges
from smart_model_router.observability.registry import Sample, rendered
from smart_model_router.observability.worker import SinkStatus, kept_apart, statuses, workers_of

if TYPE_CHECKING:
    from smart_model_router.domain.ports import Clock, EventSink
    from smart_model_router.observability.dashboard_history import DashboardHistory
    from smart_model_router.observability.dashboard_snapshot import DashboardSnapshot
    from smart_model_router_stats.book import StatsBook


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
        for worker in workers_of(own):
            worker.close()
        raise
    return (*map(kept_apart, given), *own)


def metrics_in(sinks: Sequence[EventSink]) -> Metrics | None:
    """The metrics among the sinks, when they are counted."""
    return next((sink for sink in sinks if isinstance(sink, Metrics)), None)


def _log(target: str, fine_share: float, secrets: tuple[str, ...], clock: Clock) -> EventSink:
    try:
        from smart_model_router.observability.log import LogSink, opened  # noqa: PLC0415 - an extra
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


_NOT_SHARED = "there is no shared state (store.path names no file, or store.shared_state is off)"


class Monitor:
    """Watches one router; `router.monitor` makes one."""

    def __init__(self, state: RouterState, book: StatsBook, model_routes: Mapping[str, ModelRoute]) -> None:
        self._state = state
        self._book = book
        self._model_routes = model_routes

    def metrics(self) -> bytes:
        """The metrics of this process as Prometheus reads them; without `telemetry.metrics` the gauges alone."""
        return rendered(self.samples())

    def samples(self) -> list[Sample]:
        """The same as figures."""
        return self._state.portal.call(self._samples)

    def sinks(self) -> tuple[SinkStatus, ...]:
        """Return every sink behind a queue with its errors and the events it was too slow for."""
        return statuses(self._state.sinks)

    @property
    def store_problem(self) -> str:
        """The reason why statistics do not reach their file at present; "" when they do, or when there is none."""
        store = self._state.store
        return store.status.reason if store is not None and isinstance(store, SupportsStatus) else ""

    @property
    def shared_problem(self) -> str:
        """The reason why this process decides alone at present; "" while it shares state with others of the host."""
        coordinator = self._state.coordinator
        return _NOT_SHARED if coordinator is None else coordinator.reason

    @property
    def alone_for(self) -> float | None:
        """Seconds for which this process has decided alone; None while it shares state, or has none to share."""
        since = None if self._state.coordinator is None else self._state.coordinator.alone_since
        return None if since is None else max(0.0, self._state.clock.now() - since)

    @property
    def members(self) -> tuple[tuple[MemberRow, float], ...]:
        """The processes that share state, and the seconds since each was last heard of."""
        coordinator = self._state.coordinator
        if coordinator is None:
            return ()
        here = self._state.here()
        return tuple((row, max(0.0, silent_for(row, here))) for row in coordinator.members.living())

    @property
    def kept_problem(self) -> str:
        """The reason why answers for later references cannot be kept at present; "" while they can, or need not be."""
        kept = self._state.kept
        return "" if kept is None else kept.reason

    def watch(self, sink: EventSink) -> None:
        """Send every event from now on to one more sink, on the router's loop: it must return at once."""
        self._state.sinks = (*self._state.sinks, sink)

    def continue_from(self, before: Monitor) -> None:
        """Continue the counters of another router of this process, which this one replaces."""
        own, others = metrics_in(self._state.sinks), metrics_in(before._state.sinks)
        if own is not None and others is not None:
            own.continue_from(others)
        self._state.counted_before = counters(before._state)

    def painter(self, recorder: DashboardHistory) -> DashboardSnapshot:
        """Return the maker of snapshots of this router, with the past that `recorder` remembers."""
        from smart_model_router.observability.dashboard_snapshot import DashboardSnapshot  # noqa: PLC0415 - only a dashboard pays

        recorder.follow(self._state.clock.now)
        return DashboardSnapshot(self._state, self._book, self._model_routes, recorder)

    def _samples(self) -> list[Sample]:
        counted = metrics_in(self._state.sinks)
        own = [Sample(name, (), float(count)) for name, count in counters(self._state).items()]
        return [*(counted.samples() if counted is not None else ()), *own, *gauges(self._state)]
