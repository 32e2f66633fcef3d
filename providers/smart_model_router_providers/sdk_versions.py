"""Differences between the SDKs: the httpx of each major, and the path of each dialect."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.request import Dialect


@dataclass(frozen=True, slots=True)
class Sdk:
    """One SDK package. `paths` are relative to its clients' base URLs; `httpx2_since` is a major version."""

    package: str
    httpx2_since: int
    paths: Mapping[Dialect, str]


SDKS: Mapping[str, Sdk] = MappingProxyType(
    {
        "openai": Sdk(
            "openai",
            3,
            MappingProxyType({"chat": "/chat/completions", "responses": "/responses", "embeddings": "/embeddings"}),
        ),
        "anthropic": Sdk("anthropic", 1, MappingProxyType({"messages": "/v1/messages"})),
    }
)

_EXPECTED = "a ready asynchronous client of the openai or anthropic SDK (AsyncOpenAI, AsyncAnthropic, ...)"


def sdk_of(client: object) -> Sdk:
    """The SDK of a ready client. Raises ConfigurationError for a synchronous client and for anything else."""
    for ancestor in type(client).__mro__:
        sdk = SDKS.get(ancestor.__module__.partition(".")[0])
        if sdk is not None and ancestor.__name__ == "AsyncAPIClient":
            return sdk
        if sdk is not None and ancestor.__name__ == "SyncAPIClient":
            name = type(client).__name__
            raise ConfigurationError("client", name, f"{_EXPECTED}; a synchronous one would block the loop")
    raise ConfigurationError("client", type(client).__name__, _EXPECTED)


def httpx_of(sdk: Sdk) -> Any:
    """The module (httpx2 or httpx, alike in names) whose Response the installed major of the SDK speaks."""
    major = int(importlib.import_module(sdk.package).__version__.partition(".")[0])
    return importlib.import_module("httpx2" if major >= sdk.httpx2_since else "httpx")
