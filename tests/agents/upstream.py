"""The lane's provider: every dialect over real sockets, as strict as the real ones, failing once where it must."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import Any, Self

from smart_model_router_providers.fault.answers import dumps, error_body
from smart_model_router_providers.fault.backend import DIALECTS, Exchange
from smart_model_router_providers.fault.parsed_request import BadQuestion, Dialect, Question, Reply, read_question
from smart_model_router_providers.fault.server import Door
from smart_model_router_providers.fault.steps import Step, whole
from tests.agents import faults
from tests.agents.checks import Refusal, beta_refusal, reference_refusal, references


@dataclass(frozen=True, slots=True)
class Call:
    """A call as it arrived. `recalled` are the earlier calls that it names by a reference to what they were answered.

    `refusal` is the message of a refusal that no column asks for: of the checks, or of a body that cannot be read.
    """

    dialect: Dialect
    model: str
    body: Mapping[str, Any]
    headers: Mapping[str, str]
    recalled: tuple[Call, ...] = ()
    refusal: str = ""

    @property
    def text(self) -> str:
        """Everything that the provider knows of the conversation, as JSON."""
        return json.dumps([self.body, *(call.text for call in self.recalled)])


@dataclass(frozen=True, slots=True)
class Turn:
    """The provider's answer to a call: what it says, and the column of the fault that this call may meet."""

    reply: Reply | None
    fault: str = faults.NONE


@dataclass
class Upstream:
    """A provider with a listener for each name, in a thread of its own until the block is left.

    Of each model the first call whose turn has a fault meets it; every later one is answered well.
    """

    names: Sequence[str]
    respond: Callable[[Call], Turn]
    calls: list[Call] = field(default_factory=list)
    urls: dict[str, str] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)
    _stored: dict[str, Call] = field(default_factory=dict)

    def begin(self, method: str, target: str, headers: Mapping[str, str], body: bytes, now: float) -> Exchange:
        """Take a request."""
        path = target.partition("?")[0]
        for ending, dialect in DIALECTS.items():
            if method == "POST" and path.endswith(ending):
                return Exchange(self._answer(dialect, headers, json.loads(body)))
        return Exchange(whole(404, error_body("chat", 404, f"{method} {path}: no such endpoint")))

    def wall(self) -> float:
        """Epoch seconds."""
        return time.time()  # noqa: TID251  the real time is all that a Date header needs

    def _answer(self, dialect: Dialect, headers: Mapping[str, str], body: Mapping[str, Any]) -> Iterator[Step]:
        number, model = len(self.calls) + 1, str(body.get("model"))
        question = self._question(dialect, headers, body, number)
        if isinstance(question, Refusal):
            self.calls.append(Call(dialect, model, body, headers, refusal=question.message))
            return whole(question.status, _error(dialect, question))
        named = [*references(body), *filter(None, [body.get("previous_response_id")])]
        recalled = {id(call): call for call in (self._stored[name] for name in named)}
        call = Call(dialect, model, body, headers, tuple(recalled.values()))
        self.calls.append(call)
        turn = self.respond(call)
        if turn.reply is not None:
            question = question.answered(turn.reply)
        if dialect == "responses" and body.get("store") is not False:
            told = Call(dialect, call.model, {**body, "answer": question.text}, headers, call.recalled)
            self._stored |= {f"resp_{number}": told, f"msg_{number}": told}
            self._stored |= {f"fc_{number}_{index}": told for index in range(len(question.calls))}
        fault = turn.fault if call.model not in self._failed else faults.NONE
        if fault != faults.NONE:
            self._failed.add(call.model)
        return faults.steps(question, fault)

    def _question(
        self, dialect: Dialect, headers: Mapping[str, str], body: Mapping[str, Any], number: int
    ) -> Question | Refusal:
        refusal = beta_refusal(dialect, headers, body)
        if refusal is None and dialect == "responses":
            refusal = reference_refusal(body, self._stored.__contains__)
        try:
            return refusal or read_question(dialect, body, number=number, say=lambda asked: asked)
        except BadQuestion as error:
            return Refusal(400, str(error))

    def __enter__(self) -> Self:
        ready = Event()
        self._thread = Thread(target=lambda: asyncio.run(self._live(ready)), name="upstream", daemon=True)
        self._thread.start()
        ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._left.set)
        self._thread.join()

    async def _live(self, ready: Event) -> None:
        self._loop, self._left = asyncio.get_running_loop(), asyncio.Event()
        doors = {name: Door("127.0.0.1", 0, self) for name in self.names}
        for name, door in doors.items():
            door.watch(())
            self.urls[name] = f"http://127.0.0.1:{door.port}/v1"
        ready.set()
        await self._left.wait()
        for door in doors.values():
            await door.aclose()


def _error(dialect: Dialect, refusal: Refusal) -> bytes:
    if dialect == "messages":
        return error_body(dialect, refusal.status, refusal.message)
    error = {"message": refusal.message, "type": "invalid_request_error", "param": None, "code": refusal.code}
    return dumps({"error": error})
