"""A fleet goes on where that of another configuration is: unchanged targets are one state, others begin anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.core.capacity import AdaptiveConfig, ThrottleConfig
from smart_model_router.core.flow_config import GateConfig, Measures
from smart_model_router.core.gate import Gate
from smart_model_router.core.gate_registry import GateRegistry
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal, Wait

COST = Cost(1, 1)
PATIENT = GateConfig(breaker=BreakerConfig(consecutive_failures=9))
FIXED = GateConfig(adaptive=AdaptiveConfig(enabled=False))
THROTTLED = GateConfig(throttle=ThrottleConfig(k=3.0))
UNMEASURED = GateConfig(measures=Measures(monotonic_clock=False))
UNAUTHORIZED = Failure(FailureClass.AUTH, status=401, credential_wide=True)


def make(
    *targets: str,
    slots: int = 2,
    config: GateConfig | None = None,
    origin: str = "http://here",
    keys: Sequence[str] = ("k1", "k2"),
    rpm: Mapping[str, float] | None = None,
    pools: Mapping[str, RateLimitTracker] | None = None,
    uncounted: Sequence[str] = (),
) -> GateRegistry:
    """Make a fleet of `provider/model` targets; `#2` is the second credential."""
    names = dict.fromkeys(target.split("/")[0] for target in targets)
    connectivity = Connectivity(len(names))
    providers = {
        name: ProviderState(
            name, slots=slots, remote=True, connectivity=connectivity, config=config, origin=origin, keys=tuple(keys)
        )
        for name in names
    }
    gates = [
        Gate(
            target,
            providers[target.split("/")[0]],
            limits=(pools or {}).get(target) or RateLimitTracker((rpm or {}).get(target)),
            credential=int(target.endswith("#2")),
        )
        for target in targets
    ]
    return GateRegistry(gates, connectivity, uncounted=uncounted)


def admitted(fleet: GateRegistry, target: str, now: float = 0.0) -> Lease:
    """One call to a target."""
    lease = fleet.gates[target].try_admit(COST, now, 0.999)
    assert isinstance(lease, Lease)
    return lease


def fail(
    fleet: GateRegistry, target: str, failure: FailureClass | Failure = FailureClass.SERVER_ERROR, times: int = 5
) -> None:
    """Let so many calls to a target fail, one after another."""
    failure = failure if isinstance(failure, Failure) else Failure(failure)
    for _ in range(times):
        lease = fleet.gates[target].try_admit(COST, 0.0, 0.999, pacing="eager")
        assert isinstance(lease, Lease)
        lease.settle(failure, 0.0)


def said(fleet: GateRegistry, target: str, now: float = 0.0) -> str | None:
    """Why a call would be refused."""
    refusal = fleet.gates[target].refusal(COST, now)
    return None if refusal is None else refusal.reason


def reloaded(before: GateRegistry, after: GateRegistry, *, shared: bool = False) -> frozenset[str]:
    """Take its place."""
    return after.continue_from(before, shared=shared)


def test_what_is_configured_as_before_is_one_gate_and_one_provider() -> None:
    """Whichever of the two fleets is asked: the same breakers, cooldowns, limits, credentials and slots."""
    before, after = make("a/m", "a/n", "b/m"), make("b/m", "a/m", "c/m")
    assert reloaded(before, after) == {"a/m", "b/m"}
    assert list(after.gates) == ["b/m", "a/m", "c/m"]
    assert after.gates["a/m"] is before.gates["a/m"]
    assert after.providers["a"] is before.providers["a"]
    assert after.providers["c"].connectivity is after.connectivity is before.connectivity
    assert before.gates["a/n"].provider is after.providers["a"]


def test_an_open_breaker_stays_open() -> None:
    """And counts in the system health of the new fleet."""
    before, after = make("a/m", "b/m"), make("a/m", "b/m")
    fail(before, "a/m")
    reloaded(before, after)
    assert said(after, "a/m") == "open"
    assert after.open_ratio(0.0) == 0.5
    assert after.least_remaining(0.0) == before.least_remaining(0.0)


def test_who_is_not_counted_is_not_counted_of_the_old_gates_either() -> None:
    """A target that became a last resort has no say in system health."""
    before, after = make("a/m", "b/m"), make("a/m", "b/m", uncounted=["a/m"])
    fail(before, "a/m")
    reloaded(before, after)
    assert after.open_ratio(0.0) == 0.0


def test_a_cooldown_and_a_law_go_on() -> None:
    """Advice and a provider's own word are remembered with their instants."""
    before, after = make("a/m", "b/m"), make("a/m", "b/m")
    fail(before, "a/m", times=2)
    fail(before, "b/m", Failure(FailureClass.RATE_LIMITED, wait=Wait(7.0)), times=1)
    reloaded(before, after)
    assert after.gates["a/m"].refusal(COST, 0.0) == Refusal("cooldown", 10.0)
    assert after.gates["b/m"].refusal(COST, 0.0) == Refusal("wait", 7.0)


def test_a_call_in_flight_holds_its_slot_in_both() -> None:
    """Of two slots one is left for the new fleet, whoever gives the other one back."""
    before, after = make("a/m"), make("a/m")
    held = admitted(before, "a/m")
    reloaded(before, after)
    admitted(after, "a/m")
    assert said(after, "a/m") == said(before, "a/m") == "bulkhead"
    held.settle(None, 0.0)
    assert said(after, "a/m") is None


@pytest.mark.parametrize("shared", [False, True])
def test_the_learned_limit_follows_new_slots(shared: bool) -> None:
    """Nothing was learned of two slots: three are allowed, of the same target and of one that is new."""
    before, after = make("a/m", slots=2), make("a/m", "a/n", slots=3)
    reloaded(before, after, shared=shared)
    assert [gate.free_slots for gate in after.gates.values()] == [3, 3]


def test_what_was_learned_of_a_target_goes_on() -> None:
    """The learned limit, the evidence and the throttle are those of before."""
    before, after = make("a/m"), make("a/m")
    old = before.gates["a/m"]
    learned, evidence, throttle = old.learned, old.evidence, old.throttle
    reloaded(before, after)
    gate = after.gates["a/m"]
    assert gate.learned is learned
    assert gate.evidence is evidence
    assert gate.throttle is throttle


def test_a_target_added_later_is_concerned_by_its_providers_transport() -> None:
    """The transport breaker opens and closes: the new target starts slowly as well."""
    before, after = make("a/m", slots=5), make("a/m", "a/n", slots=5)
    reloaded(before, after)
    fail(after, "a/m", FailureClass.TRANSPORT)
    due = after.providers["a"].transport.open_until
    assert due is not None
    admitted(after, "a/m", due).settle(None, due)
    admitted(after, "a/n", due)
    assert set(after.providers["a"].gates) == {"a/m", "a/n"}
    assert after.gates["a/n"].ready_at(Refusal("slow_start")) == due + 2.5


@pytest.mark.parametrize("shared", [False, True])
def test_slots_can_become_more_or_fewer(shared: bool) -> None:
    """Nothing is cut off, and the new number holds for both."""
    before, after = make("a/m", slots=2), make("a/m", slots=3)
    admitted(before, "a/m")
    admitted(before, "a/m")
    reloaded(before, after, shared=shared)
    admitted(after, "a/m")
    assert said(after, "a/m") == said(before, "a/m") == "bulkhead"


def test_a_target_added_later_shares_what_its_provider_has() -> None:
    """Its slots, its credential's rests, and the bucket of its pool."""
    old_pool, pool = RateLimitTracker(60), RateLimitTracker(60)
    before = make("a/m", pools={"a/m": old_pool})
    after = make("a/m", "a/n", "a/o#2", pools={"a/m": pool, "a/n": pool})
    fail(before, "a/m", UNAUTHORIZED, times=1)
    reloaded(before, after)
    assert after.gates["a/n"].provider is before.providers["a"]
    assert said(after, "a/n") == "off"
    assert said(after, "a/o#2") is None
    assert after.gates["a/n"].limits is old_pool


@pytest.mark.parametrize("rpm", [{}, {"a/m": 30.0}])
def test_changed_limits_begin_anew(rpm: dict[str, float]) -> None:
    """A bucket of the old size says nothing of the new one; the provider's slots are counted on."""
    before, after = make("a/m", "a/n", rpm={"a/m": 60.0, "a/n": 60.0}), make("a/m", "a/n", rpm=rpm | {"a/n": 60.0})
    held = admitted(before, "a/m")
    assert reloaded(before, after) == {"a/n"}
    assert after.gates["a/m"] is not before.gates["a/m"]
    assert after.gates["a/m"].limits is not before.gates["a/m"].limits
    assert after.gates["a/m"].provider.bulkhead.in_flight == 1
    held.settle(None, 0.0)
    assert after.gates["a/m"].provider.bulkhead.in_flight == 0


@pytest.mark.parametrize("apart_before", [False, True])
def test_limits_that_are_counted_together_only_now_or_no_more_begin_anew(apart_before: bool) -> None:
    """A pool of two targets is another thing than a bucket each."""
    together = dict.fromkeys(["a/m", "a/n"], RateLimitTracker(60))
    apart = {"a/m": RateLimitTracker(60), "a/n": RateLimitTracker(60)}
    before = make("a/m", "a/n", pools=apart if apart_before else together)
    after = make("a/m", "a/n", pools=together if apart_before else apart)
    assert reloaded(before, after) == {"a/m"}
    shares = after.gates["a/m"].limits is after.gates["a/n"].limits
    assert shares is apart_before


def test_another_key_is_another_credential() -> None:
    """At its place nothing rests, while the key beside it is still off."""
    before = make("a/m", "a/m#2", keys=["k1", "k2"])
    after = make("a/m", "a/m#2", keys=["new", "k2"])
    fail(before, "a/m", UNAUTHORIZED, times=1)
    fail(before, "a/m#2", UNAUTHORIZED, times=1)
    assert reloaded(before, after) == {"a/m#2"}
    assert said(after, "a/m") is None
    assert said(after, "a/m#2") == said(before, "a/m") == "off"


def test_a_late_refusal_of_the_old_key_is_not_the_new_ones() -> None:
    """A call that was sent with it changes nothing for the new one; and the next reload knows the new key."""
    before, after, third = make("a/m", keys=["k1"]), make("a/m", keys=["new"]), make("a/m", keys=["new"])
    late = admitted(before, "a/m")
    reloaded(before, after)
    late.settle(UNAUTHORIZED, 0.0)
    assert said(after, "a/m") is None
    assert reloaded(after, third) == {"a/m"}


def test_a_target_that_uses_another_credential_begins_anew() -> None:
    """A unit of health is provider, model and credential."""
    before, after = make("a/m"), make("a/m")
    after.gates["a/m"].number = 1
    assert reloaded(before, after) == frozenset()


def test_a_provider_somewhere_else_is_another_one() -> None:
    """Its breakers are closed, its slots are free, and what is still under way at the old place is counted there."""
    before, after = make("a/m", "b/m"), make("a/m", "b/m", origin="http://there")
    fail(before, "a/m")
    admitted(before, "b/m")
    assert reloaded(before, after) == frozenset()
    assert said(after, "a/m") is None
    assert after.providers["b"].bulkhead.in_flight == 0
    assert after.connectivity is not before.connectivity


def test_changed_rules_begin_anew_but_for_the_slots() -> None:
    """A breaker that opened by other rules is closed; calls in flight are in flight."""
    before, after = make("a/m"), make("a/m", config=PATIENT)
    admitted(before, "a/m")
    fail(before, "a/m")
    assert reloaded(before, after) == frozenset()
    assert said(after, "a/m") is None
    assert after.providers["a"].bulkhead is before.providers["a"].bulkhead
    assert after.providers["a"].throttle is before.providers["a"].throttle


@pytest.mark.parametrize(
    ("config", "slots", "throttle"),
    [(FIXED, True, True), (THROTTLED, True, False), (UNMEASURED, False, False)],
    ids=["adaptive", "throttle", "clock"],
)
def test_slots_and_throttles_of_other_rules_begin_anew(config: GateConfig, slots: bool, throttle: bool) -> None:
    """Each where its own rules changed, and both where time is told otherwise."""
    before, after = make("a/m"), make("a/m", config=config)
    reloaded(before, after)
    assert (after.providers["a"].bulkhead is before.providers["a"].bulkhead) is slots
    assert (after.providers["a"].throttle is before.providers["a"].throttle) is throttle


def test_shared_state_is_found_again_where_it_is_shared() -> None:
    """Breakers and limits of two routers that share them are two, told of each other as ever; slots are one."""
    before, after = make("a/m"), make("a/m")
    admitted(before, "a/m")
    fail(before, "a/m")
    assert reloaded(before, after, shared=True) == {"a/m"}
    assert after.gates["a/m"] is not before.gates["a/m"]
    assert said(after, "a/m") is None
    assert after.providers["a"].bulkhead.in_flight == 1
    assert after.connectivity is not before.connectivity


def test_a_removed_provider_has_no_say_in_being_offline() -> None:
    """Of two providers that are left the second to become unreachable is us, whatever the removed one did."""
    before, after = make("a/m", "b/m", "c/m"), make("a/m", "b/m")
    fail(before, "c/m", FailureClass.TRANSPORT)
    reloaded(before, after)
    fail(after, "a/m", FailureClass.TRANSPORT)
    assert said(after, "a/m") == "open"
    late = admitted(before, "b/m")
    fail(after, "b/m", FailureClass.TRANSPORT)
    assert after.connectivity.offline
    assert late.settle(None, 1.0).offline is False
    assert not after.connectivity.offline


def test_what_a_removed_provider_does_later_is_its_own_affair() -> None:
    """Its trips while it is drained are not among those of the providers that are left."""
    before, after = make("a/m", "b/m", "c/m"), make("a/m", "b/m")
    reloaded(before, after)
    fail(before, "c/m", FailureClass.TRANSPORT)
    fail(after, "a/m", FailureClass.TRANSPORT)
    assert said(after, "a/m") == "open"
    assert not after.connectivity.withholds("a", 0.0)
    assert after.connectivity.remotes == 2
