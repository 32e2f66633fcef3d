"""The calls that arrived: counted by API key and by model, the newest ones kept in full."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Ending = Literal["open", "answered", "cut", "abandoned"]
MASKED = "***"
SECRET_HEADERS = frozenset({"authorization", "x-api-key", "api-key", "cookie"})


@dataclass(slots=True)
class RecordedRequest:
    """One call as it arrived. `at` and `ended_at` are monotonic seconds (the event loop's clock).

    `key` is the API key, the empty string without one; `headers` has it masked. `ending` is open, answered,
    cut (by a fault) or abandoned (the client left first); `status` is None until a head was sent.
    """

    at: float
    dialect: str
    path: str
    model: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    key: str = field(default="", repr=False)
    stream: bool = False
    status: int | None = None
    ending: Ending = "open"
    ended_at: float | None = None
    query: str = ""


class Ledger:
    """Counts for ever; keeps the newest `keep` requests."""

    def __init__(self, keep: int) -> None:
        self.requests: deque[RecordedRequest] = deque(maxlen=keep)
        self._calls: Counter[str | None] = Counter()
        self._running: Counter[str | None] = Counter()
        self._most: Counter[str | None] = Counter()

    def begin(self, request: RecordedRequest) -> None:
        """Count the arrival."""
        self.requests.append(request)
        for name in _names(request):
            self._calls[name] += 1
            self._running[name] += 1
            self._most[name] = max(self._most[name], self._running[name])

    def end(self, request: RecordedRequest, ending: Ending, now: float) -> None:
        """Count the end; the second end of a request changes nothing."""
        if request.ending != "open":
            return
        request.ending, request.ended_at = ending, now
        for name in _names(request):
            self._running[name] -= 1

    def calls(self, name: str | None = None) -> int:
        """How many calls arrived: of an API key, of a model, or all of them."""
        return self._calls[name]

    def in_flight(self, name: str | None = None) -> int:
        """How many of those are still open."""
        return self._running[name]

    def max_in_flight(self, name: str | None = None) -> int:
        """The most that were ever open at once."""
        return self._most[name]


def _names(request: RecordedRequest) -> set[str | None]:
    return {None, request.key, request.model}


def masked(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers without secrets."""
    return {name: MASKED if name in SECRET_HEADERS else value for name, value in headers.items()}
