"""Runs and judgements as text of the Text REtrieval Conference, which every tool of the field reads and writes."""

from __future__ import annotations

from collections.abc import Iterator

from smart_model_router_scoring.confidence.parsing import as_number
from smart_model_router_scoring.evaluate.running import Qrels, Run
from smart_model_router_scoring.notes import Notes

_QREL = "query 0 id grade"
_RUN = "query Q0 id rank score tag"


def parse_qrels(text: str, notes: Notes | None = None) -> Qrels:
    """Judgements, a line each: `query 0 id grade`; above 0 is relevant, and of a repeated pair the last line counts.

    A line that is none is left out with a note (`bad_line`).
    """
    qrels: dict[str, dict[str, float]] = {}
    for (query, _, key, _), grade in _lines(text, _QREL, 3, notes):
        qrels.setdefault(query, {})[key] = grade
    return qrels


def parse_run(text: str, notes: Notes | None = None) -> Run:
    """A run, a line each: `query Q0 id rank score tag`. The score orders, highest first; of equal ones the id does.

    The rank is not read, as trec_eval has it. A line that is none is left out with a note (`bad_line`).
    """
    found: dict[str, list[tuple[float, str]]] = {}
    for (query, _, key, *_), score in _lines(text, _RUN, 4, notes):
        found.setdefault(query, []).append((-score, key))
    return {query: [key for _, key in sorted(scored)] for query, scored in found.items()}


def _lines(text: str, form: str, number: int, notes: Notes | None) -> Iterator[tuple[list[str], float]]:
    """The fields of each line of this form, and that at `number` as a number."""
    told = notes if notes is not None else Notes()
    for place, line in enumerate(text.splitlines(), start=1):
        fields = line.split()
        if not fields:
            continue
        value = as_number(fields[number]) if len(fields) == len(form.split()) else None
        if value is None:
            told.add("bad_line", f"line {place}", f"not `{form}`")
        else:
            yield fields, value
