"""Names of hosts and domains as they are compared; nothing is looked up."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_DOMAIN = re.compile(rf"(?=.{{1,253}}\Z){_LABEL}(?:\.{_LABEL})*")


def ascii_host(host: str) -> str:
    """Return a host in lower case and ASCII; one that is none in IDNA stays as it is."""
    lowered = host.strip().strip(".").lower()
    try:
        return lowered if lowered.isascii() else lowered.encode("idna").decode("ascii")
    except UnicodeError:
        return lowered


def as_domain(text: str) -> str | None:
    """Return a domain as `ascii_host` has it; None for what is none, such as an address with a scheme or a path."""
    host = ascii_host(text)
    return host if _DOMAIN.fullmatch(host) else None
