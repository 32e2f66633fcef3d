"""The list of models that a provider has (`GET /models`), in any of the spellings that providers use."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import httpx2

from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.ports import ListedModel
from smart_model_router.wires.values import decode, is_list, is_object
from smart_model_router_providers.classify import classify_exception, classify_response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SECONDS = 5.0
_BYTES = 8 * 1024 * 1024
_WINDOWS = (
    "context_window",  # Groq
    "context_length",  # OpenRouter, Together
    "max_context_length",  # Mistral
    "max_input_tokens",  # Anthropic
    "max_model_len",  # vLLM
)
"""Where lists say how long a prompt may be."""


async def list_models(url: httpx2.URL, headers: Mapping[str, str], kind: str) -> Sequence[ListedModel] | Failure:
    """Ask for the list; 5 s and 8 MB at most."""
    whole = {"limit": 1000} if kind == "anthropic" else None  # it shows 20 at a time otherwise
    body = b""
    try:
        # The client's own timeout is of each read: an answer may come drop by drop.
        async with (
            asyncio.timeout(_SECONDS),
            httpx2.AsyncClient(timeout=_SECONDS) as client,
            client.stream("GET", url, headers=dict(headers), params=whole) as response,
        ):
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _BYTES:
                    return Failure(FailureClass.MALFORMED, f"the list of models has more than {_BYTES} bytes")
    except httpx2.HTTPError as error:
        return classify_exception(error, kind=kind)
    except TimeoutError:
        return Failure(FailureClass.TIMEOUT, f"the list of models did not come within {_SECONDS:g} s")
    if response.status_code != 200:
        return classify_response(response.status_code, dict(response.headers), body, kind=kind)
    return read_list(body)


def read_list(body: bytes) -> Sequence[ListedModel] | Failure:
    """The models of a list: `{"data": [{"id": ...}]}`, or a bare array as Together answers."""
    found = decode(body)
    models = found.get("data") if is_object(found) else found
    if not is_list(models):
        return Failure(FailureClass.MALFORMED, "the list of models is no list")
    named = [model for model in models if is_object(model) and isinstance(model.get("id"), str)]
    return tuple(ListedModel(model["id"].removeprefix("models/"), _window(model)) for model in named)


def _window(model: Mapping[str, Any]) -> int | None:
    said = (model.get(key) for key in _WINDOWS)
    return next((value for value in said if isinstance(value, int) and not isinstance(value, bool) and value > 0), None)
