"""The client's headers that go on to a provider: one table, with the form, the destinations and the reason of each."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from smart_model_router.domain.errors import InvalidRequest

IDEMPOTENCY_KEY = "idempotency-key"
VERSION = "anthropic-version"
USUAL_VERSION = "2023-06-01"
"""The version that every server of Messages knows."""

_NAME = r"[\x21-\x2b\x2d-\x7e]{1,128}"
_LIST = re.compile(rf"(?=.{{1,8192}}\Z)[ \t,]*{_NAME}(?:[ \t]*,[ \t,]*{_NAME}){{0,63}}[ \t,]*")
_ACCOUNT = re.compile(r"[A-Za-z0-9_-]{1,128}")
_OPENAI = frozenset({"openai"})
_OPENAI_LIKE = frozenset({"openai", "azure", "openai_compatible"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardedHeader:
    """One row: `form` is the whole of a valid value, `why` the reason that it goes on.

    `dialect`: only calls that are asked and sent in it have the header; "" is any. `kinds` are the provider kinds that
    get it; empty is all. `beside` says which value is sent where the provider's configuration has one as well.
    `expected` describes `form` in an error; a malformed header without it is left out in silence. `named`: a target
    that does not get the header is a loss in the report.
    """

    form: re.Pattern[str]
    why: str
    dialect: str = ""
    kinds: frozenset[str] = frozenset()
    beside: Literal["client", "configured", "both"] = "client"
    expected: str = ""
    named: bool = False


FORWARDED: Mapping[str, ForwardedHeader] = MappingProxyType(
    {
        "traceparent": ForwardedHeader(
            form=re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"),
            why="W3C Trace Context, section 3.2: one trace from the client to the provider",
        ),
        "tracestate": ForwardedHeader(
            form=re.compile(r"[\x20-\x7e]{1,512}"),
            why="W3C Trace Context, section 3.3: belongs to traceparent and says nothing without it",
        ),
        IDEMPOTENCY_KEY: ForwardedHeader(
            form=re.compile(r"[\x21-\x7e]{1,255}"),  # the length is ours
            why="IETF draft Idempotency-Key: a repetition is recognised; a further target gets a key of its own",
        ),
        "anthropic-beta": ForwardedHeader(
            form=_LIST,
            why="Anthropic API, Beta headers: fields of a beta are refused without it",
            dialect="messages",
            beside="both",
            expected="at most 64 names of at most 128 printable ASCII characters each, with commas between them",
            named=True,
        ),
        VERSION: ForwardedHeader(
            form=re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}"),
            why="Anthropic API, Versions: the version of request and answer that the client was written for",
            dialect="messages",
            beside="configured",
            expected="a date of Anthropic's API, such as 2023-06-01",
        ),
        "openai-beta": ForwardedHeader(
            form=_LIST,
            why="OpenAI API: features in beta are refused without it",
            kinds=_OPENAI_LIKE,
            beside="both",
            expected="at most 64 names of at most 128 printable ASCII characters each, with commas between them",
            named=True,
        ),
        "openai-organization": ForwardedHeader(
            form=_ACCOUNT,
            why="OpenAI API, Authentication: the organization that usage counts for; no other provider has it",
            kinds=_OPENAI,
            beside="configured",
            expected="at most 128 letters, digits, - and _",
        ),
        "openai-project": ForwardedHeader(
            form=_ACCOUNT,
            why="OpenAI API, Authentication: the project that usage counts for; no other provider has it",
            kinds=_OPENAI,
            beside="configured",
            expected="at most 128 letters, digits, - and _",
        ),
    }
)
"""Header (lower case) -> its row. Every other header ends at the router: credentials and cookies are for it alone."""
LISTS = frozenset(name for name, row in FORWARDED.items() if row.beside == "both")
"""Headers that are lists: a second line goes on with the first (RFC 9110, section 5.3)."""

_QUERY = "beta=true"
"""The one query parameter that goes on, between Messages and Messages: Anthropic's SDKs mark calls of betas with it."""
_MARK_DIGITS = 12
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class Destination:
    """A provider's kind, and those of its configured headers that are in the table as well."""

    kind: str = ""
    configured: Mapping[str, str] = field(default_factory=dict)


def readable(asked: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The headers (lower-case names) of a request in the dialect `asked` that may go on.

    Raises InvalidRequest for a malformed header without which the request would mean something else. A malformed trace
    or idempotency key is left out, as W3C Trace Context has it.
    """
    found: dict[str, str] = {}
    for name, row in FORWARDED.items():
        value = headers.get(name)
        if not value or (row.dialect and row.dialect != asked and not row.named):
            continue
        if row.form.fullmatch(value):
            found[name] = value
        elif row.expected:
            raise _malformed(name, value, row)
    if "traceparent" not in found:
        found.pop("tracestate", None)
    return found


def checked(headers: Mapping[object, object]) -> dict[str, str]:
    """The headers that a program gave. Raises InvalidRequest for each that does not go on, or is malformed."""
    given = {str(name).lower(): value for name, value in headers.items()}
    found: dict[str, str] = {}
    for name, value in given.items():
        row = FORWARDED.get(name)
        if row is None:
            raise InvalidRequest(f"headers: {name[:_SHOWN]!r} is none of {', '.join(FORWARDED)}")
        if not isinstance(value, str) or not row.form.fullmatch(value):
            raise _malformed(f"headers.{name}", value, row)
        found[name] = value
    return found


def query_of(query: str) -> str:
    """The part of a query string that goes on."""
    return _QUERY if _QUERY in query.split("&") else ""


def sent_query(query: str, asked: str, spoken: str) -> str:
    """The query of a call in the dialect `spoken`."""
    return query if asked == spoken == "messages" else ""


def sent_to(to: Destination, asked: str, spoken: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    """The headers that a provider gets for a request in the dialect `asked`, sent in the dialect `spoken`."""
    return {
        name: _beside(FORWARDED[name], value, to.configured.get(name))
        for name, value in headers.items()
        if _reaches(FORWARDED[name], to, asked, spoken)
    }


def lost_at(to: Destination, asked: str, spoken: str, headers: Mapping[str, str]) -> tuple[str, ...]:
    """The client's `headers` that this provider does not get, in words for the report."""
    losses: list[str] = []
    for name, value in headers.items():
        row, own = FORWARDED[name], to.configured.get(name)
        if not _reaches(row, to, asked, spoken):
            if row.named:
                losses.append(f"{name}: {value[:_SHOWN]} not sent, the target is asked in another dialect or kind")
        elif row.beside == "configured" and own is not None and own != value:
            losses.append(f"{name}: not sent, the provider's configuration has its own")
    return tuple(losses)


def access_named(to: Destination, asked: str, spoken: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    """Those headers by which the client decides how, or for which account, the provider lets a call in."""
    return {
        name: value
        for name, value in headers.items()
        if FORWARDED[name].beside == "configured"
        and name not in to.configured
        and value != USUAL_VERSION
        and _reaches(FORWARDED[name], to, asked, spoken)
    }


def keyed(target: str, first: str, headers: Mapping[str, str]) -> Mapping[str, str]:
    """`headers` with the idempotency key of `target`, where `first` was asked before it (or is the same).

    A key stands for one body at one place: a further target gets a key of its own, always the same one, or a provider
    of both would take its request for a forged repetition of the first.
    """
    if target == first or IDEMPOTENCY_KEY not in headers:
        return headers
    mark = hashlib.sha256(target.encode()).hexdigest()[:_MARK_DIGITS]
    return {**headers, IDEMPOTENCY_KEY: f"{headers[IDEMPOTENCY_KEY]}-{mark}"}


def _reaches(row: ForwardedHeader, to: Destination, asked: str, spoken: str) -> bool:
    in_dialect = not row.dialect or row.dialect == asked == spoken
    return in_dialect and (not row.kinds or to.kind in row.kinds)


def _beside(row: ForwardedHeader, value: str, configured: str | None) -> str:
    """The value sent; of two lists each name once, the configured ones first."""
    if configured is not None and row.beside == "configured":
        return configured
    if row.beside != "both":
        return value
    names = [name.strip() for said in (configured, value) if said for name in said.split(",")]
    return ",".join(dict.fromkeys(filter(None, names)))


def _malformed(name: str, value: object, row: ForwardedHeader) -> InvalidRequest:
    shown = repr(value[:_SHOWN] if isinstance(value, str) else value)[: 2 * _SHOWN]
    return InvalidRequest(f"{name}: {shown} is malformed" + (f", needed: {row.expected}" if row.expected else ""))
