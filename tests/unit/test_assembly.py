"""A router that cannot be made leaves nothing behind, and no provider object is passed over."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import FakeProvider

MODELS = {"smart": {"tiers": [{"targets": ["azure/big"]}], "last_resort": []}}
AZURE = {"azure": {"kind": "azure", "api_key": "k"}}
"""A provider that needs an address and has none: its adapter refuses."""


def refused(config: dict[str, Any], **given: Any) -> ConfigurationError:
    """The refusal."""
    with pytest.raises(ConfigurationError) as refusal:
        SmartModelRouter.from_config({"version": 1, "models": MODELS, **config}, **given)
    return refusal.value


def test_a_refused_provider_leaves_no_file_and_no_hook(tmp_path: Path) -> None:
    """A gateway that reads a bad configuration at every SIGHUP opens nothing for it."""
    log, store = tmp_path / "x.log", {"path": str(tmp_path / "stats.db")}
    with mock.patch.object(atexit, "register") as registered:
        refused({"providers": AZURE, "telemetry": {"log": {"to": str(log)}}, "store": store})
    assert not log.exists()
    registered.assert_not_called()


@pytest.mark.parametrize("missing", ["structlog", "opentelemetry"])
def test_a_refused_sink_leaves_no_hook(missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sink whose extra is not installed is refused: the sinks beside it and the store are gone as well."""
    left: list[object] = []
    monkeypatch.setattr(atexit, "register", left.append)
    monkeypatch.setattr(atexit, "unregister", left.remove)
    for module in ("log", "spans"):
        monkeypatch.delitem(sys.modules, f"smart_model_router.observability.{module}", raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    telemetry = {"log": {"to": str(tmp_path / "x.log")}, "traces": {"enabled": True}}
    config = {"telemetry": telemetry, "store": {"path": str(tmp_path / "stats.db")}}
    error = refused(config, providers={"azure": FakeProvider()}, sinks=[mock.Mock(spec=["emit"])])
    assert error.value == missing
    assert left == []


@pytest.mark.parametrize("providers", [{}, {"openai": {"kind": "openai", "api_key": "k"}, **AZURE}])
def test_a_provider_object_that_nobody_uses_is_refused(providers: dict[str, Any]) -> None:
    """A slip in its name would otherwise be passed over, and a test would ask the real provider."""
    error = refused({"providers": providers}, providers={"azure": FakeProvider(), "azur": FakeProvider()})
    assert error.key == "providers"
    assert error.value == "azur"
    assert error.expected == "did you mean 'azure'?"


def test_a_provider_object_that_counts_as_nothing_is_used() -> None:
    """An object with a length of its own, an empty one, is a provider like any other."""

    class Empty(FakeProvider):
        def __len__(self) -> int:
            return 0

    config = {"version": 1, "providers": AZURE, "models": MODELS}
    SmartModelRouter.from_config(config, providers={"azure": Empty()})


# Interchangeable targets ------------------------------------------------------------------------------


def groups(strategy: str, providers: dict[str, Any], *targets: Any) -> list[list[str]]:
    """The targets of a tier that share the load, group by group; others are left out."""
    config = {
        "version": 1,
        "providers": providers,
        "models": {"smart": {"tiers": [{"targets": list(targets)}], "last_resort": [], "strategy": strategy}},
    }
    router = SmartModelRouter.from_config(config)
    found: dict[str, list[str]] = {}
    for facts in router._state.model_routes["smart"].tiers[0].targets:
        if facts.candidate.group:
            found.setdefault(facts.candidate.group, []).append(facts.id)
    return [members for members in found.values() if len(members) > 1]


OPENAI = {"kind": "openai", "api_key": "k"}
SERVER = {"kind": "openai_compatible", "base_url": "http://one.invalid/v1", "api_key": ["k", "l"]}


@pytest.mark.parametrize("strategy", ["health", "cheapest", "fastest", "power_of_two"])
def test_keys_of_one_model_at_one_host_are_a_group(strategy: str) -> None:
    """Of one entry or of several; another model or another host is another group."""
    eu = {**OPENAI, "base_url": "https://eu.api.openai.com/v1"}
    same = {**OPENAI, "base_url": "https://API.openai.com/v1"}
    providers = {"a": {**OPENAI, "api_key": ["k", "l"]}, "b": same, "eu": eu}
    found = groups(strategy, providers, "a/big", "a/small", "b/big", "eu/big")
    assert found == [["a/big", "a/big#2", "b/big"], ["a/small", "a/small#2"]]


def test_servers_that_may_be_anything_are_grouped_by_their_owner() -> None:
    """Only the keys of one entry are taken to be for the same."""
    providers = {"a": SERVER, "b": SERVER}
    assert groups("health", providers, "a/m", "b/m") == [["a/m", "a/m#2"], ["b/m", "b/m#2"]]
    named = [{"target": f"{name}/m", "group": "llamas"} for name in "ab"]
    assert groups("health", providers, *named) == [["a/m", "a/m#2", "b/m", "b/m#2"]]
    assert groups("health", providers, {"target": "a/m", "group": ""}, "b/m") == [["b/m", "b/m#2"]]


def test_an_order_that_was_asked_for_is_kept() -> None:
    """`ordered` shares no load unless a group is named; `weighted` says itself who gets what."""
    keys = {**OPENAI, "api_key": ["k", "l"]}
    assert groups("ordered", {"a": keys}, "a/m") == groups("weighted", {"a": keys}, "a/m") == []
    named = {"target": "a/m", "group": "g"}
    assert groups("ordered", {"a": keys}, named) == [["a/m", "a/m#2"]]
    assert groups("weighted", {"a": keys}, named) == []
