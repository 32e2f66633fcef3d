"""Each key that docs/upgrading.md gives to restore a former default is accepted, and does change something."""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import yaml

from smart_model_router import RouterConfig
from smart_model_router.config import ConfigurationWarning
from tests.meta.repository import ROOT, project, table_rows

PAGE = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
ROWS = list(table_rows(PAGE))
RESTORES = sorted({key for row in ROWS for key in re.findall(r"`([a-z_]+(?:\.[\w<>]+)+: [^`]+)`", row[3])})
FLEET: dict[str, Any] = {
    "version": 1,
    "providers": {"openai": {"kind": "openai", "api_key": "k"}},
    "models": {"smart": {"tiers": [{"targets": ["openai/any"]}]}},
}


def nested(written: str) -> dict[str, Any]:
    """Return `a.b: value` as a mapping; `<name>` stands for the one provider."""
    path, _, value = written.partition(": ")
    tree: Any = yaml.safe_load(value)
    for part in reversed(path.replace("<name>", "openai").split(".")):
        tree = {part: tree}
    found: dict[str, Any] = tree
    return found


def merged(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return both mappings as one, deeply."""
    deep = {key: merged(one[key], value) for key, value in other.items() if isinstance(value, dict) and key in one}
    return one | other | deep


def test_the_page_is_about_this_version() -> None:
    """Its heading names the minor version that pyproject.toml has."""
    minor = ".".join(project()["project"]["version"].split(".")[:2])
    assert f"## To {minor}\n" in PAGE


@pytest.mark.parametrize(
    "key",
    [
        "routing.model_name",
        "routing.malformed_events",
        "search.score_calibration_scale",
        "resilience.adaptive",
        "resilience.breaker",
    ],
)
def test_the_defaults_that_change_an_answer_are_there(key: str) -> None:
    """The model's name, malformed events, the gate of a search, the learned limit, the evidence of a breaker."""
    assert any(restore.startswith(key) for restore in RESTORES)


@pytest.mark.parametrize("written", RESTORES)
def test_a_key_that_restores_a_default_is_accepted_and_no_default(written: str) -> None:
    """It loads without a warning that it is no longer used, and differs from a file without it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConfigurationWarning)
        restored = RouterConfig.from_mapping(merged(FLEET, nested(written)))
    assert restored != RouterConfig.from_mapping(FLEET)
