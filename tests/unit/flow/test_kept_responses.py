"""Translated answers that are kept: what requests that refer to them become, and what happens without the store."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.domain.body_encoding import LARGE_BYTES
from smart_model_router.domain.errors import InvalidRequest, NotFound, RouterUnavailable, StreamInterrupted
from smart_model_router.domain.events import StoreChanged
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.request import RouteRequest, peek
from smart_model_router.domain.shared_state import KeptResponse, SharedStateError
from smart_model_router.flow import kept_responses, reference_resolution
from smart_model_router.flow.kept_responses import KeptResponses
from smart_model_router.flow.reference_resolution import ResolvedRequest
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.memory import MemoryResponses
from smart_model_router_stats.responses_sqlite import SqliteResponses
from tests.world import World, now, virtual, world

CUT = FakeReply(cut=Failure(FailureClass.TRANSPORT, "reset"))


class Shared(MemoryResponses):
    """A store that several routers have in common, as if in a file."""

    in_memory = False


def keeping_world(store: Shared | None = None, **given: Any) -> tuple[World, Shared]:
    """A router over a provider of Chat that keeps its answers there, as one more process would."""
    store = store or Shared(ttl=100.0, most=10**6, wall=lambda: 1_700_000_000 + now())
    made = world(["a/big"], **given)
    made.state.kept = KeptResponses(made.state, store, lifetime="for 100 s")
    return made, store


async def ask(w: World, asked: Any, **given: Any) -> Mapping[str, Any]:
    """One answer."""
    return (await w.router.responses({"model": "smart", "input": asked, **given})).body


async def rest_of(events: AsyncIterator[Any]) -> list[Any]:
    """What is left of a stream."""
    return [event async for event in events]


def sent(w: World, provider: str = "a") -> list[tuple[str, Any]]:
    """The conversation that the provider was sent last."""
    return [(message["role"], message["content"]) for message in w.providers[provider].calls[-1].body["messages"]]


@virtual
async def test_a_process_finds_what_another_is_about_to_write() -> None:
    """The id says that it was issued, so the look is repeated while the other one writes."""
    (one, store), writes = keeping_world(), []
    other, _ = keeping_world(store)
    await ask(other, "warm up")
    made = await ask(one, "one")
    writes.append(made["id"])
    await ask(other, "two", previous_response_id=made["id"])
    assert sent(other) == [("user", "one"), ("assistant", "Hello, world."), ("user", "two")]
    for w in (one, other):
        await w.router.aclose()


@virtual
async def test_calls_and_results_of_tools_go_on_whole() -> None:
    """A reference to a tool call is the call; its result follows it; instructions are those of the new request."""
    w, _ = keeping_world()
    kept = w.state.kept
    assert kept is not None
    call = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"}
    answer_id = kept.issue("a/big", "")
    place = answer_id.removeprefix("resp_")
    answer = {"id": answer_id, "object": "response", "output": [{"id": f"fc_{place}_0", **call}]}
    kept.keep(answer, ResolvedRequest(peek("responses", {"model": "smart", "input": "weather?"})))
    result = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
    tools = [{"type": "function", "name": "f", "parameters": {"type": "object"}}]
    await ask(w, [result], previous_response_id=answer_id, instructions="be brief", tools=tools)
    messages = w.providers["a"].calls[-1].body["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    reference = {"type": "item_reference", "id": f"fc_{place}_0"}
    asked = {"type": "message", "role": "user", "content": "weather?"}
    await ask(w, [asked, reference, result], tools=tools)
    assert w.providers["a"].calls[-1].body["messages"] == messages[1:]
    await w.router.aclose()


@virtual
async def test_an_item_by_its_id_alone_and_a_message_that_has_one() -> None:
    """The type of a reference may be left out; an item that is there whole is no reference, whatever its id."""
    w, _ = keeping_world()
    item = (await ask(w, "one"))["output"][0]
    await ask(w, [{"role": "user", "content": "one"}, {"id": item["id"]}, {**item}, {"role": "user", "content": "two"}])
    assert [role for role, _ in sent(w)] == ["user", "assistant", "assistant", "user"]
    await w.router.aclose()


@virtual
async def test_an_id_that_is_no_answers_is_not_found() -> None:
    """Found: an item's id where an answer's was due was a bug (500); `..` reached another path of the provider."""
    w, _ = keeping_world()
    answer = await ask(w, "one")
    item = answer["output"][0]["id"]
    for thing in (item, item.rpartition("_")[0], f"{answer['id']}_0"):
        with pytest.raises(NotFound):
            await ask(w, "two", previous_response_id=thing)
    for thing in (item, item.rpartition("_")[0], ".", ".."):
        for operation in ("retrieve", "delete"):
            with pytest.raises(NotFound, match="no such response"):
                await w.router.kept_response(thing, operation, {}, bool)
    assert len(w.providers["a"].calls) == 1
    await w.router.aclose()


@virtual
async def test_a_cut_stream_is_not_kept_and_a_whole_one_is() -> None:
    """Only an answer that was complete can be referred to."""
    w, store = keeping_world(replies={"a": FakeProvider([CUT, FakeReply()])})
    stream = aiter(w.router.stream_responses({"model": "smart", "input": "one"}))
    begun = await anext(stream)
    with pytest.raises(StreamInterrupted):
        await rest_of(stream)
    with pytest.raises(NotFound):
        await ask(w, "two", previous_response_id=begun["response"]["id"])
    final = (await rest_of(aiter(w.router.stream_responses({"model": "smart", "input": "one"}))))[-1]
    await ask(w, "two", previous_response_id=final["response"]["id"])
    assert [role for role, _ in sent(w)] == ["user", "assistant", "user"]
    await w.router.aclose()
    assert len(store._rows) == 2


@virtual
async def test_what_was_removed_ends_what_goes_on_from_it() -> None:
    """The error says so; the answer itself is not there any more."""
    w, _ = keeping_world()
    first = await ask(w, "one")
    second = await ask(w, "two", previous_response_id=first["id"])
    kept = w.state.kept
    assert kept is not None
    await kept.remove(first["id"], "")
    for thing, told in ((first["id"], "translated answer of a/big, is not kept"), (second["id"], "was deleted")):
        with pytest.raises(NotFound, match=told):
            await ask(w, "three", previous_response_id=thing)
    with pytest.raises(NotFound):
        await kept.remove(first["id"], "")
    await w.router.aclose()


@virtual
async def test_a_conversation_beyond_the_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its items can still be sent; nothing is answered from a part of it."""
    w, _ = keeping_world()
    first = await ask(w, "hello")
    monkeypatch.setattr("smart_model_router.flow.kept_responses.LONGEST_CHAIN", 10)
    with pytest.raises(InvalidRequest, match="send its items instead"):
        await ask(w, "go on", previous_response_id=first["id"])


@virtual
async def test_an_answer_ends_after_its_time() -> None:
    """Its chain with it, and the error says for how long answers are kept."""
    w, _ = keeping_world()
    first = await ask(w, "one")
    await w.state.clock.sleep(60)
    second = await ask(w, "two", previous_response_id=first["id"])
    await w.state.clock.sleep(60)
    await ask(w, "three", previous_response_id=second["id"])
    await w.state.clock.sleep(101)
    with pytest.raises(NotFound, match="kept for 100 s"):
        await ask(w, "four", previous_response_id=second["id"])
    await w.router.aclose()


@virtual
async def test_while_the_store_is_out_of_reach_answers_wait_in_memory() -> None:
    """No answer is later for it; this process knows its own; others are told when to come back; then all is written."""
    w, store = keeping_world()
    other, _ = keeping_world(store)
    before = await ask(other, "warm up")
    await other.state.clock.sleep(0.01)
    store.failure = "the disk is full"
    started = now()
    first = await ask(w, "one")
    second = await ask(w, "two", previous_response_id=first["id"])
    assert now() == started
    assert len(sent(w)) == 3
    with pytest.raises(RouterUnavailable, match="the disk is full") as told:
        await ask(w, "three", previous_response_id=before["id"])
    assert told.value.retry_after is not None
    assert 0 < told.value.retry_after <= 1
    store.failure = ""
    await w.state.clock.sleep(1.1)
    await ask(other, "three", previous_response_id=second["id"])
    assert len(sent(other)) == 5
    changes = [(e.store, e.degraded, e.reason) for e in w.sink.events if isinstance(e, StoreChanged)]
    assert changes == [("responses", True, "the disk is full"), ("responses", False, "")]
    for each in (w, other):
        await each.router.aclose()


@pytest.mark.asyncio
async def test_a_large_conversation_is_kept_and_gone_on_from_beside_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is decoded or written on the loop's thread, and it is there all the same."""
    loop_thread, threads = threading.get_ident(), set[int]()

    def noted(request: RouteRequest) -> dict[str, Any]:
        threads.add(threading.get_ident())
        return plain(request)

    plain = reference_resolution._plain
    monkeypatch.setattr(reference_resolution, "_plain", noted)
    w = world(["a/big"])
    first = await ask(w, "x" * (LARGE_BYTES + 1))
    second = await ask(w, "two", previous_response_id=first["id"])
    await ask(w, "three", previous_response_id=second["id"])
    assert [len(text) for _, text in sent(w)] == [LARGE_BYTES + 1, 13, 3, 13, 5]
    assert threads
    assert loop_thread not in threads
    await w.router.aclose()


@virtual
async def test_a_large_answer_is_there_while_it_is_still_encoded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found: whoever went on from it at once was told that it is not kept, however long the encoding took."""

    async def slow(work: Callable[[], KeptResponse], _: int) -> KeptResponse:
        await asyncio.sleep(60.0)
        return work()

    monkeypatch.setattr(kept_responses, "off_loop", slow)
    w, store = keeping_world()
    kept = w.state.kept
    assert kept is not None
    asked = ResolvedRequest(peek("responses", {"model": "smart", "input": "x" * (LARGE_BYTES + 1)}))
    ids = [kept.issue("a/big", "") for _ in range(3)]
    for one in ids:
        kept.keep({"id": one, "output": []}, asked)
    ((row,), alone, _) = await asyncio.gather(kept.chain(ids[0], ""), kept.answer(ids[1], ""), kept.remove(ids[2], ""))
    assert (row.id, alone.id) == (ids[0], ids[1])
    await w.router.aclose()
    assert [bool(await store.chain(one, "")) for one in ids] == [True, True, False]


@virtual
async def test_an_item_of_a_conversation_is_read_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reference to an item read all that its answer goes on from; one that is read already is not read again."""
    w, store = keeping_world()
    first = await ask(w, "one")
    second = await ask(w, "two", previous_response_id=first["id"])
    read: list[int] = []
    chain = store.chain

    async def noted(response: str, owner: str, generations: int | None = None) -> tuple[KeptResponse, ...]:
        found = await chain(response, owner, generations)
        read.append(len(found))
        return found

    monkeypatch.setattr(store, "chain", noted)
    (item,) = second["output"]
    await ask(w, [{"type": "item_reference", "id": item["id"]}, {"role": "user", "content": "three"}])
    assert read == [1]
    assert sent(w)[-2:] == [("assistant", "Hello, world."), ("user", "three")]
    again = [{"type": "item_reference", "id": item["id"]}, {"role": "user", "content": "four"}]
    await ask(w, again, previous_response_id=second["id"])
    assert read == [1, 2]
    await w.router.aclose()


@virtual
async def test_what_waits_is_bounded() -> None:
    """The oldest answers are given up."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kept_responses, "PENDING_BYTES", 200_000)
        await _too_much()


async def _too_much() -> None:
    w, store = keeping_world(Shared(ttl=100.0, most=10**8, wall=lambda: 1_700_000_000 + now()))
    store.failure = "gone"
    first = await ask(w, "x" * (100_000))
    last = await ask(w, "y" * (100_000))
    store.failure = ""
    await w.state.clock.sleep(1.1)
    with pytest.raises(NotFound):
        await ask(w, "on", previous_response_id=first["id"])
    await ask(w, "on", previous_response_id=last["id"])
    await w.router.aclose()


@virtual
async def test_a_close_writes_what_waits_and_a_store_that_hangs_is_left() -> None:
    """Within its second."""
    w, store = keeping_world()
    store.failure = "gone"
    await ask(w, "one")
    await w.state.clock.sleep(0.01)
    assert not store._rows
    store.failure = ""
    await w.router.aclose()
    assert len(store._rows) == 1
    w, store = keeping_world()
    store.failure = "gone"
    await ask(w, "one")
    started = now()
    await w.router.aclose()
    assert now() - started <= 1.1


@pytest.mark.asyncio
async def test_a_full_disk_is_said_and_leaves_what_was_there(tmp_path: Path) -> None:
    """The file itself: nothing is half written, and once there is room everything is as before."""
    store = SqliteResponses(tmp_path / "responses.db", ttl=100.0, most=10**9, wall=lambda: 1_700_000_000.0)
    row = KeptResponse(id="resp_1", owner="", parent=None, input=b"[]", answer=b"{}")
    await store.add((row,))
    pages = await store._file.ask(lambda connection: connection.execute("PRAGMA page_count").fetchone()[0])
    await store._file.ask(lambda connection: connection.execute(f"PRAGMA max_page_count = {pages}").fetchone())
    noise = json.dumps([str(number**20) for number in range(20_000)]).encode()
    with pytest.raises(SharedStateError, match="full"):
        await store.add((KeptResponse(id="resp_2", owner="", parent=None, input=noise, answer=b"{}"),))
    assert await store.chain("resp_1", "") == (row,)
    assert await store.chain("resp_2", "") == ()
    await store.aclose()


@pytest.mark.asyncio
async def test_what_is_deleted_is_gone_from_the_file(tmp_path: Path) -> None:
    """Not only from its tables, and from the log beside it, while other processes have it open."""
    path = tmp_path / "responses.db"
    store = SqliteResponses(path, ttl=100.0, most=10**9, wall=lambda: 1_700_000_000.0)
    for number in range(50):
        row = KeptResponse(id=f"resp_{number:064}", owner="", parent=None, input=b"[]", answer=b"{}")
        await store.add((row,))
    await store.remove(f"resp_{7:064}", "")
    written = path.read_bytes() + path.with_name("responses.db-wal").read_bytes()
    assert b"%064d" % 8 in written
    assert b"%064d" % 7 not in written
    await store.aclose()
