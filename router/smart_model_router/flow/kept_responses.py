"""Answers that were made by translation, kept for requests that refer to them: written behind, read on demand.

No answer waits for the file: it is written as soon as the answer is there, by one task, and until then it is found in
this process; another process that is asked for it meanwhile looks again. While the file is out of reach the newest
answers wait in memory.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from smart_model_router.coordination.store_health import RETRY_SECONDS, TOO_SLOW, StoreReachability, in_time
from smart_model_router.domain.body_encoding import LARGE_BYTES, encode, encode_large
from smart_model_router.domain.errors import InvalidRequest, NotFound, RouterUnavailable
from smart_model_router.domain.events import StoreChanged
from smart_model_router.domain.fork_hooks import in_children
from smart_model_router.domain.ports import ResponseStore
from smart_model_router.domain.shared_state import LONGEST_CHAIN, KeptResponse, SharedStateError
from smart_model_router.flow.off_loop import off_loop
from smart_model_router.flow.reference_resolution import LOOKS, not_found
from smart_model_router.wires import own_ids

if TYPE_CHECKING:
    from smart_model_router.flow.reference_resolution import ResolvedRequest
    from smart_model_router.flow.state import RouterState

T = TypeVar("T")

PENDING_BYTES = 16 * 1024 * 1024
"""The most bytes that may wait to be written; beyond, the oldest answers are given up."""
_AT_ONCE = 32


class KeptResponses:
    """One router's access to a store of responses. Not thread-safe: it belongs to the router's loop.

    `lifetime` says for how long answers are kept, in words for an error; `nonce` makes the random part of ids.
    """

    def __init__(
        self,
        state: RouterState,
        store: ResponseStore,
        *,
        lifetime: str,
        nonce: Callable[[int], bytes] = secrets.token_bytes,
    ) -> None:
        self._state = state
        self._store = store
        self._lifetime = lifetime
        self._nonce = nonce
        self._reach = StoreReachability(state.clock, self._reach_changed)
        self._secrets = [nonce(own_ids.NONCE_BYTES)]
        """The newest first: ids that were issued before the store's was known are ours, too."""
        self._secret_known = False
        self._pending: dict[str, KeptResponse] = {}
        self._coming: dict[str, asyncio.Task[None]] = {}
        """Large answers that are being encoded beside the loop, by their ids."""
        self._size = 0
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        in_children(self._forked)

    def continue_from(self, before: KeptResponses) -> None:
        """Go on with what another router of this loop has kept, in whose place this one is."""
        self._secrets = [*before._secrets, *self._secrets]
        self._secret_known = before._secret_known
        for row in before._pending.values():
            self._wait_with(row)
        if before._store.in_memory and self._store.in_memory:
            self._store = before._store

    @property
    def reason(self) -> str:
        """The reason why they cannot be written or read now, "" while they can."""
        return self._reach.reason

    async def ready(self) -> None:
        """Know the secret that every process issues ids under. Waits half a second at most, and once at a time."""
        if self._secret_known or self._state.clock.now() < self._reach.retry_at:
            return
        with suppress(SharedStateError):
            self._secrets.insert(0, await self._ask(self._store.secret()))
            self._secret_known = True

    def issue(self, target: str, owner: str) -> str:
        """An id for an answer of this target."""
        return own_ids.issue(self._nonce(own_ids.NONCE_BYTES), target, owner, self._secrets[0])

    def keep(self, answer: Mapping[str, Any], asked: ResolvedRequest) -> None:
        """Keep an answer as it is delivered to what was asked."""
        request = asked.request
        large = request.prompt_bytes > LARGE_BYTES
        write = encode_large if large else encode

        def written() -> KeptResponse:
            own, said = (write(value) for value in (list(asked.items()), answer))
            return KeptResponse(id=answer["id"], owner=request.owner, parent=asked.parent, input=own, answer=said)

        if large:
            large_one = asyncio.get_running_loop().create_task(self._keep_large(written, request.prompt_bytes))
            self._state.keep(large_one)
            self._coming[answer["id"]] = large_one
            large_one.add_done_callback(lambda _: self._coming.pop(answer["id"], None))
        else:
            self._keep(written())

    async def _keep_large(self, written: Callable[[], KeptResponse], size: int) -> None:
        self._keep(await off_loop(written, size))

    async def _arrived(self, response: str) -> None:
        """Wait for an answer that was delivered and is not encoded yet."""
        if (coming := self._coming.get(response)) is not None:
            await asyncio.wait((coming,))

    def _keep(self, row: KeptResponse) -> None:
        self._wait_with(row)
        if self._task is None or self._task.done():
            self._wake = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(self._write(), name="smart-model-router responses")

    async def chain(self, response: str, owner: str) -> list[KeptResponse]:
        """An answer and all it goes on from, the newest first.

        Raises NotFound; InvalidRequest for more than LONGEST_CHAIN; RouterUnavailable while the store is out of reach.
        """
        _check(response)
        found: list[KeptResponse] = []
        following: str | None = response
        while following is not None:
            await self._arrived(following)
            row = self._pending.get(following)
            rows = (row,) if row is not None and row.owner == owner else await self._look(following, owner)
            if not rows:
                raise self._broken(response) if found else self._missing(response, owner)
            found += rows
            if sum(one.size for one in found) > LONGEST_CHAIN:
                most = f"{LONGEST_CHAIN // 1_048_576} MiB"
                raise InvalidRequest(
                    f"{response[:100]!r}: the conversation is longer than {most}; send its items instead"
                )
            following = found[-1].parent
        return found

    async def answer(self, response: str, owner: str) -> KeptResponse:
        """An answer without what it goes on from. Raises NotFound; RouterUnavailable as `chain` does."""
        _check(response)
        await self._arrived(response)
        row = self._pending.get(response)
        if row is not None and row.owner == owner:
            return row
        if found := await self._look(response, owner, generations=1):
            return found[0]
        raise self._missing(response, owner)

    async def remove(self, response: str, owner: str) -> None:
        """Forget an answer. Raises NotFound; RouterUnavailable while the store is out of reach."""
        _check(response)
        await self._arrived(response)
        row = self._pending.get(response)
        if row is not None and row.owner == owner:
            self._written((row,))
        elif not await self._look(response, owner, generations=1):
            raise self._missing(response, owner)
        try:
            await self._ask(self._store.remove(response, owner))
        except SharedStateError as error:
            raise _out_of_reach(error.reason) from None

    async def aclose(self) -> None:
        """Write what is left, within a second, and let go. Safe to call twice."""
        task, self._task = self._task, None
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            self._reach.retry_at = 0.0
            self._wake.set()
            await asyncio.wait((task,), timeout=RETRY_SECONDS)
            task.cancel()
        await self._store.aclose()

    async def _write(self) -> None:
        while self._pending:
            if (pause := self._reach.retry_at - self._state.clock.now()) > 0:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wake.wait(), pause)
                self._wake.clear()
            rows = tuple(islice(self._pending.values(), _AT_ONCE))
            with suppress(SharedStateError):
                await self._ask(self._store.add(rows))
                self._written(rows)

    async def _look(self, response: str, owner: str, generations: int | None = None) -> tuple[KeptResponse, ...]:
        """The answer in the store. One that was issued under our secret may be about to be written."""
        await self.ready()
        for pause in LOOKS if self._is_issued(response, owner) else LOOKS[:1]:
            if pause:
                await self._state.clock.sleep(pause)
            if (left := self._reach.retry_at - self._state.clock.now()) > 0:
                raise _out_of_reach(self._reach.reason, left)
            try:
                if found := await self._ask(self._store.chain(response, owner, generations)):
                    return found
            except SharedStateError as error:
                raise _out_of_reach(error.reason) from None
        return ()

    async def _ask(self, question: Awaitable[T]) -> T:
        """Ask the store, and remember whether it answers in time."""
        try:
            async with in_time():
                found = await question
        except TimeoutError:
            self._reach.lose(TOO_SLOW)
            raise SharedStateError(TOO_SLOW) from None
        except SharedStateError as error:
            self._reach.lose(error.reason)
            raise
        self._reach.regain()
        return found

    def _wait_with(self, row: KeptResponse) -> None:
        self._pending[row.id] = row
        self._size += row.size
        while self._size > PENDING_BYTES:
            self._written((next(iter(self._pending.values())),))

    def _written(self, rows: Iterable[KeptResponse]) -> None:
        for row in rows:
            if self._pending.pop(row.id, None) is not None:
                self._size -= row.size

    def _is_issued(self, response: str, owner: str) -> bool:
        return any(own_ids.is_issued(response, owner, secret) for secret in self._secrets)

    def _missing(self, response: str, owner: str) -> NotFound:
        """The error for an answer that is not kept; the owner of its id learns more than others."""
        if not self._is_issued(response, owner):
            return not_found(response)
        by = own_ids.target_of(response, self._state.fleet.gates)
        of = "" if by is None else f" of {by}"
        return NotFound(
            f"{response[:100]!r}, a translated answer{of}, is not kept here: it was asked for with store=false, was "
            f"deleted, or is older than the newest that fit; answers are kept {self._lifetime}"
        )

    def _broken(self, response: str) -> NotFound:
        told = "an answer that it goes on from was deleted, or is older than the newest that fit"
        return NotFound(f"{response[:100]!r} cannot be gone on from: {told}")

    def _reach_changed(self, reason: str) -> None:
        now = self._state.clock.now()
        self._state.emit(StoreChanged(at=now, store="responses", degraded=bool(reason), reason=reason))

    def _forked(self) -> None:
        """This is a copy of the process: what waits to be written is the parent's to write."""
        self._pending, self._coming, self._size, self._task = {}, {}, 0, None
        self._reach.retry_at = 0.0


def _check(response: str) -> None:
    """Raises NotFound for what has not the form of an answer's id, as the id of an item has not."""
    if own_ids.response_of(response) != response:
        raise not_found(response)


def _out_of_reach(reason: str, retry_after: float = RETRY_SECONDS) -> RouterUnavailable:
    return RouterUnavailable(f"kept responses cannot be read now: {reason}", retry_after=retry_after)
