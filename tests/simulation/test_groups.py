"""Interchangeable targets share the load, and conversations stay where their prompt is cached (routing.md 2)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from smart_model_router.core.selection import STRATEGIES
from smart_model_router.domain.errors import RouterUnavailable
from smart_model_router.domain.outcome import Usage
from smart_model_router.domain.ports import ProviderCall
from smart_model_router.testing import START, FakeReply
from tests.simulation.storms import Behaviour, Provider, away, narrow, poisson, question, well
from tests.world import World, now, virtual, world

KEYS = ("a/x", "b/x", "c/x")
SAME: Mapping[str, Any] = {"kind": "openai", "base_url": None, "api_key": "one of several"}


def keys_of_one_model(behaviour: Mapping[str, Behaviour], strategy: str = "health", **options: Any) -> World:
    """Three keys of one model, each its own entry under `providers`; `options` are more of each of those, by name."""
    kinds = {name: {**SAME, **options.get(name, {})} for name in behaviour}
    replies = {name: Provider(name, each) for name, each in behaviour.items()}
    return world(
        [f"{name}/x" for name in behaviour], replies=replies, kinds=kinds, config={"routing": {"strategy": strategy}}
    )


async def shares(
    w: World, arrivals: Sequence[float], *, sessions: bool = False, since: float = 0.0
) -> tuple[dict[str, float], int]:
    """Who served which share of what arrived from `since` on, and how many requests were not served."""

    async def ask(number: int, at: float) -> str | None:
        await asyncio.sleep(START + at - now())
        try:
            options: dict[str, Any] = {"session": f"session {number}"} if sessions else {}
            return (await w.router.chat(question(number), timeout=60.0, **options)).report.target
        except RouterUnavailable:
            return None

    ends = await asyncio.gather(*(ask(number, at) for number, at in enumerate(arrivals)))
    judged = [target for at, target in zip(arrivals, ends, strict=True) if at >= since]
    counts = Counter(judged)
    return {name: counts[name] / len(judged) for name in KEYS}, counts[None]


SPREADING = [name for name in STRATEGIES if name != "ordered"]
RATES = [(1.0, "health"), (200.0, "health"), *((20.0, name) for name in SPREADING)]


@pytest.mark.parametrize(("rate", "strategy"), RATES)
@pytest.mark.parametrize("sessions", [False, True], ids=["alone", "sessions"])
@virtual
async def test_three_keys_carry_a_third_each(rate: float, sessions: bool, strategy: str) -> None:
    """At any rate, whether or not each request is a session of its own."""
    slots = {"bulkhead": 200}
    w = keys_of_one_model(dict.fromkeys("abc", well(1.0, spread=0.3)), strategy, a=slots, b=slots, c=slots)
    carried, lost = await shares(w, poisson(rate, 2000.0 / rate), sessions=sessions)
    assert lost == 0
    assert carried == pytest.approx(dict.fromkeys(KEYS, 1 / 3), abs=0.03)


@pytest.mark.parametrize("use", [0.6, 0.9])
@pytest.mark.parametrize("sessions", [False, True], ids=["alone", "sessions"])
@virtual
async def test_a_slow_key_carries_what_it_can(use: float, sessions: bool) -> None:
    """One of three is ten times slower: shares lie within 5 points of capacities (slots / service time)."""
    behaviour = {"a": well(10.0), "b": well(1.0), "c": well(1.0)}
    w = keys_of_one_model(behaviour, a={"bulkhead": 20}, b={"bulkhead": 20}, c={"bulkhead": 20})
    capacity = {"a/x": 2.0, "b/x": 20.0, "c/x": 20.0}
    carried, lost = await shares(w, poisson(use * 42.0, 120.0), sessions=sessions, since=40.0)
    assert lost == 0
    assert carried == pytest.approx({name: each / 42.0 for name, each in capacity.items()}, abs=0.05)


@pytest.mark.parametrize("use", [0.6, 0.9])
@pytest.mark.parametrize("sessions", [False, True], ids=["alone", "sessions"])
@virtual
async def test_a_key_of_a_tenth_carries_what_it_can(use: float, sessions: bool) -> None:
    """One of three may send a tenth of the requests a minute: shares lie within 5 points of capacities (rpm / 60)."""
    w = keys_of_one_model(dict.fromkeys("abc", well(1.0)), a={"rpm": 60}, b={"rpm": 600}, c={"rpm": 600})
    carried, lost = await shares(w, poisson(use * 21.0, 240.0), sessions=sessions, since=90.0)
    assert lost == 0
    assert carried == pytest.approx({"a/x": 1 / 21, "b/x": 10 / 21, "c/x": 10 / 21}, abs=0.05)


@pytest.mark.parametrize("use", [0.3, 0.9, 1.0, 1.2])
@virtual
async def test_no_key_is_refused_what_another_could_take(use: float) -> None:
    """Slots of 8, answers of a second: whatever the load, no call is refused by a provider and none is lost."""
    eight = {"bulkhead": 8}
    w = keys_of_one_model(dict.fromkeys("abc", narrow(8, 1.0, spread=0.3)), a=eight, b=eight, c=eight)
    _, lost = await shares(w, poisson(use * 24.0, 60.0))
    assert lost == 0
    assert sum(w.calls(name) for name in "abc") == len(poisson(use * 24.0, 60.0))


# Conversations ----------------------------------------------------------------------------------------

TURN = 7.3
"""Seconds from one turn of a conversation to the next."""
LONG = "You are an agent. " * 300
"""A system prompt of 1,350 tokens: providers keep it in their caches."""


class Caching(Provider):
    """A provider that keeps prompts: a turn of a conversation it served before has 9,000 tokens in its cache.

    A token that is not cached takes 0.2 ms to read.
    """

    def __init__(self, name: str, behaviour: Behaviour) -> None:
        super().__init__(name, behaviour)
        self.seen: set[str] = set()

    def _answer(self, call: ProviderCall) -> FakeReply:
        reply = super()._answer(call)
        if reply.failure is not None:
            return reply
        conversation = str(call.body["messages"][1]["content"])
        cached = 9_000 if conversation in self.seen else 0
        self.seen.add(conversation)
        read = (10_000 - cached) * 0.0002
        return replace(reply, seconds=read, gap=(reply.seconds - read) / 2, usage=Usage(10_000, 50, cached))


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a conversation and its end."""

    conversation: int
    at: float
    target: str | None
    waited: float


async def converse(w: World, conversations: int, turns: int, *, sessions: bool, stream: bool = True) -> list[Turn]:
    """So many conversations at once, each of so many turns."""

    async def one(number: int) -> list[Turn]:
        await asyncio.sleep(number * TURN / conversations)
        ends = []
        messages = [{"role": "system", "content": LONG}, {"role": "user", "content": f"conversation {number}"}]
        options: dict[str, Any] = {"session": f"conversation {number}"} if sessions else {}
        for turn in range(turns):
            began = now()
            body = {"model": "smart", "messages": [*messages, {"role": "user", "content": f"turn {number} {turn}"}]}
            try:
                if stream:
                    async with w.router.stream_chat(body, timeout=30.0, **options) as chunks:
                        async for _ in chunks:
                            pass
                    report = chunks.report
                else:
                    report = (await w.router.chat(body, timeout=30.0, **options)).report
                ends.append(Turn(number, began - START, report.target, report.waited_seconds))
            except RouterUnavailable:
                ends.append(Turn(number, began - START, None, 0.0))
            await asyncio.sleep(began + TURN - now())
        return ends

    return [turn for each in await asyncio.gather(*(one(number) for number in range(conversations))) for turn in each]


def steadiness(turns: Sequence[Turn]) -> float:
    """The share of the turns that went to the target their conversation used most."""
    used: dict[int, Counter[str | None]] = {}
    for turn in turns:
        used.setdefault(turn.conversation, Counter())[turn.target] += 1
    return sum(max(each.values()) for each in used.values()) / len(turns)


def caching(behaviour: Mapping[str, Behaviour], strategy: str = "health", slots: int = 50, **routing: Any) -> World:
    """Three keys of one model that keep prompts in a cache each."""
    kinds = {name: {**SAME, "bulkhead": slots} for name in behaviour}
    replies = {name: Caching(name, each) for name, each in behaviour.items()}
    config = {"routing": {"strategy": strategy, **routing}}
    return world([f"{name}/x" for name in behaviour], replies=replies, kinds=kinds, config=config)


@pytest.mark.parametrize(
    ("strategy", "sessions"),
    [
        (name, known)
        for name in STRATEGIES
        for known in (False, True)
        if name != "ordered" and (known or name != "weighted")
    ],
)
@virtual
async def test_conversations_stay_where_their_prompt_is_cached(strategy: str, sessions: bool) -> None:
    """97 % of their turns go to one target, and each of three keys carries its part of them."""
    w = caching(dict.fromkeys("abc", well(3.0)), strategy)
    turns = await converse(w, 60, 20, sessions=sessions)
    assert steadiness(turns) >= 0.97
    assert all(w.calls(name) >= 1200 * 0.2 for name in "abc")


@pytest.mark.parametrize("affinity_wait", [0.0, 0.5, 2.0])
@virtual
async def test_a_full_home_is_waited_for_no_longer_than_its_cache_is_worth(affinity_wait: float) -> None:
    """42 conversations on 3 x 9 slots of 3 s, where one has room when another is full: 9,000 tokens are worth 1.8 s."""
    w = caching(dict.fromkeys("abc", well(3.0, spread=0.3)), slots=9, affinity_wait=affinity_wait)
    turns = await converse(w, 42, 40, sessions=True)
    assert all(turn.target is not None for turn in turns)
    longest = max(turn.waited for turn in turns)
    assert longest <= min(affinity_wait, 1.8) * 1.1
    assert (steadiness(turns) == 1.0) == (affinity_wait > 0)


@virtual
async def test_conversations_stay_on_busy_keys() -> None:
    """54 conversations on 3 x 9 slots of 3 s: homes are often full, and a short wait keeps 97 % of the turns there."""
    turns = await converse(caching(dict.fromkeys("abc", well(3.0, spread=0.3)), slots=9), 54, 30, sessions=True)
    assert all(turn.target is not None for turn in turns)
    assert steadiness(turns) >= 0.97


@pytest.mark.parametrize("timeout", [5.0, 8.0])
@virtual
async def test_no_request_is_lost_to_a_wait_for_its_home(timeout: float) -> None:
    """57 calls of 3 s at once on 3 x 20 slots, all with one beginning: as many are served as without such waits."""
    served = []
    for affinity_wait in (2.0, 0.0):
        kinds = {name: {**SAME, "bulkhead": 20} for name in "abc"}
        replies = {name: Cached(name, well(3.0, spread=0.3)) for name in "abc"}
        config = {"routing": {"affinity_wait": affinity_wait}}
        w = world(list(KEYS), replies=replies, kinds=kinds, config=config)
        ends = await asyncio.gather(*(classify(w, n, at, timeout) for n, at in enumerate(poisson(19.0, 40.0))))
        served.append(sum(ends) / len(ends))
    assert served[0] >= served[1] - 0.01


class Cached(Provider):
    """A provider that has nine tenths of every prompt in its cache."""

    def _answer(self, call: ProviderCall) -> FakeReply:
        return replace(super()._answer(call), usage=Usage(10_000, 50, 9_000))


async def classify(w: World, number: int, at: float, timeout: float) -> bool:
    """Whether a request is served that begins, as all others do, with the same example; one of four is a stream."""
    await asyncio.sleep(at)
    opening = [{"role": "system", "content": LONG}, {"role": "user", "content": "an example"}]
    body = {"model": "smart", "messages": [*opening, {"role": "user", "content": f"question {number}"}]}
    try:
        if number % 4:
            await w.router.chat(body, timeout=timeout)
        else:
            async with w.router.stream_chat(body, timeout=timeout) as chunks:
                async for _ in chunks:
                    pass
    except RouterUnavailable:
        return False
    return True


@pytest.mark.parametrize("strategy", ["health", "weighted"])
@virtual
async def test_sessions_stay_through_the_outage_of_another_target(strategy: str) -> None:
    """While one of three is away only its own sessions move; those of `weighted` go back to it."""
    behaviour = {"a": away(100.0, 160.0), "b": well(), "c": well()}
    w = caching(behaviour, strategy)
    turns = await converse(w, 60, 60, sessions=True)
    before = [turn for turn in turns if turn.at < 100.0]
    home = {turn.conversation: turn.target for turn in before}
    stays = [turn for turn in turns if home[turn.conversation] != "a/x"]
    assert sum(turn.target == home[turn.conversation] for turn in stays) >= 0.97 * len(stays)
    assert all(turn.target is not None for turn in turns)
    if strategy == "weighted":
        late = [turn for turn in turns if turn.at >= 200.0]
        assert sum(turn.target == home[turn.conversation] for turn in late) >= 0.97 * len(late)


@virtual
async def test_a_conversation_returns_from_a_lower_tier() -> None:
    """A fallback never becomes a conversation's home."""
    w = world(
        ["a/x", "b/x"],
        ["c/y"],
        replies={"a": Caching("a", away(40.0, 60.0)), "b": Caching("b", away(40.0, 60.0)), "c": Caching("c", well())},
        kinds={"a": SAME, "b": SAME},
    )
    turns = await converse(w, 10, 30, sessions=True)
    assert any(turn.target == "c/y" for turn in turns)
    late = [turn for turn in turns if turn.at >= 100.0]
    assert all(turn.target in ("a/x", "b/x") for turn in late)
    assert steadiness(late) >= 0.97
