"""What every SharedState promises, as an importable suite: subclass it, say how processes get at yours."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from smart_model_router.domain.outcome import FailureClass
from smart_model_router.domain.shared_state import (
    LEASE_SECONDS,
    BreakerRow,
    BucketAsk,
    BucketGrant,
    BudgetAsk,
    CallRow,
    Changes,
    ClockReading,
    Deadline,
    MakerRow,
    MemberRow,
    OperatorRow,
    RestRow,
    SlotAsk,
    SlotGrant,
)
from smart_model_router.domain.shared_state.limits import SETTLES_SOON
from smart_model_router.domain.shared_state.members import FORGET_SECONDS, TELL_EVERY, is_member
from smart_model_router.domain.shared_state.slots import SLOT_SECONDS, WAITING_SECONDS
from smart_model_router_stats import memory, shared_schema

if TYPE_CHECKING:
    from smart_model_router.domain.ports import SharedState

OPEN_SECONDS = 30.0
"""How long the breakers of these rows are open."""


class Clock:
    """The clocks that all processes have in common, moved by hand."""

    def __init__(self) -> None:
        self.boot = "boot-1"
        self.boottime = 1_000.0
        self.wall = 1_700_000_000.0

    def __call__(self) -> ClockReading:
        return ClockReading(self.boot, self.boottime, self.wall)

    def advance(self, seconds: float) -> None:
        """Time passes."""
        self.boottime += seconds
        self.wall += seconds

    def reboot(self, seconds: float = 0.0) -> None:
        """The machine starts again, so many seconds later by the wall."""
        self.boot += "'"
        self.boottime = 5.0
        self.wall += seconds


async def leased(state: SharedState, *asks: BucketAsk | BudgetAsk) -> list[BucketGrant]:
    """The grants; one is missing only of what a later version wrote."""
    grants = [grant for grant in await state.lease(asks) if grant is not None]
    assert len(grants) == len(asks)
    return grants


class SharedStateContract(ABC):
    """The promises. A subclass named Test… makes pytest run them."""

    @pytest.fixture(autouse=True)
    def _clock(self) -> None:
        self.clock = Clock()

    @abstractmethod
    def process(self) -> SharedState:
        """One more process that shares what the others of this test share."""

    def row(self, state: Any, seconds: float, **given: Any) -> BreakerRow:
        """A breaker of `a/m` as of now."""
        facts: dict[str, Any] = {"owner": "a/m", "kind": "whole", "provider": "a", "holder": ""}
        return BreakerRow(state=state, until=Deadline.after(seconds, self.clock()), **{**facts, **given})

    def probe(self, holder: str, **given: Any) -> BreakerRow:
        """What a process asks for that would like to probe."""
        return self.row("half_open", LEASE_SECONDS, holder=holder, **given)

    def rest(self, seconds: float = 60.0, **given: Any) -> RestRow:
        """A wait of `a/m` as of now."""
        facts: dict[str, Any] = {"owner": "a/m", "reason": "wait", "cause": FailureClass.RATE_LIMITED, "step": 2}
        return RestRow(until=Deadline.after(seconds, self.clock()), **{**facts, **given})

    @pytest.mark.asyncio
    async def test_what_one_publishes_the_others_hear_once(self) -> None:
        """Whole and unchanged; and again only when something has changed."""
        one, other = self.process(), self.process()
        breaker, rest = self.row("open", 30.0, step=2, reason="failure_ratio"), self.rest()
        view = await one.publish(Changes((breaker,), (rest,)))
        assert view.breakers == (replace(breaker, gen=1),)
        assert view.rests == (replace(rest, gen=1),)
        assert await other.poll() == view
        assert await other.poll() is None
        await one.publish(Changes(rests=(self.rest(90.0, gen=1),)))
        again = await other.poll()
        assert again is not None
        assert again.rests[0].gen == 2
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_what_a_cancelled_question_would_have_brought_the_next_one_brings(self) -> None:
        """A program's loop may end while the answer is on its way; its next loop asks again."""
        one, other = self.process(), self.process()
        view = await one.publish(Changes((self.row("open", 30.0),)))
        asking = asyncio.create_task(other.poll())
        await asyncio.sleep(0)
        asking.cancel()
        (heard,) = await asyncio.gather(asking, return_exceptions=True)
        await other.makers([b"x"])  # by now the store has answered the first question
        found = await other.poll()
        await one.aclose()
        await other.aclose()
        assert view in (heard, found)

    @pytest.mark.asyncio
    async def test_one_of_many_gets_the_probe(self) -> None:
        """Eight processes race for a breaker that came due, a hundred times: one has it each time."""
        processes = [self.process() for _ in range(8)]
        await processes[0].publish(Changes((self.row("open", OPEN_SECONDS),)))
        for number in range(100):
            self.clock.advance(OPEN_SECONDS)
            claims = await asyncio.gather(
                *(each.claim([self.probe(f"p{place}")]) for place, each in enumerate(processes))
            )
            ((winner,),) = [claim.granted for claim in claims if claim.granted]
            assert winner.gen == 2 * number + 2
            await processes[0].publish(Changes((self.row("open", OPEN_SECONDS, gen=winner.gen),)))
        for each in processes:
            await each.aclose()

    @pytest.mark.asyncio
    async def test_nobody_probes_before_the_open_time_is_over(self) -> None:
        """Whatever a process believes of it; the refusal says what is there."""
        one, other = self.process(), self.process()
        await one.publish(Changes((self.row("open", OPEN_SECONDS),)))
        self.clock.advance(OPEN_SECONDS - 0.1)
        claim = await other.claim([self.probe("other")])
        assert claim.granted == ()
        assert [row.state for row in claim.view.breakers] == ["open"]
        self.clock.advance(0.1)
        assert (await other.claim([self.probe("other")])).granted != ()
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_a_dead_holder_is_replaced_after_its_lease(self) -> None:
        """Not before; a holder that renews keeps it."""
        one, other = self.process(), self.process()
        await one.publish(Changes((self.row("open", 0.0),)))
        (held,) = (await one.claim([self.probe("one")])).granted
        self.clock.advance(LEASE_SECONDS - 10)
        renewed = await one.renew([replace(held, until=Deadline.after(LEASE_SECONDS, self.clock()))])
        assert [row.gen for row in renewed] == [held.gen]
        self.clock.advance(LEASE_SECONDS - 0.1)
        assert (await other.claim([self.probe("other")])).granted == ()
        self.clock.advance(0.1)
        (next_one,) = (await other.claim([self.probe("other")])).granted
        assert next_one.gen == held.gen + 1
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_a_stale_holder_changes_nothing(self) -> None:
        """Neither its result nor its renewal counts once another has the probe."""
        one, other = self.process(), self.process()
        await one.publish(Changes((self.row("open", 0.0),)))
        (held,) = (await one.claim([self.probe("one")])).granted
        self.clock.advance(LEASE_SECONDS)
        (theirs,) = (await other.claim([self.probe("other")])).granted
        assert await one.renew([held]) == ()
        view = await one.publish(Changes((self.row("closed", 0.0, gen=held.gen),)))
        assert view.breakers == (theirs,)
        view = await other.publish(Changes((self.row("open", 45.0, gen=theirs.gen),)))
        assert view.breakers[0].state == "open"
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_one_probe_at_a_provider_whichever_of_its_breakers(self) -> None:
        """Two targets of one provider are not probed at once; those of two are."""
        one, other = self.process(), self.process()
        assert (await one.claim([self.probe("one")])).granted != ()
        assert (await other.claim([self.probe("other", owner="a/n")])).granted == ()
        assert (await other.claim([self.probe("other", owner="b/m", provider="b")])).granted != ()
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_all_probes_of_a_call_or_none(self) -> None:
        """A call that needs two has both, or leaves both."""
        one, other = self.process(), self.process()
        await one.publish(Changes((self.row("open", 30.0, kind="transport", owner="a"),)))
        both = [self.probe("other"), self.probe("other", kind="transport", owner="a")]
        assert (await other.claim(both)).granted == ()
        assert (await one.claim([self.probe("one")])).granted != ()
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_a_rest_ends_for_all_by_who_knows_it_best(self) -> None:
        """Not by who knows an older one."""
        one, other = self.process(), self.process()
        await one.publish(Changes(rests=(self.rest(),)))
        await one.publish(Changes(rests=(self.rest(90.0, gen=1),)))
        view = await other.publish(Changes(rests=(self.rest(over=True, gen=1),)))
        assert [row.over for row in view.rests] == [False]
        view = await other.publish(Changes(rests=(self.rest(over=True, gen=2),)))
        assert [row.over for row in view.rests] == [True]
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_a_new_process_finds_everything_in_this_boots_time(self) -> None:
        """Deadlines of before a reboot are counted by the wall, once, and by this boot's clock from then on."""
        before = self.process()
        await before.publish(Changes((self.row("open", 30.0, step=3),), (self.rest(600.0),)))
        await before.aclose()
        self.clock.reboot(10.0)
        found = self.process().restore()
        (breaker,), (rest,) = found.view.breakers, found.view.rests
        assert breaker.until == Deadline.after(20.0, self.clock())
        assert (breaker.state, breaker.step, breaker.gen) == ("open", 3, 1)
        assert rest.until == Deadline.after(590.0, self.clock())

    @pytest.mark.asyncio
    async def test_the_newest_calls_of_each_target_are_kept(self) -> None:
        """Fifty of each, and its last success however long ago that was."""
        state, number = self.process(), 0
        good = CallRow(target="a/m", at=self.clock(), failure=None, stream=True, seconds=2.0, ttft_seconds=0.5)
        other = replace(good, target="b/m", completion_tokens=7, anew=True)
        await state.publish(Changes(calls=(good, other)))
        for number in range(60):
            failed = replace(good, failure=FailureClass.SERVER_ERROR, stream=False, seconds=float(number))
            await state.publish(Changes(calls=(replace(failed, ttft_seconds=None),)))
        await state.aclose()
        calls = self.process().restore().calls
        assert Counter(call.target for call in calls) == {"a/m": 51, "b/m": 1}
        mine = [call for call in calls if call.target == "a/m"]
        assert mine[0] == good
        assert [call.seconds for call in mine[1:]] == [float(number) for number in range(10, 60)]
        assert [call for call in calls if call.target == "b/m"] == [other]

    @pytest.mark.asyncio
    async def test_leases_of_a_limit_never_exceed_it(self) -> None:
        """Eight processes that take what they can from 60 a minute: a full bucket at first, then one a second."""
        processes = [self.process() for _ in range(8)]
        ask = BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)
        granted = 0.0
        for _ in range(10):
            for grants in await asyncio.gather(*(leased(each, ask) for each in processes)):
                granted += grants[0].granted
        assert granted == 59
        self.clock.advance(3.0)  # drawn time: three of the bucket's 60 a minute, without dice
        later = [(await leased(each, ask))[0] for each in processes]
        assert sum(grant.granted for grant in later) == 3
        assert later[-1].due_in == pytest.approx(1.0)
        for each in processes:
            await each.aclose()

    @pytest.mark.asyncio
    async def test_what_is_known_of_a_limit_is_heard_when_it_runs_out(self) -> None:
        """By who listens and by who begins; not with every lease."""
        one, other = self.process(), self.process()
        ask = BucketAsk(key="a/m requests", capacity=300, rate=5, most=300)
        await one.lease([replace(ask, want=6.0)])
        new = await other.poll()
        assert new is not None
        assert [(row.key, row.level) for row in new.limits] == [("a/m requests", 289.0)]
        await one.lease([replace(ask, debt=200.0)])
        assert await other.poll() is None
        await one.lease([replace(ask, debt=80.0)])
        low = await other.poll()
        assert low is not None
        assert [row.level for row in low.limits] == [9.0]
        assert self.process().restore().view.limits == low.limits
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_a_limit_of_our_own_begins_full(self) -> None:
        """Three a minute are three at once, whoever asks; the others need not hear of it."""
        processes = [self.process() for _ in range(4)]
        ask = BucketAsk(key="guest cafe0123 requests", capacity=3, rate=0.05, most=3, want=1, least=1, ours=True)
        await processes[0].poll()
        grants = [(await leased(each, ask))[0].granted for each in processes]
        assert sorted(grants) == [0, 1, 1, 1]
        await leased(processes[1], replace(ask, want=0, least=0, back=1))
        assert [(await leased(each, ask))[0].granted for each in processes] == [1, 0, 0, 0]
        assert await processes[0].poll() is None
        for each in processes:
            await each.aclose()

    @pytest.mark.asyncio
    async def test_a_reservation_is_everybodys_until_it_is_settled(self) -> None:
        """The last one may exceed the budget; a dead process's stays until the period ends, also over a reboot."""
        one, other = self.process(), self.process()
        ask = BudgetAsk(key="guest cafe0123 usd", capacity=100, period=86_400.0)
        (grant,) = await leased(one, replace(ask, want=80))
        assert (grant.granted, grant.left, grant.ends_in) == (80, 20, 86_400.0)
        (grant,) = await leased(other, replace(ask, want=80))
        assert (grant.granted, grant.left) == (80, -60)
        (refused,) = await leased(one, replace(ask, want=1))
        assert (refused.granted, refused.due_in) == (0, SETTLES_SOON)
        (settled,) = await leased(other, replace(ask, settled=80, spent=30))
        assert settled.left == -10
        self.clock.reboot(3_600.0)
        later = self.process()
        (refused,) = await leased(later, replace(ask, want=1))
        await later.aclose()
        assert (refused.granted, refused.left, refused.ends_in) == (0, -10, 82_800.0)
        self.clock.advance(refused.ends_in)
        (grant,) = await leased(one, replace(ask, want=100))
        assert (grant.granted, grant.left, grant.ends_in) == (100, 0, 86_400.0)
        await one.aclose()
        await other.aclose()

    def slots(self, holder: str, keeps: int, least: int, **given: Any) -> SlotAsk:
        """What a process asks of a bulkhead of ten."""
        facts: dict[str, Any] = {"key": "a", "holder": holder, "slots": 10, "want": least}
        return SlotAsk(keeps=keeps, least=least, **{**facts, **given})

    @pytest.mark.asyncio
    async def test_slots_are_leased_and_never_more_than_there_are(self) -> None:
        """A quarter stays free of idle leases; while a refused process waits the others give back idle slots."""
        one, other = self.process(), self.process()
        assert await one.lease_slots([self.slots("one", 0, 6, want=10)]) == (SlotGrant(7, 7, 10, others_wait=False),)
        await one.poll()
        assert await other.lease_slots([self.slots("other", 0, 4)]) == (SlotGrant(3, 0, 10, others_wait=False),)
        view = await one.poll()
        assert view is not None
        assert {row.holder: row.held for row in view.slots} == {"one": 7, "other": 3}
        assert [row.holder for row in view.slots if row.waiting(self.clock())] == ["other"]
        assert await one.lease_slots([self.slots("one", 6, 9)]) == (SlotGrant(6, 0, 5, others_wait=True),)
        assert await other.lease_slots([self.slots("other", 3, 4)]) == (SlotGrant(4, 0, 10, others_wait=True),)
        assert await one.lease_slots([self.slots("one", 0, 0)]) == (SlotGrant(0, 3, 10, others_wait=False),)
        assert [row.holder for row in self.process().restore().view.slots] == ["other"]
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_processes_hear_of_slots_only_what_concerns_them(self) -> None:
        """That one waits, also when it wrote so too late; that a slot is free for it; that more are held than exist."""
        one, other = self.process(), self.process()

        async def heard() -> bool:
            return await one.poll() is not None

        await one.lease_slots([self.slots("one", 0, 10)])
        await one.poll()
        await one.lease_slots([self.slots("one", 10, 10)])
        assert not await heard()
        await other.lease_slots([self.slots("other", 0, 1)])
        assert await heard()
        await other.lease_slots([self.slots("other", 0, 1)])
        assert not await heard()
        self.clock.advance(WAITING_SECONDS + 0.1)
        await other.lease_slots([self.slots("other", 0, 1)])
        assert await heard()
        await one.lease_slots([self.slots("one", 9, 9)])
        assert await heard()
        await other.lease_slots([self.slots("other", 0, 1)])
        assert await heard()
        await other.lease_slots([self.slots("other", 3, 3)])
        assert await heard()
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_the_slots_of_a_dead_process_come_back(self) -> None:
        """When its lease is over, or after a reboot; what it has in flight nobody takes from one that lives."""
        dead, other = self.process(), self.process()
        await dead.lease_slots([self.slots("dead", 0, 10)])
        assert await other.lease_slots([self.slots("other", 0, 3)]) == (SlotGrant(0, 0, 10, others_wait=False),)
        self.clock.advance(SLOT_SECONDS)
        assert await other.lease_slots([self.slots("other", 0, 3)]) == (SlotGrant(3, 7, 10, others_wait=False),)
        assert await dead.lease_slots([self.slots("dead", 10, 10)]) == (SlotGrant(10, 4, 5, others_wait=True),)
        self.clock.reboot()
        assert await other.lease_slots([self.slots("anew", 0, 10)]) == (SlotGrant(10, 7, 10, others_wait=False),)
        await dead.aclose()
        await other.aclose()

    def word(self, word: Any, **given: Any) -> OperatorRow:
        """What the operator says of `a/m` now."""
        facts: dict[str, Any] = {"target": "a/m", "by": "ada", "why": "it lies"}
        return OperatorRow(word=word, at=self.clock(), **{**facts, **given})

    @pytest.mark.asyncio
    async def test_the_operators_later_word_is_heard_by_all_and_found_again(self) -> None:
        """Whole, whether it is written at once or by the task; after a restart; an earlier one changes nothing."""
        one, other = self.process(), self.process()
        earlier = self.word("enable", by="bob")
        self.clock.advance(0.5)
        isolate = self.word("isolate")
        view = one.publish_now(Changes(words=(isolate, self.word("isolate", target="b/m"))))
        assert view.words[0] == replace(isolate, gen=1)
        heard = await other.poll()
        assert heard is not None
        assert set(heard.words) == set(view.words)
        assert (await other.publish(Changes(words=(earlier,)))).words == view.words[:1]
        self.clock.advance(0.5)
        enable = self.word("enable", why="")
        assert (await other.publish(Changes(words=(enable,)))).words == (replace(enable, gen=2),)
        self.clock.reboot()
        assert set(self.process().restore().view.words) == {replace(enable, gen=2), view.words[1]}
        await one.aclose()
        await other.aclose()

    def maker(self, number: int, **given: Any) -> MakerRow:
        """Who made a thing, as of now."""
        facts: dict[str, Any] = {"target": "a/m@cafe0123", "owner": "01234567", "at": self.clock().wall}
        return MakerRow(thing=number.to_bytes(32, "big"), **{**facts, **given})

    @pytest.mark.asyncio
    async def test_who_made_a_thing_is_known_to_all_and_after_a_restart(self) -> None:
        """Of those that are asked for; what is told again replaces it; nobody hears of it who does not ask."""
        one, other = self.process(), self.process()
        await other.poll()
        first, second, third = self.maker(1), self.maker(2), self.maker(3)
        await one.publish(Changes(makers=(first, second)))
        assert await other.poll() is None
        assert await other.makers((second.thing, third.thing, first.thing)) == (second, first)
        again = self.maker(1, target="b/m")
        await other.publish(Changes(makers=(again, third)))
        self.clock.reboot()
        later = self.process()
        assert await later.makers((first.thing, third.thing)) == (again, third)
        for process in (one, other, later):
            await process.aclose()

    @pytest.mark.asyncio
    async def test_makers_of_thirty_days_ago_and_the_oldest_of_too_many_are_forgotten(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """When others are told."""
        for module in (memory, shared_schema):
            monkeypatch.setattr(module, "MAKERS_KEPT", 3)
        state = self.process()
        await state.publish(Changes(makers=tuple(self.maker(number) for number in range(5))))
        things = tuple(self.maker(number).thing for number in range(9))
        assert [row.thing for row in await state.makers(things)] == list(things[2:5])
        self.clock.advance(30 * 86_400 + 1)
        await state.publish(Changes(makers=(self.maker(8),)))
        assert [row.thing for row in await state.makers(things)] == [things[8]]
        await state.aclose()

    def member(self, holder: str, **given: Any) -> MemberRow:
        """A process as of now."""
        facts: dict[str, Any] = {"machine": "m1", "version": "0.1.0", "pid": 7}
        return MemberRow(holder=holder, at=self.clock(), **{**facts, **given})

    @pytest.mark.asyncio
    async def test_every_process_that_writes_is_told_of_all_members(self) -> None:
        """And of what is left of limits. Only a new one is news to the processes that listen."""
        one, other, third = self.process(), self.process(), self.process()
        first, second = self.member("one"), self.member("other", machine="m2", version="0.2.0", pid=8)
        assert (await one.publish(Changes(members=(first,)))).members == (first,)
        assert set((await other.publish(Changes(members=(second,)))).members) == {first, second}
        joined = await third.poll()
        assert joined is not None
        assert set(joined.members) == {first, second}
        self.clock.advance(TELL_EVERY)
        again = self.member("one")
        assert set((await one.publish(Changes(members=(again,)))).members) == {again, second}
        assert await third.poll() is None
        assert set((await other.publish(Changes(members=(second,)))).members) == {again, second}
        assert set(self.process().restore().view.members) == {again, second}
        await one.lease([BucketAsk(key="a/m requests", capacity=60, rate=1, most=60, want=5, least=1)])
        await one.lease([BudgetAsk(key="guest cafe0123 usd", capacity=100, period=86_400.0, want=80)])
        view = await other.publish(Changes(members=(second,)))
        assert [(row.key, row.level) for row in view.limits] == [("a/m requests", 54.0)]
        assert [(row.key, row.used) for row in view.budgets] == [("guest cafe0123 usd", 80)]
        for each in (one, other, third):
            await each.aclose()

    @pytest.mark.asyncio
    async def test_a_member_that_left_is_gone_and_a_silent_one_is_forgotten(self) -> None:
        """A closed process at once; one that died does not count after a while, and its row goes later."""
        one, other = self.process(), self.process()
        await one.publish(Changes(members=(self.member("one"),)))
        await one.publish(Changes(members=(self.member("dead"),)))
        await other.publish(Changes(members=(self.member("other"),)))
        view = await one.publish(Changes(members=(self.member("one", over=True),)))
        assert {row.holder for row in view.members} == {"dead", "other"}
        self.clock.advance(FORGET_SECONDS - 1)
        view = await other.publish(Changes(members=(self.member("other"),)))
        assert {row.holder for row in view.members} == {"dead", "other"}
        assert [row.holder for row in view.members if is_member(row, self.clock())] == ["other"]
        self.clock.advance(TELL_EVERY)
        view = await other.publish(Changes(members=(self.member("other"),)))
        assert {row.holder for row in view.members} == {"other"}
        await one.aclose()
        await other.aclose()

    @pytest.mark.asyncio
    async def test_closing_twice_is_harmless(self) -> None:
        """Also when nothing was ever asked."""
        state = self.process()
        await state.aclose()
        await state.aclose()
        assert self.process().restore().calls == ()
