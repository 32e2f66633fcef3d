"""Any OpenAI- or Anthropic-compatible endpoint over one connection pool; bodies go out as they came."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

import httpx2

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.forwarded_headers import FORWARDED, USUAL_VERSION, VERSION
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.ports import ListedModel
from smart_model_router.wires import STREAMING
from smart_model_router.wires.values import decode, is_list, is_object
from smart_model_router_providers.catalog import kind_of
from smart_model_router_providers.classify import classify_exception, classify_response
from smart_model_router_providers.http_request import ProviderEndpoint, check_headers
from smart_model_router_providers.http_transport import ConnectionPool
from smart_model_router_providers.httpx2_transport import GivenTransport
from smart_model_router_providers.response import (
    known_failure,
    no_stream,
    read_plain,
    read_stream,
    read_whole,
)
from smart_model_router_providers.signals import read_limits

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence

    from smart_model_router.domain.outcome import LimitReading, Outcome
    from smart_model_router.domain.ports import PassedCall, PassedReply, ProviderCall, ProviderStream
    from smart_model_router.domain.request import Dialect, Operation
    from smart_model_router_providers.catalog import AuthStyle
    from smart_model_router_providers.response import Reply

_OK = range(200, 300)
_ERROR_BYTES = 1024 * 1024
_NO_SCOPE = re.compile(r"missing scopes|insufficient permissions", re.IGNORECASE)
"""OpenAI, of a restricted key: a 401 about this path. The key is good for others."""


class PlainReply:
    """An answer whose body nothing here understands (ports.PassedReply)."""

    def __init__(self, reply: Reply, kind: str) -> None:
        self._reply = reply
        self._kind = kind
        self.status = reply.status
        self.headers: Mapping[str, str] = reply.headers
        self.reading: LimitReading = read_limits(kind, reply.headers)

    async def next_piece(self) -> bytes | Failure:
        """The next bytes; b"" after the last. A body that ends too early is TRUNCATED: the head had arrived."""
        try:
            return await self._reply.more()
        except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
            failure = known_failure(exc, self._kind)
            cut = failure.failure_class is FailureClass.TRANSPORT
            found = FailureClass.TRUNCATED if cut else failure.failure_class
            return replace(failure, failure_class=found, status=self.status, headers=self.headers)

    async def aclose(self) -> None:
        """Give the connection back or drop it; safe to call twice."""
        await self._reply.aclose()


async def read_plain_reply(reply: Reply, kind: str) -> PlainReply | Failure:
    """The answer that a reply is, or the failure that it means."""
    if reply.status in _OK:
        return PlainReply(reply, kind)
    failure = classify_response(reply.status, reply.headers, await _error_body(reply, kind), kind=kind)
    if failure.credential_wide and _NO_SCOPE.search(failure.message):
        return replace(failure, credential_wide=False)
    return failure


async def _error_body(reply: Reply, kind: str) -> bytes:
    """The body of an error; b"" where it is too long or breaks off: the status already says what happened."""
    body = b""
    try:
        while piece := await reply.more():
            body += piece
            if len(body) > _ERROR_BYTES:
                return b""
    except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
        known_failure(exc, kind)
        return b""
    finally:
        await reply.aclose()
    return body


_SECONDS = 5.0
_BYTES = 8 * 1024 * 1024
_WINDOWS = (
    "context_window",  # Groq
    "context_length",  # OpenRouter, Together
    "max_context_length",  # Mistral
    "max_input_tokens",  # Anthropic
    "max_model_len",  # vLLM
)
"""The fields of listings that name the longest prompt."""


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


PATHS: Mapping[Dialect, str] = MappingProxyType(
    {"chat": "/chat/completions", "messages": "/messages", "responses": "/responses", "embeddings": "/embeddings"}
)
"""Below the base URL, which ends in /v1 where the provider has one."""

ANTHROPIC_VERSIONS: Mapping[str, tuple[AuthStyle, frozenset[str]]] = MappingProxyType(
    {
        "2023-06-01": ("x-api-key", frozenset()),
        "2026-10-21": ("bearer", frozenset({"temperature", "top_p", "top_k"})),
    }
)
"""anthropic-version -> (auth style, parameters it rejects). Another date is like the newest one before it."""

_AZURE_VERSION = "2024-10-21"
_OPERATIONS: Mapping[Operation, tuple[str, str]] = MappingProxyType(
    {
        "compact": ("POST", "compact"),
        "count": ("POST", "input_tokens"),
        "retrieve": ("GET", ""),
        "delete": ("DELETE", ""),
    }
)
"""The method of an operation, and what follows the path of its dialect: "" is the thing's id."""
_FIXED_HEADERS = {
    "accept": "*/*",
    "content-type": "application/json",
    "accept-encoding": "gzip, deflate",
    "user-agent": "smart-model-router",
}


class HttpProvider:
    """A provider reached over HTTP (ports.Provider).

    `base_url` defaults to the kind's own. `api_keys` are the credentials by number; none means an endpoint
    without authentication. `api_version` is Anthropic's or Azure's. `headers` go out with every call and win
    over ours. `drop_params` are top-level fields removed from every body; `dropped_params` are those and the
    ones the API version rejects. `transport` replaces the default pool and is closed with the provider.

    Raises ConfigurationError, never showing a key.
    """

    operations: frozenset[Operation] = frozenset({"compact", "count", "retrieve", "delete"})

    def __init__(
        self,
        *,
        kind: str = "openai_compatible",
        base_url: str | None = None,
        api_keys: Sequence[str] = (),
        api_version: str | None = None,
        headers: Mapping[str, str] = MappingProxyType({}),
        drop_params: Sequence[str] = (),
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        row = kind_of(kind)
        self.kind = kind
        self._base_url = _checked_url(kind, base_url if base_url is not None else row.base_url)
        auth, rejected, version = row.auth, frozenset[str](), USUAL_VERSION
        if kind == "anthropic":
            version = api_version or version
            auth, rejected = _anthropic_rules(version)
        self.dropped_params = frozenset(drop_params) | rejected
        has_deployments = _has_deployments(kind, self._base_url)
        self._azure_version = (api_version or _AZURE_VERSION) if has_deployments else None
        keys = _checked_keys(api_keys) or [""]
        own = {name.lower(): value for name, value in headers.items()}
        check_headers(own)
        pinned = {VERSION: api_version} if kind == "anthropic" and api_version else {}
        self.client_headers = {**pinned, **{name: own[name] for name in FORWARDED.keys() & own.keys()}}
        """The configured headers that clients may send as well; forwarded_headers.py says what becomes of the two."""
        self._keys = keys
        wires: dict[Dialect, dict[str, str]] = {"messages": {VERSION: version}}
        self._headers = {
            dialect: [{**_FIXED_HEADERS, **wires.get(dialect, {}), **_auth_header(auth, key), **own} for key in keys]
            for dialect in PATHS
        }
        self._endpoints: dict[tuple[Dialect, int, str, str], ProviderEndpoint] = {}
        self._pool = ConnectionPool(self._base_url) if transport is None else GivenTransport(transport)

    async def call(self, call: ProviderCall) -> Outcome:
        """Make the call and read the whole answer."""
        if (refused := self._without_deployment(call.model)) is not None:
            return refused
        try:
            reply = await self._send(call)
        except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
            return known_failure(exc, self.kind)
        if call.operation in ("create", "compact"):
            return await read_whole(reply, call.dialect, self.kind)
        return await read_plain(reply, self.kind)

    async def open_stream(self, call: ProviderCall) -> ProviderStream | Failure:
        """Make the call and return once the response head is there."""
        if call.dialect not in STREAMING:
            return no_stream(call.dialect)
        if (refused := self._without_deployment(call.model)) is not None:
            return refused
        try:
            reply = await self._send(call)
        except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
            return known_failure(exc, self.kind)
        return await read_stream(reply, call.dialect, self.kind)

    async def pass_through(self, call: PassedCall) -> PassedReply | Failure:
        """Send a request of another path than the dialects' once; return once the head of the answer is there."""
        path = call.path.removeprefix("/v1")  # which the base URL ends in, where the provider has one
        if (refused := self._without_deployment(call.deployment)) is not None:
            wanted = "name it in the route (provider/deployment), or in the path as AzureOpenAI does"
            return replace(refused, message=f"{refused.message}: {wanted}")
        url = self._url(path, call.deployment)
        if call.query:
            url = url.copy_with(query=b"&".join(filter(None, (url.query, call.query.encode()))))
        # Without compression what comes can be handed on as it comes.
        headers = {**self._headers["chat"][call.credential], "accept-encoding": "identity", **call.headers}
        if "content-type" not in call.headers:
            del headers["content-type"]
        try:
            reply = await self._pool.send(ProviderEndpoint(url, headers), call.body, call.length, call.connect_timeout)
            return await read_plain_reply(reply, self.kind)
        except Exception as exc:  # noqa: BLE001 - known_failure raises what is not a transport's
            return known_failure(exc, self.kind)

    async def models(self) -> Sequence[ListedModel] | Failure:
        """The models that the provider lists for the first credential; none where the URL names deployments."""
        if self._azure_version:
            return ()
        url = self._base_url.copy_with(path=self._base_url.path.rstrip("/") + "/models")
        headers = self._headers["messages" if self.kind == "anthropic" else "chat"][0]
        return await list_models(url, {name: headers[name] for name in headers if name != "content-type"}, self.kind)

    async def aclose(self) -> None:
        """Close every connection; safe to call twice."""
        await self._pool.aclose()

    def _without_deployment(self, name: str) -> Failure | None:
        """The failure of a call whose URL would name no deployment: dots would make it another path."""
        if not self._azure_version or name not in ("", ".", ".."):
            return None
        return Failure(FailureClass.INVALID_REQUEST, f"Azure needs the name of a deployment in its URL, not {name!r}")

    def _send(self, call: ProviderCall) -> Awaitable[Reply]:
        deployment = call.model if self._azure_version else ""
        endpoint = self._endpoint(call.dialect, call.credential, deployment, call.query)
        if call.headers and not call.headers.items() <= endpoint.headers.items():
            endpoint = self._told(endpoint, call)
        if call.operation != "create":
            endpoint = _operated(endpoint, call)
        payload = self._payload(call) if self.dropped_params else call.payload
        return self._pool.post(endpoint, payload, call.connect_timeout)

    def _told(self, endpoint: ProviderEndpoint, call: ProviderCall) -> ProviderEndpoint:
        """The endpoint with what the client said. The version of Anthropic's API decides how the key is sent."""
        headers = {**endpoint.headers, **{name.lower(): value for name, value in call.headers.items()}}
        if self.kind == "anthropic" and headers.get(VERSION) != endpoint.headers.get(VERSION):
            key = self._keys[call.credential]
            before, after = (_auth_header(_auth_of(one.get(VERSION, "")), key) for one in (endpoint.headers, headers))
            if before.items() <= headers.items():  # a configured header in its place stays
                headers = {name: value for name, value in headers.items() if name not in before} | after
        return ProviderEndpoint(endpoint.url, headers)

    def _payload(self, call: ProviderCall) -> bytes:
        if self.dropped_params.isdisjoint(call.body):
            return call.payload
        body: dict[str, Any] = json.loads(call.payload)
        kept = {key: value for key, value in body.items() if key not in self.dropped_params}
        return json.dumps(kept, separators=(",", ":")).encode()

    def _endpoint(self, dialect: Dialect, credential: int, deployment: str, query: str = "") -> ProviderEndpoint:
        key = (dialect, credential, deployment, query)
        found = self._endpoints.get(key)
        if found is None:
            url = self._url(PATHS[dialect], deployment)
            if query:
                url = url.copy_merge_params(dict(parse_qsl(query)))
            found = self._endpoints[key] = ProviderEndpoint(url, self._headers[dialect][credential])
        return found

    def _url(self, path: str, deployment: str) -> httpx2.URL:
        """The URL of a path below the base URL; Azure's own URLs name the deployment, and the version in the query."""
        base = self._base_url.path.rstrip("/")
        if not self._azure_version:
            return self._base_url.copy_with(path=base + path)
        path = f"{base}/openai/deployments/{quote(deployment, safe='')}{path}"
        return self._base_url.copy_with(path=path, params={"api-version": self._azure_version})


def _operated(endpoint: ProviderEndpoint, call: ProviderCall) -> ProviderEndpoint:
    """The path of an operation other than an answer: `/responses/compact`, or `/responses/{id}`."""
    method, end = _OPERATIONS[call.operation]
    path, mark, query = endpoint.url.raw_path.partition(b"?")
    path += b"/" + (end or quote(call.thing, safe="")).encode()
    return ProviderEndpoint(endpoint.url.copy_with(raw_path=path + mark + query), endpoint.headers, method)


def _checked_url(kind: str, base_url: str | None) -> httpx2.URL:
    expected = "an http:// or https:// URL with a host"
    if not base_url:
        raise ConfigurationError("base_url", base_url, f"{expected}; kind {kind} has no default")
    try:
        url = httpx2.URL(base_url)
    except httpx2.InvalidURL:
        raise ConfigurationError("base_url", base_url, expected) from None
    if url.scheme not in ("http", "https") or not url.host or (url.port or 0) > 65535:
        raise ConfigurationError("base_url", base_url, expected)
    # The Anthropic SDK's base URL has no /v1; ours, as everyone else's, does.
    return url.copy_with(path="/v1") if kind == "anthropic" and url.path in ("", "/") else url


def _checked_keys(api_keys: Sequence[str]) -> list[str]:
    if isinstance(api_keys, str):
        raise ConfigurationError("api_keys", "(hidden)", "a list of keys, not a single string")
    for number, key in enumerate(api_keys):
        if not key or not key.isascii() or not key.isprintable() or " " in key:
            wanted = "a key of ASCII letters, digits and signs is needed, without spaces and line breaks"
            raise ConfigurationError(f"api_keys[{number}]", "(hidden)", f"{wanted}: this one {_flaw(key)}")
    return list(api_keys)


def _flaw(key: str) -> str:
    """The reason why a key cannot be sent, without a sign of it."""
    if not key.strip():
        return "is blank"
    inside = key.strip()
    if inside.isascii() and inside.isprintable() and " " not in inside:
        return f"has a {'line break' if key.rstrip(' ').endswith(chr(10)) else 'space'} at its beginning or end"
    return "has another sign in it"


def _anthropic_rules(version: str) -> tuple[AuthStyle, frozenset[str]]:
    known = [date for date in sorted(ANTHROPIC_VERSIONS) if date <= version]
    if not known or len(version) != len("2023-06-01"):
        dates = ", ".join(ANTHROPIC_VERSIONS)
        raise ConfigurationError("api_version", version, f"a date of Anthropic's API, such as {dates}")
    return ANTHROPIC_VERSIONS[known[-1]]


def _auth_of(version: str) -> AuthStyle:
    """The header of the key for a version that a client asks for."""
    return ANTHROPIC_VERSIONS[max((date for date in ANTHROPIC_VERSIONS if date <= version), default=USUAL_VERSION)][0]


def _has_deployments(kind: str, url: httpx2.URL) -> bool:
    """Azure's own URLs name the deployment; its newer /openai/v1 is like everyone's."""
    return kind == "azure" and not url.path.rstrip("/").endswith("/v1")


def _auth_header(style: AuthStyle, key: str) -> dict[str, str]:
    if not key or style == "none":
        return {}
    return {"authorization": f"Bearer {key}"} if style == "bearer" else {style: key}
