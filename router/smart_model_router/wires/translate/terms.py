"""What a translation must know beside the body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.request import HostedTools
    from smart_model_router.wires.translate.losses import Losses


@dataclass(frozen=True, slots=True)
class Terms:
    """`family` is whose model answers: reasoning that was sealed for it goes back to it and to nobody else.

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
    """What the way back needs: the request as it was before the step, the terms, and where losses are told."""

    asked: Mapping[str, Any]
    terms: Terms
    losses: Losses
