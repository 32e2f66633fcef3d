"""Hosts of addresses, and the registered part of a host; nothing is looked up or fetched."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from smart_model_router.domain.hosts import ascii_host

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


def host_of(url: str) -> str:
    """Return the host of an absolute address in lower case and ASCII, without a dot at its end; "" for none."""
    try:
        return ascii_host(urlsplit(unicodedata.normalize("NFKC", url.strip())).hostname or "")
    except ValueError:
        return ""


def is_address(host: str) -> bool:
    """Return whether a host is a number and not a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def parents_of(host: str) -> Iterator[str]:
    """Yield the host and the domains above it, the longest first."""
    labels = host.split(".")
    for at in range(len(labels)):
        yield ".".join(labels[at:])


def registrable_domain(host: str) -> str:
    """Return the registered part of a host: `example.co.uk` of `www.example.co.uk`; "" for "".

    That is one label more than a suffix of Mozilla's list (extra `research`). Without the extra it is the last two
    labels, which makes one source of all sites under `co.uk`, and never two of one. An IP address is itself.
    """
    if not host or is_address(host):
        return host
    suffixes = known_suffixes()
    if suffixes is None:
        return ".".join(host.split(".")[-2:])
    return suffixes.privatesuffix(host) or host


def public_suffix(host: str) -> str:
    """Return the part of a host under which hosts are registered, by Mozilla's list; without it, the last label."""
    suffixes = known_suffixes()
    found = suffixes.publicsuffix(host) if suffixes is not None and host and not is_address(host) else None
    return found or host.rpartition(".")[2]


@cache
def known_suffixes() -> PublicSuffixList | None:
    """Return the list that the package brings; it is 40 ms to read. None without the package."""
    try:
        from publicsuffixlist import PublicSuffixList  # noqa: PLC0415 - an extra, and only addresses pay
    except ImportError:
        return None
    return PublicSuffixList()
