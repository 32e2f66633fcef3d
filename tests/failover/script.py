"""What a scripted upstream does with a call: the actions, and scripts that choose one for each call. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

ANSWER = " ".join(f"word{number:02}" for number in range(1, 61))
"""Every upstream means this answer of 60 words."""
PREFILL_REFUSED = "assistant message prefill is not supported"


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answer with a status and an error object."""

    status: int
    message: str
    code: str = "server_error"
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Reset:
    """Read the request, then reset the TCP connection."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Stream the answer after `delay_seconds`, up to `words`. The connection closes after `linger_seconds`."""

    delay_seconds: float = 0.0
    words: int | None = None
    broken_after: int | None = None
    sends_done: bool = True
    linger_seconds: float = 0.0

    @property
    def is_whole(self) -> bool:
        """All words are sent, with finish reason and usage."""
        return self.words is None


Action = Refuse | Reset | Answer
Script = Callable[[int, float], Action]
"""(number of the call from 0 on, seconds since the first call) -> the action."""
OK = Answer()


def in_turn(*actions: Action) -> Script:
    """One action for each call; the last one repeats."""
    return lambda number, _seconds: actions[min(number, len(actions) - 1)]


def switch_after(seconds: float, before: Action, after: Action) -> Script:
    """`before` for so many seconds from the first call on, then `after`."""
    return lambda _number, elapsed: before if elapsed < seconds else after
