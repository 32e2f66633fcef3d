"""The progress of a run in lines: its plan, and each round with what it found and what follows. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from smart_model_router_research.pipeline.research_events import ResearchEvent, ResearchEventKind
from smart_model_router_research.pipeline.run_inputs import ResearchBudget


@dataclass(slots=True)
class ProgressLines:
    """Lines of a run while it goes on: its plan, and each round with what it found and what follows."""

    budget: ResearchBudget
    tiers: dict[str, str] = field(default_factory=dict)
    searches: int = 0
    claims: dict[str, str] = field(default_factory=dict)
    gate: list[str] = field(default_factory=list)
    ci: float | None = None

    def of(self, event: ResearchEvent) -> list[str]:
        """Return the lines of an event; most have none, but are counted."""
        self.searches += event.kind is ResearchEventKind.QUERY
        say = _SAY.get(event.kind)
        return [] if say is None else list(say(self, event))

    def _run(self, event: ResearchEvent) -> Iterator[str]:
        if event.data.get("state") == "run_resumed":
            yield "  it goes on"

    def _plan(self, event: ResearchEvent) -> Iterator[str]:
        yield from (f"  {question_line(question)}" for question in event.data["questions"])
        yield from (f"  not asked: {each}" for each in event.data["out_of_scope"])

    def _step(self, event: ResearchEvent) -> Iterator[str]:
        if event.data.get("error"):
            yield f"  {event.step}: {event.data.get('state', 'again')}: {event.data['error']}"

    def _fetched(self, event: ResearchEvent) -> Iterator[str]:
        self.tiers[event.data["id"]] = event.data["tier"]
        yield from ()

    def _refused(self, event: ResearchEvent) -> Iterator[str]:
        yield f"  not used: {event.data['id']}: {event.data['reason']}"

    def _claim(self, event: ResearchEvent) -> Iterator[str]:
        self.claims[event.data["id"]] = event.data["status"]
        yield from ()

    def _metric(self, event: ResearchEvent) -> Iterator[str]:
        self.ci = event.data["ci_score"]
        yield from ()

    def _gate(self, event: ResearchEvent) -> Iterator[str]:
        self.gate = [] if event.data["passed"] else list(event.data["reasons"])
        yield from ()

    def _limit(self, event: ResearchEvent) -> Iterator[str]:
        yield f"  limit: {event.data['gap']}"

    def _round(self, event: ResearchEvent) -> Iterator[str]:
        statuses = Counter(self.claims.values())
        claims = ", ".join(f"{count} {status}" for status, count in statuses.items()) or "no claims"
        tiers = ", ".join(f"{count} of tier {tier}" for tier, count in sorted(Counter(self.tiers.values()).items()))
        index = "" if self.ci is None else f"index {self.ci:.2f}, "
        spent = (
            f"{self.searches} of {self.budget.searches} searches, {len(self.tiers)} of {self.budget.fetches} documents"
        )
        yield f"  round {event.data['round']}: {index}{claims}; {spent}{f' ({tiers})' if tiers else ''}"
        if self.gate:
            yield f"    gate not passed: {'; '.join(self.gate)}"
        reason = event.data["reason"].replace("_", " ")
        yield f"    it ends: {reason}" if event.data["next"] == "stop" else f"    next: {event.data['next']}: {reason}"


_SAY: Mapping[ResearchEventKind, Callable[[ProgressLines, ResearchEvent], Iterator[str]]] = {
    ResearchEventKind.RUN: ProgressLines._run,
    ResearchEventKind.PLAN: ProgressLines._plan,
    ResearchEventKind.STEP: ProgressLines._step,
    ResearchEventKind.FETCHED: ProgressLines._fetched,
    ResearchEventKind.REFUSED: ProgressLines._refused,
    ResearchEventKind.CLAIM: ProgressLines._claim,
    ResearchEventKind.METRIC: ProgressLines._metric,
    ResearchEventKind.GATE: ProgressLines._gate,
    ResearchEventKind.BUDGET: ProgressLines._limit,
    ResearchEventKind.ROUND: ProgressLines._round,
}


def question_line(question: Mapping[str, Any]) -> str:
    """Return a question of a plan in one line."""
    critical = ", critical" if question["critical"] else ""
    return f"{question['id']} ({question['kind']}{critical}): {question['text']}"
