"""Any failure -> FailureClass: the status, then codes, then quirks; and why a connection failed, in words."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
from collections import deque
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from smart_model_router.domain.outcome import CooldownRule, Failure, FailureClass, Scope
from smart_model_router.wires.outcomes import (
    class_of_codes,
    class_of_status,
    error_codes,
    error_message,
    error_status,
    failure_of,
    shown,
)
from smart_model_router.wires.values import decode, is_list, is_object, items, mapping
from smart_model_router_providers.signals import family_of, headers_inside, read_limits, read_wait

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_MOST_LINKS = 16

_UNREACHABLE = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EADDRNOTAVAIL})


def _of_certificate(exc: Any) -> str | None:
    said = getattr(exc, "verify_message", "")  # aiohttp's own subclass has none
    return f"the certificate was not accepted: {said.rstrip('.')}" if said else None


def _of_tls(exc: Any) -> str | None:
    said = getattr(exc, "reason", None)
    return f"no TLS connection: {said.replace('_', ' ').lower()}" if said else None


def _of_name(exc: Any) -> str:
    return f"the host name was not resolved: {(exc.strerror or str(exc)).lower()}"


_WORDS: Mapping[type[BaseException], Callable[[Any], str | None]] = {
    ssl.SSLCertVerificationError: _of_certificate,
    ssl.SSLError: _of_tls,
    socket.gaierror: _of_name,
    ConnectionRefusedError: lambda _: "the connection was refused",
    ConnectionResetError: lambda _: "the connection was reset",
    BrokenPipeError: lambda _: "the connection was closed while the request was sent",
}


def reason_of(exc: BaseException) -> tuple[str, str]:
    """The reason why the connection behind an exception failed, and its address; "" for either where no cause tells.

    Libraries wrap what the system raised several times over, some in a group.
    """
    links = [*_links(exc)]
    reason = next(filter(None, map(_reason_words, links)), "")
    return reason, next(filter(None, map(_address, links)), "") if reason else ""


def _reason_words(exc: BaseException) -> str | None:
    for kind, words in _WORDS.items():
        if isinstance(exc, kind):
            return words(exc)
    name = type(exc).__name__
    if name == "ServerDisconnectedError" or (name == "RemoteProtocolError" and "disconnected" in str(exc)):
        return "the server closed the connection without an answer"
    number = getattr(exc, "errno", None)
    if isinstance(exc, OSError) and number in _UNREACHABLE:
        return f"the network did not reach the host: {os.strerror(number).lower()}"
    return None


def _links(exc: BaseException) -> Iterator[BaseException]:
    """The exception and everything that it came of, nearest first."""
    seen: list[BaseException] = []
    ahead = deque([exc])
    while ahead and len(seen) < _MOST_LINKS:
        link = ahead.popleft()
        if any(link is other for other in seen):
            continue
        seen.append(link)
        yield link
        ahead += [cause for cause in (link.__cause__, link.__context__) if cause is not None]
        if isinstance(link, BaseExceptionGroup):
            ahead += link.exceptions


def _address(exc: Any) -> str:
    """`host:port` of an exception that knows it: aiohttp's, and those of httpx and the SDKs by their request."""
    host, port = getattr(exc, "host", None), getattr(exc, "port", None)
    if host is None:
        try:
            url = exc.request.url
        except (AttributeError, RuntimeError):  # httpx raises the latter where there is no request
            return ""
        host, port = url.host, url.port or {"http": 80, "https": 443}.get(url.scheme)
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


_F = FailureClass


@dataclass(frozen=True, slots=True)
class Quirk:
    """A class that only the text shows: an answer of `statuses` whose text matches `pattern` is of `failure_class`.

    `header` is a header that must be there as well.
    """

    failure_class: FailureClass
    statuses: frozenset[int]
    pattern: re.Pattern[str]
    header: str = ""


def _quirk(found: FailureClass, statuses: str, pattern: str, header: str = "") -> Quirk:
    return Quirk(found, frozenset(map(int, statuses.split())), re.compile(pattern, re.IGNORECASE), header)


# fmt: off
QUIRKS: tuple[Quirk, ...] = (
    _quirk(_F.RATE_LIMITED, "402", "openrouter_in_flight_budget", "retry-after"),  # OpenRouter: in flight
    _quirk(_F.QUOTA, "400 403 429", "API usage limits.{0,200}regain access"),  # Anthropic: a 400 with a date
    _quirk(_F.QUOTA, "400 403", "credit balance is too low"),  # Anthropic: a 400 invalid_request_error
    _quirk(_F.QUOTA, "400 403 429", "_spend_limit_reached"),  # Anthropic: details of a 429
    _quirk(_F.QUOTA, "403 429", "have any credits|used all available credits"),  # xAI: a 403 of a new team
    _quirk(_F.QUOTA, "400 403 429", "insufficient balance"),  # DeepSeek and resellers
    _quirk(_F.AUTH, "400 403", "incorrect api key|api key not valid|invalid api key"),  # xAI, Gemini: a 400
    _quirk(_F.MODEL_GONE, "404", r"\b(?:models?|deployment)\b"),  # OpenAI, vLLM, Anthropic, Gemini, Ollama
    _quirk(_F.MODEL_GONE, "404", "no endpoints found"),  # OpenRouter: no provider serves that model any more
    _quirk(_F.MODEL_GONE, "400", "not a valid model|model not exist"),  # OpenRouter; DeepSeek
    _quirk(_F.MODEL_GONE, "400", "model.{0,80}(?:does not exist|decommissioned|no longer)"),  # Groq, Cerebras
    _quirk(_F.MODEL_GONE, "400 403", "access to (?:the )?model"),  # OpenAI projects, Bedrock
    _quirk(_F.MODEL_GONE, "400 403", "location is not supported"),  # Gemini: a 400 FAILED_PRECONDITION
    _quirk(_F.CONTEXT_LENGTH, "400 413 422", "maximum context length"),  # OpenAI, vLLM, Mistral
    _quirk(_F.CONTEXT_LENGTH, "400 413 422", "prompt is too long|exceed context limit"),  # Anthropic
    _quirk(_F.CONTEXT_LENGTH, "400 413 422", "maximum number of tokens allowed"),  # Gemini
    _quirk(_F.CONTEXT_LENGTH, "400 413 422", "available context size"),  # llama.cpp, older
    _quirk(_F.CONTEXT_LENGTH, "400 413 422", "reduce the length of the messages"),  # Groq, Cerebras
    _quirk(_F.CONTEXT_LENGTH, "400 413 422", "maximum prompt length is"),  # xAI
    _quirk(_F.CONTEXT_LENGTH, "400 413 422", "input is too long for requested model"),  # Bedrock
    _quirk(_F.CONTENT_FILTERED, "403", "moderation|flagged"),  # OpenRouter: a 403 with the reasons
    _quirk(_F.CONTENT_FILTERED, "400", "content management policy"),  # Azure, nested
    _quirk(_F.CONTENT_FILTERED, "400", "blocked by content filtering policy"),  # Anthropic
    _quirk(_F.CONTENT_FILTERED, "400", "content exists risk"),  # DeepSeek
    _quirk(_F.WARMING, "503", "loading model|is (?:currently )?loading"),  # llama.cpp; Hugging Face
    _quirk(_F.OVERLOADED, "503", "overloaded|over capacity|capacity exceeded|high demand"),  # OpenAI, Gemini
    _quirk(_F.OVERLOADED, "503", "server busy|pending requests|queue"),  # Ollama
    _quirk(_F.OVERLOADED, "503", "", "retry-after"),  # RFC 9110 15.6.4: overload or maintenance
)
# fmt: on
"""The first that matches wins; a code that tells more than its status (wires/outcomes.py) goes before."""

WINDOWS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"maximum context length (?:is|of) ([\d,]{1,12})",  # OpenAI, vLLM, Mistral, OpenRouter
        r"> ([\d,]{1,12})(?: maximum|\b)",  # Anthropic: "215000 tokens > 200000 maximum", "1 + 2 > 200000"
        r"maximum number of tokens allowed \(?([\d,]{1,12})",  # Gemini
        r"available context size \(?([\d,]{1,12})",  # llama.cpp, older
        r"maximum prompt length is ([\d,]{1,12})",  # xAI
    )
)
"""The texts by which providers name the longest prompt, where they refuse a longer one."""
_LEAST_WINDOW, _LARGEST_WINDOW = 16, 100_000_000
"""Tokens: anything else is no window."""
_CODE_CHARACTERS = 64
_READ_BODY_BYTES = 1024 * 1024
"""Of a longer error body only the status is believed."""

_PAGE = re.compile(rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html)\b", re.IGNORECASE)
_HTML_TITLE = re.compile(r"<title[^>]*>([^<]{1,200})", re.IGNORECASE)
_WAITS = frozenset({CooldownRule.LAW, CooldownRule.HINT_OR_BRIEF, CooldownRule.WALL})
_SCOPES: Mapping[FailureClass, Scope] = MappingProxyType(
    {_F.OVERLOADED: "overload", _F.WARMING: "overload", _F.QUOTA: "credit"}
)
# These say "not this" of a good key; every other word for AUTH says that the key itself is bad.
_NARROW_CODES = frozenset({"permission_error", "permission_denied"})


def classify_response(
    status: int, headers: Mapping[str, str], body: bytes, *, kind: str = "openai_compatible"
) -> Failure:
    """The failure that an HTTP answer means: any status but 200, or a 200 that holds an error or no answer.

    `headers` have lower-case names; `kind` is the provider's row in the catalog. Never raises.
    """
    value = decode(body) if len(body) <= _READ_BODY_BYTES else None
    error = find_error(value)
    if not 200 <= status < 300:
        return classify_error(error or mapping(value), headers, status=status, raw=body, kind=kind)
    if error is not None:
        return classify_error(error, headers, raw=body, kind=kind)
    message = f"HTTP {status} without an answer in it: {_summary(body)}"
    return Failure(_F.MALFORMED, message, status, None, read_limits(kind, headers), body, headers)


def classify_error(
    error: object,
    headers: Mapping[str, str],
    *,
    raw: bytes,
    status: int | None = None,
    kind: str = "openai_compatible",
) -> Failure:
    """The failure that an error object means. Without a `status` (in a 200, in a stream) its code decides."""
    words = mapping(error) or {"message": error}
    codes = error_codes(words)
    status = error_status(words) if status is None else status
    found = class_of_codes(status, codes)
    if found is _F.INVALID_REQUEST and _PAGE.match(raw):
        found = _F.MALFORMED  # a proxy or a portal speaks, and not of the request: another target may answer
    message = _words(words)
    if status is not None and found is class_of_status(status):
        found = _by_quirk(status, headers, " ".join((*codes, message))) or found
    headers = {**headers_inside(words), **headers}
    reading = read_limits(kind, headers)
    scope, clock_minutes = _SCOPES.get(found, "minute"), family_of(kind).clock_minutes
    wait, rejected = read_wait(headers, words, message, reading, scope, clock_minutes=clock_minutes)
    said = error_message(words) or _summary(raw)
    return Failure(
        found,
        said if status is None else f"HTTP {status}: {said}",
        status,
        wait if found.policy.cooldown in _WAITS else None,
        replace(reading, rejected=reading.rejected + rejected) if rejected else reading,
        raw,
        headers,
        credential_wide=_is_credential_wide(found, status, codes),
        # Of a refusal it says nothing: Cerebras sends false on its most transient 429.
        not_again=found.policy.retry_same and headers.get("x-should-retry", "").strip().lower() == "false",
        context_tokens=_context_tokens(words, message) if found is _F.CONTEXT_LENGTH else None,
        code=shown(codes[0])[:_CODE_CHARACTERS] if codes else "",
    )


def _context_tokens(words: Mapping[str, Any], message: str) -> int | None:
    """The context window that an error names."""
    said = words.get("n_ctx")  # llama.cpp
    if not isinstance(said, int):
        match = next((match for pattern in WINDOWS if (match := pattern.search(message))), None)
        said = int(match[1].replace(",", "")) if match else 0
    return said if _LEAST_WINDOW <= said <= _LARGEST_WINDOW else None


def _is_credential_wide(found: FailureClass, status: int | None, codes: list[str]) -> bool:
    """True when every target of the credential is concerned: its key is bad, or its account out of credit."""
    if found is _F.QUOTA:
        return True
    return found is _F.AUTH and status != 403 and _NARROW_CODES.isdisjoint(codes)


def find_error(value: object) -> Mapping[str, Any] | None:
    """The error object a decoded body declares; None when it declares none."""
    if isinstance(value, str):  # the whole body encoded once more
        value = _decoded_again(value)
    if is_list(value):  # Gemini wraps errors in an array
        value = value[0] if value else None
    top = mapping(value)
    declared = top.get("error")
    if is_object(declared):
        return _unwrapped(declared)
    if isinstance(declared, str) and declared:  # Ollama {"error": text}; xAI {"code": text, "error": text}
        return _unwrapped({**top, "message": declared})
    listed = items(top.get("errors"))
    if listed and is_object(listed[0]):  # Cloudflare
        return listed[0]
    # Anthropic; vLLM before 0.10 and Mistral put the error's fields at the top.
    return top if top.get("type") == "error" or top.get("object") == "error" else None


def _unwrapped(error: Mapping[str, Any]) -> Mapping[str, Any]:
    """An error whose message is the JSON of the real one (Gemini's compatible endpoint, proxies)."""
    message = error.get("message")
    inner = _decoded_again(message) if isinstance(message, str) else None
    inner = inner[0] if is_list(inner) and inner else inner
    declared = mapping(inner).get("error")
    return declared if is_object(declared) else error


def _decoded_again(value: str) -> object:
    """The JSON object or array that a text is; None when it is just a text."""
    looks_like_json = value.lstrip()[:1] in ("{", "[")
    return decode(value.encode(errors="replace")) if looks_like_json else None


def _words(error: Mapping[str, Any]) -> str:
    """The text of an error: its message and the texts of its metadata and details."""
    inner = (error, mapping(error.get("metadata")), mapping(error.get("details")))
    said = (value for place in inner for value in place.values() if isinstance(value, str))
    return " ".join(said)[:4096]


def _by_quirk(status: int, headers: Mapping[str, str], words: str) -> FailureClass | None:
    for quirk in QUIRKS:
        asked = status in quirk.statuses and (not quirk.header or quirk.header in headers)
        if asked and quirk.pattern.search(words):
            return quirk.failure_class
    return None


def _summary(body: bytes) -> str:
    """Describe a foreign body in a few words."""
    words = body[:2048].decode(errors="replace")
    title = _HTML_TITLE.search(words)
    if title and _PAGE.match(body):
        return shown(f"a web page titled {title[1]!r}")
    return shown(words[:200]) or "an empty body"


# ------------------------------------------------------------------------------------------- exceptions

_UNCONNECTED = frozenset(
    {"ConnectError", "ConnectTimeout", "PoolTimeout", "ClientConnectorError", "ConnectionTimeoutError"}
)  # of httpx, httpx2 and aiohttp
EXCEPTIONS: Mapping[str, FailureClass] = MappingProxyType(
    {
        # httpx and httpx2
        "httpx.ConnectTimeout": _F.TRANSPORT,
        "httpx.PoolTimeout": _F.TRANSPORT,
        "httpx.TimeoutException": _F.TIMEOUT,
        "httpx.UnsupportedProtocol": _F.MISCONFIGURED,
        "httpx.LocalProtocolError": _F.MISCONFIGURED,  # a header we may not send: a line break in a key
        "httpx.DecodingError": _F.MALFORMED,
        "httpx.TooManyRedirects": _F.MISCONFIGURED,
        "httpx.InvalidURL": _F.MISCONFIGURED,
        "httpx.CookieConflict": _F.MALFORMED,
        "httpx.StreamError": _F.MALFORMED,
        "httpx.HTTPError": _F.TRANSPORT,
        # aiohttp
        "aiohttp.ConnectionTimeoutError": _F.TRANSPORT,
        "aiohttp.ServerTimeoutError": _F.TIMEOUT,
        "aiohttp.ClientPayloadError": _F.TRUNCATED,
        "aiohttp.ContentTypeError": _F.MALFORMED,
        "aiohttp.TooManyRedirects": _F.MISCONFIGURED,
        "aiohttp.InvalidURL": _F.MISCONFIGURED,
        "aiohttp.ClientResponseError": _F.MALFORMED,
        "aiohttp.ClientError": _F.TRANSPORT,
        "aiohttp.HttpProcessingError": _F.MALFORMED,  # of its parser: what came is not HTTP
        # openai and anthropic; those with a response are read like any other answer
        "openai.APITimeoutError": _F.TIMEOUT,
        "openai.APIConnectionError": _F.TRANSPORT,
        "openai.APIResponseValidationError": _F.MALFORMED,
        "openai.APIError": _F.SERVER_ERROR,
        "openai.LengthFinishReasonError": _F.MALFORMED,
        "openai.ContentFilterFinishReasonError": _F.CONTENT_FILTERED,
        "openai.SubjectTokenProviderError": _F.AUTH,
        "openai.WebSocketConnectionClosedError": _F.TRANSPORT,
        "openai.WebSocketQueueFullError": _F.OVERLOADED,
        "openai.InvalidWebhookSignatureError": _F.INVALID_REQUEST,
        "openai.OpenAIError": _F.MISCONFIGURED,
        "anthropic.APITimeoutError": _F.TIMEOUT,
        "anthropic.APIConnectionError": _F.TRANSPORT,
        "anthropic.APIResponseValidationError": _F.MALFORMED,
        "anthropic.APIError": _F.SERVER_ERROR,
        "anthropic.RetryableError": _F.SERVER_ERROR,
        "anthropic.CredentialsError": _F.AUTH,
        "anthropic.AnthropicError": _F.MISCONFIGURED,
        # below them
        "anyio.EndOfStream": _F.TRANSPORT,
        "anyio.BrokenResourceError": _F.TRANSPORT,
        "anyio.ClosedResourceError": _F.TRANSPORT,
        "json.JSONDecodeError": _F.MALFORMED,
        "asyncio.CancelledError": _F.CANCELLED,
        "builtins.TimeoutError": _F.TIMEOUT,
        "builtins.UnicodeError": _F.MALFORMED,
        "builtins.EOFError": _F.TRUNCATED,
        "builtins.OSError": _F.TRANSPORT,  # connect, DNS (gaierror) and TLS (ssl.SSLError) alike
        # what fetches a token before the call: Vertex, Bedrock, Azure AD
        "google.GoogleAuthError": _F.AUTH,
        "botocore.BotoCoreError": _F.AUTH,
        "azure.ClientAuthenticationError": _F.AUTH,
    }
)
"""`package.Class`, looked up along the class's MRO, so that nothing has to be imported to be recognised."""

_SAME_TREE = {"httpx2": "httpx"}


def class_of_exception(exc: BaseException) -> FailureClass | None:
    """The class of an exception by its type alone; None for a type that no library of ours raises."""
    for ancestor in type(exc).__mro__:
        package = ancestor.__module__.partition(".")[0]
        found = EXCEPTIONS.get(f"{_SAME_TREE.get(package, package)}.{ancestor.__name__}")
        if found is not None:
            return found
    return None


def classify_exception(exc: BaseException, *, kind: str = "openai_compatible") -> Failure:
    """The failure that an exception means. An unknown one is SERVER_ERROR: the call did not work."""
    answer = _answer_of(exc)
    if answer is not None:
        return classify_response(*answer, kind=kind)
    found = class_of_exception(exc)
    name = type(exc).__name__
    message = shown(f"{name}: {exc}" if str(exc) else name)
    if found in (_F.TIMEOUT, _F.TRANSPORT) and exc.__cause__ is not None:
        # The SDKs call a connect timeout a timeout; what it was raised from knows better. aiohttp has a name for it.
        found = found if _names_no_connection(exc) else class_of_exception(exc.__cause__) or found
        cause, text = type(exc.__cause__).__name__, str(exc.__cause__)
        message = shown(f"{message} ({cause})" if text in message else f"{message} ({cause}: {text})")
    reason, address = reason_of(exc) if found is _F.TRANSPORT else ("", "")
    if reason:
        message = shown(f"{reason} ({address}); {name}" if address else f"{reason}; {name}")
    body = getattr(exc, "body", None)
    if found is _F.SERVER_ERROR and is_object(body):  # an SDK's error inside a stream
        return replace(failure_of(mapping(body.get("error")) or body), message=message)
    return Failure(found or _F.SERVER_ERROR, message, unsent=_never_left(exc), reason=shown(reason))


def _never_left(exc: BaseException | None) -> bool:
    """True when the connection was never made: such a call costs no request and no token."""
    while exc is not None:
        if _names_no_connection(exc):
            return True
        exc = exc.__cause__
    return False


def _names_no_connection(exc: BaseException) -> bool:
    return not _UNCONNECTED.isdisjoint(kind.__name__ for kind in type(exc).__mro__)


def _answer_of(exc: BaseException) -> tuple[int, dict[str, str], bytes] | None:
    """Status, headers and body of the answer an exception carries, if it carries one."""
    response: Any = getattr(exc, "response", None)
    status = getattr(response, "status_code", None)
    if not isinstance(status, int):
        return None
    try:
        body = response.content
    except Exception:  # noqa: BLE001 - the body was not read before the connection went
        body = b""
    headers = {str(name).lower(): str(value) for name, value in dict(response.headers).items()}
    return status, headers, body if isinstance(body, bytes) else b""
