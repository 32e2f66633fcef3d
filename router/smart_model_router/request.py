"""One request as routing sees it (`RouteRequest`), and the account of what happened to it (`RouteReport`)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Literal, TypedDict, get_args

from smart_model_router.errors import InvalidRequest
from smart_model_router.forwarding import FORWARDED
from smart_model_router.outcome import FailureClass, Usage
from smart_model_router.quick import quick
from smart_model_router.recovery import Recovery, parse_recovery

Dialect = Literal["chat", "messages", "responses", "embeddings"]
Criticality = Literal["critical_plus", "critical", "sheddable_plus", "sheddable"]
Need = Literal["tools", "images", "schema"]
Prefill = Literal["none", "plain", "prefix", "continue_final_message"]
"""How a target goes on with an answer that has begun: not at all; when the last message is the assistant's; when that
message is marked `prefix` (Mistral, DeepSeek's beta); when the body says `continue_final_message` (vLLM, SGLang)."""

CRITICALITIES: tuple[Criticality, ...] = get_args(Criticality)
_IMAGES = ("image_url", "image", "input_image")
_OBJECTS = (dict, Mapping)
"""What a JSON object is: to ask an abstract class alone costs ten times as much, for each message of each request."""
_NONE: frozenset[str] = frozenset()
_NO_NEEDS: frozenset[Need] = frozenset()
_INSTEAD_OF_INPUT = ("previous_response_id", "conversation", "prompt")
WAITING_CRITICALITIES: frozenset[Criticality] = frozenset({"critical_plus", "critical"})


class RequestOptions(TypedDict, total=False):
    """What a caller may ask of the router beside the body.

    `tier` is a tier other than the first; `avoid` names targets or providers not to use; `session` keeps a
    conversation on one target among equals; `timeout` is seconds in all; `max_cost` is USD; `criticality` is
    critical_plus, critical (the default), sheddable_plus or sheddable: the last two never wait and may be shed.
    `recovery` is what becomes of a stream that is cut after content (recovery.py), in place of its model's policy;
    `accept_restart` False: a model's `restart` is not for this caller, who is told of the cut. `headers` go to the
    provider: traceparent, tracestate and idempotency-key (forwarding.py), no others.
    """

    tier: str | None
    avoid: Iterable[str]
    session: str | None
    timeout: float | None
    max_cost: float | None
    criticality: Criticality
    recovery: str | None
    accept_restart: bool
    headers: Mapping[str, str]


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

    `model` is the public name asked for; `before` and `after` are the body as JSON around it. `needs` is what a target
    must be able to do; `state_ids` are things kept at one provider (containers, uploaded files): only who made them
    knows them.
    """

    dialect: Dialect
    body: Mapping[str, Any]
    model: str
    before: bytes
    after: bytes
    needs: frozenset[Need]
    state_ids: frozenset[str]
    stream: bool = False
    tier: str | None = None
    avoid: frozenset[str] = frozenset()
    session: str | None = None
    timeout: float | None = None
    max_cost: float | None = None
    criticality: Criticality = "critical"
    recovery: Recovery | None = None
    accept_restart: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def prompt_bytes(self) -> int:
        """The size of the body, the measure tokens are estimated from (bytes / 4)."""
        return len(self.before) + len(self.after)

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
        """What sticky routing hashes: the session given, else the body's own prompt_cache_key."""
        key = self.session if self.session is not None else self.body.get("prompt_cache_key")
        return key if isinstance(key, str) and key else None

    def payload(self, model: str) -> bytes:
        """The body as it is sent to a target that calls the model `model`."""
        return self.before + _name(model) + self.after


@lru_cache(maxsize=1024)
def _name(model: str) -> bytes:
    return json.dumps(model).encode()


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
    criticality: Criticality = "critical",
    recovery: str | None = None,
    accept_restart: bool = True,
    headers: Mapping[str, str] = MappingProxyType({}),
    written: bytes = b"",
) -> RouteRequest:
    """Read the facts routing needs from `body`. Raises InvalidRequest that names what is wrong and where.

    `written` is the very text that `body` was read from: where it can, it goes out as it came.
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
    if tier is not None:
        _check_name("tier", tier)
    if session is not None:
        _check_name("session", session)
    if criticality not in CRITICALITIES:
        raise InvalidRequest(f"criticality: {_shown(criticality)} is none of {', '.join(CRITICALITIES)}")
    before, after = _as_it_came(written, dialect, body, model, stream) or _written_anew(dialect, body, stream)
    parts = _parts(body.get("input" if dialect == "responses" else "messages"))
    return RouteRequest(
        dialect=dialect,
        body=body,
        model=model,
        before=before,
        after=after,
        needs=_needs(dialect, body, parts),
        state_ids=_state_ids(dialect, body, parts),
        stream=stream,
        tier=tier,
        avoid=_avoided(avoid) if avoid != () else _NONE,
        session=session,
        timeout=timeout,
        max_cost=max_cost,
        criticality=criticality,
        recovery=None if recovery is None else _recovery(recovery),
        accept_restart=accept_restart,
        headers=_headers(headers) if headers else headers,
    )


def _avoided(avoid: object) -> frozenset[str]:
    names = (avoid,) if isinstance(avoid, str) else avoid
    if not isinstance(names, (tuple, list, set, frozenset)) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"avoid: target ids or provider names are needed, not {_shown(avoid)}")
    return frozenset(names)


def _written_anew(dialect: Dialect, body: Mapping[str, Any], stream: bool) -> tuple[bytes, bytes]:
    """The body as JSON, before and after the model's name."""
    rest = {key: value for key, value in body.items() if key != "model"}
    if stream:
        rest["stream"] = True
        if dialect == "chat":
            options = rest.get("stream_options")
            rest["stream_options"] = {**(options if isinstance(options, Mapping) else {}), "include_usage": True}
    else:
        rest.pop("stream", None)
        rest.pop("stream_options", None)  # alone it is an error
    encoded = _encode(rest)
    return b'{"model":', b"}" if encoded == b"{}" else b"," + encoded[1:]


# The model's name and its value. Inside a JSON string every quote is escaped: bare quotes are never part of a text.
_MODEL = re.compile(rb'"model"[ \t\r\n]*:[ \t\r\n]*("(?:[^"\\]|\\.)*")')
# A letter of ASCII.
_ESCAPED = re.compile(rb"\\u00[67]")
_WITH_USAGE = b',"stream_options":{"include_usage":true}}'


def _as_it_came(
    written: bytes, dialect: Dialect, body: Mapping[str, Any], model: str, stream: bool
) -> tuple[bytes, bytes] | None:
    """The same, cut out of the text it came as; None where that has to be changed elsewhere, or leaves any doubt.

    There is none where what matters is written once, and no letter of a name is written as an escape.
    """
    if written.count(b'"model"') != 1 or (b"\\u00" in written and _ESCAPED.search(written)):
        return None
    found = _MODEL.search(written)
    if found is None or json.loads(found[1]) != model:
        return None
    before, after = written[: found.start(1)], written[found.end(1) :]
    streams = written.count(b'"stream')
    if not stream:
        return None if streams else (before, after)
    told = written.count(b'"stream_options"')
    if body.get("stream") is not True or streams - told != 1 or told > 1:
        return None
    if dialect != "chat":
        return before, after
    if not told:
        return before, after.rstrip()[:-1] + _WITH_USAGE
    options = body.get("stream_options")
    wanted = isinstance(options, dict) and options.get("include_usage") is True
    return (before, after) if wanted else None


def _needs(dialect: Dialect, body: Mapping[str, Any], parts: Sequence[Mapping[str, Any]]) -> frozenset[Need]:
    """What a target must be able to do to serve this body."""
    found: set[Need] = set()
    if body.get("tools") or body.get("functions"):
        found.add("tools")
    output, settings = body.get("output_config"), body.get("text") if dialect == "responses" else None
    if output and isinstance(output, _OBJECTS) and output.get("format"):
        found.add("schema")
    for form in (
        body.get("response_format"),
        settings.get("format") if settings and isinstance(settings, _OBJECTS) else None,
    ):
        if form and isinstance(form, _OBJECTS) and form.get("type") == "json_schema":
            found.add("schema")
    if parts and dialect != "embeddings" and any(part.get("type") in _IMAGES for part in parts):
        found.add("images")
    return frozenset(found) if found else _NO_NEEDS


def _headers(headers: object) -> Mapping[str, str]:
    if not isinstance(headers, Mapping):
        raise InvalidRequest(f"headers: names and values are needed, not {_shown(headers)}")
    given = {str(name).lower(): value for name, value in headers.items()}
    for name, value in given.items():
        if name not in FORWARDED:
            raise InvalidRequest(f"headers: {_shown(name)} is none of {', '.join(FORWARDED)}")
        if not isinstance(value, str) or not FORWARDED[name].fullmatch(value):
            raise InvalidRequest(f"headers.{name}: {_shown(value)} is malformed")
    return given


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


# One encoder for all: json.dumps with any option builds a new one each time.
_encode_text = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


def _encode(rest: dict[str, Any]) -> bytes:
    try:
        try:
            return _encode_text(rest).encode()
        except UnicodeEncodeError:  # a lone surrogate: legal in JSON only as an escape
            return json.dumps(rest, allow_nan=False, separators=(",", ":")).encode()
    except RecursionError:
        raise InvalidRequest("the body is nested too deeply to be JSON") from None
    except (TypeError, ValueError) as error:
        where = _unencodable(rest, "body") or "body"
        raise InvalidRequest(f"{_cut(where)}: not JSON ({_cut(str(error))})") from None


def _cut(text: str) -> str:
    return text if len(text) <= 200 else text[:197] + "..."


def _unencodable(value: object, path: str) -> str | None:
    """The path of the first value JSON has no word for."""
    if isinstance(value, Mapping):
        pairs = [(f"{path}.{key}", inner) for key, inner in value.items()]
    elif isinstance(value, (list, tuple)):
        pairs = [(f"{path}[{index}]", inner) for index, inner in enumerate(value)]
    elif isinstance(value, float):
        return None if math.isfinite(value) else path
    else:
        return None if value is None or isinstance(value, (str, int)) else path
    try:
        return next((found for p, inner in pairs if (found := _unencodable(inner, p))), None)
    except RecursionError:
        return path


def state_made(data: Mapping[str, Any]) -> list[str]:
    """Ids of things that an answer (or an event of one) says now exist at the provider."""
    things = [holder["container"] for holder in _holders(data, "delta", "message") if holder.get("container")]
    response = data.get("response", data)
    if isinstance(response, _OBJECTS) and response.get("object") == "response" and response.get("store") is not False:
        things += _holders(response, "conversation")
    found = [thing.get("id") for thing in things if isinstance(thing, _OBJECTS)]
    return [thing for thing in found if isinstance(thing, str)]


def _holders(data: Mapping[str, Any], *keys: str) -> list[Mapping[str, Any]]:
    """An object, and those of its members that are objects."""
    return [data, *(inner for key in keys if (inner := data.get(key)) and isinstance(inner, _OBJECTS))]


def _state_ids(dialect: Dialect, body: Mapping[str, Any], parts: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    keys = ("previous_response_id", "conversation") if dialect == "responses" else ("container",)
    kept = [thing for key in keys if (thing := body.get(key))]
    found = [thing.get("id") if isinstance(thing, _OBJECTS) else thing for thing in kept]
    for part in parts:
        found += [holder.get("file_id") for holder in _holders(part, "file", "source")]
    return frozenset(thing for thing in found if isinstance(thing, str)) if found else _NONE


def _parts(messages: object) -> list[Mapping[str, Any]]:
    """The parts of all messages that have parts; plain text is none."""
    if not isinstance(messages, (list, tuple)):
        return []
    contents = [message.get("content") for message in messages if isinstance(message, _OBJECTS)]
    many = [content for content in contents if isinstance(content, (list, tuple))]
    return [part for content in many for part in content if isinstance(part, _OBJECTS)]


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except (RecursionError, ValueError):  # nested without end; an integer of more digits than Python prints
        text = f"a {type(value).__name__} too large to show"
    return text if len(text) <= 60 else text[:57] + "..."


@quick
@dataclass(frozen=True, slots=True)
class Attempt:
    """One call that reached a provider (or tried to). `failure_class` is None for a success; seconds are durations.

    `hedge`: it was made while another call was under way whose head was late; the slower of the two is CANCELLED, or
    TIMEOUT after long silence. `estimated`: the provider never said what it charges for a stream that broke off;
    `usage` is our least estimate.
    """

    target: str
    seconds: float
    failure_class: FailureClass | None = None
    message: str = ""
    status: int | None = None
    ttft_seconds: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    probe: bool = False
    estimated: bool = False
    hedge: bool = False


@dataclass(frozen=True, slots=True)
class ReportedRefusal:
    """A target that was not asked, and why. `retry_after` is seconds from the refusal, None when unknown."""

    target: str
    reason: str
    retry_after: float | None = None


@dataclass(slots=True)
class StreamRecovery:
    """A stream that broke off after content, and what was done. `to_target` is None while, or when, nobody went on.

    `kept_characters` of text the caller has and keeps; `dropped_characters` had come and were not delivered, or are
    void after a restart; `trimmed_characters` the next target said again, and the caller did not get twice.
    """

    policy: str
    from_target: str
    failure_class: FailureClass
    kept_characters: int = 0
    dropped_characters: int = 0
    trimmed_characters: int = 0
    to_target: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return {
            "policy": self.policy,
            "from_target": self.from_target,
            "failure_class": self.failure_class.value,
            "to_target": self.to_target,
            "kept_characters": self.kept_characters,
            "dropped_characters": self.dropped_characters,
            "trimmed_characters": self.trimmed_characters,
        }


@dataclass(slots=True)
class RouteReport:
    """What happened to one request and why. Live while a stream runs, final when it ends.

    `ruled_out` maps each better target that did not serve to what ruled it out. After a recovery `target` is the last
    that served, and `usage` and `cost_usd` are of all attempts.
    """

    request_id: str
    model: str
    requested_tier: str
    actual_tier: str | None = None
    target: str | None = None
    degraded: bool = False
    escalated: bool = False
    last_resort: bool = False
    complete: bool = False
    attempts: list[Attempt] = field(default_factory=list)
    refusals: list[ReportedRefusal] = field(default_factory=list)
    waited_seconds: float = 0.0
    seconds: float = 0.0
    ttft_seconds: float | None = None
    usage: Usage | None = None
    cost_usd: float | None = None
    malformed_events: int = 0
    ruled_out: dict[str, str] = field(default_factory=dict)
    losses: list[str] = field(default_factory=list)
    recoveries: list[StreamRecovery] = field(default_factory=list)

    def add_up(self) -> None:
        """Set `usage` and `cost_usd` to those of all attempts: several had a part in the answer.

        The cost is None when nobody knows the price of one of them: half a sum is no cost.
        """
        billed = [attempt for attempt in self.attempts if attempt.usage is not None]
        used = [attempt.usage for attempt in billed if attempt.usage is not None]
        costs = [attempt.cost_usd for attempt in billed if attempt.cost_usd is not None]
        self.usage = Usage(
            sum(usage.prompt_tokens for usage in used),
            sum(usage.completion_tokens for usage in used),
            sum(usage.cached_prompt_tokens for usage in used),
        )
        self.cost_usd = sum(costs) if costs and len(costs) == len(billed) else None

    def to_dict(self) -> dict[str, Any]:
        """The report as plain JSON values."""
        return {
            "request_id": self.request_id,
            "model": self.model,
            "target": self.target,
            "requested_tier": self.requested_tier,
            "actual_tier": self.actual_tier,
            "degraded": self.degraded,
            "escalated": self.escalated,
            "last_resort": self.last_resort,
            "complete": self.complete,
            "attempts": [
                {
                    "target": a.target,
                    "failure_class": a.failure_class.value if a.failure_class else None,
                    "message": a.message,
                    "status": a.status,
                    "seconds": round(a.seconds, 6),
                    "ttft_seconds": a.ttft_seconds,
                    "usage": _usage_dict(a.usage),
                    "cost_usd": a.cost_usd,
                    "probe": a.probe,
                    "hedge": a.hedge,
                    "estimated": a.estimated,
                }
                for a in self.attempts
            ],
            "refusals": [{"target": r.target, "reason": r.reason, "retry_after": r.retry_after} for r in self.refusals],
            "waited_seconds": round(self.waited_seconds, 6),
            "seconds": round(self.seconds, 6),
            "ttft_seconds": self.ttft_seconds,
            "usage": _usage_dict(self.usage),
            "cost_usd": self.cost_usd,
            "malformed_events": self.malformed_events,
            "ruled_out": dict(self.ruled_out),
            "losses": list(self.losses),
            "recoveries": [recovery.to_dict() for recovery in self.recoveries],
        }

    def to_json(self) -> str:
        """The report as one line of JSON."""
        return json.dumps(self.to_dict(), separators=(",", ":"))


def _usage_dict(usage: Usage | None) -> dict[str, int] | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cached_prompt_tokens": usage.cached_prompt_tokens,
    }
