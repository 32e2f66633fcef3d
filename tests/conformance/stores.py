"""What every StatsStore promises, as an importable suite: subclass it, say how to open and read yours."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from smart_model_router.domain.events import AttemptFinished
from smart_model_router.domain.outcome import FailureClass, Usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from smart_model_router.domain.ports import StatsStore

Totals = dict[tuple[str, FailureClass | None], int]


def observation(target: str, failure: FailureClass | None = None) -> AttemptFinished:
    """One attempt at `target` that came to `failure`, or to an answer."""
    return AttemptFinished(
        at=10.0,
        admitted_at=8.0,
        target=target,
        provider="a",
        model="big",
        stream=False,
        seconds=2.0,
        failure_class=failure,
        usage=Usage(10, 20) if failure is None else None,
    )


class StatsStoreContract(ABC):
    """The promises. A subclass named Test… makes pytest run them."""

    @abstractmethod
    async def open(self) -> StatsStore:
        """A new, empty store."""

    @abstractmethod
    async def totals(self, store: StatsStore) -> Mapping[tuple[str, FailureClass | None], int]:
        """How many observations a closed store holds by (target id, class); None is a success."""

    async def kept(self, store: StatsStore) -> Totals:
        """Close the store and read it."""
        await store.aclose()
        return dict(await self.totals(store))

    @pytest.mark.asyncio
    async def test_what_was_observed_is_there_after_closing(self) -> None:
        """Closing writes what is left: nothing observed before is missing, nothing is there twice."""
        store = await self.open()
        for _ in range(3):
            store.observe(observation("a/big"))
        assert await self.kept(store) == {("a/big", None): 3}

    @pytest.mark.asyncio
    async def test_targets_and_classes_are_told_apart(self) -> None:
        """Every class of failure, and success, is counted by itself for each target."""
        store = await self.open()
        causes = [None, *FailureClass]
        expected: Totals = {}
        for number, cause in enumerate(causes, start=1):
            for target in ("a/big", "a/big#2"):
                expected[target, cause] = number
                for _ in range(number):
                    store.observe(observation(target, cause))
        assert await self.kept(store) == expected

    @pytest.mark.asyncio
    async def test_concurrent_observers_lose_nothing(self) -> None:
        """Tasks that observe by turns add up."""
        store = await self.open()

        async def observe(target: str) -> None:
            for _ in range(50):
                store.observe(observation(target))
                await asyncio.sleep(0)

        targets = [f"a/m{number % 4}" for number in range(8)]
        await asyncio.gather(*(observe(target) for target in targets))
        assert await self.kept(store) == Counter({(target, None): 100 for target in targets})

    @pytest.mark.asyncio
    async def test_observing_gives_nobody_else_a_turn(self) -> None:
        """`observe` returns at once: the loop does not run meanwhile, so it can stand on the request path."""
        store = await self.open()
        turns: list[str] = []
        asyncio.get_running_loop().call_soon(turns.append, "another")
        for _ in range(100):
            store.observe(observation("a/big"))
        assert turns == []
        assert await self.kept(store) == {("a/big", None): 100}

    @pytest.mark.asyncio
    async def test_closing_twice_is_harmless(self) -> None:
        """The second `aclose` neither fails nor writes anything again."""
        store = await self.open()
        store.observe(observation("a/big"))
        await store.aclose()
        assert await self.kept(store) == {("a/big", None): 1}

    @pytest.mark.asyncio
    async def test_an_observation_after_closing_is_dropped(self) -> None:
        """A call that ends while the router closes may still report: it does no harm and is not kept."""
        store = await self.open()
        store.observe(observation("a/big"))
        await store.aclose()
        store.observe(observation("a/big"))
        assert await self.kept(store) == {("a/big", None): 1}

    @pytest.mark.asyncio
    async def test_stores_share_nothing(self) -> None:
        """Two stores opened side by side do not see each other's observations."""
        one, other = await self.open(), await self.open()
        one.observe(observation("a/big"))
        assert await self.kept(other) == {}
        assert await self.kept(one) == {("a/big", None): 1}
