"""Which headers of a caller go on to the provider, and to which."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import InvalidRequest
from smart_model_router.domain.forwarded_headers import (
    FORWARDED,
    Destination,
    keyed,
    lost_at,
    query_of,
    readable,
    sent_query,
    sent_to,
)
from smart_model_router.domain.request import Dialect, peek

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BODY = {"model": "smart", "messages": [{"role": "user", "content": "hi"}]}
SAID = {
    "traceparent": PARENT,
    "tracestate": "a=1",
    "idempotency-key": "k-1",
    "anthropic-beta": "context-1m-2025-08-07,interleaved-thinking-2025-05-14",
    "anthropic-version": "2023-06-01",
    "openai-beta": "responses=v1",
    "openai-organization": "org-1",
    "openai-project": "proj_1",
}
"""One valid value of every row."""
TRACE = {"traceparent", "tracestate", "idempotency-key"}
CREDENTIALS = (
    "authorization proxy-authorization cookie set-cookie x-api-key api-key x-goog-api-key x-auth-token "
    "openai-api-key anthropic-api-key x-amz-security-token x-forwarded-for forwarded host"
).split()


def test_every_row_has_a_reason_and_an_example() -> None:
    """The table is the documentation: a header without a reason is not forwarded."""
    assert SAID.keys() == FORWARDED.keys()
    assert all(row.why and row.form.fullmatch(SAID[name]) for name, row in FORWARDED.items())


def test_every_row_is_in_the_documents() -> None:
    """A reader finds each header where dialects are explained."""
    told = (Path(__file__).parents[3] / "docs" / "dialects.md").read_text(encoding="utf-8")
    assert [name for name in FORWARDED if f"`{name}`" not in told] == []


@pytest.mark.parametrize("asked", ["chat", "messages", "responses", "embeddings"])
def test_no_credential_goes_on(asked: Dialect) -> None:
    """Keys, cookies and addresses stay here, whichever dialect is asked."""
    others = dict.fromkeys(CREDENTIALS, "Bearer secret")
    assert others.keys().isdisjoint(readable(asked, {**SAID, **others}))
    assert readable("messages", {**SAID, **others}) == SAID


@pytest.mark.parametrize(
    ("kind", "asked", "spoken", "more"),
    [
        ("anthropic", "messages", "messages", {"anthropic-beta", "anthropic-version"}),
        ("ollama", "messages", "messages", {"anthropic-beta", "anthropic-version"}),
        ("anthropic", "chat", "messages", set[str]()),
        ("anthropic", "responses", "messages", set[str]()),
        ("openai", "messages", "chat", {"openai-beta", "openai-organization", "openai-project"}),
        ("openai", "chat", "chat", {"openai-beta", "openai-organization", "openai-project"}),
        ("openai", "responses", "responses", {"openai-beta", "openai-organization", "openai-project"}),
        ("openai", "embeddings", "embeddings", {"openai-beta", "openai-organization", "openai-project"}),
        ("azure", "chat", "chat", {"openai-beta"}),
        ("openai_compatible", "responses", "responses", {"openai-beta"}),
        ("groq", "chat", "chat", set[str]()),
        ("", "chat", "chat", set[str]()),
    ],
)
def test_a_header_goes_where_it_is_understood(kind: str, asked: Dialect, spoken: Dialect, more: set[str]) -> None:
    """Traces and keys go everywhere; betas of Anthropic from Messages to Messages; OpenAI's to OpenAI."""
    to = Destination(kind)
    sent = sent_to(to, asked, spoken, SAID)
    assert sent.keys() == TRACE | more
    assert {name: value for name, value in sent.items() if SAID[name] != value} == {}
    named = {"anthropic-beta", "openai-beta"} - more
    assert {loss.partition(":")[0] for loss in lost_at(to, asked, spoken, SAID)} == named


@pytest.mark.parametrize("name", ["anthropic-beta", "openai-beta"])
def test_betas_join_those_of_the_configuration(name: str) -> None:
    """Each once, the configured ones first."""
    to = Destination("openai" if name == "openai-beta" else "anthropic", {name: "a, b"})
    sent = sent_to(to, "messages", "messages", {name: "b,c, a,,d ,c"})
    assert sent == {name: "a,b,c,d"}
    assert lost_at(to, "messages", "messages", {name: "c"}) == ()


@pytest.mark.parametrize("name", ["anthropic-version", "openai-organization", "openai-project"])
def test_the_configuration_decides_on_account_and_version(name: str) -> None:
    """Whose account pays is the owner's to say; the client is told that its own word was not sent."""
    to = Destination("openai", {name: "other"})
    headers = {name: SAID[name]}
    assert sent_to(to, "messages", "messages", headers) == {name: "other"}
    assert lost_at(to, "messages", "messages", headers) == (
        f"{name}: not sent, the provider's configuration has its own",
    )
    assert lost_at(Destination("openai", headers), "messages", "messages", headers) == ()


@pytest.mark.parametrize(
    "headers",
    [
        {"traceparent": PARENT.upper()},
        {"traceparent": "ff" + PARENT[2:]},
        {"traceparent": "00-" + "0" * 32 + PARENT[35:]},
        {"traceparent": PARENT + "-more"},
        {"tracestate": "a=1"},
        {"idempotency-key": ""},
        {"idempotency-key": "k" * 256},
        {"idempotency-key": "a b"},
        {"idempotency-key": "k\u00e9"},
        {"anthropic-beta": ""},
    ],
)
def test_a_malformed_trace_is_as_if_it_had_not_come(headers: dict[str, str]) -> None:
    """A bad trace or key of a client is no reason to fail it, nor to pass it on."""
    assert readable("messages", headers) == {}


HOSTILE = [
    "a\r\nx-api-key: stolen",
    "a\nb",
    "a\x00b",
    "b\u00e9ta",
    "\u0431\u0435\u0442\u0430",
    "x" * 129,
    "x" * 100_000,
    ",".join(["beta"] * 65),
    " , " * 30_000,
    "a b",
    ",",
]


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("name", sorted(name for name, row in FORWARDED.items() if row.expected))
def test_a_hostile_value_is_refused_in_words(name: str, value: str) -> None:
    """The error names the header and what would be right, and is short."""
    for attempt in (lambda: readable("messages", {name: value}), lambda: peek("messages", BODY, headers={name: value})):
        with pytest.raises(InvalidRequest, match=rf"{name}: .* is malformed, needed: ") as told:
            attempt()
        assert len(str(told.value)) < 400
        assert told.value.message.isprintable()


def test_a_version_means_nothing_to_other_dialects() -> None:
    """A Chat client's version of Anthropic's API is no reason to refuse its request."""
    assert readable("chat", {"anthropic-version": "odd"}) == {}


def test_a_further_target_gets_a_key_of_its_own() -> None:
    """Always the same one, so that a repetition is known there, too; the trace is everybody's."""
    headers = {"traceparent": PARENT, "idempotency-key": "k-1"}
    assert keyed("a/x", "a/x", headers) == headers
    other = keyed("a/y", "a/x", headers)
    assert other["traceparent"] == PARENT
    assert other["idempotency-key"].startswith("k-1-")
    assert other == keyed("a/y", "a/x", headers)
    assert other != keyed("b/y", "a/x", headers)
    assert keyed("a/y", "a/x", {"traceparent": PARENT}) == {"traceparent": PARENT}


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"authorization": "x"}, "headers: 'authorization' is none of traceparent, tracestate, idempotency-key"),
        ({"traceparent": "x"}, r"headers\.traceparent: 'x' is malformed"),
        ({"idempotency-key": 3}, r"headers\.idempotency-key: 3 is malformed"),
        ({"anthropic-version": "x"}, r"headers\.anthropic-version: 'x' is malformed, needed: a date"),
        (["traceparent"], "headers: names and values are needed"),
    ],
)
def test_a_caller_in_process_is_told_what_is_wrong(headers: dict[str, str], told: str) -> None:
    """An option of a program is not dropped in silence."""
    with pytest.raises(InvalidRequest, match=told):
        peek("chat", BODY, headers=headers)


def test_names_of_headers_have_no_case() -> None:
    """As in HTTP."""
    assert peek("chat", BODY, headers={"Idempotency-Key": "k"}).headers == {"idempotency-key": "k"}


def test_one_query_goes_on_between_messages_and_messages() -> None:
    """Anthropic's SDKs mark a call of a beta with it; all else in a query is for the router, or for nothing."""
    assert [query_of(said) for said in ("beta=true", "a=1&beta=true", "beta=1", "key=secret", "")] == [
        *("beta=true", "beta=true", "", "", "")
    ]
    assert sent_query("beta=true", "messages", "messages") == "beta=true"
    assert sent_query("beta=true", "messages", "chat") == sent_query("beta=true", "chat", "messages") == ""
    assert peek("messages", BODY, query="beta=true").query == "beta=true"


@pytest.mark.parametrize("query", ["beta=1", "a=1&beta=true", "key=secret", 3])
def test_another_query_of_a_program_is_refused(query: Any) -> None:
    """It would be lost in silence."""
    with pytest.raises(InvalidRequest, match=re.escape(f"query: beta=true is needed, or nothing, not {query!r}")):
        peek("messages", BODY, query=query)
