"""Two streams as one: one head, one end, blocks in order, nothing twice."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.core.overlap import Overlap
from smart_model_router.domain.outcome import EventKind, StreamEvent, Usage
from smart_model_router.domain.request import Dialect
from smart_model_router.wires import text_of
from smart_model_router.wires.dialects import written
from smart_model_router.wires.outgoing import begun, marked, without_seals
from smart_model_router.wires.stream_join import Told, joint, restart_event
from smart_model_router.wires.translate.reasoning import is_sealed

BEFORE = Usage(100, 7)
END = StreamEvent(EventKind.END, b"data: [DONE]\n\n")
PING = StreamEvent(EventKind.PING, b": ping\n\n")


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    """A Chat chunk."""
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "two", "created": 2, "model": "m2", "choices": [choice], **more}


def start(index: int, **block: Any) -> dict[str, Any]:
    """A block of Messages begins."""
    return {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": "", **block}}


def text(index: int, words: str) -> dict[str, Any]:
    """A block of Messages grows."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": "text_delta", "text": words}}


def stop(index: int) -> dict[str, Any]:
    """A block of Messages ends."""
    return {"type": "content_block_stop", "index": index}


THINKING = start(0, type="thinking", thinking="")
HEAD = {"type": "message_start", "message": {"usage": {"input_tokens": 50, "output_tokens": 0}}}
LAST = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 3}}
STOP = {"type": "message_stop"}


def told(dialect: Dialect, *events: dict[str, Any]) -> Told:
    """A caller who has these."""
    has = Told(dialect)
    for data in events:
        has.take(written(dialect, [data])[0])
    return has


def joined(has: Told, *events: dict[str, Any] | StreamEvent, before: Usage = BEFORE) -> list[Any]:
    """What the caller gets for a continuation, as data (b"..." where there is none)."""
    joins = joint(has, Overlap(has.text, has.text.rstrip()), before)
    got = [
        out
        for event in events
        for out in joins.feed(event if isinstance(event, StreamEvent) else written(has.dialect, [event])[0])
    ]
    return [out.raw if out.data is None else out.data for out in got]


FIRST = {"id": "one", "created": 1, "model": "m1", "choices": [{"index": 0, "delta": {"content": "one "}}]}


def test_a_chat_answer_keeps_its_id_and_has_no_second_head() -> None:
    """Role and thoughts of the continuation are left out; id, stamp and model stay those of the first chunk."""
    got = joined(
        told("chat", FIRST),
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hm"}),
        chunk({"content": "two"}),
        chunk({}, "stop"),
        END,
    )
    assert [(each["id"], each["created"], each["model"]) for each in got[:-1]] == [("one", 1, "m1")] * 2
    assert [each["choices"][0] for each in got[:-1]] == [
        {"index": 0, "delta": {"content": "two"}, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    assert got[-1] == END.raw


def test_repeated_chat_text_is_trimmed_and_what_waits_comes_before_the_end() -> None:
    """The continuation says all again, in other pieces; text still in doubt comes before finish or terminator."""
    got = joined(told("chat", FIRST), chunk({"content": "on"}), chunk({"content": "e two"}), chunk({}, "stop"))
    assert "".join(text_of("chat", each) for each in got) == "two"
    got = joined(told("chat", FIRST), chunk({"content": "on"}), PING, chunk({}, "length"))
    assert got[0] == PING.raw
    assert got[1]["choices"][0] == {"index": 0, "delta": {"content": "on"}, "finish_reason": "length"}
    got = joined(told("chat", FIRST), chunk({"content": "on"}), END)
    assert [text_of("chat", each) for each in got[:-1]] == ["on"]


def test_a_chat_continuation_may_call_tools() -> None:
    """Only what was delivered may be no call; log probabilities go with the text they belong to."""
    call = {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]}
    got = joined(told("chat", FIRST), chunk({"content": "on"}), chunk(call), chunk({}, "tool_calls"))
    assert got[0]["choices"][0]["delta"] == {**call, "content": "on"}
    probable = {**chunk({"content": "x"}), "choices": [{"index": 0, "delta": {"content": "x"}, "logprobs": {"a": 1}}]}
    assert joined(told("chat", FIRST), probable)[0]["choices"][0]["logprobs"] == {"a": 1}


def test_chat_usage_is_of_both() -> None:
    """The chunk with the counts adds what the first part used; a chunk without choices and counts is left out."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15, "kept": 1}
    got = joined(told("chat", FIRST), {"id": "two", "choices": [], "usage": usage}, {"id": "two", "choices": []})
    assert got == [
        {
            "id": "one",
            "created": 1,
            "model": "m1",
            "choices": [],
            "usage": {"prompt_tokens": 110, "completion_tokens": 12, "total_tokens": 122, "kept": 1},
        }
    ]


@pytest.mark.parametrize(
    ("details", "summed"),
    [
        ({}, {"cached_tokens": 60}),
        ({"cached_tokens": 4, "audio_tokens": 0}, {"cached_tokens": 64, "audio_tokens": 0}),
    ],
)
def test_chat_cached_tokens_are_of_both(details: dict[str, int], summed: dict[str, int]) -> None:
    """They are a part of the prompt's tokens."""
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": details}
    got = joined(told("chat", FIRST), {"id": "two", "choices": [], "usage": usage}, before=Usage(100, 7, 60))
    assert (got[0]["usage"]["prompt_tokens"], got[0]["usage"]["prompt_tokens_details"]) == (110, summed)


@pytest.mark.parametrize(
    ("at_start", "at_end", "read"),
    [({}, {}, 60), ({"cache_read_input_tokens": 4}, {}, 64), ({}, {"cache_read_input_tokens": 5}, 65)],
)
def test_messages_cached_tokens_are_of_both(at_start: dict[str, int], at_end: dict[str, int], read: int) -> None:
    """They are counted beside the prompt's other tokens, at the end or at the start alone."""
    head = {"type": "message_start", "message": {"usage": {"input_tokens": 50, "output_tokens": 0, **at_start}}}
    last = {**LAST, "usage": {"output_tokens": 3, **at_end}}
    got = joined(told("messages", HEAD, start(0)), head, start(0), stop(0), last, before=Usage(100, 7, 60))
    assert got[-1]["usage"] == {"output_tokens": 10, "input_tokens": 90, "cache_read_input_tokens": read}


def test_messages_text_goes_on_in_the_open_block() -> None:
    """No second message_start; the block that was open gets the rest, then stop, usage of both, and the end."""
    got = joined(
        told("messages", HEAD, start(0), text(0, "one ")),
        HEAD,
        start(0),
        text(0, "two"),
        stop(0),
        LAST,
        STOP,
    )
    assert got == [
        text(0, "two"),
        stop(0),
        {**LAST, "usage": {"output_tokens": 10, "input_tokens": 150}},
        STOP,
    ]


def test_messages_text_goes_on_in_a_block_that_began_with_text() -> None:
    """A block whose start holds text already is open as well: a continuation goes on in it, and closes it once."""
    has = told("messages", HEAD, start(0, type="text", text="one "))
    assert (has.text, has.open_block, has.can_go_on) == ("one ", 0, True)
    got = joined(has, HEAD, start(0, type="text", text=""), text(0, "two"), stop(0), LAST, STOP)
    assert [event["index"] for event in got if "index" in event] == [0, 0]


def test_messages_text_after_a_closed_block_has_a_block_of_its_own() -> None:
    """The cut came between blocks: the next number is used."""
    got = joined(told("messages", HEAD, start(0), text(0, "one "), stop(0)), HEAD, start(0), text(0, "two"), stop(0))
    assert got == [start(1), text(1, "two"), stop(1)]


def test_messages_blocks_of_a_continuation_follow_in_order() -> None:
    """Thoughts are left out; a call closes the open text; never are two blocks open, and each number is used once."""
    thinking = start(0, type="thinking", thinking="")
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}
    call = {"type": "content_block_start", "index": 2, "content_block": {"type": "tool_use", "id": "t", "name": "f"}}
    piece = {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}}
    has = told("messages", HEAD, thinking, stop(0), start(1), text(1, "one "))
    assert has.can_go_on
    got = joined(has, HEAD, thinking, thought, stop(0), start(1), text(1, "two"), stop(1), call, piece, stop(2), LAST)
    assert got[:-1] == [
        text(1, "two"),
        stop(1),
        {**call, "index": 2},
        {**piece, "index": 2},
        stop(2),
    ]
    got = joined(has, HEAD, {**call, "index": 0}, {**piece, "index": 0}, stop(0), start(1), text(1, "x"), stop(1))
    assert got == [stop(1), {**call, "index": 2}, {**piece, "index": 2}, stop(2), start(3), text(3, "x"), stop(3)]


def test_thoughts_of_a_continuation_are_counted_however_they_come() -> None:
    """Found: of one that its block's start held whole the report said nothing."""
    has = told("messages", HEAD, start(0), text(0, "one "))
    joins = joint(has, Overlap(has.text, has.text.rstrip()), BEFORE)
    thought = {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": " so"}}
    for data in (HEAD, start(0, type="thinking", thinking="hm"), thought):
        joins.feed(written("messages", [data])[0])
    assert joins.unthought == len("hm so")


def thought(index: int, words: str) -> dict[str, Any]:
    """A thought of Messages grows."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": "thinking_delta", "thinking": words}}


def signature(index: int, value: str) -> dict[str, Any]:
    """A thought of Messages is signed."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": "signature_delta", "signature": value}}


def test_an_unfinished_thought_is_closed_with_a_signature_of_ours() -> None:
    """The answer made anew follows it, with its own thoughts; the seal is left out when the client sends it back."""
    has = told("messages", HEAD, THINKING, thought(0, "hm"))
    theirs = (HEAD, THINKING, thought(0, "well"), signature(0, "s"), stop(0), start(1), text(1, "one"), stop(1))
    first, *rest = joined(has, *theirs)
    assert is_sealed(first["delta"]["signature"])
    assert (first["index"], first["delta"]["type"]) == (0, "signature_delta")
    assert rest == [
        stop(0),
        {**THINKING, "index": 1},
        thought(1, "well"),
        signature(1, "s"),
        stop(1),
        start(2),
        text(2, "one"),
        stop(2),
    ]
    body = {"messages": [{"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", **first["delta"]}]}]}
    assert without_seals("messages", body) == {"messages": []}


def test_a_thought_that_is_signed_or_redacted_is_only_closed() -> None:
    """Its own signature came, or it has none; text follows in a block of its own."""
    for has in (
        told("messages", HEAD, THINKING, thought(0, "hm"), signature(0, "theirs")),
        told("messages", HEAD, start(0, type="redacted_thinking", data="x")),
    ):
        assert joined(has, HEAD, start(0), text(0, "one"), stop(0)) == [stop(0), start(1), text(1, "one"), stop(1)]


def test_chat_thoughts_before_any_text_go_on() -> None:
    """Those of the next target are delivered, too; once there is text they are left out."""
    thinks = chunk({"reasoning_content": "hm"})
    (got,) = joined(told("chat", thinks), thinks)
    assert got["choices"][0]["delta"] == {"reasoning_content": "hm"}
    assert joined(told("chat", FIRST), thinks) == []


LONG = "It was the best of times, it was the worst of times"


def proven(has: Told, *events: dict[str, Any]) -> tuple[list[Any], bool]:
    """What the caller gets of a target that was only asked, and whether it is another answer."""
    news = Overlap(has.text, has.text.rstrip(), trusted=False)
    joins = joint(has, news, BEFORE)
    return [out.data for data in events for out in joins.feed(written(has.dialect, [data])[0])], news.begun_anew


def test_a_call_alone_continues_without_proof() -> None:
    """A call is whole by itself: text before it has to be proven, and need not be there. No block stays empty."""
    call = {"type": "content_block_start", "index": 0, "content_block": {"type": "tool_use", "id": "t", "name": "f"}}
    has = told("messages", HEAD, start(0), text(0, LONG), stop(0))
    assert proven(has, HEAD, call, stop(0)) == ([{**call, "index": 1}, stop(1)], False)
    later = {**call, "index": 1}
    repeated = (HEAD, start(0), text(0, "the worst of times"), stop(0), later, stop(1))
    assert proven(has, *repeated) == ([{**call, "index": 1}, stop(1)], False)
    assert proven(has, HEAD, start(0), text(0, "Sure!"), stop(0), later, stop(1))[1]
    calls = chunk({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{}"}}]})
    has = told("chat", chunk({"content": LONG}))
    assert proven(has, calls)[1] is False
    assert proven(has, chunk({"content": "Sure!"}), calls)[1]
    assert proven(has, chunk({}, "stop"))[1]


def test_messages_text_of_a_block_without_a_begin_is_not_lost() -> None:
    """Some servers leave it out; the text goes on in the open block."""
    has = told("messages", HEAD, start(0), text(0, "one"))
    got = joined(has, HEAD, text(0, " two"), text(0, " three"), stop(0), LAST, STOP)
    said = [data["delta"]["text"] for data in got if data.get("type") == "content_block_delta"]
    assert said == [" two", " three"]


def test_messages_text_in_doubt_comes_before_its_block_closes() -> None:
    """What might have been repetition, and was not, is not lost; also where the block is only closed by the end."""
    has = told("messages", HEAD, start(0), text(0, "one "))
    assert joined(has, HEAD, start(0), text(0, "on"), stop(0)) == [text(0, "on"), stop(0)]
    got = joined(has, HEAD, start(0, text="on"), LAST)
    assert got[:2] == [text(0, "on"), stop(0)]
    new = {"type": "new_event"}
    assert joined(has, HEAD, PING, new, stop(5)) == [PING.raw, new]


@pytest.mark.parametrize(
    ("dialect", "events", "expected"),
    [
        ("chat", [FIRST], True),
        ("chat", [chunk({"reasoning_content": "hm"})], True),
        ("chat", [chunk({"reasoning": "hm", "reasoning_details": [{"type": "reasoning.text"}]})], False),
        ("chat", [chunk({"reasoning_content": "hm"}), FIRST], True),
        ("chat", [FIRST, chunk({"tool_calls": [{"index": 0}]})], False),
        ("chat", [FIRST, chunk({"refusal": "no"})], False),
        ("chat", [FIRST, {"choices": [{"index": 1, "delta": {"content": "x"}}]}], False),
        ("messages", [HEAD, start(0)], False),
        ("messages", [HEAD, start(0), text(0, "one")], True),
        ("messages", [{**HEAD, "message": {"content": [{"type": "text"}]}}, start(0), text(0, "one")], False),
        ("messages", [HEAD, THINKING], True),
        ("messages", [HEAD, THINKING, stop(0)], True),
        ("messages", [HEAD, THINKING, stop(0), start(1)], False),
        ("messages", [HEAD, start(0), text(0, "one"), stop(0), start(1, type="thinking", thinking="")], False),
        ("messages", [HEAD, start(0), text(0, "one"), stop(0), start(1, type="tool_use")], False),
    ],
)
def test_only_delivered_text_can_be_gone_on_with(dialect: Dialect, events: list[Any], expected: bool) -> None:
    """Text, or thoughts before any text (none whose other half is signed or encrypted), and nothing else."""
    assert told(dialect, *events).can_go_on is expected


def test_a_restart_is_an_event_that_others_skip() -> None:
    """Chat: a chunk without choices under a name of its own; Messages: a type nobody knows."""
    chat, messages = restart_event("chat", {"to_target": "b"}), restart_event("messages", {"to_target": "b"})
    assert chat.raw.startswith(b"event: router.restart\ndata: {")
    assert chat.data == {"object": "router.restart", "choices": [], "router": {"to_target": "b"}}
    assert messages.raw.startswith(b"event: router_restart\ndata: {")
    assert messages.kind is chat.kind is EventKind.META


def test_a_begun_answer_is_the_last_message_and_the_cap_shrinks() -> None:
    """A token is taken for 4 bytes, but for the 48 that may have to be said again; one is always left."""
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 10, "max_completion_tokens": 100}
    got = begun(body, "x" * 128)
    assert got["messages"] == [*body["messages"], {"role": "assistant", "content": "x" * 128}]  # type: ignore[misc]
    assert (got["max_tokens"], got["max_completion_tokens"]) == (1, 80)
    assert len(body["messages"]) == 1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ("a ", "a b"),
        ([{"type": "text", "text": "a"}], [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]),
        (None, "b"),
    ],
)
def test_a_beginning_of_the_callers_own_is_gone_on_with(own: Any, expected: Any) -> None:
    """Two messages of the assistant in a row are an error in some dialects."""
    got = begun({"messages": [{"role": "assistant", "content": own}]}, "b")
    assert got["messages"] == [{"role": "assistant", "content": expected}]
    calls = {"role": "assistant", "tool_calls": [{}]}
    assert begun({"messages": [calls]}, "b")["messages"] == [calls, {"role": "assistant", "content": "b"}]


def test_each_target_gets_its_own_sign() -> None:
    """`prefix` marks the message, `continue_final_message` the body, plain nothing."""
    body = {"messages": [{"role": "user"}, {"role": "assistant"}]}
    assert marked(body, "prefix")["messages"] == [{"role": "user"}, {"role": "assistant", "prefix": True}]
    said = {"continue_final_message": True, "add_generation_prompt": False}
    assert marked(body, "continue_final_message") == {**body, **said}
    assert marked(body, "plain") == body
