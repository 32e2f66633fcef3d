"""Any ready openai / anthropic SDK client as a provider: its auth and its URLs, without its models and retries."""

from __future__ import annotations

import importlib
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.forwarded_headers import FORWARDED
from smart_model_router.domain.outcome import Failure, FailureClass, Outcome
from smart_model_router.wires import STREAMING
from smart_model_router_providers.response import HttpxReply, known_failure, no_stream, read_stream, read_whole

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.ports import ProviderCall, ProviderStream
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


class SdkProvider:
    """A provider reached through an SDK client (ports.Provider): AsyncAzureOpenAI with AD tokens, Bedrock, Vertex.

    The client is closed with the provider, as SDKs do with a transport they are given. `kind` is the catalog's row
    whose rate-limit headers the endpoint sends. Raises ConfigurationError for a synchronous client.
    """

    def __init__(self, client: Any, *, kind: str | None = None) -> None:
        self._sdk = sdk_of(client)
        self._httpx = httpx_of(self._sdk)
        self._client: Any = client
        self.kind = kind or ("azure" if "Azure" in type(client).__name__ else self._sdk.package)
        if hasattr(self._client, "open_telemetry"):  # the router's own telemetry tells the whole story, once
            self._client = self._client.with_options(open_telemetry=False)

    @property
    def client_headers(self) -> dict[str, str]:
        """The headers of the client that the router's callers may send as well (forwarded_headers.py)."""
        own = {name.lower(): value for name, value in self._client.default_headers.items() if isinstance(value, str)}
        return {name: own[name] for name in FORWARDED.keys() & own.keys()}

    @property
    def dialects(self) -> frozenset[Dialect]:
        """The dialects that the client speaks; the router translates to one of these."""
        return frozenset(self._sdk.paths)

    async def call(self, call: ProviderCall) -> Outcome:
        """Make the call and read the whole answer."""
        response = await self._post(call)
        if isinstance(response, Failure):
            return response
        return await read_whole(HttpxReply(response), call.dialect, self.kind)

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Make the call and return once the response head is there."""
        if call.dialect not in STREAMING:
            return no_stream(call.dialect)
        response = await self._post(call)
        if isinstance(response, Failure):
            return response
        return await read_stream(HttpxReply(response), call.dialect, self.kind)

    async def aclose(self) -> None:
        """Close the client; safe to call twice."""
        await self._client.close()

    async def _post(self, call: ProviderCall) -> Any | Failure:  # a Response of either httpx
        path = self._sdk.paths.get(call.dialect)
        if path is None:
            name = type(self._client).__name__
            return Failure(FailureClass.MISCONFIGURED, f"{name} does not speak {call.dialect}")
        try:
            return await self._client.post(
                path,
                cast_to=self._httpx.Response,
                # Decoded, not bytes: Azure, Bedrock and Vertex take the model out of it to make their URLs.
                body=json.loads(call.payload),
                options={
                    "max_retries": 0,  # the router owns retries
                    "timeout": self._httpx.Timeout(None, connect=call.connect_timeout),
                    "follow_redirects": False,
                    "headers": dict(call.headers),
                    "params": dict(parse_qsl(call.query)),
                },
                stream=True,  # a raw response is then handed over before its body is read
            )
        except Exception as exc:  # noqa: BLE001 - known_failure raises what is not an SDK's
            return known_failure(exc, self.kind)
