"""The number of JSON values in a body, counted in its bytes as they arrive, before anything is decoded."""

from __future__ import annotations

from itertools import islice

_SLICE_BYTES = 65_536
"""So much is counted in one go: about a millisecond at worst."""


class ElementCount:
    """Counts commas and opening brackets outside of strings: no JSON text has more values than their number and one.

    Counting every comma and bracket is quick, and enough while there are few of them. Beyond `most` of them the
    strings are taken out, which costs more: `settle` does it, a slice at a time.
    """

    __slots__ = ("_inside", "_kept", "_pending", "_quick", "exact", "most")

    def __init__(self, most: int) -> None:
        self.most = most
        self.exact = 1
        self._quick = 0
        """Commas and brackets of the pieces that wait for an exact count, in strings or not."""
        self._pending: list[bytes] = []
        self._inside = False
        self._kept = b""
        """A backslash at the end of a slice: what it escapes is in the next one."""

    def add(self, piece: bytes) -> bool:
        """Count another piece. True when `settle` has to say whether there are too many by now."""
        self._pending.append(piece)
        self._quick += _structural(piece)
        return self.exact + self._quick > self.most

    def settle(self) -> bool:
        """Count one more slice exactly. True when another call is needed to know whether there are too many."""
        if self.exact > self.most or not self._pending:
            return False
        piece = self._pending[0]
        piece, rest = piece[:_SLICE_BYTES], piece[_SLICE_BYTES:]
        self._pending[:1] = [rest] if rest else []
        self._quick -= _structural(piece)
        self.exact += self._outside(piece)
        return bool(self._pending) and self.exact <= self.most < self.exact + self._quick

    def _outside(self, piece: bytes) -> int:
        """Commas and brackets of a piece that are in no string; which piece that ends in is kept for the next."""
        piece = self._kept + piece
        if (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            piece, self._kept = piece[:-1], b"\\"
        else:
            self._kept = b""
        if b"\\" in piece:
            piece = piece.replace(b"\\\\", b"").replace(b'\\"', b"")
        parts = piece.split(b'"')
        found = _structural(b"".join(islice(parts, self._inside, None, 2)))
        self._inside ^= len(parts) % 2 == 0
        return found


def _structural(piece: bytes) -> int:
    return piece.count(b",") + piece.count(b"[") + piece.count(b"{")
