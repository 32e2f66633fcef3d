"""Traces over the OpenTelemetry API: a span for each request, a CLIENT span for each call, in GenAI conventions.

Next is the conventions after 1.36, where `gen_ai.system` became `gen_ai.provider.name` (and some of its values were
renamed): opentelemetry.io, "Semantic conventions for generative AI". `both` sends what differs under both names.

The SDK, its exporters and its sampling are the application's. Spans are made when a request has ended, with the
instants of its events, on a thread: an exporter that blocks or fails has no effect on a request.
"""

from __future__ import annotations

import math
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from opentelemetry import context as contexts
from opentelemetry import trace
from opentelemetry.propagate import extract
from opentelemetry.trace import SpanKind, Status, StatusCode, TracerProvider

from smart_model_router.domain.events import Asked, AttemptFinished, ContentSeen, Event, RequestFinished, TargetRefused
from smart_model_router.observability.worker import OpenRequests, Worker

Names = Literal["current", "next", "both"]

OPERATION = "operation"
PROVIDER = "provider"
REQUEST_MODEL = "request_model"
RESPONSE_MODEL = "response_model"
INPUT_TOKENS = "input_tokens"
OUTPUT_TOKENS = "output_tokens"
CACHED_TOKENS = "cached_tokens"
ERROR = "error"

_TABLE: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        OPERATION: ("gen_ai.operation.name", "gen_ai.operation.name"),
        PROVIDER: ("gen_ai.system", "gen_ai.provider.name"),
        REQUEST_MODEL: ("gen_ai.request.model", "gen_ai.request.model"),
        RESPONSE_MODEL: ("gen_ai.response.model", "gen_ai.response.model"),
        INPUT_TOKENS: ("gen_ai.usage.input_tokens", "gen_ai.usage.input_tokens"),
        OUTPUT_TOKENS: ("gen_ai.usage.output_tokens", "gen_ai.usage.output_tokens"),
        CACHED_TOKENS: ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read.input_tokens"),
        ERROR: ("error.type", "error.type"),
    }
)
"""Our word -> (current name, next name)."""

_PROVIDERS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "anthropic": ("anthropic", "anthropic"),
        "azure": ("az.ai.openai", "azure.ai.openai"),
        "deepseek": ("deepseek", "deepseek"),
        "gemini": ("gemini", "gcp.gemini"),
        "groq": ("groq", "groq"),
        "mistral": ("mistral_ai", "mistral_ai"),
        "openai": ("openai", "openai"),
        "xai": ("xai", "x_ai"),
    }
)
"""The well-known values, by the catalog's kind; any other kind goes by its own name."""


class Vocabulary:
    """Attributes by the names that were chosen."""

    def __init__(self, names: Names) -> None:
        self._versions = {"current": (0,), "next": (1,), "both": (0, 1)}[names]

    def attributes(self, values: Mapping[str, str | int | None]) -> dict[str, str | int]:
        """The values (by the words above) under their conventional names; None is left out."""
        return {
            _TABLE[what][version]: value
            for what, value in values.items()
            if value is not None
            for version in self._versions
        }

    def provider(self, kind: str) -> dict[str, str | int]:
        """The attribute that names a provider of a kind of the catalog."""
        known = _PROVIDERS.get(kind, (kind, kind))
        return {_TABLE[PROVIDER][version]: known[version] for version in self._versions}


INSTRUMENTATION = "smart_model_router"
_NANO = 1e9
_OPERATIONS: Mapping[Asked, str] = {
    "chat": "chat",
    "messages": "chat",
    "responses": "chat",
    "embeddings": "embeddings",
    "passthrough": "passthrough",
}
_NO_EXPORT = (trace.ProxyTracerProvider, trace.NoOpTracerProvider)
_BAD = frozenset({"failed", "rejected_local"})
_LOOK_SECONDS = 0.1
"""Seconds between two looks for an SDK that starts after the router: a look takes longer than an event."""


@dataclass(frozen=True, slots=True)
class _Trip:
    """A request that has ended. `wall_offset` makes nanoseconds since the epoch of the events' instants."""

    finished: RequestFinished
    events: tuple[AttemptFinished | TargetRefused | ContentSeen, ...]
    context: contexts.Context
    wall_offset: int


class SpanSink:
    """Makes spans of events. `kinds` are the catalog's kinds by provider name; `names` chooses the vocabulary.

    The parent is whatever span is current where the request ends: the application's own, or what a client of the
    gateway sent as `traceparent`. Content is in a span only as far as the configuration has it told (ContentSeen).
    """

    inline = True

    def __init__(
        self, kinds: Mapping[str, str], *, names: Names = "current", provider: TracerProvider | None = None
    ) -> None:
        self._tracer = trace.get_tracer(INSTRUMENTATION, tracer_provider=provider)
        self._kinds = kinds
        self._words = Vocabulary(names)
        self._recording = provider is not None
        self._nobody_until = -math.inf
        """An instant of the events' clock."""
        self._open = OpenRequests[AttemptFinished | TargetRefused | ContentSeen]()
        self.worker: Worker[_Trip] = Worker("spans", self._make)

    def emit(self, event: Event) -> None:
        """Keep the event; the spans are made on the thread. Without an SDK of the application there are none."""
        if event.at < self._nobody_until:
            return
        if not self._records():
            self._nobody_until = event.at + _LOOK_SECONDS
            return
        if isinstance(event, RequestFinished):
            offset = time.time_ns() - int(event.at * _NANO)  # noqa: TID251 - stamps for people
            events = tuple(self._open.take(event.request_id))
            self.worker.put(_Trip(event, events, contexts.get_current(), offset))
        elif isinstance(event, (AttemptFinished, TargetRefused, ContentSeen)):
            self._open.note(event.request_id, event)

    def _records(self) -> bool:
        """Return True if an SDK makes spans: once found it stays."""
        if not self._recording:
            self._recording = not isinstance(trace.get_tracer_provider(), _NO_EXPORT)
        return self._recording

    def _make(self, trip: _Trip) -> None:
        done, at = trip.finished, trip.wall_offset
        operation = _OPERATIONS[done.dialect]
        words = self._words
        span = self._tracer.start_span(
            f"{operation} {done.model}"[:200],
            context=trip.context,
            kind=SpanKind.INTERNAL,
            start_time=at + int((done.at - done.seconds) * _NANO),
            attributes={
                **words.attributes({OPERATION: operation, REQUEST_MODEL: done.model}),
                "smr.request_id": done.request_id,
                "smr.outcome": done.outcome,
                "smr.target": done.target or "",
                "smr.requested_tier": done.requested_tier,
                "smr.actual_tier": done.actual_tier or "",
                "smr.degraded": done.degraded,
                "smr.last_resort": done.last_resort,
                "smr.waited_seconds": done.waited_seconds,
            },
        )
        inside = trace.set_span_in_context(span, trip.context)
        for event in trip.events:
            if isinstance(event, AttemptFinished):
                self._attempt(event, operation, inside, at)
            elif isinstance(event, ContentSeen):
                span.set_attributes({"smr.content": event.mode, "smr.prompt": event.prompt, "smr.answer": event.answer})
            else:
                told = {"smr.target": event.target, "smr.reason": event.reason}
                span.add_event("refused", told, timestamp=at + int(event.at * _NANO))
        if done.outcome in _BAD:
            span.set_status(Status(StatusCode.ERROR, done.outcome))
            span.set_attributes(words.attributes({ERROR: done.outcome}))
        span.end(at + int(done.at * _NANO))

    def _attempt(self, event: AttemptFinished, operation: str, inside: contexts.Context, at: int) -> None:
        words, usage = self._words, event.usage
        failed = None if event.failure_class is None else event.failure_class.value
        span = self._tracer.start_span(
            f"{operation} {event.model}"[:200],
            context=inside,
            kind=SpanKind.CLIENT,
            start_time=at + int(event.admitted_at * _NANO),
            attributes={
                **words.attributes(
                    {
                        OPERATION: operation,
                        REQUEST_MODEL: event.model,
                        RESPONSE_MODEL: event.model if failed is None else None,
                        INPUT_TOKENS: None if usage is None else usage.prompt_tokens,
                        OUTPUT_TOKENS: None if usage is None else usage.completion_tokens,
                        CACHED_TOKENS: None if usage is None else usage.cached_prompt_tokens or None,
                        ERROR: failed,
                    }
                ),
                **words.provider(self._kinds.get(event.provider, event.provider)),
                "smr.target": event.target,
                "smr.probe": event.probe,
                "smr.stream": event.stream,
            },
        )
        if event.ttft_seconds is not None:
            first = at + int((event.admitted_at + event.ttft_seconds) * _NANO)
            span.add_event("first content", timestamp=first)
        if event.status is not None:
            span.set_attribute("http.response.status_code", event.status)
        if failed is not None:
            span.set_status(Status(StatusCode.ERROR, failed))
        span.end(at + int(event.at * _NANO))


@contextmanager
def continued(headers: Mapping[str, str]) -> Generator[None]:
    """Continue the trace of a client's `traceparent` and `tracestate` headers (lower-case names) in the context."""
    token = contexts.attach(extract(headers))
    try:
        yield
    finally:
        contexts.detach(token)
