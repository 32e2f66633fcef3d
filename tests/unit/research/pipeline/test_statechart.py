"""The states of a run of research: a table in which each way forward ends, and nothing follows an end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router_research.deep.rounds import MAX_ROUNDS, Mode
from smart_model_router_research.pipeline.statechart import (
    ENDED,
    EXECUTIONS,
    ResearchState,
    may_move,
    moves_of,
)

STATES = st.sampled_from(ResearchState)


@given(st.lists(st.sampled_from([each.value for each in Mode]), min_size=1, max_size=MAX_ROUNDS), st.text())
def test_the_moves_of_rounds_are_a_path(modes: list[str], confidence: str) -> None:
    """From the start to the end, each round once and in its order; only `full` is synthesised with full confidence."""
    moves = [*moves_of(modes, confidence), ResearchState.FINAL]

    assert moves[0] is ResearchState.INIT
    assert all(may_move(one, other) for one, other in pairwise(moves))
    assert [each for each in moves if each in EXECUTIONS] == list(EXECUTIONS[: len(modes)])
    assert (ResearchState.FULL_CONFIDENCE in moves) is (confidence == "full")
    assert (ResearchState.DEGRADED in moves) is (confidence != "full")


@given(STATES, STATES)
def test_any_state_but_an_end_may_stop(state: ResearchState, to: ResearchState) -> None:
    """Pause, cancel and failure are possible everywhere but at an end, which nothing follows."""
    stops = {ResearchState.CANCELLED, ResearchState.FAILED}

    if state in ENDED:
        assert not may_move(state, to)
    elif to in stops:
        assert may_move(state, to)


@given(st.lists(STATES, min_size=1, max_size=12))
def test_no_walk_skips_or_repeats(tried: list[ResearchState]) -> None:
    """However a run moves without a pause, it plans before it executes, and comes to no state again."""
    walk = [ResearchState.INIT]
    for to in tried:
        if to is not ResearchState.PAUSED and may_move(walk[-1], to):
            walk.append(to)

    assert len(set(walk)) == len(walk)
    executed = [each for each in walk if each in EXECUTIONS]
    assert executed == list(EXECUTIONS[: len(executed)])
    assert not executed or walk[1] is ResearchState.PLANNING


@pytest.mark.parametrize("state", [each for each in ResearchState if each not in ENDED])
def test_every_state_leads_to_the_end(state: ResearchState) -> None:
    """There is a way from each state to `final`."""
    reached, border = {state}, {state}
    while border:
        border = {to for one in border for to in ResearchState if may_move(one, to)} - reached
        reached |= border

    assert ResearchState.FINAL in reached
    assert ResearchState.INIT not in reached - {state}


def test_there_is_a_state_for_each_round() -> None:
    """And no more rounds than states."""
    assert len(EXECUTIONS) == MAX_ROUNDS
    assert may_move(EXECUTIONS[-1], ResearchState.COALESCE)
    assert not may_move(EXECUTIONS[-1], EXECUTIONS[0])
