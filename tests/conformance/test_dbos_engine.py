"""The engine of the extra `dbos` keeps the promises of an ExecutionEngine, with DBOS on a real server."""

from __future__ import annotations

import concurrent.futures
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pytest
from dbos import StepReservation
from hypothesis import given, settings
from hypothesis import strategies as st

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.testing import run_virtual
from smart_model_router_research.engine import (
    Approval,
    DbosEngine,
    MemoryRunStore,
    PostgresRunStore,
    RunState,
    RunStore,
    StoreUnavailable,
    check_engine,
    dbos_runtime,
)
from smart_model_router_research.engine.dbos_runtime import DbosRuntime, runtime_at
from smart_model_router_research.workflow import Step, WorkflowDefinition
from tests.conformance.engine_harness import Process, Trace, passing
from tests.conformance.engines import EngineContract
from tests.database_servers import PostgresServer, running

LONG = ("test_results_are_merged_by_name", "test_any_workflow_ends_as_the_join_rule_says")
"""A hundred runs each: `make nightly` has them, and `make test` a few seeds."""


async def blocking(future: concurrent.futures.Future[Any], seconds: float) -> None:
    """Wait for another thread while virtual time stands still."""
    concurrent.futures.wait([future], seconds)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A database for DBOS, for all tests of this file."""
    with running(PostgresServer) as one:
        assert isinstance(one, PostgresServer)
        yield one.new_database()


@pytest.fixture(scope="module")
def runtime(url: str) -> Iterator[DbosRuntime]:
    """DBOS in this process."""
    one = DbosRuntime(url, "the server", wait=blocking, poll=0.02)
    yield one
    one.close()


class TestDbosEngine(EngineContract):
    """In virtual time, which stands still while DBOS is asked."""

    @pytest.fixture(autouse=True)
    def _dbos(self, url: str, runtime: DbosRuntime, request: pytest.FixtureRequest) -> None:
        self.url, self.runtime = url, runtime
        if request.node.name.startswith(LONG) and "SMR_ALL_DBOS" not in os.environ:
            pytest.skip("make nightly runs it, and a few seeds of it are a test of their own")

    def engine(self, store: RunStore) -> DbosEngine:
        """Return one."""
        return check_engine(DbosEngine(store, runtime=self.runtime))

    def store(self) -> RunStore:
        """Return a new one, and let DBOS forget the runs of the others: they go by the same names."""
        for table in ("operation_outputs", "workflow_status"):
            self.kept(f"DELETE FROM smr_dbos.{table} RETURNING 1")
        return super().store()

    def kept(self, query: str) -> Sequence[tuple[Any, ...]]:
        """Return what DBOS has in its tables; nothing before they are made."""
        with psycopg.connect(self.url, autocommit=True) as hand:
            if hand.execute("SELECT to_regclass('smr_dbos.workflow_status')").fetchone() == (None,):
                return []
            return hand.execute(query.encode()).fetchall()

    def statuses(self) -> Sequence[str]:
        """Return the states of DBOS's workflows."""
        return [status for (status,) in self.kept("SELECT status FROM smr_dbos.workflow_status")]

    def steps(self) -> Sequence[tuple[int, str]]:
        """Return DBOS's steps, by their numbers."""
        return self.kept("SELECT function_id, function_name FROM smr_dbos.operation_outputs ORDER BY 1")

    @settings(max_examples=5, derandomize=True, database=None, deadline=None)
    @given(seed=st.integers(0, 2**32))
    def test_some_workflows_end_as_the_join_rule_says(self, seed: int) -> None:
        """C20, with fewer seeds."""
        whole: Any = EngineContract.test_any_workflow_ends_as_the_join_rule_says
        whole.hypothesis.inner_test(self, seed=seed)

    # -------------------------------------------------------------------------------------------- DBOS

    def workflow(self, trace: Trace) -> WorkflowDefinition:
        """Make a workflow with a subgraph and a decision."""
        inner = WorkflowDefinition("v", [Step("x", trace.work()), Step("y", trace.work(), ("x",))])
        steps = [
            Step("a", trace.work()),
            Step("sub", kind="workflow", workflow=inner, needs=("a",)),
            Step("ok", kind="approval", needs=("a",)),
            Step("z", trace.work(), ("sub", "ok")),
        ]
        return WorkflowDefinition("w", steps)

    def test_each_step_is_a_durable_step_of_dbos(self) -> None:
        """By its full name, under a number that it has whenever the run goes on; a pause and a crash end nothing."""
        trace = Trace()

        async def main() -> None:
            store = self.store()
            workflow = self.workflow(trace)
            dying = Process(store, writes=4)
            with pytest.raises(StoreUnavailable):
                await self.engine(dying.store).execute(workflow, self.context())
            assert (self.statuses(), self.steps()) == (["PENDING"], [(1, "a")])
            await passing(60)
            result = await self.engine(store).resume(workflow, self.context())
            assert result.status is RunState.PAUSED
            assert self.statuses() == ["PENDING"]
            assert self.steps() == [(1, "a"), (2, "sub.x"), (3, "sub.y")]
            result = await self.engine(store).resume(workflow, self.context(), Approval())
            assert result.status is RunState.COMPLETED
            assert self.statuses() == ["SUCCESS"]
            assert self.steps() == [(1, "a"), (2, "sub.x"), (3, "sub.y"), (4, "z")]

        run_virtual(main())
        assert trace.began == ["a", "sub.x", "sub.y", "z"]

    def test_what_dbos_cannot_keep_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Before a step, and after it: what is true is what the store has."""
        trace = Trace()
        run = StepReservation.run_async

        async def fails(self: StepReservation, options: Any, function: Any) -> Any:
            if options["name"] == "a":
                raise RuntimeError("no")
            await run(self, options, function)
            raise RuntimeError("no")

        monkeypatch.setattr(StepReservation, "run_async", fails)
        result = self.run(WorkflowDefinition("w", [Step("a", trace.work()), Step("b", trace.work(), ("a",))]))
        assert (result.status, trace.began) == (RunState.COMPLETED, ["a", "b"])

    def test_a_run_whose_end_was_not_kept_comes_to_it(self) -> None:
        """DBOS has nothing more to keep of it then."""
        trace = Trace()
        workflow = WorkflowDefinition("w", [Step("a", trace.work())])

        async def main() -> None:
            store = self.store()
            with pytest.raises(StoreUnavailable):
                await self.engine(Process(store, writes=3).store).execute(workflow, self.context())
            assert self.statuses() == ["SUCCESS"]
            await passing(60)
            assert (await self.engine(store).resume(workflow, self.context())).status is RunState.COMPLETED

        run_virtual(main())
        assert trace.began == ["a"]

    def test_workflows_of_runs_that_are_gone_are_forgotten(self) -> None:
        """Those that are old enough; the others stay."""

        async def main() -> None:
            store = self.store()
            for run_id in ("r", "s"):
                workflow = WorkflowDefinition("w", [Step("a", Trace().work())])
                await self.engine(store).execute(workflow, self.context(run_id))

            async def is_known(run_id: str) -> bool:
                return run_id == "s"

            await self.runtime.forget(1.0, is_known)
            assert len(self.statuses()) == 2
            await self.runtime.forget(4_000_000_000.0, is_known)
            assert self.kept("SELECT workflow_uuid FROM smr_dbos.workflow_status") == [("s",)]

        run_virtual(main())

    def test_queues_of_processes_that_are_gone_are_deleted(self) -> None:
        """With the first run that is brought here; those of processes that live, and of other machines, stay."""
        mine = self.runtime._queue.split("|")
        gone, other = "|".join([*mine[:4], "4194305", "1"]), "|".join(["smr-of", "elsewhere", *mine[2:]])
        for name in (gone, other):
            self.kept(
                "INSERT INTO smr_dbos.queues (name, polling_interval_sec, application_name)"
                f" VALUES ('{name}', 1, 'smart-model-router') RETURNING 1"
            )
        self.runtime._has_queue = False
        self.test_each_step_is_a_durable_step_of_dbos()
        names = {name for (name,) in self.kept("SELECT name FROM smr_dbos.queues")}
        assert {"|".join(mine), other} <= names
        assert gone not in names


# ------------------------------------------------------------------------------------------------ refusals


def ran(program: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, to its end."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, encoding="utf-8", check=True, timeout=60)


def test_runs_that_are_in_no_database_are_refused() -> None:
    """The error says which key is needed."""
    for store in (None, MemoryRunStore()):
        with pytest.raises(ConfigurationError, match=r"dbos.*workflows\.store_url"):
            DbosEngine(store)


def test_a_process_has_one_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """DBOS is one of a process: a second database is refused with the place of the first, and without passwords."""
    monkeypatch.setattr(dbos_runtime._Current, "runtime", None)
    first = PostgresRunStore("postgresql://ann:secret@one/d")
    assert DbosEngine(first).runtime is DbosEngine(first).runtime
    with pytest.raises(ConfigurationError, match="postgresql://one/d already") as error:
        DbosEngine(PostgresRunStore("postgresql://ann:secret@two/d"))
    assert "secret" not in str(error.value)
    runtime_at("postgresql://ann:secret@one/d", "").close()


def test_a_program_that_uses_dbos_itself_is_refused() -> None:
    """Its workflows and ours would be those of one application."""
    program = """
import asyncio, sys
from dbos import DBOS
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.engine.dbos_runtime import DbosRuntime
DBOS(config={"name": "theirs", "system_database_url": "sqlite:///theirs.sqlite"})
runtime = DbosRuntime("postgresql://127.0.0.1:1/d", "the server")
try:
    asyncio.run(runtime.hold("r"))
except ConfigurationError as error:
    sys.stdout.write(str(error))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert "this one uses DBOS itself" in done.stdout


def test_a_server_that_is_not_there_is_told() -> None:
    """In a sentence, without the password; asked again, it is told again."""
    program = """
import asyncio, sys
from smart_model_router_research.engine import StoreUnavailable, dbos_runtime
dbos_runtime._PATIENCE = 3.0
runtime = dbos_runtime.DbosRuntime("postgresql://ann:s3cret@127.0.0.1:1/d", "the server")
for _ in range(2):
    try:
        asyncio.run(runtime.hold("r"))
    except StoreUnavailable as error:
        sys.stdout.write(f"{error}\\n")
sys.stdout.flush()
import os; os._exit(0)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert [line.startswith("the server: DBOS") for line in done.stdout.splitlines()] == [True, True]
    assert "s3cret" not in done.stdout + done.stderr
