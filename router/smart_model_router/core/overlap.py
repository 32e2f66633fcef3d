"""What a continuation repeats of the text that was delivered before it: found, and not delivered twice."""

from __future__ import annotations

WHOLE_BYTES = 4
"""A continuation that begins with all the delivered text repeats it, when that is at least so long (UTF-8)."""
TAIL_BYTES = 16
"""So much of the delivered text's end, said again, is repetition. Less is chance: `hel` goes on with `lo`."""
ANEW_BYTES = 32
"""A continuation that says so much of the delivered beginning, and then something else, is another answer."""


class Overlap:
    """Fed with a continuation piece by piece, it gives what is new. Pieces wait while they may be repetition.

    `delivered` is all the text the caller has, `prefill` the part of it that the continuing model was shown: what
    was left off its end (white space) may be said again, whatever its length. `begun_anew` becomes true when the
    continuation is none but another answer; nothing more is given then. `trimmed` counts repeated characters; it is
    known, as all else, once `decided`.
    """

    __slots__ = ("_at", "_delivered", "_held", "_last_tail", "_rest", "begun_anew", "decided", "trimmed")

    def __init__(self, delivered: str, prefill: str) -> None:
        self._delivered = delivered
        self._rest = delivered[len(prefill) :]
        self._held = ""
        self._at = 0
        self._last_tail = _start_of_tail(delivered, TAIL_BYTES)
        self.decided = not delivered
        self.begun_anew = False
        self.trimmed = 0

    def feed(self, piece: str) -> str:
        """What of the text so far is new and not yet given."""
        if self.decided:
            return "" if self.begun_anew else piece
        self._held += piece
        return "" if not self._held or self._may_be_repetition() else self._decide()

    def end(self) -> str:
        """The continuation is complete: what was still waiting, and is new."""
        if self.decided:
            return ""
        if self._delivered.startswith(self._held) and _weight(self._held) >= TAIL_BYTES:
            self.decided, self.trimmed = True, len(self._held)  # all of it was said before
            return ""
        return self._decide()

    def _may_be_repetition(self) -> bool:
        """Whether what is held says a part of the delivered text again that does not yet reach its end."""
        held, delivered = self._held, self._delivered
        if len(held) < len(self._rest) and self._rest.startswith(held):
            return True
        if len(held) < len(delivered) and delivered.startswith(held) and _weight(delivered) >= WHOLE_BYTES:
            return True
        # What began to match at some place can only go on there or at a later one: the search never goes back.
        self._at = delivered.find(held, self._at, self._last_tail + len(held))
        return 0 <= self._at < len(delivered) - len(held)

    def _decide(self) -> str:
        self.decided = True
        held, delivered = self._held, self._delivered
        repeated = _overlap(delivered, held)
        whole = repeated == len(delivered) and _weight(delivered) >= WHOLE_BYTES
        if not whole and _weight(held[:repeated]) < TAIL_BYTES:
            repeated = _common(self._rest, held)
            self.begun_anew = _weight(held[: _common(delivered, held)]) >= ANEW_BYTES
        self.trimmed = repeated
        return "" if self.begun_anew else held[repeated:]


def _start_of_tail(text: str, weight: int) -> int:
    """The last place from which on the text weighs at least so many bytes; -1 when all of it weighs less."""
    for found in range(len(text) - 1, -1, -1):
        weight -= _weight(text[found])
        if weight <= 0:
            return found
    return -1


def _overlap(before: str, after: str) -> int:
    """The length of the longest end of `before` that `after` begins with (Knuth, Morris, Pratt)."""
    size = min(len(before), len(after))
    borders = [0] * size
    length = 0
    for at in range(1, size):
        while length and after[at] != after[length]:
            length = borders[length - 1]
        length += after[at] == after[length]
        borders[at] = length
    length = 0
    for character in before[len(before) - size :]:
        while length and (length == size or character != after[length]):
            length = borders[length - 1]
        length += character == after[length]
    return length


def _common(one: str, other: str) -> int:
    """How many characters both begin with."""
    most = min(len(one), len(other))
    return next((at for at in range(most) if one[at] != other[at]), most)


def _weight(text: str) -> int:
    """Bytes of UTF-8: a character of Chinese says more than one of English."""
    return len(text.encode(errors="surrogatepass"))
