"""Properties of joining a continuation to what was delivered."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import assume, given
from hypothesis import strategies as st

from smart_model_router.core.overlap import TAIL_BYTES, WHOLE_BYTES, Overlap

FEW = st.text("ab= \n", max_size=20)
REPEATING = st.tuples(FEW, st.builds(str.__mul__, FEW.filter(bool), st.integers(2, 12)), FEW).map("".join)
TEXTS = st.text("ab \n", max_size=60) | st.text(max_size=40) | REPEATING


@st.composite
def cuts(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces."""
    at = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=6))})
    return [text[start:end] for start, end in pairwise(at)]


def new(delivered: str, pieces: list[str]) -> tuple[str, Overlap]:
    """What a continuation in these pieces brings."""
    overlap = Overlap(delivered, delivered.rstrip())
    return "".join(map(overlap.feed, pieces)) + overlap.end(), overlap


def weight(text: str) -> int:
    """Bytes of UTF-8."""
    return len(text.encode(errors="surrogatepass"))


def distinctive(passage: str, delivered: str) -> bool:
    """It stands there once, and is not one part over and over."""
    parts = (passage[:size] * (len(passage) // size) for size in range(1, len(passage)))
    return delivered.find(passage, delivered.find(passage) + 1) < 0 and passage not in parts


def places(delivered: str) -> list[int]:
    """From where on the delivered text, said again, is repetition wherever it stands: all of it, or from a word on."""
    shown = delivered.rstrip()
    found = [0] if weight(delivered) >= WHOLE_BYTES else []
    for at in range(1, len(shown)):
        before = delivered[:at] if shown == delivered else delivered[:at].rstrip() or delivered[0]
        begins_a_word = delivered[at - 1].isspace() or not delivered[at - 1].isascii()
        if begins_a_word and not delivered[at].isspace() and before[-1] != shown[-1]:
            found.append(at)
    heavy = [at for at in found if at == 0 or weight(delivered[at:]) >= TAIL_BYTES]
    return [at for at in heavy if distinctive(delivered[at:], delivered)]


def in_doubt(delivered: str, rest: str) -> bool:
    """Whether the text says a distinctive passage twice, and was cut between the two; or begins again after the cut."""
    if any(rest.startswith(delivered[at:]) for at in places(delivered)):
        return True
    begun = next((size for size in range(len(rest), -1, -1) if delivered.startswith(rest[:size])), 0)
    return weight(rest[:begun]) >= TAIL_BYTES and distinctive(rest[:begun], delivered)


@given(st.data(), TEXTS.filter(bool))
def test_what_goes_on_is_delivered_whole(data: st.DataObject, text: str) -> None:
    """Whatever the text, wherever it is cut, and however the rest is cut: nothing of it is lost, nothing refused."""
    delivered = text[: data.draw(st.integers(1, len(text)))]
    rest = text[len(delivered.rstrip()) :]
    assume(not in_doubt(delivered, rest))
    said, overlap = new(delivered, data.draw(cuts(rest)))
    assert delivered + said == text
    assert not overlap.begun_anew


@given(st.data(), TEXTS, TEXTS)
def test_a_distinctive_passage_said_again_is_delivered_once(data: st.DataObject, delivered: str, more: str) -> None:
    """All of the text, or an end of it that begins with a word."""
    known = places(delivered)
    assume(known)
    at = data.draw(st.sampled_from(known))
    said, overlap = new(delivered, data.draw(cuts(delivered[at:] + more)))
    assert said == more
    assert overlap.trimmed == len(delivered) - at


def numbered(count: int) -> str:
    """Words none of which occurs twice, or ends as another does."""
    return "".join(f"word{number}{chr(ord('A') + number)} " for number in range(count))


@given(st.data(), st.integers(1, 12), st.integers(0, 12), st.integers(0, 12))
def test_nothing_is_said_twice_and_nothing_lost(data: st.DataObject, told: int, more: int, back: int) -> None:
    """A continuation that goes on, repeats all, or repeats a tail gives the whole text exactly once."""
    whole = numbered(told + more)
    at = data.draw(st.integers(4, len(numbered(told))))
    delivered = whole[:at]
    shown = delivered.rstrip()
    start = data.draw(st.sampled_from([len(shown), 0, len(numbered(max(0, told - back)))]))
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
