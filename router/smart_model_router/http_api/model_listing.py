"""`GET /v1/models` and `GET /v1/models/{name}` in the form of OpenAI and of Anthropic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from smart_model_router.domain.errors import ModelNotFound
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.flow.model_list import NamedModel
from smart_model_router.http_api.api_errors import NO_MODEL, ProblemError
from smart_model_router.http_api.http import Family, HttpReply, json_reply
from smart_model_router.router import SmartModelRouter

MODELS = "/v1/models"

_CREATED = 1_700_000_000
_CREATED_AT = "2023-11-14T22:13:20Z"
"""Clients want to know when a model was made; ours are names, not files, and are all of one day."""


def asks_for_models(method: str, path: str) -> bool:
    """True for a request that `answer_models` answers."""
    return method in ("GET", "HEAD") and (path == MODELS or path.startswith(f"{MODELS}/"))


async def answer_models(
    router: SmartModelRouter, path: str, family: Family, may_use: Callable[[str], bool] = lambda _: True
) -> HttpReply:
    """The models that this client may use, or the one that the path names. Raises ProblemError for an unknown one."""
    if path == MODELS:
        return json_reply(_listed([model for model in await router.models() if may_use(model.name)], family))
    name = path.removeprefix(f"{MODELS}/")
    try:
        model = await router.model(name)
    except ModelNotFound:
        model = None
    if model is None or not may_use(name):
        known = [known for known in router.config.names if may_use(known)]
        raise ProblemError(NO_MODEL, f"model: {name[:100]!r} is unknown; {did_you_mean(name, known)}")
    return json_reply(_shown(model, family))


def _shown(model: NamedModel, family: Family) -> dict[str, Any]:
    """A model. Agents compact their conversations by its window: it is told under the names that clients look for."""
    window = model.context_tokens
    windows: dict[str, Any] = {} if window is None else {"context_window": window, "max_input_tokens": window}
    own: dict[str, Any]
    if family == "anthropic":
        own = {"type": "model", "id": model.name, "display_name": model.name, "created_at": _CREATED_AT}
    else:
        own = {"id": model.name, "object": "model", "created": _CREATED, "owned_by": "smart-model-router"}
    return {**own, **windows}


def _listed(models: Sequence[NamedModel], family: Family) -> dict[str, Any]:
    data = [_shown(model, family) for model in models]
    if family == "anthropic":
        first, last = (models[0].name, models[-1].name) if models else (None, None)
        return {"data": data, "has_more": False, "first_id": first, "last_id": last}
    return {"object": "list", "data": data}
