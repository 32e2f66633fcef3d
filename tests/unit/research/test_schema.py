"""The JSON Schema of a workflow's file takes what reading takes, and refuses what an editor can see."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
import yaml

from smart_model_router_research.workflow import workflow_schema
from smart_model_router_research.workflow.kinds import STEP_KINDS, StepKind
from tests.unit.research.test_loading import BROKEN, ROUNDS, SAMPLE, WHOLE

SCHEMA = jsonschema_rs.validator_for(workflow_schema())
STEP = {"name": "a", "function": "f"}


def fits(**keys: Any) -> bool:
    """Return whether the schema takes a workflow of one step with these keys."""
    return SCHEMA.is_valid({"name": "w", "steps": [keys]})


@pytest.mark.parametrize("text", [WHOLE, ROUNDS], ids=["whole", "rounds"])
def test_the_schema_takes_a_workflow(text: str) -> None:
    """Those that the tests of reading read."""
    SCHEMA.validate(yaml.safe_load(text))
    SCHEMA.validate(SAMPLE)


def test_the_schema_refuses_what_is_no_workflow() -> None:
    """Wherever a key or a type is wrong."""
    assert not SCHEMA.is_valid(yaml.safe_load(BROKEN))
    assert not SCHEMA.is_valid([])
    assert fits(**STEP)


@pytest.mark.parametrize(
    "changed",
    [
        {"name": "if a"},
        {"name": "inputs"},
        {"kind": "cal"},
        {"kind": "approval"},
        {"message": "?"},
        {"function": 3},
        {"needs": "a"},
        {"when": "text"},
        {"when": ["a"]},
        {"run": "never"},
        {"on_error": "ignore"},
        {"timeout": 0},
        {"retry": {"attempts": 101}},
        {"retry": {"times": 1}},
        {"estimate": {"usd": -1}},
        {"loop": {"to": "a", "while": "${true}", "max": 101}},
        {"loop": {"to": "a"}},
        {"stepz": 1},
    ],
    ids=str,
)
def test_the_schema_refuses_a_step_that_reading_refuses(changed: dict[str, Any]) -> None:
    """Keys by kind, types and ranges."""
    assert not fits(**STEP | changed)


def test_the_schema_knows_the_kinds() -> None:
    """Their required keys, also under the other word; and those that another package adds."""
    assert not fits(name="a")
    assert not fits(name="a", agent="workflow")
    assert fits(name="a", agent="approval", message="?")
    own = {**STEP_KINDS, "own": StepKind(options=frozenset({"colour"}), required=frozenset({"colour"}))}
    schema = jsonschema_rs.validator_for(workflow_schema(own))
    assert schema.is_valid({"name": "w", "steps": [{"name": "a", "kind": "own", "colour": "red"}]})
    assert not schema.is_valid({"name": "w", "steps": [{"name": "a", "kind": "own"}]})
