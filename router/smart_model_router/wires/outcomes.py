"""The outcome of a reply in any dialect: the facts of its answer, or the failure class of its status and codes.

Codes are words of the dialects and live here, because streams carry them too. What only the text of a message
or a single provider's habit tells is a quirk and lives in the providers' classify.py.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router.domain.fast_dataclass import quick
from smart_model_router.domain.outcome import EventKind, Failure, FailureClass, StreamEvent
from smart_model_router.wires.values import count, items, mapping

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from smart_model_router.domain.outcome import Usage

UNFINISHED_REASONS = frozenset(
    {
        "length",
        "content_filter",
        # Messages (and its `model_context_window_exceeded`) say the same in other words.
        "max_tokens",
        "model_context_window_exceeded",
        "refusal",
        "max_output_tokens",  # Responses
    }
)
"""Finish reasons that explain an answer without content: the cap or a filter, not an empty model."""


@quick
@dataclass(frozen=True, slots=True)
class Answer:
    """A decoded answer, judged. `malformed` says what is not of its dialect ("" when all is).

    `empty` is true without text, tool call, reasoning or refusal, unless the finish reason explains it.
    `error` is the provider's error object when a 200 carried one.
    """

    usage: Usage | None = None
    finish: str | None = None
    empty: bool = False
    malformed: str = ""
    error: object = None


_F = FailureClass

STATUS_CLASSES: Mapping[int, FailureClass] = MappingProxyType(
    {
        401: _F.AUTH,
        402: _F.QUOTA,
        403: _F.AUTH,
        404: _F.MISCONFIGURED,
        405: _F.MISCONFIGURED,
        408: _F.TIMEOUT,
        409: _F.SERVER_ERROR,
        410: _F.MODEL_GONE,
        413: _F.TOO_LARGE,
        424: _F.SERVER_ERROR,  # Bedrock ModelErrorException: the model, not the request
        425: _F.SERVER_ERROR,
        426: _F.MISCONFIGURED,
        429: _F.RATE_LIMITED,
        451: _F.MODEL_GONE,  # not in this region
        498: _F.OVERLOADED,  # Groq: flex tier capacity exceeded
        499: _F.SERVER_ERROR,  # a proxy says that we hung up, and we did not
        529: _F.OVERLOADED,
    }
)
"""Statuses that mean more than their hundred (docs/design/routing.md section 9)."""

_HUNDREDS: Mapping[int, FailureClass] = MappingProxyType(
    {
        1: _F.MALFORMED,
        2: _F.MALFORMED,
        3: _F.MISCONFIGURED,  # redirects are not followed: the base URL is wrong
        4: _F.INVALID_REQUEST,
        5: _F.SERVER_ERROR,
    }
)

GENERIC_CODES: Mapping[str, FailureClass] = MappingProxyType(
    {
        # OpenAI and compatible, error.type
        "invalid_request_error": _F.INVALID_REQUEST,
        "server_error": _F.SERVER_ERROR,
        "internal_error": _F.SERVER_ERROR,
        "internal_server_error": _F.SERVER_ERROR,
        "rate_limit_exceeded": _F.RATE_LIMITED,
        "requests": _F.RATE_LIMITED,
        "tokens": _F.RATE_LIMITED,
        # Anthropic, error.type
        "authentication_error": _F.AUTH,
        "permission_error": _F.AUTH,
        "not_found_error": _F.MODEL_GONE,
        "rate_limit_error": _F.RATE_LIMITED,
        "api_error": _F.SERVER_ERROR,
        "timeout_error": _F.SERVER_ERROR,
        # Google, error.status: the names of google.rpc.Code
        "invalid_argument": _F.INVALID_REQUEST,
        "failed_precondition": _F.INVALID_REQUEST,
        "unauthenticated": _F.AUTH,
        "permission_denied": _F.AUTH,
        "not_found": _F.MODEL_GONE,
        "resource_exhausted": _F.RATE_LIMITED,
        "deadline_exceeded": _F.SERVER_ERROR,
        "internal": _F.SERVER_ERROR,
        "unavailable": _F.OVERLOADED,
    }
)
"""Codes that only repeat what the status says; they decide where there is no status, as in a stream."""

_CALLER_4XX = frozenset({400, 403, 404, 413, 422})
_MONEY = frozenset({400, 402, 403, 429})
_MODEL = frozenset({400, 401, 403, 404, 410, 422})
_BUSY = frozenset({429, 498, 503, 529})

SPECIFIC_CODES: Mapping[str, tuple[FailureClass, frozenset[int]]] = MappingProxyType(
    {
        "insufficient_quota": (_F.QUOTA, _MONEY),  # OpenAI: quota, not rate
        "billing_hard_limit_reached": (_F.QUOTA, _MONEY),  # OpenAI
        "billing_not_active": (_F.QUOTA, _MONEY),  # OpenAI
        "billing_error": (_F.QUOTA, _MONEY),  # Anthropic
        "insufficient_balance": (_F.QUOTA, _MONEY),  # DeepSeek
        "invalid_api_key": (_F.AUTH, frozenset({400, 403})),  # OpenAI, Groq
        "api_key_invalid": (_F.AUTH, frozenset({400, 403})),  # Gemini: ErrorInfo.reason of a 400
        "model_not_found": (_F.MODEL_GONE, _MODEL),  # OpenAI, Groq: 404, and 403 without access
        "model_decommissioned": (_F.MODEL_GONE, _MODEL),  # Groq: a 400
        "model_not_available": (_F.MODEL_GONE, _MODEL),  # Together
        "unknown_model": (_F.MODEL_GONE, _MODEL),  # GitHub Models: a 400
        "unavailable_model": (_F.MODEL_GONE, _MODEL),  # GitHub Models: a 400
        "deploymentnotfound": (_F.MODEL_GONE, _MODEL),  # Azure: a 404
        "unsupported_country_region_territory": (_F.MODEL_GONE, _MODEL),  # OpenAI: a 403
        "context_length_exceeded": (_F.CONTEXT_LENGTH, _CALLER_4XX),  # OpenAI
        "exceed_context_size_error": (_F.CONTEXT_LENGTH, _CALLER_4XX),  # llama.cpp: a 400
        "request_too_large": (_F.TOO_LARGE, _CALLER_4XX),  # Anthropic
        "tokens_limit_reached": (_F.TOO_LARGE, _CALLER_4XX),  # GitHub Models
        "content_filter": (_F.CONTENT_FILTERED, _CALLER_4XX),  # Azure
        "content_policy_violation": (_F.CONTENT_FILTERED, _CALLER_4XX),  # OpenAI
        "responsibleaipolicyviolation": (_F.CONTENT_FILTERED, _CALLER_4XX),  # Azure: innererror.code
        "tool_use_failed": (_F.MALFORMED, _CALLER_4XX),  # Groq: the model wrote a broken tool call
        "json_validate_failed": (_F.MALFORMED, _CALLER_4XX),  # Groq: the model wrote broken JSON
        "overloaded_error": (_F.OVERLOADED, _BUSY),  # Anthropic
        "slow_down": (_F.OVERLOADED, _BUSY),  # OpenAI: a 503
        "over_capacity": (_F.OVERLOADED, _BUSY),  # Groq
        "queue_exceeded": (_F.OVERLOADED, _BUSY),  # Cerebras: a 429 about the queue of all callers, not our rate
    }
)
"""Codes that tell more than the status, each with the statuses it may speak over."""

MESSAGE_CHARACTERS = 300
_SECRETS = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|csk|hf|ghp|github_pat|org|proj|user|acct)[-_][A-Za-z0-9_*.-]{4,}"
    r"|\bAIza[\w-]{10,}"  # Google keys
    r"|\bBearer\s+\S+",
    re.IGNORECASE,
)
_INVISIBLE = re.compile(r"[\x00-\x1f\x7f\s]+")


def class_of_status(status: int) -> FailureClass:
    """Return the class of a status when nothing else is known. Unknown ones go by their hundred."""
    found = STATUS_CLASSES.get(status)
    return found if found is not None else _HUNDREDS.get(status // 100, _F.MALFORMED)


def class_of_codes(status: int | None, codes: Iterable[str]) -> FailureClass:
    """The class of a failure with this status (None: there was none, or it was 200) and these codes.

    The status decides, unless a code that knows more may speak over it.
    """
    generic: FailureClass | None = None
    for code in codes:
        if code in SPECIFIC_CODES:
            found, statuses = SPECIFIC_CODES[code]
            if status is None or status in statuses:
                return found
        elif generic is None:
            generic = GENERIC_CODES.get(code)
    if status is not None:
        return class_of_status(status)
    return generic if generic is not None else _F.SERVER_ERROR


def error_codes(error: object) -> list[str]:
    """Every code, type, status and reason an error object names, the most telling first, in lower case."""
    top = mapping(error)
    inner = mapping(top.get("innererror")) or mapping(top.get("inner_error"))
    details = top.get("details")
    places = [inner, top, mapping(details), *map(mapping, items(details))]
    found: list[str] = []
    for place in places:
        for key in ("code", "error_code", "reason", "status", "type"):
            value = place.get(key)
            if isinstance(value, str) and value:
                found.append(value.lower())
    return found


def error_status(error: object) -> int | None:
    """The HTTP status an error object carries as its code (OpenRouter, Gemini, vLLM), None without one."""
    code: object = mapping(error).get("code")
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    number = count(code)
    return number if number is not None and 400 <= number < 600 else None


def error_message(error: object) -> str:
    """An error's own words, fit to be shown (see `shown`)."""
    if isinstance(error, str):
        return shown(error)
    top = mapping(error)
    for key in ("message", "error", "detail", "type", "status", "code"):
        value = top.get(key)
        if isinstance(value, str) and value:
            return shown(value)
    return ""


def shown(message: str) -> str:
    """`message` on one line, keys and organisation ids redacted, at most 300 characters."""
    line = _INVISIBLE.sub(" ", _SECRETS.sub("[redacted]", message[: 4 * MESSAGE_CHARACTERS])).strip()
    return line if len(line) <= MESSAGE_CHARACTERS else line[: MESSAGE_CHARACTERS - 3] + "..."


def failure_of(error: object) -> Failure:
    """The failure that an error inside a stream means, by its code and type alone."""
    status = error_status(error)
    found = class_of_codes(status, error_codes(error))
    return Failure(found, error_message(error) or "the provider sent an error without a message", status)


def contradiction(event: StreamEvent, what: str) -> StreamEvent:
    """Return the event of a snapshot that contradicts its deltas. Its usage still counts."""
    failure = Failure(FailureClass.MALFORMED, f"{what} contradicts the deltas before it")
    return StreamEvent(EventKind.MALFORMED, event.raw, usage=event.usage, failure=failure)
