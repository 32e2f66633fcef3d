"""`smr evaluate`: the quality of rankings by judgements, and with --ab the comparison of two of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from smart_model_router.cli.input_files import NOTES_SHOWN, opening, read_text, tell_left_out
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, print_table
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_scoring.evaluate import (
    METRICS,
    Comparison,
    Evaluation,
    Interval,
    compare,
    evaluate,
    parse_qrels,
    parse_run,
)
from smart_model_router_scoring.options import Notes

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Evaluate

_Read = TypeVar("_Read")


def run(asked: Evaluate) -> int:
    """Measure and print; the exit code. Raises ConfigurationError for a file that says nothing or cannot be opened."""
    run_a, qrels, ab, seed = asked.ranking, asked.qrels, asked.ab, asked.seed
    if run_a is None or qrels is None:
        from smart_model_router.cli import tune  # noqa: PLC0415 - retrieval is for those that tune

        return tune.run(asked)
    judged = _read("QRELS", qrels, parse_qrels)
    if not any(grade > 0 for grades in judged.values() for grade in grades.values()):
        raise ConfigurationError("QRELS", str(qrels), "a grade above 0 is needed")
    runs = {"A": _read("RUN", run_a, parse_run)} | ({} if ab is None else {"B": _read("--ab", ab, parse_run)})
    metadata = {"A": run_a.name} | ({} if ab is None else {"B": ab.name}) | {"qrels": qrels.name}
    now = datetime.now(UTC).replace(microsecond=0)
    found = {name: evaluate(one, judged, seed=seed, metadata=metadata, now=now) for name, one in runs.items()}
    compared = {metric: compare(runs["A"], runs["B"], judged, metric=metric, seed=seed) for metric in METRICS if ab}
    for name, one in found.items():
        if one.unjudged:
            print_line(f"smr: {len(one.unjudged)} queries of {name} have no relevant id: they count for nothing")
    headings, rows = _table(found, compared)
    if asked.keep is not None:
        with opening("--keep", asked.keep):
            _append(asked.keep, found["A"], headings, rows)
    if asked.as_json:
        print_json(_as_dict(found, compared))
    else:
        print_table(headings, rows, sys.stdout)
        print_answer(f"{_told(found['A'])}\n")
    return ExitCode.OK


def _read(what: str, file: Path, parse: Callable[[str, Notes], _Read]) -> _Read:
    """Return the parsed file. Lines that cannot be parsed are reported on stderr."""
    notes = Notes(keep=NOTES_SHOWN)
    found = parse(read_text(what, file), notes)
    tell_left_out(file, notes)
    if not found:
        raise ConfigurationError(what, str(file), "at least one line in the form of TREC is needed")
    return found


def _table(
    found: dict[str, Evaluation], compared: dict[str, Comparison]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """A row a metric."""
    headings = ["metric", *found]
    rows = [[metric, *(_shown(one.metrics[metric], "{:.4f}") for one in found.values())] for metric in METRICS]
    if compared:
        headings += ["B less A", "B wins", "B loses", "ties", "p"]
        for row, one in zip(rows, compared.values(), strict=True):
            row += [_shown(one.difference, "{:+.4f}"), str(len(one.wins)), str(len(one.losses)), str(one.ties)]
            row.append(f"{one.p:.4f}")
    return headings, rows


def _shown(interval: Interval, form: str) -> str:
    mean, low, high = (form.format(value) for value in (interval.mean, interval.low, interval.high))
    return f"{mean} [{low}, {high}]"


def _told(found: Evaluation) -> str:
    """The subject and the time of the measurement, in a line."""
    facts = {**found.metadata, "updated_at": found.updated_at}
    return "; ".join(f"{name}: {value}" for name, value in facts.items())


def _append(file: Path, found: Evaluation, headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """One section more, as Markdown."""
    table = [f"| {' | '.join(cells)} |" for cells in (headings, ["---"] * len(headings), *rows)]
    title = " and ".join(f"`{found.metadata[name]}`" for name in ("A", "B") if name in found.metadata)
    with file.open("a", encoding="utf-8") as kept:
        kept.write("\n".join(["", f"## {title}", "", _told(found), "", *table, ""]))


def _as_dict(found: dict[str, Evaluation], compared: dict[str, Comparison]) -> dict[str, Any]:
    told: dict[str, Any] = {
        "runs": {name: {metric: asdict(one) for metric, one in of.metrics.items()} for name, of in found.items()},
        "unjudged": {name: of.unjudged for name, of in found.items()},
        "metadata": dict(found["A"].metadata),
        "updated_at": found["A"].updated_at,
    }
    return told | ({"ab": {metric: asdict(one) for metric, one in compared.items()}} if compared else {})
