"""Which key the command line shows to a gateway."""

from __future__ import annotations

import pytest

from smart_model_router.cli.gateway_client import KEY_VARIABLE, base_url, gateway_key
from smart_model_router.config import RouterConfig

ADMIN, PLAIN = "vk-admin", "vk-plain"


def config(host: str = "127.0.0.1", **keys: dict[str, object]) -> RouterConfig:
    """A configuration whose gateway has these keys."""
    given = keys or {"ops": {"key": ADMIN, "admin": True}, "app": {"key": PLAIN}}
    tree = {
        "version": 1,
        "providers": {"s": {"kind": "scripted"}},
        "models": {"smart": {"tiers": [{"targets": ["s/any"]}], "last_resort": []}},
        "gateway": {"host": host, "port": 8000, "keys": given},
    }
    return RouterConfig.from_mapping(tree, environ={})


@pytest.fixture(autouse=True)
def _no_key_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)


@pytest.mark.parametrize(
    "url",
    ["http://anyone.example:8000", "http://127.0.0.1:8001", "https://127.0.0.1:8000", "http://127.0.0.1.example:8000"],
)
def test_a_configuration_s_key_is_for_its_own_gateway_alone(url: str) -> None:
    """Whoever listens at another address learns no key, the admin's least of all."""
    assert gateway_key(config(), base_url(url, config()), admin=False) is None
    assert gateway_key(config(), base_url(url, config()), admin=True) is None


@pytest.mark.parametrize("url", [None, "http://127.0.0.1:8000/v1", "http://localhost:8000/", "http://[::1]:8000"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "0.0.0.0"])
def test_its_own_gateway_gets_the_key(host: str, url: str | None) -> None:
    """However the address of this machine is written."""
    own = config(host)
    assert gateway_key(own, base_url(url, own), admin=True) == ADMIN


def test_who_only_asks_shows_no_admin_s_key_where_there_is_another() -> None:
    """Asking needs no power over targets; an admin's key is shown only when there is no other."""
    assert gateway_key(config(), base_url(None, config()), admin=False) == PLAIN
    alone = config(ops={"key": ADMIN, "admin": True})
    assert gateway_key(alone, base_url(None, alone), admin=False) == ADMIN


def test_the_environment_s_key_goes_wherever_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was set for this very gateway."""
    monkeypatch.setenv(KEY_VARIABLE, "vk-mine")
    assert gateway_key(config(), "http://anyone.example:8000", admin=False) == "vk-mine"
