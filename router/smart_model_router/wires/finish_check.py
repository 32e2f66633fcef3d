"""The end of a stream's answer: finished or not, by the rules of its dialect.

Chat: every choice has a finish reason. Messages: there is a stop reason, and no block is open. Responses: the terminal
event came. What comes after that belongs to no answer.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.wires.chat import has_content_in
from smart_model_router.wires.values import count, is_object, items, mapping, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from smart_model_router.domain.request import Dialect

_CONTENT: Final = EventKind.CONTENT


class FinishCheck(Protocol):
    """Follows one stream. `finished`: all of the answer has come, whatever becomes of the transport."""

    finished: bool

    def take(self, event: StreamEvent) -> bool:
        """Take an event with content or meaning; False when it is content that belongs to no part of the answer."""
        ...

    def missing(self) -> str:
        """Return the part that an answer lacks although its terminator came; "" for a whole one."""
        ...


class _ChatFinishing:
    __slots__ = ("_done", "_expected", "_seen", "finished")

    def __init__(self, choices: int) -> None:
        self._expected = choices  # a number, as callers may ask for a thousand million
        self._seen: set[int] = set()
        self._done: set[int] = set()
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        # Visible text is of choice 0, which is expected anyway: nearly every event goes this way.
        if event.text and event.finish is None and not self._done:
            return True
        choices = None if event.data is None else items(event.data.get("choices"))
        if not choices:  # a usage chunk, or a provider's own event without its JSON
            return self._choice(0, event.finish, has_content=event.kind is _CONTENT)
        belongs = True
        for choice in choices:
            if is_object(choice):
                place = count(choice.get("index")) or 0
                has_content = has_content_in(mapping(choice.get("delta")))
                belongs = self._choice(place, text(choice.get("finish_reason")), has_content=has_content) and belongs
        return belongs

    def _choice(self, place: int, finish: str | None, *, has_content: bool) -> bool:
        if has_content and (self.finished or place in self._done):
            return False
        self._seen.add(place)
        if finish:
            self._done.add(place)
            of_expected = sum(done < self._expected for done in self._done)
            self.finished = of_expected == self._expected and self._done >= self._seen
        return True

    def missing(self) -> str:
        # Some providers answer once where several choices were asked for: those that came count.
        return "" if self._done and self._done >= self._seen else "a finish reason"


class _MessagesFinishing:
    __slots__ = ("_open", "_stopped", "finished")

    def __init__(self, choices: int) -> None:
        del choices  # there is one
        self._open: set[int] = set()
        self._stopped = False
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        data, finished = event.data, self.finished
        if event.text and not finished:  # a part of a block
            return True
        if data is not None:
            kind, at = data.get("type"), count(data.get("index")) or 0
            if kind == "content_block_start":
                if finished:
                    return False
                self._open.add(at)
            elif kind == "content_block_stop":
                self._open.discard(at)
            elif at not in self._open and mapping(data.get("delta")).get("type") == "input_json_delta":
                return event.kind is not _CONTENT  # arguments of no call
        if event.finish is not None:
            self._stopped = True
        self.finished = self._stopped and not self._open
        return not (finished and event.kind is _CONTENT)

    def missing(self) -> str:
        if not self._stopped:
            return "a stop reason"
        return f"the end of block {min(self._open)}" if self._open else ""


class _ResponsesFinishing:
    __slots__ = ("finished",)

    def __init__(self, choices: int) -> None:
        del choices
        self.finished = False

    def take(self, event: StreamEvent) -> bool:
        self.finished = self.finished or event.finish is not None
        return True

    def missing(self) -> str:
        return "" if self.finished else "a status"


_FINISHINGS: Mapping[Dialect, Callable[[int], FinishCheck]] = MappingProxyType(
    {"chat": _ChatFinishing, "messages": _MessagesFinishing, "responses": _ResponsesFinishing}
)


def finishing(dialect: Dialect, choices: int = 1) -> FinishCheck:
    """The rules of a streaming dialect for one stream; `choices` is how many answers were asked for."""
    return _FINISHINGS[dialect](choices)
