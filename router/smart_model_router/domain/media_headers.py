"""The sizes of pictures, documents and recordings, read from their headers. No picture or sound is decoded.

Headers come from strangers: whatever they say, reading takes bounded time and memory and raises nothing. An impossible
size is None, and pages and seconds are limited to what the bytes of the file can hold.
"""

from __future__ import annotations

import binascii
import re
import zlib
from collections.abc import Iterator

_SPACES = (" ", "\n", "\r", "\t")
_BUDGET = 8 << 20
"""Bytes that are read of all files of a request. What lies beyond is of unknown size."""
_LEAST_READ = 256
"""Bytes that a look into a file is charged at least: many small ones cost time as well."""
_HEAD, _TAIL = 128 << 10, 512 << 10
"""Bytes of a document that are searched: its page tree stands near the beginning or near the end."""
_PACKED, _STREAMS = 128 << 10, 16
"""A document's compressed streams are unpacked to so many bytes each, and only the last so many of them."""
_NODES, _NODE = 32, 16 << 10
"""So many nodes of the page tree are read from each end, and so many bytes around each."""
_STEPS = 1024
"""Segments, chunks or boxes of a file that are stepped over."""
_MOST_PIXELS = 1 << 30
"""Pixels of a side: more is no picture."""
_PAGE_BYTES = 4
"""Bytes that a page takes at least, compressed among its likes."""
_QUIETEST = 250.0
"""Bytes a second of the most compressed recording there is (Codec 2 and the like; Opus needs 750)."""


class ReadBudget:
    """The bytes that may still be read of the files of one request."""

    __slots__ = ("left",)

    def __init__(self, left: int = _BUDGET) -> None:
        self.left = left


class FileBytes:
    """The bytes that base64 text stands for, decoded a slice at a time: a header is a few of millions."""

    __slots__ = ("_budget", "_text", "size")

    def __init__(self, text: str, budget: ReadBudget | None = None) -> None:
        if any(space in text[:200] for space in _SPACES):  # wrapped lines: slices would not begin where bytes do
            text = "".join(text.split())
        self._text = text
        self._budget = budget or ReadBudget()
        self.size = max(0, len(text) * 3 // 4 - text.endswith("=") - text.endswith("=="))

    def at(self, start: int, count: int) -> bytes:
        """Up to `count` bytes from `start`; fewer at the end, none of what is no base64 or beyond the budget."""
        if not self.charge(count):
            return b""
        first = start // 3
        piece = self._text[first * 4 : -(-(start + count) // 3) * 4]
        try:
            raw = binascii.a2b_base64(piece + "=" * (-len(piece) % 4))
        except ValueError:  # binascii.Error is one; so is what is not ASCII
            return b""
        return raw[start - first * 3 :][:count]

    def charge(self, count: int) -> bool:
        """Take bytes from the budget; False when they are not there."""
        self._budget.left -= max(count, _LEAST_READ)
        return self._budget.left >= 0


def pixels(file: FileBytes) -> tuple[int, int] | None:
    """Width and height of a PNG, GIF, WebP or JPEG; None for anything else, and for a size of 0."""
    head = file.at(0, 32)
    width = height = 0
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        width, height = _big(head[16:20]), _big(head[20:24])
    elif head.startswith((b"GIF87a", b"GIF89a")):
        width, height = _little(head[6:8]), _little(head[8:10])
    elif head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        width, height = _webp(head)
    elif head.startswith(b"\xff\xd8"):
        width, height = _jpeg(file)
    return (width, height) if 0 < width <= _MOST_PIXELS and 0 < height <= _MOST_PIXELS else None


def _webp(head: bytes) -> tuple[int, int]:
    form = head[12:16]
    if form == b"VP8X":
        return 1 + _little(head[24:27]), 1 + _little(head[27:30])
    if form == b"VP8L":
        both = _little(head[21:25])
        return 1 + (both & 0x3FFF), 1 + (both >> 14 & 0x3FFF)
    if form == b"VP8 " and head[23:26] == b"\x9d\x01\x2a":
        return _little(head[26:28]) & 0x3FFF, _little(head[28:30]) & 0x3FFF
    return 0, 0


def _jpeg(file: FileBytes) -> tuple[int, int]:
    """The size stands in the frame header, after the segments of cameras and editors (EXIF, ICC)."""
    place = 2
    for _ in range(_STEPS):
        head = file.at(place, 9)
        if len(head) < 9 or head[0] != 0xFF:
            break
        marker = head[1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            return _big(head[7:9]), _big(head[5:7])
        place += 1 if marker == 0xFF else 2 + max(2, _big(head[2:4]))
    return 0, 0


_LINEAR = re.compile(rb"/Linearized\b[^>]{0,300}?/N\s*(\d{1,9})")
_COUNT = re.compile(rb"/Count\s*(\d{1,9})\b")
_PAGE = re.compile(rb"/Type\s*/Page\b")
_TREE, _OBJECTS = b"/Pages", b"/ObjStm"


def pages(file: FileBytes) -> int | None:
    """The number of pages of a PDF; None when it cannot be read (encrypted), and for anything else."""
    if not is_pdf(file):
        return None
    if file.size <= _HEAD + _TAIL:
        part = file.at(0, file.size)
    else:
        part = file.at(0, _HEAD) + b"\n" + file.at(file.size - _TAIL, _TAIL)
    linear = _LINEAR.search(part, 0, 2048)
    told = int(linear[1]) if linear else 0
    told = told or _in_tree(part) or max((_in_tree(objects) for objects in _unpacked(file, part)), default=0)
    return min(told or sum(1 for _ in _PAGE.finditer(part)), file.size // _PAGE_BYTES) or None


def is_pdf(file: FileBytes) -> bool:
    """True for a PDF; a few bytes may precede its header."""
    return b"%PDF-" in file.at(0, 1024)


def _in_tree(part: bytes) -> int:
    """The largest count of the page tree's nodes, which is the root's. Bookmarks have a /Count as well."""
    most = 0
    for node in (*_places(part, _TREE), *_last_places(part, _TREE, _NODES)):
        opening = part.rfind(b"<<", max(0, node - _NODE), node)
        most = max(most, _count(part, max(0, opening), node) or _count(part, node, node + _NODE))
    return most


def _count(part: bytes, begin: int, end: int) -> int:
    place = part.find(b"/Count", begin, end)
    found = _COUNT.match(part, place) if place >= 0 else None
    return int(found[1]) if found else 0


def _unpacked(file: FileBytes, part: bytes) -> Iterator[bytes]:
    """The compressed objects of a document, the last ones first: the page tree is written late."""
    for place in _last_places(part, _OBJECTS, _STREAMS):
        begins = part.find(b"stream", place, place + 500)
        if begins >= 0 and file.charge(_PACKED):
            data = part[begins + len(b"stream") : begins + _PACKED].lstrip(b"\r\n")
            try:
                yield zlib.decompressobj().decompress(data, _PACKED)
            except zlib.error:  # encrypted, or packed in another way
                continue


def _places(part: bytes, word: bytes) -> Iterator[int]:
    place = -1
    for _ in range(_NODES):
        place = part.find(word, place + 1)
        if place < 0:
            return
        yield place


def _last_places(part: bytes, word: bytes, most: int) -> Iterator[int]:
    place = len(part)
    for _ in range(most):
        place = part.rfind(word, 0, place)
        if place < 0:
            return
        yield place


def seconds(file: FileBytes) -> float | None:
    """The duration of a WAV, MP3, FLAC, Ogg or MPEG-4 file in seconds; None for anything else."""
    head = file.at(0, 64)
    told: float | None = None
    if head.startswith(b"RIFF") and head[8:12] == b"WAVE":
        told = _wav(file)
    elif head.startswith(b"fLaC"):
        told = _over(_big(head[18:26]) & (1 << 36) - 1, _big(head[18:21]) >> 4)
    elif head.startswith(b"OggS"):
        told = _ogg(file)
    elif head[4:8] == b"ftyp":
        told = _mpeg4(file)
    elif head.startswith(b"ID3") or (head[:1] == b"\xff" and head[1:2] >= b"\xe0"):
        told = _mp3(file, head)
    return min(told, file.size / _QUIETEST) if told else None


def _wav(file: FileBytes) -> float | None:
    place, rate = 12, 0
    for _ in range(_STEPS):
        head = file.at(place, 24)
        if len(head) < 8:
            return None
        length = _little(head[4:8])
        if head.startswith(b"fmt "):
            rate = _little(head[16:20])
        elif head.startswith(b"data"):
            return _over(min(length, file.size - place - 8), rate)
        place += 8 + length + length % 2
    return None


def _ogg(file: FileBytes) -> float | None:
    """The last page has the number of samples up to its end."""
    first, last = file.at(0, 128), file.at(max(0, file.size - 65_536), 65_536)
    vorbis = first.find(b"\x01vorbis")
    rate = 48_000 if b"OpusHead" in first else _little(first[vorbis + 12 : vorbis + 16]) if vorbis >= 0 else 0
    page = last.rfind(b"OggS")
    return _over(_little(last[page + 6 : page + 14]), rate) if page >= 0 else None


def _mpeg4(file: FileBytes) -> float | None:
    place = 0
    for _ in range(_STEPS):
        head = file.at(place, 48)
        if len(head) < 16:
            return None
        length, name = _big(head[:4]), head[4:8]
        if name == b"mvhd":
            if head[8] == 1:
                return _over(_big(head[32:40]), _big(head[28:32]))
            return _over(_big(head[24:28]), _big(head[20:24]))
        if length == 1:
            length = _big(head[8:16])
        place += 8 if name == b"moov" else max(8, length)
    return None


_MP3_RATES = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0)
_MP3_RATES_2 = (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0)
_MP3_SAMPLES = (44_100, 48_000, 32_000, 0)


def _mp3(file: FileBytes, head: bytes) -> float | None:
    """By the number of frames where the first frame has it, else by its bit rate."""
    place = 0
    if head.startswith(b"ID3"):
        place = 10 + sum((byte & 0x7F) << shift for byte, shift in zip(head[6:10], (21, 14, 7, 0), strict=False))
    frame = file.at(place, 64)
    if len(frame) < 4 or frame[0] != 0xFF or frame[1] < 0xE0 or frame[1] >> 1 & 3 != 1:
        return None
    first_version = frame[1] >> 3 & 3 == 3
    rate = _MP3_SAMPLES[frame[2] >> 2 & 3] // (1 if first_version else 2 if frame[1] >> 3 & 3 == 2 else 4)
    for name in (b"Xing", b"Info"):
        told = frame.find(name)
        if told >= 0 and frame[told + 7] & 1:
            return _over(_big(frame[told + 8 : told + 12]) * (1152 if first_version else 576), rate)
    kbits = (_MP3_RATES if first_version else _MP3_RATES_2)[frame[2] >> 4]
    return _over(file.size - place, kbits * 125)


def _over(amount: float, rate: float) -> float | None:
    return amount / rate if rate > 0 and amount > 0 else None


def _big(raw: bytes) -> int:
    return int.from_bytes(raw, "big")


def _little(raw: bytes) -> int:
    return int.from_bytes(raw, "little")
