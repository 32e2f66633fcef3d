"""Which headers of a caller go on to the provider, and to whom."""

from __future__ import annotations

import pytest

from smart_model_router import InvalidRequest
from smart_model_router.forwarding import readable, sent_to
from smart_model_router.request import peek

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
BODY = {"model": "smart", "messages": [{"role": "user", "content": "hi"}]}


def test_three_headers_go_on_and_nothing_else() -> None:
    """Keys, cookies and baggage stay here."""
    wanted = {"traceparent": PARENT, "tracestate": "a=1", "idempotency-key": "k-1"}
    others = {"authorization": "Bearer x", "cookie": "c", "baggage": "user=1", "x-router-tier": "small"}
    assert readable({**wanted, **others}) == wanted


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
    ],
)
def test_what_is_malformed_is_as_if_it_had_not_come(headers: dict[str, str]) -> None:
    """A bad header of a client is no reason to fail it, nor to pass it on."""
    assert readable(headers) == {}


def test_a_further_target_gets_a_key_of_its_own() -> None:
    """Always the same one, so that a repetition is known there, too; the trace is everybody's."""
    headers = {"traceparent": PARENT, "idempotency-key": "k-1"}
    assert sent_to("a/x", "a/x", headers) == headers
    other = sent_to("a/y", "a/x", headers)
    assert other["traceparent"] == PARENT
    assert other["idempotency-key"].startswith("k-1-")
    assert other == sent_to("a/y", "a/x", headers)
    assert other != sent_to("b/y", "a/x", headers)
    assert sent_to("a/y", "a/x", {"traceparent": PARENT}) == {"traceparent": PARENT}


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({"authorization": "x"}, "headers: 'authorization' is none of traceparent, tracestate, idempotency-key"),
        ({"traceparent": "x"}, r"headers\.traceparent: 'x' is malformed"),
        ({"idempotency-key": 3}, r"headers\.idempotency-key: 3 is malformed"),
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
