"""Runs of research in words and as JSON: lines while they go on, their ends, and the exit code of each. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from smart_model_router.cli.output import ExitCode, OptionFault
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.rounds import Delivery
from smart_model_router_research.engine import RunState
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_research.pipeline.research_events import ResearchEvent, ResearchEventKind
from smart_model_router_research.pipeline.run_inputs import ResearchBudget
from smart_model_router_scoring.options import ConfigError

OPTIONS: Mapping[str, str] = {
    "topic": "TOPIC",
    "goal": "--goal",
    "as_of": "--as-of",
    "domain": "--domain",
    "max_rounds": "--max-rounds",
    "min_ci": "--min-ci",
    "min_recent_sources": "--min-recent-sources",
    "budget.usd": "--budget-usd",
    "budget.seconds": "--timeout",
    "deliver": "--deliver",
}
"""The option of each input that an option gives."""


def fault_of_input(error: ConfigError) -> OptionFault:
    """Return the error of an input as that of its option."""
    expected = f"{error.allowed.rstrip(',')} is needed"
    return OptionFault([ConfigurationError(OPTIONS.get(error.field, error.field), error.value, expected)])


def exit_code_of(result: ResearchResult, *, fail_below: str | None = None, is_shown: bool = False) -> ExitCode:
    """Return the exit code of a run: 1 when it failed or has no report, 6 when that is withheld or below `fail_below`.

    `is_shown` says that a withheld report is shown all the same. A run that ended in part is a success.
    """
    if result.status == RunState.PAUSED:
        return ExitCode.PAUSED
    if result.status not in (RunState.COMPLETED, RunState.PARTIAL) or not result.delivery:
        return ExitCode.FAILED
    levels = list(Delivery)
    found = Delivery(result.delivery)
    if fail_below is not None and levels.index(found) > levels.index(Delivery(fail_below)):
        return ExitCode.WITHHELD
    return ExitCode.WITHHELD if found is Delivery.WITHHELD and not is_shown else ExitCode.OK


def end_of(result: ResearchResult) -> str:
    """Return the end of a run in one line."""
    parts = [f"run {result.run_id} {result.status}"]
    if result.delivery:
        ci = result.quality_metadata.get("best_ci_achieved")
        parts.append(f"delivery {result.delivery}" + (f" (index {ci:.2f})" if isinstance(ci, float) else ""))
    if result.stop_reason:
        parts.append(f"stopped: {result.stop_reason.replace('_', ' ')}")
    parts += [_counted(number, unit.replace("_", " ")) for unit, number in result.usage.items() if number]
    if result.artefacts is not None:
        parts.append(f"folder {result.artefacts}")
    return "; ".join(parts)


def _counted(number: float, units: str) -> str:
    many = {"searches": "search"}
    return f"{number:g} {many.get(units, units.removesuffix('s')) if number == 1 else units}"


def withheld_line(result: ResearchResult, *, is_shown: bool) -> str:
    """Return the line about a report that is withheld; "" where none is, or where it would show nothing more."""
    if result.delivery != Delivery.WITHHELD or is_shown or not result.answers:
        return ""
    accept = f"smr research report {result.run_id} --accept"
    return f"withheld: too little is certain; to read what was found all the same: {accept}"


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
