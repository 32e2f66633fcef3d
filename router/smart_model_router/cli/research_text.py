"""Runs of research in words and as JSON: lines while they go on, their ends, and the exit code of each. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from smart_model_router.cli.output import ExitCode, OptionFault
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.rounds import Delivery
from smart_model_router_research.engine import RunState
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_scoring.options import ConfigError

OPTIONS: Mapping[str, str] = {
    "topic": "TOPIC",
    "goal": "--goal",
    "as_of": "--as-of",
    "domain": "--domain",
    "backends": "--backend",
    "seed_urls": "--seed-url",
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
