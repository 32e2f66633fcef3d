"""An HTTP request read for the router: path, dialect, body, names of models and options."""

from __future__ import annotations

import math
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeGuard, get_args

from smart_model_router.domain.errors import InvalidRequest, TranslationRefused
from smart_model_router.domain.forwarded_headers import FORWARDED, query_of, readable
from smart_model_router.domain.ports import PassedCall
from smart_model_router.domain.report import RouteReport
from smart_model_router.domain.request import CRITICALITIES, Criticality, Dialect, Operation, RequestOptions
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.http_api.http_reply import Family
from smart_model_router.wires.completions import Completion, PromptError
from smart_model_router.wires.values import decode_any, is_list, is_object

Asked = Dialect | Literal["completions", "compact", "count"]
"""The dialects of clients: the router's own, legacy Completions, which becomes Chat at the edge, and what else
Responses does with a prompt."""

ENDPOINTS: Mapping[str, Asked] = MappingProxyType(
    {
        "/v1/chat/completions": "chat",
        "/v1/messages": "messages",
        "/v1/responses": "responses",
        "/v1/responses/compact": "compact",
        "/v1/responses/input_tokens": "count",
        "/v1/embeddings": "embeddings",
        "/v1/completions": "completions",
    }
)
"""The path of each dialect."""

SESSION_HEADERS = ("x-router-session", "x-session-id", "session_id", "session-id", "x-claude-code-session-id")
"""The headers that name a conversation, the most deliberate first."""
DEADLINE_HEADERS = ("x-stainless-read-timeout", "x-stainless-timeout")
"""The seconds that the client itself will wait."""

_DIALECTS: Mapping[Asked, Dialect] = MappingProxyType(
    {
        **{dialect: dialect for dialect in get_args(Dialect)},
        "completions": "chat",
        "compact": "responses",
        "count": "responses",
    }
)
_WHOLE: Mapping[Asked, str] = MappingProxyType(
    {"embeddings": "embeddings", "compact": "compactions", "count": "counts of tokens"}
)
_HASTE_SECONDS = 0.25
"""We answer so much before the client gives up: a clear error is worth more than a silence."""
_NOES = frozenset({"", "0", "false", "no", "off"})
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)(ms|s|m|h|)")


@dataclass(slots=True)
class ApiRequest:
    """A question: `models` are the name asked for and then those to fall back to, in order.

    `options` are the router's; `own_deadline` says that `options["timeout"]` is how long the client itself waits.
    `completion` writes the answer as the legacy Completions that were asked for; its `dialect` is Chat.
    `written` is the text of `body`, empty where that is not what came any more. `reports` are of every stream begun
    for it and of every whole answer, in order: a client that leaves early has used as much.
    """

    dialect: Dialect
    body: dict[str, Any]
    models: tuple[str, ...]
    stream: bool
    options: RequestOptions = field(default_factory=RequestOptions)
    own_deadline: bool = False
    completion: Completion | None = None
    written: bytes = b""
    operation: Operation = "create"
    reports: list[RouteReport] = field(default_factory=list)

    def ask_for(self, model: str) -> None:
        """Ask for the model that the path names, in place of those that the body names; "" is none."""
        if model and self.models != (model,):
            self.models, self.written = (model,), b""
            self.body = {**self.body, "model": model}


def endpoint(path: str) -> Asked | None:
    """The dialect asked at a path, None where none is. A trailing slash makes no difference."""
    return ENDPOINTS.get(path) or ENDPOINTS.get(path.rstrip("/"))


def family_of(path: str, headers: Mapping[str, str]) -> Family:
    """The manners a client expects: those of the dialect asked at the path; where none is, by `anthropic-version`."""
    asked = endpoint(path)
    if asked is None:
        return "anthropic" if path.startswith("/v1/messages/") or "anthropic-version" in headers else "openai"
    return "anthropic" if asked == "messages" else "openai"


def read_ask(asked: Asked, headers: Mapping[str, str], body: bytes, query: str = "") -> ApiRequest:
    """Read a request. Header names are lower-case; `query` is the query string.

    Raises InvalidRequest and TranslationRefused that name the fault.
    """
    found = decode_any(body)
    if found is None and body.strip() != b"null":
        raise InvalidRequest("the body is empty" if not body.strip() else "the body is not JSON")
    if not is_object(found):
        raise InvalidRequest(f"the body must be a JSON object, not {type(found).__name__}")
    stream = found.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise InvalidRequest("stream: true or false is needed")
    if stream and asked in _WHOLE:
        raise InvalidRequest(f"stream: {_WHOLE[asked]} have no streams")
    changed = asked == "completions" or "models" in found or "fallbacks" in found  # those two are taken out below
    completion = _completion(found) if asked == "completions" else None
    operation: Operation = asked if asked in ("compact", "count") else "create"
    dialect = _DIALECTS[asked]
    body_of = found if completion is None else completion.body
    ask = ApiRequest(
        dialect,
        body_of,
        _models(body_of),
        bool(stream),
        completion=completion,
        written=b"" if changed else body,
        operation=operation,
    )
    _read_headers(ask, headers)
    if query and (forwarded := query_of(query)):
        ask.options["query"] = forwarded
    if completion is not None:
        ask.options.pop("accept_restart", None)  # a Completion has no word for "what you have is void"
    return ask


def read_options(headers: Mapping[str, str]) -> RequestOptions:
    """Return the options in the headers of a request without a body. Raises InvalidRequest."""
    ask = ApiRequest("responses", {}, (), stream=False)
    _read_headers(ask, headers)
    return ask.options


def _completion(body: Mapping[str, Any]) -> Completion:
    try:
        completion = Completion(body)
    except PromptError as error:
        raise InvalidRequest(str(error)) from None
    if completion.refusal is not None:
        raise TranslationRefused(str(completion.refusal))
    return completion


def _models(body: dict[str, Any]) -> tuple[str, ...]:
    """The name asked for and those of `models` / `fallbacks`, which are ours and go no further."""
    if "models" not in body and "fallbacks" not in body:
        name = body.get("model")
        return (name,) if isinstance(name, str) else ()
    names = [] if body.get("model") is None else [body["model"]]
    for key in ("models", "fallbacks"):
        if key in body and _are_names(body[key]):
            names += [name["model"] if is_object(name) else name for name in body.pop(key)]
    if names and "model" not in body:
        body["model"] = names[0]
    return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))


def _are_names(value: object) -> TypeGuard[list[Any]]:
    if not is_list(value):
        return False
    return all(isinstance(name.get("model") if is_object(name) else name, str) for name in value)


def _read_headers(ask: ApiRequest, headers: Mapping[str, str]) -> None:
    if _ASKING.isdisjoint(headers):
        return
    options = ask.options
    for name, read in _READERS.items():
        if name in headers:
            read(options, headers[name])
    session = next((headers[name] for name in SESSION_HEADERS if headers.get(name)), None)
    if session is not None:
        options["session"] = session
    if forwarded := readable(ask.dialect, headers):
        options["headers"] = forwarded
    if "timeout" not in options:
        said = [headers[name] for name in DEADLINE_HEADERS if name in headers]
        own = [seconds for text in said if (seconds := _number(text)) is not None]
        if own:
            options["timeout"] = min(own) - min(_HASTE_SECONDS, min(own) / 10)
            ask.own_deadline = True


def _tier(options: RequestOptions, value: str) -> None:
    options["tier"] = value


def _target(options: RequestOptions, value: str) -> None:
    options["target"] = value


def _timeout(options: RequestOptions, value: str) -> None:
    match = _DURATION.fullmatch(value.strip())
    seconds = None if match is None else float(match[1]) * _UNITS[match[2]]
    if not seconds:
        raise InvalidRequest(f"x-router-timeout: a duration above 0 (such as 15s) is needed, not {value[:40]!r}")
    options["timeout"] = seconds


def _max_cost(options: RequestOptions, value: str) -> None:
    usd = _number(value)
    if usd is None:
        raise InvalidRequest(f"x-router-max-cost: a number of USD above 0 is needed, not {value[:40]!r}")
    options["max_cost"] = usd


def _criticality(options: RequestOptions, value: str) -> None:
    options["criticality"] = criticality(value)


def _recovery(options: RequestOptions, value: str) -> None:
    """The router says what is wrong with it. A client that asks for `restart` knows it."""
    options["recovery"] = value
    if value.strip().lower() == "restart":
        options["accept_restart"] = True


def _accept_restart(options: RequestOptions, value: str) -> None:
    if value.strip().lower() not in _NOES:
        options["accept_restart"] = True


def criticality(value: str) -> Criticality:
    """One of the four. Raises InvalidRequest."""
    for known in CRITICALITIES:
        if value.strip().lower() == known:
            return known
    raise InvalidRequest(f"x-router-criticality: {value[:40]!r} is none of {', '.join(CRITICALITIES)}")


_READERS: Mapping[str, Callable[[RequestOptions, str], None]] = MappingProxyType(
    {
        "x-router-tier": _tier,
        "x-router-target": _target,
        "x-router-timeout": _timeout,
        "x-router-max-cost": _max_cost,
        "x-router-criticality": _criticality,
        "x-router-recovery": _recovery,
        "x-router-accept-restart": _accept_restart,
    }
)


_ASKING = frozenset({*_READERS, *SESSION_HEADERS, *FORWARDED, *DEADLINE_HEADERS})
"""Every header that asks for something; most requests have none."""


def _number(value: str) -> float | None:
    """A finite number above 0, None for anything else."""
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) and number > 0 else None


_ROOTS = (
    "chat/completions", "messages", "responses", "embeddings", "completions", "models", "moderations", "audio",
    "images", "rerank",
)  # fmt: skip
"""The paths that stand behind `/v1/` here, and behind `/` or `/openai/` for some clients."""
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
"""The hints for paths of other APIs, by how they begin."""


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
    """Return the right path in place of one that does not exist."""
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


_SENT = ("content-type", "content-encoding", "accept")
"""The client's headers that say what the bodies are; forwarded_headers.py has all others that go on."""
_VALUE = re.compile(r"[ -~]{1,1000}")
_QUERY = re.compile(r"[!-~]*")
_AZURES = "api-version="
"""The parameter that AzureOpenAI always adds: it is about us. A provider of that kind has its own version."""


def read_call(
    path: str, headers: Mapping[str, str], query: str, body: AsyncIterator[bytes], length: int | None, deployment: str
) -> PassedCall:
    """The call that a request asks for. Header names are lower-case. Raises InvalidRequest."""
    sent = {name: headers[name] for name in _SENT if headers.get(name)}
    for name, value in sent.items():
        if not _VALUE.fullmatch(value):
            raise InvalidRequest(f"{name}: at most 1000 printable ASCII characters are needed, not {value[:60]!r}")
    if not _QUERY.fullmatch(query):
        raise InvalidRequest("query: ASCII characters are needed, others percent-encoded")
    parts = (part for part in query.split("&") if part and not part.lower().startswith(_AZURES))
    return PassedCall(path, "&".join(parts), sent, body, length, deployment)


def read_passed_options(headers: Mapping[str, str]) -> RequestOptions:
    """Return the options in the headers. Raises InvalidRequest.

    The SDKs' own timeout is that of each read, and a body may take longer to send: it bounds nothing here.
    """
    options = read_options(headers)
    if "x-router-timeout" not in headers:
        options.pop("timeout", None)
    return options
