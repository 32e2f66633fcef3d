"""Chat Completions: its stream chunks and its answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import EventKind, StreamEvent, Usage
from smart_model_router.wires.outcomes import UNFINISHED_REASONS, Answer, failure_of
from smart_model_router.wires.values import count, is_list, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Mapping

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
