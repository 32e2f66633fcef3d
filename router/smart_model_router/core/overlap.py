"""What a continuation repeats of the text that was delivered before it: found, and not delivered twice.

A target that is known to go on (`prefill`) is trusted: a continuation is taken for what it should be, the rest of
the text, unless it shows clearly that it is not. Four things are told apart:

- It goes on: it begins with the white space that the target was not shown, if any, and all after that is new. That
  holds for texts that repeat themselves (tables of zeros, rules, rows of JSON) too, wherever they were cut.
- It says all the delivered text again, and goes on after that.
- It says an end of the delivered text again (a model begins its line or its sentence anew), and goes on.
- It begins as the delivered text does, and then says something else, or ends: another answer.

The text alone cannot always tell the first from the others: whoever goes on with `0, 0, 0` says what was said. So a
passage counts as said again only if it is *distinctive*: it stands in the delivered text once, and is not made of one
part over and over. Of an end we want two things more. It begins with a word, as whoever begins anew does (after white
space, or where a script has none between words) and whoever goes on rarely does. And what stands before it differs
from what the target was shown last: where both are the same, the text had begun to repeat itself before it was cut, as
in the second row of a table.

A target that is only asked in words to go on has to prove that it does: by the second or third of these. All else it
says (a greeting, another answer) is dropped, and so is a true continuation of a text without a distinctive end.

Two doubts remain. A text that says a distinctive passage twice in a row and was cut exactly between the two, with no
white space there, is taken for repetition. And a text that is one part over and over, or an end that is not
distinctive, is delivered twice if a target does repeat it: a word too much is better than one that is lost.
"""

from __future__ import annotations

from bisect import bisect_left

WHOLE_BYTES = 4
"""A continuation that begins with all the delivered text repeats it, when that is at least so long (UTF-8)."""
TAIL_BYTES = 16
"""So much of the delivered text's end, said again, is repetition. Less is chance: `hel` goes on with `lo`."""
ANEW_BYTES = 32
"""A continuation that says so much of the delivered beginning, and then something else, is another answer."""


class Overlap:
    """Fed with a continuation piece by piece, it gives what is new. Pieces wait while they may be repetition.

    `delivered` is all the text the caller has, `prefill` the part of it that the continuing model was shown: what
    was left off its end (white space) may be said again, whatever its length. `trusted` False: it has to repeat. Then
    too, `begun_anew` becomes true when the continuation is none but another answer; nothing more is given then.
    `trimmed` counts repeated characters; it is known, as all else, once `decided`.
    """

    __slots__ = (
        "_at",
        "_delivered",
        "_last",
        "_prefill",
        "_size",
        "_trusted",
        "_whole",
        "begun_anew",
        "decided",
        "trimmed",
    )

    def __init__(self, delivered: str, prefill: str, *, trusted: bool = True) -> None:
        self._delivered = delivered
        self._prefill = prefill
        self._trusted = trusted
        self._whole = _weight(delivered) >= WHOLE_BYTES and not _is_one_part_over_and_over(delivered)
        self._last = _last_start_of_a_tail(delivered)
        self._at = 0
        """Where what the continuation said so far stands in the delivered text ..."""
        self._size = 0
        """... and how long that is: what waits need not be kept, as it is delivered text."""
        self.decided = not delivered
        self.begun_anew = False
        self.trimmed = 0

    def feed(self, piece: str) -> str:
        """What of the text so far is new and not yet given."""
        if self.decided:
            return "" if self.begun_anew else piece
        for count, character in enumerate(piece, 1):
            new = self._take(character)
            if new is not None:
                return "" if self.begun_anew else new + piece[count:]
        return ""

    def end(self, *, call_follows: bool = False) -> str:
        """The text of the continuation is complete: what was still waiting, and is new.

        `call_follows`: a call may follow without any text before it. A call is whole by itself, so it proves nothing.
        """
        if self.decided:
            return ""
        if (not self._size and call_follows) or self._begins_as_delivered(TAIL_BYTES):
            self.decided, self.trimmed = True, self._size  # it ended before it came to anything new
            return ""
        return self._go_on(self._held())

    def _take(self, character: str) -> str | None:
        """One more character: what is new of all that waited; None: it waits on. The place only ever moves forward."""
        if not self._size or self._delivered[self._at + self._size] != character:
            said = self._held() + character
            at = self._next_place(said)
            if at < 0:
                self.begun_anew = self._begins_as_delivered(ANEW_BYTES)
                return self._go_on(said)
            self._at = at
        self._size += 1
        if self._at + self._size == len(self._delivered):
            self.decided, self.trimmed = True, self._size
            return ""
        return None

    def _held(self) -> str:
        return self._delivered[self._at : self._at + self._size]

    def _next_place(self, said: str) -> int:
        """The next place from which on the delivered text may be being said again to its end; -1: there is none."""
        until = len(said) + (0 if said[0].isspace() else self._last)
        at = self._delivered.find(said, self._at, until)
        while at >= 0 and not self._may_be_repeated_from(at):
            at = self._delivered.find(said, at + 1, until)
        if at < 0 and self._delivered.startswith(said, len(self._prefill)):
            return len(self._prefill)  # the white space that was not shown
        return at

    def _may_be_repeated_from(self, at: int) -> bool:
        """Whether the delivered text from here on, said again, is repetition; it stands there once (`_last`)."""
        if at == 0:
            return self._whole
        before = at - 1
        if self._delivered[before].isascii() and not self._delivered[before].isspace():
            return False  # in the middle of a word
        if self._prefill != self._delivered:  # a target may leave out the white space that it was not shown
            while before and self._delivered[before].isspace():
                before -= 1
        if self._delivered[before] == self._prefill[-1:]:
            return False  # the text had begun to repeat itself
        return not _is_one_part_over_and_over(self._delivered[at:])

    def _begins_as_delivered(self, weight: int) -> bool:
        """Whether it began with a distinctive beginning of the delivered text, of at least so many bytes."""
        said = self._held()
        stands_later = said in self._delivered[1:]
        return _weight(said) >= weight and not stands_later and not _is_one_part_over_and_over(said)

    def _go_on(self, said: str) -> str:
        """It is a continuation: only the white space that was not shown is said again."""
        self.decided = True
        if not self._trusted:
            self.begun_anew = True
            return ""
        self.trimmed = _common(self._delivered[len(self._prefill) :], said)
        return said[self.trimmed :]


def _last_start_of_a_tail(text: str) -> int:
    """The last place from which on the text weighs enough to be known again, and stands in it only once."""
    heavy = _start_of_tail(text, TAIL_BYTES)
    return bisect_left(range(heavy + 1), True, key=lambda at: text.find(text[at:]) < at) - 1


def _start_of_tail(text: str, weight: int) -> int:
    """The last place from which on the text weighs at least so many bytes; 0 when all of it weighs less."""
    for found in range(len(text) - 1, 0, -1):
        weight -= _weight(text[found])
        if weight <= 0:
            return found
    return 0


def _is_one_part_over_and_over(text: str) -> bool:
    """Whether it is a shorter text twice or more: only then it is found within two of itself."""
    return text in (text + text)[1:-1]


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    most = min(len(one), len(other))
    return next((at for at in range(most) if one[at] != other[at]), most)


def _weight(text: str) -> int:
    """Bytes of UTF-8: a character of Chinese says more than one of English."""
    return len(text.encode(errors="surrogatepass"))
