"""Responses: the `done` events repeat a part or an item, the terminal event repeats the whole answer.

What deltas carried is compared with each of them. Ids and places are not relied upon: llama.cpp's events have no
`output_index`, and vLLM's terminal event has items with ids of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import StreamEvent
from smart_model_router.wires.outcomes import contradiction
from smart_model_router.wires.responses import ENDS, place_of, written
from smart_model_router.wires.values import (
    count,
    dumps,
    is_object,
    items,
    mapping,
    missing_arguments,
    missing_text,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


_TEXT, _REFUSAL = "response.output_text", "response.refusal"
_REASONING, _SUMMARY = "response.reasoning_text", "response.reasoning_summary_text"
_ARGUMENTS, _INPUT = "response.function_call_arguments", "response.custom_tool_call_input"

_KEYS: Mapping[str, str] = MappingProxyType(
    {_TEXT: "text", _REFUSAL: "refusal", _REASONING: "text", _SUMMARY: "text", _ARGUMENTS: "arguments", _INPUT: "input"}
)
"""Each thing that grows by deltas, with the field in which its `done` event repeats it."""
_PARTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {"output_text": (_TEXT, "text"), "refusal": (_REFUSAL, "refusal"), "reasoning_text": (_REASONING, "text")}
)
"""Of each kind of part: what grows, and its field in the part. Those of a summary have a list of their own."""
_KINDS: Mapping[str, str] = MappingProxyType(
    {
        _TEXT: "message",
        _REFUSAL: "message",
        _REASONING: "reasoning",
        _SUMMARY: "reasoning",
        _ARGUMENTS: "function_call",
        _INPUT: "custom_tool_call",
    }
)
_EMPTY: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "message": {"content": []},
        "reasoning": {"summary": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
    }
)
"""The fields of an item that are empty when it begins, by its kind."""

_IN_ORDER = ("message", "reasoning")
"""Kinds whose texts one after another are one text in other dialects; calls grow side by side."""
_NAMES = ("id", "type", "call_id", "name", "role")

_Whole = dict[str, list[tuple[int, str]]]
"""A snapshot of an item: what grows -> its parts, each with its index."""


@dataclass(slots=True, eq=False)
class _Item:
    """An item of the output, as far as its deltas tell it. `place` says in an event which one it is."""

    kind: str
    item_id: str
    place: Mapping[str, int]
    pieces: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    done: bool = False
    mended: bool = False
    """True when bytes of its deltas were replaced: then a snapshot may differ from them."""

    @property
    def at(self) -> dict[str, Any]:
        """The same in an event about a part of it."""
        return {"item_id": self.item_id, **self.place}

    def told(self, grown: str) -> str:
        return "".join(piece for (name, _), pieces in self.pieces.items() if name == grown for piece in pieces)

    @property
    def has_content(self) -> bool:
        return any(self.pieces.values())


class _ContradictionError(Exception):
    """A snapshot that its deltas are no beginning of."""


class ResponsesSnapshots:
    """One stream."""

    __slots__ = ("_ids", "_items", "_number", "_order")

    def __init__(self) -> None:
        self._items: dict[int | str, _Item] = {}
        """By their place, or their id where events do not say it."""
        self._ids: dict[str, _Item] = {}
        self._order: list[_Item] = []
        self._number: int | None = None
        """The sequence number of the newest event."""

    def read(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events, each after the deltas that only it makes known; MALFORMED instead of a contradiction."""
        out: list[StreamEvent] = []
        for event in events:
            data = event.data
            if data is not None:
                try:
                    out += self._before(event, data)
                except _ContradictionError as told:
                    out.append(contradiction(event, str(told)))
                    continue
                self._number = count(data.get("sequence_number"))
            out.append(event)
        return out

    def _before(self, event: StreamEvent, data: Mapping[str, Any]) -> list[StreamEvent]:
        """The events that belong before this one."""
        kind = text(data.get("type"))
        grown, _, what = kind.rpartition(".")
        if grown in _KEYS:
            item = self._item(data, _KINDS[grown])
            index = _index(grown, data)
            if what == "delta":
                item.pieces.setdefault((grown, index), []).append(text(data.get("delta")))
                item.mended = item.mended or event.failure is not None
            elif what == "done":
                return self._part(event, item, grown, index, _written(data.get(_KEYS[grown])))
        elif kind in ("response.content_part.added", "response.reasoning_summary_part.added"):
            found = _part_of(data)
            if found is not None:
                self._item(data, _KINDS[found[0]]).pieces.setdefault((found[0], _index(found[0], data)), [])
        elif kind in ("response.content_part.done", "response.reasoning_summary_part.done"):
            found = _part_of(data)
            if found is not None:
                return self._part(event, self._item(data, _KINDS[found[0]]), found[0], _index(found[0], data), found[1])
        elif kind == "response.output_item.added":
            self._add(data)
        elif kind == "response.output_item.done":
            return self._item_done(event, data)
        elif kind in ENDS:
            return self._end(event, items(mapping(data.get("response")).get("output")))
        return []

    def _add(self, data: Mapping[str, Any]) -> _Item:
        given = mapping(data.get("item"))
        place = place_of(data)
        named = {"output_index": place} if isinstance(place, int) else {}
        made = _Item(text(given.get("type")), text(given.get("id")), named)
        self._items[place] = made
        if made.item_id:
            self._ids[made.item_id] = made
        self._order.append(made)
        return made

    def _known(self, data: Mapping[str, Any], kind: object) -> _Item | None:
        """The item that an event is about: by its id first, as some servers place every item at 0."""
        item_id = text(data.get("item_id")) or text(mapping(data.get("item")).get("id"))
        for known in (self._ids.get(item_id), self._items.get(place_of(data))):
            if known is not None and known.kind == kind:
                return known
        return None

    def _item(self, data: Mapping[str, Any], kind: str) -> _Item:
        """The same; some servers do not say that one begins."""
        if (known := self._known(data, kind)) is not None:
            return known
        return self._add({**data, "item": {"type": kind, "id": data.get("item_id")}})

    def _part(self, event: StreamEvent, item: _Item, grown: str, index: int, whole: str) -> list[StreamEvent]:
        """The deltas that a part's end makes known."""
        told = "".join(item.pieces.get((grown, index), ()))
        if told.endswith(whole) or self._is_shown(item, grown):  # of all parts, where none has an index
            return []
        rest = self._rest(event, item, grown, told, whole)
        return self._grow(event, item, grown, index, rest)

    def _rest(self, event: StreamEvent, item: _Item, grown: str, told: str, whole: str) -> str:
        compared = missing_arguments if grown == _ARGUMENTS else missing_text
        rest = compared(told, whole)
        if rest is None and not (item.mended or event.failure is not None):
            raise _ContradictionError(f"the {_KEYS[grown]} of a {item.kind} item")
        if rest and item.kind in _IN_ORDER:
            _keep_order(item.kind, self._order[self._order.index(item) + 1 :])
        return rest or ""

    def _is_shown(self, item: _Item, grown: str) -> bool:
        """Return whether a thought was told, only as the other of its two forms."""
        other = {_REASONING: _SUMMARY, _SUMMARY: _REASONING}.get(grown, "")
        return not item.told(grown) and bool(item.told(other))

    def _item_done(self, event: StreamEvent, data: Mapping[str, Any]) -> list[StreamEvent]:
        given = mapping(data.get("item"))
        item = self._known(data, given.get("type"))
        begun: list[StreamEvent] = []
        if item is None:
            item = self._add(data)
            begun = [self._made(event, "response.output_item.added", item.place, item=_begun(given))]
        item.done = True
        return [*begun, *self._whole(event, item, given)]

    def _whole(self, event: StreamEvent, item: _Item, given: Mapping[str, Any]) -> list[StreamEvent]:
        """The deltas that a whole item makes known."""
        out: list[StreamEvent] = []
        for grown, parts in _snapshot(given).items():
            if self._is_shown(item, grown):
                continue
            told = item.told(grown)
            whole = "".join(part for _, part in parts)
            rest = self._rest(event, item, grown, told, whole)
            begun = len(whole) - len(rest)
            for index, part in parts:
                out += self._grow(event, item, grown, index, part[max(begun, 0) :])
                begun -= len(part)
        return out

    def _end(self, event: StreamEvent, output: Sequence[Any]) -> list[StreamEvent]:
        """Return the events for what only the terminal event tells: the rest of items, and whole ones."""
        out: list[StreamEvent] = []
        pairs = self._matched([mapping(one) for one in output])
        for number, (given, known) in enumerate(pairs):
            if known is None:
                used = [place for place in self._items if isinstance(place, int)]
                place = number if number not in used else max(used) + 1
                _keep_order(text(given.get("type")), [one for _, one in pairs[number + 1 :] if one is not None])
                item = self._add({"output_index": place, "item": given})
                out.append(self._made(event, "response.output_item.added", item.place, item=_begun(given)))
            else:
                item = known
            out += self._whole(event, item, given)
            if not item.done:
                item.done = True
                out.append(self._made(event, "response.output_item.done", item.place, item=dict(given)))
        return out

    def _matched(self, output: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], _Item | None]]:
        """Each item of the output with the one that deltas told: of the same id, or the next of its kind."""
        named = {text(given.get("id")) for given in output} & self._ids.keys()
        others = [item for item in self._order if item.item_id not in named]
        found: list[tuple[Mapping[str, Any], _Item | None]] = []
        for given in output:
            kind, item = given.get("type"), self._ids.get(text(given.get("id")))
            if item is None or item.kind != kind:
                item = next((one for one in others if one.kind == kind), None)
                if item is not None:
                    others.remove(item)
            found.append((given, item))
        return found

    def _grow(self, event: StreamEvent, item: _Item, grown: str, index: int, piece: str) -> list[StreamEvent]:
        """The delta with a piece, after the begin of a part that none was told of."""
        if not piece:
            return []
        out: list[StreamEvent] = []
        at = _indexed(grown, index)
        if (grown, index) not in item.pieces and at:
            begin = "reasoning_summary_part" if grown == _SUMMARY else "content_part"
            kind = next((kind for kind, (name, _) in _PARTS.items() if name == grown), "summary_text")
            part = {"type": kind, _KEYS[grown]: "", **({"annotations": []} if grown == _TEXT else {})}
            out.append(self._made(event, f"response.{begin}.added", {**item.at, **at}, part=part))
        item.pieces.setdefault((grown, index), []).append(piece)
        more = {"delta": piece, "logprobs": []} if grown == _TEXT else {"delta": piece}
        return [*out, self._made(event, f"{grown}.delta", {**item.at, **at}, **more)]

    def _made(self, event: StreamEvent, kind: str, at: Mapping[str, Any], **more: Any) -> StreamEvent:
        """An event of our own. It has the number of the one before it: a client that resumes there misses nothing."""
        numbered = {} if self._number is None else {"sequence_number": self._number}
        return written({"type": kind, **numbered, **at, **more})._replace(failure=event.failure)


def _keep_order(kind: str, later: Sequence[_Item]) -> None:
    """Raise where what is still missing belongs before an item of its kind that is told already."""
    if any(item.kind == kind and item.has_content for item in later):
        raise _ContradictionError(f"the order of {kind} items")


def _index(grown: str, data: Mapping[str, Any]) -> int:
    return count(data.get("summary_index" if grown == _SUMMARY else "content_index")) or 0


def _indexed(grown: str, index: int) -> dict[str, int]:
    if grown in (_ARGUMENTS, _INPUT):
        return {}
    return {"summary_index" if grown == _SUMMARY else "content_index": index}


def _part_of(data: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the field that grows in the part of an event, and its text."""
    part = mapping(data.get("part"))
    if "summary_index" in data or part.get("type") == "summary_text":
        return _SUMMARY, text(part.get("text"))
    found = _PARTS.get(text(part.get("type")))
    return None if found is None else (found[0], text(part.get(found[1])))


def _snapshot(item: Mapping[str, Any]) -> _Whole:
    found: _Whole = {}
    for index, part in enumerate(map(mapping, items(item.get("content")))):
        grown, key = _PARTS.get(text(part.get("type")), ("", ""))
        if grown:
            found.setdefault(grown, []).append((index, text(part.get(key))))
    for index, part in enumerate(map(mapping, items(item.get("summary")))):
        found.setdefault(_SUMMARY, []).append((index, text(part.get("text"))))
    for kind, grown in (("function_call", _ARGUMENTS), ("custom_tool_call", _INPUT)):
        if item.get("type") == kind:
            found[grown] = [(0, _written(item.get(_KEYS[grown])))]
    return found


def _written(value: object) -> str:
    """Arguments are a text of JSON; some servers send the object."""
    return dumps(value) if is_object(value) else text(value)


def _begun(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as its first event has it."""
    named = {key: item[key] for key in _NAMES if key in item}
    return {**named, "status": "in_progress", **_EMPTY.get(text(item.get("type")), {})}
