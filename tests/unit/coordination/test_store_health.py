"""An outage of the shared state is told once, however its reasons alternate."""

from __future__ import annotations

import asyncio

from smart_model_router.coordination.store_health import RETRY_SECONDS, TOO_SLOW, StoreReachability
from tests.world import virtual, world


@virtual
async def test_an_outage_is_told_once() -> None:
    """A server that stands still is too slow at first, and a fault of the connection then, every second again."""
    clock = world(["a/m"]).state.clock
    told: list[str] = []
    reach = StoreReachability(clock, told.append)
    for _ in range(3):
        reach.lose(TOO_SLOW)
        reach.lose("no answer within 2 s")
    assert (told, reach.reason, reach.lost_at) == ([TOO_SLOW], "no answer within 2 s", clock.now())
    reach.regain()
    assert (told, reach.reason, reach.lost_at) == ([TOO_SLOW, ""], "", None)


@virtual
async def test_an_outage_that_is_told_twice_is_asked_about_no_later() -> None:
    """Half a second without an answer is a loss, and so is the end of that question: the next one does not wait."""
    clock = world(["a/m"]).state.clock
    reach = StoreReachability(clock, lambda _: None)
    reach.lose(TOO_SLOW)
    due = clock.now() + RETRY_SECONDS
    await asyncio.sleep(0.5)
    reach.lose("no answer within 1 s")
    assert reach.retry_at == due
    reach.lose("closed", again_in=0.0)
    assert reach.retry_at == clock.now()
    await asyncio.sleep(1.0)
    reach.lose(TOO_SLOW)
    assert reach.retry_at == clock.now() + RETRY_SECONDS
