"""Workers of one database that are killed and stopped at seeded moments, while its server restarts."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psycopg
import pytest

from smart_model_router_research.engine import PostgresRunStore, RunEvent, RunEventKind, RunState, StoredRun
from smart_model_router_research.engine.states import OPEN
from tests.database_servers import PostgresServer, running
from tests.e2e import worker_program
from tests.e2e.command import StartedProgram
from tests.e2e.worker_program import NEEDS

RUNS = int(os.environ.get("SMR_FLEET_RUNS", "8"))
"""In `make test` a sample; `make nightly` has 50 runs, and 4 workers."""
WORKERS = 4 if RUNS > 10 else 3
SEED = int(os.environ.get("SMR_FLEET_SEED", "26"))
PATIENCE = 120.0
AUDIT = """
CREATE TABLE public.audit (kind text, run text, step text, owner text, writer text);
CREATE FUNCTION public.note() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO public.audit SELECT TG_TABLE_NAME, NEW.run, NEW.step, owner, current_setting('application_name')
  FROM smr_runs.runs WHERE id = NEW.run;
  RETURN NULL;
END $$;
CREATE TRIGGER note AFTER INSERT OR UPDATE ON smr_runs.run_steps FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER note AFTER INSERT OR UPDATE ON smr_runs.events FOR EACH ROW EXECUTE FUNCTION public.note();
CREATE TRIGGER note AFTER INSERT OR UPDATE ON smr_runs.checkpoints FOR EACH ROW EXECUTE FUNCTION public.note();
"""
"""Each write of a run with the process that held it then, and the process that wrote."""


@pytest.fixture
def server() -> Iterator[PostgresServer]:
    """A server that keeps what it acknowledged."""
    with running(PostgresServer) as one:
        assert isinstance(one, PostgresServer)
        yield one


def _queued(server: PostgresServer, folder: Path, number: int) -> str:
    """Queue so many runs in a new database; return its URL."""
    url = server.new_database()
    program = StartedProgram(Path(worker_program.__file__), "enqueue", url, folder, number)
    assert "queued" in program.communicate(timeout=PATIENCE)[0]
    return url


def _started(url: str, folder: Path, name: str) -> StartedProgram:
    return StartedProgram(Path(worker_program.__file__), "work", f"{url}?application_name={name}", folder)


@contextmanager
def _working(url: str, folder: Path) -> Generator[None]:
    """One worker, until the block is left."""
    worker = _started(url, folder, "w")
    try:
        yield
    finally:
        worker.kill()
        worker.communicate(timeout=PATIENCE)


async def _read(url: str) -> Sequence[tuple[StoredRun, Sequence[RunEvent]]]:
    store = PostgresRunStore(url)
    try:
        found = [await store.load(run.run_id) for run in await store.runs(1_000)]
        return [(run, await store.events_since(run.run_id, limit=10_000)) for run in found]
    finally:
        await store.aclose()


def _settled(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM smr_runs.checkpoints").fetchone()
    return row[0] if row else 0


def _standing(url: str) -> list[tuple[object, ...]]:
    """Return how each run stands, here and at DBOS: for the message of a test that waits in vain."""
    query = (
        "SELECT id, state, owner, status, queue_name, executor_id FROM smr_runs.runs"
        " LEFT JOIN smr_dbos.workflow_status ON workflow_uuid = id"
    )
    with psycopg.connect(url) as connection:
        return connection.execute(query).fetchall()


def _wait_for(url: str, settled: int) -> None:
    """Wait until so many steps of all runs have settled."""
    end = time.monotonic() + PATIENCE
    while _settled(url) < settled:
        assert time.monotonic() < end, _standing(url)
        time.sleep(0.02)  # noqa: TID251 - other processes are waited for


def _one_that_holds(url: str, workers: Mapping[str, StartedProgram], dice: random.Random) -> str:
    """Return one of these workers that holds a run; waits until one does."""
    end = time.monotonic() + PATIENCE
    query = "SELECT split_part(owner, ':', 2) FROM smr_runs.runs WHERE state = 'running' AND owner <> ''"
    with psycopg.connect(url, autocommit=True) as connection:
        while True:
            pids = {pid for (pid,) in connection.execute(query).fetchall()}
            if holding := sorted(name for name, worker in workers.items() if str(worker.pid) in pids):
                return dice.choice(holding)
            assert time.monotonic() < end, _standing(url)
            time.sleep(0.02)  # noqa: TID251 - as above


def _wait_until_overtaken(url: str, pid: int) -> None:
    """Wait until a process holds no run that goes on."""
    end = time.monotonic() + PATIENCE
    query = "SELECT count(*) FROM smr_runs.runs WHERE state = 'running' AND owner LIKE %s"
    with psycopg.connect(url, autocommit=True) as connection:
        while connection.execute(query, (f"%:{pid}:%",)).fetchone() != (0,):
            assert time.monotonic() < end, _standing(url)
            time.sleep(0.02)  # noqa: TID251 - as above


def _wait_for_the_end(url: str) -> None:
    end = time.monotonic() + PATIENCE
    while any(run.state in OPEN for run, _ in asyncio.run(_read(url))):
        assert time.monotonic() < end, _standing(url)
        time.sleep(0.2)  # noqa: TID251 - as above


def test_a_run_whose_worker_died_before_it_held_it_is_queued_again(server: PostgresServer, tmp_path: Path) -> None:
    """DBOS alone leaves it to a process that is gone; a worker finds it when no process has held it for a lease."""
    url = _queued(server, tmp_path, 1)
    (tmp_path / "go").touch()
    with psycopg.connect(url, autocommit=True) as hand:
        taken = "UPDATE smr_dbos.workflow_status SET status = 'PENDING', executor_id = 'gone' WHERE status = 'ENQUEUED'"
        assert hand.execute(taken).rowcount == 1
    with _working(url, tmp_path):
        _wait_for_the_end(url)
    ((run, _),) = asyncio.run(_read(url))
    assert run.state is RunState.COMPLETED


def test_a_run_whose_end_alone_was_lost_ends(server: PostgresServer, tmp_path: Path) -> None:
    """Its steps have settled and DBOS is through with it when the server goes away: a worker that looks ends it."""
    url = _queued(server, tmp_path, 1)
    (tmp_path / "go").touch()
    with _working(url, tmp_path):
        _wait_for_the_end(url)
        with psycopg.connect(url) as hand:
            hand.execute("DELETE FROM smr_runs.events WHERE kind = 'run_ended'")
            assert hand.execute("UPDATE smr_runs.runs SET state = 'running', outputs = '{}'").rowcount == 1
        _wait_for_the_end(url)
    ((run, events),) = asyncio.run(_read(url))
    assert run.state is RunState.COMPLETED
    kinds = [event.kind for event in events]
    assert (kinds.count(RunEventKind.STEP_SETTLED), kinds.count(RunEventKind.RUN_ENDED)) == (len(NEEDS), 1)


def test_runs_of_workers_that_die_end_once(server: PostgresServer, tmp_path: Path) -> None:
    """Half of them are killed, one is stopped past its leases, and the server crashes once.

    Every run ends once, only steps that were in flight ran twice, and no holder that was overtaken wrote a row.
    """
    url, dice = _queued(server, tmp_path, RUNS), random.Random(SEED)
    with psycopg.connect(url, autocommit=True) as hand:
        hand.execute(AUDIT)
    moments = sorted(dice.sample(range(2, RUNS * len(NEEDS) * 2 // 3), WORKERS // 2 + 2))
    with ExitStack() as ended:
        workers = {}
        for number in range(WORKERS):
            name = f"w{number}"
            workers[name] = worker = _started(url, tmp_path, name)
            ended.callback(worker.communicate, timeout=PATIENCE)  # closes its pipes
            ended.callback(worker.kill)
        alive = dict(workers)
        for moment in moments[: WORKERS // 2]:
            _wait_for(url, moment)
            victim = alive.pop(_one_that_holds(url, alive, dice))
            victim.kill()
            victim.wait(PATIENCE)
        _wait_for(url, moments[-2])
        server.restart()
        _wait_for(url, moments[-1])
        stopped = alive[_one_that_holds(url, alive, dice)]
        stopped.send_signal(signal.SIGSTOP)
        _wait_until_overtaken(url, stopped.pid)
        stopped.send_signal(signal.SIGCONT)
        (tmp_path / "go").touch()
        _wait_for_the_end(url)
        pids = {name: worker.pid for name, worker in workers.items()}
        for worker in alive.values():
            worker.send_signal(signal.SIGTERM)
            worker.wait(PATIENCE)
    began = Counter(tuple(line.split()[:2]) for line in (tmp_path / "began").read_text().splitlines())
    runs = asyncio.run(_read(url))
    assert len(runs) == RUNS
    for run, events in runs:
        assert run.state is RunState.COMPLETED, run.reason
        assert [event.kind for event in events].count(RunEventKind.RUN_ENDED) == 1
        for step in NEEDS:
            own = [event.kind for event in events if event.step == step]
            # What has settled began no more, and what began again had not settled.
            assert own.count(RunEventKind.STEP_SETTLED) == 1
            assert own[-1] is RunEventKind.STEP_SETTLED
            assert 1 <= began[run.run_id, step] <= own.count(RunEventKind.STEP_STARTED)
            # It began again only where another process went on with the run.
            between = [event.kind for event in events]
            assert own.count(RunEventKind.STEP_STARTED) <= 1 + between.count(RunEventKind.RUN_RESUMED)
    with psycopg.connect(url) as connection:
        written = connection.execute("SELECT owner, writer FROM public.audit").fetchall()
    assert len(written) > RUNS * len(NEEDS) * 4
    assert {writer for _, writer in written} >= workers.keys() - alive.keys()
    assert [(owner, writer) for owner, writer in written if owner.split(":")[-2] != str(pids[writer])] == []
