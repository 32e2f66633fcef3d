"""`smr demo`: a fleet fails in turn, a real router answers every question, and everything shown was measured."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import cycle
from typing import TYPE_CHECKING, TextIO

from rich.text import Text

from smart_model_router.cli.demo_fleet import (
    MODEL,
    PRIMARY,
    REMOTES,
    SECOND,
    TIMINGS,
    DemoFigures,
    DemoFleet,
    Expectation,
    due_at,
    half_open_spans,
    most_at_once,
    probe_spans,
    target,
    trips,
    waited_after_429,
)
from smart_model_router.cli.output import ExitCode, console, print_json, print_table, printable
from smart_model_router.domain.errors import ConfigurationError, SmartRouterError, StreamInterrupted
from smart_model_router.domain.events import RestStarted
from smart_model_router.domain.report import RouteReport
from smart_model_router.wires import text_of
from smart_model_router_providers.fault import Fault
from smart_model_router_providers.local import is_loadable

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Demo

_SHOWN = 72
"""Characters of an answer that are shown."""


class Narrator:
    """Writes to one stream; nothing is kept."""

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self._console = console(file)

    def opening(self, timings: Mapping[str, float]) -> None:
        """The timings, before anything happens."""
        self._say("Three providers on loopback, a real local model as the last resort, one router over them.", "bold")
        self._say("Timings of this demo: " + ", ".join(f"{what} {seconds:g} s" for what, seconds in timings.items()))

    def scene(self, title: str) -> None:
        """Announce the next failure."""
        self._say(f"\n{title}", "bold cyan")

    def said(self, text: str) -> None:
        """Something that happened."""
        self._say(f"  {text}")

    def served(self, question: str, answer: str, how: str, *, degraded: bool) -> None:
        """Print a question, its answer, the target that gave it and the reason."""
        shown = " ".join(printable(answer).split())
        shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 3] + "..."
        self._say(f"  {question}")
        self._say(f"    {how}", "yellow" if degraded else "green")
        self._say(f"    {shown}", "dim")

    def expected(self, expectation: Expectation) -> None:
        """Print an expectation and whether it came true."""
        mark, style = ("ok", "green") if expectation.came_true else ("NOT SO", "bold red")
        self._say(f"  [{mark}] {expectation.text} ({expectation.measured})", style)

    def summary(self, figures: DemoFigures) -> None:
        """The table at the end."""
        self._say("\nIn figures, all measured:", "bold")
        rows = [(what, _shown(value)) for what, value in figures.to_dict().items() if what != "expectations"]
        print_table(("figure", "value"), rows, self._file)
        broken = [expectation.text for expectation in figures.expectations if not expectation.came_true]
        for text in broken:
            self._say(f"NOT SO: {text}", "bold red")
        if not broken:
            self._say("Everything came true.", "bold green")

    def _say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style=style), soft_wrap=True)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {count}" for key, count in value.items())
    return str(value)


QUESTIONS = (
    "What is the capital of France?",
    "Why is the sky blue?",
    "Name three uses of a paper clip.",
    "What does a circuit breaker do?",
    "How do bees find their way home?",
    "Write one sentence about the sea.",
    "What is the difference between weather and climate?",
    "Give me a rhyme for 'router'.",
)
RETRY_AFTER = 3
_ANSWER_TOKENS = 32
"""Short answers: the local model writes a hundred tokens a second at best."""
_HERD = 20
_POLL_SECONDS = 0.02
_RECOVERY_SECONDS = 20.0
"""More than any rest this demo's timings allow."""


class Story:
    """Plays the scenes in order. Every figure comes from an answer, an event or a provider's own record."""

    def __init__(self, fleet: DemoFleet, narrator: Narrator) -> None:
        self._fleet = fleet
        self._router = fleet.router
        self._narrator = narrator
        self._figures = DemoFigures()
        self._questions = cycle(QUESTIONS)

    async def play(self) -> DemoFigures:
        """The whole story; what it came to."""
        began = time.monotonic()
        self._narrator.opening(TIMINGS)
        await self._all_is_well()
        await self._primary_fails()
        await self._one_probe()
        await self._rate_limits()
        await self._stall()
        await self._cuts()
        await self._outage()
        await self._recovery()
        self._measure()
        self._figures.seconds = time.monotonic() - began
        return self._figures

    # The scenes --------------------------------------------------------------------------------------------

    async def _all_is_well(self) -> None:
        self._narrator.scene("All is well")
        served = await self._ask_in_turn(3)
        self._expect("the primary serves", served == [target(PRIMARY)] * 3, _names(served))

    async def _primary_fails(self) -> None:
        self._narrator.scene(f"{PRIMARY} answers 500: six questions at once, then three more")
        self._fleet.fail(Fault.status(500))
        served = await self._ask_at_once(6)
        self._expect(f"{SECOND} serves instead", served == [target(SECOND)] * 6, _names(served))
        state = self._state(PRIMARY)
        self._expect(f"the breaker of {PRIMARY} opens", state == "open", state)
        before = self._fleet.servers[PRIMARY].calls()
        await self._ask_in_turn(3)
        spared = self._fleet.servers[PRIMARY].calls() - before
        self._expect(f"while it is open {PRIMARY} is left alone", spared == 0, f"{spared} calls")

    async def _one_probe(self) -> None:
        self._narrator.scene(f"{PRIMARY} is well again, though slow; {_HERD} questions arrive when its probe is due")
        self._fleet.fail(Fault.delay(first=0.5))
        await self._until_half_open()
        before = self._fleet.servers[PRIMARY].calls()
        served = await self._ask_at_once(_HERD, quiet=True)
        probes = self._fleet.servers[PRIMARY].calls() - before
        self._narrator.said(
            f"{served.count(target(PRIMARY))} served by {PRIMARY}, {served.count(target(SECOND))} by {SECOND}"
        )
        self._expect("one probe goes there, the rest elsewhere", probes == 1, f"{probes} calls")
        state = self._state(PRIMARY)
        self._expect("its success closes the breaker", state == "closed", state)
        self._fleet.heal()
        share = await self._share_of_primary(5)
        self._expect(f"{PRIMARY} carries its share again", share >= 0.8, f"{share:.0%} of the next 5")

    async def _rate_limits(self) -> None:
        self._narrator.scene(f"All three say 429, Retry-After: {RETRY_AFTER}; one question is asked, three more later")
        opened = trips(self._fleet.events, "open")
        self._fleet.fail(Fault.status(429, headers={"retry-after": str(RETRY_AFTER)}, times=1), at=REMOTES)
        first = asyncio.create_task(self._ask())
        await self._until_limited()
        await asyncio.gather(first, *(self._ask() for _ in range(3)))
        waited = waited_after_429(self._fleet.servers[PRIMARY].requests)
        self._figures.retry_after_waited_seconds = waited
        exact = waited is not None and RETRY_AFTER <= waited <= RETRY_AFTER * 1.1
        self._expect(
            f"{PRIMARY} hears nothing for the {RETRY_AFTER} s it asked for, and no longer than that",
            exact,
            "never asked again" if waited is None else f"{waited:.3f} s at the provider",
        )
        tripped = trips(self._fleet.events, "open") - opened
        self._expect("a 429 opens no breaker", tripped == 0, f"{tripped} opened")

    async def _stall(self) -> None:
        self._narrator.scene(f"{PRIMARY} accepts a stream and falls silent")
        self._fleet.fail(Fault.stall(times=1))
        served = await self._ask(stream=True)
        self._expect(f"after a second {SECOND} answers", served == target(SECOND), served)
        served = await self._ask(stream=True)
        self._expect("one failure is no reason to leave", served == target(PRIMARY), served)

    async def _cuts(self) -> None:
        self._narrator.scene(f"{PRIMARY} cuts a stream before its first words")
        self._fleet.fail(Fault.cut(times=1))
        interrupted = self._figures.interrupted
        served = await self._ask(stream=True)
        self._expect("no caller notices", self._figures.interrupted == interrupted, f"answered by {served}")
        self._narrator.scene(f"{PRIMARY} cuts a stream in the middle of a sentence")
        self._fleet.fail(Fault.cut(after=6, times=1))
        served = await self._ask(stream=True)
        reported = self._figures.interrupted - interrupted
        self._expect("the caller is told, and asks again", reported == 1, f"{reported} reported, then {served}")

    async def _outage(self) -> None:
        self._narrator.scene("Every remote provider is gone")
        self._fleet.fail(Fault.down(), at=REMOTES)
        local, degraded = self._figures.local_answers, self._figures.degraded
        await self._ask_in_turn(2)
        await self._ask_at_once(2)
        local, degraded = self._figures.local_answers - local, self._figures.degraded - degraded
        self._expect("the local model answers every question", local == 4, f"{local} of 4")
        self._expect("each answer is marked degraded", degraded == 4, f"{degraded} of 4")

    async def _recovery(self) -> None:
        self._narrator.scene("They come back")
        self._fleet.heal()
        began = time.monotonic()
        while await self._ask(quiet=True) != target(PRIMARY):
            if time.monotonic() - began > _RECOVERY_SECONDS:
                break
            await asyncio.sleep(_POLL_SECONDS)
        self._figures.recovery_seconds = time.monotonic() - began
        self._narrator.said(f"{PRIMARY} served again {self._figures.recovery_seconds:.1f} s later")
        self._figures.primary_share = share = await self._share_of_primary(10)
        self._expect(f"{PRIMARY} carries its share again", share >= 0.8, f"{share:.0%} of the next 10")
        state = self._state(PRIMARY)
        self._expect(f"the breaker of {PRIMARY} is closed", state == "closed", state)

    # Asking ------------------------------------------------------------------------------------------------

    async def _ask_in_turn(self, count: int) -> list[str]:
        return [await self._ask() for _ in range(count)]

    async def _ask_at_once(self, count: int, *, quiet: bool = False) -> list[str]:
        return list(await asyncio.gather(*(self._ask(quiet=quiet) for _ in range(count))))

    async def _ask(self, *, stream: bool = False, quiet: bool = False) -> str:
        """Ask the next question; the target that answered, or what went wrong."""
        question = next(self._questions)
        self._figures.requests += 1
        try:
            try:
                text, report = await self._answer(question, stream)
            except StreamInterrupted as cut:
                self._figures.interrupted += 1
                self._narrator.said(f"cut, and the caller knows: {cut.message}")
                text, report = await self._answer(question, stream)
        except SmartRouterError as error:
            self._figures.failed += 1
            self._narrator.said(f"{question} FAILED: {error.message}")
            return type(error).__name__
        self._figures.count(report)
        if not quiet:
            self._narrator.served(question, text, str(report), degraded=report.degraded)
        return str(report.target)

    async def _answer(self, question: str, stream: bool) -> tuple[str, RouteReport]:
        body = {
            "model": MODEL,
            "messages": [{"role": "user", "content": question}],
            "max_tokens": _ANSWER_TOKENS,
        }
        if stream:
            async with self._router.stream_chat(body) as chunks:
                return "".join([text_of("chat", chunk) async for chunk in chunks]), chunks.report
        reply = await self._router.chat(body)
        return str(reply.body["choices"][0]["message"]["content"]), reply.report

    # Measuring ---------------------------------------------------------------------------------------------

    def _measure(self) -> None:
        figures, events = self._figures, self._fleet.events
        figures.breaker_opened = trips(events, "open")
        figures.breaker_closed = trips(events, "closed")
        by_provider = probe_spans(events)
        figures.probes = sum(map(len, by_provider.values()))
        spells = [*by_provider.values(), *self._half_open()]
        figures.probes_max_in_flight = max(map(most_at_once, spells), default=0)
        self._narrator.scene("Over the whole story")
        self._expect("every question was answered", figures.failed == 0, f"{figures.answered} of {figures.requests}")
        self._expect("breakers closed again", figures.breaker_closed >= 1, f"{figures.breaker_closed} times")
        most = figures.probes_max_in_flight
        self._expect("never two probes at once", most == 1, f"{figures.probes} probes, at most {most} in flight")

    def _half_open(self) -> Iterator[list[tuple[float, float]]]:
        for name, server in self._fleet.servers.items():
            yield from half_open_spans(self._fleet.events, target(name), server.requests)

    def _expect(self, text: str, came_true: bool, measured: str) -> None:
        expectation = Expectation(text, came_true, measured)
        self._figures.expectations.append(expectation)
        self._narrator.expected(expectation)

    async def _share_of_primary(self, count: int) -> float:
        """The primary's share of the next questions, once it may take its full load."""
        await asyncio.sleep(TIMINGS["slow start after a recovery"])
        served = [await self._ask(quiet=True) for _ in range(count)]
        return served.count(target(PRIMARY)) / count

    def _state(self, provider: str) -> str:
        return next(status.state for status in self._router.targets() if status.id == target(provider))

    async def _until_half_open(self) -> None:
        due = due_at(self._fleet.events, target(PRIMARY))
        if due is not None:
            await asyncio.sleep(due - time.monotonic() + _POLL_SECONDS)

    async def _until_limited(self) -> None:
        """Until all three have said 429: what is asked from now on meets nothing but their waits."""
        began = time.monotonic()
        while time.monotonic() - began < RETRY_AFTER:
            waits = {e.target for e in self._fleet.events if isinstance(e, RestStarted) and e.reason == "wait"}
            if len(waits) == len(REMOTES):
                return
            await asyncio.sleep(_POLL_SECONDS)


def _names(served: list[str]) -> str:
    return ", ".join(f"{name} {served.count(name)}" for name in dict.fromkeys(served))


def run(asked: Demo) -> int:
    """Play the demo; 0 when every expectation came true. Raises ConfigurationError without the embedded model."""
    readiness = is_loadable()
    if not readiness.ready:
        raise ConfigurationError("the embedded model", "missing", f"the demo needs it: {readiness.reason}")
    return asyncio.run(_play(asked.as_json))


async def _play(as_json: bool) -> int:
    narrator = Narrator(sys.stderr if as_json else sys.stdout)
    async with DemoFleet() as fleet:
        figures = await Story(fleet, narrator).play()
    narrator.summary(figures)
    if as_json:
        print_json(figures.to_dict())
    return ExitCode.OK if figures.as_promised else ExitCode.FAILED
