"""What a continuation repeats is found, and chance is not taken for repetition."""

from __future__ import annotations

from itertools import product

import pytest

from smart_model_router.core.overlap import Overlap


def new(delivered: str, *pieces: str, prefill: str | None = None) -> str:
    """What a continuation in these pieces brings."""
    overlap = Overlap(delivered, delivered.rstrip() if prefill is None else prefill)
    return "".join(map(overlap.feed, pieces)) + overlap.end()


SAID = "It was the best of times, it was the worst of times"


@pytest.mark.parametrize(
    ("delivered", "continuation", "expected"),
    [
        (SAID, ", it was the age of wisdom", ", it was the age of wisdom"),
        (SAID, SAID + ", and more", ", and more"),
        (SAID, "it was the worst of times, and more", ", and more"),
        (SAID, SAID, ""),
        ("hel", "lo", "lo"),
        ("ha", "ha!", "ha!"),
        ("four", "four more", " more"),
        ("你好", "你好世界", "世界"),
        ("one ", " two", "two"),
        ("one ", "two", "two"),
        ("one\n\n", "\ntwo", "two"),
        ("one\n\n", "\n\ntwo", "two"),
        ("", "all of it", "all of it"),
        ("   ", "text", "text"),
        (SAID, "", ""),
        (SAID, "it was the", "it was the"),
        (SAID, "It was the best of times", ""),
        (SAID, "It was the best ", ""),
        (SAID, "It was the best", "It was the best"),
        (SAID, "was the best of times", "was the best of times"),
        (SAID, "times", "times"),
        ("abababababababababab", "ababababababababababc", "ababababababababababc"),
        ("lone \ud800 half of a pair", "lone \ud800 half of a pair, paired", ", paired"),
    ],
)
def test_only_what_is_new_is_given(delivered: str, continuation: str, expected: str) -> None:
    """Whole repetitions from 4 bytes on and tails from 16 on are left out, white space at the seam is said once."""
    assert new(delivered, continuation) == expected
    assert new(delivered, *continuation) == expected


REPEATING = {
    "a table of zeros": "matrix = [\n" + "    [0, 0, 0, 0],\n" * 8 + "]\n",
    "a table": "| a | b | c | d |\n| --- | --- | --- | --- |\n" + "| 1 | 2 | 3 | 4 |\n" * 4,
    "rules": "=" * 60 + "\nTITLE\n" + "=" * 60 + "\ntext",
    "zeros": "0, " * 40 + "1",
    "JSON": "[" + '{"a": null, "b": null}, ' * 5 + "{}]",
    "JSON without spaces": '{"rows":[' + '{"a":null,"b":null},' * 5 + "{}]}",
    "laughter": "ha" * 40,
    "a song": "Row, row, row your boat,\nGently down the stream.\nMerrily, merrily,\nLife is but a dream.\n" * 3,
    "equal cells": "| Optimal (by wavefront) | Optimal (by need of route) | Optimal (by need of route) | high |\n",
}


@pytest.mark.parametrize("text", REPEATING.values(), ids=REPEATING.keys())
def test_who_goes_on_with_a_text_that_repeats_itself_loses_nothing(text: str) -> None:
    """Wherever it was cut: what the rest has in common with what was delivered is the text's own way."""
    for cut in range(1, len(text)):
        delivered = text[:cut]
        rest = text[len(delivered.rstrip()) :]
        assert delivered + new(delivered, *rest) == text


LINES = "first line of it\nsecond line of it\nthird line"


@pytest.mark.parametrize(
    ("delivered", "continuation", "expected"),
    [
        # An end: it stands there once, begins with a word, and is not made of one part.
        (LINES, "second line of it\nthird line, and so on", ", and so on"),
        (LINES + "\n", "second line of it\nthird line\nfourth", "fourth"),
        (LINES, "\nsecond line of it\nthird line, again", "\nsecond line of it\nthird line, again"),
        (LINES, "econd line of it\nthird line, again", "econd line of it\nthird line, again"),
        ("first line of it\n\nsecond line of it", "\nsecond line of it, again", "\nsecond line of it, again"),
        ("\n second line of it", " second line of it, again", " second line of it, again"),
        ("xa refrain of words here, a verse, a refrain of words", "a refrain of words!", "a refrain of words!"),
        (" 0123456789abcdef", "0123456789abcdef!", "!"),
        (" four", "four more", "four more"),
        ("\n four words\n", "\n four words\nmore", "more"),
        ("proof of times, of days and of nights", "of times, of days and of nights!", "!"),
        ("a refrain of words, a verse, a refrain of words", "a refrain of words!", "a refrain of words!"),
        ("title\n" + "=" * 20, "=" * 30, "=" * 30),
        ("title\n" + "=" * 20 + "|", "=" * 20 + "|" + "text", "text"),
        ("他说。今天天气很好。我们去公园", "今天天气很好。我们去公园吧", "吧"),
        ("他说。今天天气很好。", "今天天气很好。今天天气很好。", "今天天气很好。今天天气很好。"),
        # Where white space was not shown, what stands before that counts.
        ("Rows.\n- one row of it,\n- one row of it,\n", "- one row of it,\nend", "- one row of it,\nend"),
        ("Rows,\n- one row of it,\n", "- one row of it,\nend", "- one row of it,\nend"),
        ("Rows:\n\n- one row of it,\n", "- one row of it,\nend", "end"),
        ("Rows,\n- one row of it,", "- one row of it, or two", " or two"),
        ("\n\n- one row of it,\n", "- one row of it,\nend", "end"),
        (",\n- one row of it,\n", "- one row of it,\nend", "- one row of it,\nend"),
        # All of it, if that is not one part over and over.
        ("ababababab", "abababababab", "abababababab"),
        ("abababababa", "abababababa, and so on", ", and so on"),
        ("哈哈", "哈哈哈", "哈哈哈"),
        (" said with a space", " said with a space before", " before"),
    ],
)
def test_only_a_distinctive_passage_is_repetition(delivered: str, continuation: str, expected: str) -> None:
    """What the text itself says more than once, or what begins within a word, may as well be how it goes on."""
    assert new(delivered, continuation) == expected
    assert new(delivered, *continuation) == expected


ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH"


@pytest.mark.parametrize(("repeated", "found"), [(15, False), (16, True)])
def test_sixteen_bytes_of_the_end_are_repetition(repeated: int, found: bool) -> None:
    """Fifteen are chance, and are given."""
    tail = ALPHABET[-repeated:]
    assert new(f"begun {tail}", tail + "!") == ("!" if found else tail + "!")


@pytest.mark.parametrize(("repeated", "anew"), [(31, False), (32, True)])
def test_thirty_two_bytes_of_the_beginning_are_another_answer(repeated: int, anew: bool) -> None:
    """After thirty-one it is still taken for a continuation."""
    overlap = Overlap(ALPHABET, ALPHABET)
    assert overlap.feed(ALPHABET[:repeated] + "!") == ("" if anew else ALPHABET[:repeated] + "!")
    assert overlap.begun_anew is anew


def over_and_over(text: str) -> bool:
    """Whether it is one part, twice or more."""
    return any(text == text[:size] * (len(text) // size) for size in range(1, len(text)))


def places(delivered: str) -> list[int]:
    """From where on six characters, four bytes each and of no script with spaces, can be known again."""
    tails = [at for at in (1, 2) if delivered.find(delivered[at:]) == at and delivered[at - 1] != delivered[-1]]
    return [at for at in (0, *tails) if not over_and_over(delivered[at:])]


HEAVY = "\U00010000\U00010001"


def test_the_longest_end_that_is_said_again_is_found() -> None:
    """Among all texts of two characters of four bytes each: whatever patterns repeat within them."""
    for delivered in map("".join, product(HEAVY, repeat=6)):
        for continuation in map("".join, product(HEAVY, repeat=7)):
            repeated = next((6 - at for at in places(delivered) if continuation.startswith(delivered[at:])), 0)
            overlap = Overlap(delivered, delivered)
            assert overlap.feed(continuation) == continuation[repeated:]
            assert overlap.trimmed == repeated


def test_an_end_is_found_after_what_only_began_like_it() -> None:
    """Word by word the same, until one differs: the place moves on, and no further than it has to."""
    delivered = "of the best of times, of the best of days, of the best of nights"
    assert new(delivered, "of the best of nights, then") == ", then"
    assert new(delivered, "of the best of knights") == "of the best of knights"


def test_an_empty_continuation_repeats_nothing() -> None:
    """Not even of a single character that weighs enough to be repeated."""
    overlap = Overlap("\U00010000", "\U00010000")
    assert (overlap.end(), overlap.trimmed) == ("", 0)


def test_what_cannot_be_repetition_any_more_is_decided_at_once() -> None:
    """At the first character with which no distinctive end of sixteen bytes, nor the whole, could still be said."""
    for delivered in map("".join, product(HEAVY, repeat=6)):
        for continuation in map("".join, product(HEAVY, repeat=7)):
            overlap = Overlap(delivered, delivered)
            said = next(n for n in range(1, 8) if overlap.feed(continuation[n - 1]) or overlap.decided)
            waits = [
                any(at + n < 6 and delivered[at:].startswith(continuation[:n]) for at in places(delivered))
                for n in range(1, said + 1)
            ]
            assert waits == [True] * (said - 1) + [False]


def test_white_space_at_the_seam_is_held_until_something_else_comes() -> None:
    """Or until all of it has been said again: then nothing more can be repetition."""
    assert Overlap("one   ", "one").feed("t") == "t"
    overlap = Overlap("one   ", "one")
    overlap.feed("  ")
    assert overlap.decided is False
    overlap.feed(" ")
    assert overlap.decided is True


def test_what_may_begin_a_tail_is_held_and_nothing_after_that() -> None:
    """Sixteen bytes from the end a repetition may begin, fifteen from it none; short texts are repeated as a whole."""
    delivered = "a b " + ALPHABET[:15]
    assert Overlap(delivered, delivered).feed("a") == ""
    assert Overlap("_" + delivered[1:], "_" + delivered[1:]).feed("b") == ""
    assert Overlap("_" + delivered[1:], "_" + delivered[1:]).feed("0") == "0"
    assert Overlap(f"a {ALPHABET[:16]}", f"a {ALPHABET[:16]}").feed("0") == ""
    assert Overlap("ha", "ha").feed("h") == "h"


def test_where_nothing_was_delivered_there_is_nothing_to_decide() -> None:
    """All of the continuation is new."""
    overlap = Overlap("", "")
    assert (overlap.decided, overlap.trimmed, overlap.begun_anew) == (True, 0, False)


def test_a_proper_continuation_is_not_held_longer_than_it_is_ambiguous() -> None:
    """Its first words come at once when they cannot be a repetition."""
    assert Overlap(SAID, SAID).feed(",") == ","
    overlap = Overlap(SAID, SAID)
    assert overlap.feed("it was") == ""  # it said that before
    assert overlap.feed(" a") == "it was a"
    assert overlap.decided
    assert overlap.feed(" surprise") == " surprise"


def test_a_text_that_repeats_itself_is_not_held() -> None:
    """Row after row goes out as it comes: it could never be told from repetition, and is none."""
    rows = "x = [\n" + "    [0, 0, 0, 0],\n" * 100
    overlap = Overlap(rows + "    [0, 0,", rows + "    [0, 0,")
    assert overlap.feed(" 0") == " 0"
    overlap = Overlap("=" * 1000, "=" * 1000)
    assert overlap.feed("=") == "="
    overlap = Overlap("title\n" + "=" * 1000, "title\n" + "=" * 1000)
    assert overlap.feed("=") == "="


def test_repetition_is_counted() -> None:
    """`trimmed` is how many characters were not given again."""
    overlap = Overlap(SAID, SAID)
    overlap.feed(SAID + "!")
    assert overlap.trimmed == len(SAID)


def test_another_answer_is_no_continuation() -> None:
    """It begins like the delivered text, for 32 bytes, and then differs: nothing of it is given."""
    overlap = Overlap(SAID, SAID)
    assert overlap.feed("It was the best of times, it was a fine day") == ""
    assert overlap.begun_anew
    assert overlap.feed(" indeed") == ""
    assert overlap.end() == ""


def test_a_repetition_that_ends_early_brings_nothing() -> None:
    """A continuation that says no more than the beginning again is complete and adds nothing."""
    overlap = Overlap(SAID, SAID)
    assert overlap.feed(SAID[:30]) == ""
    assert overlap.end() == ""
    assert (overlap.decided, overlap.trimmed, overlap.begun_anew) == (True, 30, False)


@pytest.mark.parametrize(
    ("delivered", "begins"),
    [
        (f"{ALPHABET[:32]},{ALPHABET[:32]}", ALPHABET[:32]),
        ("=" * 40 + "TITLE", "=" * 40),
    ],
    ids=["said twice", "one part"],
)
def test_a_beginning_that_is_not_distinctive_is_no_other_answer(delivered: str, begins: str) -> None:
    """The text goes on with what it began with: all is given, whether more follows or not."""
    assert new(delivered, begins + "!") == begins + "!"
    assert new(delivered, begins) == begins


def test_what_moved_on_from_the_beginning_has_not_begun_anew() -> None:
    """It began as the text does, but went on as a later place of it does: another row, with the next number."""
    rows = "".join(f"a row of the table with number {number}, which is long; " for number in (1, 2, 3))
    continuation = "a row of the table with number 4"
    overlap = Overlap(rows + "and", rows + "and")
    assert overlap.feed(continuation) == continuation
    assert not overlap.begun_anew


def proven(delivered: str, *pieces: str, call_follows: bool = False) -> str | None:
    """What a target brings that is only asked in words to continue; None where it proves nothing."""
    overlap = Overlap(delivered, delivered.rstrip(), trusted=False)
    new = "".join(map(overlap.feed, pieces)) + overlap.end(call_follows=call_follows)
    assert overlap.decided
    assert not (overlap.begun_anew and new)
    return None if overlap.begun_anew else new


@pytest.mark.parametrize(
    ("continuation", "expected"),
    [
        (SAID + ", and more", ", and more"),
        ("it was the worst of times, and more", ", and more"),
        (SAID, ""),
        ("It was the best of times", ""),
        (", it was the age of wisdom", None),
        ("Sure! it was the worst of times", None),
        ("times, and more", None),
        ("It was the best", None),
        ("", None),
    ],
)
def test_words_alone_are_no_reason_to_believe(continuation: str, expected: str | None) -> None:
    """Who is only asked has to repeat all of the text, or 16 bytes or more of its end from a word on."""
    assert proven(SAID, continuation) == expected
    assert proven(SAID, *continuation) == expected


def test_a_call_needs_no_words_before_it() -> None:
    """Nothing said is no proof of text; a call is whole without any. What is said before it is judged all the same."""
    assert proven(SAID, call_follows=True) == ""
    assert proven(SAID, "Sure!", call_follows=True) is None
    said_nothing = Overlap(SAID, SAID, trusted=False)
    assert (said_nothing.end(), said_nothing.begun_anew) == ("", True)
    assert proven("0, " * 20, "0, " * 20) is None
