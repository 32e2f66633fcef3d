"""The words of a report's page that come from no source: confidence, warnings, method."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from smart_model_router_research.deep.claims import ClaimStatus
from smart_model_router_research.deep.lookups import HEADINGS, Openness, OpenQuestion, open_question
from smart_model_router_research.deep.report import in_order, supported_for
from smart_model_router_research.deep.research_run import ResearchRun
from smart_model_router_research.deep.rounds import Delivery

_WARNINGS = {
    Delivery.MODERATE: "Moderate confidence: check what matters before you rely on it.",
    Delivery.LOW: "Low confidence: take this as leads, not as findings.",
    Delivery.WITHHELD: "Withheld: there is too little evidence for a report. A person has to accept it first.",
}


def warning_of(run: ResearchRun) -> list[str]:
    """Return the warning above a report; nothing at full delivery."""
    if run.delivery is Delivery.FULL:
        return []
    if not run.graph.claims:
        return [nothing_found(run) + _looked_at(run)]
    if run.delivery is not Delivery.WITHHELD:
        return [_WARNINGS[run.delivery], *_undated_warning(run)]
    if run.facts.accepted_by:
        return [f"Too little evidence; shown because {run.facts.accepted_by} accepted it."]
    if run.graph.unresolved:
        return ["The sources disagree, and nothing decides between them: see Contradictions."]
    return [_WARNINGS[run.delivery]]


def _undated_warning(run: ResearchRun) -> list[str]:
    """Return why the sources keep a report from full delivery where none of them has a known date."""
    if not run.graph.documents or any(each.date_confidence != "unknown" for each in run.graph.documents.values()):
        return []
    return ["None of its sources has a known date, so they do not count as recent: as_of in a corpus.yaml gives one."]


def open_questions(run: ResearchRun) -> list[OpenQuestion]:
    """Return the questions of the delivered round without a supported claim, and how each stands."""
    open_ones = [each for each in in_order(run.graph.questions) if not supported_for(each, run.graph)]
    return [open_question(each, run.graph, run.lookups) for each in open_ones]


def nothing_found(run: ResearchRun) -> str:
    """Return in one sentence that nothing is found: nothing is there, not all was looked at, or nothing was."""
    ways = {each.openness for each in open_questions(run)} or {Openness.NOT_FOUND}
    way = next(iter(ways)) if len(ways) == 1 else Openness.IN_PART
    why = "; ".join(dict.fromkeys(each.why for each in open_questions(run) if each.why))
    return f"{HEADINGS[way]}{': ' if why else ''}{why}."


def weakness_lines(run: ResearchRun) -> list[str]:
    """Return what keeps a result from full delivery; nothing where nothing does, or where nothing was found."""
    if run.delivery is Delivery.FULL or not run.graph.claims:
        return []
    lines: list[str] = []
    if weak := [name for found in run.quality["failing_metrics"] for name in found]:
        lines.append(f"Weak: {', '.join(weak)}.")
    if reasons := run.audits[run.quality["selected_round"] - 1]["gate_reasons"]:
        lines.append(f"The gate was not passed: {'; '.join(reasons)}.")
    dates = [document.date_confidence for document in run.graph.documents.values()]
    if 0 < (undated := dates.count("unknown")) < len(dates):
        told = f"{undated} of {len(dates)} cited sources {'has' if undated == 1 else 'have'} no known date"
        lines.append(f"{told}; the key as_of of a corpus gives one.")
    if not run.completeness.is_complete:
        lines.append("Not every sentence is supported by its citations; those are marked.")
    return lines


def _looked_at(run: ResearchRun) -> str:
    """Return how much was searched, as a sentence; "" where the run does not say."""
    read, searched = run.facts.usage.get("documents"), run.facts.usage.get("searches")
    if read is None or searched is None:
        return ""
    times = "1 search was" if searched == 1 else f"{searched:,.10g} searches were"
    documents = "1 document" if read == 1 else f"{read:,.10g} documents"
    return f" {times} made, and {documents} read in full."


STOP_REASONS = {
    "passed": "the gate was passed",
    "max_rounds": "no more rounds were allowed",
    "regression": "further rounds made it worse",
    "contradiction": "a contradiction halts this policy",
    "no_progress": "the last round found nothing new",
    "budget": "a budget was used up",
    "deadline": "the time was over",
    "failed": "its sources could not be searched, or a step failed",
    "interrupted": "it was interrupted",
}
"""The reasons to stop, in words."""


def confidence_line(run: ResearchRun) -> str:
    """Return the confidence of a result in one line, as it stands below the answer."""
    return f"Confidence: {run.quality['confidence_level']}; delivered as: {run.delivery}."


def confidence_lines(run: ResearchRun) -> list[str]:
    """Return the confidence of a result, its index, and how steady that is."""
    quality = run.quality
    moved = quality["sensitivity"]
    passed = "passed" if run.audits[quality["selected_round"] - 1]["gate_passed"] else "not passed"
    index = f"{quality['best_ci_achieved']:.3f} (target {quality['target_ci']:.2f})"
    lines = [] if run.is_shown else [confidence_line(run)]  # else it stands below the answer
    lines.append(f"Index {index}, gate {passed}, as of {run.config.metrics.as_of.date().isoformat()}.")
    best = run.audits[quality["selected_round"] - 1]
    metrics = (f"{name} {best[name]:.3f} ({weight:g})" for name, weight in run.config.weights.items())
    lines.append(f"Metrics and their weights: {', '.join(metrics)}.")
    if quality["borderline"]:
        lines.append(
            f"Borderline: with weights a little different the index is {moved['min']:.3f} to {moved['max']:.3f}, "
            "and the gate would not always be passed."
        )
    return lines


def method_lines(run: ResearchRun) -> list[str]:
    """Return how the result was found: rounds, claims, sources by tier and date, completeness, costs."""
    return list(_method(run))


def _method(run: ResearchRun) -> Iterator[str]:
    quality, metrics = run.quality, run.config.metrics
    if run.facts.goal and run.facts.goal != run.facts.topic:
        yield f"Goal: {run.facts.goal}"
    reason = quality["stop_reason"]
    stop = f"; it ended since {STOP_REASONS.get(reason, reason)}" if reason else ""
    yield f"Rounds: {quality['rounds_completed']}, of which round {quality['selected_round']} is delivered{stop}."
    statuses = Counter(claim.status for claim in run.graph.claims)
    counted = ", ".join(f"{statuses[status]} {status}" for status in ClaimStatus if statuses[status])
    yield f"Claims: {counted or 'none'}. Each was checked by code against the text of its source."
    tiers = Counter(document.tier for document in run.documents.values())
    listed = ", ".join(f"{tiers[tier]} of tier {tier}" for tier in sorted(tiers))
    recent = run.audits[quality["selected_round"] - 1]["recent_source_count"]
    yield f"Sources: {listed or 'none'}; {recent} cited of the last {metrics.window} days (domain {metrics.domain})."
    if any(document.alone_suffices for document in run.documents.values()):
        yield "A corpus vouches for each of its documents by itself: one of them is enough for a critical claim."
    share = run.completeness
    if any(run.report.sentences):  # of none all would be supported
        yield f"Citations: {share.critical:.0%} of critical and {share.rest:.0%} of other sentences are supported."
    geometric = f"{quality['ci_geometric']:.3f}"
    yield f"Policy: {quality['policy']}, {quality['aggregation']} mean; the geometric one is {geometric}."
    if run.facts.usage:
        spent = ", ".join(f"{amount:,.10g} {unit}" for unit, amount in sorted(run.facts.usage.items()))
        yield f"Spent: {spent}."
    if run.facts.models:
        yield f"Models: {', '.join(run.facts.models)}."
    yield from run.facts.model_notes
