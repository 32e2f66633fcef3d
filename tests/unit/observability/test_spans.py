"""Spans: one a request, one CLIENT span a call, under the names that were chosen, continuing the caller's trace."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.observability.spans import Names, SpanSink, continued
from smart_model_router.testing import FakeProvider, FakeReply, run_virtual
from tests.unit.observability.test_log import finished
from tests.world import BODY, World, failing, world

BUSY = failing(FailureClass.OVERLOADED, 529)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Traced:
    """Spans of what was asked in virtual time."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def spans(self, *ladder: list[str], names: Names = "current", parent: str = "", **given: Any) -> list[ReadableSpan]:
        """Ask once; the spans, calls first."""

        async def scenario() -> World:
            w = world(*ladder, **given)
            sink = SpanSink({"a": "azure", "b": "anthropic"}, names=names, provider=self.provider)
            w.router.monitor.watch(sink)
            with continued({"traceparent": parent}):
                await w.router.chat(BODY)
            until = time.monotonic() + 10
            while not sink.worker.idle and time.monotonic() < until:
                time.sleep(0.001)  # noqa: ASYNC251, TID251 - a thread's progress in real time
            sink.worker.close()
            return w

        run_virtual(scenario(), limit=3600)
        return list(self.exporter.get_finished_spans())


@pytest.fixture
def traced() -> Iterator[Traced]:
    """A provider of spans that keeps them."""
    made = Traced()
    yield made
    made.provider.shutdown()


def test_a_request_is_a_parent_and_each_call_a_client_span(traced: Traced) -> None:
    """Calls hang below the request, with their own seconds; the one that failed says how."""
    replies = {"a": FakeProvider(BUSY), "b": FakeProvider(FakeReply(seconds=2.0))}
    failed, answered, request = traced.spans(["a/big", "b/big"], replies=replies)
    assert request.parent is None
    assert request.kind is SpanKind.INTERNAL
    assert [span.kind for span in (failed, answered)] == [SpanKind.CLIENT] * 2
    assert request.context is not None
    assert {span.parent.span_id for span in (failed, answered) if span.parent} == {request.context.span_id}
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes is not None
    assert failed.attributes["error.type"] == "OVERLOADED"
    assert answered.name == "chat big"
    assert answered.start_time is not None
    assert answered.end_time is not None
    assert (answered.end_time - answered.start_time) / 1e9 == pytest.approx(2.0)
    assert request.attributes is not None
    assert request.attributes["smr.outcome"] == "fallback"


def test_the_callers_trace_is_continued(traced: Traced) -> None:
    """A traceparent is the parent of the request's span; its calls belong to the same trace."""
    spans = traced.spans(["a/big"], parent=PARENT)
    request = spans[-1]
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == "b7ad6b7169203331"
    assert {f"{span.context.trace_id:032x}" for span in spans if span.context} == {"0af7651916cd43dd8448eb211c80319c"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("current", {"gen_ai.system": "az.ai.openai"}),
        ("next", {"gen_ai.provider.name": "azure.ai.openai"}),
        ("both", {"gen_ai.system": "az.ai.openai", "gen_ai.provider.name": "azure.ai.openai"}),
    ],
)
def test_the_vocabulary_is_a_switch(traced: Traced, names: Names, expected: dict[str, str]) -> None:
    """Either set of names, or what differs under both."""
    call = traced.spans(["a/big"], names=names)[0]
    assert call.attributes is not None
    said = {key: value for key, value in call.attributes.items() if key in ("gen_ai.system", "gen_ai.provider.name")}
    assert said == expected
    assert call.attributes["gen_ai.usage.input_tokens"] == 10
    assert call.attributes["gen_ai.request.model"] == "big"


def test_content_is_in_no_span(traced: Traced) -> None:
    """Neither the prompt nor the answer."""
    text = " ".join(span.to_json() for span in traced.spans(["a/big"]))
    assert "hello" not in text
    assert "Hello" not in text


@pytest.mark.parametrize("nobody", [trace.ProxyTracerProvider(), trace.NoOpTracerProvider()])
def test_without_an_sdk_nothing_is_made_until_one_is_there(
    nobody: trace.TracerProvider, traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked for ten times a second at most, and never again once it was found."""
    found, asked = [nobody], list[float]()

    def look() -> trace.TracerProvider:
        asked.append(at)
        return found[0]

    sink, trips = SpanSink({}), list[Any]()
    monkeypatch.setattr(trace, "get_tracer_provider", look)
    monkeypatch.setattr(sink.worker, "put", trips.append)
    for at in (1.0, 1.05, 1.2, 1.25):
        sink.emit(finished(1, at=at))
    assert (asked, trips) == ([1.0, 1.2], [])
    found[0] = traced.provider
    for at in (1.28, 1.4, 1.5, 2.0):
        sink.emit(finished(1, at=at))
    assert asked == [1.0, 1.2, 1.4]
    assert [trip.finished.at for trip in trips] == [1.4, 1.5, 2.0]
