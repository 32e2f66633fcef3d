"""The terms of a translation: what it must know beside the body, and the list of its losses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from smart_model_router.domain.request import HostedTools

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
