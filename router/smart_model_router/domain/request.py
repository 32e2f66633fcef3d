"""One request as routing sees it: the caller's body and the few facts routing needs (`RouteRequest`)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal, TypedDict, get_args

from smart_model_router.domain.body_encoding import PIECE, around_model, condensed, model_name
from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.forwarded_headers import checked, query_of
from smart_model_router.domain.media_parts import Medium, MediumKind, media_in
from smart_model_router.domain.recovery_policy import Recovery, parse_recovery

Dialect = Literal["chat", "messages", "responses", "embeddings"]
Operation = Literal["create", "compact", "count", "retrieve", "delete"]
"""The purpose of a call of Responses: to make an answer, to shorten a conversation, to count the tokens of a prompt, to
get or delete an answer that the provider keeps."""
Criticality = Literal["critical_plus", "critical", "sheddable_plus", "sheddable"]
Need = Literal["tools", "images", "schema", "pdf", "audio"]
Prefill = Literal["none", "asked", "plain", "prefix", "continue_final_message"]
"""The condition on which a target continues an answer that has begun: never; when a message of the user asks for it;
when the last message is the assistant's; when that message is marked `prefix` (Mistral, DeepSeek's beta); when the body
says `continue_final_message` (vLLM, SGLang)."""
CONTINUABLE: frozenset[Dialect] = frozenset({"chat", "messages"})
"""The dialects in which a target can be asked to continue an answer that has begun."""
HostedTools = Literal["drop", "refuse"]
"""A request with tools that run at a provider, such as web search, where the target has none: it is sent without them,
or the target is not asked."""

CRITICALITIES: tuple[Criticality, ...] = get_args(Criticality)
NEEDS: tuple[Need, ...] = get_args(Need)
_NEEDED: Mapping[MediumKind, Need] = MappingProxyType({"image": "images", "pdf": "pdf", "audio": "audio"})
"""The ability of a target that a medium of each kind needs."""
_OBJECTS = (dict, Mapping)
"""Types of a JSON object. `dict` goes first: a check of the abstract class alone costs ten times as much, and each
message of each request is checked."""
_LISTS = (list, tuple)
_CACHED_FROM = 4096
"""Bytes: 1,024 tokens. Providers cache no shorter prompt."""
_ESCAPES_SHOW = 65_536
"""Bytes. Of base64 every 64th character is a slash: a client that escapes them shows it soon."""
_ASKING_FOR_ABILITIES = frozenset({"tools", "functions", "output_config", "response_format", "text"})
_REFERRING = frozenset({"container", "previous_response_id", "conversation", "input"})
_HOLDING = frozenset({"container", "delta", "message", "response"})
"""Members without which a body needs no ability, refers to nothing, and an answer names nothing that is kept."""
_INSTEAD_OF_INPUT = ("previous_response_id", "conversation", "prompt")
WAITING_CRITICALITIES: frozenset[Criticality] = frozenset({"critical_plus", "critical"})


class RequestOptions(TypedDict, total=False):
    """A caller's options for one request, beside the body.

    `tier` is a tier other than the first; `avoid` names targets or providers not to use; `session` keeps a
    conversation on one target among equals; `timeout` is seconds in all; `max_cost` is USD; `criticality` is
    critical_plus, critical (the default), sheddable_plus or sheddable: the last two never wait and may be shed.
    `priced` True: the call is paid from a budget in USD, so a target of unknown price is not for it.
    `recovery` is the policy for a stream that is cut after content (recovery_policy.py), in place of its model's
    policy; `accept_restart` False: a model's `restart` does not apply to this caller, who gets an error at the cut.
    `headers` go to the providers that understand them: those of the table in forwarded_headers.py, no others. `query`
    is `beta=true` for a call of Anthropic's beta endpoints. `target` names the one target that may serve the request:
    the maker of an answer or file that the body refers to, where the router does not know it. `owner` marks the
    caller's key: a request may refer only to answers that were made for the same owner.
    """

    tier: str | None
    avoid: Iterable[str]
    session: str | None
    timeout: float | None
    max_cost: float | None
    priced: bool
    criticality: Criticality
    recovery: str | None
    accept_restart: bool
    headers: Mapping[str, str]
    query: str
    target: str | None
    owner: str


@dataclass(frozen=True, slots=True)
class Target:
    """Provider + model + credential: the unit of health.

    `id` is how people and configuration name it (`openai/gpt-x`; `openai/gpt-x#2` for the second credential).
    `credential` is a number within its provider, never the key itself.
    """

    id: str
    provider: str
    model: str
    credential: int = 0


@quick
@dataclass(frozen=True, slots=True)
class RouteRequest:
    """The caller's body and the few facts routing needs; the body is neither validated further nor rebuilt.

    `model` is the public name asked for; `before` and `after` are the JSON of the body before and
    after that name. `needs` is what a target
    must be able to do; `state_ids` are things kept at one provider (containers, uploaded files), known only to the
    target that made them. `media` are its pictures, documents and recordings; `prompt_bytes` is the size of the body,
    `text_bytes` that without their data, the measure that tokens of text are estimated from (bytes / 4).
    """

    dialect: Dialect
    body: Mapping[str, Any]
    model: str
    before: bytes
    after: bytes
    needs: frozenset[Need]
    state_ids: frozenset[str]
    prompt_bytes: int
    text_bytes: int
    media: tuple[Medium, ...] = ()
    stream: bool = False
    tier: str | None = None
    avoid: frozenset[str] = frozenset()
    session: str | None = None
    timeout: float | None = None
    max_cost: float | None = None
    priced: bool = False
    criticality: Criticality = "critical"
    recovery: Recovery | None = None
    accept_restart: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    target: str | None = None
    owner: str = ""
    operation: Operation = "create"

    @property
    def max_tokens(self) -> int | None:
        """The caller's own cap on the answer, when it named one."""
        for key in ("max_completion_tokens", "max_tokens", "max_output_tokens"):
            value = self.body.get(key)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
        return None

    @property
    def session_key(self) -> str | None:
        """The key that sticky routing hashes: the session given, else the body's own prompt_cache_key."""
        key = self.session if self.session is not None else self.body.get("prompt_cache_key")
        return key if isinstance(key, str) and key else None

    @property
    def prompt_key(self) -> str | None:
        """The key of a conversation without a session: a hash of its system prompt and its first user message.

        None where the prompt is too short for a provider's cache.
        """
        if self.prompt_bytes < _CACHED_FROM or self.dialect == "embeddings":
            return None
        parts: object = (self.body.get("system"), self.body.get("instructions"), _up_to_first_user(self.body))
        beginning = repr(parts if self.prompt_bytes <= PIECE else condensed(parts))
        return hashlib.blake2b(beginning.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()

    def payload(self, model: str) -> bytes:
        """The body as it is sent to a target that calls the model `model`."""
        return self.before + model_name(model) + self.after


def peek(
    dialect: Dialect,
    body: object,
    *,
    stream: bool = False,
    tier: str | None = None,
    avoid: Iterable[str] = (),
    session: str | None = None,
    timeout: float | None = None,
    max_cost: float | None = None,
    priced: bool = False,
    criticality: Criticality = "critical",
    recovery: str | None = None,
    accept_restart: bool = True,
    headers: Mapping[str, str] = MappingProxyType({}),
    query: str = "",
    target: str | None = None,
    owner: str = "",
    operation: Operation = "create",
    written: bytes = b"",
    large: bool = False,
) -> RouteRequest:
    """Read the facts routing needs from `body`. Raises InvalidRequest that names what is wrong and where.

    `written` is the JSON text that `body` was read from; where possible it is sent unchanged. A `large` body is written
    in short steps.
    """
    if not isinstance(body, _OBJECTS):
        raise InvalidRequest(f"the body must be a JSON object, not {type(body).__name__}")
    model = body.get("model")
    if not isinstance(model, str) or not model.strip():
        raise InvalidRequest(f"model: a non-empty string is needed, not {_shown(model)}")
    _check_prompt(dialect, body)
    if timeout is not None:
        _check_option("timeout", timeout)
    if max_cost is not None:
        _check_option("max_cost", max_cost)
    if priced is not True and priced is not False:
        raise InvalidRequest(f"priced: true or false is needed, not {_shown(priced)}")
    if tier is not None:
        _check_name("tier", tier)
    if session is not None:
        _check_name("session", session)
    if target is not None:
        _check_name("target", target)
    if criticality not in CRITICALITIES:
        raise InvalidRequest(f"criticality: {_shown(criticality)} is none of {', '.join(CRITICALITIES)}")
    parts = _parts(dialect, body.get("input" if dialect == "responses" else "messages"))
    media = media_in(parts) if parts and dialect != "embeddings" else ()
    needs, state_ids = _needs(dialect, body, media), _state_ids(dialect, body, parts)
    before, after = around_model(body, written, stream=stream, ask_usage=dialect == "chat", large=large)
    prompt_bytes = len(before) + len(after)
    return RouteRequest(
        dialect=dialect,
        body=body,
        model=model,
        before=before,
        after=after,
        needs=needs,
        state_ids=state_ids,
        prompt_bytes=prompt_bytes,
        text_bytes=_text_bytes(prompt_bytes, after, media) if media else prompt_bytes,
        media=media,
        stream=stream,
        tier=tier,
        avoid=frozenset() if avoid == () else _avoided(avoid),
        session=session,
        timeout=timeout,
        max_cost=max_cost,
        priced=priced,
        criticality=criticality,
        recovery=None if recovery is None else _recovery(recovery),
        accept_restart=accept_restart,
        headers=_headers(headers) if headers else headers,
        query=_query(query) if query else "",
        target=target,
        owner=owner,
        operation=operation,
    )


def _avoided(avoid: object) -> frozenset[str]:
    given = (avoid,) if isinstance(avoid, str) else avoid
    if isinstance(given, (tuple, Iterable)) and not isinstance(given, dict):
        names = tuple(given)
        if all(isinstance(name, str) for name in names):
            return frozenset(names)
    raise InvalidRequest(f"avoid: target ids or provider names are needed, not {_shown(avoid)}")


def _text_bytes(size: int, after: bytes, media: tuple[Medium, ...]) -> int:
    """The size of the body without the data of its media, in which some clients write each slash as two characters."""
    if not any(medium.encoded for medium in media):
        return size
    escapes = after.count(b"\\/") if b"\\/" in after[:_ESCAPES_SHOW] else 0
    return max(0, size - escapes - sum(medium.encoded for medium in media))


def _needs(dialect: Dialect, body: Mapping[str, Any], media: Sequence[Medium]) -> frozenset[Need]:
    """The abilities that a target needs to serve this body."""
    if not media and _ASKING_FOR_ABILITIES.isdisjoint(body):  # as mostly
        return frozenset()
    found: set[Need] = {_NEEDED[medium.kind] for medium in media if medium.kind in _NEEDED}
    if body.get("tools") or body.get("functions"):
        found.add("tools")
    text = body.get("text") if dialect == "responses" else None
    if (
        _member(body.get("output_config"), "format")
        or _is_schema(body.get("response_format"))
        or _is_schema(_member(text, "format"))
    ):
        found.add("schema")
    return frozenset(found)


def _member(holder: object, key: str) -> object:
    return holder.get(key) if holder and isinstance(holder, _OBJECTS) else None


def _is_schema(form: object) -> bool:
    return _member(form, "type") == "json_schema"


def _headers(headers: object) -> Mapping[str, str]:
    if not isinstance(headers, Mapping):
        raise InvalidRequest(f"headers: names and values are needed, not {_shown(headers)}")
    return checked(headers)


def _query(query: object) -> str:
    if not isinstance(query, str) or query_of(query) != query:
        raise InvalidRequest(f"query: beta=true is needed, or nothing, not {_shown(query)}")
    return query


def _recovery(text: str) -> Recovery:
    _check_name("recovery", text)
    try:
        return parse_recovery(text)
    except ValueError as error:
        raise InvalidRequest(f"recovery: {error}") from None


def _check_prompt(dialect: Dialect, body: Mapping[str, Any]) -> None:
    if dialect == "embeddings":
        if not body.get("input"):
            raise InvalidRequest(f"input: a non-empty string or list is needed, not {_shown(body.get('input'))}")
        return
    key = "input" if dialect == "responses" else "messages"
    messages = body.get(key)
    if dialect == "responses" and (messages or any(body.get(other) for other in _INSTEAD_OF_INPUT)):
        messages = () if messages is None or isinstance(messages, str) else messages
    elif not isinstance(messages, (list, tuple)) or not messages:
        raise InvalidRequest(f"{key}: a non-empty list is needed, not {_shown(messages)}")
    if not isinstance(messages, (list, tuple)):
        raise InvalidRequest(f"{key}: text or a list is needed, not {_shown(messages)}")
    for index, message in enumerate(messages):
        if not isinstance(message, _OBJECTS):
            raise InvalidRequest(f"{key}[{index}]: an object is needed, not {_shown(message)}")


def _check_option(name: str, value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 1e9:
        raise InvalidRequest(f"{name}: a number above 0, at most 1e9, is needed, not {_shown(value)}")


def _check_name(name: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise InvalidRequest(f"{name}: text is needed, not {_shown(value)}")


def media_of(dialect: Dialect, body: Mapping[str, Any]) -> tuple[Medium, ...]:
    """The media of a prompt, in their order."""
    if dialect == "embeddings":
        return ()
    parts = _parts(dialect, body.get("input" if dialect == "responses" else "messages"))
    return media_in(parts) if parts else ()


def state_made(data: Mapping[str, Any]) -> list[str]:
    """Ids of things that an answer (or an event of one) says now exist at the provider.

    Of an answer of Responses that the provider keeps they are its own, its conversation's and its items'.
    """
    if _HOLDING.isdisjoint(data) and data.get("object") != "response":
        return []
    things: list[Any] = [
        holder["container"] for holder in _holders(data, "delta", "message") if holder.get("container")
    ]
    response = data.get("response", data)
    if isinstance(response, _OBJECTS) and response.get("object") == "response" and response.get("store") is not False:
        things += _holders(response, "conversation")
        output = response.get("output")
        things += output if isinstance(output, (list, tuple)) else ()
    return [found for thing in things if isinstance(thing, _OBJECTS) and isinstance(found := thing.get("id"), str)]


def _holders(data: Mapping[str, Any], *keys: str) -> list[Mapping[str, Any]]:
    """An object, and those of its members that are objects."""
    return [data, *(inner for key in keys if (inner := data.get(key)) and isinstance(inner, _OBJECTS))]


def _state_ids(dialect: Dialect, body: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> frozenset[str]:
    if not parts and _REFERRING.isdisjoint(body):
        return frozenset()
    keys = ("previous_response_id", "conversation") if dialect == "responses" else ("container",)
    found = [thing.get("id") if isinstance(thing, _OBJECTS) else thing for key in keys if (thing := body.get(key))]
    if dialect == "responses":
        found += item_references(body.get("input"))
    for part in parts:
        found += [holder.get("file_id") for holder in _holders(part, "file", "source")]
    return frozenset(thing for thing in found if isinstance(thing, str))


def item_references(items: object) -> list[object]:
    """The ids by which the input of Responses refers to items of earlier answers."""
    if not isinstance(items, (list, tuple)):
        return []
    return [item.get("id") for item in items if isinstance(item, _OBJECTS) and is_reference(item)]


def is_reference(item: Mapping[str, Any]) -> bool:
    """True when an item of an input stands for one of an earlier answer. Its type may be left out."""
    kind = item.get("type")
    return kind == "item_reference" or (kind is None and "id" in item and "role" not in item)


def _parts(dialect: Dialect, messages: object) -> list[Mapping[str, Any]]:
    """The parts of all messages that have parts, and of the results of tools; plain text has none."""
    if not isinstance(messages, _LISTS):
        return []
    found = _objects_in(
        [
            content
            for message in messages
            if isinstance(message, _OBJECTS) and isinstance(content := message.get("content"), _LISTS)
        ]
    )
    if dialect == "messages":
        found += _objects_in([part.get("content") for part in found])
    elif dialect == "responses":
        outputs = [output for item in messages if isinstance(item, _OBJECTS) and (output := item.get("output"))]
        found += _objects_in([[output] if isinstance(output, _OBJECTS) else output for output in outputs])
    return found


def _up_to_first_user(body: Mapping[str, Any]) -> object:
    """The messages up to and with the first one of the user."""
    messages = body.get("messages") or body.get("input")
    if not isinstance(messages, (list, tuple)):
        return messages
    of_user = (place for place, message in enumerate(messages, 1) if _member(message, "role") == "user")
    return messages[: next(of_user, len(messages))]


def _objects_in(contents: Iterable[object]) -> list[Mapping[str, Any]]:
    return [
        part for content in contents if isinstance(content, _LISTS) for part in content if isinstance(part, _OBJECTS)
    ]


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested without end; an integer of more digits than Python prints
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= 60 else text[:57] + "..."
