"""Chat chunks as blocks one after another: whatever a provider interleaves, never are two of them open.

The first tool call is passed on as it comes. What comes beside it - a second call, or text - waits until the stream
ends: Chat does not say when a call is complete, and its pieces may still arrive between those of another.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from smart_model_router.wires.translate import reasoning
from smart_model_router.wires.translate.hosted import SEARCHES, place_of
from smart_model_router.wires.values import count, dumps, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NONE: Sequence[Any] = ()
BlockKind = Literal["text", "refusal", "reasoning", "tool", "search"]


@dataclass(slots=True, eq=False)
class StreamBlock:
    """A part of an answer. `index` counts the blocks as they are opened; `call_id` and `name` are a tool call's.

    `before` is how many characters of text precede it, `cited` its citations and `logprobs` the probabilities of its
    tokens, both as Chat has them; `search` is a search of the web that was made.
    """

    kind: BlockKind
    index: int = 0
    call_id: str = ""
    name: str = ""
    pieces: list[str] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    before: int = 0
    cited: list[Any] = field(default_factory=list)
    logprobs: list[Any] = field(default_factory=list)
    search: Mapping[str, Any] = field(default_factory=dict)
    plain: bool = False
    """True when a thought came as text, too, and not in its details alone."""

    @property
    def text(self) -> str:
        """All that came so far."""
        return "".join(self.pieces)


@dataclass(frozen=True, slots=True)
class OpenedBlock:
    """A block begins."""

    block: StreamBlock


@dataclass(frozen=True, slots=True)
class Added:
    """A block grows by a non-empty `piece`, with the probabilities of its tokens where they are told."""

    block: StreamBlock
    piece: str
    logprobs: Sequence[Any] = ()


@dataclass(frozen=True, slots=True)
class Cited:
    """A citation of what a block says."""

    block: StreamBlock
    citation: Any


@dataclass(frozen=True, slots=True)
class Closed:
    """A block is complete."""

    block: StreamBlock


Change = OpenedBlock | Added | Cited | Closed


class ChatBlocks:
    """Reads the chunks of one stream (its first choice). `finish` and `usage` are the newest seen.

    `lost_citations`: some came when their text was complete.
    """

    def __init__(self) -> None:
        self.id = ""
        self.model = ""
        self.finish = ""
        self.usage: Mapping[str, Any] = {}
        self.called = False
        self.lost_citations = False
        self._blocks: list[StreamBlock] = []
        self._tools: dict[int, StreamBlock] = {}
        self._open: StreamBlock | None = None
        self._opened = 0
        self._said = 0

    def feed(self, chunk: Mapping[str, Any]) -> list[Change]:
        """Return the changes that a chunk makes, in order."""
        if not self.id and isinstance(made := chunk.get("id"), str):
            self.id = made
        if not self.model and isinstance(model := chunk.get("model"), str):
            self.model = model
        if (usage := chunk.get("usage")) and isinstance(usage, dict):
            self.usage = usage
        changes: list[Change] = []
        choices = chunk.get("choices")
        for choice in choices if isinstance(choices, list) else _NONE:
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                if (reason := choice.get("finish_reason")) and isinstance(reason, str):
                    self.finish = reason
                told = choice.get("logprobs")
                delta = choice.get("delta")
                if delta and isinstance(delta, dict):
                    self._delta(delta, items(mapping(told).get("content")) if told else _NONE, changes)
        return changes

    def end(self) -> list[Change]:
        """The stream is complete: what waited comes now."""
        changes: list[Change] = []
        self._close(changes)
        for block in self._blocks[self._opened :]:
            self._begin(block, changes)
            if block.text:
                changes.append(Added(block, block.text, block.logprobs))
            changes += [Cited(block, citation) for citation in block.cited]
            self._close(changes)
        return changes

    def _delta(self, delta: Mapping[str, Any], logprobs: Sequence[Any], changes: list[Change]) -> None:
        if SEARCHES in delta:
            for search in map(mapping, items(delta[SEARCHES])):
                self._new(StreamBlock("search", search=search), changes)
        if not reasoning.FIELDS.isdisjoint(delta):
            self._thought(reasoning.text_of(delta), items(delta.get("reasoning_details")), changes)
        if content := delta.get("content"):
            parts = [content] if isinstance(content, str) else [mapping(part).get("text") for part in items(content)]
            for part in parts:
                if part and isinstance(part, str):
                    self._text(part, logprobs, changes)
                    logprobs = _NONE
        if "annotations" in delta:
            for citation in items(delta["annotations"]):
                self._cite(citation, changes)
        if refusal := delta.get("refusal"):
            self._add(self._last("refusal", changes), text(refusal), changes)
        if calls := delta.get("tool_calls"):
            for call in map(mapping, items(calls)):
                self._call(call, changes)

    def _thought(self, thought: str, details: list[Any], changes: list[Change]) -> None:
        if not (thought or details):
            return
        block = self._last("reasoning", changes)
        reasoning.merged(block.details, details)
        block.plain = block.plain or bool(thought)
        if not block.plain:  # else the details say again, with a signature, what was said as text
            thought = "".join(_shown(mapping(detail)) for detail in details)
        self._add(block, thought, changes)

    def _text(self, said: str, logprobs: Sequence[Any], changes: list[Change]) -> None:
        block = self._last("text", changes)
        if logprobs:
            block.logprobs += logprobs
        self._add(block, said, changes, logprobs)
        self._said += len(said)

    def _cite(self, citation: Any, changes: list[Change]) -> None:
        """A citation belongs to the text that it is in, or else to the newest one."""
        texts = [block for block in self._blocks if block.kind == "text"]
        place = place_of(citation)
        block = next((one for one in reversed(texts) if one.before <= place), None)
        if block is None or (block is not self._open and block in self._blocks[: self._opened]):
            self.lost_citations = True  # its text is complete and gone
            return
        block.cited.append(citation)
        if block is self._open:
            changes.append(Cited(block, citation))

    def _call(self, call: Mapping[str, Any], changes: list[Change]) -> None:
        function = mapping(call.get("function"))
        call_id, name, arguments = text(call.get("id")), text(function.get("name")), function.get("arguments")
        newest = max(self._tools, default=-1)
        place = count(call.get("index"))
        if place is None:
            place = newest + 1 if call_id else max(newest, 0)
        block = self._tools.get(place)
        if block is not None and call_id and name and block.call_id != call_id:
            # Gemini's compatible endpoint has numbered all parallel calls 0.
            place, block = newest + 1, None
        if block is None:
            block = StreamBlock("tool", call_id=call_id or f"call_{self.id}_{place}", name=name)
            self._tools[place] = block
            self.called = True
            self._new(block, changes)
        self._add(block, dumps(arguments) if is_object(arguments) else text(arguments), changes)

    def _last(self, kind: BlockKind, changes: list[Change]) -> StreamBlock:
        """The newest block when it is of this kind, else a new one."""
        if self._blocks and self._blocks[-1].kind == kind:
            return self._blocks[-1]
        block = StreamBlock(kind, before=self._said)
        self._new(block, changes)
        return block

    def _new(self, block: StreamBlock, changes: list[Change]) -> None:
        self._blocks.append(block)
        if self._open is None or self._open.kind != "tool":
            self._close(changes)
            self._begin(block, changes)

    def _add(self, block: StreamBlock, piece: str, changes: list[Change], logprobs: Sequence[Any] = ()) -> None:
        if piece:
            block.pieces.append(piece)
            if block is self._open:
                changes.append(Added(block, piece, logprobs))

    def _begin(self, block: StreamBlock, changes: list[Change]) -> None:
        block.index = self._opened
        self._opened += 1
        self._open = block
        changes.append(OpenedBlock(block))

    def _close(self, changes: list[Change]) -> None:
        if self._open is not None:
            changes.append(Closed(self._open))
            self._open = None


def _shown(detail: Mapping[str, Any]) -> str:
    return text(detail.get("text")) or text(detail.get("summary"))
