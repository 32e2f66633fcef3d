"""The message of a Chat answer, put together from the pieces of another dialect's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from smart_model_router.wires.translate.hosted import SEARCHES


@dataclass(slots=True)
class ChatMessage:
    """What was said, refused, thought (a piece for each thought), called, cited and searched for, each in order."""

    said: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    details: list[dict[str, Any]] = field(default_factory=list)
    calls: list[dict[str, Any]] = field(default_factory=list)
    cited: list[dict[str, Any]] = field(default_factory=list)
    searches: list[dict[str, Any]] = field(default_factory=list)

    @property
    def length(self) -> int:
        """How many characters have been said."""
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
