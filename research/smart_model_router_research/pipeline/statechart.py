"""The states of a run of research as users see them, and the moves between them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from smart_model_router_research.deep.rounds import MAX_ROUNDS


class ResearchState(StrEnum):
    """The states. A run that ended is final, cancelled or failed; one that is paused or interrupted can go on."""

    INIT = "init"
    PLANNING = "planning"
    EXECUTION_1 = "execution_1"
    EXECUTION_2 = "execution_2"
    EXECUTION_3 = "execution_3"
    EXECUTION_4 = "execution_4"
    COALESCE = "coalesce"
    FULL_CONFIDENCE = "synthesis_full_confidence"
    DEGRADED = "synthesis_degraded"
    FINAL = "final"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    FAILED = "failed"


EXECUTIONS = tuple(ResearchState(f"execution_{number}") for number in range(1, MAX_ROUNDS + 1))
"""The state of each round."""
ENDED = frozenset({ResearchState.FINAL, ResearchState.CANCELLED, ResearchState.FAILED})
_ANYWHERE = (ResearchState.PAUSED, ResearchState.CANCELLED, ResearchState.FAILED)
_FORWARD: dict[ResearchState, tuple[ResearchState, ...]] = {
    ResearchState.INIT: (ResearchState.PLANNING,),
    ResearchState.PLANNING: (EXECUTIONS[0],),
    **{
        state: (ResearchState.COALESCE, *EXECUTIONS[number : number + 1])
        for number, state in enumerate(EXECUTIONS, start=1)
    },
    ResearchState.COALESCE: (ResearchState.FULL_CONFIDENCE, ResearchState.DEGRADED),
    ResearchState.FULL_CONFIDENCE: (ResearchState.FINAL,),
    ResearchState.DEGRADED: (ResearchState.FINAL,),
}


def may_move(state: ResearchState, to: ResearchState) -> bool:
    """Return whether a run may go from one state to another. One that is paused goes on anywhere but to the start."""
    if state in ENDED:
        return False
    if state is ResearchState.PAUSED:
        return to not in (ResearchState.INIT, ResearchState.PAUSED)
    return to in _FORWARD[state] or to in _ANYWHERE


def moves_of(modes: Sequence[str], confidence: str) -> list[ResearchState]:
    """Return the states that a run went through that had a round of each of these modes, up to its synthesis."""
    synthesis = ResearchState.FULL_CONFIDENCE if confidence == "full" else ResearchState.DEGRADED
    executions = EXECUTIONS[: len(modes)]
    return [ResearchState.INIT, ResearchState.PLANNING, *executions, ResearchState.COALESCE, synthesis]
