"""The default policy for streams that break off: text goes on, calls and schemas come whole, proof is asked for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from smart_model_router import StreamInterrupted
from smart_model_router.core.stream import HOLD_SECONDS
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.testing import FakeProvider, FakeReply, chunk
from tests.world import BODY, HandMade, World, now, virtual, world

CUT = Failure(FailureClass.TRUNCATED, "cut")
BROKEN = StreamEvent(EventKind.ERROR, b"", failure=CUT)
TEXT = "The first sentence is delivered. The second one is cut off in the middle, and goes on."
BEGUN = TEXT[:60]
SCHEMA = {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}}}


def call(arguments: str, index: int = 0) -> StreamEvent:
    """A piece of a tool call."""
    function = {"index": index, "id": "c", "type": "function", "function": {"name": "f", "arguments": arguments}}
    return chunk({"tool_calls": [function]})


def stream(*events: StreamEvent | float) -> HandMade:
    """A provider that sends these events; a number is a pause in seconds."""

    async def made() -> AsyncIterator[StreamEvent]:
        for event in events:
            if isinstance(event, StreamEvent):
                yield event
            else:
                await asyncio.sleep(event)

    return HandMade(made)


WHOLE_CALL = (call('{"path": "/a'), call('/b"}'), chunk({}, finish="tool_calls"), StreamEvent(EventKind.END, b"x\n\n"))


def fleet(*providers: FakeProvider, **config: Any) -> World:
    """A tier of a/big, b/big, ... of which nothing is known but that they speak Chat, under the default policy."""
    names = "abcd"[: len(providers)]
    kinds = {name: {"kind": "openai_compatible", "failure_domain": name} for name in names}
    config = {"routing": {"strategy": "ordered"}, **config}
    replies = dict(zip(names, providers, strict=True))
    return world([f"{name}/big" for name in names], replies=replies, kinds=kinds, config=config)


def deltas(chunks: list[Any]) -> list[Any]:
    """Each piece of content, in order."""
    return [choice["delta"] for data in chunks for choice in data["choices"] if choice["delta"]]


def arguments(chunks: list[Any]) -> str:
    """The arguments of the calls."""
    calls = [each for delta in deltas(chunks) for each in delta.get("tool_calls") or ()]
    return "".join(each["function"]["arguments"] for each in calls)


async def read(router_stream: Any) -> list[Any]:
    """All of a stream."""
    return [data async for data in router_stream]


@pytest.mark.parametrize("before", [(), (chunk({"role": "assistant", "content": ""}),)])
@virtual
async def test_a_call_that_is_cut_was_never_seen(before: tuple[StreamEvent, ...]) -> None:
    """Of an answer that is calls alone nothing is delivered before it is whole: the next target answers anew."""
    w = fleet(stream(*before, call('{"path": "/a'), BROKEN), stream(*WHOLE_CALL))
    asked = w.router.stream_chat(BODY)
    chunks = await read(asked)
    assert arguments(chunks) == '{"path": "/a/b"}'
    assert asked.report.complete
    (recovery,) = asked.report.recoveries
    assert (recovery.from_target, recovery.to_target, recovery.kept_characters) == ("a/big", "b/big", 0)
    assert [message["role"] for message in w.providers["b"].calls[0].body["messages"]] == ["user"]
    w.assert_idle()


@virtual
async def test_text_before_a_call_that_is_cut_is_kept() -> None:
    """The caller has the text once and one whole call; the next target was asked to go on behind the text."""
    second = stream(chunk({"content": "I look at the file first."}), *WHOLE_CALL)
    w = fleet(stream(chunk({"content": "I look at the file first."}), call("{"), BROKEN), second)
    asked = w.router.stream_chat(BODY)
    chunks = await read(asked)
    assert asked.text == "I look at the file first."
    assert arguments(chunks) == '{"path": "/a/b"}'
    assert asked.report.recoveries[0].trimmed_characters == len(asked.text)
    w.assert_idle()


@virtual
async def test_a_held_call_is_delivered_with_its_finish_reason() -> None:
    """Not with the terminator, which some servers never send; text before it comes as it is written."""
    w = fleet(stream(chunk({"content": "I look."}), 5.0, *WHOLE_CALL[:3], 60.0))
    began = now()
    came = [(now() - began, sorted(data["choices"][0]["delta"])) async for data in w.router.stream_chat(BODY)]
    assert came == [(0.0, ["content"]), (5.0, ["tool_calls"]), (5.0, ["tool_calls"]), (5.0, [])]
    w.assert_idle()


@virtual
async def test_a_call_is_held_for_a_bounded_time() -> None:
    """A client waits in silence no longer than `HOLD_SECONDS`; then pieces come as they are written, a cut shows."""
    pieces = [event for number in range(8) for event in (call(str(number)), HOLD_SECONDS / 5)]
    w = fleet(stream(*pieces, BROKEN), stream(*WHOLE_CALL))
    began, came = now(), []

    async def reading() -> None:
        async for data in w.router.stream_chat(BODY):
            came.append(now() - began)
            assert data["choices"][0]["delta"]["tool_calls"]

    with pytest.raises(StreamInterrupted):
        await reading()
    assert came == [pytest.approx(HOLD_SECONDS)] * 6 + [pytest.approx(HOLD_SECONDS * 6 / 5), pytest.approx(42.0)]
    assert w.calls("b") == 0
    w.assert_idle()


@virtual
async def test_arguments_that_are_asked_for_early_are_not_held() -> None:
    """`eager_input_streaming` of Messages: they come as they are written, and a cut is told."""
    tool = {"name": "f", "input_schema": {"type": "object"}, "eager_input_streaming": True}
    w = fleet(stream(call('{"path": "/a'), BROKEN), stream(*WHOLE_CALL))
    body = {**BODY, "max_tokens": 100, "tools": [tool]}
    types = []

    async def reading() -> None:
        async for data in w.router.stream_messages(body):
            types.append(data["type"])  # noqa: PERF401 - what came before the error counts

    with pytest.raises(StreamInterrupted):
        await reading()
    assert types == ["message_start", "content_block_start", "content_block_delta"]
    assert w.calls("b") == 0


@virtual
async def test_an_answer_by_a_schema_comes_whole() -> None:
    """Half a JSON object is of no use: the next target makes all of it, and its cut was never seen."""
    w = fleet(
        stream(chunk({"content": '{"a": '}), BROKEN),
        FakeProvider(FakeReply(pieces=('{"a": ', "1}"), gap=1.0)),
    )
    asked = w.router.stream_chat({**BODY, **SCHEMA})
    chunks = await read(asked)
    assert asked.text == '{"a": 1}'
    assert (asked.report.complete, len(asked.report.recoveries)) == (True, 1)
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    w.assert_idle()


@virtual
async def test_half_an_answer_by_a_schema_is_not_gone_on_with() -> None:
    """It took so long that its beginning was delivered: the cut is told."""
    slow = [event for _ in range(7) for event in (chunk({"content": "1"}), HOLD_SECONDS / 5)]
    w = fleet(stream(*slow, BROKEN), FakeProvider(FakeReply(pieces=("1",))))
    with pytest.raises(StreamInterrupted) as caught:
        await read(w.router.stream_chat({**BODY, **SCHEMA}))
    assert caught.value.text == "1" * 7
    assert w.calls("b") == 0
    w.assert_idle()


@virtual
async def test_thoughts_that_are_cut_are_followed_by_an_answer_made_anew() -> None:
    """The report tells how many characters of another model's thoughts the caller has."""
    second = FakeProvider(FakeReply(pieces=("It is ", "four.")))
    w = fleet(stream(chunk({"reasoning_content": "Two and two "}), BROKEN), second)
    asked = w.router.stream_chat(BODY)
    chunks = await read(asked)
    assert next(delta.get("reasoning_content") for delta in deltas(chunks)) == "Two and two "
    assert asked.text == "It is four."
    (recovery,) = asked.report.recoveries
    assert (recovery.kept_characters, recovery.kept_thinking_characters) == (0, len("Two and two "))
    assert asked.report.complete
    w.assert_idle()


# A target that is only asked in words -----------------------------------------------------------------


def quoting(answer: Callable[[str], str]) -> FakeProvider:
    """A model that is shown its last words and says something."""

    def reply(call: ProviderCall) -> FakeReply:
        *_, begun, asked = json.loads(call.payload)["messages"]
        assert (begun["role"], asked["role"]) == ("assistant", "user")
        quoted = asked["content"].splitlines()[1]
        assert begun["content"].endswith(quoted)
        return FakeReply(pieces=(answer(quoted),))

    return FakeProvider(reply)


@virtual
async def test_a_target_that_is_asked_repeats_and_goes_on() -> None:
    """It is shown what was delivered and asked for its last words again: they prove it, and are not delivered twice."""
    w = fleet(stream(chunk({"content": BEGUN}), BROKEN), quoting(lambda tail: tail + TEXT[60:]))
    asked = w.router.stream_chat(BODY)
    await read(asked)
    assert asked.text == TEXT
    assert 48 <= asked.report.recoveries[0].trimmed_characters < len(BEGUN)
    w.assert_idle()


@pytest.mark.parametrize("says", ["Sure! Here is the rest: ", " and goes on.", "The first sentence is another one."])
@virtual
async def test_what_is_not_proven_is_not_delivered(says: str) -> None:
    """A greeting, a continuation without the proof, another answer: dropped unseen, and the next target is asked."""
    w = fleet(
        stream(chunk({"content": BEGUN}), BROKEN),
        quoting(lambda _: says),
        quoting(lambda tail: tail + TEXT[60:]),
    )
    asked = w.router.stream_chat(BODY)
    await read(asked)
    assert asked.text == TEXT
    classes = [attempt.failure_class for attempt in asked.report.attempts]
    assert classes == [FailureClass.TRUNCATED, FailureClass.REJECTED_BY_FALLBACK, None]
    w.assert_idle()


@virtual
async def test_where_none_proves_it_the_cut_is_told() -> None:
    """The error of the cut with what arrived, as without a policy."""
    w = fleet(stream(chunk({"content": BEGUN}), BROKEN), quoting(lambda _: "No."))
    with pytest.raises(StreamInterrupted) as caught:
        await read(w.router.stream_chat(BODY))
    assert caught.value.text == BEGUN
    assert "TRUNCATED" in str(caught.value)
    w.assert_idle()


@virtual
async def test_a_target_that_refuses_a_prefill_is_asked_in_words() -> None:
    """Found by the table of policies: it could serve, and the caller was told of the cut."""

    def reply(call: ProviderCall) -> FakeReply:
        last = json.loads(call.payload)["messages"][-1]
        if last["role"] == "assistant":
            return FakeReply(failure=Failure(FailureClass.INVALID_REQUEST, "no prefill", status=400, raw=b"{}"))
        return FakeReply(pieces=(last["content"].splitlines()[1] + TEXT[60:],))

    targets = ["a/big", {"target": "b/big", "prefill": "plain"}]
    w = fleet(
        stream(chunk({"content": BEGUN}), BROKEN),
        FakeProvider(reply),
        models={"smart": {"tiers": [{"targets": targets}], "last_resort": []}},
    )
    asked = w.router.stream_chat(BODY)
    await read(asked)
    assert asked.text == TEXT
    classes = [attempt.failure_class for attempt in asked.report.attempts]
    assert classes == [FailureClass.TRUNCATED, FailureClass.REJECTED_BY_FALLBACK, None]
    w.assert_idle()


@virtual
async def test_the_policy_of_all_models_stands_under_routing() -> None:
    """`routing.recovery: none` is what it was before; a model's own goes before it."""
    tiers = {"tiers": [{"targets": ["a/big", "b/big"]}], "last_resort": []}
    models = {"smart": tiers, "mended": {**tiers, "recovery": "continue"}}
    w = fleet(
        stream(chunk({"content": BEGUN}), BROKEN),
        quoting(lambda tail: tail + TEXT[60:]),
        routing={"strategy": "ordered", "recovery": "none"},
        models=models,
    )
    with pytest.raises(StreamInterrupted):
        await read(w.router.stream_chat(BODY))
    assert w.calls("b") == 0
    mended = w.router.stream_chat({**BODY, "model": "mended"})
    await read(mended)
    assert mended.text == TEXT
