"""`store.stats_url`: which URLs can be, what is missing without its extra, and that its password is shown nowhere."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from psycopg import OperationalError

from smart_model_router import SmartModelRouter
from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.observability.store_reader import configured_server, reader_at, reader_of
from smart_model_router_stats.postgres_schema import SCHEMA
from smart_model_router_stats.postgres_server import StatsServer
from smart_model_router_stats.reading import FileReader


def config(url: str | None, **store: Any) -> dict[str, Any]:
    """A configuration with that URL."""
    return {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid"}},
        "models": {"smart": {"tiers": [{"targets": ["a/big"]}], "last_resort": []}},
        "store": {"stats_url": url, **store},
    }


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("mysql://u:hush@host/d", "postgresql://"),
        ("hush", "postgresql://"),
        ("postgresql:///d?password=hush", "a host is needed"),
        ("postgresql://u:hush@host:70000/d", "a URL is needed"),
    ],
)
def test_a_url_that_cannot_be_is_named_without_its_password(url: str, expected: str) -> None:
    """The error has the key and what would be right."""
    with pytest.raises(ConfigurationError, match=r"store\.stats_url") as refused:
        RouterConfig.from_mapping(config(url))
    assert expected in str(refused.value)
    assert "hush" not in str(refused.value)


def test_a_url_that_the_client_cannot_read_is_refused_before_anything_is_opened() -> None:
    """An option that PostgreSQL does not know; its name may be a piece of a password."""
    with pytest.raises(ConfigurationError, match="no URL of a PostgreSQL database") as refused:
        SmartModelRouter.from_config(config("postgresql://u@host/d?hush=1"))
    assert "hush" not in str(refused.value)


def test_a_reason_has_no_password() -> None:
    """Whatever the server says; and it is one line."""
    server = StatsServer("postgresql://u:hush%20hush@host/d?sslmode=require")
    assert server.reason(OperationalError("no\n  entry for hush hush")) == "no entry for ***"
    assert "hush" not in server.name


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the words that install it."""
    monkeypatch.setitem(sys.modules, "psycopg", None)
    monkeypatch.delitem(sys.modules, "smart_model_router_stats.postgres_server", raising=False)
    for ask in (
        lambda: SmartModelRouter.from_config(config("postgresql://u:hush@host/d")),
        lambda: reader_at("postgresql://u:hush@host/d"),
    ):
        with pytest.raises(ConfigurationError, match=r"pip install 'smart-model-router\[postgres\]'") as refused:
            ask()
        assert "hush" not in str(refused.value)


def test_the_url_has_the_statistics_where_there_is_a_file_as_well() -> None:
    """Without a URL the file has them; with neither there are none to read."""
    read = RouterConfig.from_mapping(config("${URL}", path="s.db"), environ={"URL": "postgresql://u:hush@host:5433/d"})
    reader = reader_of(read.store)
    assert reader is not None
    assert reader.name == "postgresql://host:5433/d"
    assert "hush" not in repr(read)
    assert isinstance(reader_of(RouterConfig.from_mapping(config(None, path="s.db")).store), FileReader)
    assert reader_of(RouterConfig.from_mapping(config(None)).store) is None


def test_a_namespace_has_a_schema_of_its_own() -> None:
    """Two fleets in one database know nothing of each other; a name that PostgreSQL would cut is refused."""
    url = "postgresql://u@host/d"
    assert configured_server(RouterConfig.from_mapping(config(url)).store).schema == SCHEMA == "smr_stats"
    assert configured_server(RouterConfig.from_mapping(config(url, namespace="eu")).store).schema == "eu_stats"
    with pytest.raises(ConfigurationError, match="shorten the namespace"):
        SmartModelRouter.from_config(config(url, namespace="x" * 60))
