"""A chaos test of your own: pull providers away and assert what your users would see.

Run: pytest examples/chaos_test.py

The `fault_server` fixture comes with smart-model-router (a pytest plugin): real sockets, scripted faults, and a
count of what did, and what did not, reach the provider.
"""

from __future__ import annotations

import time

import pytest

from smart_model_router import SmartModelRouter
from smart_model_router_providers.fault import Fault
from smart_model_router_providers.testing import FaultServerFactory

QUESTION = {"model": "smart", "messages": [{"role": "user", "content": "Are you there?"}]}


def fleet(primary: str, backup: str) -> SmartModelRouter:
    """The router under test: in your project this is your own configuration with the base URLs replaced."""
    return SmartModelRouter.from_config(
        {
            "version": 1,
            "providers": {
                "primary": {"kind": "openai_compatible", "base_url": primary, "api_key": "k"},
                "backup": {"kind": "openai_compatible", "base_url": backup, "api_key": "k"},
            },
            "models": {"smart": {"tiers": [{"targets": ["primary/big", "backup/big"]}], "last_resort": []}},
        }
    )


@pytest.mark.asyncio
async def test_a_dead_primary_costs_nobody_an_answer(fault_server: FaultServerFactory) -> None:
    """Twenty questions, twenty answers, and the dead primary is left alone after two failures."""
    dead, alive = fault_server([Fault.status(500)]), fault_server()
    async with fleet(dead.base_url, alive.base_url) as router:
        targets = [(await router.chat(QUESTION)).report.target for _ in range(20)]
    assert targets == ["backup/big"] * 20
    assert dead.calls() <= 3


@pytest.mark.asyncio
async def test_a_rate_limit_is_waited_for_exactly(fault_server: FaultServerFactory) -> None:
    """A provider that says 'one second' is asked again after one second, not after two minutes."""
    limited = fault_server([Fault.status(429, headers={"retry-after": "1"}, times=1)])
    dead = fault_server([Fault.status(500)])
    async with fleet(limited.base_url, dead.base_url) as router:
        started = time.monotonic()
        reply = await router.chat(QUESTION)
    assert reply.report.target == "primary/big"
    assert 1.0 <= time.monotonic() - started < 60
    assert limited.calls() == 2


@pytest.mark.asyncio
async def test_a_cut_before_the_first_word_is_never_seen(fault_server: FaultServerFactory) -> None:
    """A stream that dies before its first content is answered by the other provider; only the report tells."""
    cut, alive = fault_server([Fault.cut(after=0)]), fault_server()
    async with fleet(cut.base_url, alive.base_url) as router:
        stream = router.stream_chat(QUESTION)
        text = "".join([c["delta"].get("content") or "" async for chunk in stream for c in chunk["choices"]])
    assert "Are you there?" in text
    assert stream.report.target == "backup/big"
    assert [a.target for a in stream.report.attempts if a.failure_class] == ["primary/big"] * 2
