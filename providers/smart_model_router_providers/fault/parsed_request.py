"""A request as the fault server reads it: the few facts that a good answer depends on."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from smart_model_router.wires.outgoing import asked_before

Dialect = Literal["chat", "messages", "responses", "embeddings"]

CHARACTERS_PER_TOKEN = 4
ECHOED_CHARACTERS = 200  # a 10 MB prompt is not sent back


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call of a function in an answer. `arguments` are JSON text, or whatever a script has in its place."""

    name: str
    arguments: str

    @property
    def pieces(self) -> list[str]:
        """The arguments, token by token; at least one, however empty."""
        return _pieces(self.arguments) or [""]

    @property
    def decoded(self) -> object:
        """The arguments as a value, for the dialect that has no text for them; {} when they are not JSON."""
        try:
            return json.loads(self.arguments)
        except ValueError:
            return {}


@dataclass(frozen=True, slots=True)
class Reply:
    """A script's answer instead of the usual text: words (None: the usual ones), calls of functions, or both."""

    text: str | None
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """The inputs of a good answer: `number` counts a server's calls, `text` and `calls` are its content."""

    dialect: Dialect
    model: str
    stream: bool
    number: int
    text: str
    prompt_tokens: int
    finish: Literal["stop", "length"] = "stop"
    include_usage: bool = False
    body: Mapping[str, Any] = field(default_factory=dict)
    calls: tuple[ToolCall, ...] = ()

    def saying(self, text: str) -> Question:
        """The same with another text, cut at the caller's cap."""
        most = next((self.body[k] for k in _CAPS if isinstance(self.body.get(k), int) and self.body[k] > 0), None)
        if most is not None and _tokens(len(text)) > most:
            return replace(self, text=text[: most * CHARACTERS_PER_TOKEN], finish="length")
        return replace(self, text=text, finish="stop")

    def answered(self, reply: Reply) -> Question:
        """The same with what a script says; calls without words have no text."""
        silent = "" if reply.calls else self.text
        said = self.saying(silent if reply.text is None else reply.text)
        return said if said.finish == "length" else replace(said, calls=reply.calls)

    def call_id(self, index: int) -> str:
        """The id of one of its calls; ids are of one form in every dialect, as clients do not read them."""
        return f"call_{self.number}_{index}"

    @property
    def pieces(self) -> list[str]:
        """The answer's text, token by token."""
        return _pieces(self.text)

    @property
    def completion_tokens(self) -> int:
        """As many as there are pieces."""
        return _tokens(len(self.text)) + sum(_tokens(len(call.name) + len(call.arguments)) for call in self.calls)

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
    if dialect == "responses" and not isinstance(body.get("reasoning") or {}, Mapping):
        raise BadQuestion("reasoning: an object is needed")
    size = _length(body.get("system")) + _length(body.get("instructions")) + _length(asked)
    question = Question(dialect, model, body.get("stream") is True, number, "", _tokens(size) or 1, body=body)
    if dialect == "embeddings":
        return replace(question, stream=False)
    options = body.get("stream_options")
    usage = isinstance(options, Mapping) and options.get("include_usage") is True
    said = say(_last_user_text(asked)[:ECHOED_CHARACTERS]).removeprefix(_begun(dialect, body))
    return replace(question, include_usage=usage).saying(said)


_CAPS = ("max_completion_tokens", "max_tokens", "max_output_tokens")


def _pieces(text: str) -> list[str]:
    return [text[at : at + CHARACTERS_PER_TOKEN] for at in range(0, len(text), CHARACTERS_PER_TOKEN)]


def _tokens(characters: int) -> int:
    return math.ceil(characters / CHARACTERS_PER_TOKEN)


def _length(value: object) -> int:
    """The number of characters of text in a prompt of any shape; a token number counts as one token."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, int):
        return CHARACTERS_PER_TOKEN
    if isinstance(value, Mapping):
        return _length(value.get("content")) + _length(value.get("text"))
    return sum(map(_length, value)) if isinstance(value, list) else 0


def _begun(dialect: Dialect, body: Mapping[str, Any]) -> str:
    """The beginning of the answer that the caller wants gone on with, where a provider would go on.

    Messages does with any last message of the assistant; Chat when it is told to, by Mistral's mark or vLLM's; else
    it answers anew, as OpenAI does.
    """
    last = body["messages"][-1] if dialect in ("chat", "messages") else None
    if not isinstance(last, Mapping) or last.get("role") != "assistant":
        return ""
    told = dialect == "messages" or last.get("prefix") is True or body.get("continue_final_message") is True
    return _text(last.get("content")) if told else ""


def _last_user_text(asked: str | list[Any]) -> str:
    if isinstance(asked, str):
        return asked
    for message in reversed(asked_before(asked)):
        if isinstance(message, Mapping) and message.get("role") == "user":
            return _text(message.get("content"))
    return ""


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))
