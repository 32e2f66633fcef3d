"""Captures prompts and answers for sinks, when configured: as a hash, a redacted text, or all but keys."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Literal

Mode = Literal["hash", "redacted", "full"]
MASK = "***"
LIMIT = 32_768
"""Characters that are captured of a prompt, and of an answer."""
_MARGIN = 1024
"""Characters that are read beyond the limit and left out again: a secret cut in two would not be recognised."""
# Personal data in any language: addresses of e-mail, and numbers as long as a telephone's or a card's.
_PERSONAL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w.])\+?\d(?:[ ()/-]?\d){8,}(?![\w.])")


class ContentCapture:
    """Captures content as `mode` allows.

    `scrub` takes keys out of a text, in every mode. `until` is the instant (seconds since the epoch, of `wall`) at
    which the capture ends; None is never.
    """

    def __init__(
        self, mode: Mode, *, scrub: Callable[[str], str], wall: Callable[[], float], until: float | None = None
    ) -> None:
        self.mode: Mode = mode
        self._scrub = scrub
        self._wall = wall
        self._until = until
        self._makers: Mapping[Mode, Callable[[str], str]] = {
            "hash": self._hash,
            "redacted": lambda text: _PERSONAL.sub(MASK, self._full(text)),
            "full": self._full,
        }

    @property
    def over(self) -> bool:
        """True when the capture has ended."""
        return self._until is not None and self._wall() >= self._until

    def told(self, text: str) -> str:
        """The captured form of a text; "" for none."""
        return self._makers[self.mode](text) if text else ""

    def _hash(self, text: str) -> str:
        return "sha256:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

    def _full(self, text: str) -> str:
        if len(text) <= LIMIT:
            return self._scrub(text)
        return self._scrub(text[: LIMIT + _MARGIN])[:-_MARGIN] + f"... ({len(text)} characters)"
