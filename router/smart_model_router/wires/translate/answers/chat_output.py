"""A Chat answer put together from the pieces of another dialect's: its message, or its chunks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from smart_model_router.wires.translate.hosted import SEARCHES

if TYPE_CHECKING:
    from smart_model_router.wires.translate.translation import Terms


@dataclass(slots=True)
class ChatMessage:
    """The texts, refusals, thoughts (a piece each), calls, citations and searches of an answer, each in order."""

    said: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    cited: list[dict[str, Any]] = field(default_factory=list)
    searches: list[dict[str, Any]] = field(default_factory=list)

    @property
    def length(self) -> int:
        """The number of characters that have been said."""
        return sum(map(len, self.said))

    def body(self, between: str = "") -> dict[str, Any]:
        """The message as Chat writes it. `between` stands between two thoughts."""
        out: dict[str, Any] = {
            "role": "assistant",
            "content": "".join(self.said) or None,
            "refusal": "".join(self.refused) or None,
        }
        if "".join(self.thoughts):
            out["reasoning_content"] = between.join(filter(None, self.thoughts))
        more = {
            "reasoning_details": self.details,
            "tool_calls": self.calls,
            "annotations": self.cited,
            SEARCHES: self.searches,
        }
        return out | {key: found for key, found in more.items() if found}


class Chunks:
    """Writes the chunks of one stream. `id` and `model` are set before the first one."""

    def __init__(self, terms: Terms) -> None:
        self.id = ""
        self.model = ""
        self._created = terms.created
        self._begun = False
        self._calls = 0

    def delta(self, **delta: Any) -> list[dict[str, Any]]:
        """The chunk that adds `delta`, after the one that names the role when it is the first."""
        return [*self.head(), self._chunk(delta)]

    def head(self) -> list[dict[str, Any]]:
        """The chunk that names the role, once."""
        if self._begun:
            return []
        self._begun = True
        return [self._chunk({"role": "assistant", "content": ""})]

    def likely(self, piece: str, logprobs: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The chunk that adds text, with the probabilities of its tokens."""
        made = self.delta(content=piece)
        made[-1]["choices"][0]["logprobs"] = {"content": logprobs, "refusal": None}
        return made

    def custom_call(self, call: dict[str, Any]) -> list[dict[str, Any]]:
        """A call of a custom tool, whole."""
        number = self._calls
        self._calls += 1
        return self.delta(tool_calls=[{"index": number, **call}])

    def call(self, call_id: str, name: str) -> tuple[int, list[dict[str, Any]]]:
        """A new tool call: its number, and the chunk that opens it."""
        number = self._calls
        self._calls += 1
        function = {"name": name, "arguments": ""}
        return number, self.delta(
            tool_calls=[{"index": number, "id": call_id, "type": "function", "function": function}]
        )

    def arguments(self, number: int, piece: str) -> list[dict[str, Any]]:
        """The chunk that adds to the arguments of a call."""
        return self.delta(tool_calls=[{"index": number, "function": {"arguments": piece}}])

    @property
    def called(self) -> bool:
        """Return whether there was any tool call."""
        return self._calls > 0

    def finish(self, reason: str) -> list[dict[str, Any]]:
        """The chunk with the finish reason."""
        return [*self.head(), self._chunk({}, reason)]

    def usage(self, usage: dict[str, Any]) -> dict[str, Any]:
        """The chunk with the token counts, which is the last."""
        return {**self._chunk({}), "choices": [], "usage": usage}

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self.model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
        }
