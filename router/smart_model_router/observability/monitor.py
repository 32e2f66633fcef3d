"""The observable side of a router: metrics, dashboard snapshots, further sinks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from smart_model_router.core.tiers import ModelRoute
from smart_model_router.domain.ports import SupportsStatus
from smart_model_router.flow.state import RouterState
from smart_model_router.observability.exposition import rendered
from smart_model_router.observability.gauges import counters, gauges
from smart_model_router.observability.registry import Sample
from smart_model_router.observability.sinks import SinkStatus, metrics_in, statuses

if TYPE_CHECKING:
    from smart_model_router.domain.ports import EventSink
    from smart_model_router.observability.dashboard_history import DashboardHistory
    from smart_model_router.observability.dashboard_snapshot import DashboardSnapshot
    from smart_model_router_stats.book import StatsBook

_NOT_SHARED = "there is no shared state (store.path names no file, or store.shared_state is off)"


class Monitor:
    """Watches one router; `router.monitor` makes one."""

    def __init__(self, state: RouterState, book: StatsBook, ladders: Mapping[str, ModelRoute]) -> None:
        self._state = state
        self._book = book
        self._ladders = ladders

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
        sharing = self._state.sharing
        return _NOT_SHARED if sharing is None else sharing.reason

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
        return DashboardSnapshot(self._state, self._book, self._ladders, recorder)

    def _samples(self) -> list[Sample]:
        counted = metrics_in(self._state.sinks)
        own = [Sample(name, (), float(count)) for name, count in counters(self._state).items()]
        return [*(counted.samples() if counted is not None else ()), *own, *gauges(self._state)]
