"""Facts about LangGraph that its engine is built on: a version that changes one of them is noticed here."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Protocol, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.graph import START, StateGraph
from langgraph.types import Command, interrupt

from smart_model_router.testing import START as BEGIN
from smart_model_router.testing import LoopClock, run_virtual
from tests.conformance.engine_harness import passing


def merged(old: list[str], new: list[str]) -> list[str]:
    """Add what is new."""
    return [*old, *new]


class Ran(TypedDict):
    """The nodes that ran, in order."""

    ran: Annotated[list[str], merged]


class Node(Protocol):
    """A node: the library calls its argument by name."""

    async def __call__(self, state: Ran) -> Ran:
        """Do its work."""
        ...


def named(name: str, seconds: float = 0.0) -> Node:
    """Make a node that takes so long, and says that it ran."""

    async def node(state: Ran) -> Ran:
        del state
        await passing(seconds)
        return {"ran": [name]}

    return node


def graph(nodes: dict[str, Node], edges: Sequence[tuple[Any, str]]) -> StateGraph[Any]:
    """Make a graph of nodes and of edges from one of them, or from a list of them."""
    built: StateGraph[Any] = StateGraph(Ran)
    for name, node in nodes.items():
        built.add_node(name, node)
    for source, target in edges:
        built.add_edge(source, target)
    return built


async def ran(built: StateGraph[Any]) -> list[str]:
    """Return the nodes that ran."""
    found: list[str] = (await built.compile().ainvoke({"ran": []}))["ran"]
    return found


def test_a_join_over_a_list_never_runs_where_a_branch_is_not_taken() -> None:
    """So no edge of an acyclic workflow depends on a condition: a step that is skipped is a node that does nothing."""
    nodes = {name: named(name) for name in "abcd"}
    built = graph(nodes, [(START, "a"), (["b", "c"], "d")])
    built.add_conditional_edges("a", lambda state: "b", ["b", "c"])
    assert run_virtual(ran(built)) == ["a", "b"]


def test_separate_edges_of_unequal_length_run_a_join_twice_and_a_list_once() -> None:
    """So a step that needs several others has one edge, from the list of them."""
    nodes = {name: named(name) for name in "abcd"}
    edges: list[tuple[Any, str]] = [(START, "a"), ("a", "b"), ("b", "c")]
    assert run_virtual(ran(graph(nodes, [*edges, ("a", "d"), ("c", "d")]))).count("d") == 2
    assert run_virtual(ran(graph(nodes, [*edges, (["a", "c"], "d")]))) == ["a", "b", "c", "d"]


def test_a_node_that_raises_cancels_those_beside_it_also_while_they_clean_up() -> None:
    """So no node raises: the graph is cancelled, which does wait for what cleans up."""
    cleaned: list[str] = []

    async def cleans(state: Ran) -> Ran:
        try:
            await passing(60)
        finally:
            await passing(1)
            cleaned.append("a")
        return {"ran": ["a"]}

    async def raises(state: Ran) -> Ran:
        await passing(1)
        raise RuntimeError("no")

    built = graph({"a": cleans, "b": raises}, [(START, "a"), (START, "b")])
    with pytest.raises(RuntimeError, match="no"):
        run_virtual(ran(built))
    assert cleaned == []

    async def cancelled() -> None:
        task = asyncio.create_task(ran(graph({"a": cleans}, [(START, "a")])))
        await passing(1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    run_virtual(cancelled())
    assert cleaned == ["a"]


def test_the_nodes_of_a_superstep_end_together() -> None:
    """So a step may wait for one that it does not need: two chains take the sum of their longest steps."""
    times = {"a1": 0.5, "a2": 0.05, "a3": 0.5, "b1": 0.05, "b2": 0.5, "b3": 0.05}
    edges = [(START, "a1"), ("a1", "a2"), ("a2", "a3"), (START, "b1"), ("b1", "b2"), ("b2", "b3")]

    async def main() -> float:
        await ran(graph({name: named(name, seconds) for name, seconds in times.items()}, edges))
        return LoopClock().now() - BEGIN

    assert run_virtual(main()) == pytest.approx(1.5)


def test_an_interrupted_node_runs_again_from_its_beginning() -> None:
    """So a decision is asked for by our store and not by the library's interrupt."""
    began: list[str] = []

    async def asks(state: Ran) -> Ran:
        began.append("a")
        return {"ran": [interrupt("go on?")]}

    async def main() -> list[str]:
        compiled = graph({"a": asks}, [(START, "a")]).compile(checkpointer=InMemorySaver())
        config: Any = {"configurable": {"thread_id": "t"}}
        await compiled.ainvoke({"ran": []}, config)
        found: list[str] = (await compiled.ainvoke(Command(resume="yes"), config))["ran"]
        return found

    assert run_virtual(main()) == ["yes"]
    assert began == ["a", "a"]


def test_a_graph_ends_in_an_error_at_its_recursion_limit() -> None:
    """So a run has a limit of its own, by the number of its steps and passes."""
    built = graph({name: named(name) for name in "ab"}, [(START, "a"), ("a", "b")])

    async def main() -> None:
        with pytest.raises(GraphRecursionError):
            await built.compile().ainvoke({"ran": []}, {"recursion_limit": 1})

    run_virtual(main())
