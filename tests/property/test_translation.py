"""Translation under any input: there and back changes nothing both dialects can say, and nothing sent ever raises."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.domain.request import Dialect
from smart_model_router.wires import ANSWER_READERS, read_event
from smart_model_router.wires.translate import (
    ROUTES,
    EventTranslator,
    Losses,
    Terms,
    Translation,
    Untranslatable,
    translate,
)
from tests.unit.wires.translating import fed

TERMS = Terms(family="f", reasoning=True, created=7)
TRANSLATED: list[tuple[Dialect, Dialect]] = sorted(ROUTES)

# ------------------------------------------------------------------------------------------- what both can say

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
ID = st.from_regex(r"[a-zA-Z0-9_-]{1,12}", fullmatch=True)
JSON_OBJECT = st.dictionaries(
    ID, st.none() | st.booleans() | st.integers() | TEXT | st.lists(TEXT, max_size=2), max_size=3
)
SCHEMA = st.builds(lambda more: {"type": "object", **more}, JSON_OBJECT.filter(lambda o: "type" not in o))
DATA = st.sampled_from(["aGk=", "AAAA"])
IMAGE = st.sampled_from(["https://host.invalid/a.png", "data:image/png;base64,AAAA"])


def compact(value: object) -> str:
    """JSON as the dialects write it inside strings."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


PART = st.one_of(
    st.builds(lambda t: {"type": "text", "text": t}, TEXT),
    st.builds(lambda url: {"type": "image_url", "image_url": {"url": url}}, IMAGE),
    st.builds(
        lambda data, name: {
            "type": "file",
            "file": {"file_data": f"data:application/pdf;base64,{data}", "filename": name},
        },
        DATA,
        TEXT,
    ),
)
CONTENT = TEXT | st.lists(PART, min_size=2, max_size=3)
CALL = st.builds(
    lambda call, name, arguments: {
        "id": call,
        "type": "function",
        "function": {"name": name, "arguments": compact(arguments)},
    },
    ID,
    ID,
    JSON_OBJECT,
)


def _id_of(call: Any) -> str:
    return str(call["id"])


RESULT_TEXT = st.builds(lambda mark, t: mark + t, st.sampled_from(["", "[tool error]\n"]), TEXT)


@st.composite
def turns(draw: st.DrawFn) -> list[dict[str, Any]]:
    """A user's turn and an assistant's, with tools called and answered in order."""
    made: list[dict[str, Any]] = [{"role": "user", "content": draw(CONTENT)}]
    calls = draw(st.lists(CALL, max_size=3, unique_by=_id_of))
    if not calls:
        return [*made, {"role": "assistant", "content": draw(TEXT)}]
    made.append({"role": "assistant", "content": draw(st.none() | TEXT), "tool_calls": calls})
    return [*made, *({"role": "tool", "tool_call_id": c["id"], "content": draw(RESULT_TEXT)} for c in calls)]


TOOL = st.builds(
    lambda name, said, schema, strict: {
        "type": "function",
        "function": {"name": name, "description": said, "parameters": schema, **({"strict": True} if strict else {})},
    },
    ID,
    TEXT,
    SCHEMA,
    st.booleans(),
)


def _name_of(tool: Any) -> str:
    return str(tool["function"]["name"])


@st.composite
def chat_bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Chat requests in the words that every dialect has."""
    system = draw(st.none() | TEXT)
    talk = [turn for pair in draw(st.lists(turns(), max_size=2)) for turn in pair]
    messages = [*talk, {"role": "user", "content": draw(CONTENT)}]
    body: dict[str, Any] = {
        "messages": messages if system is None else [{"role": "system", "content": system}, *messages],
        "max_tokens": draw(st.integers(1, 9999)),
    }
    optional: dict[str, st.SearchStrategy[Any]] = {
        "temperature": st.sampled_from([0, 0.5, 1]),
        "top_p": st.sampled_from([0.1, 1.0]),
        "user": ID,
        "reasoning_effort": st.sampled_from(["low", "medium", "high"]),
        "response_format": st.builds(
            lambda schema: {
                "type": "json_schema",
                "json_schema": {"name": "response", "strict": True, "schema": schema},
            },
            SCHEMA,
        ),
    }
    for key, values in optional.items():
        if draw(st.booleans()):
            body[key] = draw(values)
    tools: list[Any] = draw(st.lists(TOOL, max_size=2, unique_by=_name_of))
    if tools:
        body["tools"] = tools
        named = {"type": "function", "function": {"name": tools[0]["function"]["name"]}}
        body["tool_choice"] = draw(st.sampled_from(["auto", "required", "none", named]))
        if body["tool_choice"] != "none" and draw(st.booleans()):
            body["parallel_tool_calls"] = False
    return body


def there(asked: Dialect, goal: Dialect, body: dict[str, Any]) -> Translation:
    """The translation of a body that has one."""
    made = translate(asked, goal, body, TERMS)
    assert isinstance(made, Translation), made
    return made


@pytest.mark.parametrize("goal", ["messages", "responses"])
@given(body=chat_bodies())
def test_a_chat_request_comes_back_as_it_went(goal: Dialect, body: dict[str, Any]) -> None:
    """Messages, tools, calls with their ids and order, errors, images, files, schema and settings all survive."""
    out = there("chat", goal, body)
    back = there(goal, "chat", dict(out.body))
    assert (out.losses, back.losses) == ((), ())
    assert back.body == body


@pytest.mark.parametrize("asked", ["messages", "responses"])
@given(body=chat_bodies())
def test_a_request_of_another_dialect_comes_back_through_chat(asked: Dialect, body: dict[str, Any]) -> None:
    """What was said in Messages or Responses is said again after a way through Chat."""
    original = dict(there("chat", asked, body).body)
    through = there(asked, "chat", original)
    assert dict(there("chat", asked, dict(through.body)).body) == original


@st.composite
def chat_answers(draw: st.DrawFn) -> dict[str, Any]:
    """Whole Chat answers in the words that every dialect has."""
    calls = draw(st.lists(CALL, max_size=3, unique_by=_id_of))
    message: dict[str, Any] = {"role": "assistant", "content": draw(TEXT), "refusal": None}
    if calls:
        message["tool_calls"] = calls
    cached, written, fresh, out = (draw(st.integers(0, 99)) for _ in range(4))
    finish = "tool_calls" if calls else draw(st.sampled_from(["stop", "length", "content_filter"]))
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": TERMS.created,
        "model": draw(ID),
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": finish}],
        "usage": {
            "prompt_tokens": cached + written + fresh,
            "completion_tokens": out,
            "total_tokens": cached + written + fresh + out,
            "prompt_tokens_details": {"cached_tokens": cached, "cache_write_tokens": written},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
    }


def a_translation(asked: Dialect, goal: Dialect) -> Translation:
    """The translation of a small request, for the way back of answers."""
    chat = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}
    body = chat if asked == "chat" else dict(there("chat", asked, chat).body)
    return there(asked, goal, body)


@pytest.mark.parametrize("other", ["messages", "responses"])
@given(body=chat_answers())
def test_an_answer_comes_back_as_it_went(other: Dialect, body: dict[str, Any]) -> None:
    """Text, tool calls, the finish reason and every count of tokens survive, and both dialects read the same usage."""
    out = a_translation(other, "chat").answer(body, Losses())
    assert isinstance(out, dict)
    assert ANSWER_READERS[other](out).usage == ANSWER_READERS["chat"](body).usage
    assert a_translation("chat", other).answer(out, Losses()) == body


# ------------------------------------------------------------------------------------------- streams


@st.composite
def chat_streams(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Chunks of one Chat stream: thoughts, text and tool calls whose pieces may be interleaved, then the end."""
    calls = draw(st.lists(st.tuples(ID, ID, JSON_OBJECT), max_size=3, unique_by=lambda c: c[0]))
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"reasoning_content": piece} for piece in draw(st.lists(TEXT, max_size=2))]
    deltas += [{"content": piece} for piece in draw(st.lists(TEXT, min_size=0 if calls else 1, max_size=3))]
    queues: list[list[dict[str, Any]]] = []
    for index, (call, name, arguments) in enumerate(calls):
        whole = compact(arguments)
        cut = draw(st.integers(0, len(whole)))
        opening = {"index": index, "id": call, "type": "function", "function": {"name": name, "arguments": ""}}
        pieces = [{"index": index, "function": {"arguments": part}} for part in (whole[:cut], whole[cut:])]
        queues.append([opening, *pieces])
    while any(queues):
        # A call may begin only after those before it have.
        at = draw(st.sampled_from([i for i, q in enumerate(queues) if q and all(len(p) < 3 for p in queues[:i])]))
        deltas.append({"tool_calls": [queues[at].pop(0)]})
    finish = "tool_calls" if calls else draw(st.sampled_from(["stop", "length"]))
    usage = {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}
    head: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [{**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    chunks.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return [*chunks, {**head, "choices": [], "usage": usage}]


def events_of(dialect: Dialect, data: list[dict[str, Any]]) -> list[StreamEvent]:
    """Events as the provider's stream is read."""
    return [read_event(dialect, b"data: " + json.dumps(one).encode() + b"\n\n") for one in data]


def streamed(asked: Dialect, goal: Dialect, data: list[dict[str, Any]], *, whole: bool = True) -> list[dict[str, Any]]:
    """The events that a stream becomes; closed only when it is whole."""
    translator = EventTranslator(a_translation(asked, goal))
    made = [event for one in events_of(goal, data) for event in fed(translator, one)]
    made += translator.end() if whole else []
    return [dict(event.data) for event in made if event.data is not None]


def heard(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """What a Chat client understands of a stream."""
    said: dict[str, Any] = {"text": "", "thought": "", "calls": {}, "finish": None, "usage": None}
    for chunk in chunks:
        said["usage"] = chunk.get("usage") or said["usage"]
        for choice in chunk["choices"]:
            delta = choice["delta"]
            said["finish"] = choice["finish_reason"] or said["finish"]
            said["text"] += delta.get("content") or ""
            said["thought"] += delta.get("reasoning_content") or ""
            for call in delta.get("tool_calls", ()):
                known = said["calls"].setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
                known["id"] += call.get("id", "")
                known["name"] += call["function"].get("name", "")
                known["arguments"] += call["function"]["arguments"]
    said["usage"] = said["usage"]["total_tokens"]
    return said


def check_blocks(events: list[dict[str, Any]]) -> None:
    """Of a Messages stream never two blocks are open, and no index is used twice."""
    current: int | None = None
    opened: list[int] = []
    for event in events:
        if event["type"] == "content_block_start":
            assert current is None
            current = event["index"]
            opened.append(event["index"])
        elif event["type"] in ("content_block_delta", "content_block_stop"):
            assert event["index"] == current
            current = current if event["type"] == "content_block_delta" else None
    assert current is None
    assert opened == list(range(len(opened)))


@given(data=chat_streams())
def test_blocks_of_a_messages_stream_follow_one_another(data: list[dict[str, Any]]) -> None:
    """However a Chat provider interleaves its tool calls, one block is open at a time."""
    events = streamed("messages", "chat", data)
    check_blocks(events)
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]


@pytest.mark.parametrize("other", ["messages", "responses"])
@given(data=chat_streams())
def test_a_stream_comes_back_as_it_went(other: Dialect, data: list[dict[str, Any]]) -> None:
    """Text, thoughts, every call with its id, order and arguments, finish and usage survive the way there and back."""
    assert heard(streamed("chat", other, streamed(other, "chat", data))) == heard(data)


@pytest.mark.parametrize("other", ["messages", "responses"])
@given(data=chat_streams(), cut=st.integers(0, 12))
def test_a_stream_that_is_cut_has_no_end(other: Dialect, data: list[dict[str, Any]], cut: int) -> None:
    """Whatever came before a failure, the caller is never sent an end."""
    ends = {"message_stop", "message_delta", "response.completed", "response.incomplete"}
    events = streamed(other, "chat", data[:cut], whole=False)
    assert not ends & {event["type"] for event in events}


@given(data=chat_streams())
def test_a_responses_stream_says_in_its_end_what_it_streamed(data: list[dict[str, Any]]) -> None:
    """The output of the last event is that of the items done, numbered without a gap, as the answer as a whole."""
    events = streamed("responses", "chat", data)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    assert events[-1]["response"]["output"] == done
    assert [e["output_index"] for e in events if e["type"] == "response.output_item.added"] == list(range(len(done)))


# ------------------------------------------------------------------------------------------- hostile input

WORDS = (
    "messages input system content role type text tools tool_calls tool_choice function name arguments parameters "
    "id call_id output source data media_type url image_url file file_data response_format json_schema schema "
    "output_config format thinking signature reasoning reasoning_details encrypted_content tool_use_id is_error "
    "cache_control index delta choices message usage finish_reason stop_reason content_block partial_json item "
    "output_index response error namespace custom input_schema max_tokens stop stop_sequences metadata summary "
    "incomplete_details"
).split()
KINDS = (
    "user assistant system tool text image image_url document file tool_use tool_result thinking redacted_thinking "
    "function custom namespace function_call function_call_output custom_tool_call reasoning message input_text "
    "input_image input_file json_schema json_object auto any base64 message_start content_block_start "
    "content_block_delta content_block_stop message_delta input_json_delta text_delta signature_delta response.created "
    "response.output_item.added response.output_item.done response.completed response.function_call_arguments.delta "
    "response.output_text.delta anthropic-claude-v1 openai-responses-v1 reasoning.text smr1.e30= smr1.AAAA smr1.\u00e9 "
    "answer_in_json"
).split()
LEAF = st.none() | st.booleans() | st.integers(-2, 10**20) | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    LEAF | st.sampled_from(KINDS) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5),
    max_leaves=25,
)
BODY = st.dictionaries(st.sampled_from(WORDS), JSON, max_size=6)


@st.composite
def spoilt(draw: st.DrawFn, whole: st.SearchStrategy[Any]) -> Any:
    """Good JSON in which some values are replaced by anything."""
    return _spoilt(draw, draw(whole))


def _spoilt(draw: st.DrawFn, value: Any) -> Any:
    if draw(st.integers(0, 12)) == 0:
        return draw(JSON)
    if isinstance(value, dict):
        return {key: _spoilt(draw, inner) for key, inner in value.items()}
    return [_spoilt(draw, inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("asked", "goal"), TRANSLATED)
@given(body=BODY | spoilt(chat_bodies()).filter(lambda body: isinstance(body, dict)))
def test_any_body_is_translated_or_refused(asked: Dialect, goal: Dialect, body: dict[str, Any]) -> None:
    """No request makes translation raise, and what it makes is JSON."""
    made = translate(asked, goal, body, TERMS)
    assert isinstance(made, (Translation, Untranslatable))
    json.dumps(made.body if isinstance(made, Translation) else str(made))


@pytest.mark.parametrize(("asked", "goal"), TRANSLATED)
@given(body=BODY | spoilt(chat_answers()).filter(lambda body: isinstance(body, dict)))
def test_any_answer_is_translated(asked: Dialect, goal: Dialect, body: dict[str, Any]) -> None:
    """No answer makes translation raise, and what it makes can be read in the dialect asked."""
    made = a_translation(asked, goal).answer(body, Losses())
    assert isinstance(made, dict)
    assert ANSWER_READERS[asked](made).malformed == ""


@pytest.mark.parametrize(("asked", "goal"), TRANSLATED)
@given(data=st.lists(BODY, max_size=6) | spoilt(chat_streams()).filter(lambda d: isinstance(d, list)))
def test_any_event_is_translated(asked: Dialect, goal: Dialect, data: list[Any]) -> None:
    """No stream makes translation raise, and what it makes are events of the dialect asked."""
    translator = EventTranslator(a_translation(asked, goal))
    objects = [one for one in data if isinstance(one, dict)]  # anything else is MALFORMED and never delivered
    made = [event for one in objects for event in fed(translator, StreamEvent(EventKind.META, b"", one))]
    kinds = {read_event(asked, event.raw).kind for event in [*made, *translator.end()]}
    assert EventKind.MALFORMED not in kinds


def test_every_pair_of_dialects_with_streams_has_a_way() -> None:
    """Nobody is left out: each of the three can be asked in each of the others."""
    assert set(get_args(Dialect)) - {"embeddings"} == {asked for asked, _ in ROUTES}
    assert len(ROUTES) == 6
