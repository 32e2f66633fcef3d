"""The router's own log through the standard `logging`, in plain words: a line where something changes, not a request.

WARNING: another target serves a model, or none does; a breaker opens; a target is switched off. INFO: they are back.
DEBUG: every request with its attempts and refusals. A provider's own words are never in it: they may echo a prompt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from smart_model_router.domain.errors import (
    AllTargetsFailed,
    DeadlineExceeded,
    Overloaded,
    RouterUnavailable,
    StreamInterrupted,
)
from smart_model_router.domain.events import (
    BreakerChanged,
    Event,
    OfflineChanged,
    RequestOutcome,
    RestStarted,
    SheddingChanged,
    StoreChanged,
)
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.report_text import breaker_text, headline, lines, rest_text

LOG = logging.getLogger("smart_model_router.router")
QUIET_SECONDS = 60.0
"""The same trouble of the same model has one line in so many seconds, and as long a time without it ends it."""
_UNAVAILABLE = frozenset(
    kind.__name__ for kind in (AllTargetsFailed, DeadlineExceeded, Overloaded, RouterUnavailable, StreamInterrupted)
)
"""Errors that are no fault of the request."""
_MODELS = 1_000


@dataclass(slots=True)
class _Trouble:
    """A model that its first choice does not serve. Instants are monotonic seconds."""

    since: float
    told_at: float
    seen_at: float
    untold: int = 0
    requests: int = 1


@dataclass(slots=True)
class PlainLog:
    """Write to `logging`. `clock` is that of the events' instants, `wall` gives epoch seconds."""

    clock: Callable[[], float]
    wall: Callable[[], float]
    _troubles: dict[tuple[str, str, str], _Trouble] = field(default_factory=dict, init=False)
    """By model, outcome and the target that served."""

    def continue_from(self, before: PlainLog) -> None:
        """Know of the troubles that the replaced router knew."""
        self._troubles = before._troubles

    def finished(self, report: RouteReport, outcome: RequestOutcome, error: str = "") -> None:
        """Tell of a request that is over, as far as it is news. `error` names the exception of one that failed."""
        if outcome == "ok":
            if self._troubles:
                self._recovered(report.model)
        elif (outcome in ("fallback", "degraded") or error in _UNAVAILABLE) and LOG.isEnabledFor(logging.WARNING):
            self._troubled(report, outcome)
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("%s %s", report.model, error or outcome)
            for line in lines(report):
                LOG.debug("%s", line)

    def emit(self, event: Event) -> None:
        """Tell of a transition, at the level that it deserves (ports.EventSink)."""
        told = _TELL.get(type(event))
        if told is not None:
            told(self, event)

    def _troubled(self, report: RouteReport, outcome: str) -> None:
        now, key = self.clock(), (report.model, outcome, report.target or "")
        trouble = self._troubles.get(key)
        if trouble is not None:
            trouble.seen_at, trouble.requests = now, trouble.requests + 1
            if now - trouble.told_at < QUIET_SECONDS:
                trouble.untold += 1
                return
        if trouble is None:
            if len(self._troubles) >= _MODELS:
                self._troubles.clear()
            trouble = self._troubles[key] = _Trouble(now, now, now)
        more = f" ({trouble.untold} more such requests in {now - trouble.told_at:.0f} s)" if trouble.untold else ""
        trouble.told_at, trouble.untold = now, 0
        LOG.warning("%s %s: %s%s", report.request_id, report.model, headline(report), more)

    def _recovered(self, model: str) -> None:
        now = self.clock()
        over = [key for key, trouble in self._troubles.items() if key[0] == model and _is_over(trouble, now)]
        if not over:
            return
        ended = [self._troubles.pop(key) for key in over]
        requests, since = sum(trouble.requests for trouble in ended), min(trouble.since for trouble in ended)
        LOG.info("%s: served by its first choice again; %d requests were not in %.0f s", model, requests, now - since)

    def _breaker(self, event: BreakerChanged) -> None:
        left = None if event.open_until is None else max(0.0, event.open_until - event.at)
        level = logging.INFO if event.to_state == "closed" else logging.WARNING
        if event.from_state != "half_open" or level == logging.INFO:  # a failed probe is no news
            free_at = None if left is None else self.wall() + left
            LOG.log(level, "%s", breaker_text(event.owner, event.to_state, event.reason, left, free_at))

    def _rest(self, event: RestStarted) -> None:
        level = logging.WARNING if event.reason in ("off", "wall") else logging.DEBUG
        if LOG.isEnabledFor(level):
            LOG.log(
                level, "%s", rest_text(event.target, event.failure_class, event.seconds, self.wall() + event.seconds)
            )

    def _offline(self, event: OfflineChanged) -> None:
        if event.offline:
            LOG.warning("no remote provider can be reached: this machine seems to be offline")
        else:
            LOG.info("remote providers can be reached again")

    def _shedding(self, event: SheddingChanged) -> None:
        if event.shedding:
            LOG.warning(
                "shedding requests of low criticality: %.0f %% of the providers are open", 100 * event.open_ratio
            )
        else:
            LOG.info("no request is shed any more")

    def _store(self, event: StoreChanged) -> None:
        if event.degraded:
            LOG.warning("the store %r is out of reach, requests are served all the same: %s", event.store, event.reason)
        else:
            LOG.info("the store %r is within reach again", event.store)


def _is_over(trouble: _Trouble, now: float) -> bool:
    return now - trouble.seen_at >= QUIET_SECONDS


_TELL: dict[type, Callable[[PlainLog, Any], None]] = {
    BreakerChanged: PlainLog._breaker,
    RestStarted: PlainLog._rest,
    OfflineChanged: PlainLog._offline,
    SheddingChanged: PlainLog._shedding,
    StoreChanged: PlainLog._store,
}
