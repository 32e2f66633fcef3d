"""A Chat Completions answer as a Responses answer, whole or event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.dialects import named_id
from smart_model_router.wires.own_ids import item_id
from smart_model_router.wires.translate import reasoning
from smart_model_router.wires.translate.answers.blocks import Added, Change, ChatBlocks, Cited, OpenedBlock, StreamBlock
from smart_model_router.wires.translate.hosted import LATE, SEARCHES, SOURCES, search_item, to_responses
from smart_model_router.wires.translate.tools import Tool, tools_by_flat_name, unwrapped_input
from smart_model_router.wires.translate.words import INCOMPLETE_OF_FINISH, arguments_of, responses_usage_of_chat
from smart_model_router.wires.values import items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_model_router.wires.translate.translation import Context, Terms

_ECHOED: dict[str, Any] = {
    "frequency_penalty": 0.0,
    "instructions": None,
    "max_output_tokens": None,
    "max_tool_calls": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "presence_penalty": 0.0,
    "previous_response_id": None,
    "prompt_cache_key": None,
    "reasoning": {"effort": None, "summary": None},
    "safety_identifier": None,
    "service_tier": "auto",
    "temperature": 1.0,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "top_logprobs": 0,
    "top_p": 1.0,
    "truncation": "disabled",
}
"""The fields of its request that a Responses answer repeats, with the value of one that the request left out."""
_COMPLETED = ("reasoning", "text")
"""Of these a request may give some fields; the answer has all of them."""
_FUNCTION: dict[str, Any] = {"description": None, "parameters": None, "strict": None}
"""The fields of a function that a request may leave out and an answer may not."""


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Responses answer that says the same."""
    choice = mapping(next(iter(items(body.get("choices"))), None))
    message = mapping(choice.get("message"))
    made = context.terms.response_id or named_id("resp_", body.get("id"))
    tools = tools_by_flat_name(context.asked)
    output: list[dict[str, Any]] = []
    thought, details = reasoning.text_of(message), items(message.get("reasoning_details"))
    if thought or details:
        output.append(reasoning_item(item_id("rs", made, 0), thought, details, context.terms))
    asked_sources = SOURCES in items(context.asked.get("include"))
    for search in map(mapping, items(message.get(SEARCHES))):
        output.append(search_item(item_id("ws", made, len(output)), search, sources=asked_sources))
    parts = _parts(message, mapping(choice.get("logprobs")))
    if parts:
        output.append(message_item(item_id("msg", made, len(output)), parts))
    for at, call in enumerate(map(mapping, items(message.get("tool_calls")))):
        function = mapping(call.get("function"))
        found = text(call.get("id")) or f"call_{at}"
        place = made, len(output)
        output.append(call_item(place, found, text(function.get("name")), text(function.get("arguments")), tools))
    return {
        **frame(made, text(body.get("model")), context.asked, context.terms),
        **ending(text(choice.get("finish_reason"))),
        "output": output,
        "usage": responses_usage_of_chat(body.get("usage")),
    }


def frame(made: str, model: str, asked: Mapping[str, Any], terms: Terms) -> dict[str, Any]:
    """Return the fields of a Responses answer in every state."""
    echoed = {key: usual if asked.get(key) is None else asked[key] for key, usual in _ECHOED.items()}
    echoed |= {key: {**_ECHOED[key], **mapping(echoed[key])} for key in _COMPLETED}
    echoed["tools"] = [_echoed_tool(tool) for tool in items(echoed["tools"])]
    echoed["previous_response_id"] = terms.previous or echoed["previous_response_id"]
    return {
        "id": made,
        "object": "response",
        "created_at": terms.created,
        "completed_at": None,
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "output": [],
        **echoed,
        "store": terms.kept,
        "usage": None,
    }


def _echoed_tool(tool: Any) -> Any:
    return {**_FUNCTION, **tool} if mapping(tool).get("type") == "function" else tool


def ending(finish: str) -> dict[str, Any]:
    """The fields by which a Responses answer says why it ended."""
    why = INCOMPLETE_OF_FINISH.get(finish)
    return {"status": "completed"} if why is None else {"status": "incomplete", "incomplete_details": {"reason": why}}


def text_part(said: str, annotations: Sequence[Any] = (), logprobs: Sequence[Any] = ()) -> dict[str, Any]:
    """A part of visible text. `logprobs` are Chat's."""
    return {
        "type": "output_text",
        "text": said,
        "annotations": [*annotations],
        "logprobs": responses_logprobs(logprobs),
    }


def responses_logprobs(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Chat's probabilities of tokens as Responses has them: always with the bytes."""
    return [
        {**_bytes(held), "top_logprobs": [*map(_bytes, items(held.get("top_logprobs")))]}
        for held in map(mapping, found)
    ]


def _bytes(held: Any) -> dict[str, Any]:
    return {**mapping(held), "bytes": items(mapping(held).get("bytes"))}


def message_item(made: str, parts: list[dict[str, Any]], status: str = "completed") -> dict[str, Any]:
    """Return the item of what the assistant said."""
    return {"id": made, "type": "message", "status": status, "role": "assistant", "content": parts}


def reasoning_item(made: str, thought: str, details: list[Any], terms: Terms) -> dict[str, Any]:
    """Return the item of a thought. `encrypted_content` is the provider's own in this dialect, else a seal."""
    summary = [{"type": "summary_text", "text": thought}] if thought else []
    own = next((mapping(one) for one in details if mapping(one).get("format") == reasoning.OPENAI), None)
    if own is not None and text(own.get("data")):
        return {
            "id": text(own.get("id")) or made,
            "type": "reasoning",
            "summary": summary,
            "encrypted_content": own["data"],
        }
    sealed = reasoning.seal(terms.family, details)
    return {"id": made, "type": "reasoning", "summary": summary, "encrypted_content": sealed}


def call_item(
    place: tuple[str, int],
    call_id: str,
    name: str,
    arguments: str,
    tools: Mapping[str, Tool],
    status: str = "completed",
) -> dict[str, Any]:
    """A tool call, by the name the caller's own tool has. `place` is the answer's id, and which of its items it is."""
    tool = tools.get(name, Tool(name))
    named: dict[str, Any] = {"call_id": call_id, "name": tool.name}
    if tool.namespace:
        named["namespace"] = tool.namespace
    if tool.kind == "tool_search":
        sought = arguments_of(arguments) or {}
        made = {"id": item_id("tsc", *place), "type": "tool_search_call", "status": status, "call_id": call_id}
        return {**made, "execution": "client", "arguments": sought}
    if tool.kind == "custom":
        said = unwrapped_input(arguments) if status == "completed" else ""
        return {"id": item_id("ctc", *place), "type": "custom_tool_call", "status": status, **named, "input": said}
    return {"id": item_id("fc", *place), "type": "function_call", "status": status, **named, "arguments": arguments}


def _parts(message: Mapping[str, Any], logprobs: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    texts = [content] if isinstance(content, str) else [mapping(part).get("text") for part in items(content)]
    said = [part for part in map(text, texts) if part]
    parts = [text_part(part) for part in said]
    if parts:
        parts[0] = text_part(said[0], to_responses(message.get("annotations")), items(logprobs.get("content")))
    if text(message.get("refusal")):
        parts.append({"type": "refusal", "refusal": message["refusal"]})
    return parts


_WHOLE = ("custom_tool_call", "tool_search_call")
"""Calls that say nothing before they are complete."""


class ChatToResponses:
    """One stream: each block is an output item of its own."""

    def __init__(self, context: Context) -> None:
        self._asked = context.asked
        self._losses = context.losses
        self._sources = SOURCES in items(context.asked.get("include"))
        self._terms = context.terms
        self._tools = tools_by_flat_name(context.asked)
        self._blocks = ChatBlocks()
        self._response: dict[str, Any] = {}
        self._output: list[dict[str, Any]] = []
        self._sent = 0

    def feed(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events that a chunk becomes."""
        changes = self._blocks.feed(data)
        return self._numbered([*self._head(), *(event for change in changes for event in self._events(change))])

    def end(self) -> list[dict[str, Any]]:
        """The events that close a complete stream."""
        events = [*self._head(), *(event for change in self._blocks.end() for event in self._events(change))]
        if self._blocks.lost_citations:
            self._losses.drop("annotations", LATE)
        how = ending(self._blocks.finish)
        usage = responses_usage_of_chat(self._blocks.usage)
        whole = {**self._response, **how, "output": self._output, "usage": usage}
        return self._numbered([*events, {"type": f"response.{how['status']}", "response": whole}])

    def _numbered(self, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for event in events:
            event["sequence_number"] = self._sent
            self._sent += 1
        return events

    def _head(self) -> list[dict[str, Any]]:
        if self._response:
            return []
        made = self._terms.response_id or named_id("resp_", self._blocks.id)
        self._response = frame(made, self._blocks.model, self._asked, self._terms)
        return [{"type": f"response.{state}", "response": self._response} for state in ("created", "in_progress")]

    def _events(self, change: Change) -> list[dict[str, Any]]:
        block = change.block
        done = self._item(block, empty=isinstance(change, Added))  # a delta needs its place, not all that was said
        place = {"item_id": done["id"], "output_index": block.index}
        if isinstance(change, OpenedBlock):
            added = {"type": "response.output_item.added", "output_index": block.index, "item": self._item_begun(block)}
            return [added, *_opening(block, place)]
        if isinstance(change, Added):
            return [] if done["type"] in _WHOLE else _growing(block, change, place)
        if isinstance(change, Cited):
            return _cited(block, change, place)
        self._output.append(done)
        return [
            *_closing(block, done, place),
            {"type": "response.output_item.done", "output_index": block.index, "item": done},
        ]

    def _item(self, block: StreamBlock, *, empty: bool = False) -> dict[str, Any]:
        """The block as an output item."""
        place = self._response["id"], block.index
        said, status = ("", "in_progress") if empty else (block.text, "completed")
        if block.kind == "tool":
            return call_item(place, block.call_id, block.name, said, self._tools, status)
        if block.kind == "search":
            item = search_item(item_id("ws", *place), block.search, sources=self._sources)
            return {**item, "status": status} if empty else item
        if block.kind == "reasoning":
            return reasoning_item(item_id("rs", *place), said, block.details, self._terms)
        return message_item(item_id("msg", *place), [] if empty else [_part(block, said)], status)

    def _item_begun(self, block: StreamBlock) -> dict[str, Any]:
        item = self._item(block, empty=True)
        if block.kind == "reasoning":  # its seal is complete at the end only
            del item["encrypted_content"]
        return item


def _part(block: StreamBlock, said: str) -> dict[str, Any]:
    if block.kind == "refusal":
        return {"type": "refusal", "refusal": said}
    return text_part(said, to_responses(block.cited, block.before), block.logprobs) if said else text_part("")


def _cited(block: StreamBlock, change: Cited, place: dict[str, Any]) -> list[dict[str, Any]]:
    found = to_responses([change.citation], block.before)
    number = next(at for at, one in enumerate(block.cited) if one is change.citation)
    kind = {"type": "response.output_text.annotation.added", **place, "content_index": 0}
    return [{**kind, "annotation_index": number, "annotation": annotation} for annotation in found]


def _opening(block: StreamBlock, place: dict[str, Any]) -> list[dict[str, Any]]:
    if block.kind == "reasoning":
        part = {"type": "summary_text", "text": ""}
        return [{"type": "response.reasoning_summary_part.added", **place, "summary_index": 0, "part": part}]
    if block.kind == "search":
        return [{"type": f"response.web_search_call.{state}", **place} for state in ("in_progress", "searching")]
    if block.kind == "tool":
        return []
    return [{"type": "response.content_part.added", **place, "content_index": 0, "part": _part(block, "")}]


def _growing(block: StreamBlock, change: Added, place: dict[str, Any]) -> list[dict[str, Any]]:
    event: dict[str, Any]
    piece = change.piece
    if block.kind == "tool":
        event = {"type": "response.function_call_arguments.delta", **place, "delta": piece}
    elif block.kind == "reasoning":
        event = {"type": "response.reasoning_summary_text.delta", **place, "summary_index": 0, "delta": piece}
    elif block.kind == "refusal":
        event = {"type": "response.refusal.delta", **place, "content_index": 0, "delta": piece}
    else:
        told = _briefly(change.logprobs)
        event = {"type": "response.output_text.delta", **place, "content_index": 0, "delta": piece, "logprobs": told}
    return [event]


def _briefly(logprobs: Sequence[Any]) -> list[dict[str, Any]]:
    return [_brief(held, items(held.get("top_logprobs"))) for held in map(mapping, logprobs)]


def _brief(held: Mapping[str, Any], tops: list[Any]) -> dict[str, Any]:
    """The probability of a token as deltas have it: without its bytes."""
    kept = {key: held[key] for key in ("token", "logprob") if key in held}
    return {**kept, "top_logprobs": [_brief(mapping(top), []) for top in tops]} if tops else kept


def _closing(block: StreamBlock, done: dict[str, Any], place: dict[str, Any]) -> list[dict[str, Any]]:
    said = block.text
    if block.kind == "search":
        return [{"type": "response.web_search_call.completed", **place}]
    if done["type"] == "custom_tool_call":
        said = unwrapped_input(said)
        return [
            {"type": "response.custom_tool_call_input.delta", **place, "delta": said},
            {"type": "response.custom_tool_call_input.done", **place, "input": said},
        ]
    if done["type"] == "tool_search_call":
        return []
    if block.kind == "tool":
        return [{"type": "response.function_call_arguments.done", **place, "name": done["name"], "arguments": said}]
    if block.kind == "reasoning":
        part = {"type": "summary_text", "text": said}
        return [
            {"type": "response.reasoning_summary_text.done", **place, "summary_index": 0, "text": said},
            {"type": "response.reasoning_summary_part.done", **place, "summary_index": 0, "part": part},
        ]
    part = _part(block, said)
    told: dict[str, Any] = {"type": "response.output_text.done", "text": said, "logprobs": _briefly(block.logprobs)}
    if block.kind == "refusal":
        told = {"type": "response.refusal.done", "refusal": said}
    return [
        {**told, **place, "content_index": 0},
        {"type": "response.content_part.done", **place, "content_index": 0, "part": part},
    ]
