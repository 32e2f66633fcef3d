"""Messages events as Chat Completions chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.answers.messages_to_chat import dropped_block, finish_reason
from smart_model_router.wires.translate.citations import add_results, from_messages, search_of_messages
from smart_model_router.wires.translate.hosted import NAME, SEARCHES
from smart_model_router.wires.translate.reasoning import encrypted_detail, signed_detail
from smart_model_router.wires.translate.streams.chunks import Chunks
from smart_model_router.wires.translate.words import JSON_TOOL, arguments_of, chat_usage_of_messages, dumps, named_id
from smart_model_router.wires.values import count, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.wires.translate.terms import Context


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
