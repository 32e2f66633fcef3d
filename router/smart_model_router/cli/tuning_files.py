"""The files that search is tuned on: questions, judgements of documents, and questions that nothing answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from smart_model_router.cli.input_files import NOTES_SHOWN, read_text, tell_left_out
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_scoring.evaluate import parse_qrels
from smart_model_router_scoring.options import Notes
from smart_model_router_scoring.retrieval import SearchIndex


@dataclass(frozen=True, slots=True)
class Material:
    """The user's questions by id, the grades of documents by question, and questions that nothing answers."""

    questions: Mapping[str, str]
    grades: Mapping[str, Mapping[str, float]]
    away: Sequence[str]


def read_material(index: SearchIndex, questions: Path, judgements: Path | None, away: Path | None) -> Material:
    """Read the files. What cannot be used is left out and named on stderr, with file and line."""
    paths = index.paths()
    asked, notes = _questions(questions)
    tell_left_out(questions, notes)
    if not asked:
        raise ConfigurationError("--questions", str(questions), "at least one line `id question` is needed")
    grades: dict[str, dict[str, float]] = {}
    if judgements is not None:
        notes = Notes(keep=NOTES_SHOWN)
        text = read_text("--qrels", judgements)
        lines = _lines_of(text)
        for question, of in parse_qrels(text, notes).items():
            for key, grade in of.items():
                document = next((one for one in (key, key.partition("#")[0]) if one in paths), None)
                if question not in asked or document is None:
                    wrong = (
                        f"no question {question!r}" if question not in asked else f"no document {key!r} in the index"
                    )
                    notes.add("unknown", f"line {lines[question, key]}", wrong)
                    continue
                best = grades.setdefault(question, {})
                best[document] = max(grade, best.get(document, 0.0))
        tell_left_out(judgements, notes)
        if not any(grade > 0 for of in grades.values() for grade in of.values()):
            wanted = "a grade above 0 for a document of the index and one of the questions is needed"
            raise ConfigurationError("--qrels", str(judgements), wanted)
    lines_away = [] if away is None else read_text("--away", away).splitlines()
    others = [one for line in lines_away if (one := line.strip())]
    if away is not None and not others:
        raise ConfigurationError("--away", str(away), "at least one question, one a line, is needed")
    return Material(asked, grades, others)


def _questions(file: Path) -> tuple[dict[str, str], Notes]:
    """The questions by id; of a repeated id the first one counts."""
    notes, found = Notes(keep=NOTES_SHOWN), dict[str, str]()
    for place, line in enumerate(read_text("--questions", file).splitlines(), start=1):
        name, _, text = line.strip().replace("\t", " ", 1).partition(" ")
        if not name:
            continue
        if not text.strip():
            notes.add("bad_line", f"line {place}", "not `id question`")
        elif name in found:
            notes.add("repeated", f"line {place}", f"{name!r} is there already")
        else:
            found[name] = text.strip()
    return found, notes


def _lines_of(text: str) -> dict[tuple[str, str], int]:
    """The last line of each judged pair, which is the one that counts."""
    fields = ((place, line.split()) for place, line in enumerate(text.splitlines(), start=1))
    return {(of[0], of[2]): place for place, of in fields if len(of) > 2}
