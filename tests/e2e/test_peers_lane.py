"""`make bench-peers` has no peer here, but its lane works: a driver in its own process, figures from both sides."""

from __future__ import annotations

import pytest
from benchmarks.peers.playing import Scene, play
from benchmarks.peers.rows import ROWS
from benchmarks.peers.scenes import of_two_keys

from smart_model_router_providers.fault import Fault


@pytest.mark.asyncio
async def test_a_row_is_played_and_counted() -> None:
    """Every request is told by its caller and every call by its server, warm-up left out."""
    scene = Scene(
        "one refusal",
        servers=([Fault.status(429, headers={"retry-after": "1"}, times=1)],),
        keys=("k1", "k2"),
        arrivals=(0.0, 0.3),
        timeout=10.0,
    )
    played = await play(ROWS[0], scene)
    assert [request["error"] for request in played.requests] == [None, None]
    refused, *served = [(call.status, call.key) for call in played.calls[0]]
    first, second = sorted(("k1", "k2"), key=lambda key: key != refused[1])  # equals: either is asked first
    assert (refused, served) == ((429, first), [(200, second)] * 2)
    assert {"answered": "2 of 2", "429s of the worse key": "1", "wasted calls": "1"}.items() <= of_two_keys(
        played
    ).items()
