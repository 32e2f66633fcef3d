"""A decoder of short steps says what the other one says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.wires import values as values_of_json
from smart_model_router.wires.values import decode, decode_any, decode_large

LONG = "a" * 300
texts = st.text(max_size=20) | st.sampled_from(["\ud83d", "\ude00", "\U0001f600", '"', "\\", "\\u", "\n", LONG])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
    | st.lists(texts, min_size=2, max_size=30).map("".join),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture(autouse=True)
def small_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is long for a window of 40 characters."""
    monkeypatch.setattr(values_of_json, "WINDOW", 40)


def written(value: object, *, indent: int | None, escaped: bool) -> bytes:
    """The value as JSON; what UTF-8 cannot write as an escape."""
    raw = json.dumps(value, ensure_ascii=escaped, indent=indent)
    return raw.encode("utf-8", "backslashreplace") if not escaped else raw.encode()


@given(value=values, indent=st.sampled_from([None, 0, 50]), escaped=st.booleans())
def test_values_are_decoded_as_by_the_decoder_of_one_step(value: object, indent: int | None, *, escaped: bool) -> None:
    """Numbers, texts, escapes, pairs of surrogates and spaces at every place of a window."""
    raw = written(value, indent=indent, escaped=escaped)
    assert repr(decode_large(raw)) == repr(decode(raw))


@given(value=values, at=st.integers(0, 10_000), put=st.binary(max_size=3), take=st.integers(0, 3), data=st.data())
def test_broken_texts_are_refused_as_by_the_decoder_of_one_step(
    value: object, at: int, put: bytes, take: int, data: st.DataObject
) -> None:
    """A text with a few bytes more, or less, anywhere."""
    raw = written(value, indent=data.draw(st.sampled_from([None, 1])), escaped=data.draw(st.booleans()))
    at %= len(raw) + 1
    broken = raw[:at] + put + raw[at + take :]
    assert repr(decode_large(broken)) == repr(decode(broken))


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "[",
        "[1,]",
        '{"a":1,}',
        '{"a" 1}',
        '{1:"a"}',
        '{"a":1}}',
        "[1 2]",
        "[NaN]",
        f"[{'1' * 39}]",
        f"[{'1' * 5000}]",
        f"[{'1' * 30}e5,{'2' * 33}.5,{'3' * 32}e-5]",
        f'"{LONG}',
        f'"{LONG}\x01"',
        f'["{LONG}\\"]',
        f'["{LONG}\\ud83d\\ude00","{LONG}\\x"]',
        f'{{"{LONG}": "{LONG}", "{LONG}": [true, null, -1.5e3]}}',
        "\ufeff{}",
        f'["{"b" * 30}", {"[" * 30}"{LONG}"{"]" * 30}]',
    ],
)
def test_hard_cases(text: str) -> None:
    """Ends, over-long numbers, keys that are none, control characters, half escapes."""
    raw = text.encode()
    assert repr(decode_large(raw)) == repr(decode(raw))


def test_what_is_nested_too_deeply_is_refused() -> None:
    """No depth breaks the interpreter's stack."""
    assert decode_large(b"[" * 100_000) is None
    assert decode_large(b'{"a":' * 100_000) is None


def test_no_call_into_c_reads_more_than_a_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """The lock of the interpreter is never held for long: neither for a long text nor for many values."""
    monkeypatch.setattr(values_of_json, "WINDOW", 1000)
    read: list[int] = []

    def noted(function: Any) -> Any:
        def call(text: str, *rest: Any) -> Any:
            read.append(len(text))
            return function(text, *rest)

        return call

    monkeypatch.setattr(values_of_json, "scan", noted(values_of_json.scan))
    monkeypatch.setattr(values_of_json, "scan_string", noted(values_of_json.scan_string))
    value = {"a": ["x\n" * 100_000, [{"b": 1}] * 10_000], "c": "y" * 300_000}
    assert decode_any(json.dumps(value).encode()) == value
    assert len(read) > 500
    assert max(read) <= 1001
