"""URLs of database servers in the configuration: which schemes are known, and a URL without its password."""

from __future__ import annotations

from urllib.parse import urlsplit

from smart_model_router.config.secret import MASK

VALKEY_SCHEMES = ("valkey", "valkeys", "redis", "rediss", "unix")
POSTGRES_SCHEMES = ("postgresql", "postgres")


def server_fault(url: str, schemes: tuple[str, ...]) -> str:
    """Say what is wrong with the URL of a server of one of these schemes; "" when nothing is."""
    known = ", ".join(f"{scheme}://" for scheme in schemes)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:  # its text may have a part of the password
        return "a URL is needed, whose user and password have their special characters %-encoded"
    if parts.scheme not in schemes:
        return f"a URL that begins with {known} is needed"
    if parts.scheme == "unix":
        return (
            "" if parts.path.startswith("/") else "the absolute path of the socket is needed, as in unix:///run/x.sock"
        )
    host_in_query = parts.scheme in POSTGRES_SCHEMES and "host=" in parts.query
    if not parts.hostname and not host_in_query:
        return f"a host is needed, as in {parts.scheme}://host/0"
    return "" if port is None or port > 0 else "a port from 1 to 65535 is needed"


def shown_url(url: str) -> str:
    """The URL without user, password and query, for people."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    user = f"{MASK}@" if "@" in parts.netloc else ""
    return f"{parts.scheme}://{user}{host}{parts.path}"
