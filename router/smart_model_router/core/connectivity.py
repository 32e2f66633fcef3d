"""Is it the providers, or is it us? When every remote provider becomes unreachable at once, it is us."""

from __future__ import annotations

from collections.abc import Container

_TOGETHER_SECONDS = 10.0
_PASS_SECONDS = 1.0


class Connectivity:
    """What the transport breakers of all remote providers say together (routing.md section 3)."""

    __slots__ = ("_last_pass", "_last_success", "_opened_at", "_remotes", "offline")

    def __init__(self, remotes: int) -> None:
        self._remotes = remotes
        self._opened_at: dict[str, float] = {}
        self._last_success: float | None = None
        self._last_pass = 0.0
        self.offline = False

    def go_on(self, remotes: int, same: Container[str]) -> None:
        """The configuration changed: there are so many remotes, and those named are the same as before."""
        self._remotes = remotes
        self._opened_at = {name: at for name, at in self._opened_at.items() if name in same}

    @property
    def remotes(self) -> int:
        """How many remote providers there are."""
        return self._remotes

    def withholds(self, provider: str, now: float) -> bool:
        """Whether a trip of `provider`'s transport breaker would be the last of all: then it is not its fault."""
        if self.offline:
            return True
        others = [at for name, at in self._opened_at.items() if name != provider]
        if self._remotes < 2 or len(others) < self._remotes - 1:
            return False
        first = min(others)
        silent_since = self._last_success is None or self._last_success < first
        return silent_since and now - first <= _TOGETHER_SECONDS

    def moved(self, provider: str, is_open: bool, now: float) -> None:
        """A transport breaker tripped or closed."""
        if is_open:
            self._opened_at[provider] = now
        else:
            self._opened_at.pop(provider, None)

    def went_offline(self, now: float) -> bool:
        """A trip was withheld; True when this is the beginning of being offline."""
        if self.offline:
            return False
        self.offline = True
        self._last_pass = now
        return True

    def reached(self, now: float) -> bool:
        """A remote answered; True when this ends being offline."""
        self._last_success = now
        was_offline, self.offline = self.offline, False
        return was_offline

    def pass_at(self, now: float) -> float:
        """When the next request may try a remote: `now` or later. Online it is always `now`."""
        return max(now, self._last_pass + _PASS_SECONDS) if self.offline else now

    def take_pass(self, now: float) -> None:
        """A request goes out to see."""
        self._last_pass = now
