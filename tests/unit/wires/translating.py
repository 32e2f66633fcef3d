"""What tests of translation share: small bodies, and translating without ceremony."""

from __future__ import annotations

from typing import Any

from smart_model_router.domain.outcome import StreamEvent
from smart_model_router.domain.request import Dialect
from smart_model_router.wires import read_event
from smart_model_router.wires.dialects import SNAPSHOT_READERS
from smart_model_router.wires.translate import EventTranslator, Losses, Terms, Translation, Untranslatable, translate
from smart_model_router.wires.values import dumps

TERMS = Terms(family="p", reasoning=True, created=7)
SMALL: dict[Dialect, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    "messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5},
    "responses": {"input": "hi", "max_output_tokens": 5},
}


def sent(asked: Dialect, goal: Dialect, terms: Terms = TERMS, **more: Any) -> Translation:
    """A small request with more in it, translated."""
    made = translate(asked, goal, {**SMALL[asked], **more}, terms)
    assert isinstance(made, Translation), made
    return made


def refused(asked: Dialect, goal: Dialect, **more: Any) -> Untranslatable:
    """Why a small request with more in it is not translated."""
    made = translate(asked, goal, {**SMALL[asked], **more}, TERMS)
    assert isinstance(made, Untranslatable), made
    return made


def answered(
    asked: Dialect, goal: Dialect, body: dict[str, Any], **more: Any
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A whole answer in the dialect asked, and what got lost of it."""
    losses = Losses()
    made = sent(asked, goal, **more).answer(body, losses)
    assert isinstance(made, dict)
    return made, losses.entries


def fed(translator: EventTranslator, upstream: StreamEvent) -> list[StreamEvent]:
    """The events that one event of the provider becomes."""
    out: list[StreamEvent] = []
    translator.feed([upstream], out)
    return out


def streamed(asked: Dialect, goal: Dialect, events: list[dict[str, Any]], **more: Any) -> list[dict[str, Any]]:
    """A complete stream in the dialect asked."""
    translator, reader = EventTranslator(sent(asked, goal, **more)), SNAPSHOT_READERS[goal]()
    made = [out for one in events for read in reader.read([event(goal, one)]) for out in fed(translator, read)]
    return [dict(out.data) for out in [*made, *translator.end()] if out.data is not None]


def event(dialect: Dialect, data: dict[str, Any]) -> StreamEvent:
    """An event as the provider's stream is read."""
    return read_event(dialect, f"data: {dumps(data)}\n\n".encode())


def chat_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    """A tool call as Chat writes it."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def chat_tool(name: str) -> dict[str, Any]:
    """A tool as Chat writes it."""
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}


def chat_answer(message: dict[str, Any], finish: str = "stop", usage: dict[str, Any] | None = None) -> dict[str, Any]:
    """A whole Chat answer."""
    choice = {"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": usage}


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    """One Chat chunk."""
    return {"id": "c1", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def messages_answer(*blocks: dict[str, Any], stop: str = "end_turn", **more: Any) -> dict[str, Any]:
    """A whole Messages answer."""
    usage = {"input_tokens": 1, "output_tokens": 2}
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": list(blocks),
        "stop_reason": stop,
        "usage": usage,
        **more,
    }


def messages_stream(
    *blocks: tuple[dict[str, Any], list[dict[str, Any]]], stop: str = "end_turn"
) -> list[dict[str, Any]]:
    """A whole Messages stream: each block as it opens, and its deltas."""
    usage = {"input_tokens": 3, "cache_read_input_tokens": 4, "cache_creation_input_tokens": 5, "output_tokens": 1}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "m1", "model": "m", "content": [], "usage": usage}}
    ]
    for index, (block, deltas) in enumerate(blocks):
        events.append({"type": "content_block_start", "index": index, "content_block": block})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        events.append({"type": "content_block_stop", "index": index})
    events.append({"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 9}})
    return [*events, {"type": "message_stop"}]
