"""Ways to break the pure parts of the pipeline of research, each of which a test of runs must notice."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from smart_model_router_research.deep import citation_completeness
from smart_model_router_research.deep.research_run import ResearchRun
from smart_model_router_research.deep.rounds import RoundStep, next_round
from smart_model_router_research.pipeline import (
    analyst_step,
    audit_steps,
    recorded_search,
    retrieval_step,
    verification_step,
)
from smart_model_router_research.pipeline.recorded_search import SearchLedger
from smart_model_router_research.pipeline.search_time import SearchTime

Break = Callable[[pytest.MonkeyPatch], None]


def a_passed_gate_goes_on(patch: pytest.MonkeyPatch) -> None:
    """X5: the gate is not asked before the next round."""

    def blind(history: Sequence[Mapping[str, Any]], *rest: Any, **options: Any) -> Any:
        return next_round([{**each, "gate_passed": False} for each in history], *rest, **options)

    patch.setattr(audit_steps, "next_round", blind)


def the_latest_is_delivered(patch: pytest.MonkeyPatch) -> None:
    """X5: the latest round in the place of the best one."""
    patch.setattr(audit_steps, "best_of", lambda audits: audits[-1])


def a_repair_is_everything(patch: pytest.MonkeyPatch) -> None:
    """A remediation runs all steps."""

    def thorough(*arguments: Any, **options: Any) -> Any:
        found = next_round(*arguments, **options)
        return replace(found, steps=tuple(RoundStep) if found.steps else ())

    patch.setattr(audit_steps, "next_round", thorough)


def rounds_forget(patch: pytest.MonkeyPatch) -> None:
    """X3: an audit sees its own round alone."""
    patch.setattr(audit_steps, "rounds_of", lambda rows: [] if rows is None else audit_rounds(rows)[-1:])


audit_rounds = audit_steps.rounds_of


def claims_stay_apart(patch: pytest.MonkeyPatch) -> None:
    """Two sources of one claim are two claims."""
    patch.setattr(verification_step, "_merged", lambda claims, examiner: list(claims))


def half_an_answer(patch: pytest.MonkeyPatch) -> None:
    """Claims on the way to an answer that is not there stay, and answer."""

    class Hoarding(analyst_step.OfflineSession):  # type: ignore[name-defined,misc]
        def __setattr__(self, name: str, value: Any) -> None:
            if name == "claims" and len(value) < len(getattr(self, "claims", ())):
                return
            super().__setattr__(name, value)

    patch.setattr(analyst_step, "OfflineSession", Hoarding)
    patch.setattr(analyst_step, "_asked", lambda claim, answering: claim)


def the_reserve_is_spent(patch: pytest.MonkeyPatch) -> None:
    """X6: searches and documents up to the cap, and one."""
    patch.setattr(retrieval_step, "math", SimpleNamespace(floor=lambda most: math.floor(most) + 1))


def searches_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    """X6: a round does not know what earlier ones searched."""
    ledger = retrieval_step._ledger
    patch.setattr(retrieval_step, "_ledger", lambda step, tools, budget, _: ledger(step, tools, budget, None))


def limits_are_silent(patch: pytest.MonkeyPatch) -> None:
    """X6: no limit is a reason to stop."""
    patch.setattr(SearchLedger, "halt", property(lambda _: ""))


def time_is_endless(patch: pytest.MonkeyPatch) -> None:
    """X6: searches begin at any time."""
    patch.setattr(SearchTime, "is_over", property(lambda _: False))


def anything_is_cited(patch: pytest.MonkeyPatch) -> None:
    """X2: documents of tier C are admitted."""
    patch.setattr(recorded_search, "SourceTier", SimpleNamespace(C=None))


def anything_was_looked_for(patch: pytest.MonkeyPatch) -> None:
    """A question that no analyst read for counts as looked for."""
    patch.setattr(audit_steps, "read_by", lambda retrieved, analysts, is_verified: tuple(retrieved))


def another_round_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """X10: the contradictions of the delivered round alone are shown."""
    patch.setattr(ResearchRun, "contradictions", property(lambda run: run.graph.contradictions))


def nothing_is_marked(patch: pytest.MonkeyPatch) -> None:
    """X2: what is not supported stays as it is written."""
    patch.setattr(citation_completeness, "_mended", lambda sentence, claims: [sentence])
