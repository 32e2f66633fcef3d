"""One seed: a request, upstreams that lie, what the client got of them, and whether all that it was told is true.

The judge knows what was sent. It shares nothing with the router but the words of its report.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from smart_model_router import SmartModelRouter, StreamInterrupted
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import SmartRouterError
from smart_model_router.domain.events import RequestFinished
from smart_model_router.domain.report import RouteReport, StreamRecovery
from smart_model_router.domain.request import Dialect
from smart_model_router.http_api import open_stream, read_ask
from smart_model_router.testing import LoopClock, RecordingSink, run_virtual
from tests.lies.answers import Block, Content
from tests.lies.client import Seen, seen_in
from tests.lies.lying import LIES, Stream, stream
from tests.lies.upstream import Liar, Script

DIALECTS: tuple[Dialect, ...] = ("chat", "messages", "responses")
POLICIES = ("none", "continue", "buffered", "hold_back(12)", "restart")
FINISHES: Mapping[Dialect, Mapping[bool, str]] = {
    "chat": {True: "tool_calls", False: "stop"},
    "messages": {True: "tool_use", False: "end_turn"},
    "responses": {True: "completed", False: "completed"},
}
_BODIES: Mapping[Dialect, dict[str, Any]] = {
    "chat": {"messages": [{"role": "user", "content": "hello"}]},
    "messages": {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 999},
    "responses": {"input": "hello"},
}
_TOOL: Mapping[Dialect, dict[str, Any]] = {
    "chat": {"type": "function", "function": {"name": "wipe", "parameters": {"type": "object"}}},
    "messages": {"name": "wipe", "input_schema": {"type": "object"}},
    "responses": {"type": "function", "name": "wipe", "parameters": {"type": "object"}},
}
HARMLESS = (
    *("none", "comment", "unterminated", "late fault", "finished twice"),
    *("undelivered", "interleaved", "unplaced"),
)
"""Lies after which the answer is whole, whatever becomes of them."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a seed asks. `skip`: `routing.malformed_events`. `in_words`: the targets have no prefill."""

    asked: Dialect
    spoken: Dialect
    policy: str
    skip: bool
    tools: bool
    in_words: bool = False


def violations(seed: int) -> list[str]:
    """What the client of this seed was told and is not true."""
    dice = random.Random(f"lies/{seed}")
    asked, spoken = dice.choice(DIALECTS), dice.choice(DIALECTS)
    in_words = random.Random(f"in words/{seed}").random() < 0.5
    case = Case(asked, spoken, dice.choice(POLICIES), dice.random() < 0.3, dice.random() < 0.4, in_words)
    first, second = dice.choice(list(LIES)), dice.choice(["none", "none", *LIES])
    return violations_of(case, first, second, dice)


def violations_of(case: Case, first: str, second: str, dice: random.Random) -> list[str]:
    """The same for a case and the lies of the first two upstreams; the third tells the truth."""
    liars = {
        name: Liar([_script(case, name, lie, dice)], dice) for name, lie in (("a", first), ("b", second), ("c", "none"))
    }
    told = run_virtual(_ask(case, liars), limit=86_400)
    found = list(_judged(case, liars, told))
    context = f"{case.asked}<-{case.spoken} {case.policy} skip={case.skip} tools={case.tools} {first}/{second}"
    return [f"{context}: {one}" for one in found]


def _script(case: Case, name: str, lie: str, dice: random.Random) -> Script:
    """What an upstream answers: with thoughts, text and calls; an answer that has begun it may go on with or repeat."""
    words = tuple(f"{name}{number} " + "né "[: dice.randrange(4)] for number in range(dice.randrange(2, 9)))
    thoughts = tuple(f"think{name}{number} " for number in range(dice.randrange(3)))
    path = json.dumps({"path": f"/data/{name}/only-this"}, separators=(",", ":"))
    size = dice.randrange(3, 12)
    arguments = tuple(path[at : at + size] for at in range(0, len(path), size))
    second = json.dumps({"path": f"/data/{name}/that", "deep": [1, {}]}, separators=(",", ":"))
    both = dice.random() < 0.5
    repeats = dice.choice(("nothing", "nothing", "all", "tail", "another"))

    def script(begun: str) -> Stream:
        text = words
        if begun and repeats == "all":
            text = (begun, *words)
        elif begun and repeats == "tail":
            text = (begun[-20:], *words)
        elif begun and repeats == "another":
            text = (begun[: max(40, len(begun) // 2)], "but no ", *words)
        blocks = [Block("text", text)]
        if thoughts:
            blocks.insert(0, Block("thinking", thoughts))
        if case.tools:
            blocks.append(Block("call", arguments, "wipe"))
            if both:
                blocks.append(Block("call", (second[:size], second[size:]), "wipe"))
        return stream(case.spoken, tuple(blocks), name, lie, dice)

    return script


@dataclass(slots=True)
class Told:
    """What the client got, and what is in the report and the log. `failed`: the request ended by an error."""

    raw: bytes
    interrupted: StreamInterrupted | None
    failed: SmartRouterError | None
    report: RouteReport | None
    finished: RequestFinished


@cache
def _config(spoken: Dialect, names: tuple[str, ...], *, skip: bool, in_words: bool) -> RouterConfig:
    """The configuration of a case. There are twelve: reading one for each seed would take a fifth of the time."""
    kinds = {"kind": "openai_compatible", "base_url": "http://liar.invalid/v1", "wires": [spoken]}
    targets = [{"target": f"{name}/{name}", "prefill": "asked" if in_words else "plain"} for name in names]
    return RouterConfig.from_mapping(
        {
            "version": 1,
            "providers": {name: {**kinds, "failure_domain": name} for name in names},
            "models": {"smart": {"tiers": [{"targets": targets}], "last_resort": []}},
            "routing": {"strategy": "ordered", "malformed_events": "skip" if skip else "fault"},
        }
    )


async def _ask(case: Case, liars: Mapping[str, Liar]) -> Told:
    sink = RecordingSink()
    config = _config(case.spoken, tuple(liars), skip=case.skip, in_words=case.in_words)
    router = SmartModelRouter.from_config(config, clock=LoopClock(), providers=liars, sinks=[sink], seed=1)
    body = {**_BODIES[case.asked], "model": "smart", "stream": True}
    if case.tools:
        body["tools"] = [_TOOL[case.asked]]
    headers = {"x-router-recovery": case.policy, "x-router-timeout": "300s"}
    ask = read_ask(case.asked, headers, json.dumps(body).encode())
    raw, interrupted = b"", None
    async with router:
        try:
            opened = await open_stream(router, ask)
        except SmartRouterError as error:
            return Told(b"", None, error, error.report, sink.of(RequestFinished)[0])
        try:
            while (frame := await opened.next_frame()) is not None:
                raw += frame
        except StreamInterrupted as cut:
            interrupted = cut
        await opened.aclose()
    (finished,) = sink.of(RequestFinished)
    return Told(raw, interrupted, None, opened.report, finished)


def _judged(case: Case, liars: Mapping[str, Liar], told: Told) -> list[str]:
    found: list[str] = []
    first = liars["a"].sent[0] if liars["a"].sent else None
    if told.failed is not None:
        if first is not None and first.truth == "whole" and first.lie in HARMLESS:
            found.append(f"a whole answer was not delivered: {told.failed}")
        if told.finished.complete:
            found.append("the log calls a failed request complete")
        return found
    report = told.report
    assert report is not None
    try:
        seen = seen_in(case.asked, told.raw)
    except ValueError as error:
        return [f"no client can read this: {error}"]
    clean = told.interrupted is None and not seen.errors
    served = _served(report, liars)
    found += _agreement(told, report, seen, clean=clean)
    if clean and not report.complete and served.truth != "replaced":
        found.append("a clean end of an answer that is not complete")
    if report.complete:
        found += _complete(case, served, report, liars, seen)
    else:
        found += _prefix(case, served, report, liars, seen)
    if first is not None and first.truth == "whole" and (not report.complete or len(report.attempts) != 1):
        found.append(f"a whole answer was not taken for one: {told.interrupted}, {report.attempts}")
    return found


def _agreement(told: Told, report: RouteReport, seen: Seen, *, clean: bool) -> Iterator[str]:
    """What the client is told says the same as report and log, and no more than one thing."""
    if told.finished.complete != report.complete:
        yield f"the log says complete={told.finished.complete}, the report {report.complete}"
    if clean and not seen.ended:
        yield "a clean end without a terminator"
    if not clean and (seen.ended or seen.finish):
        yield f"a failed stream has a finish ({seen.finish!r}) or a terminator"
    if clean and len(seen.reports) != 1:
        yield f"{len(seen.reports)} router objects beside the finish reason"
    for one in seen.reports:
        if one["complete"] != report.complete:
            yield f"the router object says complete={one['complete']}, the report {report.complete}"
        if one["recoveries"] != [each.to_dict() for each in report.recoveries]:
            yield "the router object has other recoveries than the report"
    if not clean and report.complete:
        yield "a failed stream is called complete"
    if set(seen.models) > {"smart"}:
        yield f"models {seen.models}"


def _served(report: RouteReport, liars: Mapping[str, Liar]) -> Stream:
    """The newest stream of the last target that served."""
    assert report.target is not None
    return liars[report.target[0]].sent[-1]


def _complete(case: Case, served: Stream, report: RouteReport, liars: Mapping[str, Liar], seen: Seen) -> list[str]:
    """Every byte of the stream that finished, in order, once; of the broken ones nothing but the prefix."""
    found = []
    if served.truth != "whole":
        found.append(f"complete, but {served.lie} is {served.truth}")
    expected = list(_expected(served.said, report, liars))
    if seen.content not in expected:
        found.append(f"complete, but {seen.content} is none of {expected}")
    if seen.repeated is not None and seen.repeated not in expected:
        found.append(f"complete, but at its end {seen.repeated} is none of {expected}")
    last = report.recoveries[-1] if report.recoveries else None
    if case.in_words and last is not None and last.kept_characters and served.said.text and not last.trimmed_characters:
        found.append("a target that was only asked in words went on without a proof")
    finish = FINISHES[case.asked][case.tools]
    if seen.finish != finish:
        found.append(f"the finish reason is {seen.finish!r}")
    return found


def _prefix(case: Case, served: Stream, report: RouteReport, liars: Mapping[str, Liar], seen: Seen) -> list[str]:
    """What is not complete has nothing but the beginning of what was said; with `skip` its holes are whole events."""
    gone_on = not report.recoveries or report.recoveries[-1].to_target is not None
    said = (served.all_said if case.skip else served.said) if gone_on else Content()
    expected = list(_expected(said, report, liars))
    if case.skip and gone_on and served.dialect == "responses":  # what was skipped may be repeated behind it
        expected += _expected(served.meant, report, liars)
    if served.truth == "replaced" and gone_on:
        fits = seen.content in expected
    else:
        fits = any(one.text.startswith(seen.content.text) for one in expected)
    return [] if fits else [f"not complete, and {seen.content} is of none of {expected}"]


def _expected(said: Content, report: RouteReport, liars: Mapping[str, Liar]) -> Iterator[Content]:
    """What the client may have of a last stream that `said` this, by the report's own words."""
    if not report.recoveries:
        yield said
        return
    trimmed = report.recoveries[-1].trimmed_characters
    for begun in _prefixes(report.recoveries, 0, Content(), liars):
        if begun.text.endswith(said.text[:trimmed]):  # what was left out is repetition
            thinking = said.thinking[report.recoveries[-1].trimmed_thinking_characters :]  # all of it is left out
            yield Content(begun.text + said.text[trimmed:], begun.thinking + thinking, said.calls)


def _prefixes(
    recoveries: list[StreamRecovery], trimmed: int, begun: Content, liars: Mapping[str, Liar]
) -> Iterator[Content]:
    """What the client may keep of the streams that broke off; a target that was asked twice said one thing or other."""
    if not recoveries:
        yield begun
        return
    recovery, later = recoveries[0], recoveries[1:]
    kept, thoughts = recovery.kept_characters, recovery.kept_thinking_characters
    if kept <= len(begun.text) and thoughts <= len(begun.thinking):
        yield from _prefixes(later, recovery.trimmed_characters, begun if kept or thoughts else Content(), liars)
        return
    for broken in liars[recovery.from_target[0]].sent:
        text = begun.text + broken.said.text[trimmed:]
        thinking = begun.thinking if begun.text else begun.thinking + broken.said.thinking
        if len(text) >= kept and len(thinking) >= thoughts:
            yield from _prefixes(later, recovery.trimmed_characters, Content(text[:kept], thinking[:thoughts]), liars)
