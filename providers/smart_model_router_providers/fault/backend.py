"""A provider without a wire: logs each request, asks the script, and hands out the steps of the answer."""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from smart_model_router_providers.fault.answers import error_body, unknown_path
from smart_model_router_providers.fault.parsed_request import BadQuestion, Dialect, Question, read_question
from smart_model_router_providers.fault.replies import models
from smart_model_router_providers.fault.script import RunningScript, Script, ScriptDecision
from smart_model_router_providers.fault.steps import Step, play, whole

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
        """The number of calls that arrived: of an API key, of a model, or of all."""
        return self._calls[name]

    def in_flight(self, name: str | None = None) -> int:
        """The number of those that are still open."""
        return self._running[name]

    def max_in_flight(self, name: str | None = None) -> int:
        """The most that were ever open at once."""
        return self._most[name]


def _names(request: RecordedRequest) -> set[str | None]:
    return {None, request.key, request.model}


def masked(headers: Mapping[str, str]) -> dict[str, str]:
    """The headers without secrets."""
    return {name: MASKED if name in SECRET_HEADERS else value for name, value in headers.items()}


DIALECTS: Mapping[str, Dialect] = MappingProxyType(
    {
        "/chat/completions": "chat",
        "/messages": "messages",
        "/responses": "responses",
        "/embeddings": "embeddings",
    }
)
"""The dialect by the end of a path, so that any base URL works."""


KEPT_REQUESTS = 1000


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request being answered. `steps` is to be played once; `end` must be called however it ends."""

    steps: Iterator[Step]
    recorded: RecordedRequest | None = None
    _ledger: Ledger | None = None

    def head_sent(self, status: int) -> None:
        """Note the status that went out."""
        if self.recorded is not None:
            self.recorded.status = status

    def end(self, ending: Ending, now: float) -> None:
        """Note the end; the first one counts."""
        if self.recorded is not None and self._ledger is not None:
            self._ledger.end(self.recorded, ending, now)


class Backend:
    """The common part of the fault server and the scripted provider. Instants are monotonic seconds.

    `text` is every answer; None echoes the last user message. `wall` gives epoch seconds for headers with
    dates.
    """

    def __init__(
        self,
        script: Script,
        *,
        seed: int,
        name: str,
        text: str | None,
        models: Sequence[str],
        keep_requests: int,
        now: float | None,
        wall: Callable[[], float],
    ) -> None:
        self._seed = seed
        self._name = name
        self._text = text
        self._models = models
        self._keep = keep_requests
        self.wall = wall
        self.ledger = Ledger(keep_requests)
        self.set(script, now)

    def set(self, script: Script, now: float | None) -> None:
        """Follow another script from now on; its seconds begin at `now` (None: at its first call)."""
        self.running = RunningScript(script, seed=self._seed, now=now, wall=self.wall)
        self.script = script

    def forget(self) -> None:
        """Forget the recorded calls; calls under way end in the record they began in."""
        self.ledger = Ledger(self._keep)

    def begin(self, method: str, target: str, headers: Mapping[str, str], body: bytes, now: float) -> Exchange:
        """Take a request (`headers` lower-cased) that has arrived whole."""
        place, _, query = target.partition("?")
        path = place.rstrip("/")
        dialect = _spoken(path)
        if dialect is None or method != "POST":
            return Exchange(self._aside(method, path, headers))
        try:
            parsed = json.loads(body)
        except ValueError:
            parsed = None
        known: dict[str, Any] = parsed if isinstance(parsed, dict) else {}
        model = known.get("model")
        recorded = RecordedRequest(
            at=now,
            dialect=dialect,
            path=path,
            model=model if isinstance(model, str) else "",
            headers=masked(headers),
            body=known,
            key=_key(headers),
            stream=known.get("stream") is True,
            query=query,
        )
        self.ledger.begin(recorded)
        return Exchange(self._steps(dialect, parsed, recorded, now), recorded, self.ledger)

    def _steps(self, dialect: Dialect, body: object, recorded: RecordedRequest, now: float) -> Iterator[Step]:
        if not isinstance(body, dict):
            return whole(400, error_body(dialect, 400, "the body is not a JSON object"))
        try:
            question = read_question(dialect, body, number=self.ledger.calls(), say=self._say)
        except BadQuestion as error:
            return whole(400, error_body(dialect, 400, str(error)))
        return play(question, self._decide(question, recorded, now))

    def _decide(self, question: Question, recorded: RecordedRequest, now: float) -> ScriptDecision:
        return self.running.decide(recorded.key, question.model, question.total_tokens, self.ledger.in_flight, now)

    def _say(self, asked: str) -> str:
        if self._text is not None:
            return self._text
        return f"{self._name}: echo of the last user message: {asked}"

    def _aside(self, method: str, path: str, headers: Mapping[str, str]) -> Iterator[Step]:
        """Answer a request that calls no model: it is neither counted nor subject to the script."""
        if method == "GET" and path.endswith("/models"):
            return whole(200, models(self._models, anthropic="anthropic-version" in headers))
        if method in ("GET", "HEAD") and path in ("", "/v1", "/health"):
            return whole(200, b"" if method == "HEAD" else b'{"status":"ok"}')
        return whole(404, unknown_path(f"{method} {path}"))


class LoggedCalls:
    """The log of the calls that arrived at a backend; the base of the two providers that fail on purpose."""

    _backend: Backend

    @property
    def requests(self) -> list[RecordedRequest]:
        """The newest calls, oldest first."""
        return list(self._backend.ledger.requests)

    @property
    def in_flight(self) -> int:
        """The number of calls that are being answered."""
        return self._backend.ledger.in_flight()

    def calls(self, key: str | None = None) -> int:
        """The number of calls that arrived: for an API key, for a model, or in all."""
        return self._backend.ledger.calls(key)

    def max_in_flight(self, key: str | None = None) -> int:
        """The most calls that were ever open at once: for an API key, for a model, or in all."""
        return self._backend.ledger.max_in_flight(key)


def _spoken(path: str) -> Dialect | None:
    for ending, dialect in DIALECTS.items():
        if path.endswith(ending):
            return dialect
    return None


def _key(headers: Mapping[str, str]) -> str:
    scheme, _, token = headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    return bearer or headers.get("x-api-key", "") or headers.get("api-key", "")
