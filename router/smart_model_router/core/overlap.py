"""Finds the part of a continuation that repeats the text delivered before it, so that it is not delivered twice.

A target that is known to continue (`prefill`) is trusted: its continuation is taken for the rest of the text, unless
the continuation shows clearly that it is not. Four cases are distinguished:

1. It continues: it begins with the white space that the target was not shown, if any, and all after that is new. That
   holds for texts that repeat themselves (tables of zeros, rules, rows of JSON) too, wherever they were cut.
2. It repeats all the delivered text, and continues after that.
3. It repeats an end of the delivered text (a model begins its line or its sentence anew), and continues.
4. It begins as the delivered text does, and then differs, or ends: another answer.

The text alone cannot always tell the first case from the others: a true continuation with `0, 0, 0` equals earlier
text. So a passage counts as repetition only if it is *distinctive*: it stands in the delivered text once, and does not
consist of one part over and over. A repeated end has to fulfil two more conditions. It begins with a word (after white
space, or where a script has none between words), as repetitions do and continuations rarely do. And the character
before it differs from the last one that the target was shown: where both are the same, the text had begun to repeat
itself before it was cut, as in the second row of a table.

A target that is only asked in words to continue has to prove that it does, by the second or third case. Everything else
(a greeting, another answer) is dropped, and so is a true continuation of a text without a distinctive end.

Two errors remain possible. A text that has a distinctive passage twice in a row and was cut exactly between the two,
with no white space there, is taken for repetition. And a text that consists of one part over and over, or an end that
is not distinctive, is delivered twice if a target does repeat it: a repeated word is better than a lost one.
"""

from __future__ import annotations

from bisect import bisect_left

WHOLE_BYTES = 4
"""A continuation that begins with all the delivered text repeats it, when that is at least so long (UTF-8)."""
TAIL_BYTES = 16
"""So much of the delivered text's end, repeated, is repetition. Less may be chance: `hel` continues with `lo`."""
ANEW_BYTES = 32
"""A continuation that repeats so much of the delivered beginning, and then differs, is another answer."""


class Overlap:
    """Takes a continuation piece by piece and returns its new text. Pieces wait while they may be repetition.

    `delivered` is all the text the caller has, `prefill` the part of it that the continuing model was shown: the white
    space left off its end may be repeated, whatever its length. `trusted` False: the continuation has to repeat. Then
    `begun_anew` becomes true when it is another answer instead; no more text is returned after that. `trimmed` counts
    repeated characters; it is final, as all else, once `decided`.
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
        """The place of the continuation so far in the delivered text ..."""
        self._size = 0
        """... and its length: waiting text need not be kept, as it is delivered text."""
        self.decided = not delivered
        self.begun_anew = False
        self.trimmed = 0

    def feed(self, piece: str) -> str:
        """Take a piece; return the new text that is certain now."""
        if self.decided:
            return "" if self.begun_anew else piece
        for count, character in enumerate(piece, 1):
            new = self._take(character)
            if new is not None:
                return "" if self.begun_anew else new + piece[count:]
        return ""

    def end(self, *, call_follows: bool = False) -> str:
        """Take the end of the continuation; return the waiting text, if it is new.

        `call_follows`: a call may follow without any text before it. A call is whole by itself, so it proves nothing.
        """
        if self.decided:
            return ""
        if (not self._size and call_follows) or self._begins_as_delivered(TAIL_BYTES):
            self.decided, self.trimmed = True, self._size  # it ended before it came to anything new
            return ""
        return self._go_on(self._held())

    def _take(self, character: str) -> str | None:
        """Take a character; return the new part of the waiting text (None: it waits). The place only moves forward."""
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
        """The next place from which the continuation may repeat the delivered text to its end; -1: there is none."""
        until = len(said) + (0 if said[0].isspace() else self._last)
        at = self._delivered.find(said, self._at, until)
        while at >= 0 and not self._may_be_repeated_from(at):
            at = self._delivered.find(said, at + 1, until)
        if at < 0 and self._delivered.startswith(said, len(self._prefill)):
            return len(self._prefill)  # the white space that was not shown
        return at

    def _may_be_repeated_from(self, at: int) -> bool:
        """True when the delivered text from here on, repeated, is repetition; it stands there once (`_last`)."""
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
        """True when it began with a distinctive beginning of the delivered text, of at least `weight` bytes."""
        said = self._held()
        stands_later = said in self._delivered[1:]
        return _weight(said) >= weight and not stands_later and not _is_one_part_over_and_over(said)

    def _go_on(self, said: str) -> str:
        """Decide that it is a continuation: only the white space that was not shown is repeated."""
        self.decided = True
        if not self._trusted:
            self.begun_anew = True
            return ""
        self.trimmed = _common(self._delivered[len(self._prefill) :], said)
        return said[self.trimmed :]


def _last_start_of_a_tail(text: str) -> int:
    """The last place from which on the text has enough bytes to be recognised, and stands in it only once."""
    heavy = _start_of_tail(text, TAIL_BYTES)
    return bisect_left(range(heavy + 1), True, key=lambda at: text.find(text[at:]) < at) - 1


def _start_of_tail(text: str, weight: int) -> int:
    """The last place from which on the text has at least `weight` bytes; 0 when all of it has fewer."""
    for found in range(len(text) - 1, 0, -1):
        weight -= _weight(text[found])
        if weight <= 0:
            return found
    return 0


def _is_one_part_over_and_over(text: str) -> bool:
    """True when it is a shorter text twice or more: only then it is found within two of itself."""
    return text in (text + text)[1:-1]


def _common(one: str, other: str) -> int:
    """The number of characters that both begin with."""
    most = min(len(one), len(other))
    return next((at for at in range(most) if one[at] != other[at]), most)


def _weight(text: str) -> int:
    """Bytes of UTF-8: a character of Chinese says more than one of English."""
    return len(text.encode(errors="surrogatepass"))
