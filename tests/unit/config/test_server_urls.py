"""URLs of database servers: each fault is named, and a password is shown nowhere."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.config.server_urls import POSTGRES_SCHEMES, VALKEY_SCHEMES, server_fault, shown_url

BOTH = VALKEY_SCHEMES + POSTGRES_SCHEMES


@pytest.mark.parametrize(
    "url",
    [
        "valkey://h",
        "redis://:secret@h:6379/0",
        "rediss://user:secret@[::1]:6380/2",
        "unix:///run/valkey.sock?db=0",
        "postgresql://u:p@h:5432/d?sslmode=verify-full",
        "postgresql:///d?host=/run/postgresql",
    ],
)
def test_urls_that_servers_have(url: str) -> None:
    """Each scheme, sockets of this machine included."""
    assert server_fault(url, BOTH) == ""


@pytest.mark.parametrize(
    ("url", "needed"),
    [
        ("mysql://h/d", "begins with valkey://"),
        ("localhost:6379", "begins with valkey://"),
        ("", "begins with valkey://"),
        ("valkey:///0", "a host is needed"),
        ("postgresql:///d", "a host is needed"),
        ("unix://socket", "absolute path"),
        ("redis://h:0/0", "a port"),
        ("redis://h:99999/0", "%-encoded"),
        ("redis://[::1/0", "%-encoded"),
    ],
)
def test_a_url_that_is_none(url: str, needed: str) -> None:
    """The fault says what is needed."""
    assert needed in server_fault(url, BOTH)


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N"]), min_size=12, max_size=30))
def test_a_password_is_not_shown(password: str) -> None:
    """Nor the rest of the query, which may hold one."""
    shown = shown_url(f"postgresql://u:{password}@h:5432/d?password={password}")
    assert shown == "postgresql://***@h:5432/d"
