"""The judged collections that ranking is measured on, and questions that none of them can answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
DEBIAN = HERE / "data" / "debian_tags.json"
CRANFIELD = Path(os.environ.get("SMR_SHARED_DATA", HERE.parent.parent / "shared" / "data")) / "cranfield"
OFF_TOPIC = (
    "how long do I boil an egg",
    "recipe for chocolate cake with cherries",
    "who won the football cup final",
    "how do I teach a puppy to sit",
    "best time of year to plant tomatoes",
    "symptoms of a common cold in children",
    "what to wear to a summer wedding",
    "history of the Roman emperors",
    "how do I remove red wine from a carpet",
    "cheap hotels near the beach",
    "how to knit a woollen scarf",
    "which foods contain iron",
    "the plot of a famous opera",
    "rules for a divorce settlement",
    "how often should a horse be fed",
    "poems about autumn leaves",
    "side effects of drinking coffee",
    "how do I change a bicycle tyre",
    "names for a baby girl",
    "how do vaccines protect people",
)
"""Nothing here is about flight, and hardly anything about software."""


@dataclass(frozen=True, slots=True)
class Collection:
    """Documents and questions by id, and the grades of documents (above 0: relevant) by question."""

    name: str
    documents: dict[str, str]
    questions: dict[str, str]
    grades: dict[str, dict[str, float]]


def debian() -> Collection:
    """Package synopses, judged by tags (the repository has it)."""
    data = json.loads(DEBIAN.read_text("utf-8"))
    documents = {name: f"{name}\n\n{synopsis}" for name, synopsis in data["documents"].items()}
    grades = {tag: dict.fromkeys(names, 1.0) for tag, names in data["relevant"].items()}
    return Collection("debian-tags", documents, data["questions"], grades)


def cranfield() -> Collection | None:
    """1,400 abstracts on aerodynamics with 225 questions; None where it is not at hand."""
    if not CRANFIELD.is_dir():
        return None
    documents = {}
    for part in re.split(r"^\.I ", (CRANFIELD / "cran.all.1400").read_text("utf-8"), flags=re.MULTILINE)[1:]:
        number, _, rest = part.partition("\n")
        pieces = re.split(r"^\.([TABW])\n", rest, flags=re.MULTILINE)
        fields = {pieces[at]: pieces[at + 1].strip() for at in range(1, len(pieces) - 1, 2)}
        documents[number.strip()] = fields.get("W") or fields.get("T", "")
    asked = re.split(r"^\.I ", (CRANFIELD / "cran.qry").read_text("utf-8"), flags=re.MULTILINE)[1:]
    questions = {str(at): part.split(".W\n")[1].strip() for at, part in enumerate(asked, start=1)}
    grades: dict[str, dict[str, float]] = {}
    for line in (CRANFIELD / "cranqrel").read_text("utf-8").splitlines():
        question, document, code = line.split()[:3]  # questions are numbered by their order; 1 is the best code
        grades.setdefault(question, {})[document] = max(0.0, 5.0 - int(code))
    return Collection("cranfield", documents, questions, grades)


def collections() -> list[Collection]:
    """Those that are there."""
    return [one for one in (debian(), cranfield()) if one is not None]


def write_run(folder: Path, collection: Collection, system: str, run: Mapping[str, Sequence[str]]) -> None:
    """A run and its judgements as TREC has them, for `smr evaluate`: `COLLECTION-SYSTEM.run`, `COLLECTION.qrels`."""
    name = re.sub(r"[^\w.]+", "-", system).strip("-")
    lines = [
        f"{question} Q0 {key} {rank} {1 / rank} {name}"
        for question, ids in run.items()
        for rank, key in enumerate(ids, start=1)
    ]
    judged = [
        f"{question} 0 {key} {grade:g}" for question, of in collection.grades.items() for key, grade in of.items()
    ]
    for file, told in ((f"{collection.name}-{name}.run", lines), (f"{collection.name}.qrels", judged)):
        (folder / file).write_text("\n".join(told) + "\n", encoding="utf-8")
