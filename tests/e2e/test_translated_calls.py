"""One dialect served by a provider of another, over real sockets: whole answers, streams, tools, refusals, faults."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from smart_model_router import InvalidRequest, SmartModelRouter, StreamInterrupted, TranslationRefused
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.request import Dialect
from smart_model_router.flow.router_stream import RouterStream
from smart_model_router_providers.fault import Fault, FaultServer
from tests.unit.wires.translating import chat_answer, chat_call, chunk, messages_answer, messages_stream

pytestmark = pytest.mark.asyncio

BODIES: dict[Dialect, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 50},
    "messages": {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 50},
    "responses": {"input": "hi", "max_output_tokens": 50},
}
KINDS: dict[Dialect, str] = {"chat": "groq", "messages": "anthropic", "responses": "openai"}
PATHS: dict[Dialect, str] = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
PAIRS = [(asked, native) for asked in BODIES for native in ("chat", "messages") if asked != native]
READ: dict[str, Any] = {
    "type": "function",
    "function": {"name": "read", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}},
}


@asynccontextmanager
async def routed(
    *kinds: str, scripts: Mapping[str, list[Fault]] | None = None, **sections: Any
) -> AsyncGenerator[tuple[Any, FaultServer]]:
    """A router over the fault server: one provider of each kind in this order, its model and key named by the kind."""
    async with FaultServer(dict(scripts or {}), text="Paris it is.") as server:
        tree = {
            "version": 1,
            "providers": {kind: {"kind": kind, "base_url": server.base_url, "api_key": kind} for kind in kinds},
            "models": {
                "smart": {
                    "tiers": [{"name": "frontier", "targets": [{"target": f"{kind}/{kind}"} for kind in kinds]}],
                    "last_resort": [],
                    "strategy": "ordered",
                }
            },
            **sections,
        }
        async with SmartModelRouter.from_config(tree, seed=1) as router:
            yield router, server


def a_stream(router: Any, dialect: Dialect, **more: Any) -> RouterStream:
    """An open stream of a small request with more in it."""
    stream: RouterStream = getattr(router, f"stream_{dialect}")({"model": "smart", **BODIES[dialect], **more})
    return stream


async def an_answer(router: Any, dialect: Dialect, **more: Any) -> Any:
    """The reply to a small request with more in it."""
    return await getattr(router, dialect)({"model": "smart", **BODIES[dialect], **more})


async def collect(stream: RouterStream, events: list[Mapping[str, Any]]) -> None:
    """Every event, those before a failure too."""
    async for event in stream:
        events.append(event)  # noqa: PERF401 - what came before an exception counts


def sse(events: list[dict[str, Any]], *, named: bool) -> bytes:
    """Events as a provider sends them."""
    frames = [(f"event: {e['type']}\n" if named else "") + f"data: {json.dumps(e)}\n\n" for e in events]
    return "".join([*frames, *([] if named else ["data: [DONE]\n\n"])]).encode()


def says(body: bytes, *, stream: bool = False) -> list[Fault]:
    """The script of a provider that always answers this."""
    return [
        Fault.status(200, headers={"content-type": "text/event-stream" if stream else "application/json"}, body=body)
    ]


@pytest.mark.parametrize(("asked", "native"), PAIRS)
async def test_an_answer_comes_in_the_dialect_asked(asked: Dialect, native: Dialect) -> None:
    """A provider that speaks only another dialect is asked in it, and its answer and usage come back translated."""
    async with routed(KINDS[native]) as (router, server):
        reply = await an_answer(router, asked)
    assert server.requests[-1].path == PATHS[native]
    assert "Paris it is." in json.dumps(reply.body)
    assert json.loads(reply.raw) == reply.body
    assert set(reply.body) >= {"chat": {"choices"}, "messages": {"content"}, "responses": {"output"}}[asked]
    assert (reply.report.usage.completion_tokens, reply.report.complete) == (3, True)


@pytest.mark.parametrize(("asked", "native"), PAIRS)
async def test_a_stream_comes_in_the_dialect_asked(asked: Dialect, native: Dialect) -> None:
    """Text comes piece by piece, the end is the dialect's own, and the report has what it cost."""
    last = {"chat": "stop", "messages": "message_stop", "responses": "response.completed"}[asked]
    async with routed(KINDS[native]) as (router, _):
        stream = a_stream(router, asked)
        events = [event async for event in stream]
    assert stream.text == "Paris it is."
    assert len(events) >= 5
    assert (events[-1].get("type") or events[-1]["choices"][0]["finish_reason"]) == last
    assert stream.report.complete
    assert stream.report.usage is not None
    assert stream.report.usage.completion_tokens == 3


async def test_responses_are_served_natively_where_they_are_spoken() -> None:
    """The body goes out as it came, and the provider's own events come back."""
    async with routed("openai") as (router, server):
        reply = await an_answer(router, "responses", metadata={"a": "b"})
        events = [event async for event in a_stream(router, "responses")]
    assert [request.path for request in server.requests] == [PATHS["responses"]] * 2
    assert server.requests[0].body == {"model": "openai", **BODIES["responses"], "metadata": {"a": "b"}}
    assert (reply.body["object"], events[-1]["type"], reply.report.losses) == ("response", "response.completed", [])


@pytest.mark.parametrize("wanted", [True, False])
async def test_usage_is_streamed_to_those_who_asked(wanted: bool) -> None:
    """Messages always counts: a Chat client sees a usage chunk only when it asked for one, the router always knows."""
    more = {"stream_options": {"include_usage": True}} if wanted else {}
    async with routed("anthropic") as (router, _):
        stream = a_stream(router, "chat", **more)
        chunks = [chunk async for chunk in stream]
    assert [bool(one.get("usage")) for one in chunks[-2:]] == [False, wanted]
    assert stream.report.usage is not None


async def test_a_translated_chat_stream_is_asked_to_count() -> None:
    """Chat counts only when told to: Messages clients get their usage all the same."""
    async with routed("groq") as (router, server):
        events = [event async for event in a_stream(router, "messages")]
    assert server.requests[0].body["stream_options"] == {"include_usage": True}
    assert events[-2]["usage"]["output_tokens"] == 3


async def test_parallel_tools_of_messages_reach_a_chat_client() -> None:
    """Two calls, whole and streamed, keep ids, order and arguments; the results go back in one turn."""
    blocks = [
        {"type": "tool_use", "id": f"toolu_{path}", "name": "read", "input": {"path": path}} for path in ("a", "b")
    ]
    opened = [
        ({**block, "input": {}}, [{"type": "input_json_delta", "partial_json": json.dumps(block["input"])}])
        for block in blocks
    ]
    whole = json.dumps(messages_answer(*blocks, stop="tool_use")).encode()
    async with routed("anthropic", scripts={"anthropic": says(whole)}) as (router, server):
        message = (await an_answer(router, "chat", tools=[READ])).body["choices"][0]["message"]
        server.set({"anthropic": says(sse(messages_stream(*opened, stop="tool_use"), named=True), stream=True)})
        pieces = [
            call
            async for one in a_stream(router, "chat", tools=[READ])
            for call in one["choices"][0]["delta"].get("tool_calls", ())
        ]
        server.set(None)
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in message["tool_calls"]]
        await an_answer(router, "chat", messages=[{"role": "user", "content": "hi"}, message, *results], tools=[READ])
    expected = [("toolu_a", {"path": "a"}), ("toolu_b", {"path": "b"})]
    assert [(call["id"], json.loads(call["function"]["arguments"])) for call in message["tool_calls"]] == expected
    streamed = {
        index: "".join(piece["function"]["arguments"] for piece in pieces if piece["index"] == index)
        for index in (0, 1)
    }
    assert [(p["id"], json.loads(streamed[p["index"]])) for p in pieces if "id" in p] == expected
    turn = server.requests[-1].body["messages"][2]
    assert [result["tool_use_id"] for result in turn["content"]] == ["toolu_a", "toolu_b"]


async def test_parallel_tools_of_chat_reach_a_messages_client() -> None:
    """Interleaved calls come as blocks one after another; the whole answer has the same blocks."""
    calls = [chat_call("a", "read", '{"path":"a"}'), chat_call("b", "read", '{"path":"b"}')]
    tool = {"name": "read", "input_schema": READ["function"]["parameters"]}
    opening = [{**call, "index": at, "function": {"name": "read", "arguments": ""}} for at, call in enumerate(calls)]
    arguments = [
        {"index": at, "function": {"arguments": call["function"]["arguments"]}} for at, call in enumerate(calls)
    ]
    chunks = [chunk({"tool_calls": [call]}) for call in (*opening, *arguments)]
    whole = json.dumps(chat_answer({"content": None, "tool_calls": calls}, "tool_calls")).encode()
    async with routed("groq", scripts={"groq": says(whole)}) as (router, server):
        reply = await an_answer(router, "messages", tools=[tool])
        server.set({"groq": says(sse([*chunks, chunk({}, "tool_calls")], named=False), stream=True)})
        events = [event async for event in a_stream(router, "messages", tools=[tool])]
    assert [(block["id"], block["input"]) for block in reply.body["content"]] == [
        ("a", {"path": "a"}),
        ("b", {"path": "b"}),
    ]
    brackets = [e["type"].removeprefix("content_block_") for e in events if e["type"].startswith("content_block_")]
    assert brackets == ["start", "delta", "stop"] * 2
    assert [e["content_block"]["id"] for e in events if e["type"] == "content_block_start"] == ["a", "b"]
    assert events[-2]["delta"]["stop_reason"] == "tool_use"


async def test_losses_are_in_the_report_of_who_served() -> None:
    """What the one that answered could not be told, and nothing of those that failed."""
    async with routed("groq", "anthropic", scripts={"anthropic": [], "groq": [Fault.status(503)]}) as (router, _):
        reply = await an_answer(router, "chat", seed=1)
        stream = a_stream(router, "chat", seed=1)
        async for _ in stream:
            pass
    assert reply.report.target == "anthropic/anthropic"
    assert reply.report.losses == stream.report.losses == ["seed: dropped, Messages has no such parameter"]


async def test_a_request_that_would_mean_something_else_goes_to_the_next() -> None:
    """The target is not asked, the refusal is in the report, and the one that understands it answers."""
    async with routed("anthropic", "groq") as (router, server):
        reply = await an_answer(router, "chat", n=2)
    assert reply.report.target == "groq/groq"
    assert [(r.target, r.reason) for r in reply.report.refusals] == [("anthropic/anthropic", "filtered:translation")]
    assert reply.report.ruled_out == {"anthropic/anthropic": "filtered:translation"}
    assert server.calls("anthropic") == 0


async def test_explaining_says_who_would_not_understand() -> None:
    """The plan names the target that the request is not sent to, and who would serve it instead."""
    async with routed("anthropic", "groq") as (router, _):
        plan = router.explain({"model": "smart", **BODIES["chat"], "n": 2})
    assert [(line.target, line.refusal) for line in plan.targets] == [
        ("anthropic/anthropic", "filtered:translation"),
        ("groq/groq", None),
    ]
    assert plan.serves == "groq/groq"


async def test_a_request_that_nobody_understands_is_refused() -> None:
    """Nobody is asked, and the exception says what would have been lost."""
    async with routed("anthropic", "groq") as (router, server):
        with pytest.raises(TranslationRefused, match="tools: a tool of type 'file_search'"):
            await an_answer(router, "responses", tools=[{"type": "file_search", "vector_store_ids": ["v"]}])
        assert server.calls() == 0


async def test_a_400_after_translation_is_not_the_callers() -> None:
    """It may be translation's own fault: the next target is asked, and the breaker does not count it."""
    async with routed("anthropic", "groq", scripts={"anthropic": [Fault.status(400)]}) as (router, _):
        reply = await an_answer(router, "chat")
    assert reply.report.target == "groq/groq"
    assert reply.report.attempts[0].failure_class is FailureClass.REJECTED_BY_FALLBACK


async def test_an_error_body_of_another_dialect_is_not_handed_back() -> None:
    """When everybody rejects it the caller is told so, without an object that its client cannot read."""
    async with routed("anthropic", scripts={"anthropic": [Fault.status(400)]}) as (router, _):
        with pytest.raises(InvalidRequest) as caught:
            await an_answer(router, "chat")
    assert (caught.value.status, caught.value.body) == (400, b"")


@pytest.mark.parametrize(("asked", "native"), PAIRS)
async def test_a_cut_before_content_is_nobodys_news(asked: Dialect, native: Dialect) -> None:
    """A stream that breaks before its first content is served by the next target, whatever it speaks."""
    other: Dialect = "messages" if native == "chat" else "chat"
    script = {KINDS[native]: [Fault.cut(after=0)]}
    async with routed(KINDS[native], KINDS[other], scripts=script) as (router, _):
        stream = a_stream(router, asked)
        async for _ in stream:
            pass
    assert (stream.text, stream.report.target) == ("Paris it is.", f"{KINDS[other]}/{KINDS[other]}")


@pytest.mark.parametrize(("asked", "native"), PAIRS)
@pytest.mark.parametrize("fault", [Fault.cut(after=2), Fault.error_event(after=2), Fault.no_terminator()])
async def test_a_failure_after_content_is_never_a_clean_end(asked: Dialect, native: Dialect, fault: Fault) -> None:
    """The caller is told, with what had arrived, and was sent no end of the answer."""
    ends = {"message_delta", "message_stop", "response.completed", "response.incomplete"}
    short = {"timeouts": {"idle": "2s"}}
    async with routed(KINDS[native], scripts={KINDS[native]: [fault]}, resilience=short) as (router, _):
        stream = a_stream(router, asked)
        events: list[Mapping[str, Any]] = []
        with pytest.raises(StreamInterrupted) as caught:
            await collect(stream, events)
    assert caught.value.text
    assert not ends & {event.get("type") for event in events}
    assert not any(choice["finish_reason"] for event in events for choice in event.get("choices", ()))


async def test_our_seal_on_a_thought_never_reaches_a_native_provider() -> None:
    """A Messages client carries a Chat provider's thought under our seal: Anthropic gets the rest of the message."""
    thinking = json.dumps(chat_answer({"content": "Hi", "reasoning_content": "hm"})).encode()
    async with routed("groq", "anthropic", scripts={"groq": says(thinking)}) as (router, server):
        content = (await an_answer(router, "messages")).body["content"]
        user = {"role": "user", "content": "hi"}
        talk = [user, {"role": "assistant", "content": content}, user]
        reply = await an_answer(router, "messages", messages=talk)
        assert server.requests[-1].body["messages"][1]["reasoning_content"] == "hm"
        router.isolate("groq/groq")
        reply = await an_answer(router, "messages", messages=talk)
    assert reply.report.target == "anthropic/anthropic"
    assert server.requests[-1].body["messages"][1]["content"] == [{"type": "text", "text": "Hi", "citations": []}]
    assert reply.report.losses == ["reasoning: dropped, it is signed or encrypted for another provider"]
