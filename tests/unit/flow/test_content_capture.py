"""Content: nothing by default, and what a mode lets be told, in the log and in spans, until its time is over."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from smart_model_router import SmartModelRouter
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.events import ContentSeen
from smart_model_router.domain.redaction import LIMIT, ContentCapture, Mode, Scrubber
from smart_model_router.observability.spans import SpanSink
from smart_model_router.testing import FakeProvider, RecordingSink
from tests.unit.observability.test_sinks import CONFIG

KEY = "seed-of-the-configuration-51"
SAID = f"I am ada@example.org, +44 20 7946 0018, my key is {KEY}, and sk-abcdefgh12345678 too: which cheese?"
BODY = {"model": "smart", "messages": [{"role": "user", "content": SAID}]}
TOMORROW = "2999-01-01T00:00:00Z"
PERSONAL = ("ada@example.org", "7946 0018")
SECRET = (KEY, "sk-abcdefgh12345678")


def configuration(tmp_path: Path, **content: Any) -> dict[str, Any]:
    """One provider with a key, a log, and content as it is asked for."""
    provider = {"kind": "openai_compatible", "base_url": "http://fake.invalid/v1", "api_key": KEY}
    telemetry = {"log": {"to": str(tmp_path / "log.jsonl")}, "content": content}
    return {**CONFIG, "providers": {"a": provider}, "telemetry": telemetry}


async def told(tmp_path: Path, *, stream: bool = False, **content: Any) -> tuple[dict[str, Any], Any, list[Any], Any]:
    """The log's line of one request, its span's attributes, the events of content, and what the router remembers."""
    exporter, provider, sink = InMemorySpanExporter(), TracerProvider(), RecordingSink()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    config = configuration(tmp_path, **content)
    async with SmartModelRouter.from_config(config, providers={"a": FakeProvider()}, sinks=[sink]) as router:
        spans = SpanSink({}, provider=provider)
        router.monitor.watch(spans)
        if stream:
            async with router.stream_chat(BODY) as answer:
                async for _ in answer:
                    pass
        else:
            await router.chat(BODY)
        remembered = repr(router._state.recent)
    [line] = map(json.loads, (tmp_path / "log.jsonl").read_text("utf-8").splitlines())
    [span] = (one for one in exporter.get_finished_spans() if one.parent is None)
    return line, span.attributes, [event for event in sink.events if isinstance(event, ContentSeen)], remembered


@pytest.mark.asyncio
@pytest.mark.parametrize("content", [{}, {"mode": "full", "until": "2020-01-01T00:00:00+01:00"}], ids=["off", "over"])
async def test_by_default_and_when_its_time_is_over_nothing_is_told(tmp_path: Path, content: dict[str, Any]) -> None:
    """No field, no attribute, no event."""
    line, attributes, events, _ = await told(tmp_path, **content)
    assert "content" not in line
    assert not {"smr.content", "smr.prompt", "smr.answer"} & attributes.keys()
    assert events == []


@pytest.mark.asyncio
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("content", "there", "gone"),
    [
        ({"mode": "hash"}, ("sha256:",), ("which cheese", "Hello", *PERSONAL, *SECRET)),
        ({"mode": "redacted"}, ("which cheese", "Hello"), (*PERSONAL, *SECRET)),
        ({"mode": "full", "until": TOMORROW}, ("which cheese", "Hello", *PERSONAL), SECRET),
    ],
    ids=["hash", "redacted", "full"],
)
async def test_a_mode_tells_what_it_may(
    tmp_path: Path, content: dict[str, str], there: tuple[str, ...], gone: tuple[str, ...], stream: bool
) -> None:
    """The same in the log's line, in the request's span and in the event; a key in none, whatever the mode."""
    line, attributes, [event], remembered = await told(tmp_path, stream=stream, **content)
    assert line["content"] == {"mode": content["mode"], "prompt": event.prompt, "answer": event.answer}
    assert (attributes["smr.prompt"], attributes["smr.answer"]) == (event.prompt, event.answer)
    shown = json.dumps(line)
    assert [text for text in there if text not in shown] == []
    assert [text for text in gone if text in shown] == []
    assert "ContentSeen" not in remembered


def content_of(mode: Mode) -> ContentCapture:
    """One that knows a key."""
    return ContentCapture(mode, scrub=Scrubber([KEY]).text, wall=lambda: 0.0)


def test_a_hash_is_that_of_the_text() -> None:
    """Equal texts have equal hashes, in every process; of no text there is none."""
    told = content_of("hash")
    assert told.told("hello") == "sha256:" + hashlib.sha256(b"hello").hexdigest()
    assert told.told("") == ""
    assert told.told("\ud800").startswith("sha256:")


@pytest.mark.parametrize("before", range(LIMIT - 40, LIMIT + 1080, 7))
def test_a_long_text_is_cut_and_no_secret_with_it(before: int) -> None:
    """Wherever the cut falls: no part of a key that was cut in two is left."""
    told = content_of("full").told("." * before + KEY + "." * 5_000)
    assert len(told) < LIMIT + 40
    assert KEY[:8] not in told


@pytest.mark.parametrize("text", ["build 1234567", "3.14159265358979", "sha 0123456789abcdef0123", "a@b", "v1.2.3"])
def test_what_names_nobody_stays(text: str) -> None:
    """Short numbers, fractions and hexadecimal are no telephone numbers."""
    assert content_of("redacted").told(text) == text


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ({"mode": "full"}, "full ends"),
        ({"mode": "full", "until": "tomorrow"}, "with its zone"),
        ({"mode": "hash", "until": "2026-01-31T18:00:00"}, "with its zone"),
        ({"mode": "everything"}, "redacted"),
    ],
)
def test_full_needs_its_end(tmp_path: Path, content: dict[str, str], wanted: str) -> None:
    """And an end needs a zone; both are said by their keys."""
    with pytest.raises(ConfigurationError, match=wanted) as caught:
        RouterConfig.from_mapping(configuration(tmp_path, **content))
    assert caught.value.key.startswith("telemetry.content.")
