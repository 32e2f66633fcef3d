"""MemoryStore beyond what every store promises: what it kept can be read, and is bounded."""

from __future__ import annotations

from smart_model_router.domain.events import AttemptFinished
from smart_model_router_stats.memory import MemoryStore


def observation(at: float) -> AttemptFinished:
    """A success that ended at `at`."""
    return AttemptFinished(at=at, admitted_at=0.0, target="a/big", provider="a", model="big", stream=False, seconds=at)


def test_the_newest_observations_are_kept_whole() -> None:
    """The store gives back the newest observations as they came, oldest first, and no more than its limit."""
    store = MemoryStore(limit=2)
    for at in (1.0, 2.0, 3.0):
        store.observe(observation(at))
    assert store.observations == (observation(2.0), observation(3.0))


def test_totals_count_what_the_list_let_go() -> None:
    """The limit bounds the list of observations, not the totals."""
    store = MemoryStore(limit=2)
    for at in (1.0, 2.0, 3.0):
        store.observe(observation(at))
    assert store.totals == {("a/big", None): 3}
