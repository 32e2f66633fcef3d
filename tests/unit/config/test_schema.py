"""The JSON Schema of smart-router.yaml: what an editor calls wrong is wrong, and what it calls right can be read."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml
from jsonschema_rs import Draft202012Validator

from smart_model_router.config.retired import RETIRED
from smart_model_router.config.schema import json_schema
from smart_model_router.config.tree import RouterConfig
from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.domain.errors import ConfigurationError
from tests.meta.repository import documents
from tools.config_docs import DOCUMENT, described

SCHEMA = json_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
YAML = re.compile(r"^```yaml[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
GOOD: dict[str, Any] = {
    "version": 1,
    "providers": {"a": {"kind": "openai", "api_key": ["k", 7], "headers": {"x": "${Y:-1}"}, "rpm": "400k"}, "l": None},
    "models": {
        "m": {"tiers": [{"targets": ["a/x", {"target": "a/y", "timeout": "1m30s", "only": "tools"}]}]},
        "a/*": {"targets": ["a/*"], "recovery": "none"},
    },
    "resilience": {
        "breaker": {"failing_share": "99%", "open": 3, "serialized_probes": "off"},
        "cooldown": None,
        "adaptive": False,
        "hedging": "on",
    },
}


def keys(schema: dict[str, Any]) -> dict[str, list[str]]:
    """The keys of every section by its name in docs/configuration.md, found by following the schema alone."""
    found: dict[str, list[str]] = {}

    def walk(part: dict[str, Any], path: str) -> None:
        if "$ref" in part and part["$ref"] != "#/$defs/reference":
            walk(schema["$defs"][part["$ref"].rpartition("/")[2]], path)
        for member in part.get("anyOf", []):
            walk(member, path)
        if "properties" in part and (path or "configuration") not in found:  # short forms come second
            used = {key: inner for key, inner in part["properties"].items() if "deprecated" not in inner}
            found[path or "configuration"] = list(used)
            for key, inner in used.items():
                if key != "last_resort" or not path:  # a model's has the same targets as a tier
                    walk(inner, f"{path}.{key}" if path else key)
        if isinstance(part.get("additionalProperties"), dict):
            walk(part["additionalProperties"], f"{path}.<name>")
        if "items" in part:
            walk(part["items"], f"{path}[]")

    walk(schema, "")
    return found


def test_the_schema_has_the_keys_that_are_documented() -> None:
    """Section by section, key by key, as docs/configuration.md has them."""
    assert keys(SCHEMA) == {name: list(rows) for name, rows in described(DOCUMENT.read_text("utf-8")).items()}


def test_whole_files_of_the_documents_are_valid() -> None:
    """Every YAML block of our documents that is a whole configuration is what the schema says."""
    blocks = [block for path in documents() for block in YAML.findall(path.read_text("utf-8"))]
    whole = [data for block in blocks if isinstance(data := yaml.safe_load(block), dict) and "version" in data]
    assert whole
    assert [str(error) for data in whole for error in VALIDATOR.iter_errors(data)] == []


def test_every_spelling_is_valid() -> None:
    """Units, switches, references, short forms and empty sections."""
    assert [str(error) for error in VALIDATOR.iter_errors(GOOD)] == []


def test_a_key_that_is_no_longer_used_is_valid_and_deprecated() -> None:
    """An editor strikes it through, says what took its place, and marks no mistake."""
    old = {**GOOD, "resilience": {"breaker": {"failure_ratio": "much"}, "adaptive": {"tolerance": None}}}
    assert VALIDATOR.is_valid(old)
    assert SCHEMA["$defs"]["BreakerConfig"]["properties"]["failure_ratio"] == {
        "deprecated": True,
        "description": RETIRED[BreakerConfig]["failure_ratio"],
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"version": 2},
        {"providers": {"a": {"knd": "openai"}}},
        {"providers": {"a": {"kind": "openai", "rpm": 0}}},
        {"providers": {"a": {"kind": "openai", "rpm": "many"}}},
        {"models": {"m": {}}},
        {"routing": {"max_wait": "3 parsecs"}},
        {"routing": {"allow_escalation": "perhaps"}},
        {"resilience": {"breaker": {"failing_share": 1.5}}},
        {"resilience": {"adaptive": "perhaps"}},
        {"gateway": {"keys": {"k": {"criticality": "high"}}}},
        {"gatway": {}},
    ],
)
def test_what_an_editor_calls_wrong_is_wrong(changes: dict[str, Any]) -> None:
    """Both the schema and the reader refuse it."""
    given = {**GOOD, "providers": {"a": GOOD["providers"]["a"]}, **changes}
    assert not VALIDATOR.is_valid(given)
    with pytest.raises(ConfigurationError):
        RouterConfig.from_mapping(given, environ={})
