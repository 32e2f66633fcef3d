"""What every ResponseStore promises, as an importable suite: subclass it, say how processes get at yours."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest

from smart_model_router.domain.shared_state import KeptResponse

if TYPE_CHECKING:
    from smart_model_router.domain.ports import ResponseStore

TTL = 100.0
MOST = 100_000
"""Bytes."""


def kept(number: int, *, parent: int | None = None, owner: str = "one", text: bytes = b"[]") -> KeptResponse:
    """An answer."""
    name = None if parent is None else f"resp_{parent}"
    return KeptResponse(id=f"resp_{number}", owner=owner, parent=name, input=text, answer=b'{"n":%d}' % number)


class ResponseStoreContract(ABC):
    """The promises. A subclass named Test… makes pytest run them."""

    @pytest.fixture(autouse=True)
    def _clock(self) -> None:
        self.now = 1_700_000_000.0

    def wall(self) -> float:
        """Epoch seconds, moved by hand."""
        return self.now

    @abstractmethod
    def process(self, *, ttl: float = TTL, most: int = MOST) -> ResponseStore:
        """One more process that shares what the others of this test share."""

    @pytest.mark.asyncio
    async def test_an_answer_comes_with_those_it_goes_on_from(self) -> None:
        """The newest first, in every process, whole."""
        one, other = self.process(), self.process()
        rows = (kept(1, text=b'["\xc3\xa9"]'), kept(2, parent=1), kept(3, parent=2), kept(9))
        await one.add(rows[:2])
        await other.add(rows[2:])
        for store in (one, other, self.process()):
            assert await store.chain("resp_3", "one") == (rows[2], rows[1], rows[0])
            assert await store.chain("resp_1", "one") == rows[:1]
            assert await store.chain("resp_4", "one") == ()
            await store.aclose()

    @pytest.mark.asyncio
    async def test_another_owner_finds_and_removes_nothing(self) -> None:
        """Not by the id itself, and not by going on from it."""
        store = self.process()
        await store.add((kept(1), kept(2, parent=1, owner="two")))
        assert await store.chain("resp_1", "two") == ()
        assert await store.chain("resp_2", "two") == (kept(2, parent=1, owner="two"),)
        assert not await store.remove("resp_1", "two")
        assert await store.chain("resp_1", "one") == (kept(1),)
        await store.aclose()

    @pytest.mark.asyncio
    async def test_what_was_removed_is_gone_everywhere_once(self) -> None:
        """And a chain ends where it was."""
        one, other = self.process(), self.process()
        await one.add((kept(1), kept(2, parent=1)))
        assert await other.remove("resp_1", "one")
        assert not await one.remove("resp_1", "one")
        assert await one.chain("resp_2", "one") == (kept(2, parent=1),)
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_an_answer_is_kept_as_long_as_one_that_goes_on_from_it(self) -> None:
        """Both end together; what nothing goes on from ends by itself."""
        store = self.process()
        await store.add((kept(1), kept(8)))
        self.now += TTL * 0.9
        await store.add((kept(2, parent=1),))
        self.now += TTL * 0.2
        assert await store.chain("resp_8", "one") == ()
        assert await store.chain("resp_2", "one") == (kept(2, parent=1), kept(1))
        self.now += TTL
        assert await store.chain("resp_2", "one") == ()
        await store.aclose()

    @pytest.mark.asyncio
    async def test_a_clock_that_goes_back_and_a_shorter_life_lengthen_nothing(self) -> None:
        """From the next answer on, what is there lives no longer than that."""
        store = self.process()
        await store.add((kept(1),))
        self.now -= 1_000
        brief = self.process(ttl=10.0)
        if brief.in_memory:
            brief = store
        await brief.add((kept(2),))
        self.now += TTL
        assert await store.chain("resp_1", "one") == ()
        await store.aclose()
        await brief.aclose()

    @pytest.mark.asyncio
    async def test_beyond_the_limit_the_oldest_go(self) -> None:
        """What something newer goes on from is as new as that; what is too large is not kept, and displaces nothing."""
        store, chance = self.process(), Random(1)
        sizes = {1: 10, 2: 30_000, 3: 30_000, 4: 30_000, 5: 60_000, 6: 110_000, 7: 10}
        for number, size in sizes.items():
            if number == 6:
                assert [len(await store.chain(f"resp_{n}", "one")) for n in range(1, 6)] == [1, 0, 0, 2, 1]
            row = kept(number, parent=1 if number == 4 else None, text=chance.randbytes(size))
            await store.add((row,))
            self.now += TTL / 100  # each is newer than the one before
        assert [len(await store.chain(f"resp_{n}", "one")) for n in range(1, 8)] == [1, 0, 0, 2, 1, 0, 1]
        await store.aclose()

    @pytest.mark.asyncio
    async def test_the_secret_is_the_same_for_all_and_stays(self) -> None:
        """Also of processes that ask at the same time."""
        stores = [self.process() for _ in range(4)]
        found = await asyncio.gather(*(store.secret() for store in stores))
        assert len(set(found)) == 1
        assert len(found[0]) >= 32
        for store in stores:
            await store.aclose()
        later = self.process()
        assert await later.secret() == found[0]
        await later.aclose()

    @pytest.mark.asyncio
    async def test_an_answer_that_is_kept_already_stays_as_it_is(self) -> None:
        """Told twice it counts once."""
        store = self.process()
        await store.add((kept(1),))
        await store.add((replace(kept(1), input=b"[1]"), kept(1)))
        assert await store.chain("resp_1", "one") == (kept(1),)
        await store.aclose()
        await store.aclose()
