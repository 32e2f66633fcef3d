"""Requests that meet targets which are all full."""

from __future__ import annotations

import asyncio

from smart_model_router.testing import FakeProvider, FakeReply
from tests.world import World, served_by, virtual, world


def full(*, seconds: float = 1.0) -> World:
    """Two targets with one slot each."""
    replies = {name: FakeProvider(FakeReply(seconds=seconds)) for name in "ab"}
    return world(
        ["a/m", "b/m"],
        replies=replies,
        kinds={name: {"bulkhead": 1} for name in "ab"},
    )


@virtual
async def test_a_refusal_in_a_crowd_is_told_of_each_target() -> None:
    """The report names both, and what served in the end."""
    crowd = full()
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
