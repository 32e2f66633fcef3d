"""An outage of the shared state is told once, however its reasons alternate."""

from __future__ import annotations

from smart_model_router.coordination.store_health import TOO_SLOW, StoreReachability
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
