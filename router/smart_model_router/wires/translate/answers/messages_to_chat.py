"""A Messages answer as a Chat Completions answer, whole or event by event."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.dialects import named_id
from smart_model_router.wires.translate.answers.chat_output import ChatMessage, Chunks
from smart_model_router.wires.translate.hosted import NAME, SEARCHES, add_results, from_messages, search_of_messages
from smart_model_router.wires.translate.reasoning import encrypted_detail, signed_detail
from smart_model_router.wires.translate.words import FINISH_OF_STOP, JSON_TOOL, arguments_of, chat_usage_of_messages
from smart_model_router.wires.values import count, dumps, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.translation import Context, Losses


def answer(body: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """The Chat answer that says the same."""
    message = _message(items(body.get("content")), context)
    stop = text(body.get("stop_reason"))
    refusal = text(mapping(body.get("stop_details")).get("explanation"))
    if stop == "refusal" and refusal:
        message["refusal"] = refusal
    return {
        "id": named_id("chatcmpl-", body.get("id")),
        "object": "chat.completion",
        "created": context.terms.created,
        "model": text(body.get("model")),
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": finish_reason(stop, called=bool(message.get("tool_calls"))),
            }
        ],
        "usage": chat_usage_of_messages(mapping(body.get("usage"))),
    }


def finish_reason(stop: str, *, called: bool) -> str:
    """Chat's word for why the answer ended. The tool that stands for JSON mode is no call of a tool."""
    found = FINISH_OF_STOP.get(stop, "stop")
    return "stop" if found == "tool_calls" and not called else found


def dropped_block(kind: str, losses: Losses) -> None:
    """A block that Chat has no word for."""
    losses.drop("content", f"a block of type {kind!r} is dropped from the answer"[:200])


def _message(blocks: list[Any], context: Context) -> dict[str, Any]:
    message = ChatMessage()
    for block in map(mapping, blocks):
        _add(message, block, context)
    return message.body()


def _add(message: ChatMessage, block: Mapping[str, Any], context: Context) -> None:
    kind = text(block.get("type"))
    if kind == "text":
        start, said = message.length, text(block.get("text"))
        message.said.append(said)
        for citation in map(mapping, items(block.get("citations"))):
            message.cited += from_messages(citation, start, start + len(said), context.losses)
    elif kind == "tool_use" and block.get("name") == JSON_TOOL:
        message.said.append(dumps(mapping(block.get("input"))))
    elif kind == "tool_use":
        function = {"name": text(block.get("name")), "arguments": dumps(mapping(block.get("input")))}
        message.calls.append({"id": text(block.get("id")), "type": "function", "function": function})
    elif kind == "thinking":
        message.thoughts.append(text(block.get("thinking")))
        detail = signed_detail(message.thoughts[-1], text(block.get("signature")), len(message.details))
        message.details.append(detail)
    elif kind == "redacted_thinking":
        message.details.append(encrypted_detail(text(block.get("data")), len(message.details)))
    elif not (context.terms.between and _searched(message, block)):
        dropped_block(kind, context.losses)


def _searched(message: ChatMessage, block: Mapping[str, Any]) -> bool:
    """Return whether the block is of a search of the web; what is to be known of it is kept."""
    if block.get("type") == "server_tool_use" and block.get("name") == NAME:
        message.searches.append(search_of_messages(block, mapping(block.get("input"))))
        return True
    made = next((one for one in message.searches if one["id"] == block.get("tool_use_id")), None)
    if block.get("type") != "web_search_tool_result" or made is None:
        return False
    add_results(made, block.get("content"))
    return True


@dataclass(slots=True)
class _Block:
    """An open block. `number` is its tool call's, None for anything else."""

    kind: str = ""
    number: int | None = None
    whole: Mapping[str, Any] = field(default_factory=dict)
    signature: str = ""
    start: int = 0
    pieces: list[str] = field(default_factory=list)
    citations: list[Any] = field(default_factory=list)


class MessagesToChat:
    """One stream. Anthropic sends one block after another; some servers send the pieces of several by turns."""

    def __init__(self, context: Context) -> None:
        self._between = context.terms.between
        self._losses = context.losses
        self._said = 0
        self._searches: dict[str, dict[str, Any]] = {}
        self._chunks = Chunks(context.terms)
        self._blocks: dict[int, _Block] = {}
        """The open blocks by their index."""
        self._block = _Block()
        """The one that the present event is about."""
        self._usage: dict[str, Any] = {}
        self._details = 0

    def feed(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The chunks that an event becomes."""
        kind = data.get("type")
        if kind == "message_start":
            return self._start(mapping(data.get("message")))
        at = count(data.get("index")) or 0
        if kind == "content_block_start":
            return [*self._stop(at), *self._open(at, mapping(data.get("content_block")))]
        if kind == "content_block_delta":
            self._block = self._blocks.get(at) or _Block()
            return self._add(mapping(data.get("delta")))
        if kind == "content_block_stop":
            return self._stop(at)
        if kind == "message_delta":
            return self._finish(mapping(data.get("delta")), mapping(data.get("usage")))
        return []

    def end(self) -> list[dict[str, Any]]:
        """The chunk that closes a complete stream."""
        return [*self._chunks.head(), self._chunks.usage(chat_usage_of_messages(self._usage))]

    def _start(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        self._chunks.id, self._chunks.model = named_id("chatcmpl-", message.get("id")), text(message.get("model"))
        self._count(mapping(message.get("usage")))
        out = self._chunks.head()
        for at, block in enumerate(map(mapping, items(message.get("content")))):  # from a server that cannot stream
            out += [*self._open(at, block), *self._stop(at)]
        return out

    def _count(self, usage: Mapping[str, Any]) -> None:
        """The head counts the prompt, the end the answer; what a later event does not count stays."""
        self._usage.update((key, value) for key, value in usage.items() if value)

    def _open(self, at: int, block: Mapping[str, Any]) -> list[dict[str, Any]]:
        kind = text(block.get("type"))
        self._block = self._blocks[at] = _Block(kind, whole=block, start=self._said)
        if kind == "tool_use" and block.get("name") == JSON_TOOL:
            self._block.kind = "json"
        elif kind == "tool_use":
            self._block.number, chunks = self._chunks.call(text(block.get("id")), text(block.get("name")))
            return chunks
        elif kind == "redacted_thinking":
            return self._detail(encrypted_detail(text(block.get("data")), self._details))
        elif kind in ("text", "thinking"):
            return self._say(text(block.get(kind)))
        elif kind == "web_search_tool_result" and text(block.get("tool_use_id")) in self._searches:
            made = self._searches.pop(block["tool_use_id"])
            add_results(made, block.get("content"))
            return self._chunks.delta(**{SEARCHES: [made]})
        elif kind != "server_tool_use" or block.get("name") != NAME or not self._between:
            dropped_block(kind, self._losses)
        return []

    def _add(self, delta: Mapping[str, Any]) -> list[dict[str, Any]]:
        kind = delta.get("type")
        if kind in ("text_delta", "thinking_delta"):
            return self._say(text(delta.get("text")) or text(delta.get("thinking")))
        if kind == "signature_delta":
            self._block.signature += text(delta.get("signature"))
        elif kind == "input_json_delta":
            return self._arguments(text(delta.get("partial_json")))
        elif kind == "citations_delta":
            self._block.citations.append(delta.get("citation"))
        return []

    def _say(self, piece: str) -> list[dict[str, Any]]:
        if not piece:
            return []
        self._block.pieces.append(piece)
        if self._block.kind == "thinking":
            return self._chunks.delta(reasoning_content=piece)
        self._said += len(piece)
        return self._chunks.delta(content=piece)

    def _arguments(self, piece: str) -> list[dict[str, Any]]:
        if not piece or self._block.kind not in ("tool_use", "json", "server_tool_use"):
            return []
        self._block.pieces.append(piece)
        if self._block.kind == "server_tool_use":
            return []
        if self._block.number is None:
            self._said += len(piece)
            return self._chunks.delta(content=piece)
        return self._chunks.arguments(self._block.number, piece)

    def _stop(self, at: int) -> list[dict[str, Any]]:
        """A block is complete. A call without arguments is `{}` in Chat, and nothing at all in Messages."""
        self._block = block = self._blocks.pop(at, _Block())
        chunks = list[dict[str, Any]]()
        if block.kind in ("tool_use", "json") and not block.pieces:
            chunks = self._arguments(dumps(mapping(block.whole.get("input"))))
        elif block.kind == "thinking":
            signature = block.signature or text(block.whole.get("signature"))
            chunks = self._detail(signed_detail("".join(block.pieces), signature, self._details))
        elif block.kind == "server_tool_use" and self._between:
            given = arguments_of("".join(block.pieces)) or mapping(block.whole.get("input"))
            self._searches[text(block.whole.get("id"))] = search_of_messages(block.whole, given)
        elif block.kind == "text":
            chunks = self._cited(block)
        return chunks

    def _cited(self, block: _Block) -> list[dict[str, Any]]:
        """The citations of a text: where it ends is known now."""
        told = [*items(block.whole.get("citations")), *block.citations]
        found = [
            made for one in map(mapping, told) for made in from_messages(one, block.start, self._said, self._losses)
        ]
        return self._chunks.delta(annotations=found) if found else []

    def _detail(self, detail: dict[str, Any]) -> list[dict[str, Any]]:
        self._details += 1
        return self._chunks.delta(reasoning_details=[detail])

    def _finish(self, delta: Mapping[str, Any], usage: Mapping[str, Any]) -> list[dict[str, Any]]:
        self._count(usage)
        stop = text(delta.get("stop_reason"))
        if not stop:
            return []
        refusal = text(mapping(delta.get("stop_details")).get("explanation"))
        told = self._chunks.delta(refusal=refusal) if stop == "refusal" and refusal else []
        last = [chunk for at in tuple(self._blocks) for chunk in self._stop(at)]
        return [*last, *told, *self._chunks.finish(finish_reason(stop, called=self._chunks.called))]
