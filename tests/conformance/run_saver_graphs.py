"""The promises of RunSaver to graphs: they go on, branch, and keep channels as changes."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

import pytest
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from smart_model_router_research.engine import (
    StoreUnavailable,
)
from tests.conformance.run_saver_parts import SaverTests, of


class Conversation(TypedDict):
    """The state of a graph that asks a person."""

    said: Annotated[list[str], operator.add]
    rounds: int


def talking(saver: BaseCheckpointSaver[Any], asked: list[str]) -> Any:
    """Make a graph of three nodes, the second one of which waits for a decision."""

    def first(state: Conversation) -> dict[str, Any]:
        asked.append("first")
        return {"said": ["hello"], "rounds": 1}

    def second(state: Conversation) -> dict[str, Any]:
        return {"said": [interrupt("go on?")]}

    def third(state: Conversation) -> dict[str, Any]:
        asked.append("third")
        return {"said": [f"{len(state['said'])} before"]}

    graph = StateGraph(Conversation)
    graph.add_node("first", first)
    graph.add_node("second", second)
    graph.add_node("third", third)
    for edge in ((START, "first"), ("first", "second"), ("second", "third"), ("third", END)):
        graph.add_edge(*edge)
    return graph.compile(checkpointer=saver)


def joined(before: list[str], writes: Sequence[list[str]]) -> list[str]:
    """Add writes to a list."""
    return [*before, *(each for write in writes for each in write)]


class Grown(TypedDict):
    """A state with a channel that is kept as its changes."""

    log: Annotated[list[str], DeltaChannel(joined, snapshot_frequency=4)]
    rounds: int


def growing(saver: BaseCheckpointSaver[Any], rounds: int) -> Any:
    """Make a graph that adds to its log for so many rounds, on two branches."""

    def grow(state: Grown) -> dict[str, Any]:
        return {"log": [f"a{state['rounds']}"], "rounds": state["rounds"] + 1}

    def beside(state: Grown) -> dict[str, Any]:
        return {"log": [f"b{state['rounds']}"]}

    graph = StateGraph(Grown)
    graph.add_node("grow", grow)
    graph.add_node("beside", beside)
    graph.add_edge(START, "grow")
    graph.add_conditional_edges("grow", lambda state: END if state["rounds"] >= rounds else ["grow", "beside"])
    return graph.compile(checkpointer=saver)


class SaverGraphs(SaverTests):
    """Graphs, delta channels, versions."""

    # -------------------------------------------------------------------------------------------- graphs

    @pytest.mark.parametrize("durability", ["sync", "async", "exit"])
    def test_a_graph_goes_on_in_another_process(self, durability: Any) -> None:
        """Where it waited, with the state that it had; what was done is not done again."""
        asked: list[str] = []
        graph = talking(self.saver(), asked)
        waiting = graph.invoke({"said": [], "rounds": 0}, of(), durability=durability)
        assert [each.value for each in waiting["__interrupt__"]] == ["go on?"]
        again = talking(self.saver(), asked)
        assert again.get_state(of()).next == ("second",)
        ended = again.invoke(Command(resume="yes"), of(), durability=durability)
        assert ended == {"said": ["hello", "yes", "2 before"], "rounds": 1}
        assert asked == ["first", "third"]

    @pytest.mark.asyncio
    async def test_a_graph_on_a_loop_has_the_history_of_one_without(self) -> None:
        """Every state, oldest last, as LangGraph's own saver in memory has them."""
        histories: list[list[Any]] = []
        for saver in (self.saver(), InMemorySaver()):
            graph = talking(saver, [])
            await graph.ainvoke({"said": [], "rounds": 0}, of())
            await graph.ainvoke(Command(resume="yes"), of())
            states = [each async for each in graph.aget_state_history(of())]
            histories.append([(each.values, each.next, each.metadata) for each in states])
        assert histories[0] == histories[1]
        assert len(histories[0]) == 5

    def test_a_thread_can_be_taken_up_at_an_earlier_state(self) -> None:
        """The branch begins there; the old one stays."""
        graph = talking(self.saver(), [])
        graph.invoke({"said": [], "rounds": 0}, of())
        graph.invoke(Command(resume="yes"), of())
        states = list(graph.get_state_history(of()))
        (before,) = [each for each in states if each.next == ("third",)]
        changed = graph.update_state(before.config, {"rounds": 7})
        assert graph.invoke(None, changed) == {"said": ["hello", "yes", "2 before"], "rounds": 7}
        assert [each.values for each in list(graph.get_state_history(of()))[-5:]] == [each.values for each in states]

    # -------------------------------------------------------------------------------------------- delta channels

    @pytest.mark.asyncio
    @pytest.mark.parametrize("durability", ["sync", "exit"])
    async def test_the_history_of_a_delta_channel_is_the_one_of_the_definition(self, durability: Any) -> None:
        """Writes since the value that it began with, as LangGraph's general but slow way finds them, at every state."""
        saver = self.saver()
        graph = growing(saver, 7)
        for rounds in range(3):
            graph.invoke({"log": [f"in{rounds}"], "rounds": rounds}, of(), durability=durability)
        expected = growing(memory := InMemorySaver(), 7)
        for rounds in range(3):
            expected.invoke({"log": [f"in{rounds}"], "rounds": rounds}, of(), durability=durability)
        assert graph.get_state(of()).values == expected.get_state(of()).values
        found = list(saver.list(of()))
        assert len(found) == len(list(memory.list(of())))
        for each in found:
            plain = BaseCheckpointSaver.get_delta_channel_history(saver, config=each.config, channels=["log", "rounds"])
            ours = saver.get_delta_channel_history(config=each.config, channels=["log", "rounds"])
            assert (
                ours == plain == await saver.aget_delta_channel_history(config=each.config, channels=["log", "rounds"])
            )
        assert saver.get_delta_channel_history(config=of("unknown"), channels=["log"]) == {"log": {"writes": []}}

    @pytest.mark.parametrize("rounds", [3, 6, 9])
    def test_pruning_keeps_what_a_delta_channel_begins_with(self, rounds: int) -> None:
        """The state is the same afterwards, in a copy, too, and goes on; older ancestors go."""
        saver = self.saver()
        growing(saver, rounds).invoke({"log": ["in"], "rounds": 0}, of())
        before = growing(saver, rounds).get_state(of()).values
        many = len(list(saver.list(of())))
        saver.prune(["t"])
        saver.copy_thread("t", "copy")
        assert growing(self.saver(), rounds).get_state(of()).values == before
        assert len(list(saver.list(of()))) <= min(many, 6)
        for thread_id in ("t", "copy"):
            ended = growing(saver, rounds + 2).invoke({"rounds": rounds}, of(thread_id))
            assert ended["log"][: len(before["log"])] == before["log"]
            assert len(ended["log"]) > len(before["log"])

    def test_a_delta_channel_whose_past_was_deleted_is_an_error(self) -> None:
        """The value that would follow from what is left passes for a whole one, and is none."""
        saver = self.saver()
        growing(saver, 3).invoke({"log": ["in"], "rounds": 0}, {**of(), "metadata": {"run_id": "one"}})
        states = [each.config for each in saver.list(of())]
        growing(saver, 6).invoke({"log": ["again"], "rounds": 3}, {**of(), "metadata": {"run_id": "two"}})
        saver.delete_for_runs(["one"])
        (oldest,) = list(saver.list(of()))[-1:]
        assert oldest.config not in states
        with pytest.raises(
            StoreUnavailable, match=r"thread 't': checkpoint .*, at which \['log'\] go on, is no longer"
        ):
            saver.get_delta_channel_history(config=oldest.config, channels=["log"])

    # -------------------------------------------------------------------------------------------- versions

    def test_versions_are_numbers_unless_a_thread_began_with_texts(self) -> None:
        """A thread that another saver wrote goes on: its texts stay comparable."""
        saver = self.saver()
        assert [saver.get_next_version(each, None) for each in (None, 1, 41)] == [1, 2, 42]
        theirs = InMemorySaver().get_next_version(None, None)
        for _ in range(12):
            following = saver.get_next_version(theirs, None)
            assert following > theirs
            theirs = following
        assert int(theirs.split(".")[0]) == 13
