"""The router's own log through the standard `logging`, in plain words: a line where something changes, not a request.

WARNING: another target serves a model, or none does; a breaker opens; a target is switched off. INFO: they are back.
DEBUG: every request with its attempts and refusals. A provider's own words are never in it: they may echo a prompt.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field

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
_TOLD = frozenset({BreakerChanged, RestStarted, OfflineChanged, SheddingChanged, StoreChanged})
"""Events with a line; all others are passed over at once."""


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
    _troubles: dict[str, dict[tuple[str, str], _Trouble]] = field(default_factory=dict, init=False)
    """By model, then by outcome and the target that served."""

    def continue_from(self, before: PlainLog) -> None:
        """Know of the troubles that the replaced router knew."""
        self._troubles = before._troubles

    def finished(self, report: RouteReport, outcome: RequestOutcome, error: str = "") -> None:
        """Tell of a request that is over, as far as it is news. `error` names the exception of one that failed."""
        if outcome == "ok":
            if report.model in self._troubles:
                self._recovered(report.model)
        elif (outcome in ("fallback", "degraded") or error in _UNAVAILABLE) and LOG.isEnabledFor(logging.WARNING):
            self._troubled(report, outcome)
        if LOG.isEnabledFor(logging.DEBUG):
            LOG.debug("%s %s", report.model, error or outcome)
            for line in lines(report):
                LOG.debug("%s", line)

    def emit(self, event: Event) -> None:
        """Tell of a transition, at the level that it deserves (ports.EventSink)."""
        if type(event) not in _TOLD:
            return
        match event:
            case BreakerChanged():
                self._breaker(event)
            case RestStarted():
                self._rest(event)
            case OfflineChanged():
                self._offline(event)
            case SheddingChanged():
                self._shedding(event)
            case StoreChanged():
                self._store(event)
            case _:
                pass

    def _troubled(self, report: RouteReport, outcome: str) -> None:
        if report.model not in self._troubles and len(self._troubles) >= _MODELS:
            self._troubles.clear()
        troubles = self._troubles.setdefault(report.model, {})
        now, key = self.clock(), (outcome, report.target or "")
        trouble = troubles.get(key)
        if trouble is not None:
            trouble.seen_at, trouble.requests = now, trouble.requests + 1
            if now - trouble.told_at < QUIET_SECONDS:
                trouble.untold += 1
                return
        if trouble is None:
            trouble = troubles[key] = _Trouble(now, now, now)
        more = f" ({trouble.untold} more such requests in {now - trouble.told_at:.0f} s)" if trouble.untold else ""
        trouble.told_at, trouble.untold = now, 0
        LOG.warning("%s %s: %s%s", report.request_id, report.model, headline(report), more)

    def _recovered(self, model: str) -> None:
        now = self.clock()
        ended = list(self._troubles[model].values())
        if any(now - trouble.seen_at < QUIET_SECONDS for trouble in ended):
            return
        del self._troubles[model]
        requests, since = sum(trouble.requests for trouble in ended), min(trouble.since for trouble in ended)
        LOG.info("%s: served by its first choice again; %d requests were not in %.0f s", model, requests, now - since)

    def _breaker(self, event: BreakerChanged) -> None:
        if event.kind == "stream" and "isolated" in (event.from_state, event.to_state):
            return  # the operator's word is told once, of the breaker for whole answers
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
