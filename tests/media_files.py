"""Pictures, documents and recordings for tests: true headers, and as little behind them as can be."""

from __future__ import annotations

import base64
import struct
import zlib


def b64(raw: bytes) -> str:
    """Write bytes as base64."""
    return base64.b64encode(raw).decode()


def data_url(media_type: str, raw: bytes) -> str:
    """Write bytes as a data URL."""
    return f"data:{media_type};base64,{b64(raw)}"


def png(width: int, height: int, size: int = 64) -> bytes:
    """Make a PNG of `size` bytes at least: its signature, its header, and nothing to see."""
    header = b"IHDR" + struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    made = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + header + struct.pack(">I", zlib.crc32(header))
    return made.ljust(size, b"\x5a")


def gif(width: int, height: int) -> bytes:
    """Make the head of a GIF."""
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0" * 20


def jpeg(width: int, height: int, *, before: int = 0, frame: int = 0xC0) -> bytes:
    """Make the head of a JPEG with `before` full application segments (a camera's notes) before its frame."""
    notes = (b"\xff\xe1" + struct.pack(">H", 65_535) + b"\xc0" * 65_533) * before
    return b"\xff\xd8" + notes + b"\xff" + bytes([0xFF, frame]) + struct.pack(">HBHHB", 17, 8, height, width, 3)


def webp(width: int, height: int, form: str = "VP8X") -> bytes:
    """Make the head of a WebP: lossy (`VP8 `), lossless (`VP8L`) or extended (`VP8X`)."""
    if form == "VP8 ":
        body = b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", width | 0x4000, height)
    elif form == "VP8L":
        body = b"\x2f" + struct.pack("<I", (width - 1) | (height - 1) << 14)
    else:
        body = b"\0\0\0\0" + (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    return b"RIFF" + struct.pack("<I", 22 + len(body)) + b"WEBP" + form.encode() + struct.pack("<I", len(body)) + body


def pdf(pages: int, form: str = "plain", filler: int = 0) -> bytes:
    """Make a PDF of so many empty pages, with `filler` bytes of picture in the middle.

    `plain` writes its tree of pages as text; `packed` in a compressed stream of objects, as TeX and Word do;
    `linear` says the number in its first lines; `flat` has pages and no tree.
    """
    kids = b" ".join(b"%d 0 R" % (10 + page) for page in range(pages))
    tree = b"<</Count %d/Kids[%s]/Type/Pages>>" % (pages, kids)
    each = b"".join(b"%d 0 obj\n<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]>>\nendobj\n" % n for n in range(pages))
    outlines = b"3 0 obj\n<</Type/Outlines/Count 9999>>\nendobj\n"
    picture = b"4 0 obj\n<</Length %d>>\nstream\n%s\nendstream\nendobj\n" % (filler, b"\x5a" * filler)
    if form == "plain":
        body = outlines + picture + each + b"2 0 obj\n" + tree + b"\nendobj\n"
    elif form == "flat":
        body = each
    elif form == "linear":
        body = b"1 0 obj\n<</Linearized 1/L 99999/H[ 7 9]/O 5/E 99/N %d/T 99>>\nendobj\n" % pages + picture
    else:
        packed = zlib.compress(b"2 0 3 60 <</Type/Catalog/Pages 2 0 R>> " + tree)
        body = picture + b"5 0 obj\n<</Type/ObjStm/N 2/First 9/Filter/FlateDecode/Length %d>>\nstream\r\n" % len(packed)
        body += packed + b"\nendstream\nendobj\n"
    return b"%PDF-1.7\n" + body + b"startxref\n9\n%%EOF\n"


def wav(seconds: float, *, rate: int = 16_000, says: int | None = None) -> bytes:
    """Make silence of 16 bits a sample in one channel; `says` is what its header claims to have of it, in bytes."""
    silence = b"\0" * round(seconds * rate * 2)
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, rate * 2, 2, 16)
    data = b"data" + struct.pack("<I", len(silence) if says is None else says) + silence
    note = b"LIST" + struct.pack("<I", 4) + b"INFO"
    return b"RIFF" + struct.pack("<I", 4 + len(form) + len(note) + len(data)) + b"WAVE" + form + note + data


def mp3(seconds: float, *, kbits: int = 128, xing: bool = False, tag: int = 0) -> bytes:
    """Make an MP3 of one rate, 44,100 Hz; with `xing` its first frame counts the frames; `tag` bytes of ID3 before."""
    rates = (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
    head = bytes([0xFF, 0xFB, rates.index(kbits) << 4, 0xC0])
    frames = round(seconds * 44_100 / 1152)
    first = head + b"\0" * 17 + (b"Xing" + struct.pack(">II", 1, frames) if xing else b"")
    length = 2000 if xing else round(seconds * kbits * 125)
    size = bytes((tag >> shift) & 0x7F for shift in (21, 14, 7, 0))
    return (b"ID3\x04\0\0" + size + b"\0" * tag if tag else b"") + first.ljust(length, b"\0")


def flac(seconds: float, rate: int = 44_100) -> bytes:
    """Make the head of a FLAC."""
    packed = rate << 44 | 1 << 41 | 15 << 36 | round(seconds * rate)
    return b"fLaC\0\0\0\x22" + b"\x10\0\x10\0" + b"\0" * 6 + packed.to_bytes(8, "big") + b"\0" * 16 + b"\xff" * 200_000


def ogg(seconds: float) -> bytes:
    """Make an Opus recording: its first page, something, its last page."""
    first = b"OggS\0\x02" + b"\0" * 8 + b"\0" * 12 + b"\x01\x13" + b"OpusHead\x01\x02" + struct.pack("<HI", 312, 16_000)
    last = b"OggS\0\x04" + struct.pack("<Q", round(seconds * 48_000)) + b"\0" * 12 + b"\x01\x05" + b"12345"
    return first + b"\x11" * 200_000 + last


def mp4(seconds: float, *, wide: bool = False, moov_first: bool = True) -> bytes:
    """Make an MPEG-4 file; `wide`: with 64-bit instants."""
    if wide:
        told = b"\x01\0\0\0" + b"\0" * 16 + struct.pack(">IQ", 1000, round(seconds * 1000))
    else:
        told = b"\0\0\0\0" + b"\0" * 8 + struct.pack(">II", 1000, round(seconds * 1000))
    header = struct.pack(">I", 8 + len(told)) + b"mvhd" + told
    moov = struct.pack(">I", 8 + len(header)) + b"moov" + header
    media = struct.pack(">I", 8 + 200_000) + b"mdat" + b"\x22" * 200_000
    brand = struct.pack(">I", 16) + b"ftypM4A \0\0\0\0"
    return brand + (moov + media if moov_first else media + moov)
