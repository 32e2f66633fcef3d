"""What is told of prompts and answers, when the configuration asks for it: a hash, a redacted text, or all but keys."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Literal

Mode = Literal["hash", "redacted", "full"]
MASK = "***"
LIMIT = 32_768
"""Characters that are told of a prompt, and of an answer."""
_MARGIN = 1024
"""Read beyond the limit and left out again: a secret that was cut in two would not be known for one."""
# Who somebody is, in any language: addresses of e-mail, and numbers as long as a telephone's or a card's.
_PERSONAL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?<![\w.])\+?\d(?:[ ()/-]?\d){8,}(?![\w.])")


class ContentCapture:
    """Makes what may be told of content.

    `scrub` takes keys out of a text, in every mode. `until` is the instant (seconds since the epoch, of `wall`) from
    which nothing is told any more; None is never.
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
        """Whether its time has come."""
        return self._until is not None and self._wall() >= self._until

    def told(self, text: str) -> str:
        """What may be told of a text; of none, nothing."""
        return self._makers[self.mode](text) if text else ""

    def _hash(self, text: str) -> str:
        return "sha256:" + hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

    def _full(self, text: str) -> str:
        if len(text) <= LIMIT:
            return self._scrub(text)
        return self._scrub(text[: LIMIT + _MARGIN])[:-_MARGIN] + f"... ({len(text)} characters)"
