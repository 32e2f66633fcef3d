"""The fleet: system health counts OPEN providers among the enabled ones, and coming back online makes probes due."""

from __future__ import annotations

import pytest

from smart_model_router.core.fallback import Shedding
from smart_model_router.core.gate import Gate
from smart_model_router.core.gate_registry import GateRegistry
from smart_model_router.core.lease import Lease
from smart_model_router.core.ratelimit import Cost
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.outcome import Failure, FailureClass


def make_fleet(*targets: str, uncounted: tuple[str, ...] = (), local: tuple[str, ...] = ()) -> GateRegistry:
    """Make a fleet of `provider/model` targets."""
    names = dict.fromkeys(target.split("/")[0] for target in targets)
    connectivity = Connectivity(sum(name not in local for name in names))
    providers = {
        name: ProviderState(name, slots=20, remote=name not in local, connectivity=connectivity) for name in names
    }
    gates = [Gate(target, providers[target.split("/")[0]]) for target in targets]
    return GateRegistry(gates, connectivity, uncounted=uncounted)


def fail(fleet: GateRegistry, target: str, failure_class: FailureClass, times: int, now: float = 0.0) -> None:
    """Let so many calls to a target, in flight together for three seconds, fail at `now`: what opens does for 30 s."""
    leases = [fleet.gates[target].try_admit(Cost(1, 1), now - 3.0, 0.999) for _ in range(times)]
    for lease in leases:
        assert isinstance(lease, Lease)
        lease.settle(Failure(failure_class), now)


def kill(fleet: GateRegistry, target: str, now: float = 0.0) -> None:
    """Open the breaker of a target."""
    fail(fleet, target, FailureClass.SERVER_ERROR, 5, now)


def test_a_fleet_knows_its_gates_and_providers_by_name() -> None:
    """Two targets of one provider share its state."""
    fleet = make_fleet("a/m", "a/n", "b/m")
    assert set(fleet.gates) == {"a/m", "a/n", "b/m"}
    assert set(fleet.providers) == {"a", "b"}
    assert fleet.gates["a/m"].provider is fleet.gates["a/n"].provider is fleet.providers["a"]


def test_the_targets_of_a_provider_are_those_of_its_name() -> None:
    """Also the gate of a guard, which bears its provider's name, be that one of a configured provider or not."""
    fleet = make_fleet("a/m", "a/n", "b/m")
    for name in ("a", "search"):
        alone = ProviderState(name, slots=1, remote=False, connectivity=fleet.connectivity)
        fleet.gates[name] = Gate(name, alone)
    assert fleet.targets("a") == ("a/m", "a/n", "a")
    assert fleet.targets("b") == ("b/m",)
    assert fleet.targets("search") == ("search",)
    assert fleet.targets("nobody") == ()
    assert fleet.targets(None) == tuple(fleet.gates)


def test_a_healthy_fleet_is_all_closed() -> None:
    """Nothing OPEN, nothing comes due."""
    fleet = make_fleet("a/m", "b/m")
    assert fleet.open_ratio(0.0) == 0.0
    assert fleet.least_remaining(0.0) is None


def test_nothing_enabled_is_nothing_open() -> None:
    """An empty fleet, and one whose every target is switched off, have a health of 0."""
    assert make_fleet().open_ratio(0.0) == 0.0
    fleet = make_fleet("a/m")
    fail(fleet, "a/m", FailureClass.QUOTA, 1)
    assert fleet.open_ratio(0.0) == 0.0


def test_a_provider_is_open_when_every_target_of_it_is() -> None:
    """One of two targets OPEN: not yet; both: one of two providers."""
    fleet = make_fleet("a/m", "a/n", "b/m")
    kill(fleet, "a/m")
    assert fleet.open_ratio(0.0) == 0.0
    kill(fleet, "a/n")
    assert fleet.open_ratio(0.0) == 0.5


def test_a_provider_is_open_when_its_transport_is() -> None:
    """Transport faults of one target cut off all targets of the provider."""
    fleet = make_fleet("a/m", "a/n", "b/m", "c/m")
    fail(fleet, "a/m", FailureClass.TRANSPORT, 5)
    assert fleet.open_ratio(0.0) == pytest.approx(1 / 3)


def test_due_and_half_open_count_below_the_line_only() -> None:
    """At open_until the provider is enabled and not OPEN any more, probed or not."""
    fleet = make_fleet("a/m", "b/m")
    kill(fleet, "a/m")
    assert fleet.open_ratio(29.999) == 0.5
    assert fleet.open_ratio(30.0) == 0.0
    assert isinstance(fleet.gates["a/m"].try_admit(Cost(1, 1), 30.0, 0.0), Lease)
    assert fleet.open_ratio(30.0) == 0.0


@pytest.mark.parametrize("failure_class", [FailureClass.QUOTA, FailureClass.AUTH, FailureClass.MODEL_GONE])
def test_walled_and_off_count_in_neither(failure_class: FailureClass) -> None:
    """One of three switched off and one of the others OPEN: a half, not a third."""
    fleet = make_fleet("a/m", "b/m", "c/m")
    fail(fleet, "a/m", failure_class, 1)
    kill(fleet, "b/m")
    assert fleet.open_ratio(0.0) == 0.5


def test_a_switched_off_target_does_not_keep_its_provider_from_being_open() -> None:
    """Every enabled target counts: the walled sibling has no say."""
    fleet = make_fleet("a/m", "a/n", "b/m")
    fail(fleet, "a/n", FailureClass.QUOTA, 1)
    kill(fleet, "a/m")
    assert fleet.open_ratio(0.0) == 0.5


def test_an_isolated_provider_counts_in_neither() -> None:
    """The operator took it out: it is neither OPEN nor enabled."""
    fleet = make_fleet("a/m", "b/m")
    fleet.gates["a/m"].isolate(0.0)
    assert fleet.open_ratio(0.0) == 0.0
    kill(fleet, "b/m")
    assert fleet.open_ratio(0.0) == 1.0


def test_last_resorts_do_not_count() -> None:
    """A local model that never fails does not make a dead fleet look half alive."""
    fleet = make_fleet("a/m", "l/m", uncounted=("l/m",), local=("l",))
    kill(fleet, "a/m")
    assert fleet.open_ratio(0.0) == 1.0


def test_a_provider_with_an_uncounted_target_counts_by_its_others() -> None:
    """Only the last resort itself is left out, not its provider."""
    fleet = make_fleet("a/m", "a/n", "b/m", uncounted=("a/n",))
    kill(fleet, "a/m")
    assert fleet.open_ratio(0.0) == 0.5


def test_one_dead_provider_of_two_never_sheds() -> None:
    """Half is not above half, for as long as it stays dead."""
    fleet, shedding = make_fleet("a/m", "b/m"), Shedding()
    now = 0.0
    kill(fleet, "a/m")
    for _ in range(50):
        shedding.update(fleet.open_ratio(now), now)
        assert not shedding.active
        now = (fleet.gates["a/m"].breakers["whole"].open_until or 0.0) + 3.0
        fail(fleet, "a/m", FailureClass.SERVER_ERROR, 1, now)


def test_two_dead_providers_of_three_shed() -> None:
    """Two thirds are above half."""
    fleet, shedding = make_fleet("a/m", "b/m", "c/m"), Shedding()
    kill(fleet, "a/m")
    kill(fleet, "b/m")
    assert shedding.update(fleet.open_ratio(0.0), 0.0)


def test_the_least_remaining_time_is_that_of_the_first_to_come_due() -> None:
    """Of two OPEN breakers the earlier; one that is due already is not waited for; last resorts are left out."""
    fleet = make_fleet("a/m", "b/m", "c/m", uncounted=("c/m",))
    kill(fleet, "c/m", 0.0)
    kill(fleet, "a/m", 5.0)
    fail(fleet, "b/m", FailureClass.TRANSPORT, 5, 20.0)
    assert fleet.least_remaining(20.0) == 15.0
    assert fleet.least_remaining(35.0) == 15.0
    assert fleet.least_remaining(49.0) == 1.0
    assert fleet.least_remaining(50.0) is None


def test_while_offline_every_remote_is_open() -> None:
    """The withheld trip is no trip, but nobody can be reached: remotes count as OPEN, local ones do not."""
    fleet = make_fleet("a/m", "b/m", "l/m", local=("l",))
    fail(fleet, "a/m", FailureClass.TRANSPORT, 5, 0.0)
    fail(fleet, "b/m", FailureClass.TRANSPORT, 5, 1.0)
    assert fleet.connectivity.offline
    assert fleet.providers["b"].transport.is_closed
    assert fleet.open_ratio(1.0) == pytest.approx(2 / 3)


def test_coming_back_online_makes_every_transport_due() -> None:
    """The first remote success: whoever was cut off may be probed at once, own breakers keep their time."""
    fleet = make_fleet("a/m", "b/m", "c/m")
    fail(fleet, "a/m", FailureClass.TRANSPORT, 5, 0.0)
    fail(fleet, "b/m", FailureClass.TRANSPORT, 5, 0.0)
    kill(fleet, "c/m", 0.0)
    fleet.make_transports_due(3.0)
    for name in ("a", "b"):
        assert fleet.providers[name].transport.open_until == 3.0
    assert fleet.gates["c/m"].breakers["whole"].open_until == 30.0


def test_a_provider_is_judged_by_the_targets_that_are_there() -> None:
    """One of two is open: with both it is not all of the provider, and it is once the other is removed."""
    fleet = make_fleet("a/m")
    fleet.add(Gate("a/n", fleet.providers["a"]))
    kill(fleet, "a/n")
    assert fleet.open_ratio(0.0) == 0.0
    fleet.remove("a/m")
    assert fleet.open_ratio(0.0) == 1.0


def test_a_gate_can_be_removed_from_each_fleet_that_has_it() -> None:
    """Two have one after a reload, with one state of the provider; a gate that does not count goes as well."""
    fleet = make_fleet("a/m", uncounted=("a/m",))
    other = GateRegistry(fleet.gates.values(), fleet.connectivity)
    for each in (fleet, other):
        each.remove("a/m")
        assert each.gates == {}
