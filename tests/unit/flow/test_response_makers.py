"""Who made the things kept at providers: told to other processes, looked up, and guarded by their owner's key."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from smart_model_router.domain.errors import InvalidRequest, NotFound, UnsupportedFeature
from smart_model_router.domain.outcome import Outcome, Success, Usage
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.domain.shared_state import MakerRow
from smart_model_router.flow import reference_resolution
from smart_model_router.testing import FakeProvider
from smart_model_router_stats.memory import MemoryTables
from tests.unit.coordination.test_coordinator import LISTENED, Store, sharing
from tests.world import World, now, virtual, world

RESPONSES = {"kind": "openai", "base_url": "http://fake.invalid/v1"}
KINDS = {"a": RESPONSES, "b": RESPONSES}
MESSAGE = {"id": "msg_1", "type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
ANSWER: Mapping[str, Any] = {"id": "resp_1", "object": "response", "status": "completed", "output": [MESSAGE]}


class Answering(FakeProvider):
    """A provider that answers so in Responses."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__()
        self._body = body

    async def call(self, call: ProviderCall) -> Outcome:
        """Answer."""
        await super().call(call)
        return Success(self._body, json.dumps(self._body).encode(), Usage(1, 1))


def answering(body: Mapping[str, Any]) -> Mapping[str, FakeProvider]:
    """Two accounts."""
    return {"a": Answering({**body, "id": "resp_a", "output": []}), "b": Answering(body)}


def two(tables: MemoryTables, body: Mapping[str, Any] = ANSWER) -> tuple[World, Store]:
    """One of several processes over two accounts."""
    return sharing(["a/m", "b/m"], tables=tables, replies=answering(body), kinds=KINDS)


async def make(w: World, **options: Any) -> None:
    """Have the second account answer."""
    await w.router.responses({"model": "smart", "input": "hi"}, target="b/m", **options)


async def refer(w: World, *, item: bool = False, **options: Any) -> str | None:
    """The target that a request with a reference goes to."""
    referring: Any = [{"type": "item_reference", "id": "msg_1"}, {"role": "user", "content": "go on"}]
    body: dict[str, Any] = {"input": referring} if item else {"input": "on", "previous_response_id": "resp_1"}
    return (await w.router.responses({"model": "smart", **body}, **options)).report.target


@virtual
@pytest.mark.parametrize("item", [False, True], ids=["answer", "item"])
async def test_every_process_knows_who_made_it(item: bool) -> None:
    """At once, in one that was there and in one that begins later: the look waits until the news must be there."""
    tables = MemoryTables()
    (one, _), (other, _) = two(tables), two(tables)
    await make(one)
    assert await refer(one, item=item) == "b/m"
    assert await refer(other, item=item) == "b/m"
    later, _ = two(tables)
    started = now()
    assert await refer(later, item=item) == "b/m"
    assert now() - started < LISTENED
    for w in (one, other, later):
        await w.router.aclose()


@virtual
async def test_without_shared_state_this_process_knows() -> None:
    """And another account is asked by nobody."""
    w = world(["a/m", "b/m"], replies=answering(ANSWER), kinds=KINDS)
    await make(w)
    assert await refer(w) == "b/m"
    assert w.calls("a") == 0


@virtual
async def test_what_was_made_for_one_owner_is_not_found_for_another() -> None:
    """In the process that made it and in another; nothing is sent, and nothing is said of the owner."""
    tables = MemoryTables()
    (one, _), (other, _) = two(tables), two(tables)
    await make(one, owner="first")
    for w in (one, other):
        with pytest.raises(NotFound, match="'resp_1' was not found") as told:
            await refer(w, owner="second")
        assert "first" not in str(told.value)
        assert told.value.report is not None
        stream = w.router.stream_responses({"model": "smart", "input": "on", "previous_response_id": "resp_1"})
        with pytest.raises(NotFound):
            await anext(aiter(stream))
        assert await refer(w, owner="first") == "b/m"
    for w in (one, other):
        await w.router.aclose()


@virtual
async def test_an_answer_that_is_not_kept_is_nobodys() -> None:
    """`store: false` leaves no trace; of two accounts neither is guessed, and the error says what helps."""
    tables = MemoryTables()
    w, store = two(tables, {**ANSWER, "store": False})
    await make(w)
    with pytest.raises(UnsupportedFeature, match="x-router-target"):
        await refer(w)
    assert await refer(w, target="b/m") == "b/m"
    await w.router.aclose()
    assert await store.makers([bytes(32)]) == ()
    assert not tables._makers


@virtual
async def test_a_thing_of_unknown_making_is_looked_for_once() -> None:
    """The first request waits for news of it, later ones do not."""
    w, _ = two(MemoryTables())
    for seconds in (LISTENED, 0.0):
        started = now()
        with pytest.raises(UnsupportedFeature):
            await refer(w)
        assert now() - started == pytest.approx(seconds)
    await w.router.aclose()


@virtual
async def test_news_that_came_late_is_found_after_a_while() -> None:
    """Found: a process whose first look came too early never knew. The later look keeps nobody waiting."""
    tables = MemoryTables()
    (one, _), (other, _) = two(tables), two(tables)
    with pytest.raises(UnsupportedFeature):
        await refer(other)
    await make(one)
    await asyncio.sleep(reference_resolution.AGAIN)
    started = now()
    assert await refer(other) == "b/m"
    assert now() == started
    for w in (one, other):
        await w.router.aclose()


@virtual
async def test_thousands_of_references_are_looked_for_in_parts_and_nonsense_is_not() -> None:
    """Other questions to the store get their turns in between; an id that no provider makes is not remembered."""
    w, store = two(MemoryTables())
    parts: list[int] = []
    ask = store.makers

    async def counted(things: Sequence[bytes]) -> tuple[MakerRow, ...]:
        parts.append(len(things))
        return await ask(things)

    store.makers = counted  # type: ignore[method-assign]  # to look at what it is asked
    long = "x" * 100_000
    asked: Any = [{"type": "item_reference", "id": f"msg_{number}"} for number in range(1_200)]
    with pytest.raises(UnsupportedFeature):
        await w.router.responses({"model": "smart", "input": [*asked, {"type": "item_reference", "id": long}]})
    assert parts == [500, 500, 200] * 3
    assert long not in w.state.makers._known
    await w.router.aclose()


@virtual
async def test_a_store_that_cannot_be_read_keeps_nobody_waiting() -> None:
    """What this process made it knows; the rest is told once the store is there again."""
    tables = MemoryTables()
    (one, store), (other, blind) = two(tables), two(tables)
    store.failure = blind.failure = "the disk is on fire"
    await make(one)
    assert await refer(one) == "b/m"
    started = now()
    with pytest.raises(UnsupportedFeature):
        await refer(other)
    assert now() == started
    store.failure = blind.failure = ""
    await one.router._state.clock.sleep(2)
    assert await refer(other) == "b/m"
    for w in (one, other):
        await w.router.aclose()


@virtual
async def test_an_account_whose_key_was_replaced_is_still_found() -> None:
    """By the target's name, when only one has it."""
    tables = MemoryTables()
    one, _ = two(tables)
    await make(one)
    await one.router.aclose()
    (row,) = [row for row in tables._makers.values() if row.target == "b/m"][:1]
    tables._makers = {row.thing: type(row)(thing=row.thing, target="b/m@0ld0ld00", owner="", at=row.at)}
    later, _ = two(tables)
    assert await refer(later) == "b/m"
    await later.router.aclose()


@virtual
async def test_a_target_that_is_none_of_the_models_is_refused_with_those_there_are() -> None:
    """Before anything is sent, for whole answers and for streams."""
    w = world(["a/m"], ["b/m"], kinds=KINDS)
    with pytest.raises(InvalidRequest, match="target: 'c/m' is no target of 'smart'; there are a/m, b/m"):
        await refer(w, target="c/m")
    with pytest.raises(InvalidRequest, match="target: text is needed"):
        await refer(w, target=3)
    with pytest.raises(InvalidRequest, match="there are a/m, b/m"):
        w.router.stream_responses({"model": "smart", "input": "hi"}, target="c/m")
