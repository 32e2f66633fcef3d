"""Properties of joining a continuation to what was delivered."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.core.overlap import TAIL_BYTES, Overlap

TEXTS = st.text("ab \n", max_size=60) | st.text(max_size=40)


@st.composite
def cuts(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces."""
    at = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=6))})
    return [text[start:end] for start, end in pairwise(at)]


def new(delivered: str, pieces: list[str]) -> tuple[str, Overlap]:
    """What a continuation in these pieces brings."""
    overlap = Overlap(delivered, delivered.rstrip())
    return "".join(map(overlap.feed, pieces)) + overlap.end(), overlap


def numbered(count: int) -> str:
    """Words none of which occurs twice."""
    return "".join(f"word{number} " for number in range(count))


@given(st.data(), st.integers(1, 12), st.integers(0, 12), st.integers(0, 80))
def test_nothing_is_said_twice_and_nothing_lost(data: st.DataObject, told: int, more: int, back: int) -> None:
    """A continuation that goes on, repeats all, or repeats a tail gives the whole text exactly once."""
    whole = numbered(told + more)
    at = data.draw(st.integers(4, len(numbered(told))))
    delivered = whole[:at]
    shown = delivered.rstrip()
    start = data.draw(st.sampled_from([len(shown), 0, max(0, at - TAIL_BYTES - back)]))
    if at - start < TAIL_BYTES:
        start = len(shown)
    said, overlap = new(delivered, data.draw(cuts(whole[start:])))
    assert delivered + said == whole
    assert not overlap.begun_anew


@given(st.data(), TEXTS, TEXTS)
def test_the_pieces_do_not_matter(data: st.DataObject, delivered: str, continuation: str) -> None:
    """However a continuation is cut into pieces, what is new is the same."""
    whole, one = new(delivered, [continuation])
    cut, other = new(delivered, data.draw(cuts(continuation)))
    assert (cut, other.trimmed, other.begun_anew) == (whole, one.trimmed, one.begun_anew)


@given(TEXTS, TEXTS)
def test_what_is_new_is_the_end_of_what_was_said(delivered: str, continuation: str) -> None:
    """Nothing is invented, and nothing but a beginning that was delivered before is left out."""
    said, overlap = new(delivered, [continuation])
    if not overlap.begun_anew:
        left_out = continuation[: overlap.trimmed]
        assert left_out + said == continuation
        assert left_out in delivered
