"""Compressed answers, unpacked piece by piece and never further than a limit. Pure."""

from __future__ import annotations

import zlib
from collections.abc import Callable

ACCEPTED = "gzip, deflate"
"""The encodings that are asked for: those of the standard library, whose unpacking can be bounded."""
_GZIP = zlib.MAX_WBITS | 16
_PIECE = 1 << 16


class TooMuch(ValueError):
    """The content unpacks to more than its limit."""


class NotPacked(ValueError):
    """The content is not packed as its header says."""


class Unpacker:
    """The unpacking of one answer, of `most` bytes. Raises NotPacked for an encoding that was not asked for."""

    def __init__(self, encoding: str, most: int) -> None:
        self._feed = _FEEDS.get(encoding.strip().lower())
        if self._feed is None:
            raise NotPacked(f"encoding {encoding[:40]!r} was not asked for")
        self._most = most
        self._size = 0
        self._inflating: zlib._Decompress | None = None
        self._rest = b""

    def feed(self, raw: bytes) -> bytes:
        """Return what the next bytes unpack to. Raises TooMuch before more is unpacked, NotPacked."""
        assert self._feed is not None  # noqa: S101 - the constructor refuses others
        return self._feed(self, raw)

    def finish(self) -> None:
        """Raise NotPacked for what ended before its own end."""
        if self._rest or (self._inflating is not None and not self._inflating.eof):
            raise NotPacked("it ends before its end")

    def _plain(self, raw: bytes) -> bytes:
        self._count(len(raw))
        return raw

    def _gzip(self, raw: bytes) -> bytes:
        self._inflating = self._inflating or zlib.decompressobj(_GZIP)
        return self._inflated(raw)

    def _deflate(self, raw: bytes) -> bytes:
        """Unpack zlib's form, or the bare one, which some servers send: its first two bytes are no header of zlib."""
        if self._inflating is None:
            self._rest += raw
            if len(self._rest) < 2:
                return b""
            raw, self._rest = self._rest, b""
            is_zlib = raw[0] & 0x0F == zlib.DEFLATED and (raw[0] << 8 | raw[1]) % 31 == 0
            self._inflating = zlib.decompressobj(zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS)
        return self._inflated(raw)

    def _inflated(self, raw: bytes) -> bytes:
        inflating = self._inflating
        assert inflating is not None  # noqa: S101 - both callers make one
        found = bytearray()
        try:
            has_more = True
            while has_more and not inflating.eof:
                piece = inflating.decompress(raw, _PIECE)
                self._count(len(piece))
                found += piece
                raw = inflating.unconsumed_tail
                has_more = bool(raw) or len(piece) == _PIECE
        except zlib.error:
            raise NotPacked("it is not packed as its header says") from None
        return bytes(found)

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > self._most:
            raise TooMuch(f"more than {self._most} bytes")


_FEEDS: dict[str, Callable[[Unpacker, bytes], bytes]] = {
    "": Unpacker._plain,
    "identity": Unpacker._plain,
    "gzip": Unpacker._gzip,
    "x-gzip": Unpacker._gzip,
    "deflate": Unpacker._deflate,
}
