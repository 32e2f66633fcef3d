"""Bytes of a file become text: UTF-8 first, then the charset that its marks, its own words or its letters point to."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable

Tell = Callable[[str, str], None]
"""Takes the code of a note on a file, and its detail."""

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_HEAD = 1024
_DECLARED = re.compile(rb"""<(?:meta|\?xml)\b[^>]*?(?:charset|encoding)\s*=\s*["']?\s*([\w.:-]+)""", re.IGNORECASE)
_SAMPLE = 65_536
_REPLACED = "\ufffd"
_WESTERN_LETTERS = "àáâãäåæçèéêëìíîïñòóôõöøœùúûüßÿÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØŒÙÚÛÜŸ"
_WESTERN = frozenset(_WESTERN_LETTERS + "ªº°·«»“”„\u2018\u2019\u201a\u2013—…•€£¥§©®™¡¿\xb4½¼¾²³±\xd7\xa0")
_MANY_TOGETHER = re.compile(f"[{_WESTERN_LETTERS}]{{3}}")


def decoded(raw: bytes, tell: Tell) -> str | None:
    """The text of a file, with line feeds at the ends of lines. None, and a note, for what is no text.

    A file that is not UTF-8 is noted with the charset that was taken.
    """
    text = _text(raw, tell)
    if text is not None and "\0" in text:
        tell("binary", "it has NUL bytes")
        return None
    return None if text is None else text.replace("\r\n", "\n").replace("\r", "\n")


def _text(raw: bytes, tell: Tell) -> str | None:
    mark = next((charset for mark, charset in _MARKS if raw.startswith(mark)), "utf-8")
    text = _strictly(raw, mark)
    if text is not None:
        if mark not in {"utf-8", "utf-8-sig"} and "\0" not in text:
            tell("charset", f"read as {mark}, as its first bytes say")
        return text
    if b"\0" in raw:
        tell("binary", "it has NUL bytes")
        return None
    text = raw.decode("utf-8-sig", "replace")
    lost = text.count(_REPLACED) - raw.count(_REPLACED.encode())
    if sum(character > "\x7f" for character in text) - lost > lost:
        tell("charset", f"read as UTF-8, of which {lost} places are none")
        return text
    return _other(raw, tell)


def _other(raw: bytes, tell: Tell) -> str | None:
    """The text of a file that is not UTF-8."""
    found = _DECLARED.search(raw[:_HEAD])
    declared = found[1].decode("ascii", "replace") if found else None
    # A declaration of UTF-16 in ASCII letters contradicts itself, and nearly any bytes are UTF-16.
    text = _strictly(raw, declared) if declared and not declared.lower().startswith("utf") else None
    if text is not None:
        tell("charset", f"read as {declared}, as it declares")
        return text
    lies = f"; it declares {declared}, which it is not" if declared else ""
    if is_western(raw):
        tell("charset", f"read as windows-1252, by its letters{lies}")
        return raw.decode("windows-1252")
    guess = _guess(raw)
    if guess is None:
        tell("no_charset", f"it is no UTF-8, and no other charset fits{lies}")
        return None
    tell("charset", f"read as {guess}, which is a guess{lies}")
    return raw.decode(guess, "replace")


def is_western(raw: bytes) -> bool:
    """True for a text whose bytes make letters of Western Europe in windows-1252, fewer than half of all and scattered.

    Short texts have too little for statistics, which take `café` for Persian.
    """
    text = _strictly(raw, "windows-1252")
    if text is None or not all(character in _WESTERN for character in text if character > "\x7f"):
        return False
    letters = sum(map(str.isalpha, text))
    western = sum(character in _WESTERN_LETTERS for character in text)
    return 2 * western <= letters and _MANY_TOGETHER.search(text) is None


def _guess(raw: bytes) -> str | None:
    """The charset that fits the lines that are not ASCII best."""
    from charset_normalizer import from_bytes  # noqa: PLC0415 - the extra `scoring`, and few files need it

    kept = b"\n".join(line for line in raw.split(b"\n") if not line.isascii())
    if len(kept) > _SAMPLE:  # between lines, so that no character is cut
        kept = kept[:_SAMPLE].rpartition(b"\n")[0] or kept[:_SAMPLE]
    best = from_bytes(kept).best()
    return None if best is None else best.encoding


def _strictly(raw: bytes, charset: str) -> str | None:
    """The text; None when these bytes are none, or the charset is none that makes text."""
    try:
        return raw.decode(charset)
    except (UnicodeError, LookupError):
        return None
