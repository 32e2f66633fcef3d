"""Checks of a provider's stream: whether its answer is finished, and snapshots that repeat what deltas carry.

Chat: every choice has a finish reason. Messages: there is a stop reason, and no block is open. Responses: the terminal
event came. What comes after that belongs to no answer.

Some providers put into a snapshot what no delta carried. A caller who reads deltas, and every translation, would lose
it while the answer ends well. So deltas are made of what a snapshot adds; one that contradicts the deltas before it is
an event that cannot be read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.wires.chat import has_content_in, visible
from smart_model_router.wires.dialects import written
from smart_model_router.wires.responses_snapshots import (
    ResponsesSnapshots,
    contradiction,
    is_same_json,
    missing_arguments,
    missing_text,
)
from smart_model_router.wires.values import count, dumps, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from smart_model_router.domain.request import Dialect

_CONTENT: Final = EventKind.CONTENT
_NO_CONTENT = (EventKind.META, EventKind.FINISH)


class FinishCheck(Protocol):
    """Follows one stream. `finished`: all of the answer has come, whatever becomes of the transport."""

    finished: bool

    def take(self, event: StreamEvent) -> bool:
        """Take an event with content or meaning; False when it is content that belongs to no part of the answer."""
        ...

    def missing(self) -> str:
        """Return the part that an answer lacks although its terminator came; "" for a whole one."""
        ...


class _ChatFinishing:
    __slots__ = ("_done", "_expected", "_seen", "finished")

    def __init__(self, choices: int) -> None:
        self._expected = choices  # a number, as callers may ask for a thousand million
        self._seen: set[int] = set()
        self._done: set[int] = set()
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        # Visible text is of choice 0, which is expected anyway: nearly every event goes this way.
        if event.text and event.finish is None and not self._done:
            return True
        choices = None if event.data is None else event.data.get("choices")
        is_content = event.kind is _CONTENT
        if not choices or not isinstance(choices, list):  # a usage chunk, or a provider's own event without its JSON
            return self._choice(0, event.finish, has_content=is_content)
        belongs = True
        for choice in choices:
            if isinstance(choice, dict):
                place = count(index) or 0 if (index := choice.get("index")) else 0
                reason = choice.get("finish_reason")
                finish = reason if isinstance(reason, str) else ""
                has_content = is_content and has_content_in(mapping(choice.get("delta")))
                belongs = self._choice(place, finish, has_content=has_content) and belongs
        return belongs

    def _choice(self, place: int, finish: str | None, *, has_content: bool) -> bool:
        if has_content and (self.finished or place in self._done):
            return False
        self._seen.add(place)
        if finish:
            self._done.add(place)
            of_expected = sum(done < self._expected for done in self._done)
            self.finished = of_expected == self._expected and self._done >= self._seen
        return True

    def missing(self) -> str:
        # Some providers answer once where several choices were asked for: those that came count.
        return "" if self._done and self._done >= self._seen else "a finish reason"


class _MessagesFinishing:
    __slots__ = ("_open", "_stopped", "finished")

    def __init__(self, choices: int) -> None:
        del choices  # there is one
        self._open: set[int] = set()
        self._stopped = False
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        data, finished = event.data, self.finished
        if event.text and not finished:  # a part of a block
            return True
        if data is not None:
            kind, at = data.get("type"), count(data.get("index")) or 0
            if kind == "content_block_start":
                if finished:
                    return False
                self._open.add(at)
            elif kind == "content_block_stop":
                self._open.discard(at)
            elif at not in self._open and mapping(data.get("delta")).get("type") == "input_json_delta":
                return event.kind is not _CONTENT  # arguments of no call
        if event.finish is not None:
            self._stopped = True
        self.finished = self._stopped and not self._open
        return not (finished and event.kind is _CONTENT)

    def missing(self) -> str:
        if not self._stopped:
            return "a stop reason"
        return f"the end of block {min(self._open)}" if self._open else ""


class _ResponsesFinishing:
    __slots__ = ("finished",)

    def __init__(self, choices: int) -> None:
        del choices
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        self.finished = self.finished or event.finish is not None
        return True

    def missing(self) -> str:
        return "" if self.finished else "a status"


_FINISHINGS: Mapping[Dialect, Callable[[int], FinishCheck]] = MappingProxyType(
    {"chat": _ChatFinishing, "messages": _MessagesFinishing, "responses": _ResponsesFinishing}
)


def finishing(dialect: Dialect, choices: int = 1) -> FinishCheck:
    """The rules of a streaming dialect for one stream; `choices` is how many answers were asked for."""
    return _FINISHINGS[dialect](choices)


# Chat Completions: a chunk may hold a `message`, all that was said so far, where its delta says nothing.
#
# Perplexity sends one with every chunk; a server that cannot stream sends its whole answer as one.
_TEXTS = ("content", "refusal")
_THOUGHTS = ("reasoning_content", "reasoning")
"""Two names of one thing; some servers send both."""


@dataclass(slots=True)
class _Call:
    place: int
    call_id: str
    arguments: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _ToldInChat:
    """The content that the deltas of one choice carried."""

    texts: dict[str, list[str]] = field(default_factory=lambda: {key: [] for key in (*_TEXTS, *_THOUGHTS[:1])})
    calls: list[_Call] = field(default_factory=list)
    anything: bool = False

    def take(self, delta: Mapping[str, Any]) -> None:
        self.anything = self.anything or has_content_in(delta)
        for key, (_, said) in _texts(delta).items():
            self.texts[key].append(said)
        for call in map(mapping, items(delta.get("tool_calls"))):
            call_id, place = text(call.get("id")), count(call.get("index")) or 0
            known = next((one for one in reversed(self.calls) if one.place == place), None)
            if known is None or (call_id and known.call_id != call_id):
                known = _Call(place, call_id)
                self.calls.append(known)
            known.arguments.append(_arguments(call))

    def missing(self, message: Mapping[str, Any]) -> dict[str, Any] | None:
        """The delta with what a message says beyond these; None when it contradicts them."""
        calls = self._missing_calls(items(message.get("tool_calls")))
        if calls is None:
            return None
        if not self.anything:
            return {**message, "tool_calls": calls} if calls else dict(message)
        delta: dict[str, Any] = {}
        for key, (name, whole) in _texts(message).items():
            rest = missing_text("".join(self.texts[key]), whole)
            if rest is None:
                return None
            if rest:
                delta[name] = rest
        return {**delta, "tool_calls": calls} if calls else delta

    def _missing_calls(self, calls: Sequence[Any]) -> list[dict[str, Any]] | None:
        out: list[dict[str, Any]] = []
        new = max((one.place for one in self.calls), default=-1) + 1
        for at, call in enumerate(map(mapping, calls)):
            known = self._call(at, text(call.get("id")))
            if known is None:
                out.append({**call, "index": new})
                new += 1
                continue
            rest = missing_arguments("".join(known.arguments), _arguments(call))
            if rest is None:
                return None
            if rest:
                out.append({"index": known.place, "function": {"arguments": rest}})
        return out

    def _call(self, at: int, call_id: str) -> _Call | None:
        if call_id:
            return next((one for one in self.calls if one.call_id == call_id), None)
        return self.calls[at] if at < len(self.calls) else None


class ChatSnapshots:
    """One stream."""

    __slots__ = ("_choices", "_first", "_text")

    def __init__(self) -> None:
        self._first = _ToldInChat()
        self._text = self._first.texts["content"]
        self._choices = {0: self._first}

    def read(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events; a chunk whose message says more than the deltas says it in its delta."""
        changed: list[StreamEvent] | None = None
        for at, event in enumerate(events):
            data = event.data
            if data is None:
                continue
            if event.text:
                self._text.append(event.text)
                self._first.anything = True
                continue
            if event.kind in _NO_CONTENT and not _has_message(data):
                continue
            made = self._read(event, data)
            if made is not event:
                changed = list(events) if changed is None else changed
                changed[at] = made
        return events if changed is None else changed

    def _read(self, event: StreamEvent, data: Mapping[str, Any]) -> StreamEvent:
        choices: list[Any] = []
        grown = False
        for choice in items(data.get("choices")):
            told = self._choices.setdefault(count(mapping(choice).get("index")) or 0, _ToldInChat())
            delta, message = mapping(mapping(choice).get("delta")), mapping(mapping(choice).get("message"))
            told.take(delta)
            choices.append(choice)
            if has_content_in(delta) or not has_content_in(message):
                continue
            missing = told.missing(message)
            if missing is None:
                return contradiction(event, "a chunk's message")
            if missing:
                told.take(missing)
                grown = True
                rest = {key: value for key, value in choice.items() if key != "message"}
                choices[-1] = {**rest, "delta": {**delta, **missing}}
        if not grown:
            return event
        made = written("chat", [{**data, "choices": choices}])[0]
        return made._replace(usage=event.usage, failure=event.failure)


def _has_message(data: Mapping[str, Any]) -> bool:
    choices = data.get("choices")
    return isinstance(choices, list) and any(isinstance(choice, dict) and "message" in choice for choice in choices)


def _texts(said: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """The texts of a delta or a message, each with the name it has there."""
    found = {key: (key, visible(said.get(key))) for key in _TEXTS}
    name = next((name for name in _THOUGHTS if said.get(name)), _THOUGHTS[0])
    found[_THOUGHTS[0]] = name, text(said.get(name))
    return {key: told for key, told in found.items() if told[1]}


def _arguments(call: Mapping[str, Any]) -> str:
    given = mapping(call.get("function")).get("arguments")
    return dumps(given) if is_object(given) else text(given)


# Messages: a call's start may hold its whole input, which its deltas then repeat.
#
# A text or thought that its block's start holds is a part of it, to which the deltas add: that is no snapshot.


class MessagesSnapshots:
    """One stream."""

    __slots__ = ("_given",)

    def __init__(self) -> None:
        self._given: dict[int, tuple[Mapping[str, Any], list[str]]] = {}
        """By the index of an open call: the input that its start holds, and the pieces of its deltas."""

    def read(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events; MALFORMED instead of the end of a call whose start holds another input than its deltas."""
        return [event if event.text or not event.data else self._read(event) for event in events]

    def _read(self, event: StreamEvent) -> StreamEvent:
        data = mapping(event.data)
        kind, at = data.get("type"), count(data.get("index")) or 0
        if kind == "content_block_start":
            given = mapping(data.get("content_block")).get("input")
            if given and is_object(given):
                self._given[at] = given, []
        elif at in self._given and kind == "content_block_delta":
            self._given[at][1].append(text(mapping(data.get("delta")).get("partial_json")))
        elif at in self._given and kind == "content_block_stop":
            given, pieces = self._given.pop(at)
            told = "".join(pieces)
            if told and not is_same_json(told, given):
                return contradiction(event, "the input in a call's start")
        return event


class Snapshots(Protocol):
    """Follows one stream of a provider."""

    def read(self, events: Sequence[StreamEvent]) -> Sequence[StreamEvent]:
        """The events, with deltas for what only a snapshot among them says; MALFORMED instead of a contradiction."""
        ...


_READERS: Mapping[Dialect, Callable[[], Snapshots]] = MappingProxyType(
    {"chat": ChatSnapshots, "messages": MessagesSnapshots, "responses": ResponsesSnapshots}
)


def snapshots(dialect: Dialect) -> Snapshots:
    """The reader of snapshots for one stream of a streaming dialect."""
    return _READERS[dialect]()
