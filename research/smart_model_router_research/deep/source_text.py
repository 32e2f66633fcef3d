"""Texts and addresses of sources, made harmless for a page: nothing invisible, one line, addresses of the web alone."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

MAX_SHOWN = 4_000
"""The characters of a text that a page shows."""
_INVISIBLE = re.compile(
    "[\u0000-\u0008\u000e-\u001b\u007f-\u0084\u0086-\u009f"  # controls
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, overrides and isolates
    "\u00ad\u180e\u200b\u2060-\u2065\u206a-\u206f\ufeff\ufff9-\ufffb"  # without width
    "\U000e0000-\U000e0fff]"  # tags and selectors that nothing shows
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_HOST = re.compile(r"(?:[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_PER_CENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SAFE = "!$&'*+,;=:@/?%~-._"
"""The characters of an address that stay as they are. Brackets and parentheses, which Markdown reads, do not."""


def clean(text: str, fallback: str = "") -> str:
    """Return a text as one line without invisible characters; `fallback` where nothing is left."""
    visible = _SURROGATES.sub("\ufffd", _INVISIBLE.sub("", text[:MAX_SHOWN]))
    line = " ".join(visible.split())
    if len(text) > MAX_SHOWN:
        line += " …"
    return line or fallback


def web_address(url: str) -> str:
    """Return an address of http or https in ASCII, percent-encoded; "" for anything else, and with credentials."""
    try:
        parts = urlsplit(url.strip())
        host = parts.netloc.encode("idna").decode("ascii") if not parts.netloc.isascii() else parts.netloc
    except (ValueError, UnicodeError):
        return ""
    if parts.scheme.lower() not in ("http", "https") or not _HOST.fullmatch(host):
        return ""
    encoded = (quote(part, safe=_SAFE) for part in (parts.path, parts.query, parts.fragment))
    path, query, fragment = (_PER_CENT.sub("%25", part) for part in encoded)
    return f"{parts.scheme.lower()}://{host}{path}{query and '?' + query}{fragment and '#' + fragment}"
