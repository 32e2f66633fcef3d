"""The past that the dashboard shows: serving targets, failures, state changes and single requests.

A sink with bounds: 15 minutes in steps of 10 seconds, the newest transitions and requests. Texts of providers are not
in the events it keeps.
"""

from __future__ import annotations

import math
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from smart_model_router.domain.events import (
    AttemptFinished,
    BreakerChanged,
    GuardsExpired,
    OfflineChanged,
    OperatorSpoke,
    RequestFinished,
    RestStarted,
    SheddingChanged,
    StoreChanged,
    TargetRefused,
    TargetsEvicted,
    WaitFinished,
)
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.observability.worker import Batcher, OpenRequests
from smart_model_router_stats.delta import details_of

Details = Mapping[str, Any]


class Move(NamedTuple):
    """A state change in words; `bad` marks a turn for the worse."""

    kind: str
    subject: str
    state: str
    text: str
    bad: bool


def move_of(event: str, details: Details) -> Move:
    """Describe an event by its name and its fields (see `details_of`). One of a newer version is shown as it is."""
    return MOVES.get(event, _unknown)({**details, "event": event})


def _breaker(of: Details) -> Move:
    run = f" ({of['run']})" if of.get("run") else ""
    seconds = of.get("open_seconds")
    lasts = "" if seconds is None else f", asked again in {max(0.0, seconds):.0f} s"
    text = f"{of['kind']} breaker {of['from_state']} -> {of['to_state']}: {of['reason']}{run}{lasts}"
    return Move("breaker", of["owner"], of["to_state"], text, of["to_state"] in ("open", "isolated"))


def _operator(of: Details) -> Move:
    isolated = of["word"] == "isolate"
    text = f"{'isolated' if isolated else 'enabled'} by {of['by']}{': ' if of['why'] else ''}{of['why']}"
    return Move("operator", of["target"], "isolated" if isolated else "closed", text, isolated)


def _probe(of: Details) -> Move:
    return Move(
        "probe", of["target"], "half_open", f"one call asks whether {of['kind']} calls succeed again", bad=False
    )


def _rest(of: Details) -> Move:
    says = "as the provider said" if of["hinted"] else "our guess"
    text = f"{of['reason']} of {of['seconds']:.1f} s after {of['failure_class']}, {says}"
    return Move("rest", of["target"], of["reason"], text, bad=True)


def _offline(of: Details) -> Move:
    text = "no remote provider can be reached" if of["offline"] else "a remote provider answered again"
    return Move("offline", "network", "offline" if of["offline"] else "online", text, of["offline"])


def _shedding(of: Details) -> Move:
    verb = "began" if of["shedding"] else "ended"
    text = f"load shedding {verb}: {of['open_ratio']:.0%} of the providers are open"
    return Move("shedding", "router", verb, text, of["shedding"])


def _shed(of: Details) -> Move:
    return Move("shed", of["request_id"], "shed", f"a {of['criticality']} request was turned away", bad=True)


def _store(of: Details) -> Move:
    text = f"out of reach: {of['reason']}" if of["degraded"] else "within reach again"
    return Move("store", f"{of['store']} store", "degraded" if of["degraded"] else "ok", text, of["degraded"])


def _unknown(of: Details) -> Move:
    text = ", ".join(f"{key} {value}" for key, value in of.items() if value is not None and key != "event")
    return Move(of["event"], of["event"], "", text, bad=False)


MOVES: dict[str, Callable[[Details], Move]] = {
    "BreakerChanged": _breaker,
    "OperatorSpoke": _operator,
    "ProbeStarted": _probe,
    "RestStarted": _rest,
    "OfflineChanged": _offline,
    "SheddingChanged": _shedding,
    "RequestShed": _shed,
    "StoreChanged": _store,
}


STEP_SECONDS = 10
STEPS = 90
TRANSITIONS = 200
REQUESTS = 200
UNSERVED = ""
"""Stands for requests that no target served."""


@dataclass(slots=True)
class TimeStep:
    """The events of ten seconds."""

    number: int
    served: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    errors: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By failure class and target."""
    cost_usd: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    prompt_tokens: Counter[str] = field(default_factory=Counter)
    cached_prompt_tokens: Counter[str] = field(default_factory=Counter)


class ServedRequests:
    """The target that serves one model and since when; equals share the load, so one other answer changes nothing."""

    __slots__ = ("_newest", "last_at", "since", "target")

    def __init__(self) -> None:
        self.target = UNSERVED
        self.since = 0.0
        self.last_at = 0.0
        self._newest: deque[tuple[str, float]] = deque(maxlen=20)

    def note(self, target: str, at: float) -> None:
        """Note an answer (or a failure, by UNSERVED) at `at`, seconds since the epoch."""
        newest = self._newest
        newest.append((target, at))
        known, self.last_at = bool(self.last_at), at
        if known and target == self.target:
            return
        counts = Counter(one for one, _ in newest)
        if known and 4 * counts[self.target] >= len(newest) and any(one == self.target for one, _ in list(newest)[-4:]):
            return
        # Others have taken over: the one with most answers since the last answer of the one before.
        since = [(one, when) for one, when in newest]
        while known and any(one == self.target for one, _ in since):
            since.pop(0)
        self.target = Counter(one for one, _ in since).most_common(1)[0][0]
        self.since = next(when for one, when in since if one == self.target)


@dataclass(frozen=True, slots=True)
class ToldTransition:
    """A state change. `at` is seconds since the epoch; `bad` marks a turn for the worse."""

    number: int
    at: float
    kind: str
    subject: str
    state: str
    text: str
    bad: bool

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(slots=True)
class Trace:
    """A request that ended, with the events on its way."""

    finished: RequestFinished
    events: tuple[AttemptFinished | TargetRefused | WaitFinished, ...]
    at: float

    def line(self) -> dict[str, Any]:
        """One line of a list."""
        done = self.finished
        names = ("request_id", "dialect", "model", "outcome", "target", "attempts", "refusals", "seconds")
        return {"at": self.at, **{name: getattr(done, name) for name in names}}

    def to_dict(self) -> dict[str, Any]:
        """Everything, with instants in seconds since the request began."""
        done = self.finished
        began = done.at - done.seconds
        steps = [_drawn(event, began) for event in self.events]
        return {**self.line(), "waited_seconds": done.waited_seconds, "ttft_seconds": done.ttft_seconds, "steps": steps}


class DashboardHistory(Batcher):
    """Remembers events of one router (or of one after another). `clock` is that of the events' instants."""

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,  # noqa: TID251 - stamps for people
    ) -> None:
        super().__init__(
            {
                AttemptFinished: self._attempt,
                RequestFinished: self._request,
                TargetRefused: self._note,
                WaitFinished: self._note,
                BreakerChanged: self._move,
                OperatorSpoke: self._move,
                RestStarted: self._move,
                OfflineChanged: self._move,
                SheddingChanged: self._move,
                StoreChanged: self._move,
                GuardsExpired: self._forget,
                TargetsEvicted: self._forget,
            }
        )
        self.clock = clock
        self.wall = wall
        self.listeners: list[Callable[[ToldTransition], None]] = []
        self.transitions: deque[ToldTransition] = deque(maxlen=TRANSITIONS)
        self._steps: deque[TimeStep] = deque(maxlen=STEPS)
        self._step_ends = -math.inf
        self._requests: OrderedDict[str, Trace] = OrderedDict()
        self._serving: dict[str, ServedRequests] = {}
        self._runs: dict[str, Counter[str]] = {}
        self._open = OpenRequests[AttemptFinished | TargetRefused | WaitFinished]()
        self._moved = 0

    def follow(self, clock: Callable[[], float]) -> None:
        """Take the events of another router from now on, with its clock."""
        self.catch_up()
        self.clock = clock

    @property
    def steps(self) -> deque[TimeStep]:
        """The steps of ten seconds of the last 15 minutes, oldest first."""
        self.catch_up()
        return self._steps

    @property
    def requests(self) -> OrderedDict[str, Trace]:
        """The newest requests by id, oldest first."""
        self.catch_up()
        return self._requests

    @property
    def serving(self) -> dict[str, ServedRequests]:
        """The target that serves each model."""
        self.catch_up()
        return self._serving

    @property
    def runs(self) -> dict[str, Counter[str]]:
        """Failures of a target since its last success, by status or class."""
        self.catch_up()
        return self._runs

    def recent(self, seconds: float) -> Iterator[TimeStep]:
        """The steps of the last so many seconds, newest first."""
        least = int(self.clock() // STEP_SECONDS) - int(seconds // STEP_SECONDS)
        for step in reversed(self.steps):
            if step.number <= least:
                return
            yield step

    def covered(self, seconds: float) -> float:
        """The seconds that the steps of `recent(seconds)` cover: the newest is not over."""
        return seconds - STEP_SECONDS + self.clock() % STEP_SECONDS

    def _step(self, at: float) -> TimeStep:
        if at < self._step_ends:
            return self._steps[-1]
        number = int(at // STEP_SECONDS)
        steps = self._steps
        if not steps or steps[-1].number < number:
            steps.append(TimeStep(number))
            while steps[0].number <= number - STEPS:
                steps.popleft()
            self._step_ends = (number + 1.0) * STEP_SECONDS
        return steps[-1]

    def _attempt(self, event: AttemptFinished) -> None:
        step, target, failure = self._step(event.at), event.target, event.failure_class
        step.calls[target] += 1
        if failure is None:
            self._runs.pop(target, None)
        elif failure is not FailureClass.CANCELLED:
            step.errors[failure.value, target] += 1
            run = self._runs.setdefault(target, Counter())
            run[failure.value if event.status is None else str(event.status)] += 1
        if event.cost_usd:
            step.cost_usd[target] += event.cost_usd
        if event.usage is not None:
            step.prompt_tokens[target] += event.usage.prompt_tokens
            step.cached_prompt_tokens[target] += event.usage.cached_prompt_tokens
        self._note(event)

    def _forget(self, event: GuardsExpired | TargetsEvicted) -> None:
        for name in event.names:
            self._runs.pop(name, None)

    def _note(self, event: AttemptFinished | TargetRefused | WaitFinished) -> None:
        self._open.note(event.request_id, event)

    def _request(self, event: RequestFinished) -> None:
        at = self._wall_of(event.at)
        if event.outcome != "cancelled":
            model, good = event.configured_model, event.outcome not in ("failed", "rejected_local")
            target = (event.target or UNSERVED) if good else UNSERVED
            self._step(event.at).served[target] += 1
            serving = self._serving.get(model)
            if serving is None:
                serving = self._serving[model] = ServedRequests()
            serving.note(target, at)
        self._requests[event.request_id] = Trace(event, tuple(self._open.take(event.request_id)), at)
        if len(self._requests) > REQUESTS:
            self._requests.popitem(last=False)

    def _move(
        self,
        event: BreakerChanged | OperatorSpoke | RestStarted | OfflineChanged | SheddingChanged | StoreChanged,
    ) -> None:
        details = details_of(event)
        if isinstance(event, BreakerChanged) and event.to_state == "open":
            details["run"] = told(self._runs.get(event.owner, {}))
        self._moved += 1
        moved = ToldTransition(self._moved, self._wall_of(event.at), *move_of(type(event).__name__, details))
        self.transitions.append(moved)
        for listener in self.listeners:
            listener(moved)

    def _wall_of(self, instant: float) -> float:
        return self.wall() - (self.clock() - instant)


def told(run: Mapping[str, int]) -> str:
    """Failures in a row, in words: `529 x 7, TIMEOUT x 1`."""
    return ", ".join(f"{what} x {count}" for what, count in run.items())


def _drawn(event: AttemptFinished | TargetRefused | WaitFinished, began: float) -> dict[str, Any]:
    until = event.at - began
    if isinstance(event, AttemptFinished):
        failed = None if event.failure_class is None else event.failure_class.value
        return {
            "kind": "attempt",
            "target": event.target,
            "from": event.admitted_at - began,
            "until": until,
            "first": None if event.ttft_seconds is None else event.admitted_at + event.ttft_seconds - began,
            "failure": failed,
            "status": event.status,
            "probe": event.probe,
        }
    if isinstance(event, TargetRefused):
        return {
            "kind": "refusal",
            "target": event.target,
            "from": until,
            "until": until,
            "reason": event.reason,
            "retry_after": event.retry_after,
        }
    return {"kind": "wait", "target": event.woken_by, "from": until - event.seconds, "until": until}
