"""Models that requests made of wildcards: how many are kept, and when their targets are free."""

from __future__ import annotations

from smart_model_router.core.gate import Gate
from smart_model_router.core.gate_registry import GateRegistry
from smart_model_router.core.live_models import LiveModels
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.core.tiers import ModelRoute


def model_route(name: str) -> ModelRoute:
    """A model without targets."""
    return ModelRoute("w/*", (), name=name)


def test_the_least_recently_used_model_is_dropped() -> None:
    """Being asked for is use; a model beyond the bound takes the place of the one that was not asked for longest."""
    live = LiveModels(most=2)
    for name in ("a", "b"):
        live.add(name, model_route(name), (name,))
    live.get("a")
    live.add("c", model_route("c"), ("c",))
    assert live.names == ("a", "c")
    assert live.get("b") is None


def test_targets_are_free_when_no_model_has_them_any_more() -> None:
    """A target of two models is free after both; a model that a request holds still has its targets."""
    live = LiveModels(most=1)
    held = model_route("a")
    live.add("a", held, ("shared", "own"))
    live.add("b", model_route("b"), ("shared",))
    assert live.free_targets() == []
    assert live.uses("own")
    del held
    assert live.free_targets() == ["own"]
    live.add("c", model_route("c"), ())
    assert live.free_targets() == ["shared"]
    assert live.free_targets() == []
    assert not live.uses("shared")


def test_a_conversation_has_a_home_under_each_name_of_a_wildcard() -> None:
    """Two names of one wildcard are two models: each remembers its own target of a conversation."""
    names = {model_route(name).home_name("frontier", "session") for name in ("w/a", "w/b", "")}
    assert len(names) == 3


def fleet_of(*gates: Gate) -> GateRegistry:
    """A fleet of these gates."""
    return GateRegistry(gates, Connectivity(1))


def provider() -> ProviderState:
    """The state of a remote provider."""
    return ProviderState("p", slots=5, remote=True, connectivity=Connectivity(1))


def test_a_gate_that_is_added_counts_in_system_health() -> None:
    """An open target of a wildcard is an open provider; once removed it is none, and nothing keeps it."""
    fleet, state = fleet_of(), provider()
    gate = Gate("p/x", state)
    fleet.add(gate)
    gate.isolate(0.0)
    assert fleet.open_ratio(0.0) == 0.0
    gate.close(0.0)
    gate.breakers["whole"].isolate(0.0)
    gate.breakers["stream"].isolate(0.0)
    assert fleet.targets("p") == ("p/x",)
    fleet.remove("p/x")
    fleet.remove("p/x")
    assert fleet.gates == {}
    assert state.gates == {}
    assert fleet.open_ratio(0.0) == 0.0


def test_a_gate_is_added_beside_the_others_of_its_provider() -> None:
    """The provider's state stays the one that is there; the others stay counted when one goes."""
    state = provider()
    fleet = fleet_of(Gate("p/a", state))
    fleet.add(Gate("p/b", state))
    assert fleet.providers == {"p": state}
    fleet.remove("p/b")
    assert fleet.targets(None) == ("p/a",)
