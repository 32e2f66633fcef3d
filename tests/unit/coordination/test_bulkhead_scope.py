"""The slots of a provider are each process's, or those of all processes that share a store."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from smart_model_router import ConfigurationError, SmartModelRouter
from smart_model_router.coordination import store_health
from smart_model_router.domain.outcome import Outcome
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.domain.shared_state import SlotScope, slot_scope
from smart_model_router.testing import FakeProvider
from smart_model_router_providers.catalog import KINDS
from tests.e2e.eventually import PATIENCE, becomes

ASK = {"model": "a", "messages": [{"role": "user", "content": "hello"}]}


class HeldProvider(FakeProvider):
    """Answers when `let_go` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.let_go = asyncio.Event()
        self.held = 0

    async def call(self, call: ProviderCall) -> Outcome:
        """Wait for it."""
        self.held += 1
        await self.let_go.wait()
        return await super().call(call)


@pytest.fixture(autouse=True)
def _the_store_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that is slow because the machine is busy is the subject of other tests."""
    monkeypatch.setattr(store_health, "SLOW_SECONDS", PATIENCE)


def router(path: Path, provider: FakeProvider, **given: Any) -> SmartModelRouter:
    """One of the routers over a provider."""
    config = {
        "version": 1,
        "providers": {"a": {"kind": "openai_compatible", "base_url": "http://fake.invalid", **given}},
        "models": {"a": {"tiers": [{"targets": ["a/m"]}], "last_resort": []}},
        "store": {"path": str(path)},
    }
    return SmartModelRouter.from_config(config, providers={"a": provider})


@pytest.mark.parametrize(
    ("given", "most"),
    [
        ([{"bulkhead": 1}] * 2, 1),
        ([{"bulkhead": 1, "bulkhead_scope": "process"}] * 2, 2),
        ([{"bulkhead": 1, "api_key": key} for key in ("one", "other")], 2),
        ([{}] * 2, 2 * KINDS["openai_compatible"].bulkhead),
    ],
)
@pytest.mark.asyncio
async def test_written_slots_are_those_of_the_host(tmp_path: Path, given: list[dict[str, Any]], most: int) -> None:
    """Of two routers with one slot one calls at a time; with other keys, or the catalog's number, each has its own.

    All others wait, and are served.
    """
    provider = HeldProvider()
    path = tmp_path / "stats.db"
    async with router(path, provider, **given[0]) as one, router(path, provider, **given[1]) as other:
        sent = most + 2
        calls = [asyncio.create_task(made.chat(ASK, timeout=900.0)) for made in (one, other) for _ in range(sent)]
        rooms = [made._state.wait_queue for made in (one, other)]
        assert await becomes(lambda: provider.held + sum(room.waiting for room in rooms) == 2 * sent)
        assert provider.held == most
        provider.let_go.set()
        await asyncio.wait_for(asyncio.gather(*calls), PATIENCE)


@pytest.mark.parametrize(
    ("configured", "written", "embedded", "scope"),
    [
        (None, True, False, "host"),
        (None, False, False, "process"),
        (None, True, True, "process"),
        ("host", False, True, "host"),
        ("process", True, False, "process"),
        ("fleet", False, False, "fleet"),
    ],
)
def test_the_scope_of_slots(configured: SlotScope | None, scope: str, *, written: bool, embedded: bool) -> None:
    """A written number is the host's, the catalog's each process's, unless the configuration says otherwise."""
    assert slot_scope(configured, written=written, embedded=embedded) == scope


def test_a_scope_that_does_not_exist_is_an_error_that_names_the_ones_that_do(tmp_path: Path) -> None:
    """The key, and what would be right."""
    with pytest.raises(ConfigurationError, match=r"(?s)bulkhead_scope.*process.*host.*fleet"):
        router(tmp_path / "stats.db", FakeProvider(), bulkhead_scope="machine")
