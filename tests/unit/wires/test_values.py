"""JSON of others, whole or broken."""

from __future__ import annotations

import json

import pytest

from smart_model_router.wires.values import decode

WHOLE = ['{"a": [1, {"b": "ü"}], "c": null}', ' {"a": 1} ', '{"a": 1}\n', "[1]", '"x"', "0", "null"]


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_json_is_read_as_json_reads_it(text: str) -> None:
    """Objects take a shorter way than the rest; the value is the same."""
    assert decode(text.encode()) == json.loads(text)


@pytest.mark.parametrize("length", range(len(WHOLE[0].encode())))
def test_half_an_object_is_no_value(length: int) -> None:
    """Wherever the text breaks off, there is no value, and no error."""
    assert decode(WHOLE[0].encode()[:length]) is None


@pytest.mark.parametrize("broken", ['{"a": 1} x', '{"a": 1}{"b": 2}', '{"a": NaN}', "{" * 100_000, "\xff", '{"a": 1e}'])
def test_what_is_no_json_is_no_value(broken: str) -> None:
    """Trailing text, numbers nobody could write again, depth without end, text that is not UTF-8."""
    assert decode(broken.encode("latin-1")) is None
