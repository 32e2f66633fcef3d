"""The feed of the dashboard draws soon after a transition, and once a second without one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from smart_model_router.gateway.dashboard.dashboard_routes import SnapshotFeed
from tests.world import now, virtual


@virtual
async def test_a_transition_is_drawn_a_fifth_of_a_second_later() -> None:
    """The snapshot after it follows 0.2 s after the last one, or at once if that is older; others after 1 s."""
    drawn: list[float] = []

    async def draw() -> Mapping[str, Any]:
        drawn.append(round(now() - began, 3))
        return {}

    began, feed = now(), SnapshotFeed(draw)
    reader = feed.open()
    await asyncio.sleep(0.1)
    feed.tell({"to": "open"})
    assert b"transition" in reader.take()
    await asyncio.sleep(0.4)
    feed.tell({"to": "closed"})
    await asyncio.sleep(1.1)
    feed.close()
    assert drawn == [0.0, 0.2, 0.5, 1.5]
