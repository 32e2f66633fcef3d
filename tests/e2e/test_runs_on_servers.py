"""Runs on PostgreSQL as people use them: commands on several machines, each with a folder and data of its own."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.database_servers import PostgresServer, free_port, running
from tests.e2e.command import SECONDS, Smr, one_line
from tests.e2e.test_research_cli import AS_OF, PAGES, TOPIC, id_of, written

WORKFLOW = """\
name: shared
inputs: {x: {type: string}}
steps:
  - {name: before, function: quick, inputs: {x: "${inputs.x}"}}
  - {name: release, kind: approval, message: "Send ${steps.before.outputs.given}?", needs: [before]}
  - {name: after, function: quick, inputs: {x: "${steps.release.outputs.payload}"}, needs: [release]}
outputs: {given: "${steps.after.outputs.given}"}
"""
FUNCTIONS = """\
async def quick(step):
    return {"given": step.inputs.get("x")}

async def slow(step):
    import asyncio
    print("slow began", flush=True)
    await asyncio.sleep(0 if step.inputs["x"] == "again" else 60)
    return {}
"""
SECRET = "p%40ssw0rd-of-the-store"
Machines = tuple[Smr, Smr]


@pytest.fixture(scope="module")
def database() -> Iterator[PostgresServer]:
    """A server, for all tests of this file."""
    with running(PostgresServer) as one:
        assert isinstance(one, PostgresServer)
        yield one


def machine(folder: Path, url: str, engine: str = "kahn") -> Smr:
    """Make a folder with a configuration that keeps its runs at `url`, and the files of a workflow."""
    folder.mkdir()
    smr = Smr(folder)
    config: dict[str, Any] = {
        "version": 1,
        "providers": {"a": {"kind": "scripted"}},
        "models": {"smart": {"tiers": [{"targets": ["a/m"]}]}},
        "workflows": {"store_url": "${RUNS_URL}", "lease": 2, "heartbeat": 0.5, "engine": engine},
    }
    (folder / "smart-router.yaml").write_text(json.dumps(config), "utf-8")
    (folder / "w.yaml").write_text(WORKFLOW, "utf-8")
    (folder / "f.py").write_text(FUNCTIONS, "utf-8")
    smr.environment["RUNS_URL"] = url.replace("postgres@", f"postgres:{SECRET}@")
    return smr


@pytest.fixture
def machines(tmp_path: Path, database: PostgresServer) -> Machines:
    """Two machines with one database."""
    url = database.new_database()
    return machine(tmp_path / "one", url), machine(tmp_path / "two", url)


@pytest.fixture
def on_dbos(tmp_path: Path, database: PostgresServer) -> Machines:
    """Two machines with one database, and the engine that `auto` chooses there."""
    url = database.new_database()
    return machine(tmp_path / "one", url, "auto"), machine(tmp_path / "two", url, "auto")


def test_a_run_that_began_on_one_machine_goes_on_on_another(machines: Machines) -> None:
    """It is listed, decided, forked and cancelled there; nothing is kept in a file of either."""
    one, two = machines
    begun = one("workflow", "run", "w.yaml", "--functions", "f.py", "--id", "r", "--input", "x=tea")
    assert begun.returncode == 7, begun.stderr
    (listed,) = json.loads(two("workflow", "runs", "--json").stdout)["runs"]
    assert (listed["run"], listed["state"], listed["owner"]) == ("r", "paused", "")
    (two.folder.parent / "one" / "f.py").unlink()  # what the run began with is another machine's
    done = two("workflow", "resume", "r", "--payload", '"milk"', "--functions", "f.py")
    assert (done.returncode, json.loads(done.stdout)) == (0, {"given": "milk"}), done.stderr
    assert "r@3" in one("workflow", "history", "r").stdout
    forked = two("workflow", "fork", "r@1", "--id", "s", "--functions", "f.py")
    assert forked.returncode == 7
    assert json.loads(one("workflow", "cancel", "s", "--json").stdout)["state"] == "cancelled"
    assert [path.name for smr in machines for path in (smr.folder / "data").rglob("runs*")] == []


def test_a_machine_that_dies_loses_its_run_to_another(machines: Machines) -> None:
    """A second `resume` is told who has it; once its lease is over, the step in flight runs again there."""
    one, two = machines
    slow = WORKFLOW.replace("{name: before, function: quick", "{name: before, function: slow").replace(
        "Send ${steps.before.outputs.given}?", "Send?"
    )
    (one.folder / "w.yaml").write_text(slow, "utf-8")
    process = one.start("workflow", "run", "w.yaml", "--functions", "f.py", "--id", "r", "--input", "x=tea")
    assert process.stdout is not None
    assert process.stdout.readline() == b"slow began\n"
    busy = two("workflow", "resume", "r", "--functions", "f.py")
    assert busy.returncode == 8
    assert "is held by" in busy.stderr
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=SECONDS)
    listed = json.loads(two("workflow", "runs", "--json").stdout)["runs"]
    assert (listed[0]["state"], listed[0]["owner"]) == ("running", "")
    assert "interrupted runs (1): r" in two("doctor").stdout


def test_a_queued_run_is_performed_by_a_worker_and_handed_back_when_that_ends(on_dbos: Machines) -> None:
    """Its id is printed at once; a worker takes it, and another one goes on with it after SIGTERM."""
    one, two = on_dbos
    slow = WORKFLOW.replace("{name: after, function: quick", "{name: after, function: slow").replace(
        '  - {name: release, kind: approval, message: "Send ${steps.before.outputs.given}?", needs: [before]}\n', ""
    )
    slow = slow.replace("${steps.release.outputs.payload}", "once").replace("needs: [release]", "needs: [before]")
    slow = slow.replace('"${steps.after.outputs.given}"', '"${steps.before.outputs.given}"')
    (one.folder / "w.yaml").write_text(slow, "utf-8")
    queued = one("workflow", "run", "w.yaml", "--functions", "f.py", "--id", "r", "--input", "x=tea", "--queue")
    assert (queued.returncode, queued.stdout) == (0, "r\n"), queued.stderr
    (two.folder / "f.py").write_text(FUNCTIONS.replace("else 60", "else 0"), "utf-8")
    first = one.start("workflow", "worker")
    assert first.stdout is not None
    assert first.stdout.readline() == b"slow began\n"
    second = two.start("workflow", "worker", "--concurrency", "2", "--functions", "f.py", "--json")
    first.send_signal(signal.SIGTERM)
    told = first.communicate(timeout=SECONDS)[1].decode()
    assert first.returncode == 0, told
    assert "worker: ended; runs that were handed back: 1" in told
    assert second.stdout is not None
    for line in second.stdout:
        if line.startswith(b"{"):
            break
    else:
        raise AssertionError(second.communicate(timeout=SECONDS)[1].decode())
    assert json.loads(line) == {"run": "r", "state": "completed", "reason": ""}
    second.send_signal(signal.SIGINT)
    second.communicate(timeout=SECONDS)
    done = one("workflow", "run", "w.yaml", "--functions", "f.py", "--id", "r", "--input", "x=tea", "--json")
    told = json.loads(done.stdout)
    assert (told["state"], told["outputs"], told["engine"]) == ("completed", {"given": "tea"}, "dbos")


def test_workers_need_a_database(smr: Smr) -> None:
    """The error says which key; a queue has neither a file for its outputs nor another engine."""
    (smr.folder / "w.yaml").write_text("name: w\nsteps: [{name: a, function: quick}]\n", "utf-8")
    (smr.folder / "f.py").write_text(FUNCTIONS, "utf-8")
    run = ("workflow", "run", "w.yaml", "--functions", "f.py", "--queue")
    for words, code in ((("workflow", "worker"), 3), (run, 3)):
        done = smr(*words)
        assert (done.returncode, one_line(done.stderr)) == (code, True), done.stderr
        assert "workflows.store_url" in done.stderr
    assert smr(*run, "--engine", "kahn").returncode == 2
    assert smr(*run, "--out", "x").returncode == 2


def test_the_check_of_a_workflow_knows_the_database_of_its_configuration(on_dbos: Machines) -> None:
    """And the engine that is configured; without --config none is read."""
    one, _ = on_dbos
    check = ("workflow", "check", "w.yaml", "--functions", "f.py")
    assert "dbos comes first" in one(*check, "--config", "smart-router.yaml").stderr
    assert "langgraph comes first" in one(*check).stderr


def test_research_goes_on_on_another_machine(machines: Machines) -> None:
    """Documents and results are in the database; the report is in a folder of the machine that ended the run."""
    one, two = machines
    for smr in machines:
        written(smr.folder / "docs", PAGES)
    done = one("research", "run", TOPIC, "--corpus", "docs", *AS_OF)
    assert done.returncode == 0, done.stderr
    run_id = id_of(done)
    (listed,) = json.loads(two("research", "list", "--json").stdout)["runs"]
    assert (listed["run"], listed["delivery"]) == (run_id, "full")
    told = json.loads(two("research", "status", run_id, "--json").stdout)
    assert (told["status"], told["usage"]["documents"]) == ("completed", 2)
    assert one("research", "report", run_id).stdout == done.stdout
    again = two("research", "report", run_id)
    assert again.returncode == 2
    assert "its report is in a folder of the machine that ended it" in again.stderr


def test_a_server_that_is_not_there_is_a_sentence_without_its_password(tmp_path: Path) -> None:
    """By every command that needs runs; `doctor` warns, since requests need none."""
    port = free_port()
    smr = machine(tmp_path / "one", f"postgresql://postgres@127.0.0.1:{port}/d")
    for words in (
        ["runs"],
        ["resume", "r"],
        ["cancel", "r"],
        ["run", "w.yaml", "--functions", "f.py", "--input", "x=1"],
    ):
        done = smr("workflow", *words)
        assert done.returncode == 1, done.stderr
        assert one_line(done.stderr)
        assert f"postgresql://127.0.0.1:{port}/d: " in done.stderr
        assert "p%40ssw0rd" not in done.stderr + done.stdout
        assert "p@ssw0rd" not in done.stderr + done.stdout
    told = smr("doctor", "--json").stdout
    assert "ssw0rd" not in told
    assert [each["level"] for each in json.loads(told)["findings"] if each["topic"] == "workflows"] == ["warning"]


def test_a_url_that_is_none_of_postgresql_is_refused(tmp_path: Path) -> None:
    """By the check of the configuration, without the value."""
    smr = machine(tmp_path / "one", f"mysql://root:{SECRET}@host/d")
    done = smr("config", "check")
    assert done.returncode == 3
    assert "workflows.store_url   '***' - a URL that begins with postgresql://" in done.stdout
    assert "ssw0rd" not in done.stdout + done.stderr
