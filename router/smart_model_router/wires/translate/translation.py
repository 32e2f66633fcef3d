"""One request in the dialect of the provider, and its answer in the dialect of the caller: terms, losses, steps."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from smart_model_router.domain.outcome import EventKind, StreamEvent
from smart_model_router.wires.dialects import written
from smart_model_router.wires.translate import answers, requests
from smart_model_router.wires.translate.answers.chat_to_messages import ChatToMessages
from smart_model_router.wires.translate.answers.chat_to_responses import ChatToResponses
from smart_model_router.wires.translate.answers.messages_to_chat import MessagesToChat
from smart_model_router.wires.translate.answers.responses_to_chat import ResponsesToChat

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Container, Iterable, Mapping

    from smart_model_router.domain.request import Dialect, HostedTools

_SHOWN = 200
"""Characters of an explanation: it may quote the body."""
_EMPTY: tuple[Any, ...] = ([], {})


@dataclass(frozen=True, slots=True)
class Untranslatable:
    """A loss that would change the meaning: the target is refused instead. `where` is a field of the body."""

    where: str
    why: str

    def __str__(self) -> str:
        return f"{self.where}: {self.why}"


@dataclass(slots=True)
class Losses:
    """Collects the losses of one translation, each said once however often it happens. The first refusal counts."""

    refusal: Untranslatable | None = None
    _said: dict[str, None] = field(default_factory=dict)

    @property
    def entries(self) -> tuple[str, ...]:
        """Return the losses, in words, in the order they were found."""
        return tuple(self._said)

    def drop(self, where: str, why: str) -> None:
        """Something a caller may miss is left out or changed."""
        self._said.setdefault(f"{where}: {why}")

    def drop_keys(self, body: Mapping[str, Any], handled: Container[str], why: str, *, inside: str = "") -> None:
        """Every field of `body` that says something and that nothing handles is left out. `inside` is where `body` is.

        A field of None, or of an empty list or object, says nothing.
        """
        for key, value in body.items():
            if key not in handled and value is not None and value not in _EMPTY:
                self.drop(f"{inside}.{key}" if inside else key, why)

    def refuse(self, where: str, why: str) -> None:
        """Something is left out without which the request means something else."""
        if self.refusal is None:
            self.refusal = Untranslatable(where, why[:_SHOWN])


@dataclass(frozen=True, slots=True)
class Terms:
    """`family` is whose model answers: reasoning that was sealed for it goes back to it alone.

    `reasoning` says that the model takes a word on how long to think. `newest_chat`: its Chat endpoint takes the newest
    of OpenAI's parameters; others reject what they do not know. `created` is the stamp of answers in dialects that have
    one, epoch seconds. `response_id` names an answer of Responses ("": the provider's own id does), `kept` says whether
    it can be referred to, `previous` is the answer that the caller said it goes on from. `hosted_tools` says what
    becomes of tools that run at a provider and have no equal at the target. `between`: Chat is only the step between
    two other dialects, and may hold things of theirs that no Chat provider knows.
    """

    family: str = ""
    reasoning: bool = False
    newest_chat: bool = False
    created: int = 0
    response_id: str = ""
    kept: bool = False
    previous: str | None = None
    hosted_tools: HostedTools = "refuse"
    between: bool = False

    @property
    def output_cap(self) -> str:
        """Chat's field for the cap on an answer: OpenAI rejects the old name for newer models."""
        return "max_completion_tokens" if self.newest_chat else "max_tokens"


@dataclass(frozen=True, slots=True)
class Context:
    """The context of the way back: the request as it was before the step, the terms, and where losses are told."""

    asked: Mapping[str, Any]
    terms: Terms
    losses: Losses


class EventStep(Protocol):
    """One stream in another dialect, event by event."""

    def feed(self, data: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The events that an upstream event becomes."""
        ...

    def end(self) -> list[dict[str, Any]]:
        """The events that close a complete stream; never asked for one that failed."""
        ...


@dataclass(frozen=True, slots=True)
class TranslationStep:
    """One dialect in the place of another: the request goes out by it, the answer or its events come back by it."""

    request: Callable[[Mapping[str, Any], Terms, Losses], dict[str, Any]]
    answer: Callable[[Mapping[str, Any], Context], dict[str, Any]]
    events: Callable[[Context], EventStep]


_CHAT_BY_MESSAGES = TranslationStep(requests.chat_to_messages.request, answers.messages_to_chat.answer, MessagesToChat)
_MESSAGES_BY_CHAT = TranslationStep(requests.messages_to_chat.request, answers.chat_to_messages.answer, ChatToMessages)
_RESPONSES_BY_CHAT = TranslationStep(
    requests.responses_to_chat.request, answers.chat_to_responses.answer, ChatToResponses
)
_CHAT_BY_RESPONSES = TranslationStep(
    requests.chat_to_responses.request, answers.responses_to_chat.answer, ResponsesToChat
)

ROUTES: Mapping[tuple[Dialect, Dialect], tuple[TranslationStep, ...]] = MappingProxyType(
    {
        ("chat", "messages"): (_CHAT_BY_MESSAGES,),
        ("chat", "responses"): (_CHAT_BY_RESPONSES,),
        ("messages", "chat"): (_MESSAGES_BY_CHAT,),
        ("messages", "responses"): (_MESSAGES_BY_CHAT, _CHAT_BY_RESPONSES),
        ("responses", "chat"): (_RESPONSES_BY_CHAT,),
        ("responses", "messages"): (_RESPONSES_BY_CHAT, _CHAT_BY_MESSAGES),
    }
)
"""(the dialect asked, the dialect spoken) -> steps, those with the fewest losses first."""


def spoken(asked: Dialect, native: Collection[Dialect]) -> Dialect | None:
    """The dialect in which a provider with these is asked; None when it cannot be."""
    if asked in native:
        return asked
    return next((goal for source, goal in ROUTES if source == asked and goal in native), None)


def reachable(native: Collection[Dialect]) -> frozenset[Dialect]:
    """The dialects in which a provider can be asked although it does not speak them."""
    return frozenset(source for source, goal in ROUTES if goal in native and source not in native)


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
        """The body that is sent, without `model`."""
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
    _steps: list[EventStep] = field(init=False)

    def __post_init__(self) -> None:
        terms = self.translation.terms
        self._steps = [
            step.events(Context(before, terms, self.losses)) for step, before in _backwards(self.translation)
        ]

    def feed(self, events: Iterable[StreamEvent], out: list[StreamEvent]) -> None:
        """Add to `out` the events that these become; the end of a stream becomes nothing before `end`.

        Raises RecursionError for one that is nested too deeply: left out, it would be missing in the answer. Those
        before it are in `out`.
        """
        for event in events:
            if event.kind is EventKind.PING:
                out.append(StreamEvent(EventKind.PING, _PING))
            elif event.data is not None:
                first, *others = self._steps
                made = first.feed(event.data)
                for step in others:
                    made = _fed(step, made)
                if made:
                    out += written(self.translation.asked, made)

    def end(self) -> list[StreamEvent]:
        """Return the events that close a complete stream."""
        events: list[dict[str, Any]] = []
        for step in self._steps:
            events = [*_fed(step, events), *step.end()]
        out = written(self.translation.asked, events)
        if self.translation.asked == "chat":
            out.append(StreamEvent(EventKind.END, _CHAT_END))
        return out


def _fed(step: EventStep, events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [made for event in events for made in step.feed(event)]


def _backwards(translation: Translation) -> list[tuple[Any, Mapping[str, Any]]]:
    """The steps in the order an answer takes, each with the request as it was before it."""
    steps = ROUTES[translation.asked, translation.spoken]
    return list(zip(steps, translation.stages, strict=False))[::-1]
