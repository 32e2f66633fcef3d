"""The operator's word among routers that share their state, in virtual time: the later one counts, everywhere."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from smart_model_router.coordination import Coordinator, SharedKeys
from smart_model_router.domain.errors import AllTargetsFailed, InvalidRequest
from smart_model_router.domain.events import OperatorSpoke, WaitFinished
from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.shared_state import Changes, OperatorRow
from smart_model_router.testing import FakeProvider, FakeReply
from smart_model_router_stats.memory import MemoryTables
from tests.unit.coordination.test_coordinator import Store, here, pair, sharing, trip
from tests.world import BODY, DOWN, World, failing, now, served_by, virtual, world

PROMISED = 0.25
"""Seconds after which everybody obeys."""


async def close(*worlds: World) -> None:
    """The end of them all."""
    for w in worlds:
        await w.router.aclose()


@virtual
async def test_all_processes_obey_within_a_quarter_of_a_second() -> None:
    """`isolate` and `enable` alike, with by whom and why, and one event in each process that says where it was said."""
    one, other = pair(["a/m"], ["b/m"])
    assert await served_by(other) == "a/m"
    one.router.isolate("a/m", by="ada", why="the key leaked")
    await asyncio.sleep(PROMISED)
    assert [await served_by(w) for w in (one, other)] == ["b/m", "b/m"]
    for w in (one, other):
        isolated = w.router.targets()[0].isolated
        assert isolated is not None
        assert (isolated.told, isolated.since) == ("by ada: the key leaked", here().wall - PROMISED)
    other.router.close("a/m", by="bob")
    await asyncio.sleep(PROMISED)
    assert [await served_by(w) for w in (one, other)] == ["a/m", "a/m"]
    assert [w.router.targets()[0].isolated for w in (one, other)] == [None, None]
    words = [[(e.word, e.by, e.why, e.heard) for e in w.sink.of(OperatorSpoke)] for w in (one, other)]
    said, heard = ("isolate", "ada", "the key leaked"), ("enable", "bob", "")
    assert words == [[(*said, False), (*heard, True)], [(*said, True), (*heard, False)]]
    await close(one, other)


@virtual
async def test_a_process_that_was_idle_obeys_from_its_first_request_on() -> None:
    """Nobody listened there: the first request waits for what was said meanwhile, and so do those beside it."""
    one, other = pair(["a/m"], ["b/m"])
    await served_by(one)
    await asyncio.sleep(60)
    one.router.isolate("a/m")
    await one.router.publish_word()
    assert await asyncio.gather(*(served_by(other) for _ in range(5))) == ["b/m"] * 5
    await close(one, other)


@virtual
async def test_the_first_request_waits_a_tenth_of_a_second_for_a_store_that_does_not_answer() -> None:
    """Once; the next one not at all."""
    made, store = sharing(["a/m"], tables=MemoryTables())
    await asyncio.sleep(60)
    store.delay = 5.0
    took = []
    for _ in range(2):
        began = now()
        assert await served_by(made) == "a/m"
        took.append(now() - began)
    assert took == [pytest.approx(0.1), 0.0]
    await close(made)


@virtual
async def test_a_router_that_is_entered_listens_without_a_request() -> None:
    """And without one that would have to wait."""
    one, other = pair(["a/m"], ["b/m"])
    async with one.router, other.router:
        one.router.isolate("a/m")
        await asyncio.sleep(PROMISED)
        assert other.router.targets()[0].refusal == "isolated"


@virtual
async def test_enable_ends_open_breakers_and_walls_in_every_process() -> None:
    """Whatever each of them has found out by itself; its recent failures count no more."""
    one, other = pair(["a/m"], ["b/m"])
    await served_by(other)
    other.providers["a"].set([failing(FailureClass.QUOTA, 429), FakeReply()])
    assert await served_by(other) == "b/m"
    await trip(one)
    one.router.close("a/m")
    await asyncio.sleep(PROMISED)
    assert [w.router.targets()[0].refusal for w in (one, other)] == [None, None]
    assert [w.router.targets()[0].success_rate for w in (one, other)] == [None, None]
    await close(one, other)


@virtual
async def test_a_new_process_begins_with_the_word() -> None:
    """Isolated it is; what rests is not ended by an `enable` that was said before."""
    tables = MemoryTables()
    one, _ = sharing(["a/m"], ["b/m"], ["c/m"], tables=tables)
    one.router.close("b/m")
    one.router.isolate("a/m", by="ada")
    one.providers["b"].set(DOWN)
    await asyncio.gather(*(served_by(one) for _ in range(5)))
    await close(one)
    after, _ = sharing(["a/m"], ["b/m"], ["c/m"], tables=tables)
    assert [status.refusal for status in after.router.targets()] == ["isolated", "open", None]
    assert await served_by(after) == "c/m"
    assert [(event.target, event.heard) for event in after.sink.of(OperatorSpoke)] == [("a/m", True)]
    await close(after)


@virtual
async def test_an_enable_of_before_ends_nothing_in_a_process_that_hears_of_it_late() -> None:
    """The store was away when it began: what it found out meanwhile stands."""
    tables = MemoryTables()
    one, _ = sharing(["a/m"], ["b/m"], tables=tables)
    one.router.close("a/m")
    await one.router.aclose()
    made = world(["a/m"], ["b/m"], replies={"a": FakeProvider(DOWN)})
    made.state.here, store = here, Store(tables)
    store.failure = "it is away"
    await asyncio.sleep(1)
    owners = {"a/m": SharedKeys("a/m", "a", "a/m")}
    made.state.coordinator = Coordinator(made.state, store, owners, holder=lambda: "made")
    await asyncio.gather(*(served_by(made) for _ in range(5)))
    store.failure = ""
    await asyncio.sleep(2)
    assert made.router.targets()[0].refusal == "open"
    await close(made)


@pytest.mark.parametrize("first", ["isolate", "close"])
def test_the_later_word_counts_when_one_process_was_cut_off(first: str) -> None:
    """What was said there before is taken back by what was said elsewhere since; what was said after it is not."""

    @virtual
    async def later(cut_off_speaks_last: bool) -> None:
        tables = MemoryTables()
        one, store = sharing(["a/m"], ["b/m"], tables=tables)
        other, _ = sharing(["a/m"], ["b/m"], tables=tables)
        await asyncio.gather(served_by(one), served_by(other))
        second = {"isolate": "close", "close": "isolate"}[first]
        store.failure = "the disk is gone"
        await asyncio.sleep(1)
        speakers = (other, one) if cut_off_speaks_last else (one, other)
        for w, verb in zip(speakers, (first, second), strict=True):
            getattr(w.router, verb)("a/m")
            await asyncio.sleep(1)
        assert await one.router.publish_word() == "the disk is gone"
        store.failure = ""
        await asyncio.sleep(2)
        wanted = {"isolate": "b/m", "close": "a/m"}[second]
        assert [await served_by(w) for w in (one, other)] == [wanted, wanted]
        await close(one, other)

    later(cut_off_speaks_last=False)
    later(cut_off_speaks_last=True)


@virtual
async def test_a_removed_file_is_told_again_and_an_old_word_does_not_return() -> None:
    """Every process tells what it knows, also that a target is enabled: one that slept since tells what was before."""
    tables = MemoryTables()
    one, store = sharing(["a/m"], ["b/m"], tables=tables)
    slept, other = sharing(["a/m"], ["b/m"], tables=tables)
    await asyncio.gather(served_by(one), served_by(slept))
    one.router.isolate("a/m")
    one.router.isolate("b/m")
    await asyncio.sleep(PROMISED)
    other.failure = "it is stopped"
    await asyncio.sleep(PROMISED)
    one.router.close("a/m")
    await asyncio.sleep(PROMISED)
    removed = MemoryTables()
    store._tables = other._tables = removed
    store._seen = other._seen = -1
    other.failure = ""
    await asyncio.sleep(2)
    assert {row.target: row.word for row in removed.words()} == {"a/m": "enable", "b/m": "isolate"}
    assert [await served_by(w) for w in (one, slept)] == ["a/m", "a/m"]
    await close(one, slept)


@virtual
async def test_an_old_word_that_is_told_first_is_taken_back() -> None:
    """A process that slept since has told it to a new file: whoever knows the later one neither obeys nor keeps it."""
    one, store = sharing(["a/m"], ["b/m"], tables=MemoryTables())
    await served_by(one)
    one.router.isolate("a/m")
    (old,) = one.state.words.rows.values()
    await asyncio.sleep(PROMISED)
    one.router.close("a/m")
    await asyncio.sleep(PROMISED)
    store._tables, store._seen = MemoryTables(), -1
    store._tables.put_word(old)
    await asyncio.sleep(PROMISED)
    assert [row.word for row in store._tables.words()] == ["enable"]
    assert [event.word for event in one.sink.of(OperatorSpoke)] == ["isolate", "enable"]
    await close(one)


@virtual
async def test_nothing_is_said_twice() -> None:
    """A word that all know is not written again, and not told by a process that heard it."""
    tables = MemoryTables()
    one, other = (sharing(["a/m"], ["b/m"], tables=tables)[0] for _ in range(2))
    await asyncio.gather(served_by(one), served_by(other))
    one.router.isolate("a/m")
    await asyncio.sleep(PROMISED)
    (row,) = tables.words()
    for w in (one, other):
        assert w.state.coordinator is not None
        w.state.coordinator.changed()
    await asyncio.sleep(PROMISED)
    assert list(tables.words()) == [row]
    assert row.gen == 1
    await close(one, other)


@virtual
async def test_a_word_on_an_unknown_target_harms_nobody_and_waits_for_it() -> None:
    """Another process may have a target, or a guarded resource, that is not here yet: once it is, the word counts."""
    tables = MemoryTables()
    made, store = sharing(["a/m"], tables=tables)
    rows = [OperatorRow(target=target, word="isolate", by="ada", why="", at=here()) for target in ("z/m", "search")]
    await store.publish(Changes(words=tuple(rows)))
    await served_by(made)
    await asyncio.sleep(PROMISED)
    assert [status.isolated for status in made.router.targets()] == [None]
    with pytest.raises(AllTargetsFailed, match="search: refused, isolated"):
        async with made.router.guard("search"):
            pass
    made.router.close("search")
    async with made.router.guard("search"):
        pass
    await close(made)


@virtual
async def test_how_far_a_word_reaches_is_told() -> None:
    """Nothing is said where every process can hear it, else why this one alone obeys."""
    alone, (made, store) = world(["a/m"]), sharing(["a/m"], tables=MemoryTables())
    for w in (alone, made):
        w.router.isolate("a/m")
        assert await served_by(w) is None
    assert "there is no shared state" in await alone.router.publish_word()
    assert await made.router.publish_word() == ""
    store.delay = 60.0
    made.router.close("a/m")
    began = now()
    assert await made.router.publish_word() == "it takes too long to answer"
    assert now() - began <= 1.0
    assert await served_by(made) == "a/m"
    await close(alone, made)


@pytest.mark.parametrize(
    ("said", "wrong"), [({"why": "x" * 201}, "why"), ({"by": "x" * 101}, "by"), ({"why": "a\x1b[2J"}, "why")]
)
@virtual
async def test_a_text_that_no_line_can_hold_is_refused(said: Mapping[str, Any], wrong: str) -> None:
    """With its key and what would be right; nothing is isolated."""
    w = world(["a/m"])
    with pytest.raises(InvalidRequest, match=f"{wrong}: at most [12]00 printable characters"):
        w.router.isolate("a/m", **said)
    assert w.router.targets()[0].refusal is None


@virtual
async def test_texts_are_one_line_without_our_keys() -> None:
    """Whoever pastes a key into a reason does not have it kept."""
    w = world(["a/m"], kinds={"a": {"api_key": "open-sesame"}})
    w.router.isolate("a/m", why=" open-sesame\nleaked,  as sk-1234567890ab ")
    isolated = w.router.targets()[0].isolated
    assert isolated is not None
    assert isolated.why == "*** leaked, as ***"
    assert isolated.by.startswith("process ")


@virtual
async def test_who_waits_for_a_target_does_not_wait_for_an_isolated_one() -> None:
    """What waits when the word is said ends at once, as what comes later does; what is under way is served."""
    w = world(["a/m"], replies={"a": FakeProvider(FakeReply(seconds=5.0))}, kinds={"a": {"bulkhead": 1}})
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(3)]
    await asyncio.sleep(1)
    assert w.state.wait_queue.waiting == 2
    w.router.isolate("a/m")
    began = now()
    assert await asyncio.gather(*asks[1:]) == [None, None]
    assert now() == began
    assert await asks[0] == "a/m"


# Last resorts -----------------------------------------------------------------------------------------


@virtual
async def test_an_isolated_last_resort_is_not_taken_and_not_waited_for() -> None:
    """The request waits for the real target, in turns that take time, and ends by its deadline."""
    w = world(["a/m"], last_resort=["b/m"], replies={"a": FakeProvider(DOWN)})
    w.router.isolate("b/m")
    assert await served_by(w, timeout=5) is None
    assert w.calls("b") == 0
    assert len(w.sink.of(WaitFinished)) < 50
    w.router.close("b/m")
    assert await served_by(w, timeout=5) == "b/m"


@virtual
async def test_a_last_resort_that_is_isolated_while_it_is_waited_for_is_left() -> None:
    """Its one slot was taken; by the time it is free it may not be used."""
    busy = FakeProvider(FakeReply(seconds=2.0))
    w = world(["a/m"], last_resort=["b/m"], replies={"b": busy}, kinds={"b": {"bulkhead": 1}})
    w.router.isolate("a/m")
    began = now()
    asks = [asyncio.ensure_future(served_by(w)) for _ in range(2)]
    await asyncio.sleep(1)
    assert w.state.wait_queue.waiting == 1
    w.router.isolate("b/m")
    assert await asks[1] is None
    assert now() - began == 1.0
    assert await asks[0] == "b/m"
    assert w.calls("b") == 1


@virtual
async def test_looking_ahead_knows_that_a_last_resort_is_isolated() -> None:
    """`get_model_for_tier` and `explain` name it as a refusal, not as who would serve."""
    w = world(["a/m"], last_resort=["b/m"])
    w.router.isolate("a/m")
    assert w.router.get_model_for_tier("frontier").target == "b/m"
    w.router.isolate("b/m")
    with pytest.raises(AllTargetsFailed, match="a/m isolated, b/m isolated"):
        w.router.get_model_for_tier("frontier")
    explained = w.router.explain(BODY)
    assert (explained.serves, [line.refusal for line in explained.targets]) == (None, ["isolated", "isolated"])
