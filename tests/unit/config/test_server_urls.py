"""URLs of database servers: each fault is named, and a password is shown nowhere."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.config import RouterConfig, Secret
from smart_model_router.config.server_urls import POSTGRES_SCHEMES, VALKEY_SCHEMES, server_fault, shown_url
from smart_model_router.domain.errors import ConfigurationError

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


def read(store: dict[str, str], **sections: Any) -> RouterConfig:
    """A configuration with this store."""
    tree = {
        "version": 1,
        "providers": {"a": {"kind": "scripted"}},
        "models": {"m": {"tiers": [{"targets": ["a/m"]}]}},
        "store": store,
        **sections,
    }
    return RouterConfig.from_mapping(tree, environ={"PASSWORD": "secret"})


def test_one_url_is_that_of_all_that_is_shared() -> None:
    """What is named apart stays."""
    url = "postgresql://u:${PASSWORD}@h/d"
    config = read({"url": url, "shared_url": "valkey://h"}, workflows={"engine": "kahn"})
    kept = "postgresql://u:secret@h/d"
    assert config.store.shared_url == Secret("valkey://h")
    assert (config.store.stats_url, config.workflows.store_url) == (Secret(kept), Secret(kept))
    assert config.workflows.engine == "kahn"


@pytest.mark.parametrize(
    ("store", "sections", "keys"),
    [
        ({"url": "valkey://h"}, {}, ["store.url"]),
        ({"shared_url": "file:///x", "stats_url": "valkey://h"}, {}, ["store.shared_url", "store.stats_url"]),
        ({}, {"workflows": {"store_url": "sqlite:///x"}}, ["workflows.store_url"]),
        ({"namespace": "a b"}, {}, ["store.namespace"]),
    ],
)
def test_each_url_of_another_kind_is_named_once(store: Any, sections: Any, keys: list[str]) -> None:
    """By the key where it is written."""
    with pytest.raises(ConfigurationError) as caught:
        read(store, **sections)
    assert sorted(fault.key for fault in (caught.value, *caught.value.others)) == keys


@given(st.text(alphabet=st.characters(codec="ascii", categories=["L", "N"]), min_size=12, max_size=30))
def test_a_password_is_not_shown(password: str) -> None:
    """Nor the rest of the query, which may hold one."""
    shown = shown_url(f"postgresql://u:{password}@h:5432/d?password={password}")
    assert shown == "postgresql://***@h:5432/d"
