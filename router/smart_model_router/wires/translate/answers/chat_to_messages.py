"""A Chat Completions answer as a Messages answer, whole or event by event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.wires.dialects import named_id
from smart_model_router.wires.translate import reasoning
from smart_model_router.wires.translate.answers.blocks import Added, Change, ChatBlocks, Cited, OpenedBlock, StreamBlock
from smart_model_router.wires.translate.hosted import LATE, SEARCHES, place_of, search_blocks, to_messages
from smart_model_router.wires.translate.words import STOP_OF_FINISH, arguments_of, tool_use_id
from smart_model_router.wires.values import count, dumps, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from smart_model_router.wires.translate.translation import Context, Losses, Terms

_UNCOUNTED: dict[str, Any] = {
    "cache_creation": None,
    "inference_geo": None,
    "output_tokens_details": None,
    "server_tool_use": None,
    "service_tier": None,
}
"""The fields of Anthropic's own count besides tokens, all empty here."""


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Messages answer that says the same."""
    choice = mapping(next(iter(items(body.get("choices"))), None))
    message = mapping(choice.get("message"))
    blocks = [
        *thinking(reasoning.text_of(message), items(message.get("reasoning_details")), context.terms),
        *(block for search in items(message.get(SEARCHES)) for block in search_blocks(mapping(search))),
        *_texts(message),
        *(_tool_use(mapping(call), at, context.losses) for at, call in enumerate(items(message.get("tool_calls")))),
    ]
    whole = frame(body.get("id"), text(body.get("model")), body.get("usage"))
    searches = len(items(message.get(SEARCHES)))
    return {
        **whole,
        "usage": {**whole["usage"], **counted_searches(searches)},
        "content": blocks,
        "stop_reason": stop_reason(text(choice.get("finish_reason")), called=bool(message.get("tool_calls"))),
    }


def frame(made: object, model: str, usage: object) -> dict[str, Any]:
    """A Messages answer that says nothing yet, with every field that Anthropic's own has. `usage` is Chat's."""
    counted = {**_UNCOUNTED, **_usage(usage)}
    return {
        "id": named_id("msg_", made),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "stop_details": None,
        "container": None,
        "usage": counted,
    }


def _usage(value: object) -> dict[str, Any]:
    """Chat's token counts as Messages writes them: `input_tokens` is what the cache had no part in."""
    usage = mapping(value)
    details = mapping(usage.get("prompt_tokens_details"))
    prompt = count(usage.get("prompt_tokens")) or 0
    read = min(count(details.get("cached_tokens")) or count(usage.get("prompt_cache_hit_tokens")) or 0, prompt)
    written = min(count(details.get("cache_write_tokens")) or 0, prompt - read)
    out = {
        "input_tokens": prompt - read - written,
        "output_tokens": count(usage.get("completion_tokens")) or 0,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
    thinking = count(mapping(usage.get("completion_tokens_details")).get("reasoning_tokens"))
    return out if not thinking else {**out, "output_tokens_details": {"thinking_tokens": thinking}}


def counted_searches(number: int) -> dict[str, Any]:
    """Return the usage of searches of the web."""
    return {"server_tool_use": {"web_search_requests": number, "web_fetch_requests": 0}} if number else {}


def text_block(said: str, citations: Sequence[Any] = ()) -> dict[str, Any]:
    """A block of visible text. Anthropic's schema demands `citations` and some SDKs refuse null: a list suits both."""
    return {"type": "text", "text": said, "citations": [*citations]}


def tool_use_block(call_id: str, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A call of a tool, made by the model itself."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": given, "caller": {"type": "direct"}}


def stop_reason(finish: str, *, called: bool) -> str:
    """Messages' word for why the answer ended. Some providers say `stop` after a tool call."""
    return "tool_use" if called and finish == "stop" else STOP_OF_FINISH.get(finish, "end_turn")


def thinking(thought: str, details: list[Any], terms: Terms) -> list[dict[str, Any]]:
    """Thinking blocks: the provider's own when it gave them, else one whose signature is our seal."""
    blocks: list[dict[str, Any]] = []
    for detail in map(mapping, details):
        if detail.get("format") == reasoning.ANTHROPIC and text(detail.get("signature")):
            blocks.append({"type": "thinking", "thinking": text(detail.get("text")), "signature": detail["signature"]})
        elif detail.get("format") == reasoning.ANTHROPIC and text(detail.get("data")):
            blocks.append({"type": "redacted_thinking", "data": detail["data"]})
    if blocks or not (thought or details):
        return blocks
    return [{"type": "thinking", "thinking": thought, "signature": reasoning.seal(terms.family, details)}]


def _texts(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [mapping(part).get("text") for part in items(content)]
    said = [part for part in map(text, parts) if part]
    blocks = []
    for at, part in enumerate(said):
        before = sum(map(len, said[:at]))
        near = [one for one in items(message.get("annotations")) if before <= place_of(one) < before + len(part)]
        blocks.append(text_block(part, [cited for one in near for cited in to_messages(one, part, before)]))
    return [*blocks, *([text_block(text(message["refusal"]))] if text(message.get("refusal")) else [])]


def _tool_use(call: Mapping[str, Any], at: int, losses: Losses) -> dict[str, Any]:
    function = mapping(call.get("function"))
    arguments = arguments_of(function.get("arguments"))
    if arguments is None:
        losses.drop("tool_calls", "arguments that are no JSON object are handed on as `arguments`")
        arguments = {"arguments": text(function.get("arguments"))}
    found = tool_use_id(call.get("id")) if call.get("id") else f"call_{at}"
    return tool_use_block(found, text(function.get("name")), arguments)


_DELTAS = {
    "text": ("text_delta", "text"),
    "refusal": ("text_delta", "text"),
    "reasoning": ("thinking_delta", "thinking"),
    "tool": ("input_json_delta", "partial_json"),
}


class ChatToMessages:
    """One stream. Token counts come at its end: the head of a Messages stream says 0."""

    def __init__(self, context: Context) -> None:
        self._losses = context.losses
        self._terms = context.terms
        self._searches = 0
        self._blocks = ChatBlocks()
        self._started = False

    def feed(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events that a chunk becomes."""
        changes = self._blocks.feed(data)
        return self._written(changes) if changes or not self._started else []

    def end(self) -> list[dict[str, Any]]:
        """The events that close a complete stream."""
        stop = stop_reason(self._blocks.finish, called=self._blocks.called)
        last = self._written(self._blocks.end())
        if self._blocks.lost_citations:
            self._losses.drop("citations", LATE)
        searches = counted_searches(self._searches)
        usage = {**_usage(self._blocks.usage), **searches}
        return [
            *last,
            {
                "type": "message_delta",
                "delta": {"stop_reason": stop, "stop_sequence": None},
                "usage": usage,
            },
            {"type": "message_stop"},
        ]

    def _written(self, changes: Sequence[Change]) -> list[dict[str, Any]]:
        """The events for these changes, after the head of the stream."""
        out: list[dict[str, Any]] = []
        if not self._started:
            self._started = True
            out.append({"type": "message_start", "message": frame(self._blocks.id, self._blocks.model, None)})
        for change in changes:
            out += self._events(change)
        return out

    def _events(self, change: Change) -> list[dict[str, Any]]:
        block = change.block
        if block.kind == "search":
            return self._search(block) if isinstance(change, OpenedBlock) else []
        place = block.index + self._searches
        if isinstance(change, OpenedBlock):
            return [_start(place, _opening(block))]
        if isinstance(change, Added):
            kind, key = _DELTAS[block.kind]
            return [_delta(place, {"type": kind, key: change.piece})]
        if isinstance(change, Cited):
            found = to_messages(change.citation, block.text, block.before)
            return [_delta(place, {"type": "citations_delta", "citation": citation}) for citation in found]
        if block.kind != "reasoning":
            return [_stop(place)]
        return [_delta(place, {"type": "signature_delta", "signature": self._signature(block)}), _stop(place)]

    def _search(self, block: StreamBlock) -> list[dict[str, Any]]:
        """A search is two blocks: that it was made, and what it found."""
        place = block.index + self._searches
        self._searches += 1
        made, found = search_blocks(block.search)
        given = {"type": "input_json_delta", "partial_json": dumps(made["input"])}
        head = [_start(place, {**made, "input": {}}), _delta(place, given), _stop(place)]
        return [*head, _start(place + 1, found), _stop(place + 1)]

    def _signature(self, block: StreamBlock) -> str:
        blocks = thinking(block.text, block.details, self._terms)
        if len(blocks) == 1 and blocks[0]["type"] == "thinking":
            return str(blocks[0]["signature"])
        return reasoning.seal(self._terms.family, block.details)


def _opening(block: StreamBlock) -> dict[str, Any]:
    if block.kind == "tool":
        return tool_use_block(tool_use_id(block.call_id), block.name, {})
    if block.kind == "reasoning":
        return {"type": "thinking", "thinking": "", "signature": ""}
    return text_block("")


def _start(place: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": place, "content_block": block}


def _delta(place: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": place, "delta": delta}


def _stop(place: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": place}
