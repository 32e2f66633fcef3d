"""Chat Completions: its stream chunks, the end of a stream, snapshots among its chunks, and its answers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from smart_model_router.domain.outcome import EventKind, StreamEvent, Usage
from smart_model_router.wires.outcomes import UNFINISHED_REASONS, Answer, contradiction, failure_of
from smart_model_router.wires.values import (
    ESCAPED,
    count,
    dumps,
    is_list,
    is_object,
    items,
    mapping,
    missing_arguments,
    missing_text,
    text,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CONTENT: Final = EventKind.CONTENT
_NO_CONTENT = (EventKind.META, EventKind.FINISH)
# What a caller would miss besides `content`: `reasoning` and `reasoning_details` are OpenRouter's and vLLM's,
# `reasoning_content` is DeepSeek's, llama.cpp's and xAI's, `function_call` the first form of `tool_calls`.
_OTHER_CONTENT = (
    "tool_calls",
    "reasoning_content",
    "reasoning",
    "refusal",
    "function_call",
    "reasoning_details",
    "audio",
)
_OF_TEXT = ("content", "role")
_EXACT = ("tool_calls", "function_call", "audio")
_UNKNOWN = StreamEvent(EventKind.PING, b": an event of an unknown kind\n\n")


def read_event(event: bytes, data: dict[str, Any], raw: bytes) -> StreamEvent:
    """One chunk. A chunk with both content and a finish reason is CONTENT with `finish` set.

    With several choices, `finish` is the one this chunk carries. An object without `choices` is of no known kind and
    holds no text: it is read as a ping, and its bytes go no further.
    """
    choices = data.get("choices")
    if event == b"error" or data.get("error") or data.get("object") == "error":
        error = data.get("error") or data
        return StreamEvent(EventKind.ERROR, raw, data, failure=failure_of(error))
    told = data.get("usage")
    usage = None if told is None else read_usage(told)
    if not isinstance(choices, list):
        if usage is not None:
            return StreamEvent(EventKind.META, raw, data, usage=usage, text="")
        return _UNKNOWN if choices is None else StreamEvent(EventKind.MALFORMED, raw, data)
    has_content = False
    finish: str | None = None
    for choice in choices:
        if not isinstance(choice, dict):
            return StreamEvent(EventKind.MALFORMED, raw, data)
        delta = choice.get("delta")
        if isinstance(delta, dict):
            if not has_shape(delta):
                return StreamEvent(EventKind.MALFORMED, raw, data)
            has_content = has_content or has_content_in(delta)
        elif delta is not None:
            return StreamEvent(EventKind.MALFORMED, raw, data)
        reason = choice.get("finish_reason")
        if reason is None:
            continue
        finish = reason if isinstance(reason, str) and reason else finish
        if finish == "error":  # OpenRouter: the error went wrong after the head was sent
            return StreamEvent(EventKind.ERROR, raw, data, finish, usage, failure_of(choice.get("error")))
    if has_content:
        return StreamEvent(EventKind.CONTENT, raw, data, finish, usage, None, _text_alone(choices))
    return StreamEvent(EventKind.META if finish is None else EventKind.FINISH, raw, data, finish, usage, None, "")


def _text_alone(choices: list[Any]) -> str | None:
    """The `text` of a StreamEvent with these choices, one of which has content."""
    if len(choices) != 1:
        return None
    delta = choices[0]["delta"]
    content = delta.get("content")
    if not content or choices[0].get("index", 0) != 0:
        return ""
    if not isinstance(content, str) or any(value and key not in _OF_TEXT for key, value in delta.items()):
        return None
    return content


def written(data: dict[str, Any]) -> StreamEvent:
    """The event with these data."""
    return read_event(b"", data, f"data: {dumps(data)}\n\n".encode(errors=ESCAPED))


def is_prose(data: Mapping[str, Any]) -> bool:
    """Return whether a chunk holds text, and no part of a call or of audio."""
    deltas = [mapping(mapping(choice).get("delta")) for choice in items(data.get("choices"))]
    return any(has_content_in(delta) for delta in deltas) and not any(
        delta.get(key) for delta in deltas for key in _EXACT
    )


def is_prose_answer(body: Mapping[str, Any]) -> bool:
    """Return whether a whole answer is text alone."""
    choices = map(mapping, items(body.get("choices")))
    return is_prose({"choices": [{"delta": choice.get("message")} for choice in choices]})


def has_shape(delta: Mapping[str, Any]) -> bool:
    """Return whether content and calls are of the types that they are read as: others would get lost on the way."""
    content, calls = delta.get("content"), delta.get("tool_calls")
    return (content is None or isinstance(content, (str, list))) and (calls is None or isinstance(calls, list))


def text_of(data: Mapping[str, Any]) -> str:
    """The visible text that a chunk adds to the first choice."""
    choices = data.get("choices")
    if not isinstance(choices, list):
        return ""
    for choice in choices:
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            delta = choice.get("delta")
            content = delta.get("content") if isinstance(delta, dict) else None
            return content if isinstance(content, str) else visible(content)
    return ""


def read_answer(body: Mapping[str, Any]) -> Answer:
    """A whole answer. `choices: []` is well-formed and empty."""
    if body.get("error"):
        return Answer(error=body["error"])
    choices = body.get("choices")
    if not is_list(choices):
        return Answer(malformed="no list of choices")
    usage = read_usage(body.get("usage"))
    finish: str | None = None
    has_content = False
    for choice in choices:
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(message, dict):
            return Answer(malformed="a choice without a message")
        reason = text(choice.get("finish_reason"))
        if reason == "error":  # OpenRouter
            return Answer(error=choice.get("error") or {})
        finish = finish or reason or None
        has_content = has_content or has_content_in(message) or reason in UNFINISHED_REASONS
    return Answer(usage, finish, empty=not has_content)


def read_usage(value: object) -> Usage | None:
    """Token counts as Chat and Embeddings write them; None when they make no sense."""
    if not isinstance(value, dict):
        return None
    prompt = count(value.get("prompt_tokens"))
    if prompt is None:
        return None
    details = value.get("prompt_tokens_details")
    cached = count(details.get("cached_tokens")) if isinstance(details, dict) else None
    if cached is None:
        cached = count(value.get("prompt_cache_hit_tokens"))  # DeepSeek
    return Usage(prompt, count(value.get("completion_tokens")) or 0, min(cached, prompt) if cached else 0)


def has_content_in(message: Mapping[str, Any]) -> bool:
    """Return whether a message or a delta holds anything a caller would miss."""
    return bool(message.get("content")) or any(message.get(key) for key in _OTHER_CONTENT)


def visible(content: object) -> str:
    """The text of a message's content, which is a string or a list of parts."""
    if isinstance(content, str):
        return content
    # Mistral's reasoning models stream lists of parts.
    parts = map(mapping, items(content))
    return "".join(text(part.get("text")) for part in parts if part.get("type") == "text")


class ChatFinishing:
    """A stream is finished when every choice has a finish reason."""

    __slots__ = ("_done", "_expected", "_seen", "finished")

    def __init__(self, choices: int) -> None:
        self._expected = choices  # a number, as callers may ask for a thousand million
        self._seen: set[int] = set()
        self._done: set[int] = set()
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        """See FinishCheck."""
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
        """See FinishCheck."""
        # Some providers answer once where several choices were asked for: those that came count.
        return "" if self._done and self._done >= self._seen else "a finish reason"


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
            data, said = event.data, event.text
            if data is None:
                continue
            if said:
                self._text.append(said)
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
        made = written({**data, "choices": choices})
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
