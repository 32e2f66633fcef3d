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
        ("abababababababababab", "ababababababababababc", "c"),
        ("lone \ud800 half of a pair", "lone \ud800 half of a pair, paired", ", paired"),
    ],
)
def test_only_what_is_new_is_given(delivered: str, continuation: str, expected: str) -> None:
    """Whole repetitions from 4 bytes on and tails from 16 on are left out, white space at the seam is said once."""
    assert new(delivered, continuation) == expected
    assert new(delivered, *continuation) == expected


ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGH"


@pytest.mark.parametrize(("repeated", "found"), [(15, False), (16, True)])
def test_sixteen_bytes_of_the_end_are_repetition(repeated: int, found: bool) -> None:
    """Fifteen are chance, and are given."""
    tail = ALPHABET[-repeated:]
    assert new(ALPHABET, tail + "!") == ("!" if found else tail + "!")


@pytest.mark.parametrize(("repeated", "anew"), [(31, False), (32, True)])
def test_thirty_two_bytes_of_the_beginning_are_another_answer(repeated: int, anew: bool) -> None:
    """After thirty-one it is still taken for a continuation."""
    overlap = Overlap(ALPHABET, ALPHABET)
    assert overlap.feed(ALPHABET[:repeated] + "!") == ("" if anew else ALPHABET[:repeated] + "!")
    assert overlap.begun_anew is anew


def test_the_longest_end_that_is_said_again_is_found() -> None:
    """Among all texts of two characters of four bytes each: whatever patterns repeat within them."""
    for delivered in map("".join, product("\U00010000\U00010001", repeat=6)):
        for continuation in map("".join, product("\U00010000\U00010001", repeat=7)):
            repeated = max(n for n in range(7) if delivered.endswith(continuation[:n]))
            overlap = Overlap(delivered, delivered)
            assert overlap.feed(continuation) == continuation[repeated if repeated >= 4 else 0 :]


def test_an_end_within_an_end_is_found() -> None:
    """What matched goes on otherwise, and a shorter end of it is what is said again."""
    heavy = str.maketrans("ab", "\U00010000\U00010001")
    assert new("aabaaaba".translate(heavy), "aabaaaaa".translate(heavy)) == "aaaa".translate(heavy)


def test_an_empty_continuation_repeats_nothing() -> None:
    """Not even of a single character that weighs enough to be repeated."""
    overlap = Overlap("\U00010000", "\U00010000")
    assert (overlap.end(), overlap.trimmed) == ("", 0)


def test_what_cannot_be_repetition_any_more_is_decided_at_once() -> None:
    """At the first character with which no end of sixteen bytes, and not the whole, could still be said again."""
    for delivered in map("".join, product("\U00010000\U00010001", repeat=6)):
        for continuation in map("".join, product("\U00010000\U00010001", repeat=7)):
            overlap = Overlap(delivered, delivered)
            said = next(n for n in range(1, 8) if overlap.feed(continuation[n - 1]) or overlap.decided)
            places = [at for at in range(3) if delivered[at:].startswith(continuation[: said - 1])]
            assert said == 1 or any(at + said - 1 < 6 for at in places)
            assert not any(delivered[at : at + said] == continuation[:said] and at + said < 6 for at in range(3))


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
    assert [Overlap(ALPHABET, ALPHABET).feed(ALPHABET[-far]) for far in (17, 16)] == ["", ""]
    assert Overlap(ALPHABET, ALPHABET).feed(ALPHABET[-15]) == ALPHABET[-15]
    assert [Overlap(ALPHABET[:17], ALPHABET[:17]).feed(character) for character in ALPHABET[1:3]] == ["", "2"]
    assert Overlap("ha", "ha").feed("h") == "h"


def test_where_nothing_was_delivered_there_is_nothing_to_decide() -> None:
    """All of the continuation is new."""
    overlap = Overlap("", "")
    assert (overlap.decided, overlap.trimmed, overlap.begun_anew) == (True, 0, False)


def test_a_proper_continuation_is_not_held_longer_than_it_is_ambiguous() -> None:
    """Its first words come at once when they cannot be a repetition."""
    overlap = Overlap(SAID, SAID)
    assert overlap.feed(", it") == ""  # it said that before
    assert overlap.feed(" is") == ", it is"
    assert overlap.decided
    assert overlap.feed(" over") == " over"


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
