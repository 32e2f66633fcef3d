"""The slots of a provider are each process's, or those of all processes that share a store."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from smart_model_router import ConfigurationError, SmartModelRouter
from smart_model_router.testing import FakeProvider, FakeReply
from tests.e2e.eventually import becomes


def router(path: Path, provider: FakeProvider, **given: str) -> SmartModelRouter:
    """One of the routers over a provider with a single slot."""
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid", "bulkhead": 1, **given}},
        "models": {"a": {"tiers": [{"targets": ["a/m"]}], "last_resort": []}},
        "store": {"path": str(path)},
    }
    return SmartModelRouter.from_config(config, providers={"a": provider})


@pytest.mark.asyncio
async def test_each_process_has_its_own_slots_unless_they_are_the_hosts(tmp_path: Path) -> None:
    """Two routers over one store and a slot each: both call at once."""
    provider = FakeProvider(FakeReply(seconds=600.0))
    path = tmp_path / "stats.db"
    async with router(path, provider) as one, router(path, provider) as other:
        body = {"model": "a", "messages": [{"role": "user", "content": "hello"}]}
        calls = [asyncio.create_task(made.chat(body, timeout=900.0)) for made in (one, other)]
        assert await becomes(lambda: provider.in_flight == 2)
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)


def test_a_scope_that_does_not_exist_is_an_error_that_names_the_ones_that_do(tmp_path: Path) -> None:
    """The key, and what would be right."""
    with pytest.raises(ConfigurationError, match=r"(?s)bulkhead_scope.*process.*host"):
        router(tmp_path / "stats.db", FakeProvider(), bulkhead_scope="fleet")
