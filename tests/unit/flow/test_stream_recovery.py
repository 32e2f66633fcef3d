"""Streams that break off after content, under each policy: what the caller gets, who is asked, what is kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from smart_model_router import InvalidRequest, StreamInterrupted
from smart_model_router.domain.events import AttemptFinished, RequestFinished
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent, Usage
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.domain.report import StreamRecovery
from smart_model_router.flow.router_stream import RouterStream
from smart_model_router.testing import FakeProvider, FakeReply, chunk
from tests.world import BODY, DOWN, HandMade, World, failing, now, swallow, timers, virtual, world

CUT = Failure(FailureClass.TRUNCATED, "cut")
WORDS = ("one ", "two ", "three ", "four ", "five ", "six ", "seven")
TEXT = "".join(WORDS)
BROKEN = FakeReply(pieces=WORDS[:3], cut=CUT, gap=0.1)
STALLED = FakeReply(pieces=WORDS[:3], stalls=True, gap=0.1)
WHOLE = FakeReply(pieces=WORDS, gap=0.1)
REJECTED = failing(FailureClass.INVALID_REQUEST, 400, b"{}")
POLICIES = ["continue", "buffered", "hold_back(6)", "restart"]


def fleet(*replies: FakeReply | FakeProvider, **more: Any) -> World:
    """One tier of a/big, b/big, ... in this order; each of them can go on with another's answer."""
    names = "abcdefgh"[: len(replies)]
    providers = {n: r if isinstance(r, FakeProvider) else FakeProvider(r) for n, r in zip(names, replies, strict=True)}
    config = {"routing": {"strategy": "ordered"}, **more}
    kinds = {name: {"kind": "vllm", "failure_domain": name} for name in names}
    return world([f"{name}/big" for name in names], replies=providers, kinds=kinds, config=config)


def going_on(call: ProviderCall) -> FakeReply:
    """What a model does that is shown the beginning of its answer: it says the rest."""
    last = json.loads(call.payload)["messages"][-1]
    begun = last["content"] if last["role"] == "assistant" else ""
    assert TEXT.startswith(begun)
    return FakeReply(pieces=tuple(TEXT[len(begun) :]))


def text_of_all(chunks: list[Any]) -> str:
    """The text of some chunks, after the last restart."""
    at = max((n for n, data in enumerate(chunks) if data["object"] == "router.restart"), default=0)
    return "".join(c["choices"][0]["delta"].get("content", "") for c in chunks[at:] if c["choices"])


async def read(stream: RouterStream) -> list[Any]:
    """Every chunk of a stream."""
    return [data async for data in stream]


def cut_before_one_that_is_down(prefill: str) -> World:
    """A target whose stream is cut, and one that is down and goes on with answers by `prefill`."""
    providers = {"a": FakeProvider(BROKEN), "b": FakeProvider(DOWN)}
    kinds = {name: {"kind": "vllm", "failure_domain": name} for name in providers}
    targets = [{"target": "a/big", "prefill": "none"}, {"target": "b/big", "prefill": prefill}]
    config = {"routing": {"strategy": "ordered"}, "models": {"smart": {"targets": targets, "last_resort": []}}}
    return world(["a/big", "b/big"], replies=providers, kinds=kinds, config=config)


@pytest.mark.parametrize(("prefill", "said"), [("none", True), ("plain", False)])
@virtual
async def test_the_error_of_a_cut_says_that_its_policy_cannot_work(prefill: str, said: bool) -> None:
    """Where no other target goes on with an answer; where one could and failed, the cause of the cut is all."""
    fault = cut_before_one_that_is_down(prefill)
    with pytest.raises(StreamInterrupted) as told:
        await read(fault.router.stream_chat(BODY, recovery="continue"))
    assert ("`recovery: continue` could not help: the model has no other target" in str(told.value)) is said
    fault.assert_idle()


# What the caller gets ---------------------------------------------------------------------------------


@pytest.mark.parametrize("second", [WHOLE, going_on], ids=["repeats", "goes on"])
@pytest.mark.parametrize("first", [BROKEN, STALLED], ids=["cut", "stalled"])
@pytest.mark.parametrize("policy", POLICIES)
@virtual
async def test_the_answer_is_whole_and_said_once(policy: str, first: FakeReply, second: Any) -> None:
    """Cut or stalled, whether the next target says all again or only the rest: the text once, one finish, one end."""
    w = fleet(FakeProvider(first), FakeProvider(second))
    stream = w.router.stream_chat(BODY, recovery=policy)
    chunks = await read(stream)
    assert text_of_all(chunks) == stream.text == TEXT
    assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1] == "stop"
    assert (stream.report.target, stream.report.complete) == ("b/big", True)
    assert [event.outcome for event in w.sink.of(RequestFinished)] == ["fallback"]
    assert w.sink.of(AttemptFinished)[0].failure_class is not None
    w.assert_idle()


REPEATING = {
    "a table of zeros": ("matrix = [\n" + "    [0, 0, 0, 0],\n" * 8 + "]\n", 80),
    "a rule": ("=" * 60 + "\nTITLE\n" + "=" * 60, 30),
    "a second rule": ("=" * 60 + "\nTITLE\n" + "=" * 60 + "\nText", 80),
    "zeros": ("0, " * 40 + "1", 60),
    "JSON": ("[" + '{"a": null, "b": null}, ' * 5 + "{}]", 60),
}


@pytest.mark.parametrize(("text", "cut"), REPEATING.values(), ids=REPEATING.keys())
@virtual
async def test_a_text_that_repeats_itself_is_gone_on_with_whole(text: str, cut: int) -> None:
    """The rest begins as what was delivered ends, and is no repetition: nothing is trimmed but unshown white space."""

    def rest(call: ProviderCall) -> FakeReply:
        return FakeReply(pieces=tuple(text[len(json.loads(call.payload)["messages"][-1]["content"]) :]))

    w = fleet(FakeReply(pieces=(text[:cut],), cut=CUT), FakeProvider(rest))
    stream = w.router.stream_chat(BODY, recovery="continue")
    assert text_of_all(await read(stream)) == text
    assert stream.report.recoveries[0].trimmed_characters == cut - len(text[:cut].rstrip())
    w.assert_idle()


@virtual
async def test_the_report_says_what_happened_and_what_it_cost() -> None:
    """From whom to whom, why, what was kept and what was said again; tokens are those of both attempts."""
    w = fleet(BROKEN, WHOLE)
    stream = w.router.stream_chat({**BODY, "stream_options": {"include_usage": True}}, recovery="continue")
    chunks = await read(stream)
    report = stream.report
    kept = len("one two three ")
    assert report.recoveries == [
        StreamRecovery("continue", "a/big", FailureClass.TRUNCATED, kept, 0, kept, to_target="b/big")
    ]
    first, second = report.attempts
    assert (first.estimated, second.estimated) == (True, False)
    assert first.usage is not None
    assert first.usage.completion_tokens == 3
    both = Usage(first.usage.prompt_tokens + 10, 3 + 20)
    assert report.usage == both
    assert chunks[-1]["usage"]["total_tokens"] == both.total_tokens
    assert json.loads(report.to_json())["recoveries"][0]["trimmed_characters"] == kept


@virtual
async def test_without_a_policy_nobody_else_is_asked() -> None:
    """`none` is the default, and a request may say it against its model."""
    w = fleet(BROKEN, WHOLE, models={"smart": {"tiers": [{"targets": ["a/big", "b/big"]}], "recovery": "continue"}})
    with pytest.raises(StreamInterrupted):
        await read(w.router.stream_chat(BODY, recovery="none"))
    assert w.calls("b") == 0
    await read(w.router.stream_chat(BODY))
    assert w.calls("b") == 1
    w.assert_idle()


@virtual
async def test_an_unknown_policy_is_refused_with_what_was_meant() -> None:
    """By the option's name, before anything is sent."""
    w = fleet(WHOLE)
    with pytest.raises(InvalidRequest, match=r"recovery: 'continu' is no policy.*did you mean 'continue'\?"):
        w.router.stream_chat(BODY, recovery="continu")


@virtual
async def test_a_tool_call_is_never_gone_on_with() -> None:
    """It was not delivered, and the text before it goes on; a restart is none for who has a part of a call."""

    async def events() -> AsyncIterator[StreamEvent]:
        yield chunk({"content": "I look."})
        yield chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}]})
        yield StreamEvent(EventKind.ERROR, b"", failure=CUT)

    for policy, kept in (("continue", "I look."), ("hold_back(3)", "")):
        w = fleet(HandMade(events), FakeReply(pieces=(" And I say.",)))
        chunks = await read(w.router.stream_chat(BODY, recovery=policy))
        assert text_of_all(chunks) == kept + " And I say."
        assert not any("tool_calls" in choice["delta"] for data in chunks for choice in data["choices"])
        w.assert_idle()
    w = fleet(HandMade(events), WHOLE)
    with pytest.raises(StreamInterrupted):
        await read(w.router.stream_chat(BODY, recovery="restart"))
    assert w.calls("b") == 0
    w.assert_idle()


@virtual
async def test_a_call_beside_a_text_is_seen_in_events_that_say_they_are_text() -> None:
    """A provider of a user's own may set `text` beside a call: the call is not delivered and gone on with."""

    async def events() -> AsyncIterator[StreamEvent]:
        call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": "{"}}
        yield chunk({"content": "I look.", "tool_calls": [call]})._replace(text="I look.")
        yield StreamEvent(EventKind.ERROR, b"", failure=CUT)

    w = fleet(HandMade(events), WHOLE)
    chunks = await read(w.router.stream_chat(BODY, recovery="continue"))
    assert not any("tool_calls" in choice["delta"] for data in chunks for choice in data["choices"])
    assert text_of_all(chunks) == text_of_all(await read(fleet(WHOLE, WHOLE).router.stream_chat(BODY)))
    w.assert_idle()


@virtual
async def test_a_restart_is_told_before_the_new_answer() -> None:
    """One event that says what is void; `text` is that of the new answer; who does not accept it is told of the cut."""
    w = fleet(BROKEN, WHOLE)
    chunks = await read(w.router.stream_chat(BODY, recovery="restart"))
    (told,) = [data for data in chunks if data["object"] == "router.restart"]
    assert told["router"]["dropped_characters"] == len("one two three ")
    assert told["router"]["to_target"] == "b/big"
    w = fleet(BROKEN, WHOLE)
    with pytest.raises(StreamInterrupted):
        await read(w.router.stream_chat(BODY, recovery="restart", accept_restart=False))


@virtual
async def test_text_held_back_is_never_seen_when_it_is_cut() -> None:
    """A cut within it falls back unseen; a later one drops it, and the next target makes it anew."""
    w = fleet(BROKEN, WHOLE)
    stream = w.router.stream_chat(BODY, recovery="hold_back(100)")
    assert text_of_all(await read(stream)) == TEXT
    assert stream.report.recoveries[0].kept_characters == 0
    w = fleet(BROKEN, FakeProvider(going_on))
    stream = w.router.stream_chat(BODY, recovery="hold_back(8)")
    await read(stream)
    (recovery,) = stream.report.recoveries
    assert (recovery.kept_characters, recovery.dropped_characters) == (4, 10)
    assert json.loads(w.providers["b"].calls[0].payload)["messages"][-1] == {"role": "assistant", "content": "one"}
    assert stream.text == TEXT


@virtual
async def test_buffered_asks_another_target_before_the_one_that_broke_off() -> None:
    """Found: a provider that falls silent in the middle was asked once more first, and twice its silence was waited."""
    w = fleet(FakeReply(pieces=WORDS[:3], cut=CUT, gap=10.0), WHOLE)
    stream = w.router.stream_chat(BODY, recovery="buffered")
    assert text_of_all(await read(stream)) == TEXT
    assert [attempt.target for attempt in stream.report.attempts] == ["a/big", "b/big"]
    w.assert_idle()


@virtual
async def test_buffered_keeps_to_the_deadline() -> None:
    """Nothing was delivered, so the request's own time still runs: a stall leaves time for somebody else."""
    w = fleet(STALLED, WHOLE)
    began = now()
    stream = w.router.stream_chat(BODY, recovery="buffered", timeout=20)
    assert text_of_all(await read(stream)) == TEXT
    assert now() - began < 20
    assert now() - began == pytest.approx(16.0, abs=1.0)
    w.assert_idle()


# Who is asked -----------------------------------------------------------------------------------------


@virtual
async def test_who_cannot_go_on_is_passed_over() -> None:
    """A 400 is asked for once more in words, then it is a no; a target known not to be able is not asked."""
    targets: list[Any] = ["a/big", "b/big", {"target": "c/big", "prefill": "none"}, "d/big"]
    w = fleet(
        BROKEN,
        REJECTED,
        WHOLE,
        FakeProvider(going_on),
        models={"smart": {"tiers": [{"targets": targets}], "last_resort": []}},
    )
    stream = w.router.stream_chat(BODY, recovery="continue")
    assert text_of_all(await read(stream)) == TEXT
    assert [a.target for a in stream.report.attempts] == ["a/big", "b/big", "b/big", "d/big"]
    assert stream.report.attempts[1].failure_class is FailureClass.REJECTED_BY_FALLBACK
    assert [call.body["messages"][-1]["role"] for call in w.providers["b"].calls] == ["assistant", "user"]
    assert ("c/big", "filtered:prefill") in [(r.target, r.reason) for r in stream.report.refusals]
    assert w.calls("c") == 0
    w.assert_idle()


@pytest.mark.parametrize("reply", [REJECTED, DOWN], ids=["rejected", "down"])
@virtual
async def test_when_nobody_can_go_on_the_cut_is_told(reply: FakeReply) -> None:
    """The error is that of the cut, with what arrived; the report has the rest."""
    w = fleet(BROKEN, reply)
    stream = w.router.stream_chat(BODY, recovery="continue")
    with pytest.raises(StreamInterrupted) as caught:
        await read(stream)
    assert "TRUNCATED" in str(caught.value)
    assert caught.value.text == "one two three "
    assert stream.report.recoveries[0].to_target is None
    assert [event.outcome for event in w.sink.of(RequestFinished)] == ["failed"]
    w.assert_idle()


@virtual
async def test_another_answer_is_not_a_continuation() -> None:
    """It begins like the delivered text and then says something else: dropped unseen, and the next target asked."""
    begun = ("The quick brown fox jumps ", "over the lazy dog")
    other = FakeReply(pieces=("The quick brown fox jumps ", "over the fence instead", " and runs"))
    rest = FakeReply(pieces=(" and sleeps.",))
    w = fleet(FakeReply(pieces=begun, cut=CUT), other, rest)
    stream = w.router.stream_chat(BODY, recovery="continue")
    assert text_of_all(await read(stream)) == "".join(begun) + " and sleeps."
    assert [a.failure_class for a in stream.report.attempts] == [
        FailureClass.TRUNCATED,
        FailureClass.REJECTED_BY_FALLBACK,
        None,
    ]
    w.assert_idle()


@virtual
async def test_a_continuation_that_breaks_is_gone_on_with_within_the_limits() -> None:
    """Each of many targets brings a word and cuts: at most six attempts in all, each from where the last one ended."""
    one_more: list[int] = []

    def word(call: ProviderCall) -> FakeReply:
        begun = len(one_more)
        one_more.append(begun)
        return FakeReply(pieces=(WORDS[begun],), cut=CUT)

    w = fleet(*(FakeProvider(word) for _ in "abcdefgh"), routing={"strategy": "ordered", "attempts_per_tier": 8})
    stream = w.router.stream_chat(BODY, recovery="continue")
    with pytest.raises(StreamInterrupted) as caught:
        await read(stream)
    assert caught.value.text == "".join(WORDS[:6])
    assert len(stream.report.attempts) == 6
    assert len(stream.report.recoveries) == 6
    w.assert_idle()


@virtual
async def test_the_only_target_may_go_on_itself() -> None:
    """Nobody else is there: the same target is called again, at once out of the retry budget, then by back-off."""
    replies = [BROKEN, FakeReply(pieces=WORDS[3:5], cut=CUT), FakeReply(pieces=WORDS[5:])]
    w = fleet(FakeProvider(lambda _: replies.pop(0)))
    stream = w.router.stream_chat(BODY, recovery="continue")
    assert text_of_all(await read(stream)) == TEXT
    assert (w.calls("a"), len(stream.report.recoveries)) == (3, 2)
    assert 0 < stream.report.waited_seconds < 8.0
    w.assert_idle()


@virtual
async def test_the_only_target_goes_on_within_the_limits() -> None:
    """Each call brings a word and is cut: six attempts in all, and the caller has what came."""
    one_more: list[int] = []

    def word(call: ProviderCall) -> FakeReply:
        begun = len(one_more)
        one_more.append(begun)
        return FakeReply(pieces=(WORDS[begun],), cut=CUT)

    w = fleet(FakeProvider(word))
    with pytest.raises(StreamInterrupted) as caught:
        await read(w.router.stream_chat(BODY, recovery="continue"))
    assert caught.value.text == "".join(WORDS[:6])
    assert w.calls("a") == 6
    w.assert_idle()


@virtual
async def test_recovery_has_a_time_of_its_own() -> None:
    """Twenty minutes into a stream the request's deadline is long gone: the next target has `idle`, and no more."""
    long = FakeReply(pieces=(*("x",) * 1200, "y"), gap=1.0, cut=CUT)
    w = fleet(long, FakeReply(pieces=("!",), seconds=20.0))
    stream = w.router.stream_chat(BODY, recovery="continue")
    assert text_of_all(await read(stream)).endswith("xy!")
    w = fleet(long, FakeReply(seconds=float("inf")))
    began = now()
    with pytest.raises(StreamInterrupted):
        await read(w.router.stream_chat(BODY, recovery="continue"))
    assert now() - began <= 1201.0 + 60.0 + 1.0
    w.assert_idle()


@virtual
async def test_who_adds_nothing_has_not_gone_on() -> None:
    """It may have thought that all is said, or be broken: the next target is asked, and nothing is said twice."""
    w = fleet(FakeReply(pieces=WORDS, cut=CUT), FakeReply(pieces=()), WHOLE)
    stream = w.router.stream_chat(BODY, recovery="continue")
    assert text_of_all(await read(stream)) == TEXT
    assert [attempt.failure_class for attempt in stream.report.attempts] == [
        FailureClass.TRUNCATED,
        FailureClass.EMPTY,
        FailureClass.EMPTY,
        None,
    ]


@virtual
async def test_what_was_said_is_part_of_the_next_prompt() -> None:
    """2,000 bytes that a continuation is shown are 500 tokens more of its prompt, in the bill and for its bucket."""
    w = fleet(
        FakeReply(pieces=("word " * 399, "word."), cut=CUT),
        FakeReply(pieces=(" More",), cut=CUT),
        WHOLE,
        models={"smart": {"tiers": [{"targets": ["a/big", {"target": "b/big", "tpm": 100_000}, "c/big"]}]}},
    )
    stream = w.router.stream_chat(BODY, recovery="continue")
    while not stream.report.attempts:
        await anext(stream)
    first, level = stream.report.attempts[0], w.gate("b/big").limits.free_share(now())
    await read(stream)
    second = stream.report.attempts[1]
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.prompt_tokens == first.usage.prompt_tokens + 500
    assert (1 - level) * 100_000 >= 500 + 1024


@virtual
async def test_to_go_on_is_another_request_for_who_deduplicates() -> None:
    """The same target is shown another body: with the caller's idempotency key it would refuse it."""
    w = fleet(FakeProvider([BROKEN, WHOLE]))
    await read(w.router.stream_chat(BODY, recovery="continue", headers={"idempotency-key": "one"}))
    first, second = (call.headers["idempotency-key"] for call in w.providers["a"].calls)
    assert first == "one"
    assert second.startswith("one-")


@virtual
async def test_who_cuts_every_stream_is_avoided_all_the_same() -> None:
    """Recovery hides the cut from the caller, not from the target's record."""
    w = fleet(BROKEN, FakeProvider(going_on))
    for _ in range(20):
        assert text_of_all(await read(w.router.stream_chat(BODY, recovery="continue"))) == TEXT
    assert w.calls("a") <= 3
    w.assert_idle()


# Leaving ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("leaving", ["cancel", "close", "drop"])
@pytest.mark.parametrize("policy", POLICIES)
@virtual
async def test_a_caller_who_leaves_at_any_moment_leaves_nothing_behind(policy: str, leaving: str) -> None:
    """Before, during and after the break, while the next target is silent or speaks: all is given back, told once."""
    for moment in range(25):
        w = fleet(
            FakeReply(pieces=WORDS[:3], cut=CUT, gap=0.3, seconds=0.3),
            FakeReply(failure=Failure(FailureClass.SERVER_ERROR, "500", status=500), seconds=0.5),
            FakeReply(pieces=WORDS, gap=0.2, seconds=0.5),
        )
        stream = w.router.stream_chat(BODY, recovery=policy)
        ask = asyncio.ensure_future(read(stream))
        await asyncio.sleep(moment * 0.15 + 0.05)
        if leaving == "close":
            await stream.aclose()
        if leaving != "drop":
            await swallow(ask)
        else:
            ask.cancel()
            del stream, ask
        await asyncio.sleep(5.0)
        w.assert_idle()
        assert len(w.sink.of(RequestFinished)) == 1, moment


@virtual
async def test_somebody_else_may_close_a_stream_that_is_being_recovered() -> None:
    """Its reader ends quietly, and the next target's connection is closed once it opens."""
    w = fleet(BROKEN, FakeReply(pieces=WORDS, seconds=3.0))
    stream = w.router.stream_chat(BODY, recovery="continue")
    reader = asyncio.ensure_future(read(stream))
    await asyncio.sleep(1.0)
    await stream.aclose()
    assert text_of_all(await reader) == "one two three "
    assert [event.outcome for event in w.sink.of(RequestFinished)] == ["cancelled"]
    w.assert_idle()


@virtual
async def test_who_leaves_while_somebody_is_asked_to_go_on_leaves_no_timer() -> None:
    """What kept time for the call is stopped with it."""
    w = fleet(BROKEN, FakeReply(seconds=float("inf")))
    ask = asyncio.ensure_future(read(w.router.stream_chat(BODY, recovery="continue")))
    await asyncio.sleep(1.0)
    await swallow(ask)
    assert not timers()


# Whose time, whose fault ------------------------------------------------------------------------------


@virtual
async def test_a_stream_as_long_as_one_may_be_is_nobodys_fault() -> None:
    """`stream_max` is ours: told to the caller, not held against the target, and not recovered."""
    w = fleet(FakeReply(pieces=("x",) * 300, gap=1.0), WHOLE, resilience={"timeouts": {"stream_max": "2m"}})
    with pytest.raises(StreamInterrupted, match="longer than 120 s"):
        await read(w.router.stream_chat(BODY, recovery="continue"))
    assert [event.failure_class for event in w.sink.of(AttemptFinished)] == [FailureClass.CANCELLED]
    assert w.calls("b") == 0


@virtual
async def test_all_parts_of_an_answer_together_are_as_long_as_a_stream_may_be() -> None:
    """`stream_max` bounds the stream that the caller reads, whoever has a part in it."""
    parts = (FakeReply(pieces=tuple(f"{part}{n} " for n in range(80)), gap=1.0, cut=CUT) for part in "abc")
    w = fleet(*parts, resilience={"timeouts": {"stream_max": "2m"}})
    began = now()
    with pytest.raises(StreamInterrupted, match="longer than 120 s"):
        await read(w.router.stream_chat(BODY, recovery="continue"))
    assert now() - began == pytest.approx(120.0)
    assert w.calls("c") == 0


@virtual
async def test_the_consumers_own_time_is_not_the_calls() -> None:
    """Five minutes of thinking between two chunks are in no statistics."""
    w = fleet(WHOLE, resilience={"timeouts": {"reader_idle": "6m"}})
    async for _ in w.router.stream_chat(BODY):
        await asyncio.sleep(300.0)
    assert w.sink.of(AttemptFinished)[0].seconds < 2.0
