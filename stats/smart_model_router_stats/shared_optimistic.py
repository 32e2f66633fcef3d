"""The shared state on a server that knows no rules: they run here, on the rows that were last seen.

What they decide is sent together with the revisions of the rows that they read. Where one of them has changed, the
server writes nothing and returns the newer rows, and the rules run again. Limits, budgets and slots are the exception:
see RowServer.lease.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar, cast

from smart_model_router.domain.shared_state import Claim, Restored, SharedStateError
from smart_model_router_stats import transactions
from smart_model_router_stats.row_server import RowAnswer, RowExchange
from smart_model_router_stats.server_rows import AttemptTables, KnownRows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from smart_model_router.domain.shared_state import (
        BreakerRow,
        BucketAsk,
        BucketGrant,
        BudgetAsk,
        Changes,
        MakerRow,
        SharedView,
        SlotAsk,
        SlotGrant,
    )
    from smart_model_router_stats.row_server import RowServer
    from smart_model_router_stats.server_clock import SharedClock

T = TypeVar("T")

_BLOCKING_SECONDS = 0.25
_TICK = 0.05
"""The interval of checks meanwhile: a process that gets no processor time, as many do that begin together, must not
blame the server."""
_WAITING_SECONDS = 0.02
"""The time for new attempts at a probe, for which a request waits."""
_BEHIND_SECONDS = 5.0
"""The same of what nothing waits for."""
_FIRST_PAUSE = 0.0005
_LONGEST_PAUSE = 0.02


class ServerSharedState:
    """One process's way to a server. `connect` makes a connection for the running loop; `local` is a monotonic clock.

    It passes tests/conformance/shared_states.py. Several loops, one after the other, and forks have connections of
    their own.
    """

    def __init__(self, connect: Callable[[], RowServer], clock: SharedClock, local: Callable[[], float]) -> None:
        self._connect = connect
        self._clock = clock
        self._local = local
        self._known = KnownRows()
        self._seen = ("", -1)
        self._stepped = ""
        """The epoch in which the server's clock was set."""
        self._server: RowServer | None = None
        self._owner: tuple[int, asyncio.AbstractEventLoop] | None = None
        self._inherited: list[RowServer | None] = []
        """Connections of the processes that forked this one: without a reference they would be closed here, and with
        them the watch that the parent's loop keeps on its own."""
        self._pauses = random.Random()  # noqa: S311 - chance, not secrets
        self._under_way: set[asyncio.Task[object]] = set()
        self.conflicts = 0
        """The number of attempts that were made again because another process was faster."""
        self.round_trip: float | None = None
        """Seconds of the newest round trip."""

    @property
    def epoch(self) -> str:
        """The server's epoch: a number that grows when it lost writes or its clock was set. "" before it was heard."""
        return self._known.epoch

    def restore(self) -> Restored:
        """Return the whole state."""

        async def read(server: RowServer) -> Restored:
            await self._refresh(server, whole=True)
            found = await self._attempt(server, lambda tables: transactions.restore(tables, self._clock()))
            return Restored(found.view, tuple(await server.calls()))

        return self._now(read)

    def publish_now(self, changes: Changes) -> SharedView:
        """Publish on a connection of its own."""
        return self._now(lambda server: self._publish(server, changes))

    async def poll(self) -> SharedView | None:
        """Everything, when something changed."""

        async def look(server: RowServer) -> tuple[tuple[str, int], SharedView | None]:
            if self._known.last >= 0 and await server.newest() == self._seen:
                return self._seen, None
            await self._refresh(server)
            return (self._known.epoch, self._known.news), transactions.view(AttemptTables(self._known))

        self._seen, view = await self._ask(look)  # a caller who is cancelled has seen nothing
        return view

    async def claim(self, rows: Sequence[BreakerRow]) -> Claim:
        """Take the probes of all these breakers, or of none."""

        async def take(server: RowServer) -> Claim:
            def rule(tables: AttemptTables) -> Claim:
                return transactions.claim(tables, rows, self._clock())

            try:
                return await self._attempt(server, rule, wanted=len(rows), within=_WAITING_SECONDS)
            except _Contended:
                return Claim((), transactions.view(AttemptTables(self._known)))

        return await self._ask(take)

    async def renew(self, rows: Sequence[BreakerRow]) -> tuple[BreakerRow, ...]:
        """Extend leases."""
        return await self._ask(
            lambda server: self._attempt(server, lambda tables: transactions.renew(tables, rows), wanted=len(rows))
        )

    async def publish(self, changes: Changes) -> SharedView:
        """Write what may be written."""
        return await self._ask(lambda server: self._publish(server, changes))

    async def makers(self, things: Sequence[bytes]) -> tuple[MakerRow, ...]:
        """The makers of these things, as far as they are known."""

        async def read(server: RowServer) -> tuple[MakerRow, ...]:
            return tuple(await server.makers(things))

        return await self._ask(read)

    async def lease_slots(self, asks: Sequence[SlotAsk]) -> tuple[SlotGrant | None, ...]:
        """Lease slots."""
        return cast("tuple[SlotGrant | None, ...]", await self._lease(asks))

    async def lease(self, asks: Sequence[BucketAsk | BudgetAsk]) -> tuple[BucketGrant | None, ...]:
        """Lease tokens, and reserve in budgets."""
        return cast("tuple[BucketGrant | None, ...]", await self._lease(asks))

    async def _lease(
        self, asks: Sequence[BucketAsk | BudgetAsk | SlotAsk]
    ) -> tuple[BucketGrant | SlotGrant | None, ...]:
        async def settle(server: RowServer) -> tuple[BucketGrant | SlotGrant | None, ...]:
            await self._know(server)
            for _ in range(2):  # the second time in the server's new epoch
                sent = self._local()
                leased = await server.lease(asks, self._clock(), self._known.epoch)
                self._heard(self._known.epoch, leased.at, sent)
                if leased.grants is not None:
                    return leased.grants
                await self._refresh(server, whole=True)
            raise SharedStateError("the server begins anew again and again")

        return await self._ask(settle)

    async def aclose(self) -> None:
        """Close the connections. What a server that stands still has not answered by then is given up."""
        under_way, server, self._server = set(self._under_way), self._server, None
        if server is None or self._owner != (os.getpid(), asyncio.get_running_loop()):
            return
        if under_way:
            await asyncio.wait(under_way, timeout=_BLOCKING_SECONDS)
        await server.aclose()
        for task in under_way:
            task.cancel()

    # Attempts -----------------------------------------------------------------------------------------------

    async def _publish(self, server: RowServer, changes: Changes) -> SharedView:
        wanted = len(changes.breakers) + len(changes.rests) + len(changes.words)
        view = await self._attempt(
            server, lambda tables: transactions.publish(tables, changes, self._clock()), wanted=wanted
        )
        if not changes.members:
            return view
        now = AttemptTables(self._known)  # with the rows of others, which came with the answer
        return replace(view, limits=tuple(now.buckets()), budgets=tuple(now.budgets()), members=tuple(now.members()))

    async def _attempt(
        self,
        server: RowServer,
        rule: Callable[[AttemptTables], T],
        *,
        wanted: int = 0,
        within: float = _BEHIND_SECONDS,
    ) -> T:
        """Run `rule` until its writes are done. When it writes less than `wanted`, it sees the newest rows first."""
        fresh = await self._know(server)
        until, pause = self._local() + within, _FIRST_PAUSE
        while True:
            tables = AttemptTables(self._known)
            result = rule(tables)
            writes = tables.writes(self._clock())
            if len(writes) < wanted and not fresh:
                await self._refresh(server)
                fresh = True
                continue
            if not (writes or tables.added_calls or tables.added_makers):
                return result
            news = self._known.news
            answer = await self._exchange(
                server,
                expected=tables.expected,
                news=news if tables.scanned else None,
                writes=writes,
                tells=tables.tells,
                calls=tables.added_calls,
                makers=tables.added_makers,
            )
            if answer.done:
                return result
            fresh = True
            self.conflicts += 1
            unchanged = all(self._known.get(name).revision == read for name, read in tables.expected.items())
            if unchanged and answer.news == news and not answer.full:  # a row that is known here is gone there
                await self._refresh(server, whole=True)
            if self._local() >= until:
                raise _Contended("other processes are faster again and again")
            await asyncio.sleep(self._pauses.uniform(0.0, pause))
            pause = min(2 * pause, _LONGEST_PAUSE)

    async def _know(self, server: RowServer) -> bool:
        """Read the rows if none were read yet; True when they were."""
        if self._known.last >= 0:
            return False
        await self._refresh(server)
        return True

    async def _refresh(self, server: RowServer, *, whole: bool = False) -> None:
        await self._exchange(server, whole=whole)

    async def _exchange(self, server: RowServer, *, whole: bool = False, **asked: object) -> RowAnswer:
        """One round trip; whatever is new is known afterwards."""
        answer = await self._trip(server, whole=whole, **asked)
        if self._clock.far:  # the first trip had a connection to make, too
            await self._trip(server)
        if self._clock.far:
            trip = f"{1000 * self._clock.far:.0f} ms"
            raise SharedStateError(f"a round trip takes {trip}, too long to know the server's time")
        return answer

    async def _trip(self, server: RowServer, *, whole: bool = False, **asked: object) -> RowAnswer:
        known = self._known
        request = RowExchange(
            since=-1 if whole or known.is_cluttered else known.last,
            epoch=known.epoch,
            fresh=uuid.uuid4().hex[:8],
            stepped=bool(known.epoch) and self._stepped == known.epoch,
            **asked,  # type: ignore[arg-type] # the fields that the callers name
        )
        sent = self._local()
        answer = await server.exchange(request)
        self._heard(answer.epoch, answer.at, sent)
        known.take(answer.epoch, answer.news, answer.last, answer.rows, full=answer.full)
        return answer

    def _heard(self, epoch: str, at: float, sent: float) -> None:
        received = self._local()
        self.round_trip = received - sent
        if self._clock.heard(epoch, at, sent, received):
            self._stepped = epoch

    # Loops and connections ----------------------------------------------------------------------------------

    async def _ask(self, work: Callable[[RowServer], Coroutine[object, object, T]]) -> T:
        """Do it as a task of its own: the caller may be cancelled, what it sent may be written all the same."""
        task = asyncio.get_running_loop().create_task(work(self._connected()))
        self._under_way.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[object]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # where the caller was cancelled, it is told to nothing else

    def _connected(self) -> RowServer:
        owner = os.getpid(), asyncio.get_running_loop()
        if self._server is None or self._owner != owner:
            if self._owner is not None and self._owner[0] != owner[0]:
                self._inherited.append(self._server)
            self._server, self._owner = self._connect(), owner
            self._under_way = set()
        return self._server

    def _now(self, work: Callable[[RowServer], Coroutine[object, object, T]]) -> T:
        """Do it on a thread and a connection of its own, where no loop runs or the one that runs may not be left."""
        found: list[T] = []
        failed: list[BaseException] = []

        async def once() -> T:
            server = self._connect()
            asked = asyncio.ensure_future(work(server))
            try:
                for _ in range(round(_BLOCKING_SECONDS / _TICK)):
                    if (await asyncio.wait({asked}, timeout=_TICK))[0]:
                        return asked.result()
                raise TimeoutError
            finally:
                asked.cancel()
                await asyncio.gather(asked, return_exceptions=True)
                await server.aclose()

        def run() -> None:
            try:
                found.append(asyncio.run(once()))
            except BaseException as error:  # noqa: BLE001 - it is raised where it belongs
                failed.append(error)

        thread = threading.Thread(target=run, name="smart-model-router shared state", daemon=True)
        thread.start()
        thread.join(4 * _BLOCKING_SECONDS)
        if found:
            return found[0]
        error = failed[0] if failed else TimeoutError()
        if isinstance(error, TimeoutError):
            raise SharedStateError(f"no answer within {_BLOCKING_SECONDS:g} s") from None
        raise error


class _Contended(SharedStateError):
    """Other processes were faster in every attempt."""
