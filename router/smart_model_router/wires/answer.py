"""What a whole answer amounts to, whatever its dialect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from smart_model_router.domain.fast_dataclass import quick

if TYPE_CHECKING:
    from smart_model_router.domain.outcome import Usage

UNFINISHED_REASONS = frozenset(
    {
        "length",
        "content_filter",
        # Messages (and its `model_context_window_exceeded`) say the same in other words.
        "max_tokens",
        "model_context_window_exceeded",
        "refusal",
        "max_output_tokens",  # Responses
    }
)
"""Finish reasons that explain an answer without content: the cap or a filter, not an empty model."""


@quick
@dataclass(frozen=True, slots=True)
class Answer:
    """A decoded answer, judged. `malformed` says what is not of its dialect ("" when all is).

    `empty` is true without text, tool call, reasoning or refusal, unless the finish reason explains it.
    `error` is the provider's error object when a 200 carried one.
    """

    usage: Usage | None = None
    finish: str | None = None
    empty: bool = False
    malformed: str = ""
    error: object = None
