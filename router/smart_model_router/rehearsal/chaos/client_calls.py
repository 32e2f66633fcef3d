"""One question to the router, and what became of it: every way it can end, told apart by looking at the answer."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from smart_model_router.domain.errors import RequestRejected, RouterUnavailable, StreamInterrupted
from smart_model_router.domain.report import RouteReport
from smart_model_router.rehearsal.chaos.fault_fleet import ANSWER
from smart_model_router.router import SmartModelRouter


class Ending(StrEnum):
    """How a question ended, as its caller sees it.

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
