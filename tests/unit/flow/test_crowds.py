"""Requests that meet targets which are all full."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from smart_model_router.core.selection import Candidate, View
from smart_model_router.testing import FakeProvider, FakeReply
from tests.world import World, served_by, steady, virtual, world


class LastFirst:
    """The configured order from its end, and how often it was asked for."""

    redistributes = False
    asked = 0

    def order(self, candidates: Sequence[Candidate], view: View, now: float, roll: float) -> list[Candidate]:
        """Count."""
        del view, now, roll
        self.asked += 1
        return list(reversed(candidates))


LAST_FIRST = LastFirst()


def narrow(names: str = "ab", *, strategy: str = f"{__name__}:LAST_FIRST") -> World:
    """Targets with one slot each, whose calls take a second."""
    return world(
        [f"{name}/m" for name in names],
        replies={name: FakeProvider(FakeReply(seconds=1.0)) for name in names},
        kinds={name: {"bulkhead": 1} for name in names},
        config={"routing": {"strategy": strategy}},
    )


@virtual
async def test_a_request_in_a_crowd_orders_no_targets_and_overtakes_none() -> None:
    """Neither when it finds them full, nor when a slot is free that an older request is about to take."""
    crowd = narrow()
    served: list[int] = []

    async def ask(number: int) -> None:
        assert await served_by(crowd, timeout=60.0) is not None
        served.append(number)

    tasks = [asyncio.ensure_future(ask(number)) for number in range(4)]
    await asyncio.sleep(0.1)
    before = LAST_FIRST.asked
    tasks.append(asyncio.ensure_future(ask(4)))
    await asyncio.sleep(0.9)  # the instant at which both calls end
    tasks.append(asyncio.ensure_future(ask(5)))
    await asyncio.sleep(0.1)
    assert LAST_FIRST.asked == before
    await asyncio.gather(*tasks)
    assert served == sorted(served)
    crowd.assert_idle()
    await crowd.router.aclose()


@virtual
async def test_a_crowd_at_one_target_keeps_no_request_from_the_best_of_the_others() -> None:
    """The waiters may go to the first alone; a request that may go to all three is served at once, by the last one."""
    crowd = narrow("abc")
    pinned = [asyncio.ensure_future(served_by(crowd, target="a/m", timeout=60.0)) for _ in range(3)]
    await asyncio.sleep(0.1)
    assert await served_by(crowd, timeout=1.05) == "c/m"
    await asyncio.gather(*pinned)
    crowd.assert_idle()
    await crowd.router.aclose()


@virtual
async def test_a_refusal_in_a_crowd_is_told_of_each_target() -> None:
    """The report names both, and what served in the end."""
    crowd = narrow()
    tasks = [asyncio.ensure_future(served_by(crowd, timeout=60.0)) for _ in range(3)]
    await asyncio.sleep(0.1)
    body = {"model": "smart", "messages": [{"role": "user", "content": "Hello!"}]}
    report = (await crowd.router.chat(body, timeout=60.0)).report
    assert {(refusal.target, refusal.reason) for refusal in report.refusals} == {
        ("a/m", "bulkhead"),
        ("b/m", "bulkhead"),
    }
    await asyncio.gather(*tasks)
    await crowd.router.aclose()


@virtual
async def test_a_conversation_that_met_a_crowd_stays_with_the_target_that_served_it() -> None:
    """Whichever of the two was free first, and whichever the conversation would have begun at."""
    crowd = narrow(strategy="health")
    for number in range(8):
        session = f"conversation {number}"
        free_first = "ab"[number % 2]
        for name in "ab":
            crowd.providers[name].set(FakeReply(seconds=1.0 if name == free_first else 9.0))
        others = [asyncio.ensure_future(served_by(crowd, target=f"{name}/m", timeout=60.0)) for name in "ab"]
        await asyncio.sleep(0.1)
        others.append(asyncio.ensure_future(served_by(crowd, target=f"{'ba'[number % 2]}/m", timeout=60.0)))
        await asyncio.sleep(0.1)
        assert await served_by(crowd, session=session, timeout=60.0) == f"{free_first}/m"
        await asyncio.gather(*others)
        await served_by(crowd, target=f"{free_first}/m", timeout=60.0)  # without a home the other one is next
        assert await served_by(crowd, session=session, timeout=60.0) == f"{free_first}/m"
    crowd.assert_idle()
    await crowd.router.aclose()


@virtual
async def test_a_target_that_lost_its_place_is_looked_at_after_a_crowd() -> None:
    """It was slow before the crowd and all through it; quick again it has its place within half a minute."""
    w = world(
        ["a/m", "b/m"],
        kinds={name: {"bulkhead": 2} for name in "ab"},
        config={"resilience": {"patience": {"minimum": "10s"}}},
    )
    for name in "ab":
        w.providers[name].set(FakeReply(seconds=0.3))
        await served_by(w, stream=True, target=f"{name}/m")
    w.providers["a"].set(FakeReply(seconds=9.0))
    await steady(w, 30.0, stream=True)
    crowd = [asyncio.ensure_future(served_by(w, stream=True, timeout=600.0)) for _ in range(300)]
    await asyncio.gather(*crowd)
    w.providers["a"].set(FakeReply(seconds=0.3))
    await steady(w, 32.0, stream=True)
    assert set(await steady(w, 20.0, stream=True)) == {"a/m"}
    w.assert_idle()
    await w.router.aclose()
