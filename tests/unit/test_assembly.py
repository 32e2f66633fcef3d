"""A router that cannot be made leaves nothing behind, and no provider object is passed over."""

from __future__ import annotations

import atexit
import sys
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router.errors import ConfigurationError
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
        monkeypatch.delitem(sys.modules, f"smart_model_router.telemetry.{module}", raising=False)
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
