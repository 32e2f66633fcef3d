"""The classifier: every status, body and exception comes to a class, and nothing makes it raise."""

from __future__ import annotations

import importlib
import json
import math
import pkgutil
import ssl
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.domain.outcome import Failure, FailureClass, Wait
from smart_model_router_providers.classify import (
    EXCEPTIONS,
    QUIRKS,
    class_of_exception,
    classify_exception,
    classify_response,
)
from smart_model_router_providers.signals import read_limits

FIXTURE = Path(__file__).parents[2] / "fixtures" / "golden_signals.json"
SAMPLES: list[dict[str, Any]] = json.loads(FIXTURE.read_text())["samples"]


def named(sample: dict[str, Any]) -> str:
    """A sample's test id."""
    return f"{sample['kind']}: {sample['promise']}"


def classified(sample: dict[str, Any]) -> Failure:
    """The failure a sample comes to."""
    body = json.dumps(sample["body"]).encode() if "body" in sample else b""
    return classify_response(sample["status"], sample["headers"], body, kind=sample["kind"])


def test_the_corpus_is_our_own_and_says_where_it_is_from() -> None:
    """At least sixty samples beside those of the specification, each promise once and with its source."""
    sources = [sample["source"] for sample in SAMPLES]
    assert all(sources)
    assert len({named(sample) for sample in SAMPLES}) == len(SAMPLES) >= 27 + 60


@pytest.mark.parametrize(
    ("headers", "message", "scope"),
    [
        ({"retry-after": "1799"}, "", "minute"),
        ({"retry-after": "1800"}, "", "hour"),
        ({"retry-after": "43199"}, "", "hour"),
        ({"retry-after": "43200"}, "", "day"),
        ({"retry-after": "43200"}, "the hourly limit is used up", "hour"),
    ],
)
def test_the_scope_that_nobody_names_follows_from_the_wait(headers: dict[str, str], message: str, scope: str) -> None:
    """No limit of a minute asks for half an hour, none of an hour for half a day; a name counts for more."""
    body = json.dumps({"error": {"message": message}}).encode()
    wait = classify_response(429, headers, body, kind="openai_compatible").wait
    assert wait is not None
    assert (wait.seconds, wait.scope) == (float(headers["retry-after"]), scope)


@pytest.mark.parametrize(("reset", "read", "rejected"), [("24h", 86_400.0, 0), ("24h1s", None, 1)])
def test_a_reset_of_more_than_a_day_is_ignored_and_counted(reset: str, read: float | None, rejected: int) -> None:
    """It is in another unit, or made up; what is left is believed all the same."""
    names = ("limit", "remaining", "reset")
    told = dict(zip((f"x-ratelimit-{name}-requests" for name in names), ("60", "30", reset), strict=True))
    reading = read_limits("openai", told)
    assert [(bucket.remaining, bucket.reset_seconds) for bucket in reading.buckets] == [(30, read)]
    assert reading.rejected == rejected


@pytest.mark.parametrize("sample", [s for s in SAMPLES if "failure_class" in s], ids=named)
def test_golden_classes(sample: dict[str, Any]) -> None:
    """Every sampled refusal is of its class."""
    assert classified(sample).failure_class == sample["failure_class"]


@pytest.mark.parametrize("sample", [s for s in SAMPLES if "wait_seconds" in s], ids=named)
def test_golden_waits(sample: dict[str, Any]) -> None:
    """Every sampled hint is read to the millisecond, and nonsense is no hint."""
    wait = classified(sample).wait
    expected = sample["wait_seconds"]
    assert (wait and wait.seconds) == (expected if expected is None else pytest.approx(expected, abs=1e-3))


@pytest.mark.parametrize("sample", [s for s in SAMPLES if "scope" in s], ids=named)
def test_golden_scopes(sample: dict[str, Any]) -> None:
    """Every sampled hint is about what it says: a minute, a day, concurrency, load, credit."""
    wait = classified(sample).wait
    assert wait is not None
    assert wait.scope == sample["scope"]


@pytest.mark.parametrize("sample", [s for s in SAMPLES if "rejected" in s], ids=named)
def test_golden_rejections(sample: dict[str, Any]) -> None:
    """Fields that make no sense are counted."""
    assert classified(sample).reading.rejected == sample["rejected"]


@pytest.mark.parametrize("sample", [s for s in SAMPLES if "buckets" in s], ids=named)
def test_golden_buckets(sample: dict[str, Any]) -> None:
    """Every sampled bucket has the figures its headers say."""
    found = {bucket.name: bucket for bucket in read_limits(sample["kind"], sample["headers"]).buckets}
    figures = {
        name: {key: getattr(found[name], key) for key in expected} for name, expected in sample["buckets"].items()
    }
    assert figures == {
        name: {key: pytest.approx(value) for key, value in expected.items()}
        for name, expected in sample["buckets"].items()
    }


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (301, "MISCONFIGURED"),
        (307, "MISCONFIGURED"),
        (400, "INVALID_REQUEST"),
        (401, "AUTH"),
        (402, "QUOTA"),
        (403, "AUTH"),
        (404, "MISCONFIGURED"),
        (405, "MISCONFIGURED"),
        (408, "TIMEOUT"),
        (409, "SERVER_ERROR"),
        (410, "MODEL_GONE"),
        (413, "TOO_LARGE"),
        (415, "INVALID_REQUEST"),
        (422, "INVALID_REQUEST"),
        (425, "SERVER_ERROR"),
        (429, "RATE_LIMITED"),
        (500, "SERVER_ERROR"),
        (502, "SERVER_ERROR"),
        (503, "SERVER_ERROR"),
        (504, "SERVER_ERROR"),
        (520, "SERVER_ERROR"),
        (529, "OVERLOADED"),
        (200, "MALFORMED"),
        (204, "MALFORMED"),
        (999, "MALFORMED"),
    ],
)
def test_a_bare_status_has_a_class(status: int, expected: str) -> None:
    """Without a body, the status alone decides (routing.md section 9)."""
    assert classify_response(status, {}, b"").failure_class == expected


@pytest.mark.parametrize(
    ("status", "said", "kept"),
    [(500, "false", True), (503, " False", True), (500, "true", False), (500, "no", False), (429, "false", False)],
)
def test_a_provider_s_word_against_a_retry_counts_for_its_own_faults(status: int, said: str, kept: bool) -> None:
    """`x-should-retry: false` on a 5xx: not again here. On a 429 it means nothing (Cerebras); only `false` is no."""
    assert classify_response(status, {"x-should-retry": said}, b"").not_again is kept


@pytest.mark.parametrize(
    ("status", "body", "wide"),
    [
        (401, b"", True),
        (403, b"", False),
        (400, b'{"error": {"message": "API key not valid."}}', True),
        (200, b'{"error": {"type": "authentication_error"}}', True),
        (200, b'{"error": {"type": "permission_error"}}', False),
        (429, b"", False),
    ],
)
def test_a_bad_key_concerns_the_whole_credential(status: int, body: bytes, wide: bool) -> None:
    """A 401 or a bad key is about every target of the credential, a 403 about one."""
    assert classify_response(status, {}, body).credential_wide is wide


def test_messages_show_no_secrets() -> None:
    """Keys and organisation ids are redacted, line breaks are spaces, and a long text is cut at 300."""
    secrets = ["sk-proj-abcdef123456", "org-AbCdEf123456", "AIzaSyA1234567890abc", "Bearer abc.def"]
    text = " ".join(secrets) + "\n" + "long " * 200
    message = classify_response(401, {}, json.dumps({"error": {"message": text}}).encode()).message
    assert not any(secret in message for secret in secrets)
    assert "\n" not in message
    assert 250 < len(message) <= 320


def test_a_web_page_is_told_by_its_title() -> None:
    """A gateway's HTML is not poured into the message."""
    body = b"<!doctype html><html><head><title>502 Bad Gateway</title></head><body>" + b"x" * 5000
    failure = classify_response(200, {"content-type": "text/html"}, body)
    assert failure.failure_class is FailureClass.MALFORMED
    assert "502 Bad Gateway" in failure.message
    assert len(failure.message) < 200
    cut = b'{"choices": [{"message": {"content": "<html><title>Ours</title>'
    assert "a web page" not in classify_response(200, {}, cut).message


@pytest.mark.parametrize(
    ("status", "body", "name"),
    [
        (400, b"<html><h1>The plain HTTP request was sent to HTTPS port</h1></html>", "MALFORMED"),
        (406, b"\r\n<!DOCTYPE html><title>Blocked</title>", "MALFORMED"),
        (400, b"\xef\xbb\xbf\n<html>with the mark of UTF-8</html>", "MALFORMED"),
        (403, b"<html>no</html>", "AUTH"),
        (404, b"<html>no</html>", "MISCONFIGURED"),
        (503, b"<html>no</html>", "SERVER_ERROR"),
        (400, b"<think>no page</think>", "INVALID_REQUEST"),
        (400, b'{"error": {"message": "<html> is not allowed here"}}', "INVALID_REQUEST"),
        (400, b"", "INVALID_REQUEST"),
    ],
)
def test_a_web_page_says_nothing_of_the_request(status: int, body: bytes, name: str) -> None:
    """A proxy or a portal made it: the caller is not at fault, and another target may answer."""
    assert classify_response(status, {"content-type": "text/html"}, body).failure_class.name == name


def test_the_providers_own_words_are_kept() -> None:
    """A caller's fault is handed back unchanged: the raw body stays."""
    body = b'{"error": {"message": "no", "type": "invalid_request_error"}}'
    assert classify_response(400, {}, body).raw == body


def test_a_colossal_error_body_is_not_parsed() -> None:
    """Beyond a megabyte only the status is believed."""
    body = b'{"error": {"code": "insufficient_quota", "message": "' + b"x" * 1_100_000 + b'"}}'
    assert classify_response(429, {}, body).failure_class is FailureClass.RATE_LIMITED


@pytest.mark.parametrize("quirk", QUIRKS, ids=lambda quirk: quirk.pattern.pattern or quirk.header)
def test_every_quirk_can_be_reached(quirk: Any) -> None:
    """No line of the table is hidden behind an earlier one: some status shows its class."""
    words = {
        "API usage limits.{0,200}regain access": "API usage limits. You will regain access",
        "model.{0,80}(?:does not exist|decommissioned|no longer)": "model x does not exist",
        r"\b(?:models?|deployment)\b": "the model x",
        "access to (?:the )?model": "access to the model",
        "loading model|is (?:currently )?loading": "is currently loading",
    }.get(quirk.pattern.pattern, quirk.pattern.pattern.split("|")[0])
    body = json.dumps({"error": {"message": words}}).encode()
    headers = {quirk.header: "1"} if quirk.header else {}
    found = {classify_response(status, headers, body).failure_class for status in quirk.statuses}
    assert found == {quirk.failure_class}


HEADER_VALUES = st.text(max_size=20) | st.sampled_from(
    ["1e400", "nan", "-1", "inf", "", "9" * 400, "1m", "Wed, 99 Foo 2015 07:28:00 GMT", "0x10", "\u0661", "1_0", "+5"]
)
HEADERS = st.dictionaries(
    st.sampled_from(
        [
            *("retry-after", "retry-after-ms", "date", "x-ratelimit-type", "x-ratelimit-timeremaining"),
            *("x-ratelimit-limit-requests", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
            *("x-rate-limit-reset-tokens", "x-ratelimit-renewalperiod-tokens"),
        ]
    ),
    HEADER_VALUES,
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | HEADER_VALUES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("error", "errors", "code", "type", "message", "details", "retryDelay", "violations", "quotaId"),
                    *("retry_after", "metadata", "innererror", "object", "detail", "status"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)


@given(
    status=st.integers(-1, 1000),
    headers=HEADERS,
    body=st.binary(max_size=50) | JSON.map(lambda value: json.dumps(value).encode()),
    kind=st.sampled_from(["openai", "groq", "azure", "github", "gemini", "nonsense"]),
)
def test_nothing_a_provider_sends_makes_it_raise(status: int, headers: dict[str, str], body: bytes, kind: str) -> None:
    """Whatever the status, headers and body: a failure, and a wait that is finite and not negative."""
    failure = classify_response(status, headers, body, kind=kind)
    wait = failure.wait or Wait(0.0)
    assert math.isfinite(wait.seconds)
    assert wait.seconds >= 0
    assert len(failure.message) <= 350


def classes_of(module: ModuleType) -> Iterator[type[Exception]]:
    """Every exception class that a package defines, in whichever of its modules."""
    seen = set[type]()
    for name in [module.__name__, *SUBMODULES.get(module.__name__, ())]:
        for value in list(vars(importlib.import_module(name)).values()):
            if not issubclass(type(value), type):  # of a proxy of openai, isinstance() would load what it stands for
                continue
            if not issubclass(value, Exception) or issubclass(value, Warning):
                continue
            if value.__module__.partition(".")[0] == module.__name__ and value not in seen:
                seen.add(value)
                yield value


SUBMODULES = {
    "openai": ["openai._exceptions"],
    "anthropic": ["anthropic._exceptions"],
    "httpx": [f"httpx.{module.name}" for module in pkgutil.iter_modules(httpx.__path__) if module.name != "_main"],
    "httpx2": ["httpx2._exceptions"],
    "aiohttp": ["aiohttp.client_exceptions", "aiohttp.http_exceptions"],
}
LIBRARY_EXCEPTIONS = [exception for module in (httpx, httpx2, openai, anthropic) for exception in classes_of(module)]


@pytest.mark.parametrize("exception", LIBRARY_EXCEPTIONS, ids=lambda cls: f"{cls.__module__}.{cls.__name__}")
def test_every_exception_of_the_libraries_is_classified(exception: type[Exception]) -> None:
    """httpx, httpx2, openai and anthropic raise nothing whose class the table does not know."""
    bare = exception.__new__(exception)
    assert class_of_exception(bare) is not None


def test_the_walk_finds_the_libraries_exceptions() -> None:
    """The walk above is not empty by accident."""
    names = {f"{cls.__module__.partition('.')[0]}.{cls.__name__}" for cls in LIBRARY_EXCEPTIONS}
    assert names >= {"httpx.ReadTimeout", "httpx2.ConnectError", "openai.RateLimitError", "anthropic.OverloadedError"}
    assert len(names) > 100


@pytest.mark.parametrize("exception", [c for c in classes_of(aiohttp) if issubclass(c, aiohttp.ClientError)])
def test_every_client_error_of_aiohttp_is_classified(exception: type[Exception]) -> None:
    """The default transport may let one through."""
    assert class_of_exception(exception.__new__(exception)) is not None


REQUEST = httpx2.Request("POST", "http://provider.test/v1")


@pytest.mark.parametrize(
    ("exc", "expected"),
    [
        (httpx2.ConnectError("refused"), "TRANSPORT"),
        (httpx2.ConnectTimeout("slow"), "TRANSPORT"),
        (httpx2.ReadTimeout("slow"), "TIMEOUT"),
        (httpx2.RemoteProtocolError("gone"), "TRANSPORT"),
        (httpx2.DecodingError("bad gzip"), "MALFORMED"),
        (httpx2.UnsupportedProtocol("ftp"), "MISCONFIGURED"),
        (httpx.ReadError("reset"), "TRANSPORT"),
        (aiohttp.ClientPayloadError("cut"), "TRUNCATED"),
        (aiohttp.ServerDisconnectedError(), "TRANSPORT"),
        (openai.APITimeoutError(REQUEST), "TIMEOUT"),
        (openai.APIConnectionError(request=REQUEST), "TRANSPORT"),
        (anthropic.APITimeoutError(REQUEST), "TIMEOUT"),
        (ConnectionRefusedError("refused"), "TRANSPORT"),
        (ssl.SSLCertVerificationError("expired"), "TRANSPORT"),
        (TimeoutError(), "TIMEOUT"),
        (RuntimeError("who knows"), "SERVER_ERROR"),
    ],
    ids=lambda value: f"{type(value).__module__}.{type(value).__name__}",
)
def test_exceptions_have_their_class(exc: Exception, expected: str) -> None:
    """What failed below us has its class; what nobody knows is a server error."""
    assert classify_exception(exc).failure_class == expected


def test_a_timeout_of_an_sdk_may_be_a_connect_timeout() -> None:
    """The SDKs call both a timeout; the cause knows better."""
    exc = openai.APITimeoutError(REQUEST)
    exc.__cause__ = httpx2.ConnectTimeout("slow")
    assert classify_exception(exc).failure_class is FailureClass.TRANSPORT


def test_a_status_exception_is_read_like_an_answer() -> None:
    """An SDK's status error keeps status, headers, body and hint."""
    response = httpx2.Response(
        429, headers={"Retry-After": "2"}, content=b'{"error": {"message": "slow"}}', request=REQUEST
    )
    failure = classify_exception(openai.RateLimitError("slow", response=response, body=None))
    assert (failure.failure_class, failure.status, failure.wait) == (FailureClass.RATE_LIMITED, 429, Wait(2.0))
    assert failure.raw == b'{"error": {"message": "slow"}}'


def test_a_status_exception_whose_body_was_never_read() -> None:
    """The status alone decides then."""
    response = httpx2.Response(503, stream=httpx2.ByteStream(b""), request=REQUEST)
    assert classify_exception(httpx2.HTTPStatusError("x", request=REQUEST, response=response)).status == 503


def test_an_sdks_error_inside_a_stream_is_its_codes_class() -> None:
    """An SDK raises a bare APIError for an error event: its body decides."""
    body = {"code": "context_length_exceeded", "message": "too long"}
    failure = classify_exception(openai.APIError("too long", REQUEST, body=body))
    assert failure.failure_class is FailureClass.CONTEXT_LENGTH


@pytest.mark.parametrize(
    ("message", "window"),
    [
        ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9631", 8192),
        ("This endpoint's maximum context length is 131,072 tokens", 131072),
        ("prompt is too long: 210000 tokens > 200000 maximum", 200000),
        ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease", 200000),
        ("The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)", 1048576),
        ("the request exceeds the available context size (4096 tokens)", 4096),
        ("This model's maximum prompt length is 131072 but the request contains 200000 tokens", 131072),
        ("Please reduce the length of the messages or completion", None),
        ("This model's maximum context length is 0 tokens", None),
        ("This model's maximum context length is 999999999999 tokens", None),
    ],
)
def test_a_refused_prompt_tells_the_window(message: str, window: int | None) -> None:
    """The number that a provider names, in each provider's words; nonsense is no window."""
    failure = classify_response(400, {}, json.dumps({"error": {"message": message}}).encode())
    assert (failure.failure_class, failure.context_tokens) == (FailureClass.CONTEXT_LENGTH, window)


def test_llama_cpp_tells_the_window_in_a_field() -> None:
    """`n_ctx` beside the message."""
    body = {"error": {"code": 400, "type": "exceed_context_size_error", "message": "too long", "n_ctx": 4096}}
    assert classify_response(400, {}, json.dumps(body).encode()).context_tokens == 4096


def test_no_row_of_the_table_is_a_misspelling() -> None:
    """Every name of a library installed here exists in it."""
    modules = {"httpx": httpx2, "aiohttp": aiohttp, "openai": openai, "anthropic": anthropic}
    missing = [
        name
        for name in EXCEPTIONS
        if (package := name.partition(".")[0]) in modules
        and not any(cls.__name__ == name.partition(".")[2] for cls in classes_of(modules[package]))
    ]
    assert missing == []
