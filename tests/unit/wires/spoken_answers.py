"""Answers as providers give them, whole and streamed: what translation is shown before the SDKs' schemas judge it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from smart_model_router.domain.request import Dialect
from smart_model_router.wires.translate import ROUTES
from tests.unit.wires.translating import (
    answered,
    chat_answer,
    chat_call,
    chunk,
    messages_answer,
    messages_stream,
    streamed,
)

USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 4,
    "total_tokens": 13,
    "prompt_tokens_details": {"cached_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 1},
}
LOGPROB = {
    "token": "Hi",
    "logprob": -0.1,
    "bytes": [72, 105],
    "top_logprobs": [{"token": "Hi", "logprob": -0.1, "bytes": [72, 105]}],
}
BRIEF_LOGPROB = {"token": "Hi", "logprob": -0.1, "top_logprobs": [{"token": "Hi", "logprob": -0.1}]}
URL, TITLE = "https://host.invalid/oslo", "Oslo"
URL_CITATION = {"type": "url_citation", "start_index": 0, "end_index": 2, "url": URL, "title": TITLE}
CITATION = {
    "type": "web_search_result_location",
    "cited_text": "Hi",
    "encrypted_index": "E1",
    "url": URL,
    "title": TITLE,
}
FOUND = {"type": "web_search_result", "url": URL, "title": TITLE, "encrypted_content": "E2", "page_age": None}
SEARCHING: dict[Dialect, dict[str, Any]] = {
    "responses": {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]},
    "messages": {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
    "chat": {"web_search_options": {}},
}
CUSTOM = {"type": "custom", "custom": {"name": "patch"}}


@dataclass(frozen=True)
class Spoken:
    """What a provider of one dialect says. `asked` is in the request of each dialect that may ask for it."""

    name: str
    dialect: Dialect
    whole: dict[str, Any]
    events: list[dict[str, Any]]
    asked: dict[Dialect, dict[str, Any]] = field(default_factory=dict)
    by: tuple[Dialect, ...] = ("chat", "messages", "responses")


def _chat(
    name: str, deltas: list[dict[str, Any]], message: dict[str, Any], finish: str = "stop", **more: Any
) -> Spoken:
    logprobs = more.pop("logprobs", None)
    whole = chat_answer({"content": None, **message}, finish, USAGE)
    events: list[dict[str, Any]] = [
        *(chunk(delta) for delta in deltas),
        chunk({}, finish),
        {"id": "c1", "choices": [], "usage": USAGE},
    ]
    if logprobs is not None:
        whole["choices"][0]["logprobs"] = events[0]["choices"][0]["logprobs"] = logprobs
    return Spoken(name, "chat", whole, events, **more)


def _calls(*arguments: str) -> list[dict[str, Any]]:
    return [{**chat_call(f"call_{at}", "f", said), "index": at} for at, said in enumerate(arguments)]


def _response(*output: dict[str, Any], status: str = "completed") -> dict[str, Any]:
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0},
        "output_tokens": 4,
        "output_tokens_details": {"reasoning_tokens": 1},
        "total_tokens": 13,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "model": "m",
        "status": status,
        "output": list(output),
        "usage": usage,
    }


def _responses(name: str, *items: dict[str, Any], within: dict[int, list[dict[str, Any]]], **more: Any) -> Spoken:
    whole = _response(*items)
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {**whole, "output": []}}]
    for at, item in enumerate(items):
        place = {"output_index": at, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "output_index": at, "item": {**item, "content": []}})
        events += [{**event, **place} for event in within.get(at, [])]
        events.append({"type": "response.output_item.done", "output_index": at, "item": item})
    return Spoken(name, "responses", whole, [*events, {"type": "response.completed", "response": whole}], **more)


def _text_item(**part: Any) -> dict[str, Any]:
    content = [{"type": "output_text", "text": "Hi", "annotations": [], **part}]
    return {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": content}


def _text_events(*more: dict[str, Any], **delta: Any) -> list[dict[str, Any]]:
    place = {"content_index": 0}
    begun = {"type": "response.content_part.added", **place, "part": {"type": "output_text", "text": ""}}
    return [begun, {"type": "response.output_text.delta", **place, "delta": "Hi", **delta}, *more]


_SEARCH = {
    "id": "ws_1",
    "type": "web_search_call",
    "status": "completed",
    "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": URL}]},
}
_USED = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}}
_RESULT = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [FOUND]}
_FAILED = {**_RESULT, "content": {"type": "web_search_tool_result_error", "error_code": "unavailable"}}
_TEXT = {"type": "text", "text": ""}
_SAID = {"type": "text_delta", "text": "Hi"}
_QUERY = {"type": "input_json_delta", "partial_json": '{"query":"q"}'}

SPOKEN: list[Spoken] = [
    _chat("text", [{"content": "H"}, {"content": "i"}], {"content": "Hi"}),
    _chat("length", [{"content": "H"}], {"content": "H"}, "length"),
    _chat("refusal", [{"refusal": "No."}], {"refusal": "No."}, "content_filter"),
    _chat("a call", [{"tool_calls": _calls('{"a":1}')}], {"tool_calls": _calls('{"a":1}')}, "tool_calls"),
    _chat(
        "parallel calls",
        [{"content": "Hi", "tool_calls": _calls("", "")}, {"tool_calls": _calls("{}", '{"a":[]}')}],
        {"content": "Hi", "tool_calls": _calls("{}", '{"a":[]}')},
        "tool_calls",
    ),
    _chat("reasoning", [{"reasoning_content": "Hm"}, {"content": "Hi"}], {"reasoning_content": "Hm", "content": "Hi"}),
    _chat(
        "logprobs",
        [{"content": "Hi"}],
        {"content": "Hi"},
        logprobs={"content": [LOGPROB], "refusal": None},
        asked={"responses": {"include": ["message.output_text.logprobs"], "top_logprobs": 1}},
    ),
    _chat(
        "citations of Chat",
        [{"content": "Hi"}, {"annotations": [{"type": "url_citation", "url_citation": URL_CITATION}]}],
        {"content": "Hi", "annotations": [{"type": "url_citation", "url_citation": URL_CITATION}]},
    ),
    Spoken(
        "a search of Messages",
        "messages",
        messages_answer(_USED, _RESULT, {"type": "text", "text": "Hi", "citations": [CITATION]}),
        messages_stream(
            ({**_USED, "input": {}}, [_QUERY]),
            (_RESULT, []),
            (_TEXT, [_SAID, {"type": "citations_delta", "citation": CITATION}]),
        ),
        SEARCHING,
    ),
    Spoken(
        "a failed search of Messages",
        "messages",
        messages_answer(_USED, _FAILED, {"type": "text", "text": "Hi"}),
        messages_stream(({**_USED, "input": {}}, [_QUERY]), (_FAILED, []), (_TEXT, [_SAID])),
        SEARCHING,
    ),
    Spoken(
        "thinking and a call of Messages",
        "messages",
        messages_answer(
            {"type": "thinking", "thinking": "Hm", "signature": "s"},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}},
            stop="tool_use",
        ),
        messages_stream(
            (
                {"type": "thinking", "thinking": "", "signature": ""},
                [{"type": "thinking_delta", "thinking": "Hm"}, {"type": "signature_delta", "signature": "s"}],
            ),
            (
                {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
                [{"type": "input_json_delta", "partial_json": '{"a":1}'}],
            ),
            stop="tool_use",
        ),
    ),
    _responses("text of Responses", _text_item(), within={0: _text_events()}),
    _responses(
        "logprobs of Responses",
        _text_item(logprobs=[LOGPROB]),
        within={0: _text_events(logprobs=[BRIEF_LOGPROB])},
        asked={"chat": {"logprobs": True, "top_logprobs": 1}},
        by=("chat",),
    ),
    _responses(
        "a custom call",
        {"id": "ctc_1", "type": "custom_tool_call", "call_id": "call_1", "name": "patch", "input": "*** Begin"},
        within={},
        asked={"chat": {"tools": [CUSTOM]}},
        by=("chat",),
    ),
    _responses(
        "a search of Responses",
        _SEARCH,
        _text_item(annotations=[URL_CITATION]),
        within={
            1: _text_events(
                {
                    "type": "response.output_text.annotation.added",
                    "content_index": 0,
                    "annotation_index": 0,
                    "annotation": URL_CITATION,
                }
            )
        },
        asked=SEARCHING,
    ),
    _responses(
        "reasoning of Responses",
        {
            "id": "rs_1",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "Hm"}],
            "encrypted_content": "e",
        },
        {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "call_1",
            "name": "f",
            "arguments": "{}",
            "status": "completed",
        },
        within={
            0: [{"type": "response.reasoning_summary_text.delta", "summary_index": 0, "delta": "Hm"}],
            1: [{"type": "response.function_call_arguments.delta", "delta": "{}"}],
        },
    ),
]


@dataclass(frozen=True)
class Translated:
    """A provider's answer in the dialect asked: whole, and as a stream."""

    name: str
    asked: Dialect
    whole: dict[str, Any]
    events: list[dict[str, Any]]
    losses: tuple[str, ...]


def translated() -> Iterator[Translated]:
    """Every answer in every other dialect that can have asked for it."""
    for spoken in SPOKEN:
        for asked, goal in ROUTES:
            if goal == spoken.dialect and asked in spoken.by:
                more = spoken.asked.get(asked, {})
                whole, losses = answered(asked, goal, spoken.whole, **more)
                events = streamed(asked, goal, spoken.events, **more)
                yield Translated(f"{spoken.name}, asked in {asked}", asked, whole, events, losses)
