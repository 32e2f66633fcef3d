"""Snapshots: what only a `done` event, the terminal event, a message or a block's start says is delivered, once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.domain.request import Dialect
from smart_model_router.wires.dialects import SNAPSHOT_READERS, text_of
from tests.unit.wires.translating import event

TEXT = {"item_id": "m", "output_index": 0, "content_index": 0}
CALL = {"item_id": "f", "output_index": 1}


def read(dialect: Dialect, *events: Mapping[str, Any]) -> list[StreamEvent]:
    """The events of a stream that came in one piece, with what snapshots add."""
    return list(SNAPSHOT_READERS[dialect]().read([event(dialect, dict(data)) for data in events]))


def response(kind: str, **more: Any) -> dict[str, Any]:
    """An event of Responses."""
    return {"type": f"response.{kind}", **more}


def message(*texts: str, item_id: str = "m") -> dict[str, Any]:
    """An item with parts of text."""
    parts = [{"type": "output_text", "text": one, "annotations": []} for one in texts]
    return {"type": "message", "id": item_id, "role": "assistant", "status": "completed", "content": parts}


def call(arguments: object, item_id: str = "f") -> dict[str, Any]:
    """An item that calls a function."""
    return {"type": "function_call", "id": item_id, "call_id": "c", "name": "wipe", "arguments": arguments}


def thought(*, summary: tuple[str, ...] = (), content: tuple[str, ...] = ()) -> dict[str, Any]:
    """An item of reasoning."""
    return {
        "type": "reasoning",
        "id": "r",
        "summary": [{"type": "summary_text", "text": one} for one in summary],
        "content": [{"type": "reasoning_text", "text": one} for one in content],
    }


def delta(piece: str, **more: Any) -> dict[str, Any]:
    """A piece of text."""
    return response("output_text.delta", **{**TEXT, **more}, delta=piece)


def done(item: Mapping[str, Any], place: int = 0) -> dict[str, Any]:
    """The end of an item."""
    return response("output_item.done", output_index=place, item=item)


def completed(*output: Mapping[str, Any]) -> dict[str, Any]:
    """The terminal event."""
    return response("completed", response={"status": "completed", "output": list(output)})


def grown(events: list[StreamEvent]) -> str:
    """All that deltas of any kind say."""
    return "".join(one.data.get("delta", "") for one in events if one.data is not None)


def kinds(events: list[StreamEvent]) -> list[str]:
    """The types of events, without their beginning; MALFORMED for those that are."""
    return ["MALFORMED" if one.data is None else str(one.data["type"]).removeprefix("response.") for one in events]


# Responses ------------------------------------------------------------------------------------------------


def test_a_stream_whose_snapshots_agree_is_as_it_came() -> None:
    """Every event, the very object."""
    events = [
        event("responses", one)
        for one in (
            response("output_item.added", output_index=0, item=message()),
            response("content_part.added", **TEXT, part={"type": "output_text", "text": ""}),
            *(delta("a"), delta("b")),
            response("output_text.done", **TEXT, text="ab"),
            response("content_part.done", **TEXT, part={"type": "output_text", "text": "ab"}),
            *(done(message("ab")), completed(message("ab"))),
        )
    ]
    assert all(one is other for one, other in zip(SNAPSHOT_READERS["responses"]().read(events), events, strict=True))


@pytest.mark.parametrize(
    "snapshot",
    [
        response("output_text.done", **TEXT, text="abc"),
        response("content_part.done", **TEXT, part={"type": "output_text", "text": "abc"}),
        done(message("abc")),
        completed(message("abc")),
        completed(message("abc", item_id="another")),
    ],
)
def test_the_rest_of_a_text_is_a_delta_before_its_snapshot(snapshot: dict[str, Any]) -> None:
    """Found: text in a `done` or terminal event alone was lost in translation, and the answer called complete."""
    told = read("responses", delta("a", sequence_number=7), snapshot)
    assert grown(told) == "abc"
    assert told[1].kind is EventKind.CONTENT
    assert told[1].data == {**delta("bc", sequence_number=7), "logprobs": []}
    assert told[-1].data == snapshot


def test_an_answer_in_the_terminal_event_alone_comes_as_items() -> None:
    """As a client that follows a stream needs them: begun, grown and done, before the end."""
    output = [thought(summary=("hm", "so")), message("a", "b"), call('{"x":1}')]
    told = read("responses", completed(*output))
    assert kinds(told) == [
        *("output_item.added", "reasoning_summary_part.added", "reasoning_summary_text.delta"),
        *("reasoning_summary_part.added", "reasoning_summary_text.delta", "output_item.done"),
        *("output_item.added", "content_part.added", "output_text.delta"),
        *("content_part.added", "output_text.delta", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "output_item.done", "completed"),
    ]
    assert grown(told) == 'hmsoab{"x":1}'
    begun = [one.data["item"] for one in told if one.data and str(one.data["type"]).endswith("item.added")]
    assert [one.get("arguments", one.get("content", one.get("summary"))) for one in begun] == [[], [], ""]


def test_a_call_of_a_custom_tool_grows_by_its_input() -> None:
    """And a refusal by its own name."""
    custom = {"type": "custom_tool_call", "id": "t", "call_id": "c", "name": "run", "input": "ls"}
    assert kinds(read("responses", done(custom)))[1] == "custom_tool_call_input.delta"
    refusing = {**message(), "content": [{"type": "refusal", "refusal": "no"}]}
    assert kinds(read("responses", completed(refusing)))[2] == "refusal.delta"


def test_an_item_that_is_no_text_comes_once() -> None:
    """A search that only the terminal event has is begun and done; what is in it is in its end alone."""
    search = {"type": "web_search_call", "id": "w", "action": {"query": "q"}}
    told = read("responses", completed(search))
    assert kinds(told) == ["output_item.added", "output_item.done", "completed"]
    assert told[0].data is not None
    assert "action" not in told[0].data["item"]


@pytest.mark.parametrize(
    ("told", "snapshot"),
    [
        ((delta("ab"), delta("d")), response("output_text.done", **TEXT, text="abcd")),
        ((delta("ab"), delta("d")), done(message("abcd"))),
        ((delta("ab"), delta("d")), completed(message("abcd"))),
        ((response("function_call_arguments.delta", **CALL, delta='{"x": 1'),), done(call('{"x":2}'), 1)),
        ((response("function_call_arguments.delta", **CALL, delta='{"x": 1}'),), completed(call('{"x": 2}'))),
        ((delta("b", item_id="n", output_index=1),), completed(message("a"), message("b", item_id="n"))),
        ((delta("a"), delta("b", item_id="n", output_index=1)), done(message("a and more"))),
    ],
)
def test_a_snapshot_that_contradicts_its_deltas_cannot_be_read(
    told: tuple[dict[str, Any], ...], snapshot: dict[str, Any]
) -> None:
    """A hole in what was delivered, another value of an argument, or text that belongs before other text."""
    got = read("responses", *told, snapshot)
    assert kinds(got)[len(told) :] == ["MALFORMED"]
    assert got[-1].failure is not None
    assert got[-1].failure.failure_class is FailureClass.MALFORMED
    assert "contradicts" in got[-1].failure.message


@pytest.mark.parametrize(
    ("told", "snapshot"),
    [
        ((delta("\n\nab "),), done(message("ab"))),
        ((delta("ab"),), done(message())),
        ((delta("ab"),), done(message(""))),
        ((delta("ab"),), completed()),
        ((delta("ab stop"),), completed(message("ab"))),
        ((delta("a"), delta("b")), response("output_text.done", **TEXT, text="b")),
        ((response("function_call_arguments.delta", **CALL, delta='{"x": 1}'),), done(call('{"x":1}'), 1)),
        ((response("function_call_arguments.delta", **CALL, delta='{"x": 1}'),), done(call({"x": 1}), 1)),
        ((response("reasoning_text.delta", item_id="r", output_index=0, delta="hm"),), done(thought(summary=("hm",)))),
        (
            (response("reasoning_summary_text.delta", item_id="r", output_index=0, delta="hm"),),
            done(thought(summary=("hm",), content=("long",))),
        ),
    ],
)
def test_a_snapshot_that_says_no_more_changes_nothing(
    told: tuple[dict[str, Any], ...], snapshot: dict[str, Any]
) -> None:
    """Servers strip spaces, write JSON anew, send empty items, cut at a stop word, give a thought in another form."""
    got = read("responses", response("output_item.added", **_begin(snapshot)), *told, snapshot)
    assert "MALFORMED" not in kinds(got)
    assert grown(got) == "".join(one["delta"] for one in told)


def _begin(snapshot: Mapping[str, Any]) -> dict[str, Any]:
    item = snapshot.get("item") or message()
    return {"output_index": snapshot.get("output_index", 0), "item": {"type": item["type"], "id": item["id"]}}


def test_items_are_told_apart_by_their_ids_where_no_event_says_their_place() -> None:
    """llama.cpp: two calls at once; each has its own arguments, and the last of them come with the terminal event."""
    first, second = call('{"x":1}', "f1"), call('{"y":2}', "f2")
    told = read(
        "responses",
        *(response("output_item.added", item={**one, "arguments": ""}) for one in (first, second)),
        response("function_call_arguments.delta", item_id="f1", delta='{"x":1}'),
        response("function_call_arguments.delta", item_id="f2", delta='{"y"'),
        *(response("output_item.done", item=first), completed(first, second)),
    )
    added = [one.data for one in told if one.kind is EventKind.CONTENT and one.data is not None]
    assert added[-1] == response("function_call_arguments.delta", item_id="f2", delta=":2}")


def test_items_that_all_have_one_place_are_told_apart_by_their_ids() -> None:
    """The end of the first of two calls comes when the second has begun: both are as they came."""
    first, second = call('{"x":1}', "f1"), call('{"y":2}', "f2")
    events = [
        *(response("output_item.added", output_index=0, item={**one, "arguments": ""}) for one in (first, second)),
        response("function_call_arguments.delta", item_id="f2", output_index=0, delta='{"y":2}'),
        response("function_call_arguments.delta", item_id="f1", output_index=0, delta='{"x":1}'),
        *(done(first), done(second), completed(first, second)),
    ]
    assert [one.data for one in read("responses", *events)] == events


def test_text_with_replaced_bytes_is_not_compared() -> None:
    """It is noted and not complete as it is; its snapshot has other bytes."""
    reader = SNAPSHOT_READERS["responses"]()
    fault = Failure(FailureClass.MALFORMED, "replaced")
    mended = event("responses", delta("a\ufffd"))._replace(failure=fault)
    assert kinds([*reader.read([mended]), *reader.read([event("responses", done(message("ab")))])]) == [
        *("output_text.delta", "output_item.done")
    ]
    late = event("responses", done(message("a\ufffdc")))._replace(failure=fault)
    got = SNAPSHOT_READERS["responses"]().read([event("responses", delta("a")), late])
    assert [one.failure for one in got] == [None, fault, fault]


# Chat -----------------------------------------------------------------------------------------------------


def chunk(delta: Mapping[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """A chunk of Chat."""
    choice = {"index": 0, **({} if delta is None else {"delta": dict(delta)}), **more}
    return {"id": "x", "object": "chat.completion.chunk", "choices": [choice]}


def deltas(events: list[StreamEvent]) -> list[dict[str, Any]]:
    """The deltas of the chunks."""
    return [one.data["choices"][0]["delta"] for one in events if one.data is not None]


def test_a_whole_answer_in_a_chunk_is_its_delta() -> None:
    """From a server that cannot stream; its calls are numbered, and its finish reason stays."""
    calls = [{"id": "c", "type": "function", "function": {"name": "wipe", "arguments": "{}"}}]
    said = {"role": "assistant", "content": "hello", "tool_calls": calls}
    (told,) = read("chat", chunk(message=said, finish_reason="tool_calls"))
    assert told.data is not None
    (choice,) = told.data["choices"]
    numbered = [{**calls[0], "index": 0}]
    assert choice == {"index": 0, "finish_reason": "tool_calls", "delta": {**said, "tool_calls": numbered}}
    assert (told.kind, told.finish, text_of("chat", told.data)) == (EventKind.CONTENT, "tool_calls", "hello")


def test_a_message_that_goes_on_from_the_deltas_adds_its_rest() -> None:
    """Of the text, the thoughts by either name, and the arguments of each call, known by its id or its place."""
    opened = {"index": 0, "id": "c", "function": {"name": "wipe", "arguments": '{"x"'}}
    new = {"id": "d", "function": {"name": "wipe", "arguments": {"y": 2}}}
    calls = [{"id": "c", "function": {"name": "wipe", "arguments": '{"x":1}'}}, new]
    whole = {"content": "hello", "reasoning": "hm so", "tool_calls": calls}
    told = read(
        "chat",
        chunk({"role": "assistant", "content": "he"}),
        chunk({"content": "l"}),
        chunk({"reasoning_content": "hm"}),
        chunk({"tool_calls": [opened]}),
        chunk({}, message=whole, finish_reason="tool_calls"),
    )
    assert deltas(told)[-1] == {
        "content": "lo",
        "reasoning": " so",
        "tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}, {**new, "index": 1}],
    }
    unnamed = {"tool_calls": [{"function": {"name": "wipe", "arguments": '{"x":1}'}}]}
    told = read("chat", chunk({"tool_calls": [opened]}), chunk(message=unnamed))
    assert deltas(told)[-1] == {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}


def test_a_message_that_says_what_the_deltas_said_is_passed_on() -> None:
    """Perplexity: beside every delta, and once more at the end, where a usage may be with it."""
    usage = {"prompt_tokens": 3, "completion_tokens": 2}
    events = [
        event("chat", one)
        for one in (
            chunk({"content": "he"}, message={"content": "he"}),
            chunk({"content": "llo"}, message={"content": "hello"}),
            {**chunk({"content": ""}, message={"content": "hello"}, finish_reason="stop"), "usage": usage},
        )
    ]
    assert all(one is other for one, other in zip(SNAPSHOT_READERS["chat"]().read(events), events, strict=True))


@pytest.mark.parametrize(
    "whole",
    [
        {"content": "helo"},
        {"content": "hello", "tool_calls": [{"id": "c", "function": {"name": "wipe", "arguments": '{"x":3}'}}]},
    ],
)
def test_a_message_that_contradicts_the_deltas_cannot_be_read(whole: dict[str, Any]) -> None:
    """Another text, or other arguments."""
    called = {"index": 0, "id": "c", "function": {"name": "wipe", "arguments": '{"x":1}'}}
    got = read("chat", chunk({"content": "hello"}), chunk({"tool_calls": [called]}), chunk(message=whole))
    assert [one.kind for one in got][2:] == [EventKind.MALFORMED]


def test_calls_that_share_a_number_are_told_apart_by_their_ids() -> None:
    """Gemini's compatible endpoint has numbered all of them 0."""
    first, second = ({"index": 0, "id": name, "function": {"name": "w", "arguments": "{}"}} for name in "cd")
    whole = {"tool_calls": [{**one, "function": {"name": "w", "arguments": "{}"}} for one in (first, second)]}
    got = read("chat", chunk({"tool_calls": [first]}), chunk({"tool_calls": [second]}), chunk(message=whole))
    assert deltas(got[:2]) == [{"tool_calls": [first]}, {"tool_calls": [second]}]
    assert got[2].data == chunk(message=whole)


def test_events_of_a_provider_of_ones_own_are_left_alone() -> None:
    """Without data, or with text beside data that is no chunk."""
    odd = [
        StreamEvent(EventKind.PING, b": hi\n\n"),
        StreamEvent(EventKind.CONTENT, b"data: {}\n\n", {}, text="a"),
        StreamEvent(EventKind.CONTENT, b"data: {}\n\n", {"choices": [7]}, text="a"),
    ]
    assert list(SNAPSHOT_READERS["chat"]().read(odd)) == odd


# Messages -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pieces", "is_read"), [((), True), (('{"x": ', "1}"), True), (('{"x": 2}',), False), (("{",), False)]
)
def test_the_input_in_a_calls_start_is_that_of_its_deltas(pieces: tuple[str, ...], is_read: bool) -> None:
    """Some clients take the one, some the other; where there are no deltas it is all there is."""
    block = {"type": "tool_use", "id": "t", "name": "wipe", "input": {"x": 1}}
    grow = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    got = read(
        "messages",
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": "hi"}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "!"}},
        {"type": "content_block_stop", "index": 0},
        {"type": "content_block_start", "index": 1, "content_block": block},
        *({"type": "content_block_delta", "index": 1, "delta": one} for one in grow),
        {"type": "content_block_stop", "index": 1},
    )
    assert (got[-1].kind is not EventKind.MALFORMED) is is_read
