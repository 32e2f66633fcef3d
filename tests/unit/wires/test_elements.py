"""The number of JSON values in a body, counted before anything is decoded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.wires.values import ElementCount

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(['"', "\\", '\\"', ",,,", "[{", "\\\\"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=30,
)


def settled(pieces: list[bytes], most: int) -> ElementCount:
    """A count of pieces, as far as it had to be exact."""
    count = ElementCount(most)
    for piece in pieces:
        unsure = count.add(piece)
        while unsure:
            unsure = count.settle()
    return count


def values_in(value: object) -> int:
    """Every value, the outermost too."""
    inside: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return 1 + sum(map(values_in, inside))


def empty_in(value: object) -> int:
    """Empty containers: their bracket counts beside them."""
    inside: list[Any] = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return (isinstance(value, (dict, list)) and not value) + sum(map(empty_in, inside))


@given(value=values, cuts=st.lists(st.integers(0, 200), max_size=5), escaped=st.booleans())
def test_however_a_body_is_cut_its_values_are_counted_and_no_text_is(
    value: object, cuts: list[int], *, escaped: bool
) -> None:
    """Commas and brackets in texts are none, and quotes and backslashes in texts end none."""
    raw = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "surrogatepass")
    at = sorted(min(cut, len(raw)) for cut in cuts)
    pieces = [raw[start:stop] for start, stop in zip([0, *at], [*at, len(raw)], strict=True)]
    count = ElementCount(10**9)
    for piece in pieces:
        count.add(piece)
        while count.settle():
            pass
    assert settled(pieces, 0).exact >= 1
    assert count.exact == values_in(value) + empty_in(value)


def test_a_long_text_full_of_commas_is_one_element() -> None:
    """An honest body is not refused for what is written in it."""
    text = json.dumps({"a": 'x, [y] {z} "q" \\ ' * 200_000}).encode()
    pieces = [text[at : at + 65_536] for at in range(0, len(text), 65_536)]
    assert settled(pieces, 1000).exact <= 1000


@pytest.mark.parametrize("unit", [b"[],", b'{"a":1},', b"[", b"0,", b'"",', b'"\\"",'])
def test_too_many_are_known_as_soon_as_they_are_there(unit: bytes) -> None:
    """The rest of a body need not come."""
    count = ElementCount(1000)
    seen = 0
    while count.exact <= 1000:
        assert seen < 2
        unsure = count.add(b"[" + unit * 1000)
        while unsure:
            unsure = count.settle()
        seen += 1
    assert seen == 1


def test_no_step_counts_more_than_a_slice() -> None:
    """However long a piece is, a step is short: the loop turns between two."""
    text = b'["' + b"a,b" * 1_000_000 + b'"]'
    count = ElementCount(1000)
    assert count.add(text)
    steps = 1
    while count.settle():
        steps += 1
    assert steps > len(text) // 65_536 - 1
    assert count.exact <= 1000
