"""DBOS in this process: launched once, on one database, with each run that is held here as a workflow of its own.

DBOS calls a workflow where it likes: on a loop of its own, when a queue has handed it over. Here that function does
nothing but hand over the context in which steps are durable, and wait until the holder of the run is through with it.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib.metadata
import logging
import os
import platform
import re
import secrets
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import Context, copy_context
from datetime import UTC, datetime
from functools import partial
from threading import Lock
from typing import Any, TypeVar

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.fork_hooks import in_children
from smart_model_router_research.engine.processes import started_at, this_process
from smart_model_router_research.engine.store_port import StoreUnavailable
from smart_model_router_research.engine.store_rules import Holder, is_gone

T = TypeVar("T")
Waiting = Callable[["Future[Any]", float], Awaitable[None]]
MIN_VERSION = (3, 4)
BELOW_VERSION = (4,)
"""The versions of DBOS that this was tried with, as the extra `dbos` pins them."""
APPLICATION = "smart-model-router"
SCHEMA = "smr_dbos"
QUEUE = "smr-runs"
"""The queue of runs that any worker may take."""
_WORKFLOW = "smr.run"
_VERSION = "1"
"""The version of the workflow above: DBOS hands its runs over to processes of the same one."""
_ENDED = ("SUCCESS", "ERROR")
_WAITING = ("ENQUEUED", "DELAYED")
_OWN = "smr-of"
_PATIENCE = 30.0
"""Seconds within which DBOS answers, or hands a run over."""
_LEAVING = 5.0
"""Seconds within which DBOS notes that a run has ended: it may do so later, too."""
_INSTALL = "the extra `dbos` brings it: pip install 'smart-model-router[dbos]'"
_log = logging.getLogger("smart_model_router.workflows")


def dbos_fault() -> str | None:
    """Return what is wrong with the library, with the versions that are needed; None when it can be used."""
    low, high = (".".join(map(str, each)) for each in (MIN_VERSION, BELOW_VERSION))
    try:
        found = str(importlib.metadata.version("dbos"))
    except importlib.metadata.PackageNotFoundError:
        return f"dbos >={low},<{high} is needed; {_INSTALL}"
    numbers = tuple(int(each) for each in re.findall(r"\d+", found)[:2])
    if MIN_VERSION <= numbers < BELOW_VERSION:
        return None
    return f"dbos >={low},<{high} is needed, and {found} is installed; {_INSTALL}"


class DurableRun:
    """A run that DBOS has handed over to this process: in `context` its steps are durable.

    `over` ends DBOS's workflow: with the state of the run, or cancelled, and then another process can take it. `gone`
    is set once DBOS has noted that.
    """

    def __init__(self) -> None:
        self.context: Context = copy_context()
        self.loop = asyncio.get_running_loop()
        self.over: Future[str] = Future()
        self.gone: Future[None] = Future()

    def leave(self, state: str | None) -> None:
        """Let DBOS's workflow end: with a state for good, without one so that it can be resumed."""
        if state is None:
            self.over.cancel()
        elif not self.over.done():
            self.over.set_result(state)


async def awaited(future: Future[Any], seconds: float) -> None:
    """Wait for a future of another thread, so long at most; the loop goes on."""
    done = asyncio.wrap_future(future)
    await asyncio.wait([done], timeout=seconds)
    if done.done() and not done.cancelled():
        done.exception()  # its caller asks the future itself


class DbosRuntime:
    """DBOS on the database `url`, whose name in errors is `place`; launched when it is first used.

    `wait` is how a loop waits for another thread. A queue of this process's own, looked at every `poll` seconds, brings
    runs here that other processes began. A process has one at most: `runtime_at` gives it.
    """

    def __init__(self, url: str, place: str, *, wait: Waiting = awaited, poll: float = 0.5) -> None:
        self.url = url
        self.place = place
        self._wait = wait
        self._poll = poll
        self._threads = ThreadPoolExecutor(2, "DBOS")
        self._lock = Lock()
        self._dbos: Any = None
        me = this_process()
        self._queue = "|".join([_OWN, me.host, me.boot, me.space, str(me.pid), me.started])
        self._has_queue = False
        self._is_to_forget = True
        self._was_forked = False
        self._expected: dict[str, Future[DurableRun]] = {}
        self._arrived: dict[str, DurableRun] = {}
        self._perform: Callable[[str], object] | None = None
        self._concurrency: int | None = None
        in_children(self._forked)

    # -------------------------------------------------------------------------------------------- runs

    async def hold(self, run_id: str) -> DurableRun | None:
        """Bring a run here, whose lease this process has; None where DBOS has nothing more to keep of it.

        Raises StoreUnavailable when DBOS cannot.
        """
        await self._asked(self._launched)
        with self._lock:
            found = self._arrived.pop(run_id, None)
        if found is not None:
            return found
        status = await self._asked(partial(self._dbos.get_workflow_status, run_id))
        if status is None:
            return await self._brought(run_id, self._started)
        if status.status in _ENDED:
            return None
        return await self._brought(run_id, self._resumed)

    async def leave(self, run: DurableRun, state: str | None) -> None:
        """End DBOS's workflow of a run: with a state for good, without one so that it can be resumed."""
        run.leave(state)
        here = run.loop is asyncio.get_running_loop()
        await (awaited if here else self._wait)(run.gone, _LEAVING)

    async def enqueue(self, run_id: str) -> bool:
        """Put a run into the queue of workers; returns False where DBOS has nothing more to keep of it.

        Raises StoreUnavailable.
        """
        await self._asked(self._launched)
        return await self._asked(partial(self._enqueued, run_id))

    async def taken(self, run_ids: Sequence[str]) -> set[str]:
        """Return those of the runs that a worker took from the queue, ended at DBOS or not. Raises StoreUnavailable."""
        find = partial(self._dbos.list_workflows, workflow_ids=list(run_ids), queue_name=QUEUE)
        found = await self._asked(partial(find, load_input=False, load_output=False)) if run_ids else []
        return {each.workflow_id for each in found if each.status not in _WAITING}

    def is_to_forget(self) -> bool:
        """Return whether this process has not looked for old workflows yet; asked again, it has."""
        first, self._is_to_forget = self._is_to_forget, False
        return first

    async def forget(self, before: float, is_known: Callable[[str], Awaitable[bool]]) -> None:
        """Delete a hundred of DBOS's workflows from `before`, an instant since 1970, whose runs are not known any more.

        Raises StoreUnavailable.
        """
        until = datetime.fromtimestamp(before, UTC).isoformat()
        find = partial(self._dbos.list_workflows, name=_WORKFLOW, end_time=until, limit=100)
        old = [each.workflow_id for each in await self._asked(partial(find, load_input=False, load_output=False))]
        if gone := [run_id for run_id in old if not await is_known(run_id)]:
            await self._asked(partial(self._dbos.delete_workflows, gone))

    # -------------------------------------------------------------------------------------------- workers

    async def work(self, perform: Callable[[str], None], concurrency: int | None) -> None:
        """Take runs from the queue of workers: `perform` is told each, on this loop, and `release` ends it there.

        `concurrency` is how many a worker of the queue takes at once, from now on; without one it stays as it is.
        Raises StoreUnavailable, ConfigurationError after the launch.
        """
        if self._dbos is not None:
            raise ConfigurationError("engine", "dbos", "a worker is a process of its own: this one has runs already")
        home = asyncio.get_running_loop()
        self._perform = lambda run_id: home.call_soon_threadsafe(perform, run_id)
        self._concurrency = concurrency
        await self._asked(self._launched)

    def release(self, run_id: str, state: str | None) -> None:
        """End the workflow of a run that `perform` was told, and that was not held."""
        with self._lock:
            found = self._arrived.pop(run_id, None)
        if found is not None:
            found.leave(state)

    def close(self) -> None:
        """End DBOS in this process; blocks. What goes on here can be resumed elsewhere."""
        with self._lock:
            dbos, self._dbos = self._dbos, None
        if dbos is not None:
            if self._has_queue:
                with suppress(Exception):  # the server is gone, say
                    dbos.delete_queue(self._queue)
            dbos.destroy()
        self._threads.shutdown()

    # -------------------------------------------------------------------------------------------- DBOS

    def arrived(self, run_id: str, run: DurableRun) -> None:
        """Take a run that DBOS hands over, on whichever thread."""
        with self._lock:
            expected, perform = self._expected.pop(run_id, None), self._perform
            before = None
            if expected is None and perform is not None:
                before, self._arrived[run_id] = self._arrived.get(run_id), run
        if before is not None:
            before.leave(None)
        if expected is not None:
            expected.set_result(run)
        elif perform is None:
            run.leave(None)  # its holder is not here any more
        else:
            perform(run_id)

    async def _brought(self, run_id: str, bring: Callable[[str], Awaitable[Waiting]]) -> DurableRun:
        expected: Future[DurableRun] = Future()
        with self._lock:
            self._expected[run_id] = expected
        try:
            wait = await bring(run_id)
            await wait(expected, _PATIENCE)
        except BaseException:
            if expected.done():
                expected.result().leave(None)
            raise
        finally:
            with self._lock:
                self._expected.pop(run_id, None)
        if not expected.done():
            raise StoreUnavailable(self.place, f"DBOS has not handed run {run_id!r} over for {_PATIENCE:g} s")
        return expected.result()

    async def _started(self, run_id: str) -> Waiting:
        """Start DBOS's workflow of a run, on this loop."""
        from dbos import SetWorkflowID  # noqa: PLC0415 - an extra

        try:
            with SetWorkflowID(run_id):
                await self._dbos.start_workflow_async(_body(), run_id)
        except Exception as error:  # noqa: BLE001 - of DBOS, or of what it is built on
            raise self._failed(error) from None
        return awaited

    async def _resumed(self, run_id: str) -> Waiting:
        """Let DBOS hand a run over to this process, whichever had it before."""
        await self._asked(self._own_queue)
        await self._asked(partial(self._dbos.resume_workflow, run_id, queue_name=self._queue))
        return self._wait

    def _enqueued(self, run_id: str) -> bool:
        from dbos import SetWorkflowID  # noqa: PLC0415 - an extra

        self._dbos.register_queue(QUEUE, worker_concurrency=_WORKER_RUNS, on_conflict="never_update")
        status = self._dbos.get_workflow_status(run_id)
        if status is None:
            with SetWorkflowID(run_id):
                self._dbos.enqueue_workflow(QUEUE, _body(), run_id)
        elif status.status not in _ENDED and (status.status, status.queue_name) != ("ENQUEUED", QUEUE):
            self._dbos.resume_workflow(run_id, queue_name=QUEUE)
        return status is None or status.status not in _ENDED

    def _own_queue(self) -> None:
        """Register the queue of this process; those of processes of this host that are gone are deleted."""
        if self._has_queue:
            return
        me = this_process()
        for queue in self._dbos.list_queues():
            if _is_of_gone(queue.name, me):
                self._dbos.delete_queue(queue.name)
        self._dbos.register_queue(self._queue, polling_interval_sec=self._poll)
        self._has_queue = True

    def _launched(self) -> None:
        with self._lock:
            if self._was_forked:
                raise ConfigurationError("engine", "dbos", "a process that was not forked from one with runs is needed")
            if self._dbos is None:
                self._dbos = self._launch()

    def _launch(self) -> Any:
        if (fault := dbos_fault()) is not None:
            raise ConfigurationError("engine", "dbos", fault)
        logger = logging.getLogger("dbos")
        if not logger.handlers:  # else it writes to the console by itself
            logger.addHandler(logging.NullHandler())
        try:  # half a second, for runs on this engine alone
            from dbos import DBOS, DBOSConfig, DBOSPortableJSONSerializer  # noqa: PLC0415
        except ImportError as error:
            expected = f"dbos cannot be imported ({error}); install the extra `dbos` again"
            raise ConfigurationError("engine", "dbos", expected) from error
        executor = f"{platform.node()}:{os.getpid()}:{secrets.token_hex(4)}"
        config = DBOSConfig(
            name=APPLICATION,
            system_database_url=re.sub(r"^postgres:", "postgresql:", self.url),
            dbos_system_schema=SCHEMA,
            executor_id=executor,
            application_version=_VERSION,
            serializer=DBOSPortableJSONSerializer(),  # pickles would run whatever is put into the database
            log_level="ERROR",  # a workflow that is left for others is a warning of it
            # No state of a session, but for the migrations: a pooler may stand between.
            use_listen_notify=False,
            # A process that is stopped while it takes runs from a queue would keep others from it.
            sys_db_idle_transaction_timeout_sec=10,
            sys_db_pool_size=4,
            db_engine_kwargs={"connect_args": {"prepare_threshold": None, "connect_timeout": 10}},
        )
        dbos: Any = DBOS
        _Current.runtime = self
        _body()
        try:
            dbos(config=config)
            if dbos.executor_id != executor:
                wanted = "a process of its own is needed for workflows: this one uses DBOS itself"
                raise ConfigurationError("engine", "dbos", wanted)
            dbos.listen_queues([self._queue] if self._perform is None else [self._queue, QUEUE])
            dbos.launch()
        except ConfigurationError:
            raise
        except BaseException:
            with suppress(Exception):
                dbos.destroy()  # else it takes itself for launched
            raise
        if self._perform is not None:
            conflict = "never_update" if self._concurrency is None else "always_update"
            most = self._concurrency or _WORKER_RUNS
            dbos.register_queue(QUEUE, worker_concurrency=most, on_conflict=conflict)
        return dbos

    def _forked(self) -> None:
        """In a forked process: the threads of DBOS are the parent's."""
        self._lock = Lock()
        self._was_forked = self._dbos is not None

    async def _asked(self, ask: Callable[[], T]) -> T:
        """Do something of DBOS's that blocks. Raises StoreUnavailable."""
        answer = self._threads.submit(ask)
        await self._wait(answer, _PATIENCE)
        if not answer.done():
            raise StoreUnavailable(self.place, f"DBOS has not answered for {_PATIENCE:g} s")
        try:
            return answer.result()
        except ConfigurationError:
            raise
        except Exception as error:  # noqa: BLE001 - as above
            raise self._failed(error) from None

    def _failed(self, error: Exception) -> StoreUnavailable:
        cause = getattr(error, "orig", None) or error  # SQLAlchemy's own text has statements and their values
        return StoreUnavailable(self.place, f"DBOS: {' '.join(str(cause).split()) or type(cause).__name__}")


_WORKER_RUNS = 10
"""The runs that a worker takes at once, until a worker says otherwise."""
_making = Lock()


class _Current:
    """The one runtime of this process, as DBOS is one of a process, and DBOS's function of a run."""

    runtime: DbosRuntime | None = None
    body: Any = None


def runtime_at(url: str, place: str) -> DbosRuntime:
    """Return the runtime of this process. Raises ConfigurationError when it has one on another database."""
    with _making:
        if _Current.runtime is None:
            _Current.runtime = DbosRuntime(url, place)
            atexit.register(_Current.runtime.close)
        if _Current.runtime.url != url:
            wanted = f"one database a process is needed: this one has its runs at {_Current.runtime.place} already"
            raise ConfigurationError("engine", "dbos", wanted)
        return _Current.runtime


def _body() -> Any:
    """Return DBOS's function of a run, which has to be made known to it once."""
    if _Current.body is None:
        from dbos import DBOS  # noqa: PLC0415 - an extra

        _Current.body = DBOS.workflow(name=_WORKFLOW)(_handed_over)
    return _Current.body


async def _handed_over(run_id: str) -> str:
    """Be DBOS's workflow of a run: hand its context over to the holder, and wait until that is through with it."""
    run, runtime, task = DurableRun(), _Current.runtime, asyncio.current_task()
    assert task is not None and runtime is not None  # noqa: S101, PT018 - a coroutine runs in a task
    task.add_done_callback(lambda _: run.gone.set_result(None))
    try:
        runtime.arrived(run_id, run)
    except RuntimeError:  # the loop that would perform it has ended
        run.leave(None)
    return await asyncio.wrap_future(run.over)


def _is_of_gone(queue: str, me: Holder) -> bool:
    kind, *parts = queue.split("|")
    if kind != _OWN or len(parts) != 5:
        return False
    host, boot, space, pid, started = parts
    holder = Holder(host=host, boot=boot, space=space, pid=int(pid), started=started)
    return is_gone(holder, me, started_at(holder.pid), one_host=False)
