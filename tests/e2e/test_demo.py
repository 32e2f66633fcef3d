"""`smr demo`: its story comes true on real sockets with the real model, and one that did not is not told as true."""

from __future__ import annotations

import io
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.cli.demo import Narrator, Story
from smart_model_router.cli.demo_fleet import (
    LAST_RESORT,
    MODEL,
    REMOTES,
    DemoFigures,
    DemoFleet,
    Expectation,
    configuration,
    half_open_spans,
    most_at_once,
    trips,
    waited_after_429,
)
from smart_model_router.config import RouterConfig
from smart_model_router.domain.events import BreakerChanged
from smart_model_router_providers.fault import Fault, RecordedRequest
from smart_model_router_providers.local import install
from tests.e2e.command import program

pytestmark = pytest.mark.alone
SECONDS = 600.0
"""When a demo that does not end fails its test, on a machine that is busy with other things, too."""


def run_demo(**environment: str) -> subprocess.CompletedProcess[str]:
    """Run `smr demo --json` to its end."""
    return subprocess.run(
        [program(), "demo", "--json"],
        env=os.environ | environment,
        capture_output=True,
        encoding="utf-8",
        timeout=SECONDS,
        check=False,
    )


@dataclass(frozen=True, slots=True)
class Played:
    """One run of the demo: exit code, the object of its last line, and the story it told."""

    code: int
    figures: dict[str, Any]
    story: str


@pytest.fixture(scope="module")
def played() -> Played:
    """The demo, run once."""
    install(print)
    done = run_demo()
    assert done.stdout, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])
    return Played(done.returncode, figures, done.stderr)


@pytest.mark.timeout(SECONDS + 60)
def test_every_question_is_answered(played: Played) -> None:
    """The demo ends by itself with 0, and no question stays unanswered while the fleet fails."""
    assert played.code == 0, played.story
    assert played.figures["failed"] == 0
    assert played.figures["answered"] == played.figures["requests"] == sum(played.figures["served_by"].values())


@pytest.mark.timeout(SECONDS + 60)
def test_a_breaker_opens_is_probed_once_and_closes(played: Played) -> None:
    """With twenty questions at the moment of recovery one probe is in flight; then the breaker closes."""
    assert played.figures["breaker_opened"] >= 1
    assert played.figures["breaker_closed"] >= 1
    assert played.figures["probes_max_in_flight"] == 1
    assert played.figures["primary_share"] >= 0.8


@pytest.mark.timeout(SECONDS + 60)
def test_a_retry_after_of_three_seconds_is_waited_exactly(played: Played) -> None:
    """The provider that said 429 with Retry-After 3 receives its next request after that, not after a wait of ours."""
    assert 3.0 <= played.figures["retry_after_waited_seconds"] < 10


@pytest.mark.timeout(SECONDS + 60)
def test_the_real_model_answers_an_outage_and_is_marked(played: Played) -> None:
    """When everything remote is gone the embedded model answers, and each of its answers is marked degraded."""
    figures = played.figures
    assert figures["local_answers"] >= 4
    assert figures["degraded"] >= figures["local_answers"] == figures["served_by"][LAST_RESORT]
    assert f"served by {LAST_RESORT} (the last resort" in played.story


def test_without_the_model_it_says_how_to_install_it(tmp_path: Path) -> None:
    """Exit code 3, and the command that installs the model: for people, and in the one object of --json."""
    done = run_demo(SMART_ROUTER_DATA_DIR=str(tmp_path))
    assert done.returncode == 3
    assert "smr local install" in done.stderr
    assert "smr local install" in json.loads(done.stdout)["error"]["message"]


def test_a_slow_machine_has_as_long_to_load_the_model_as_to_answer() -> None:
    """Found on a busy machine: the model was given up after 30 s of loading, whatever its target's timeout."""
    config = RouterConfig.from_mapping(configuration(dict.fromkeys(REMOTES, "http://127.0.0.1:9/v1")))
    last_resort = config.models[MODEL].last_resort
    assert last_resort is not None
    assert [last.timeout for last in last_resort] == [config.local.start_timeout]


class SoundFleet(DemoFleet):
    """A fleet that does not fail when it is told to."""

    def fail(self, *faults: Fault, at: tuple[str, ...] = ()) -> None:
        """Do nothing."""


@pytest.mark.asyncio
async def test_a_story_that_did_not_happen_is_not_told_as_true() -> None:
    """Where nothing fails nothing is measured: the demo says NOT SO for each promise, and would exit with 1."""
    told = io.StringIO()
    async with SoundFleet() as fleet:
        figures = await Story(fleet, Narrator(told)).play()
    broken = {expectation.text for expectation in figures.expectations if not expectation.came_true}
    assert not figures.as_promised
    assert {
        "the breaker of atlas opens",
        "the local model answers every question",
        "never two probes at once",
    } <= broken
    assert (figures.breaker_opened, figures.probes, figures.retry_after_waited_seconds) == (0, 0, None)
    assert "[NOT SO] the breaker of atlas opens (closed)" in told.getvalue()


def test_one_broken_promise_is_enough() -> None:
    """All but one came true is not as promised."""
    kept, broken = Expectation("a", came_true=True, measured=""), Expectation("b", came_true=False, measured="")
    assert DemoFigures(expectations=[kept]).as_promised
    assert not DemoFigures(expectations=[kept, broken]).as_promised


def arrival(at: float, *, status: int = 200, ended_at: float | None = None, stream: bool = False) -> RecordedRequest:
    """A request as a fault server keeps it."""
    return RecordedRequest(at, "chat", "/", "m", {}, {}, status=status, ended_at=ended_at, stream=stream)


def moved(at: float, from_state: str, to_state: str, open_until: float | None = None) -> BreakerChanged:
    """A breaker of `a/m` that moved."""
    return BreakerChanged(
        at=at, owner="a/m", kind="whole", from_state=from_state, to_state=to_state, reason="", open_until=open_until
    )


def test_the_wait_is_that_after_the_429() -> None:
    """It is measured from the refused call to the next one, whenever the others came."""
    assert waited_after_429([arrival(0), arrival(1, status=429), arrival(4.5), arrival(5)]) == 3.5
    assert waited_after_429([arrival(0), arrival(1, status=429)]) is None


def test_only_trips_are_openings() -> None:
    """A failed probe reopens a breaker; it did not open once more."""
    events = [moved(0, "closed", "open", 3), moved(4, "half_open", "open", 8), moved(9, "half_open", "closed")]
    assert (trips(events, "open"), trips(events, "closed")) == (1, 1)


def test_two_calls_while_half_open_would_be_seen() -> None:
    """Calls that arrive between the probe's due time and the breaker's move are counted, and no others."""
    events = [moved(1, "closed", "open", 4), moved(6, "half_open", "closed")]
    calls = [arrival(0.5, ended_at=1), arrival(4.1, ended_at=6), arrival(4.2, ended_at=5), arrival(6.1, ended_at=7)]
    streams = [arrival(4.3, ended_at=5, stream=True)]
    assert half_open_spans(events, "a/m", [*calls, *streams]) == [[(4.1, 6), (4.2, 5)]]
    assert most_at_once([(4.1, 6), (4.2, 5)]) == 2


def test_one_after_the_other_is_one_at_once() -> None:
    """Spans that touch do not overlap."""
    assert most_at_once([(0, 1), (1, 2), (2, 3)]) == 1
    assert most_at_once([]) == 0
