"""A request as the fault server reads it: the few facts that a good answer depends on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Dialect = Literal["chat", "messages", "responses", "embeddings"]

CHARACTERS_PER_TOKEN = 4
ECHOED_CHARACTERS = 200  # a 10 MB prompt is not sent back


@dataclass(frozen=True, slots=True)
class Question:
    """What a good answer depends on: `number` counts the calls of a server, `text` is what will be said."""

    dialect: Dialect
    model: str
    stream: bool
    number: int
    text: str
    prompt_tokens: int
    finish: Literal["stop", "length"] = "stop"
    include_usage: bool = False
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pieces(self) -> list[str]:
        """The answer's text, token by token."""
        return [self.text[at : at + CHARACTERS_PER_TOKEN] for at in range(0, len(self.text), CHARACTERS_PER_TOKEN)]

    @property
    def completion_tokens(self) -> int:
        """As many as there are pieces."""
        return _tokens(len(self.text))

    @property
    def total_tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt_tokens + self.completion_tokens


class BadQuestion(ValueError):
    """The body is no request of its dialect; the message says why."""


def read_question(dialect: Dialect, body: Mapping[str, Any], *, number: int, say: Callable[[str], str]) -> Question:
    """Read the few facts an answer depends on; `say` makes the answer's text of the last user message."""
    model = body.get("model")
    if not isinstance(model, str) or not model:
        raise BadQuestion("model: a model name is needed")
    prompt = "messages" if dialect in ("chat", "messages") else "input"
    asked = body.get(prompt)
    if not asked or not isinstance(asked, (str, list)) or (prompt == "messages" and isinstance(asked, str)):
        raise BadQuestion(f"{prompt}: a non-empty list is needed")
    size = _length(body.get("system")) + _length(body.get("instructions")) + _length(asked)
    question = Question(dialect, model, body.get("stream") is True, number, "", _tokens(size) or 1, body=body)
    if dialect == "embeddings":
        return replace(question, stream=False)
    text, finish = say(_last_user_text(asked)[:ECHOED_CHARACTERS]), question.finish
    most = next((body[k] for k in _CAPS if isinstance(body.get(k), int) and body[k] > 0), None)
    if most is not None and _tokens(len(text)) > most:
        text, finish = text[: most * CHARACTERS_PER_TOKEN], "length"
    options = body.get("stream_options")
    usage = isinstance(options, Mapping) and options.get("include_usage") is True
    return replace(question, text=text, finish=finish, include_usage=usage)


_CAPS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def _tokens(characters: int) -> int:
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


def _length(value: object) -> int:
    """How many characters of text are in a prompt, whatever its shape; a token number counts as one token."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, int):
        return CHARACTERS_PER_TOKEN
    if isinstance(value, Mapping):
        return _length(value.get("content")) + _length(value.get("text"))
    return sum(map(_length, value)) if isinstance(value, list) else 0


def _last_user_text(asked: str | list[Any]) -> str:
    if isinstance(asked, str):
        return asked
    for message in reversed(asked):
        if isinstance(message, Mapping) and message.get("role") == "user":
            return _text(message.get("content"))
    return ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))
