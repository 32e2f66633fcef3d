"""The grid's own parts: the loop without memory, draws that both sides share, the judgement, and the cells' names."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import get_args

import pytest

from smart_model_router.domain.outcome import Failure, FailureClass, Success
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.rehearsal.simulation.grid import (
    NAMED,
    SHARES,
    Cell,
    Kind,
    Outage,
    Quota,
    product_cells,
    select,
    whole_grid,
)
from smart_model_router.rehearsal.simulation.grid_provider import GridProvider, Naive, draws
from smart_model_router.rehearsal.simulation.grid_run import BrokenRun, Tally, judge, run_cell
from smart_model_router.rehearsal.simulation.workload import run_world
from smart_model_router.testing import FakeProvider, FakeReply
from tests.world import virtual

ERROR = FakeReply(seconds=0.1, failure=Failure(FailureClass.SERVER_ERROR, "500", status=500))
SILENCE = FakeReply(seconds=float("inf"))
WELL = FakeReply(seconds=1.0)
BODY = {"model": "smart", "messages": [{"role": "user", "content": "hello"}], "user": "0"}


def scripted(*replies: FakeReply) -> FakeProvider:
    """A provider that gives these replies in turn."""
    each: Iterator[FakeReply] = iter(replies)
    return FakeProvider(lambda _: next(each))


def naive(providers: Sequence[FakeProvider], *, deadline: float = 30.0, buffered: bool = False) -> Naive:
    """The loop over providers a, b, c."""
    return Naive(list(zip("abc", providers, strict=False)), deadline=deadline, buffered=buffered)


# The loop ---------------------------------------------------------------------------------------------


@virtual
async def test_the_loop_asks_in_written_order_twice_round() -> None:
    """a, b, a, b: the fourth call answers, and the target that served is named."""
    a, b = scripted(ERROR, ERROR), scripted(ERROR, WELL)
    assert await naive([a, b]).ask(BODY, stream=False) == "b"
    assert sorted([*a.arrivals, *b.arrivals]) == [
        at for pair in zip(a.arrivals, b.arrivals, strict=True) for at in pair
    ]


@virtual
async def test_the_loop_gives_up_after_two_rounds() -> None:
    """Every call fails: two calls to each target, and no answer."""
    a, b = scripted(*[ERROR] * 9), scripted(*[ERROR] * 9)
    assert await naive([a, b]).ask(BODY, stream=False) is None
    assert (len(a.calls), len(b.calls)) == (2, 2)


@virtual
async def test_the_loop_has_no_memory() -> None:
    """After a request that failed at a, the next one asks a first again."""
    a, b = scripted(ERROR, WELL), scripted(WELL)
    loop = naive([a, b])
    assert [await loop.ask(BODY, stream=False) for _ in range(2)] == ["b", "a"]


@pytest.mark.parametrize(("stream", "seconds"), [(False, 180.0), (True, 30.0)], ids=["whole", "stream"])
@virtual
async def test_the_loop_leaves_silence_at_the_default_timeout(stream: bool, seconds: float) -> None:
    """A silent target is left at the default `attempt` or `first_content` timeout, and the next one is asked."""
    a, b = scripted(SILENCE), scripted(WELL)
    assert await naive([a, b], deadline=600.0).ask(BODY, stream=stream) == "b"
    assert b.arrivals[0] - a.arrivals[0] == pytest.approx(seconds)


@virtual
async def test_the_loop_ends_at_the_deadline() -> None:
    """A silent target with a deadline below its timeout: no answer, and the next target is not asked."""
    a, b = scripted(SILENCE), scripted(WELL)
    assert await naive([a, b], deadline=10.0).ask(BODY, stream=False) is None
    assert b.calls == []


@pytest.mark.parametrize(("buffered", "served"), [(False, None), (True, "b")], ids=["delivered", "buffered"])
@virtual
async def test_a_stream_cut_after_content_ends_the_loop_unless_buffered(buffered: bool, served: str | None) -> None:
    """The caller has a part of the answer: the loop cannot begin again, unless it held the part back."""
    a = scripted(FakeReply(seconds=0.1, cut=Failure(FailureClass.TRUNCATED, "cut")))
    assert await naive([a, scripted(WELL)], buffered=buffered).ask(BODY, stream=True) == served


# The draws --------------------------------------------------------------------------------------------


def test_the_same_key_draws_the_same() -> None:
    """A draw depends on its key alone: these are the values in every process and every version of Python."""
    assert draws(1, "a", "7", 0) == (0.7370402340582107, 0.42479177479085706)


@pytest.mark.parametrize("other", [(2, "a", "7", 0), (1, "b", "7", 0), (1, "a", "8", 0), (1, "a", "7", 1)])
def test_another_seed_provider_request_or_attempt_draws_another_number(other: tuple[object, ...]) -> None:
    """Each part of the key counts."""
    assert draws(*other) != draws(1, "a", "7", 0)


@pytest.mark.parametrize("moved", ["provider", "request", "attempt"])
def test_draws_of_different_keys_are_independent(moved: str) -> None:
    """Of 4,000 pairs of keys that differ in one part a quarter has both draws below a half."""
    second = {"provider": ("b", 0, 0), "request": ("a", 4000, 0), "attempt": ("a", 0, 1)}[moved]
    pairs = [(draws(0, "a", n, 0)[0], draws(0, second[0], n + second[1], second[2])[0]) for n in range(4000)]
    both = sum(one < 0.5 and other < 0.5 for one, other in pairs)
    assert both / len(pairs) == pytest.approx(0.25, abs=0.03)


@pytest.mark.parametrize("share", SHARES)
def test_the_share_that_fails_is_the_cells(share: float) -> None:
    """Of 4,000 first attempts the share of the cell is drawn to fail."""
    drawn = sum(draws(3, "a", request, 0)[0] < share for request in range(4000)) / 4000
    assert drawn == pytest.approx(share, abs=0.025)


def test_the_loop_and_the_router_meet_the_same_world() -> None:
    """A provider answers the nth call for a request alike, whenever it is asked and whatever was asked before."""
    cell = Cell(kind="500", shares=(0.5,), answer=0.0)

    async def fates(requests: Sequence[int]) -> dict[tuple[int, int], bool]:
        provider, asked, seen = GridProvider(cell, "a", seed=1), Counter[int](), {}
        loop = Naive([("a", provider)], deadline=30.0, rounds=1)
        for request in requests:
            body = {**BODY, "user": str(request)}
            seen[request, asked[request]] = await loop.ask(body, stream=False) is not None
            asked[request] += 1
        return seen

    in_turn = run_world(fates([*range(50), *range(50)]), limit=1e6)
    backwards = run_world(fates([number for number in reversed(range(50)) for _ in range(2)]), limit=1e6)
    assert in_turn == backwards
    assert 30 < sum(in_turn.values()) < 70


# A provider's own word --------------------------------------------------------------------------------


def word(cell: Cell, name: str, instants: Sequence[float]) -> list[float | None]:
    """The Retry-After of a call at each instant, None for an answer."""

    async def asking() -> list[float | None]:
        provider, found = GridProvider(cell, name, seed=1), list[float | None]()
        clock = asyncio.get_running_loop()
        began = clock.time()
        for number, at in enumerate(instants):
            await asyncio.sleep(began + at - clock.time())
            body = {**BODY, "user": str(number)}
            outcome = await provider.call(ProviderCall("chat", "big", b"{}", body, stream=False))
            wait = outcome.wait if isinstance(outcome, Failure) else None
            assert isinstance(outcome, Success) or outcome.failure_class is FailureClass.RATE_LIMITED
            found.append(None if wait is None else wait.seconds)
        return found

    return run_world(asking(), limit=1e6)


def test_a_hinted_outage_names_its_end() -> None:
    """429s with the whole seconds that are left, and answers before and after."""
    cell = Cell(kind="429", shares=(0.0,), answer=0.0, outage=Outage(seconds=20.0, start=30.0, hinted=True))
    assert word(cell, "a", [29.5, 30.0, 40.25, 49.5, 50.0]) == [None, 20.0, 10.0, 1.0, None]


def test_a_quota_names_the_end_of_its_window() -> None:
    """Two calls in ten seconds, then 429s until they are over; without `everywhere` only at the first provider."""
    cell = Cell(kind="429", shares=(0.0, 0.0), answer=0.0, quota=Quota(calls=2, seconds=10.0, everywhere=False))
    instants = [0.0, 1.0, 2.5, 9.5, 10.0, 10.5, 11.5, 35.0]
    assert word(cell, "a", instants) == [None, None, 8.0, 1.0, None, None, 9.0, None]
    assert word(cell, "b", instants) == [None] * 8
    assert word(replace(cell, quota=Quota(calls=2, seconds=10.0)), "b", instants[:3]) == [None, None, 8.0]


def test_a_cell_is_judged_from_the_end_of_a_providers_word() -> None:
    """The loop obeys no law: what arrives while a hint binds counts for neither; of its calls a repetition may."""
    cell = Cell(kind="429", shares=(0.0,), outage=Outage(seconds=10.0, start=0.0, hinted=True))
    loop, ours = run_cell(cell, 0, 100)
    assert loop.requests == ours.requests < 70
    assert loop.served == loop.requests <= loop.calls <= loop.requests + 2
    assert ours.served == ours.requests


@pytest.mark.parametrize(
    "outage", [None, Outage(seconds=5.0), Outage(seconds=5.0, period=30.0, hinted=True)], ids=["none", "500s", "again"]
)
def test_a_cell_without_an_end_of_a_word_is_judged_from_its_beginning(outage: Outage | None) -> None:
    """Only one span of hinted 429s has such an end."""
    assert replace(CELL, outage=outage).judged_from == 0.0


# The judgement ----------------------------------------------------------------------------------------

CELL = Cell(kind="500", shares=(0.3, 0.3))
LOOP = Tally(requests=2000, served=1800, calls=3600, judged=1600, first=1120, mean_in_flight=5.0, max_in_flight=14)
"""90 % served, 2.0 calls each, 70 % by the first choice: floor 87.66 %, ceiling 2.2, first choice 57.71 %."""


@pytest.mark.parametrize(
    ("ours", "broken"),
    [
        (replace(LOOP, served=1754, calls=3500), []),
        (replace(LOOP, served=1753, calls=3500), ["D1 floor"]),
        (replace(LOOP, calls=3960), []),
        (replace(LOOP, calls=3961), ["D2 ceiling"]),
        (replace(LOOP, first=924), []),
        (replace(LOOP, first=923), ["D1 first choice"]),
        (replace(LOOP, served=0), ["D1 floor", "D2 ceiling"]),
    ],
    ids=["on the floor", "below", "on the ceiling", "above", "the first choice's share", "less", "nothing served"],
)
def test_a_result_is_judged_by_each_rule(ours: Tally, broken: list[str]) -> None:
    """What lies on a bound passes; one request, call or first choice beyond it is a violation of that rule alone."""
    assert [text.partition(":")[0] for text in judge(CELL, LOOP, ours)] == broken


def test_two_calls_a_request_are_always_allowed() -> None:
    """Where the loop needs one call, the ceiling is two."""
    loop = replace(LOOP, served=2000, calls=2000)
    assert judge(CELL, loop, replace(loop, calls=4000)) == []
    assert len(judge(CELL, loop, replace(loop, calls=4001))) == 1


@pytest.mark.parametrize(
    "cell",
    [
        replace(CELL, shares=(0.6, 0.6)),
        replace(CELL, kind="hang"),
        replace(CELL, kind="slow"),
        replace(CELL, kind="mixed"),
        replace(CELL, outage=Outage(seconds=5.0)),
        replace(CELL, quota=Quota(calls=5, seconds=10.0)),
    ],
    ids=["more than half fails", "hang", "slow", "mixed", "outage", "quota"],
)
def test_the_first_choice_is_not_judged_where_d1_does_not(cell: Cell) -> None:
    """More than half fails, a failure takes longer than a second, or it was an outage or a quota."""
    assert judge(cell, LOOP, replace(LOOP, first=0)) == []


def test_the_first_choice_is_not_judged_on_a_few_requests() -> None:
    """Of 99 requests in the second minute the share says nothing."""
    loop = replace(LOOP, judged=99, first=70)
    assert judge(CELL, loop, replace(loop, first=0)) == []


def test_both_runs_of_a_cell_are_the_same_every_time() -> None:
    """A seed gives the same figures twice; another one gives others."""
    assert run_cell(CELL, 1, 100) == run_cell(CELL, 1, 100)
    assert run_cell(CELL, 1, 100) != run_cell(CELL, 2, 100)


def test_a_call_that_is_left_behind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A provider that counts a call as in flight after the router's end is a leak, not a result."""
    monkeypatch.setattr(GridProvider, "moved", _never_less)
    with pytest.raises(BrokenRun, match="calls of a"):
        run_cell(CELL, 0, 5)


def _never_less(provider: GridProvider, change: int) -> None:
    provider.in_flight += max(0, change)


# The cells and their names ----------------------------------------------------------------------------


def test_there_are_65_named_cells_of_every_sort() -> None:
    """Every kind of failure, 1 to 3 providers, each rate, both deadlines, whole and stream, both layouts."""
    assert len({cell.name for cell in NAMED}) == 65
    assert {cell.kind for cell in NAMED} == set(get_args(Kind))
    for field, values in {
        "rate": {1, 5, 20},
        "deadline": {30, 600},
        "stream": {False, True},
        "layout": {"tiers", "tier"},
    }.items():
        assert {getattr(cell, field) for cell in NAMED} == values
    assert {len(cell.shares) for cell in NAMED} == {1, 2, 3}


def test_the_whole_grid_is_every_combination_and_the_named_cells() -> None:
    """3 counts x 7 shares x 3 rates x 2 deadlines x (10 kinds in both forms and one as a stream), each once."""
    product = {cell.name for cell in product_cells()}
    assert len(product) == 3 * 7 * 3 * 2 * 21
    names = [cell.name for cell in whole_grid()]
    assert len(names) == len(set(names))
    assert set(names) == product | {cell.name for cell in NAMED}


@pytest.mark.parametrize("cells", [NAMED, whole_grid()], ids=["named", "whole"])
def test_a_name_selects_its_cell_alone(cells: tuple[Cell, ...]) -> None:
    """Each name round-trips, also that of a cell whose name is the beginning of another's."""
    by_name = {cell.name: cell for cell in whole_grid()}
    assert all(select(NAMED, name) == (by_name[name],) for name in [cell.name for cell in cells][::20])
    assert select(NAMED, "2x500-30%-stream-5/s-30s") == (by_name["2x500-30%-stream-5/s-30s"],)


@pytest.mark.parametrize("pattern", ["1x429-*%-*", "1x429-"])
def test_a_part_of_a_name_or_a_glob_selects_those_it_matches(pattern: str) -> None:
    """The glob finds the two named cells of one provider with random 429s, the part those of its own word, too."""
    names = [cell.name for cell in select(NAMED, pattern) if "%" in cell.name]
    assert names == ["1x429-5%-whole-5/s-30s", "1x429-30%-stream-20/s-30s"]
    assert len(select(NAMED, pattern)) == (2 if "*" in pattern else 4)


def test_a_name_that_nothing_matches_selects_nothing() -> None:
    """The command line makes it an error."""
    assert select(whole_grid(), "4x500-30%") == ()


def test_every_cell_has_slots_for_each_provider_and_no_last_resort() -> None:
    """The configuration leaves everything else at the shipped defaults."""
    config = Cell(kind="500", shares=(0.1,) * 3).config(31)
    assert [settings["bulkhead"] for settings in config["providers"].values()] == [31, 31, 31]
    assert config["models"]["smart"]["last_resort"] == []
    assert set(config) == {"version", "providers", "models", "routing"}
