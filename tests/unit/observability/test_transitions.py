"""State changes are told alike, whether they happen here or are read off a statistics file."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from smart_model_router.domain.events import (
    BreakerChanged,
    Event,
    OfflineChanged,
    OperatorSpoke,
    ProbeStarted,
    RequestShed,
    RestStarted,
    SheddingChanged,
    StoreChanged,
)
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.observability.dashboard_history import MOVES, DashboardHistory, move_of
from smart_model_router.observability.store_snapshot import StoreSnapshot
from smart_model_router_stats.delta import KEPT_EVENTS
from smart_model_router_stats.reading import FileReader
from smart_model_router_stats.sqlite import SqliteStore

AT = time.monotonic()
WALL = 1_700_000_000.0
OPENED = BreakerChanged(
    at=AT, owner="a/big", kind="whole", from_state="closed", to_state="open", reason="ratio", open_until=AT + 30.0
)
RESTS = RestStarted(
    at=AT, target="a/big", reason="wait", seconds=3.0, failure_class=FailureClass.RATE_LIMITED, hinted=True
)
ISOLATED = OperatorSpoke(at=AT, target="a/big", word="isolate", by="ada", why="it lies", since=WALL, heard=True)
TOLD: list[tuple[Event, str, str, bool]] = [
    (OPENED, "breaker", "a/big", True),
    (RESTS, "rest", "a/big", True),
    (ISOLATED, "operator", "a/big", True),
    (replace(ISOLATED, word="enable", why=""), "operator", "a/big", False),
    (OfflineChanged(at=AT, offline=True), "offline", "network", True),
    (OfflineChanged(at=AT, offline=False), "offline", "network", False),
    (SheddingChanged(at=AT, shedding=True, open_ratio=1.0), "shedding", "router", True),
    (SheddingChanged(at=AT, shedding=False, open_ratio=1.0), "shedding", "router", False),
    (StoreChanged(at=AT, store="state", degraded=True, reason="locked"), "store", "state store", True),
    (StoreChanged(at=AT, store="state", degraded=False, reason=""), "store", "state store", False),
    (ProbeStarted(at=AT, target="a/big", kind="stream"), "probe", "a/big", False),
    (RequestShed(at=AT, request_id="req-1", criticality="sheddable", retry_after=1.0), "shed", "req-1", True),
]


@pytest.mark.asyncio
async def test_a_file_tells_what_was_told_live(tmp_path: Path) -> None:
    """The same words, the same kind, and bad where it is a turn for the worse, not where a figure happens to be 1."""
    path, recorder = tmp_path / "s.db", DashboardHistory()
    store = SqliteStore(path, wall=lambda: WALL)
    for event, *_ in TOLD:
        store.emit(event)
        recorder.emit(event)
    await store.aclose()
    stored = list(reversed(StoreSnapshot(FileReader(path, path)).picture(WALL)["transitions"]))
    assert [(move["kind"], move["subject"], move["bad"]) for move in stored] == [(*told,) for _, *told in TOLD]
    live = [move.to_dict() for move in recorder.transitions]
    words = ("kind", "subject", "state", "text", "bad")
    assert [[move[word] for word in words] for move in live] == [[move[word] for word in words] for move in stored[:10]]


def test_every_event_that_a_file_keeps_has_its_words() -> None:
    """And one of a newer version is told as it is."""
    assert set(MOVES) == {kind.__name__ for kind in KEPT_EVENTS}
    assert move_of("FloodStarted", {"depth": 1, "by": None}) == ("FloodStarted", "FloodStarted", "", "depth 1", False)
