"""Runs of the gateway in workers that are killed or stopped: another one goes on, and nothing is lost or told twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest

from smart_model_router_research.deep import verify
from tests.e2e.gateways import becomes
from tests.e2e.research_gateway import ADMIN, LONG, OTHER, TEAM, TOPIC, ResearchGateway, research_gateway
from tests.research_worlds import comparable
from tests.store_files import one


def told_of(gateway: ResearchGateway, run: str, column: str) -> str:
    """Return what the file says of a run."""
    return str(one(gateway.folder / "data" / "runs.db", f"SELECT {column} FROM runs WHERE id = '{run}'"))


def followed(gateway: ResearchGateway, run: str, events: list[Mapping[str, Any]]) -> None:
    """Read the events of a run to its end, on as many connections as that takes."""

    def read() -> bool:
        after = events[-1]["seq"] if events else 0
        try:
            events.extend(gateway.events(run, after=after))
        except httpx2.TransportError:  # the worker was killed
            return False
        return bool(events) and events[-1]["kind"] == "finished"

    assert becomes(read)


def is_as_undisturbed(gateway: ResearchGateway, run: str) -> bool:
    """Return whether the files of a run are those of another one with the same inputs, which nothing disturbs."""
    again = gateway.begin(LONG, model="smart")
    assert gateway.ended(again)["status"] == "completed"
    assert verify(gateway.runs_folder / run).is_sound
    return comparable(gateway.runs_folder / run) == comparable(gateway.runs_folder / again)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ResearchGateway]:
    """A gateway of two workers, which hear of a cancellation within a tenth of a second."""
    folder = tmp_path_factory.mktemp("pair")
    store = {"path": str(folder / "stats.db")}
    with research_gateway(folder, "--workers", "2", store=store, workflows={"heartbeat": 0.1}) as gateway:
        yield gateway


def test_another_worker_goes_on_with_the_run_of_one_that_was_killed(pair: ResearchGateway) -> None:
    """It ends once, with the same report; its reader, on any worker, gets each event once."""
    before = pair.model.calls()
    run = pair.begin_endless()
    assert becomes(lambda: pair.model.calls() > before)  # and that call is never answered
    pair.model.set(None)
    os.kill(int(told_of(pair, run, "owner").split(":")[1]), signal.SIGKILL)
    events: list[Mapping[str, Any]] = []
    followed(pair, run, events)
    told = pair.ended(run)
    assert list(pair.events(run)) == events
    assert (told["state"], told["status"], told["delivery"]) == ("completed", "completed", "full")
    assert [each["kind"] for each in events].count("finished") == 1
    assert [each["data"]["state"] for each in events if each["kind"] == "run"] == ["run_started", "run_resumed"]
    seqs = [each["seq"] for each in events]
    assert seqs == sorted(set(seqs))
    assert is_as_undisturbed(pair, run)


def test_a_run_of_another_process_is_cancelled(pair: ResearchGateway, tmp_path: Path) -> None:
    """The one that is asked tells the one that has it, which hears of it at its next heartbeat."""
    with research_gateway(tmp_path, data=pair.folder / "data") as other:
        run = pair.begin_endless()
        answer = other.ask("POST", f"/research/{run}/cancel")
        assert answer.json()["state"] in ("running", "cancelled")
        assert answer.status_code == (202 if answer.json()["state"] == "running" else 200)
        assert pair.ended(run)["state"] == other.state(run) == "cancelled"


def test_the_next_start_goes_on_with_the_run_of_a_gateway_that_was_stopped(tmp_path: Path) -> None:
    """SIGTERM ends streams and breaks the run off at once; it belongs to its key then as before."""
    events: list[Mapping[str, Any]] = []
    with research_gateway(tmp_path) as gateway:
        run = gateway.begin_endless()
        reading = gateway.events(run)
        events.append(next(reading))
        assert gateway.served.stop() == 0
        events.extend(reading)  # it ends, and not in the middle of an event
    assert events[-1]["kind"] != "finished"
    assert one(tmp_path / "data" / "runs.db", "SELECT state || owner FROM runs") == "running"

    with research_gateway(tmp_path) as gateway:
        assert gateway.ask("GET", f"/research/{run}", OTHER).status_code == 404
        followed(gateway, run, events)
        assert gateway.ended(run)["status"] == "completed"
        assert list(gateway.events(run)) == events
        assert is_as_undisturbed(gateway, run)


def test_a_run_of_a_key_that_is_gone_waits_for_it(tmp_path: Path) -> None:
    """It goes on for the account of no other key: an admin sees it interrupted, and may cancel it."""
    with research_gateway(tmp_path) as gateway:
        run = gateway.begin_endless()
        gateway.served.stop()
    keys = {"other": {"key": "other-key"}, "boss": {"key": "admin-key", "admin": True}}
    with research_gateway(tmp_path, keys=keys) as gateway:
        gateway.ended(gateway.begin(TOPIC, OTHER), OTHER)  # by then the other one would be gone on with, too
        told = gateway.ask("GET", f"/research/{run}", ADMIN).json()
        assert (told["state"], told["key"]) == ("interrupted", None)
        assert gateway.ask("GET", f"/research/{run}", TEAM).status_code == 401
        reading = gateway.events(run, ADMIN)
        assert next(reading)["kind"] == "run"
        gateway.served.process.send_signal(signal.SIGHUP)  # a reader stays where it is over a reload
        log = gateway.served.file.parent / "gateway.log"
        assert becomes(lambda: "the new configuration is in use" in log.read_text(encoding="utf-8"))
        for _ in range(3):
            gateway.ended(gateway.begin(TOPIC, OTHER), OTHER)
        assert gateway.ask("POST", f"/research/{run}/cancel", ADMIN).json()["state"] == "cancelled"
        assert list(reading)[-1]["kind"] == "finished"


def test_a_run_goes_on_over_a_reload(tmp_path: Path) -> None:
    """In the configuration that it began with; the new one knows it as well, and lets the old one go with its end."""
    with research_gateway(tmp_path) as gateway:
        run = gateway.begin(LONG)
        gateway.served.process.send_signal(signal.SIGHUP)
        log = gateway.served.file.parent / "gateway.log"
        assert becomes(lambda: "the new configuration is in use" in log.read_text(encoding="utf-8"))
        assert gateway.ended(run)["status"] == "completed"
        kinds: Iterator[str] = (each["data"]["state"] for each in gateway.events(run) if each["kind"] == "run")
        assert list(kinds) == ["run_started"]
        assert becomes(lambda: int(gateway.ask("GET", "/health", ADMIN).json()["in_flight"]) == 0)
