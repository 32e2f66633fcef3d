"""`smr doctor` and `smr config check` look, and leave everything as it was."""

from __future__ import annotations

import asyncio
import atexit
import importlib.metadata
import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.cli.app import Doctor
from smart_model_router.cli.commands import Check
from smart_model_router.cli.doctor import research_findings
from smart_model_router.config import ResearchConfig
from smart_model_router.config.research_sections import SearchBackendConfig
from smart_model_router.config.secret import Secret
from smart_model_router_research.engine import NewRun, RunState, SqliteRunStore, engine_selector
from smart_model_router_research.engine.run_schema import RUN_MIGRATIONS
from tests.store_files import UNFIT


def written(folder: Path, log: Path) -> Path:
    """A configuration with everything that makes files."""
    tree: dict[str, Any] = {
        "version": 1,
        "providers": {"s": {"kind": "scripted"}},
        "models": {"m": {"tiers": [{"targets": ["s/x"]}], "last_resort": []}},
        "store": {"path": str(folder / "stats.db")},
        "telemetry": {"log": {"to": str(log)}, "traces": {"enabled": True}},
    }
    file = folder / "smart-router.yaml"
    file.write_text(json.dumps(tree), "utf-8")
    return file


@pytest.mark.parametrize("check", [Doctor, Check], ids=["doctor", "config check"])
def test_a_check_leaves_no_file_and_no_hook(
    check: type[Doctor | Check], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither log nor store is made (by root, perhaps, of what a service is to write), and nothing is left open."""
    left: list[object] = []
    monkeypatch.setattr(atexit, "register", left.append)
    monkeypatch.setattr(atexit, "unregister", left.remove)
    file = written(tmp_path, tmp_path / "x.log")
    assert check(config=file, as_json=True).run() == 0
    assert list(tmp_path.iterdir()) == [file]
    assert [hook for hook in left if "smart_model_router" in str(hook)] == []


def test_a_provider_without_an_address_is_in_this_process(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is at no address."""
    Doctor(config=written(tmp_path, tmp_path / "x.log"), as_json=True).run()
    told = {each["topic"]: each["text"] for each in json.loads(capsys.readouterr().out)["findings"]}
    assert told["provider s"].startswith("scripted in this process;")


@pytest.mark.parametrize("log", [Path("nowhere/x.log"), Path()])
def test_a_log_that_could_not_be_written_is_found(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A folder that is missing, or a log that is one."""
    assert Check(config=written(tmp_path, tmp_path / log), as_json=True).run() == 3
    assert [problem["key"] for problem in json.loads(capsys.readouterr().out)["problems"]] == ["telemetry.log.to"]


def workflow_lines(
    folder: Path, capsys: pytest.CaptureFixture[str], topic: str = "workflows", engine: str = "auto"
) -> list[tuple[str, str]]:
    """The findings about workflows, whose problems are none of requests."""
    file = written(folder, folder / "x.log")
    section = {"runs": str(folder / "r.db"), "engine": engine}
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "workflows": section}))
    assert Doctor(config=file, as_json=True).run() == 0
    found = json.loads(capsys.readouterr().out)["findings"]
    return [(each["level"], each["text"]) for each in found if each["topic"] == topic]


@pytest.mark.parametrize(("engine", "level"), [("auto", "ok"), ("kahn", "ok"), ("langgraph", "warning")])
def test_the_engines_are_told_with_the_version_of_the_extra(
    engine: str, level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A warning where one is missing that the configuration asks for."""
    found = importlib.metadata.version("langgraph")
    assert workflow_lines(tmp_path, capsys, "engines", engine) == [("ok", f"kahn, and langgraph {found}")]
    fault = "langgraph >=1.2,<1.3 is needed, and 1.1.0 is installed; the extra `langgraph` brings one"
    monkeypatch.setattr(engine_selector, "version_fault", lambda: fault)
    told = [(level, f"kahn alone: no loops ({fault})")]
    assert workflow_lines(tmp_path, capsys, "engines", engine) == told


def test_an_engine_of_many_machines_is_told_with_what_it_lacks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database, or the extra; a warning where the configuration asks for it."""
    lacking = ("warning", "dbos: no workers (`workflows.store_url` is needed)")
    assert workflow_lines(tmp_path, capsys, "engines", "dbos")[1:] == [lacking]
    monkeypatch.setattr(engine_selector, "dbos_fault", lambda: "dbos >=3.4,<4 is needed")
    assert workflow_lines(tmp_path, capsys, "engines", "dbos")[1:] == [
        ("warning", "dbos: no workers (dbos >=3.4,<4 is needed)")
    ]
    assert len(workflow_lines(tmp_path, capsys, "engines")) == 1


def test_runs_that_no_process_goes_on_with_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The newest of them by id; those that are held, have ended or are paused are none."""
    path = tmp_path / "r.db"
    assert workflow_lines(tmp_path, capsys) == [
        ("ok", f"{path} will be made when there is something to write, schema {len(RUN_MIGRATIONS)}")
    ]

    async def fill() -> None:
        store = SqliteRunStore(path)
        for number in range(9):
            new = NewRun(run_id=f"r{number}", workflow="w", workflow_hash="h", step_hashes={}, inputs={}, engine="kahn")
            await store.create(new)
        await store.lease("r0", "one")
        for run_id, state in (("r1", RunState.COMPLETED), ("r2", RunState.PAUSED)):
            lease = await store.lease(run_id, "one")
            await store.end(lease, state, {}, "")
            await store.release(lease)
        await store.aclose()

    asyncio.run(fill())
    assert workflow_lines(tmp_path, capsys) == [
        ("ok", f"{path}, schema {len(RUN_MIGRATIONS)}"),
        ("warning", "interrupted runs (6): r8, r7, r6, r5, r4, ...; to go on: smr workflow resume RUN"),
    ]
    with closing(sqlite3.connect(path)) as hand, hand:
        hand.execute("UPDATE runs SET inputs = '{'")
    assert workflow_lines(tmp_path, capsys)[1][0] == "warning"
    assert "its row cannot be read" in workflow_lines(tmp_path, capsys)[1][1]


@pytest.mark.parametrize(("make", "reason"), UNFIT, ids=[make.__name__ for make, _ in UNFIT])
def test_a_file_of_runs_that_cannot_serve_is_found(
    make: Callable[[Path], None], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Requests go on without it."""
    make(tmp_path / "r.db")
    ((level, text),) = workflow_lines(tmp_path, capsys)
    assert level == "warning"
    assert reason in text
    assert text.endswith(": no workflow can run")


def test_each_corpus_of_the_configuration_is_told(tmp_path: Path) -> None:
    """How it stands, or why it cannot be read, which prevents no serving."""
    (tmp_path / "docs").mkdir()
    found = list(research_findings(ResearchConfig(corpora=(str(tmp_path / "docs"), str(tmp_path / "gone")))))

    assert [(each.level, each.topic) for each in found] == [("ok", "corpus docs"), ("warning", "corpus gone")]
    assert found[0].text == f"{tmp_path}/docs: folder, indexed by its first run"
    assert "not there" in found[1].text
    assert list(research_findings(ResearchConfig())) == []


def test_each_back_end_of_the_configuration_is_told() -> None:
    """Where it is, or why it cannot be made; nothing is sent."""
    backends = (
        SearchBackendConfig(kind="corpus"),
        SearchBackendConfig(kind="searxng", url="http://search.example/"),
        SearchBackendConfig(kind="tavily", name="paid", api_key=Secret("tvly-canary")),
        SearchBackendConfig(kind="no.such:Class"),
    )
    found = list(research_findings(ResearchConfig(backends=backends)))

    assert [(each.level, each.topic) for each in found] == [
        ("ok", "backend searxng"),
        ("ok", "backend paid"),
        ("warning", "backend no.such:Class"),
    ]
    assert found[0].text.startswith("searxng at search.example")
    assert "canary" not in str(found)
