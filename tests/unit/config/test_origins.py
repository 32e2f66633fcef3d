"""Where each value in force comes from."""

from __future__ import annotations

import yaml

from smart_model_router.config import RouterConfig
from smart_model_router.config.origins import plain, values_in_force
from smart_model_router.domain.tree_path import spelled
from smart_model_router.domain.yaml_document import parse

SECRET = "sk-live-" + "z9" * 16
FILE = """\
version: 1
providers:
  a: &a
    kind: openai_compatible
    base_url: "http://${HOST:-h}/v1"
    api_key: os.environ/KEY
  b:
    <<: *a
    rpm: 60
models:
  smart:
    tiers:
      - targets: [a/big, {target: b/big, tpm: 400k}]
  other: {tiers: [{targets: [b/big]}]}
routing:
"""


def origins() -> dict[str, tuple[object, str]]:
    """Value and origin by key."""
    document = parse(FILE.encode(), "c.yaml")
    config = RouterConfig.from_mapping(document.data, environ={"KEY": SECRET})
    return {spelled(v.path): (v.value, v.origin) for v in values_in_force(config, document, "c.yaml")}


def test_a_value_comes_from_its_line_a_variable_or_is_a_default() -> None:
    """The line, the variable with the line, or `default`; merged keys come from where they are written."""
    found = origins()
    assert found["version"] == (1, "c.yaml:1")
    assert found["providers.a.kind"] == ("openai_compatible", "c.yaml:4")
    assert found["providers.a.base_url"] == ("http://h/v1", "$HOST (c.yaml:5)")
    assert found["providers.b.kind"][1] == "c.yaml:4"
    assert found["providers.b.rpm"] == (60, "c.yaml:9")
    assert found["models.smart.tiers[0].targets[0].target"] == ("a/big", "c.yaml:13")
    assert found["models.smart.tiers[0].name"] == ("frontier", "default")
    assert found["routing.degrade_after"] == (2.0, "default")


def test_a_fact_comes_from_where_it_is_said() -> None:
    """A fact of a target that is said at another of its mentions has the line of that mention."""
    assert origins()["models.other.tiers[0].targets[0].tpm"] == (400_000, "c.yaml:13")


def test_secrets_are_masked() -> None:
    """A key is `***`, with the variable it comes from."""
    found = origins()
    assert found["providers.a.api_key[0]"] == ("***", "$KEY (c.yaml:6)")
    assert SECRET not in repr(found)


def test_what_is_shown_reads_back_as_the_same() -> None:
    """The whole tree as YAML is a configuration again, equal but for its secrets."""
    config = RouterConfig.from_mapping(yaml.safe_load(FILE.replace("os.environ/KEY", "'***'")), environ={})
    again = RouterConfig.from_mapping(yaml.safe_load(yaml.safe_dump(plain(config))), environ={})
    assert again == config
