"""The table of translations: which dialects can stand in for which, and by which steps."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from smart_model_router.wires.translate import answers, requests
from smart_model_router.wires.translate.streams.chat_to_messages import ChatToMessages
from smart_model_router.wires.translate.streams.chat_to_responses import ChatToResponses
from smart_model_router.wires.translate.streams.messages_to_chat import MessagesToChat
from smart_model_router.wires.translate.streams.responses_to_chat import ResponsesToChat

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from smart_model_router.domain.request import Dialect
    from smart_model_router.wires.translate.losses import Losses
    from smart_model_router.wires.translate.terms import Context, Terms


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
