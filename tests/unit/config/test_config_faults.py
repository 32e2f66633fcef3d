"""Everything that is wrong with a configuration is told at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smart_model_router.config import RouterConfig
from smart_model_router.domain.errors import ConfigurationError

PROVIDER = {"kind": "openai_compatible", "base_url": "http://h/v1"}
MODEL = {"tiers": [{"targets": ["a/big"]}]}


def faults(**sections: Any) -> list[str]:
    """The keys of all faults of a configuration, the one that is raised first."""
    given = {"version": 1, "providers": {"a": PROVIDER}, "models": {"smart": MODEL}, **sections}
    with pytest.raises(ConfigurationError) as caught:
        RouterConfig.from_mapping(given, environ={})
    return [caught.value.key, *(other.key for other in caught.value.others)]


def test_values_keys_and_rules_are_told_together() -> None:
    """What cannot be read, what is out of range, what is unknown, and what leads nowhere: one look finds them all."""
    found = faults(
        providers={"a": {**PROVIDER, "rpm": 0, "bas_url": "x"}},
        routing={"max_wait": "3 parsecs", "strategy": "halth"},
        aliases={"x": "smrt"},
    )
    assert sorted(found) == [
        "aliases.x",
        "providers.a.bas_url",
        "providers.a.rpm",
        "routing.max_wait",
        "routing.strategy",
    ]


def test_a_fault_brings_no_followers() -> None:
    """A list that is none, a missing key, an unreadable target: told once, and nothing that only follows from it."""
    assert faults(models={"smart": {"tiers": "x"}}) == ["models.smart.tiers"]
    assert faults(models={"smart": {"tiers": [{"targets": [["a/big"]]}]}}) == ["models.smart.tiers[0].targets[0]"]
    assert faults(providers={"a": {"base_url": "http://h"}}) == ["providers.a.kind"]
    assert faults(providers={"a": 7}) == ["providers.a"]


def test_every_rule_tells_all_its_breaches() -> None:
    """Two targets of unknown providers, two aliases to nowhere, two bad strategies are two faults each."""
    tiers = [{"targets": ["b/x", "c/y"]}]
    models = {"smart": {"tiers": tiers, "strategy": "nope"}}
    found = faults(models=models, aliases={"x": "y", "z": "w"}, routing={"strategy": "no"})
    assert found == [
        "models.smart.strategy",
        "models.smart.tiers[0].targets[0]",
        "models.smart.tiers[0].targets[1]",
        "aliases.x",
        "aliases.z",
        "routing.strategy",
    ]


def test_in_a_file_each_fault_has_its_line(tmp_path: Path) -> None:
    """The first and every other one end with file and line."""
    path = tmp_path / "c.yaml"
    path.write_text(
        "version: 1\nproviders:\n  a: {kind: scripted, rpm: none}\n"
        "models:\n  m: {tiers: [{targets: [a/x]}]}\nlocl: {}\n",
        encoding="utf-8",
    )
    with pytest.raises(ConfigurationError) as caught:
        RouterConfig.load(path, environ={})
    told = [caught.value.expected, *(other.expected for other in caught.value.others)]
    assert [line.rpartition(":")[2] for line in told] == ["3)", "6)"]


@pytest.mark.parametrize("store", [{}, {"path": "s.db", "shared_state": False}])
def test_a_part_of_a_limit_that_is_less_than_a_call_is_refused(store: dict[str, Any]) -> None:
    """Processes that share no state have equal parts: with less than a call a minute nobody would ever ask."""
    limited = {"a": {**PROVIDER, "rpm": 3}}
    target = {"tiers": [{"targets": [{"target": "a/big", "rpm": 2}]}]}
    assert faults(providers=limited, store={**store, "processes": 4}) == ["store.processes"]
    assert faults(models={"smart": target}, store={**store, "processes": 3}) == ["store.processes"]


def test_parts_that_suffice_are_accepted() -> None:
    """As many calls as processes, or a store through which they lease from one limit."""
    given = {"version": 1, "providers": {"a": {**PROVIDER, "rpm": 3}}, "models": {"smart": MODEL}}
    for store in ({"processes": 3}, {"processes": 4, "path": "s.db"}):
        assert RouterConfig.from_mapping({**given, "store": store}, environ={}).store.processes > 2


def test_a_heartbeat_that_comes_too_late_for_its_lease_is_refused() -> None:
    """One that is late once would lose the run."""
    assert faults(workflows={"lease": "10s", "heartbeat": "6s"}) == ["workflows.heartbeat"]
    tree = {"version": 1, "providers": {"a": PROVIDER}, "models": {"smart": MODEL}}
    workflows = RouterConfig.from_mapping({**tree, "workflows": {"lease": "10s"}}, environ={}).workflows
    assert (workflows.lease, workflows.heartbeat) == (10.0, 5.0)
