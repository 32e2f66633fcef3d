"""The metrics sink: events become counters and histograms. A few microseconds an event, nothing leaves the process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from smart_model_router.events import AttemptFinished, BreakerChanged, Event, RequestFinished, RequestShed
from smart_model_router.telemetry.registry import Registry, Sample

_OPEN_REQUESTS = 4096
_NAMES = 1000


class Metrics:
    """Counts events. `model_of` gives the configured model behind a name a caller asked for.

    Callers choose names (aliases, patterns): as they are they would be a label without bounds.
    """

    inline = True

    def __init__(self, model_of: Callable[[str], str]) -> None:
        self._model_of = model_of
        self._models: dict[str, str] = {}
        self._registry = Registry()
        self._cells: dict[tuple[str, str, str], list[float]] = {}
        self._spent: dict[str, float] = {}
        """Seconds in calls of requests that go on."""
        self._handlers: dict[type, Callable[[Any], None]] = {
            AttemptFinished: self._attempt,
            RequestFinished: self._request,
            BreakerChanged: self._transition,
            RequestShed: self._shed,
        }

    def emit(self, event: Event) -> None:
        """Count it."""
        handler = self._handlers.get(type(event))
        if handler is not None:
            handler(event)

    def continue_from(self, before: Metrics) -> None:
        """Go on with the counters of another one, which still counts, too."""
        self._registry, self._cells = before._registry, before._cells

    def samples(self) -> list[Sample]:
        """Every counter and histogram."""
        return self._registry.samples()

    def _attempt(self, event: AttemptFinished) -> None:
        target, failure = event.target, event.failure_class
        self._cell("smr_attempts_total", target, "OK" if failure is None else failure.value)[0] += 1.0
        if event.ttft_seconds is not None:
            self._registry.observe("smr_time_to_first_token_seconds", event.ttft_seconds, target)
        usage = event.usage
        if usage is not None:
            self._cell("smr_tokens_total", target, "prompt")[0] += usage.prompt_tokens
            self._cell("smr_tokens_total", target, "completion")[0] += usage.completion_tokens
            if usage.cached_prompt_tokens:
                self._cell("smr_tokens_total", target, "cached_prompt")[0] += usage.cached_prompt_tokens
        elif failure is None:
            self._registry.count("smr_usage_missing_total", target)
        if event.cost_usd:
            self._registry.count("smr_cost_usd_total", target, by=event.cost_usd)
        if event.request_id:
            spent = self._spent
            spent[event.request_id] = spent.get(event.request_id, 0.0) + event.seconds
            if len(spent) > _OPEN_REQUESTS:
                del spent[next(iter(spent))]

    def _request(self, event: RequestFinished) -> None:
        count, model = self._registry.count, self._model(event.model)
        self._cell("smr_requests_total", model, event.outcome)[0] += 1.0
        self._registry.observe("smr_request_duration_seconds", event.seconds, model)
        calls = self._spent.pop(event.request_id, 0.0)
        self._registry.observe("smr_overhead_seconds", max(0.0, event.seconds - calls - event.waited_seconds))
        if event.degraded:
            count("smr_degraded_total", model, event.requested_tier, event.actual_tier or "")
        if event.last_resort:
            count("smr_last_resort_total")

    def _transition(self, event: BreakerChanged) -> None:
        self._registry.count(
            "smr_breaker_transitions_total", event.owner, event.from_state, event.to_state, event.reason
        )

    def _shed(self, event: RequestShed) -> None:
        self._registry.count("smr_shed_total", event.criticality)

    def _cell(self, name: str, first: str, second: str) -> list[float]:
        key = (name, first, second)
        known = self._cells.get(key)
        if known is None:
            known = self._cells[key] = self._registry.cell(name, first, second)
        return known

    def _model(self, name: str) -> str:
        known = self._models.get(name)
        if known is None:
            if len(self._models) >= _NAMES:
                self._models.clear()
            known = self._models[name] = self._model_of(name)
        return known
