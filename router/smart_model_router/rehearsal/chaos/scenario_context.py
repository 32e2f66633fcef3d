"""The place of a scenario: it asks and strikes here, waits, and records findings with their verdicts."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from smart_model_router.domain.errors import RequestRejected, RouterUnavailable, StreamInterrupted
from smart_model_router.domain.events import BreakerChanged
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.report import RouteReport
from smart_model_router.flow.inspection import TargetStatus
from smart_model_router.rehearsal.chaos.fault_fleet import ANSWER, FaultFleet
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.fault import Fault, FaultServer


class Verdict(StrEnum):
    """From best to worst.

    pass: every promise was kept. partial: every request was served as promised, but a figure missed its bound. safe:
    a request was not served, and its caller was told in time, with the reasons. fail: a promise was broken.
    """

    PASS = "pass"  # noqa: S105 - a verdict
    PARTIAL = "partial"
    SAFE = "safe"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One promise, whether it was kept, and what was measured. `otherwise` is the verdict when it was not."""

    promise: str
    kept: bool
    measured: str
    otherwise: Verdict


def worst(findings: Iterable[Finding]) -> Verdict:
    """The verdict over all findings."""
    order = list(Verdict)
    missed = (order.index(finding.otherwise) for finding in findings if not finding.kept)
    return order[max(missed, default=0)]


class Ending(StrEnum):
    """The end of a request, as its caller sees it.

    whole: the right answer, all of it. cut: a part of the right answer (its beginning, or, with `malformed_events`
    "skip", all but what could not be read), and an error that says it is only that. rejected: the request's own fault,
    with the provider's reason. unserved: no target could, and the error names those tried. wrong: anything else. hung:
    nothing in time.
    """

    WHOLE = "whole"
    CUT = "cut"
    REJECTED = "rejected"
    UNSERVED = "unserved"
    WRONG = "wrong"
    HUNG = "hung"


@dataclass(frozen=True, slots=True)
class ClientCall:
    """A question that ended after `seconds`; `told` is the error's name, or what is wrong."""

    ending: Ending
    seconds: float
    report: RouteReport | None
    told: str = ""


def body_of(number: int, model: str, *, prefill: bool = False) -> dict[str, Any]:
    """A question no other is equal to; with `prefill` its answer has already begun."""
    question = f"number {number}: what becomes of a question when its provider fails in the middle of the answer?"
    messages = [{"role": "user", "content": question}]
    return {"model": model, "messages": [*messages, {"role": "assistant", "content": "It"}] if prefill else messages}


async def ask(
    router: SmartModelRouter, body: Mapping[str, Any], *, stream: bool, timeout: float, grace: float
) -> ClientCall:
    """Ask, with `timeout` as the deadline; a request that has not ended `grace` seconds after it hangs."""
    right = f"{ANSWER}: echo of the last user message: {body['messages'][0]['content']}"
    call = _streamed(router, body, timeout) if stream else _whole(router, body, timeout)
    began = time.monotonic()
    ending, report, told = Ending.HUNG, None, f"not back after {timeout + grace:.1f} s"
    try:
        text, report = await asyncio.wait_for(call, timeout + grace)
        ending, told = (Ending.WHOLE, "") if text == right else (Ending.WRONG, f"said {text[:60]!r}")
    except TimeoutError:
        pass
    except StreamInterrupted as error:
        told, report = type(error).__name__, error.report
        holes = report is not None and report.malformed_events > 0
        part = _is_within(error.text, right) if holes else right.startswith(error.text)
        ending = Ending.CUT if error.text and part else Ending.WRONG
    except RequestRejected as error:
        ending, told, report = Ending.REJECTED, type(error).__name__, error.report
    except RouterUnavailable as error:
        named = bool(error.attempts or error.refusals)
        ending = Ending.UNSERVED if named else Ending.WRONG
        told, report = type(error).__name__ + ("" if named else " without a reason"), error.report
    except Exception as bug:  # noqa: BLE001 - whatever it is, the router promised never to raise it
        ending, told = Ending.WRONG, f"{type(bug).__name__}: {bug}"
    return ClientCall(ending, time.monotonic() - began, report, told)


def _is_within(text: str, right: str) -> bool:
    """True when `text` is `right` with pieces left out."""
    rest = iter(right)
    return all(character in rest for character in text)


async def _whole(router: SmartModelRouter, body: Mapping[str, Any], timeout: float) -> tuple[str, RouteReport]:
    reply = await router.chat(body, timeout=timeout)
    return str(reply.body["choices"][0]["message"]["content"]), reply.report


async def _streamed(router: SmartModelRouter, body: Mapping[str, Any], timeout: float) -> tuple[str, RouteReport]:
    async with router.stream_chat(body, timeout=timeout) as stream:
        pieces = [choice["delta"].get("content") or "" async for chunk in stream for choice in chunk["choices"]]
    return "".join(pieces), stream.report


_SLACK = 1.0
"""Seconds that sockets and a loaded machine may add to what the rules say."""
_LEFT = 2.0
"""Seconds in which connections that were given up may end."""


class ScenarioContext:
    """One scenario's fleet, with the provider that is struck: the one whose target is the first choice.

    `others` are the providers of the tested model's tiers besides it, in order. `lag` is by how many seconds the event
    loop was late at worst: bounds of time are widened by it.
    """

    def __init__(self, fleet: FaultFleet) -> None:
        self.fleet = fleet
        self.router = fleet.router
        self.rules = fleet.config.resilience
        self.asked: list[ClientCall] = []
        self.findings: list[Finding] = []
        self.lag = 0.0
        tiers = fleet.model.tiers
        first = self.router.get_model_for_tier(tiers[0].name, fleet.model.name).target
        self.victim = first.partition("/")[0]
        named = dict.fromkeys(mention.provider for tier in tiers for mention in tier.targets)
        self.others = [name for name in named if name != self.victim]
        self._numbers = 0
        self._struck: list[tuple[str, int]] = []

    @property
    def server(self) -> FaultServer:
        """The struck provider's server."""
        return self.fleet.servers[self.victim]

    @property
    def targets(self) -> list[TargetStatus]:
        """The struck provider's targets as they stand."""
        return [status for status in self.router.targets() if status.provider == self.victim]

    @property
    def has_others(self) -> bool:
        """True when a provider other than the struck one could answer at all."""
        return any(name != self.victim for name in self.fleet.servers)

    @property
    def slack(self) -> float:
        """Seconds by which something may be later than the rules say."""
        return _SLACK + 2 * self.lag

    def strike(self, *faults: Fault, at: str | None = None) -> None:
        """Let a provider (the first choice's) follow this script from now on."""
        name = at or self.victim
        self._struck.append((name, self.fleet.servers[name].calls()))
        self.fleet.strike(*faults, at=name)

    def heal(self) -> None:
        """Let every provider be well."""
        for name in self.fleet.servers:
            self.fleet.strike(at=name)

    async def ask(self, *, stream: bool = False, prefill: bool = False, timeout: float | None = None) -> ClientCall:
        """Ask one question, as long as the configuration lets one take."""
        self._numbers += 1
        body = body_of(self._numbers, self.fleet.model.name, prefill=prefill)
        limit = self.rules.timeouts.total if timeout is None else timeout
        asked = await ask(self.router, body, stream=stream, timeout=limit, grace=self.slack)
        self.asked.append(asked)
        return asked

    async def in_turn(self, count: int, *, stream: bool | None = None, pause: float = 0.0) -> list[ClientCall]:
        """So many questions one after the other; `stream` None: every second one streamed."""
        answers = []
        for number in range(count):
            answers.append(await self.ask(stream=number % 2 == 1 if stream is None else stream))
            await asyncio.sleep(pause)
        return answers

    async def at_once(self, count: int, *, stream: bool = False) -> list[ClientCall]:
        """So many questions at the same time."""
        return await asyncio.gather(*(self.ask(stream=stream) for _ in range(count)))

    async def load(self, seconds: float, per_second: float, *, timeout: float | None = None) -> list[ClientCall]:
        """Questions at an even pace, however slowly they are answered, until all are; every second one streamed."""
        count = max(1, round(seconds * per_second))
        async with asyncio.TaskGroup() as group:
            tasks = []
            for number in range(count):
                tasks.append(group.create_task(self.ask(stream=number % 2 == 1, timeout=timeout)))
                await asyncio.sleep(1 / per_second)
        return [task.result() for task in tasks]

    async def until_out(self) -> None:
        """Ask, many at a time, until every breaker of the struck provider that is used is open."""
        for _ in range(4):
            await self.at_once(10 * len(self.router.targets()))
            if {status.refusal for status in self.targets} - {None} == {"open"}:
                return

    async def until_due(self) -> None:
        """Sleep until the struck provider may be asked again, as far as is known."""
        await asyncio.sleep(max([status.retry_after or 0.0 for status in self.targets], default=0.0) + 0.05)

    def find(self, promise: str, kept: bool, measured: str, otherwise: Verdict = Verdict.PARTIAL) -> None:
        """Note a finding; `otherwise` is the verdict when the promise was not kept."""
        self.findings.append(Finding(promise, kept, measured, otherwise))

    def find_spared(self, since: float) -> None:
        """A provider that is down is left alone: three calls for a target and another at the end of every rest."""
        calls = self._calls_since_strike(self.victim)
        rest = min(self.rules.cooldown.failure, self.rules.cooldown.timeout, self.rules.breaker.open)
        bound = round((3 + (time.monotonic() - since) / rest) * len(self.targets))
        if self.has_others:
            self.find("the broken provider is left alone", calls <= bound, f"{calls} calls, at most {bound}")

    def find_unblamed(self, *classes: FailureClass) -> None:
        """None of these failures opens a breaker."""
        opened = [
            event for event in self.fleet.events if isinstance(event, BreakerChanged) and event.to_state == "open"
        ]
        what = ", ".join(sorted({event.owner for event in opened})) or "none"
        self.find(f"no breaker opens for {' or '.join(classes)}", not opened, f"open: {what}", Verdict.FAIL)

    def share(self, answers: list[ClientCall]) -> float:
        """Of these answers the share that the struck provider gave, in [0, 1]."""
        served = [asked.report.target for asked in answers if asked.report is not None and asked.report.target]
        return sum(target.startswith(f"{self.victim}/") for target in served) / max(1, len(served))

    async def conclude(self, allows: frozenset[Ending]) -> None:
        """The findings every scenario shares; `allows` are the ways its questions may end."""
        count = Counter(asked.ending for asked in self.asked)
        slowest = max((asked.seconds for asked in self.asked), default=0.0)
        told = Counter(asked.told for asked in self.asked if asked.ending not in allows)
        reasons = "".join(f"; {number} x {what}" for what, number in told.most_common(3))
        well = sum(count[ending] for ending in allows)
        ways = ", ".join(f"{number} {ending}" for ending, number in sorted(count.items()))
        self.find("no question hangs", not count[Ending.HUNG], f"slowest {slowest:.2f} s", Verdict.FAIL)
        self.find("no answer is wrong, no error unnamed", not count[Ending.WRONG], ways, Verdict.FAIL)
        self.find("every request is served", well == len(self.asked), ways + reasons, Verdict.SAFE)
        for name, before in self._struck:
            calls = self.fleet.servers[name].calls() - before
            self.find("the fault was met", calls > 0, f"{calls} calls at {name} from then on")
        left = await self._left()
        self.find("nothing is left behind", not left, ", ".join(left) or "nothing in flight", Verdict.FAIL)

    async def _left(self) -> list[str]:
        deadline = time.monotonic() + _LEFT + self.slack
        while True:
            left = list(self._in_flight())
            if not left or time.monotonic() > deadline:
                return left
            await asyncio.sleep(0.02)

    def _in_flight(self) -> Iterator[str]:
        for status in self.router.targets():
            if status.in_flight:
                yield f"{status.in_flight} places of {status.id}"
        for name, server in self.fleet.servers.items():
            if server.in_flight:
                yield f"{server.in_flight} calls at {name}"

    def _calls_since_strike(self, name: str) -> int:
        before = next(calls for struck, calls in reversed(self._struck) if struck == name)
        return self.fleet.servers[name].calls() - before

    async def watch(self) -> None:
        """Measure `lag` until cancelled."""
        while True:
            due = time.monotonic() + 0.05
            await asyncio.sleep(0.05)
            self.lag = max(self.lag, time.monotonic() - due)
