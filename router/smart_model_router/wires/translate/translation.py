"""One request in the dialect of the provider that is asked, and its answer in the dialect of who asked."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.wires.translate.losses import Losses, Untranslatable
from smart_model_router.wires.translate.routes import ROUTES
from smart_model_router.wires.translate.sse_output import written
from smart_model_router.wires.translate.terms import Context, Terms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.request import Dialect

_PING = b": ping\n\n"
_CHAT_END = b"data: [DONE]\n\n"


@dataclass(frozen=True, slots=True)
class Translation:
    """A request translated. `stages` are its bodies from the one asked to the one sent; `losses` say what got lost."""

    asked: Dialect
    spoken: Dialect
    terms: Terms
    stages: tuple[Mapping[str, Any], ...]
    losses: tuple[str, ...]

    @property
    def body(self) -> Mapping[str, Any]:
        """What is sent, without `model`."""
        return self.stages[-1]

    def answer(self, body: Mapping[str, Any], losses: Losses) -> dict[str, Any] | Untranslatable:
        """A whole answer of the provider, in the dialect asked. Never raises."""
        found = dict(body)
        try:
            for step, before in _backwards(self):
                found = step.answer(found, Context(before, self.terms, losses))
        except RecursionError:
            return Untranslatable("answer", "it is nested too deeply")
        return found

    def events(self) -> EventTranslator:
        """A translator of one stream of the provider."""
        return EventTranslator(self)


def translate(asked: Dialect, goal: Dialect, body: Mapping[str, Any], terms: Terms) -> Translation | Untranslatable:
    """`body` (plain JSON values) in another dialect, or why it would mean something else there. Never raises."""
    losses = Losses()
    terms = replace(terms, between=len(ROUTES[asked, goal]) > 1)
    stages: list[Mapping[str, Any]] = [body]
    try:
        for step in ROUTES[asked, goal]:
            stages.append(step.request(stages[-1], terms, losses))
    except RecursionError:
        return Untranslatable("body", "it is nested too deeply")
    if losses.refusal is not None:
        return losses.refusal
    return Translation(asked, goal, terms, tuple(stages), losses.entries)


@dataclass(slots=True)
class EventTranslator:
    """Fed with the events of one stream as they are delivered, it returns them in the dialect asked.

    `end` closes a stream that is complete; for one that failed it is not called, so no failure looks like an end.
    """

    translation: Translation
    losses: Losses = field(default_factory=Losses)
    _steps: list[Any] = field(init=False)

    def __post_init__(self) -> None:
        terms = self.translation.terms
        self._steps = [
            step.events(Context(before, terms, self.losses)) for step, before in _backwards(self.translation)
        ]

    def feed(self, event: StreamEvent) -> list[StreamEvent]:
        """What one event becomes; the end of a stream becomes nothing before `end`.

        Raises RecursionError for one that is nested too deeply: left out, it would be missing in the answer.
        """
        if event.kind is EventKind.PING:
            return [StreamEvent(EventKind.PING, _PING)]
        if event.data is None:
            return []
        return self._written(self._through([event.data], 0))

    def end(self) -> list[StreamEvent]:
        """What closes a complete stream."""
        events: list[dict[str, Any]] = []
        for at, step in enumerate(self._steps):
            events += self._through(step.end(), at + 1)
        out = self._written(events)
        if self.translation.asked == "chat":
            out.append(StreamEvent(EventKind.END, _CHAT_END))
        return out

    def _through(self, events: list[Any], start: int) -> list[dict[str, Any]]:
        for step in self._steps[start:]:
            events = [made for event in events for made in step.feed(event)]
        return events

    def _written(self, events: list[dict[str, Any]]) -> list[StreamEvent]:
        return [written(self.translation.asked, event) for event in events]


def _backwards(translation: Translation) -> list[tuple[Any, Mapping[str, Any]]]:
    """The steps in the order an answer takes, each with the request as it was before it."""
    steps = ROUTES[translation.asked, translation.spoken]
    return list(zip(steps, translation.stages, strict=False))[::-1]
