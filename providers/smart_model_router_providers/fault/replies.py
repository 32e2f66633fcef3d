"""Good answers, whatever the dialect: the table of dialects, an answer without results, the list of models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from smart_model_router_providers.fault.answers import CREATED, ScriptedAnswer, dumps
from smart_model_router_providers.fault.chat import chat
from smart_model_router_providers.fault.embeddings import embeddings
from smart_model_router_providers.fault.messages import messages
from smart_model_router_providers.fault.parsed_request import Dialect, Question
from smart_model_router_providers.fault.responses import responses

_ANSWERS: Mapping[Dialect, Callable[[Question], ScriptedAnswer]] = MappingProxyType(
    {"chat": chat, "messages": messages, "responses": responses, "embeddings": embeddings}
)


def answer(question: Question) -> ScriptedAnswer:
    """Write the good answer to a question."""
    return _ANSWERS[question.dialect](question)


_EMPTY_LISTS: Mapping[Dialect, str] = MappingProxyType(
    {"chat": "choices", "messages": "content", "responses": "output", "embeddings": "data"}
)


def without_choices(question: Question) -> bytes:
    """A whole answer whose list of results is empty."""
    parts = answer(replace(question, stream=False))
    return dumps({**json.loads(b"".join(parts.content + parts.closing)), _EMPTY_LISTS[question.dialect]: []})


def models(names: Sequence[str], *, anthropic: bool) -> bytes:
    """Write the list of models, in the shape of the client that asks."""
    if anthropic:
        listed = [
            {"type": "model", "id": name, "display_name": name, "created_at": "2025-11-21T00:00:00Z"} for name in names
        ]
        ends = {"first_id": names[0], "last_id": names[-1]} if names else {"first_id": None, "last_id": None}
        return dumps({"data": listed, "has_more": False, **ends})
    data = [{"id": name, "object": "model", "created": CREATED, "owned_by": "fault"} for name in names]
    return dumps({"object": "list", "data": data})
