"""The columns of the client table: the ways in which the provider fails once, and the bytes of each. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from smart_model_router_providers.fault.answers import EVENT_STREAM, JSON, dumps
from smart_model_router_providers.fault.effects import Cut, Fate, Stall, Status
from smart_model_router_providers.fault.parsed_request import Question
from smart_model_router_providers.fault.replies import answer
from smart_model_router_providers.fault.script import HEALTHY
from smart_model_router_providers.fault.steps import Data, End, Head, Step, WaitStep, play


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the table. `tools_only`: only answers that call a tool can fail in this way."""

    title: str
    tools_only: bool = False


NONE = "none"
COLUMNS = MappingProxyType(
    {
        NONE: Column("no fault"),
        "429": Column("429"),
        "529": Column("529"),
        "cut": Column("cut after content"),
        "stall": Column("stall after content"),
        "malformed": Column("malformed event in a tool call", tools_only=True),
    }
)
FAULTS = tuple(name for name in COLUMNS if name != NONE)
AFTER_CONTENT = ("cut", "stall", "malformed")
"""Faults of a stream that a policy of recovery may hide."""
SEEN_SECONDS = 0.3
"""The time in which the client receives the beginning of a call before its malformed event comes."""
_STATUSES: Mapping[str, Status] = {"429": Status(429, (("retry-after", "1"),)), "529": Status(529)}
_INNER = re.compile(r"[\w:/. -]{3,}")
"""Text from within a JSON string: without such a piece of it the arguments of a call are still valid JSON."""


def steps(question: Question, fault: str) -> Iterator[Step]:
    """Answer the question well, or fail in the way of the column."""
    if fault == "malformed":
        return _malformed(question)
    return play(question, replace(HEALTHY, effect=_effect(question, fault)))


def _effect(question: Question, fault: str) -> Fate | None:
    if fault in _STATUSES:
        return _STATUSES[fault]
    match fault:
        case "cut":
            return Cut(_middle(question), None, reset=False)
        case "stall":
            return Stall(_middle(question), comments=False, every=1.0, seconds=None)
        case _:
            return None


def _middle(question: Question) -> int:
    """The pieces of content after which a stream breaks off: half the text, or half the first call's arguments."""
    if question.calls:
        return len(question.pieces) + 1 + len(question.calls[0].pieces) // 2
    return max(1, len(question.pieces) // 2)


def spoilt_piece(question: Question) -> int:
    """The place of the last piece of the first call's arguments that lies within a JSON string."""
    pieces = question.calls[0].pieces
    return max(place for place, piece in enumerate(pieces) if _INNER.fullmatch(piece))


def _malformed(question: Question) -> Iterator[Step]:
    """The good answer with a raw control character within the call's arguments, which JSON does not allow."""
    place = spoilt_piece(question)
    piece = dumps(question.calls[0].pieces[place])[1:-1]
    good = answer(question)
    if not good.stream:
        body = _spoilt(b"".join(good.content + good.closing), piece)
        yield Head(200, (("content-type", JSON),), len(body))
        yield from (Data(body), End.CLEAN)
        return
    at = len(question.pieces) + 1 + place
    yield Head(200, (("content-type", EVENT_STREAM),), None)
    yield from (Data(part) for part in (*good.opening, *good.content[:at]))
    yield WaitStep(SEEN_SECONDS)
    yield Data(_spoilt(good.content[at], piece))
    yield from (Data(part) for part in (*good.content[at + 1 :], *good.closing))
    yield End.CLEAN


def _spoilt(body: bytes, piece: bytes) -> bytes:
    at = body.rindex(piece) + 1
    return body[:at] + b"\x01" + body[at:]
