"""Streams in another dialect, event by event: what clients of each dialect accumulate is the answer."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.domain.request import Dialect
from smart_model_router.wires.translate import EventTranslator
from tests.unit.wires.translating import chunk, event, fed, messages_stream, sent, streamed


def deltas(chunks: list[dict[str, Any]], key: str) -> list[Any]:
    """What the chunks add under a key."""
    return [c["choices"][0]["delta"][key] for c in chunks if c["choices"] and c["choices"][0]["delta"].get(key)]


def call_delta(index: int, arguments: str, call_id: str = "", name: str = "") -> dict[str, Any]:
    """A piece of a tool call in a Chat chunk."""
    opening = {"id": call_id, "type": "function"} if call_id else {}
    named = {"name": name} if name else {}
    return chunk({"tool_calls": [{"index": index, **opening, "function": {**named, "arguments": arguments}}]})


def tool_inputs(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(id, arguments) of the tools of a Messages stream."""
    opened = [e["content_block"] for e in events if e["type"] == "content_block_start"]
    places = [e["index"] for e in events if e["type"] == "content_block_start"]
    pieces = [(e["index"], e["delta"].get("partial_json", "")) for e in events if e["type"] == "content_block_delta"]
    said = {place: "".join(piece for at, piece in pieces if at == place) for place in places}
    return [
        (block["id"], said[place]) for place, block in zip(places, opened, strict=True) if block["type"] == "tool_use"
    ]


def test_messages_text_comes_at_once() -> None:
    """Every delta is a chunk as it comes, after one that names the role; finish and usage follow."""
    deltas_in = [{"type": "text_delta", "text": "Hel"}, {"type": "text_delta", "text": "lo"}]
    translator = EventTranslator(sent("chat", "messages"))
    made = [
        fed(translator, event("messages", one)) for one in messages_stream(({"type": "text", "text": ""}, deltas_in))
    ]
    assert [[out.kind for out in outs] for outs in made] == [
        [EventKind.META],
        [],
        [EventKind.CONTENT],
        [EventKind.CONTENT],
        [],
        [EventKind.FINISH],
        [],
    ]
    usage, end = translator.end()
    assert usage.usage is not None
    assert (usage.usage.prompt_tokens, usage.usage.completion_tokens, usage.usage.cached_prompt_tokens) == (12, 9, 4)
    assert (end.kind, end.raw) == (EventKind.END, b"data: [DONE]\n\n")


def test_pieces_of_two_calls_that_come_by_turns_stay_apart() -> None:
    """Found: all pieces went to the call that was opened last, and the first one was made with `{}`."""
    starts: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": at, "content_block": {"type": "tool_use", "id": f"t{at}", "name": "f"}}
        for at in (0, 1)
    ]
    pieces = [(0, '{"a":'), (1, '{"b":'), (0, "1}"), (1, "2}")]
    events: list[dict[str, Any]] = [
        *starts,
        *(
            {
                "type": "content_block_delta",
                "index": at,
                "delta": {"type": "input_json_delta", "partial_json": piece},
            }
            for at, piece in pieces
        ),
        *({"type": "content_block_stop", "index": at} for at in (0, 1)),
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 1}},
        {"type": "message_stop"},
    ]
    calls: dict[int, str] = {0: "", 1: ""}
    for (call,) in deltas(streamed("chat", "messages", events), "tool_calls"):
        calls[call["index"]] += call["function"]["arguments"]
    assert calls == {0: '{"a":1}', 1: '{"b":2}'}


def test_a_call_without_arguments_is_an_empty_object_in_chat() -> None:
    """Messages streams nothing for it, and Chat's clients parse what they get."""
    blocks: list[Any] = [({"type": "tool_use", "id": i, "name": "f", "input": {}}, []) for i in ("a", "b")]
    made = streamed("chat", "messages", messages_stream(*blocks, stop="tool_use"))
    calls = [call for part in deltas(made, "tool_calls") for call in part]
    assert [(c["index"], c.get("id"), c["function"]["arguments"]) for c in calls] == [
        (0, "a", ""),
        (0, None, "{}"),
        (1, "b", ""),
        (1, None, "{}"),
    ]
    assert made[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_json_mode_streams_as_text() -> None:
    """The pieces of the tool that stands for it are pieces of the answer."""
    pieces = [{"type": "input_json_delta", "partial_json": p} for p in ('{"a"', ":1}")]
    block = {"type": "tool_use", "id": "x", "name": "answer_in_json", "input": {}}
    stream = messages_stream((block, pieces), stop="tool_use")
    made = streamed("chat", "messages", stream, response_format={"type": "json_object"})
    assert "".join(deltas(made, "content")) == '{"a":1}'
    assert made[-2]["choices"][0]["finish_reason"] == "stop"


def test_interleaved_calls_become_blocks_one_after_another() -> None:
    """The first call is passed on as it comes; the second waits until nothing can be added to the first."""
    chunks = [
        call_delta(0, "", "a", "f"),
        call_delta(1, '{"y"', "b", "g"),
        call_delta(0, '{"x":1}'),
        call_delta(1, ":2}"),
        chunk({"content": "done"}),
        chunk({}, "tool_calls"),
    ]
    made = streamed("messages", "chat", chunks)
    assert tool_inputs(made) == [("a", '{"x":1}'), ("b", '{"y":2}')]
    kinds = [e["content_block"]["type"] for e in made if e["type"] == "content_block_start"]
    assert kinds == ["tool_use", "tool_use", "text"]


@pytest.mark.parametrize("index", [0, None])
def test_calls_that_share_a_number_are_told_apart(index: int | None) -> None:
    """Gemini's compatible endpoint numbers all calls 0, others not at all: a new id is a new call."""
    opened = [call_delta(0, "{}", call_id, "f") for call_id in ("a", "b")]
    for one in opened:
        call = one["choices"][0]["delta"]["tool_calls"][0]
        one["choices"][0]["delta"]["tool_calls"] = [{**call, "index": index}]
    assert tool_inputs(streamed("messages", "chat", [*opened, chunk({}, "stop")])) == [("a", "{}"), ("b", "{}")]


def test_a_messages_stream_made_of_chat_counts_at_its_end() -> None:
    """Chat says what it cost last: the head says 0 and the last delta has every count and the reason."""
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 2}}
    made = streamed("messages", "chat", [chunk({"content": "x"}), chunk({}, "length"), {"choices": [], "usage": usage}])
    assert made[0]["message"]["usage"]["input_tokens"] == 0
    assert made[-2]["delta"]["stop_reason"] == "max_tokens"
    assert made[-2]["usage"] == {
        "input_tokens": 7,
        "output_tokens": 4,
        "cache_read_input_tokens": 2,
        "cache_creation_input_tokens": 0,
    }


def test_thoughts_come_before_text_in_a_block_of_their_own() -> None:
    """A thinking block is opened, signed and closed before the text begins."""
    made = streamed("messages", "chat", [chunk({"reasoning": "hm"}), chunk({"content": "x"}), chunk({}, "stop")])
    assert [e["delta"]["type"] for e in made if e["type"] == "content_block_delta"] == [
        "thinking_delta",
        "signature_delta",
        "text_delta",
    ]


def test_a_free_form_tool_streams_its_text_once() -> None:
    """Its arguments are JSON on the way: the text is whole when they are."""
    tools = [{"type": "custom", "name": "patch"}]
    pieces = [call_delta(0, '{"inp', "a", "patch"), call_delta(0, 'ut":"x"}'), chunk({}, "tool_calls")]
    made = streamed("responses", "chat", pieces, tools=tools)
    assert [e["delta"] for e in made if e["type"].endswith(".delta")] == ["x"]
    assert made[-1]["response"]["output"][0]["input"] == "x"


def test_a_search_for_tools_streams_whole() -> None:
    """Its arguments are an object: it is there when they are complete, and has no deltas."""
    tools = [{"type": "tool_search", "execution": "client"}]
    pieces = [call_delta(0, '{"que', "a", "tool_search"), call_delta(0, 'ry":"x"}'), chunk({}, "tool_calls")]
    made = streamed("responses", "chat", pieces, tools=tools)
    assert [e["type"] for e in made[2:-1]] == ["response.output_item.added", "response.output_item.done"]
    assert [e["item"]["arguments"] for e in made[2:-1]] == [{}, {"query": "x"}]


def test_a_responses_call_without_deltas_is_whole_in_chat() -> None:
    """Some servers send the finished item only."""
    item = {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'}
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    end = {"type": "response.completed", "response": {"status": "completed", "usage": {"input_tokens": 1}}}
    made = streamed("chat", "responses", [done, end])
    calls = [call for part in deltas(made, "tool_calls") for call in part]
    assert [c["function"]["arguments"] for c in calls] == ["", '{"x":1}']
    assert made[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_text_that_only_the_end_of_a_responses_stream_has_is_in_chat_and_messages() -> None:
    """Found: it was lost beside a thought that came by deltas, and the answer called complete."""
    thought = {"type": "response.reasoning_summary_text.delta", "item_id": "r", "output_index": 0, "delta": "hm"}
    said = {"type": "message", "id": "m", "content": [{"type": "output_text", "text": "hello"}]}
    end = {"type": "response.completed", "response": {"status": "completed", "output": [said]}}
    assert deltas(streamed("chat", "responses", [thought, end]), "content") == ["hello"]
    made = streamed("messages", "responses", [thought, end])
    assert [one["delta"]["text"] for one in made if one.get("delta", {}).get("type") == "text_delta"] == ["hello"]


def test_responses_calls_without_a_place_stay_apart_by_their_ids() -> None:
    """Found (llama.cpp): the arguments of the second of two calls were those of the first."""
    names = [("f1", "a"), ("f2", "b")]
    opened = [
        {
            "type": "response.output_item.added",
            "item": {"type": "function_call", "id": one, "call_id": one, "name": name},
        }
        for one, name in names
    ]
    grow = [
        {"type": "response.function_call_arguments.delta", "item_id": one, "delta": f'{{"{name}":1}}'}
        for one, name in names
    ]
    end = {"type": "response.completed", "response": {"status": "completed", "output": []}}
    made = streamed("messages", "responses", [opened[0], grow[0], opened[1], grow[1], end])
    assert tool_inputs(made) == [("f1", '{"a":1}'), ("f2", '{"b":1}')]


def test_a_block_that_its_start_holds_whole_is_whole_in_chat() -> None:
    """Its signature, too; and so is one that the head of the message holds, of a server that cannot stream."""
    thought = {"type": "thinking", "thinking": "hm", "signature": "s"}
    (detail,) = deltas(streamed("chat", "messages", messages_stream((thought, []))), "reasoning_details")[0]
    assert detail["signature"] == "s"
    whole = messages_stream(({"type": "text", "text": ""}, []))
    whole[0]["message"]["content"] = [thought, {"type": "text", "text": "hello"}]
    made = streamed("chat", "messages", whole)
    assert (deltas(made, "reasoning_content"), deltas(made, "content")) == (["hm"], ["hello"])


def test_a_stream_that_was_filtered_is_incomplete() -> None:
    """Responses says so in its last event, and Chat's finish reason comes back from it."""
    made = streamed("responses", "chat", [chunk({"refusal": "No."}), chunk({}, "content_filter")])
    assert made[-1]["type"] == "response.incomplete"
    back = streamed("chat", "responses", made)
    assert deltas(back, "refusal") == ["No."]
    assert back[-2]["choices"][0]["finish_reason"] == "content_filter"


@pytest.mark.parametrize(("asked", "goal"), [("chat", "messages"), ("messages", "chat"), ("responses", "messages")])
def test_a_ping_is_a_sign_of_life_everywhere(asked: Dialect, goal: Dialect) -> None:
    """It is handed on as a comment, which every client skips."""
    made = fed(EventTranslator(sent(asked, goal)), StreamEvent(EventKind.PING, b"event: ping\ndata: {}\n\n"))
    assert [(one.kind, one.raw) for one in made] == [(EventKind.PING, b": ping\n\n")]


def test_events_are_framed_for_their_dialect() -> None:
    """Messages and Responses name their events, Chat does not; half a surrogate is an escape."""
    made = fed(EventTranslator(sent("messages", "chat")), event("chat", chunk({"content": "x"})))
    assert made[0].raw.startswith(b'event: message_start\ndata: {"type":"message_start"')
    assert all(one.raw.endswith(b"}\n\n") for one in made)
    odd = fed(
        EventTranslator(sent("chat", "messages")),
        StreamEvent(
            EventKind.CONTENT, b"", {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "\ud800"}}
        ),
    )
    assert rb'"content":"\ud800"' in odd[-1].raw
