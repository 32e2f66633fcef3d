"""Two streams as one: what a caller has of the first, and the second written so that it goes on from there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from smart_model_router.domain.outcome import EventKind, StreamEvent, Usage
from smart_model_router.wires.dialects import text_of, written
from smart_model_router.wires.translate.reasoning import FIELDS as REASONING
from smart_model_router.wires.translate.reasoning import seal
from smart_model_router.wires.translate.reasoning import text_of as reasoning_of
from smart_model_router.wires.values import count, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from smart_model_router.domain.request import Dialect

_MORE_THAN_TEXT = ("tool_calls", "function_call", "refusal", "audio")
_CALLS = ("tool_calls", "function_call")
_THINKING = frozenset({"thinking", "redacted_thinking"})


class News(Protocol):
    """The new part of a continuation's text (core/overlap.py)."""

    @property
    def begun_anew(self) -> bool:
        """True when it is no continuation at all."""
        ...

    def feed(self, piece: str) -> str:
        """Return the new text that was not yet given."""
        ...

    def end(self, *, call_follows: bool = False) -> str:
        """The rest of what is new; `call_follows` may excuse that there is no text."""
        ...


def call_check(dialect: Dialect) -> Callable[[Mapping[str, Any]], bool]:
    """The check that the data of an event, of Chat or Messages, begin a call for the client to make."""
    return _begins_block if dialect == "messages" else _begins_in_chunk


def _begins_block(data: Mapping[str, Any]) -> bool:
    return data.get("type") == "content_block_start" and mapping(data.get("content_block")).get("type") == "tool_use"


def _begins_in_chunk(data: Mapping[str, Any]) -> bool:
    for choice in items(data.get("choices")):
        delta = mapping(mapping(choice).get("delta"))
        if any(delta.get(key) for key in _CALLS):
            return True
    return False


class Told:
    """The content that the caller of one stream has: its text, and all that a continuation has to fit to."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect: Dialect = dialect
        self._text: list[str] = []
        self.only_text = True
        """True when there is nothing but text and thoughts of one answer: no call, no refusal, no second choice."""
        self.anything = False
        """True when the caller has seen any event with data."""
        self.head: dict[str, Any] = {}
        """The fields that every Chat chunk repeats: the id of the answer, its time and its maker."""
        self.open_block: int | None = None
        self.open_kind = ""
        """The type of the open block of Messages."""
        self.is_signed = False
        """True when the open block of Messages has its signature."""
        self.next_block = 0
        self.thoughts = 0
        """Characters of thoughts."""
        self._sealed_thoughts = False
        """True with thoughts of Chat that their provider signs or encrypts: half of them is rejected later."""

    @property
    def text(self) -> str:
        """The visible text."""
        return "".join(self._text)

    @property
    def open_thought(self) -> bool:
        """True when a thought of Messages is unfinished."""
        return self.open_block is not None and self.open_kind in _THINKING

    @property
    def can_go_on(self) -> bool:
        """Return whether another target can go on from here: there is nothing but text and thoughts before it.

        Without text the answer is made anew behind the thoughts.
        """
        if self._text:
            return self.only_text and (self.open_block is None or self.open_kind == "text")
        return self.only_text and not self._sealed_thoughts and (self.open_block is None or self.open_thought)

    def take(self, event: StreamEvent) -> None:
        """The caller gets this event."""
        data = event.data
        if data is None:
            return
        if event.text and self.anything and (self.head or self.dialect != "chat"):  # as nearly all
            self._text.append(event.text)
            return
        self.anything = True
        said = text_of(self.dialect, data) if event.text is None else event.text
        if said:
            self._text.append(said)
        if self.dialect == "chat" and not self.head:
            self.head = {key: data[key] for key in ("id", "created", "model") if key in data}
        if event.text:  # and nothing else, as nearly all
            return
        if self.dialect == "chat":
            self._take_chunk(data)
        else:
            self._take_block(data)

    def _take_chunk(self, data: Mapping[str, Any]) -> None:
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            if not isinstance(choice, dict):
                continue
            delta = choice.get("delta")
            if not isinstance(delta, dict):
                delta = {}
            if choice.get("index", 0) != 0 or any(delta.get(key) for key in _MORE_THAN_TEXT):
                self.only_text = False
            if not REASONING.isdisjoint(delta):
                self.thoughts += len(reasoning_of(delta))
                self._sealed_thoughts = self._sealed_thoughts or bool(delta.get("reasoning_details"))

    def _take_block(self, data: Mapping[str, Any]) -> None:
        match data.get("type"):
            case "message_start":
                message = data.get("message")
                if isinstance(message, dict) and message.get("content"):
                    self.only_text = False
            case "content_block_start":
                block = data.get("content_block")
                block = block if isinstance(block, dict) else {}
                self.open_kind, self.is_signed = str(block.get("type", "")), bool(block.get("signature"))
                self.open_block = (count(index) or 0) if (index := data.get("index")) else 0
                self.next_block = self.open_block + 1
                if self.open_kind in _THINKING:
                    self.thoughts += len(text(block.get("thinking")))
                self.only_text = self.only_text and (self.open_kind == "text" or self.open_kind in _THINKING)
            case "content_block_delta":
                delta = mapping(data.get("delta"))
                self.thoughts += len(text(delta.get("thinking")))
                self.is_signed = self.is_signed or bool(delta.get("signature"))
            case "content_block_stop":
                self.open_block = None
            case _:
                pass


class Joint(Protocol):
    """A continuation's events, rewritten to follow what the caller has. `unthought` counts omitted thoughts."""

    unthought: int

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """Return the events that the caller gets for this event."""
        ...


class _ChatJoint:
    """One answer of one id: no second head, no thoughts once the answer has begun, no text said twice."""

    def __init__(self, told: Told, news: News, before: Usage) -> None:
        self._told = told
        self._left_out = ("role", "content", *REASONING) if told.text else ("role", "content")
        self._news = news
        self._before = before
        self.unthought = 0

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        if event.data is None:
            return [event] if event.kind is not EventKind.END else [*self._rest(), event]
        return written("chat", self._rewritten(event.data))

    def _rest(self) -> list[StreamEvent]:
        said = self._news.end()
        return written("chat", [self._chunk({}, {"content": said})]) if said else []

    def _rewritten(self, data: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        usage = data.get("usage")
        summed = {"usage": _summed_chat(usage, self._before)} if is_object(usage) else {}
        choice = next((c for c in map(mapping, items(data.get("choices"))) if c.get("index", 0) == 0), None)
        if choice is None:
            if summed:
                yield {**data, **self._told.head, **summed}
            return
        delta = dict(mapping(choice.get("delta")))
        finish = choice.get("finish_reason")
        said = text_of("chat", data)
        new = self._news.feed(said) if said else ""
        call_follows = any(delta.get(key) for key in _CALLS)
        if finish or any(delta.get(key) for key in _MORE_THAN_TEXT):
            new += self._news.end(call_follows=call_follows)
        if "reasoning" in self._left_out:
            self.unthought += len(reasoning_of(delta))
        for key in self._left_out:
            delta.pop(key, None)
        if new:
            delta["content"] = new
        if any(delta.values()) or finish or summed:
            logprobs = {"logprobs": choice.get("logprobs")} if new == said and "logprobs" in choice else {}
            whole = {"index": 0, "delta": delta, **logprobs, "finish_reason": finish}
            yield {**data, **self._told.head, "choices": [whole], **summed}

    def _chunk(self, data: Mapping[str, Any], delta: dict[str, Any]) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": None}
        return {"object": "chat.completion.chunk", **data, **self._told.head, "choices": [choice]}


class _MessagesJoint:
    """One message: no second start; the first text goes on in the block that is open, later blocks follow it."""

    def __init__(self, told: Told, news: News, before: Usage) -> None:
        self._told = told
        self._news = news
        self._before = before
        self._open = told.open_block
        self._has_thoughts = not told.text
        """True when its thoughts are delivered: they belong before the first text."""
        self._unclosed = told.open_thought
        self._next = told.next_block
        self._places: dict[int, int | None] = {}
        """Where each block of the continuation stands in the message; None: it is left out."""
        self._text_at: int | None = None
        self._began_with: Mapping[str, Any] = {}
        """The usage at the continuation's start."""
        self.unthought = 0

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        if event.data is None:
            return [event]
        return written("messages", self._rewritten(event.data))

    def _rewritten(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        make = _MESSAGES_EVENTS.get(str(data.get("type")))
        return [dict(data)] if make is None else make(self, data)

    def _start(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        self._began_with = mapping(mapping(data.get("message")).get("usage"))
        return []

    def _block(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        at, block = count(data.get("index")) or 0, mapping(data.get("content_block"))
        if block.get("type") in _THINKING and not self._has_thoughts:
            self._places[at] = None
            self.unthought += len(text(block.get("thinking")))
            return []
        if block.get("type") == "text" and self._text_at is None:
            self._text_at = at
            out = self._closed() if self._unclosed else []
            self._places[at] = self._next if self._open is None else self._open
            said = self._news.feed(str(block.get("text") or ""))
            return [*out, *self._text(said)]
        out = self._closed(call_follows=block.get("type") == "tool_use")
        self._places[at] = self._open = self._next
        self._next += 1
        return [*out, {**data, "index": self._open}]

    def _delta(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        at, delta = count(data.get("index")) or 0, mapping(data.get("delta"))
        if at not in self._places and delta.get("type") == "text_delta":  # of a block whose begin was left out
            return [*self._block({"index": at, "content_block": _EMPTY_TEXT}), *self._delta(data)]
        place = self._places.get(at)
        if place is None:
            self.unthought += len(text(delta.get("thinking")))
            return []
        if at == self._text_at and delta.get("type") == "text_delta":
            return self._text(self._news.feed(str(delta.get("text") or "")))
        return [{**data, "index": place}]

    def _stop(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        at = count(data.get("index")) or 0
        is_open = at == self._text_at or self._places.get(at) == self._open
        return self._closed() if is_open and self._places.get(at) is not None else []

    def _end(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        usage = dict(mapping(data.get("usage")))
        usage["output_tokens"] = (count(usage.get("output_tokens")) or 0) + self._before.completion_tokens
        cached = self._before.cached_prompt_tokens
        prompt = count(usage.get("input_tokens")) or count(self._began_with.get("input_tokens"))
        if prompt is not None:
            usage["input_tokens"] = prompt + self._before.prompt_tokens - cached  # here cached tokens are counted apart
        if cached:
            read = count(usage.get("cache_read_input_tokens")) or count(self._began_with.get("cache_read_input_tokens"))
            usage["cache_read_input_tokens"] = (read or 0) + cached
        return [*self._closed(), {**data, "usage": usage}]

    def _closed(self, *, call_follows: bool = False) -> list[dict[str, Any]]:
        """Return the events that end the open block: the last of its text, and its stop.

        An unfinished thought of another target gets a signature of ours: one without is rejected when the client sends
        it back, and one with ours is left out then.
        """
        if self._unclosed:
            self._unclosed = False
            signature = {"type": "signature_delta", "signature": seal("", [])}
            is_needed = self._told.open_kind == "thinking" and not self._told.is_signed
            out = [{"type": "content_block_delta", "index": self._open, "delta": signature}] if is_needed else []
        else:
            out = self._text(self._news.end(call_follows=call_follows))
        if self._open is not None:
            out.append({"type": "content_block_stop", "index": self._open})
            self._open = None
        return out

    def _text(self, said: str) -> list[dict[str, Any]]:
        """New text, in the open block or in a new one: a block without text is rejected when it is sent back."""
        if not said:
            return []
        out: list[dict[str, Any]] = []
        if self._open is None:
            self._open, self._next = self._next, self._next + 1
            out.append({"type": "content_block_start", "index": self._open, "content_block": _EMPTY_TEXT})
        delta = {"type": "text_delta", "text": said}
        return [*out, {"type": "content_block_delta", "index": self._open, "delta": delta}]


_EMPTY_TEXT = {"type": "text", "text": ""}
_MESSAGES_EVENTS: Mapping[str, Callable[[_MessagesJoint, Mapping[str, Any]], list[dict[str, Any]]]] = {
    "message_start": _MessagesJoint._start,
    "content_block_start": _MessagesJoint._block,
    "content_block_delta": _MessagesJoint._delta,
    "content_block_stop": _MessagesJoint._stop,
    "message_delta": _MessagesJoint._end,
}


def joint(told: Told, news: News, before: Usage) -> Joint:
    """Return the joint of another target's stream to what was told; `before` is what the first part used."""
    return _ChatJoint(told, news, before) if told.dialect == "chat" else _MessagesJoint(told, news, before)


def restart_event(dialect: Dialect, facts: Mapping[str, Any]) -> StreamEvent:
    """The sign that all before it is void and another answer follows; clients that do not know this event skip it."""
    if dialect == "chat":
        made = written(dialect, [{"object": "router.restart", "choices": [], "router": dict(facts)}])[0]
        return made._replace(raw=b"event: router.restart\n" + made.raw)
    return written(dialect, [{"type": "router_restart", "router": dict(facts)}])[0]


def _summed_chat(usage: Mapping[str, Any], before: Usage) -> dict[str, Any]:
    prompt = (count(usage.get("prompt_tokens")) or 0) + before.prompt_tokens
    completion = (count(usage.get("completion_tokens")) or 0) + before.completion_tokens
    summed = {**usage, "prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
    if before.cached_prompt_tokens:
        details = mapping(usage.get("prompt_tokens_details"))
        cached = (count(details.get("cached_tokens")) or 0) + before.cached_prompt_tokens
        summed["prompt_tokens_details"] = {**details, "cached_tokens": cached}
    return summed
