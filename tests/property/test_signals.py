"""Whatever a provider sends is read without raising, promises no wait for ever, and nonsense is counted."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smart_model_router.core.checked_options import DAY
from smart_model_router.core.cooldown import Cooldown
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.domain.outcome import BucketReading, CooldownRule, Failure, FailureClass, LimitReading
from smart_model_router_providers.catalog import KINDS
from smart_model_router_providers.classify import classify_error, classify_response
from smart_model_router_providers.signals import read_limits

HOSTILE = (
    *("", " ", "-1", "-5", "nan", "inf", "-inf", "1e400", "1e3", "+1", "0x10", "1_0", "\u0661\u0662", "\u221e", "NaN"),
    *("9" * 20, "9" * 5000, "0" * 5000, "1.5.5", ".", "7.66s", "1m", "1h2m3s", "6m0s", "-1s", "1s-", "1d1d", "٣s"),
    *("Wed, 21 Oct 2015 07:28:00 GMT", "2026-11-21T20:00:00Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z"),
    *("Sat, 31 Feb 2026 99:99:99 GMT", "null", "true", "[1]", '{"a":1}', "\x00", "\ud800", "1\n2", "0", "1", "60"),
    *("1795291230", "1795291230000", "9" * 15, '"a";r=1;t=2', '"a";r=-1', ";;;,,,", '"' * 3000, "a;r=1," * 400),
)
NAMES = (
    *("date", "retry-after", "retry-after-ms", "x-rate-limit-reset-tokens", "x-ratelimit-type", "x-should-retry"),
    *("x-ratelimit-timeremaining", "ratelimit", "ratelimit-policy"),
    *(f"x-ratelimit-{what}" for what in ("limit", "remaining", "reset")),
    *(
        f"x-ratelimit-{what}-{of}"
        for what in ("limit", "remaining", "reset", "renewalperiod")
        for of in ("requests", "tokens", "project-tokens", "req-minute", "tokens-minute", "requests-day")
    ),
    *(
        f"anthropic-ratelimit-{of}-{what}"
        for what in ("limit", "remaining", "reset", "utilization")
        for of in ("requests", "tokens", "input-tokens", "output-tokens", "unified-5h", "unified-7d")
    ),
)
VALUES = st.sampled_from(HOSTILE) | st.text(max_size=40)
HEADERS = st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=12)
KIND_NAMES = st.sampled_from(sorted(KINDS))
STATUSES = st.sampled_from([200, 400, 401, 402, 403, 404, 413, 422, 429, 500, 503, 529, 999])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | VALUES
KEYS = st.sampled_from(
    "error code type status message details metadata headers retry_after retryDelay violations quotaId raw errors "
    "innererror object reason".split()
) | st.text(max_size=8)
JSONS = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5))


def waits_for_ever(failure: Failure) -> bool:
    """Whether a fresh target would rest longer than a day after this failure."""
    rests = Cooldown()
    rests.failed(failure, admitted_at=0.0, sent_seq=1, now=0.0, roll=0.99, paced=False, advise=True)
    refusal = rests.law(0.0) or rests.advice(0.0)
    return refusal is not None and (refusal.retry_at is None or not 0 <= refusal.retry_at <= DAY)


def assert_sane(failure: Failure) -> None:
    """A class, a wait that is a number, buckets with numbers, and no rest of more than a day."""
    assert failure.failure_class in FailureClass
    if failure.wait is not None:
        assert math.isfinite(failure.wait.seconds)
        assert failure.wait.seconds >= 0
        assert failure.failure_class.policy.cooldown in {
            CooldownRule.LAW,
            CooldownRule.HINT_OR_BRIEF,
            CooldownRule.WALL,
        }
    assert failure.reading.rejected >= 0
    assert all(is_sane(bucket) for bucket in failure.reading.buckets)
    assert not waits_for_ever(failure)
    assert len(failure.message) <= 330


def is_sane(bucket: BucketReading) -> bool:
    """Counts are whole and not negative, instants finite."""
    seconds = [value for value in (bucket.reset_seconds, bucket.window_seconds) if value is not None]
    counts = [value for value in (bucket.limit, bucket.remaining) if value is not None]
    return all(math.isfinite(value) and value >= 0 for value in seconds) and all(value >= 0 for value in counts)


@given(kind=KIND_NAMES, status=STATUSES, headers=HEADERS, body=JSONS)
def test_any_answer_is_classified(kind: str, status: int, headers: dict[str, str], body: Any) -> None:
    """Any headers and any JSON, NaN included: a failure of some class, and no wait for ever."""
    assert_sane(classify_response(status, headers, json.dumps(body).encode(), kind=kind))
    assert_sane(classify_response(status, headers, json.dumps(json.dumps(body)).encode(), kind=kind))


@given(kind=KIND_NAMES, status=STATUSES, headers=HEADERS, body=st.binary(max_size=300))
def test_any_bytes_are_classified(kind: str, status: int, headers: dict[str, str], body: bytes) -> None:
    """A body need not be JSON, nor text."""
    assert_sane(classify_response(status, headers, body, kind=kind))


@given(kind=KIND_NAMES, error=JSONS, headers=HEADERS)
def test_any_error_inside_a_stream_is_classified(kind: str, error: Any, headers: dict[str, str]) -> None:
    """An error event's object may be anything."""
    assert_sane(classify_error(error, headers, raw=b"", kind=kind))


DEEP = [b"[" * 1_000 + b"]" * 1_000, b'{"error":' * 1_000 + b"1" + b"}" * 1_000]
LONG = [b"x" * 10_000_000, b'{"error":{"message":"' + b"try again in " * 800_000 + b'"}}', b"[" * 10_000_000]


@pytest.mark.parametrize("body", DEEP + LONG, ids=["array", "object", "text", "message", "brackets"])
@pytest.mark.parametrize("status", [200, 429])
def test_deep_and_long_bodies_are_classified(body: bytes, status: int) -> None:
    """Nested a thousand deep, or ten megabytes: the status decides, quickly."""
    failure = classify_response(status, {}, body)
    assert_sane(failure)
    assert failure.failure_class is (FailureClass.MALFORMED if status == 200 else FailureClass.RATE_LIMITED)


@pytest.mark.parametrize("name", ["retry-after", "x-ratelimit-limit-requests", "ratelimit", "date"])
def test_a_header_of_ten_megabytes_is_no_figure(name: str) -> None:
    """Nothing is read out of it, and nobody waits for it."""
    failure = classify_response(429, {name: "9" * 10_000_000}, b"")
    assert failure.wait is None
    assert_sane(failure)


FIGURES = {
    "openai": ("x-ratelimit-limit-requests", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-project-tokens"),
    "azure": ("x-ratelimit-limit-requests", "x-ratelimit-renewalperiod-tokens"),
    "anthropic": ("anthropic-ratelimit-requests-limit", "anthropic-ratelimit-tokens-reset"),
    "mistral": ("x-ratelimit-limit-req-minute", "x-ratelimit-remaining-tokens-minute"),
    "cerebras": ("x-ratelimit-reset-requests-day", "x-ratelimit-limit-tokens-hour"),
    "openrouter": ("x-ratelimit-limit", "x-ratelimit-reset"),
}
NONSENSE = ("", "-1", "nan", "inf", "1e400", "9" * 20, "soon", "\u0661")


@pytest.mark.parametrize("nonsense", NONSENSE)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in FIGURES.items() for name in names])
def test_every_field_that_makes_no_sense_is_counted(kind: str, name: str, nonsense: str) -> None:
    """One bad field is one rejection, and no bucket has a figure from it."""
    reading = read_limits(kind, {name: nonsense})
    assert reading.rejected == 1
    assert all(b.limit is None and b.remaining is None and b.reset_seconds is None for b in reading.buckets)


NUMBERS = st.none() | st.integers(0, 10**15)
SECONDS = st.none() | st.floats(0, 1e15)
READINGS = st.builds(
    BucketReading,
    st.sampled_from(["requests", "tokens", "input_tokens", "default", ""]),
    st.none() | st.integers(1, 10**15),
    NUMBERS,
    SECONDS,
    st.none() | st.sampled_from([1.0, 60.0, 3600.0, 86_400.0]),
)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    answers=st.lists(
        st.tuples(READINGS, st.integers(0, 20), st.sampled_from([0.0, 0.5, 1.0, 60.0, 3600.0])), max_size=12
    ),
    refill=st.sampled_from(["continuous", "window"]),
)
def test_no_reading_breaks_the_buckets(answers: list[tuple[BucketReading, int, float]], refill: Any) -> None:
    """Whatever answers say, in whatever order: levels stay within their capacity, and every wait has an end."""
    limits, now = RateLimitTracker(rpm=60, refill=refill), 1000.0
    for number, (reading, sent_seq, step) in enumerate(answers):
        reservation = limits.reserve(Cost(10, 10), now, number)
        limits.update(LimitReading((reading,)), sent_seq, now + step, sent_at=now)
        now += step
        limits.settle(reservation, None, now, sent=True)
        for bucket in limits.buckets.values():
            assert bucket.level(now) <= bucket.capacity
            assert bucket.due_at(1.0, now) < math.inf
        refusal = limits.refusal(Cost(0, 0), now)
        assert refusal is None or refusal.retry_at is None or refusal.retry_at > now
