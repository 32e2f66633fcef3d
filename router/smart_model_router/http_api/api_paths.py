"""Paths as clients spell them, and the path of this API that each stands for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from smart_model_router.domain.suggest import did_you_mean

_ROOTS = (
    "chat/completions", "messages", "responses", "embeddings", "completions", "models", "moderations", "audio",
    "images", "rerank",
)  # fmt: skip
"""What stands behind `/v1/` here, and behind `/` or `/openai/` for some clients."""
_DEPLOYMENTS = "/openai/deployments/"


_ELSEWHERE = {
    "/v1/files": "files are kept at one provider: ask it",
    "/v1/batches": "batches are kept at one provider: ask it",
    "/v1/messages/batches": "batches are kept at one provider: ask it",
    "/v1beta/": "Gemini's own API is not spoken here; /v1/chat/completions reaches its models",
    "/v1/realtime": "realtime sessions are not routed; /v1/responses is",
    "/v1/assistants": "assistants are not routed; /v1/responses is",
    "/v1/threads": "threads are not routed; /v1/responses is",
}
"""What is said of paths of other APIs, by how they begin."""


class Spelled(NamedTuple):
    """A path of this API, and the model that the client named in its path; "" where it named none."""

    path: str
    model: str = ""


def canonical(path: str) -> Spelled:
    """The path that `path`, which is percent-decoded, stands for; itself where it is none of the other spellings.

    Accepted: a slash at the end; no `/v1` (a base URL without it); `/openai/...` and `/openai/v1/...`, and
    `/openai/deployments/{model}/...`, as the AzureOpenAI client asks.
    """
    path = path.rstrip("/") or "/"
    if path.startswith(_DEPLOYMENTS):
        return _deployment(path)
    bare = path.removeprefix("/openai").removeprefix("/v1").removeprefix("/")
    known = any(bare == root or bare.startswith(f"{root}/") for root in _ROOTS)
    return Spelled(f"/v1/{bare}" if known and not path.startswith("/v1/v1") else path)


def hint(path: str, known: Iterable[str]) -> str:
    """What would be right in place of a path that is not there."""
    said = next((text for beginning, text in _ELSEWHERE.items() if path.startswith(beginning)), None)
    return said or did_you_mean(path, known)


def _deployment(path: str) -> Spelled:
    """The deployment may have slashes in its name: what follows it is the last thing that is known here."""
    rest = path.removeprefix(_DEPLOYMENTS)
    for root in _ROOTS:
        for end in (f"/{root}", f"/{root}/"):
            at = rest.rfind(end)
            if at >= 0 and (end.endswith("/") or rest.endswith(end)):
                return Spelled(f"/v1{rest[at:]}", rest[:at]) if at else Spelled(path)
    return Spelled(path)
