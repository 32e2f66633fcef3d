"""`defaults` of a target: what a request has at one target and not at another."""

from __future__ import annotations

import json
from typing import Any

import pytest

from smart_model_router.testing import FakeProvider
from tests.world import DOWN, virtual, world

HELLO = [{"role": "user", "content": "hello"}]
THINKING = {"type": "enabled", "budget_tokens": 1024}


def targets(wire: str) -> dict[str, Any]:
    """`smart` at a target with defaults that speaks `wire`, then at one without."""
    first = {"target": "a/big", "defaults": {"temperature": 0.5, "max_tokens": 77, "thinking": THINKING}}
    return {
        "config": {"models": {"smart": {"tiers": [{"targets": [first, "b/big"]}], "last_resort": []}}},
        "kinds": {"a": {"wires": [wire]}},
    }


@pytest.mark.parametrize("wire", ["chat", "messages"])
@virtual
async def test_a_target_adds_its_defaults_whatever_it_speaks(wire: str) -> None:
    """Passed through and translated alike; the next target is sent what the caller said."""
    made = world(["a/big", "b/big"], replies={"a": FakeProvider(DOWN)}, **targets(wire))
    await made.router.chat({"model": "smart", "messages": HELLO, "temperature": 1})
    sent = json.loads(made.providers["a"].calls[0].payload)
    assert (sent["temperature"], sent["max_tokens"], sent["thinking"]) == (1, 77, THINKING)
    other = json.loads(made.providers["b"].calls[0].payload)
    assert other.keys() & {"max_tokens", "thinking"} == set()


@virtual
async def test_a_dialect_without_thinking_gets_it_by_translation() -> None:
    """Responses has no `thinking`: a Messages target has it all the same."""
    made = world(["a/big", "b/big"], **targets("messages"))
    await made.router.responses({"model": "smart", "input": "hello"})
    sent = json.loads(made.providers["a"].calls[0].payload)
    assert (sent["max_tokens"], sent["thinking"]) == (77, THINKING)
