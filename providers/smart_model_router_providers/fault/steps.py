"""The steps of an answer on the wire: waits, heads, bytes and an end."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, assert_never

from smart_model_router_providers.fault.answers import (
    COMMENT,
    EVENT_STREAM,
    JSON,
    ScriptedAnswer,
    error_body,
    error_frame,
    ping,
)
from smart_model_router_providers.fault.effects import (
    BadJson,
    Cut,
    Delay,
    Empty,
    ErrorEvent,
    Fate,
    Headers,
    Latency,
    Plain,
    Stall,
    Status,
)
from smart_model_router_providers.fault.parsed_request import Question
from smart_model_router_providers.fault.replies import answer, without_choices

if TYPE_CHECKING:
    from random import Random

    from smart_model_router_providers.fault.script import ScriptDecision


@dataclass(frozen=True, slots=True)
class WaitStep:
    """Nothing happens for `seconds`; infinity: until the client leaves."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Head:
    """The status line and headers. `length` is the body's, None when it comes in chunks."""

    status: int
    headers: Headers
    length: int | None


@dataclass(frozen=True, slots=True)
class Data:
    """Bytes of the body: one event of a stream, or a part of a whole answer."""

    body: bytes
    content: bool = False


class End(Enum):
    """The end of an answer."""

    CLEAN = auto()
    CUT = auto()
    """The connection closes before the body is complete."""
    RESET = auto()
    """The connection is reset."""
    REFUSED = auto()
    """There was no connection to begin with."""


Step = WaitStep | Head | Data | End
FOR_EVER = WaitStep(math.inf)
BODILESS = frozenset({204, 205, 304})  # RFC 9110: a body here would be read as the next answer


def play(question: Question, decision: ScriptDecision) -> Iterator[Step]:
    """The steps of one call."""
    if decision.reply is not None and question.dialect != "embeddings":
        question = question.answered(decision.reply)
    steps = _act(question, decision.effect, decision.headers)
    return _slowed(steps, decision.delays, decision.chance, stream=question.stream) if decision.delays else steps


def whole(status: int, body: bytes, headers: Headers = ()) -> Iterator[Step]:
    """An HTTP answer in one piece."""
    body = b"" if status in BODILESS else body
    typed = headers if any(name == "content-type" for name, _ in headers) else (("content-type", JSON), *headers)
    yield Head(status, typed, len(body))
    yield Data(body)
    yield End.CLEAN


def _act(question: Question, effect: Fate | None, headers: Headers) -> Iterator[Step]:
    match effect:
        case None:
            return _good(answer(question), headers)
        case Status(code, given, body):
            said = error_body(question.dialect, code) if body is None else body
            return whole(code, said, (*headers, *given))
        case Stall():
            return _stalled(question, effect, headers)
        case Cut():
            return _cut(answer(question), effect, headers)
        case BadJson(after):
            return _good(_spoilt(answer(question), after), headers)
        case ErrorEvent():
            return _failed(question, effect, headers)
        case Empty():
            return _emptied(question, effect, headers)
        case Plain():
            return _plain(question, effect, headers)
        case _:
            assert_never(effect)


def _plain(question: Question, effect: Plain, headers: Headers) -> Iterator[Step]:
    match effect:
        case Plain.NO_TERMINATOR:
            good = answer(question)
            return _good(replace(good, closing=()) if good.stream else good, headers)
        case Plain.JSON_INSTEAD_OF_STREAM:
            return _good(answer(replace(question, stream=False)), headers)
        case Plain.RESET:
            return iter((End.RESET,))
        case Plain.HANG:
            return iter((FOR_EVER,))
        case Plain.HEADERS_ONLY:
            return iter((_head(answer(question), headers), FOR_EVER))
        case Plain.DOWN:
            return iter((End.REFUSED,))
        case _:
            assert_never(effect)


def _head(good: ScriptedAnswer, headers: Headers) -> Head:
    if good.stream:
        return Head(200, (("content-type", EVENT_STREAM), *headers), None)
    return Head(200, (("content-type", JSON), *headers), sum(map(len, good.content + good.closing)))


def _good(good: ScriptedAnswer, headers: Headers) -> Iterator[Step]:
    yield _head(good, headers)
    yield from _parts(good)
    yield End.CLEAN


def _parts(good: ScriptedAnswer) -> Iterator[Data]:
    for body in good.opening:
        yield Data(body)
    for body in good.content:
        yield Data(body, content=True)
    for body in good.closing:
        yield Data(body)


def _begun(good: ScriptedAnswer, after: int) -> list[Data]:
    """All that comes before the piece of content after `after` good ones; never what closes the answer."""
    return list(_parts(replace(good, content=good.content[:after], closing=())))


def _stalled(question: Question, stall: Stall, headers: Headers) -> Iterator[Step]:
    good = answer(question)
    begun = _begun(good, stall.after)
    yield _head(good, headers)
    yield from begun
    until = math.inf if stall.seconds is None else stall.seconds
    if stall.comments and good.stream:
        sign = Data(ping(question.dialect) if stall.comments == "pings" else COMMENT)
        while until > stall.every:
            yield WaitStep(stall.every)
            yield sign
            until -= stall.every
    yield WaitStep(until)
    yield from list(_parts(good))[len(begun) :]
    yield End.CLEAN


def _cut(good: ScriptedAnswer, cut: Cut, headers: Headers) -> Iterator[Step]:
    yield _head(good, headers)
    if cut.at_byte is None:
        yield from _begun(good, cut.after)
    else:
        body = b"".join(part.body for part in _parts(good))
        yield Data(body[: min(cut.at_byte, len(body) - 1)])
    yield End.RESET if cut.reset else End.CUT


def _spoilt(good: ScriptedAnswer, after: int) -> ScriptedAnswer:
    if not good.content:
        return good
    if not good.stream:
        return replace(good, closing=())
    at = min(after, len(good.content) - 1)
    broken = good.content[at].rstrip()[:-2] + b"\n\n"  # without its closing braces
    return replace(good, content=(*good.content[:at], broken, *good.content[at + 1 :]))


def _failed(question: Question, error: ErrorEvent, headers: Headers) -> Iterator[Step]:
    good = answer(question)
    if not good.stream:
        return whole(200, error.body or error_body(question.dialect, 500), headers)
    begun = replace(good, opening=(), content=()) if error.after is None else good
    content = begun.content[: error.after]
    return _good(replace(begun, content=content, closing=(error_frame(question.dialect, error.body),)), headers)


def _emptied(question: Question, empty: Empty, headers: Headers) -> Iterator[Step]:
    good = answer(replace(question, text="", calls=()))
    if empty.what == "content" and question.dialect != "embeddings":
        return _good(good, headers)
    if good.stream:
        end = good.closing[-1:] if empty.what == "choices" else ()
        return _good(ScriptedAnswer(stream=True, opening=(), content=(), closing=end), headers)
    return whole(200, b"" if empty.what == "body" else without_choices(question), headers)


def _slowed(steps: Iterable[Step], delays: tuple[Delay, ...], chance: Random, *, stream: bool) -> Iterator[Step]:
    """The same steps with the delays between them."""
    first = [delay.first for delay in delays if delay.first]
    token = [delay.token for delay in delays if delay.token]
    each = [delay.each for delay in delays if delay.each] if stream else []
    events = 0
    if first:
        yield WaitStep(_draw(first, chance))
    for step in steps:
        if isinstance(step, Data):
            if each and events:
                yield WaitStep(_draw(each, chance))
            if token and step.content:
                yield WaitStep(_draw(token, chance))
                token = []
            events += 1
        yield step


def _draw(latencies: list[Latency], chance: Random) -> float:
    return sum(latency.draw(chance) for latency in latencies)
