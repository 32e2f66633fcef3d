"""The incidence store: runs become a graph, capabilities overlap with contexts."""

from __future__ import annotations

import pytest

from smart_model_router_scoring.tools.graph import IncidenceStore


def test_confidence_is_the_share_of_the_steps_from_a_tool() -> None:
    """From a: twice to b, once to c."""
    store = IncidenceStore()
    store.observe(["a", "b", "a", "c"])
    store.observe(["a", "b"])
    graph = store.graph()
    assert dict(graph.successors("a")) == {"b": pytest.approx(2 / 3), "c": pytest.approx(1 / 3)}
    assert dict(graph.successors("b")) == {"a": 1.0}
    assert dict(graph.notes.counts) == {}


def test_a_tool_twice_in_a_row_is_no_step() -> None:
    """And does not hide the step that follows."""
    store = IncidenceStore()
    store.observe(["a", "a", "b"])
    assert dict(store.graph().successors("a")) == {"b": 1.0}


def test_every_tool_that_was_named_is_in_the_graph() -> None:
    """One that was used alone, and one that is only part of a capability."""
    store = IncidenceStore()
    store.observe(["alone"])
    store.define("publish", ["render", "upload"])
    assert store.graph().tools == ("alone", "render", "upload")


def test_overlap_is_the_share_of_the_capabilitys_tools() -> None:
    """What else the context has does not matter."""
    store = IncidenceStore()
    store.define("publish", ["render", "upload", "render"])
    assert store.overlap("publish", ["render", "x"]) == 0.5
    assert store.overlap("publish", ["upload", "render"]) == 1.0
    assert store.overlap("publish", []) == 0.0


def test_what_has_no_tools_or_is_unknown_overlaps_with_nothing() -> None:
    """No division by zero."""
    store = IncidenceStore()
    store.define("empty", [])
    assert store.overlap("empty", ["a"]) == 0.0
    assert store.overlap("unknown", ["a"]) == 0.0


def test_a_capability_is_replaced_and_forgotten() -> None:
    """Said again, it is what was said last; forgetting twice is no error."""
    store = IncidenceStore()
    store.define("b", ["x"])
    store.define("a", ["x"])
    store.define("b", ["y"])
    assert list(store.capabilities) == ["a", "b"]
    assert store.capabilities["b"] == {"y"}
    store.forget("b")
    store.forget("b")
    assert list(store.capabilities) == ["a"]


def test_what_was_handed_out_stays_as_it_was() -> None:
    """A graph is a snapshot, and so are the capabilities."""
    store = IncidenceStore()
    store.observe(["a", "b"])
    graph, capabilities = store.graph(), store.capabilities
    store.observe(["a", "c"])
    store.define("new", ["a"])
    assert dict(graph.successors("a")) == {"b": 1.0}
    assert dict(capabilities) == {}
