"""`make bench-peers` and `make bench-machine-peers` have no peer here, but their lanes work: drivers, and figures."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest
from benchmarks.machine_peers.fleets import OURS, Reads, ready
from benchmarks.peers.playing import Scene, play
from benchmarks.peers.rows import ROWS
from benchmarks.peers.scenes import of_two_keys

from smart_model_router_providers.fault import Fault, FaultServer


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


@pytest.mark.asyncio
async def test_the_processes_of_a_fleet_share_a_server_and_are_told_apart() -> None:
    """Each plays rounds of callers that ask again; the provider sees their requests, and the server is asked."""
    async with (
        FaultServer(keep_requests=100_000) as provider,
        ready([OURS], provider.base_url, processes=2) as members,
    ):
        reads = Reads(members[0].server)
        told = await asyncio.gather(*(one.driver.round(within=1.0, callers=2, seconds=0.5) for one in members))
        seen = Counter(request.body["messages"][0]["content"] for request in provider.requests)
        assert reads.stop() > 0
    assert members[0].server is members[1].server
    for number, each in enumerate(told):
        assert {request["error"] for request in each["requests"]} == {None}
        assert 0 < len(each["requests"]) <= seen[f"p{number}"]
