"""The checkers see what they are there for: each is shown a router that breaks its promise."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from smart_model_router.core import breaker, cooldown
from smart_model_router.core.breaker import CircuitBreaker, Permit, Transition, Verdict
from smart_model_router.core.bucket import TokenBucket
from smart_model_router.core.capacity import AdaptiveThrottle
from smart_model_router.core.cooldown import Cooldown
from smart_model_router.core.evidence import Evidence, SequentialTest
from smart_model_router.core.fallback import RetryBudget, Shedding
from smart_model_router.core.gate import Gate
from smart_model_router.core.lease import Lease
from smart_model_router.core.rest_seconds import grown
from smart_model_router.core.target_state import Connectivity
from smart_model_router.domain.errors import AllTargetsFailed
from smart_model_router.domain.events import BreakerChanged, Event
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal
from smart_model_router.flow import admission, executor, request_context
from smart_model_router.flow.admission import AdmissionController
from smart_model_router.flow.attempt import AttemptRunner
from smart_model_router.flow.clock import Watchdog
from smart_model_router.flow.hedging import HedgeRace
from smart_model_router.flow.provider_stream import ProviderStreamReader
from smart_model_router.flow.request_context import AdmittedTarget, RequestContext
from smart_model_router.flow.state import RouterState
from smart_model_router.flow.wait_queue import Waiter, WaitQueue, _Queue
from smart_model_router.rehearsal.simulation import SCENARIOS, Scenario, Setting, simulate
from smart_model_router.rehearsal.simulation.assertions import sent_per_accepted
from smart_model_router.rehearsal.simulation.provider_behaviour import (
    Congested,
    Failing,
    Healthy,
    Limited,
    Moment,
    Spell,
)
from smart_model_router.rehearsal.simulation.scenario import History
from smart_model_router.rehearsal.simulation.workload import Traffic
from smart_model_router.testing import FakeReply
from smart_model_router_stats.book import StatsBook
from tests.breaks import (
    any_hint_replaces,
    any_success_ends,
    no_fence,
    slot_kept,
    two_probes,
    two_trials,
)

Break = Callable[[pytest.MonkeyPatch], None]

DOWN = Failing(FailureClass.SERVER_ERROR)


def flaky(_: Random) -> Setting:
    """A provider that says nothing in three calls of ten, beside a free one: each would like another try."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(end=100.0, per_second=5.0)],
        usual={"a": Failing(FailureClass.EMPTY, share=0.3)},
    )


def two_models(_: Random) -> Setting:
    """A provider with two models, both down, then both due at once."""
    return Setting(
        tiers=[["a/one", "a/two"]],
        traffic=[Traffic(at_once=12, timeout=3.0), Traffic(start=40.0, end=41.0, at_once=20)],
        usual={"a": Healthy(10.0)},
        spells=[Spell("a", 0.0, 20.0, DOWN)],
    )


def stale(_: Random) -> Setting:
    """Slow calls from before a trip end, well or badly, while the breaker is open."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(at_once=8), Traffic(start=1.0, at_once=8, timeout=60.0), Traffic(start=2.0, at_once=5)],
        usual={"a": Healthy(6.0)},
        spells=[
            Spell("a", 0.5, 1.5, Failing(FailureClass.SERVER_ERROR, seconds=9.0)),
            Spell("a", 1.5, 3.0, DOWN),
        ],
    )


def metered(_: Random) -> Setting:
    """A provider that takes ten requests a minute, and is asked for more."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        providers={"a": {"rpm": 10, "tpm": 2000}},
        traffic=[Traffic(end=60.0, per_second=2.0)],
    )


def crowded(_: Random) -> Setting:
    """Two slots, and a queue in front of them."""
    return Setting(
        tiers=[["a/big"]],
        providers={"a": {"bulkhead": 2}},
        traffic=[Traffic(end=40.0, per_second=3.0, timeout=20.0, streams=0.5, impatient=0.3)],
    )


@dataclass(frozen=True)
class OneSecond:
    """Every call takes a second, to the instant."""

    def reply(self, moment: Moment) -> FakeReply:
        return FakeReply(seconds=1.0)


def lined_up(_: Random) -> Setting:
    """Newcomers arrive at the very instants at which slots come free."""
    return Setting(
        tiers=[["a/big"]],
        providers={"a": {"bulkhead": 2}},
        traffic=[Traffic(start=float(second), at_once=3) for second in range(10)],
        usual={"a": OneSecond()},
    )


def stormy(_: Random) -> Setting:
    """A provider that is asked for five times what it can bear, and whose limit nobody learns."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(end=60.0, per_second=10.0)],
        resilience={"adaptive": {"enabled": False}},
        usual={"a": Congested(2), "b": Healthy(0.1)},
        expect={"I8": sent_per_accepted("a", at_most=3.5)},
    )


def chatty(_: Random) -> Setting:
    """A provider whose hints get shorter and shorter while calls are under way."""
    hints = [Spell("a", at, at + 0.1, Failing(FailureClass.RATE_LIMITED, hint=30.0 - 25.0 * at)) for at in (0.0, 1.0)]
    late = Spell("a", 0.0, 0.05, Failing(FailureClass.RATE_LIMITED, seconds=3.0, hint=1.0))
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(at_once=3), Traffic(start=0.06, at_once=3)],
        usual={"a": Limited(1)},
        spells=[*hints, late],
    )


def alone(_: Random) -> Setting:
    """A lone provider that fails for ten seconds under load, and then answers again."""
    return Setting(
        tiers=[["a/big"]],
        traffic=[Traffic(end=60.0, per_second=5.0)],
        spells=[Spell("a", 5.0, 15.0, Failing(FailureClass.SERVER_ERROR, share=0.8))],
    )


def paced(_: Random) -> Setting:
    """A lone provider that answers one call in ten: streams and whole answers wait for the same few places."""
    return Setting(
        tiers=[["a/big"]],
        traffic=[Traffic(end=40.0, per_second=5.0, streams=0.5, timeout=20.0)],
        usual={"a": Failing(FailureClass.SERVER_ERROR, share=0.9)},
    )


def returning(_: Random) -> Setting:
    """A provider comes back under load while another one is free."""
    return Setting(
        tiers=[["a/big"], ["b/small"]],
        traffic=[Traffic(at_once=6), Traffic(end=60.0, per_second=20.0)],
        spells=[Spell("a", 0.0, 10.0, DOWN)],
    )


def halves(_: Random) -> Setting:
    """A provider that has lost two calls of three for a while, some of them in a row."""
    return Setting(
        tiers=[["a/big"]],
        traffic=[Traffic(end=60.0, per_second=3.0)],
        usual={"a": Failing(FailureClass.SERVER_ERROR, share=0.66)},
    )


def hurried(_: Random) -> Setting:
    """A lone provider trips, and every caller leaves before an answer can be there."""
    return Setting(
        tiers=[["a/big"]],
        traffic=[Traffic(at_once=8), Traffic(start=1.0, end=60.0, per_second=2.0, impatient=1.0, leaves_after=0.5)],
        usual={"a": Healthy(3.0)},
        spells=[Spell("a", 0.0, 5.0, DOWN)],
    )


def forgotten(*_: object) -> None:
    """Do nothing where something should have been given back."""


def lease_lost(patch: pytest.MonkeyPatch) -> None:
    """What a stream holds is kept when its caller leaves."""
    patch.setattr(ProviderStreamReader, "abandon", forgotten)


def late_failures_extend(patch: pytest.MonkeyPatch) -> None:
    """Each failure of a call from before the trip keeps the breaker open a second longer."""
    record = CircuitBreaker.record

    def extending(
        self: CircuitBreaker, permit: Permit, verdict: Verdict, now: float, **options: Any
    ) -> Transition | None:
        moved = record(self, permit, verdict, now, **options)
        self._open_until += verdict == "failure" and moved is None and self.open_until is not None
        return moved

    patch.setattr(CircuitBreaker, "record", extending)


def told_twice(patch: pytest.MonkeyPatch) -> None:
    """Every move of a breaker is told twice."""
    emit = RouterState.emit

    def twice(self: RouterState, event: Event) -> None:
        emit(self, event)
        if isinstance(event, BreakerChanged):
            emit(self, event)

    patch.setattr(RouterState, "emit", twice)


def never_longer(patch: pytest.MonkeyPatch) -> None:
    """A failed probe does not lengthen the open time."""
    patch.setattr(breaker, "grown", lambda base, multiplier, times, cap: min(cap, base))


def too_short(patch: pytest.MonkeyPatch) -> None:
    """The first open time is shorter than `open_minimum`."""
    patch.setattr(breaker, "base_seconds", lambda lost, least, most: least / 2)


def too_eager(patch: pytest.MonkeyPatch) -> None:
    """Where no other target is free, an OPEN one is probed five times a second."""
    patch.setattr(CircuitBreaker, "_put_off", lambda self, now, roll=0.0: setattr(self, "_eager_at", now + 0.2))


def never_eager(patch: pytest.MonkeyPatch) -> None:
    """An OPEN target is not probed before its open time is over, though no other one is free."""
    patch.setattr(CircuitBreaker, "eager_at", property(lambda self: self._open_until))


def never_paced(patch: pytest.MonkeyPatch) -> None:
    """Our own judgement excludes a target although no other one is free."""
    restraint = Gate._restraint
    patch.setattr(Gate, "_restraint", lambda self, own, now, pacing="off": restraint(self, own, now, "off"))


def always_paced(patch: pytest.MonkeyPatch) -> None:
    """Targets are asked as if no other one were free."""
    patch.setattr(AdmissionController, "in_tier", lambda self, tier, now: None)


def boundless_pace(patch: pytest.MonkeyPatch) -> None:
    """A paced target takes its full load, whatever share of its calls fails."""
    patch.setattr(Gate, "_paced_limit", lambda self, now: math.inf)


def verdicts_lost(patch: pytest.MonkeyPatch) -> None:
    """A probe ends with its caller."""
    patch.setattr(RequestContext, "needs_verdict", lambda self, step: False)


def limit_ignored(patch: pytest.MonkeyPatch) -> None:
    """What a target was seen to bear is forgotten at admission."""
    patch.setattr(Gate, "free_slots", property(lambda self: self.provider.bulkhead.free))


def endless_slots(patch: pytest.MonkeyPatch) -> None:
    """There is always a free slot."""
    patch.setattr(Gate, "free_slots", property(lambda self: self.provider.bulkhead.slots))


def hasty(patch: pytest.MonkeyPatch) -> None:
    """Any failure is evidence enough."""
    patch.setattr(SequentialTest, "says_yes", lambda self, **_: True)


def blind(patch: pytest.MonkeyPatch) -> None:
    """No failure is evidence."""
    patch.setattr(SequentialTest, "says_yes", lambda self, **_: False)


def streak_alone(patch: pytest.MonkeyPatch) -> None:
    """A breaker opens on five failures in a row, whatever is usual for the target."""
    failed = Evidence.failed
    patch.setattr(Evidence, "failed", lambda self, *args, **options: (failed(self, *args, **options)[0], True))


def free_retries(patch: pytest.MonkeyPatch) -> None:
    """Retries cost nothing."""
    patch.setattr(RetryBudget, "try_spend", lambda self: True)


def free_hedges(patch: pytest.MonkeyPatch) -> None:
    """Hedges cost nothing, and every head is late after half a second."""
    patch.setattr(RetryBudget, "affordable", property(lambda self: True))
    patch.setattr(RetryBudget, "try_spend", lambda self: True)
    patch.setattr(request_context, "hedge_after", lambda snapshot: 0.5)


def forgotten_losers(patch: pytest.MonkeyPatch) -> None:
    """What has lost a race is left alone."""
    patch.setattr(HedgeRace, "_dismiss", lambda self, runner, step: None)


def queue_jumping(patch: pytest.MonkeyPatch) -> None:
    """Nobody looks whether somebody waits."""
    patch.setattr(WaitQueue, "is_behind", lambda *_: False)


def streams_first(patch: pytest.MonkeyPatch) -> None:
    """A stream's turn comes before that of an older request for a whole answer."""
    heads, is_behind = vars(_Queue)["heads"].fget, WaitQueue.is_behind

    def behind(self: WaitQueue, waiter: Waiter | None, gate: str, rank: int = 0) -> bool:
        return not (waiter is not None and waiter.stream) and is_behind(self, waiter, gate, rank)

    patch.setattr(_Queue, "heads", property(lambda self: sorted(heads(self), key=lambda place: not place[2].stream)))
    patch.setattr(WaitQueue, "is_behind", behind)


def generous_bucket(patch: pytest.MonkeyPatch) -> None:
    """Nothing is taken from a bucket."""
    patch.setattr(TokenBucket, "take", lambda self, amount, now: None)


def overfull_bucket(patch: pytest.MonkeyPatch) -> None:
    """More is given back to a bucket than it holds."""
    patch.setattr(TokenBucket, "give_back", lambda self, amount, now: setattr(self, "_level", self._level + 10_000))


def refusals_count(patch: pytest.MonkeyPatch) -> None:
    """Our own refusals count as turned away by the provider."""
    try_admit = Gate.try_admit

    def counting(self: Gate, cost: Any, now: float, roll: float, **options: Any) -> Lease | Refusal:
        got = try_admit(self, cost, now, roll, **options)
        if isinstance(got, Refusal):
            self.provider.throttle.record(False, now)
        return got

    patch.setattr(Gate, "try_admit", counting)


def no_deadline(patch: pytest.MonkeyPatch) -> None:
    """A call may last 100 s longer than it may."""
    limit = RequestContext.limit

    def later(self: RequestContext, step: AdmittedTarget) -> tuple[float, bool]:
        until, own = limit(self, step)
        return until + 100.0, own

    patch.setattr(RequestContext, "limit", later)


def mute_error(patch: pytest.MonkeyPatch) -> None:
    """The last error says nothing."""
    patch.setattr(executor, "final_error", lambda *_, **__: AllTargetsFailed("nobody"))


def no_timeouts(patch: pytest.MonkeyPatch) -> None:
    """No timer is ever set for a call."""
    patch.setattr(Watchdog, "_arm", lambda self, when: None)


def no_throttle(patch: pytest.MonkeyPatch) -> None:
    """The throttle lets everything pass."""
    patch.setattr(AdaptiveThrottle, "probability", lambda self, now: 0.0)


def never_forgiven(patch: pytest.MonkeyPatch) -> None:
    """A target that is due is not asked first, and its past is not forgotten."""
    patch.setattr(StatsBook, "reset_window", lambda self, target, now: None)
    patch.setattr(Gate, "due_since", lambda self, now, *, stream: None)


def stays_open(patch: pytest.MonkeyPatch) -> None:
    """A probe that succeeds opens the breaker again."""
    patch.setattr(
        CircuitBreaker, "_record_probe", lambda self, verdict, now, roll, lost: self._trip("again", now, roll, lost)
    )


def deaf(patch: pytest.MonkeyPatch) -> None:
    """A probe that succeeds proves nothing."""
    record = CircuitBreaker._record_probe
    patch.setattr(
        CircuitBreaker,
        "_record_probe",
        lambda self, verdict, *args: record(self, verdict, *args) if verdict == "failure" else None,
    )


def no_slow_start(patch: pytest.MonkeyPatch) -> None:
    """Who has come back takes its full load at once."""
    patch.setattr(Gate, "_allowed", lambda self, began, now: math.inf)


def no_probation(patch: pytest.MonkeyPatch) -> None:
    """Who comes back need not show that it works."""
    patch.setattr(Cooldown, "on_probation", lambda self, now: False)


def no_cooldowns(patch: pytest.MonkeyPatch) -> None:
    """No failure leads to a pause."""
    patch.setattr(Cooldown, "_note_failure", lambda self, *_: None)


def long_cooldowns(patch: pytest.MonkeyPatch) -> None:
    """Cooldowns last six times as long."""
    patch.setattr(cooldown, "grown", lambda *args: 6 * grown(*args))


def long_hints(patch: pytest.MonkeyPatch) -> None:
    """A hint of a second binds for twenty."""
    take = Cooldown._take_hint
    patch.setattr(
        Cooldown, "_take_hint", lambda self, hint, *args: take(self, replace(hint, seconds=20 * hint.seconds), *args)
    )


def walls_for_ever(patch: pytest.MonkeyPatch) -> None:
    """What is walled or off never comes back."""
    bind = Cooldown._bind

    def for_ever(self: Cooldown, reason: Any, until: float, *args: Any) -> Any:
        return bind(self, reason, until + (1e6 if reason != "wait" else 0.0), *args)

    patch.setattr(Cooldown, "_bind", for_ever)


def no_patience(patch: pytest.MonkeyPatch) -> None:
    """However long a caller waited in silence, leaving is nobody's fault, and the call ends with it."""
    verdicts_lost(patch)
    patch.setattr(
        AttemptRunner, "given_up", lambda self, step, silent_since, who="": Failure(FailureClass.CANCELLED, "left")
    )


def no_domains(patch: pytest.MonkeyPatch) -> None:
    """Who fails is followed by whoever comes next, of the same failure domain or not."""
    patch.setattr(admission, "elsewhere_first", lambda order, *_: list(order))


def never_offline(patch: pytest.MonkeyPatch) -> None:
    """When nobody can be reached it is always everybody else."""
    patch.setattr(Connectivity, "withholds", lambda self, provider, now: False)


def no_shedding(patch: pytest.MonkeyPatch) -> None:
    """Nothing is shed, however few providers are left."""
    patch.setattr(Shedding, "sheds", lambda self, criticality: False)


def crashing(patch: pytest.MonkeyPatch) -> None:
    """A request ends with an error that is none of ours."""
    patch.setattr(executor, "final_error", lambda *_, **__: ZeroDivisionError("a bug of the router"))


def left_running(patch: pytest.MonkeyPatch) -> None:
    """Every request starts something that nobody ends."""
    serve = executor.RequestExecutor.serve

    async def and_more(self: Any, perform: Any) -> Any:
        self.state.loose.add(asyncio.ensure_future(asyncio.Event().wait()))
        return await serve(self, perform)

    patch.setattr(executor.RequestExecutor, "serve", and_more)


BROKEN: list[tuple[str, Callable[[Random], Setting], Break]] = [
    ("I1", two_models, two_probes),
    ("I1", SCENARIOS["outage"].make, two_trials),
    ("I2", crowded, slot_kept),
    ("I2", SCENARIOS["impatient"].make, lease_lost),
    ("I3", stale, no_fence),
    ("I4", stale, late_failures_extend),
    ("I4", stale, told_twice),
    ("I5", SCENARIOS["total_outage"].make, never_longer),
    ("I5", SCENARIOS["outage"].make, too_short),
    ("I5", SCENARIOS["herd"].make, too_eager),
    ("I6", chatty, any_hint_replaces),
    ("I6", SCENARIOS["rate_limit_storm"].make, any_success_ends),
    ("I8", stormy, no_throttle),
    ("D5", SCENARIOS["herd"].make, deaf),
    ("I9", flaky, free_retries),
    ("I9", SCENARIOS["late_heads"].make, free_hedges),
    ("I2", SCENARIOS["late_heads"].make, forgotten_losers),
    ("I10", crowded, endless_slots),
    ("I10", lined_up, queue_jumping),
    ("I10", paced, streams_first),
    ("I11", metered, generous_bucket),
    ("I11", metered, overfull_bucket),
    ("I12", crowded, refusals_count),
    ("I13", SCENARIOS["impatient"].make, no_deadline),
    ("I13", SCENARIOS["total_outage"].make, mute_error),
    ("hang", SCENARIOS["black_hole"].make, no_timeouts),
    ("I14", SCENARIOS["outage"].make, never_forgiven),
    ("I14", SCENARIOS["outage"].make, stays_open),
    ("slow_start", returning, no_slow_start),
    ("probation", SCENARIOS["walls"].make, no_probation),
    ("rests", SCENARIOS["jumps"].make, no_cooldowns),
    ("rests", SCENARIOS["jumps"].make, long_cooldowns),
    ("rests", SCENARIOS["hints"].make, long_hints),
    ("rests", SCENARIOS["walls"].make, walls_for_ever),
    ("shielded", SCENARIOS["shield"].make, no_patience),
    ("elsewhere", SCENARIOS["domain_outage"].make, no_domains),
    ("rests", SCENARIOS["flapping"].make, hasty),
    ("rests", SCENARIOS["jumps"].make, blind),
    ("trips", returning, blind),
    ("trips", halves, streak_alone),
    ("D3", alone, never_paced),
    ("D3", SCENARIOS["outage"].make, always_paced),
    ("D4", alone, boundless_pace),
    ("D4", SCENARIOS["herd"].make, never_eager),
    ("D5a", hurried, verdicts_lost),
    ("I10", SCENARIOS["narrow"].make, limit_ignored),
    ("online", SCENARIOS["offline"].make, never_offline),
    ("shedding", SCENARIOS["too_few"].make, no_shedding),
    ("crash", SCENARIOS["total_outage"].make, crashing),
    ("leak", SCENARIOS["jumps"].make, left_running),
]


def broken(make: Callable[[Random], Setting], seed: int) -> set[str]:
    """The promises that a run of the scenario sees broken."""
    scenario = Scenario(name="broken", about="", fallback="none", make=make)
    return {violation.promise for violation in simulate(scenario, seed).violations}


def sees(promise: str, make: Callable[[Random], Setting], seed: int, patch: pytest.MonkeyPatch) -> bool:
    """Return whether a run of the scenario sees this promise broken. The run ends as soon as it does."""
    seen: list[str] = []

    def ending(self: History, found: str, now: float, text: str) -> None:
        if found == promise and not seen:
            seen.append(text)
            with suppress(RuntimeError):  # the run is over, and judged as a whole
                asyncio.get_running_loop().stop()

    with patch.context() as watched:
        watched.setattr(History, "violate", ending)
        try:
            broken(make, seed)
        except RuntimeError:  # of the loop that was stopped
            if not seen:
                raise
    return bool(seen)


@pytest.mark.parametrize(
    ("promise", "make", "spoil"), BROKEN, ids=[f"{promise}-{spoil.__name__}" for promise, _, spoil in BROKEN]
)
def test_a_broken_router_is_caught(
    promise: str, make: Callable[[Random], Setting], spoil: Break, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the code broken in this way, the checker of this promise says so."""
    spoil(monkeypatch)
    assert any(sees(promise, make, seed, monkeypatch) for seed in range(4))


@pytest.mark.parametrize(
    "make",
    [alone, chatty, crowded, flaky, halves, hurried, lined_up, metered, paced, returning, stale, stormy, two_models],
    ids=lambda make: make.__name__,
)
def test_a_router_that_works_is_not_blamed(make: Callable[[Random], Setting]) -> None:
    """The same situations with the code as it is: no promise is broken."""
    assert not broken(make, 0) | broken(make, 1)
