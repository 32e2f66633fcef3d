"""`python -m benchmarks.search.fit`: the weights of evidence, fitted on four collections, and what they do to a fifth.

A logistic function with weights of 0 or more, by projected gradients, each collection and each kind of question
counting alike. Questions by hand and of the World Factbook's script count; titles of sections are no questions that
people ask. The Factbook is held out of what is printed as the defaults; each collection is judged with weights of the
other ones. `--check` asks both the defaults as fitted now and those shipped whether each question is answered; the exit
code is 1 when they differ on more than 2 %. (Documents and Python's topics change, and a weight moves with them.)
"""

from __future__ import annotations

import argparse
import asyncio
import math
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.search.__main__ import EMBED, WORDS, IndexedCollection
from benchmarks.search.collections import UNTUNED, collections, disjoint

from smart_model_router_scoring.evaluate import auroc, threshold_keeping
from smart_model_router_scoring.evidence import (
    ATTAINMENT,
    BEST,
    COSINES,
    QUESTION,
    WITH_COSINES,
    EvidenceModel,
    Features,
    Logistic,
    Null,
)
from smart_model_router_scoring.evidence import WORDS as BY_WORDS
from smart_model_router_scoring.fitting import DIGITS, fit_logistic
from smart_model_router_scoring.retrieval import RetrievalConfig

ANSWERABLE = 0.57
"""The share of questions that are asked of an index which can answer them. It moves the score, not the order."""
SHIPPED = RetrievalConfig().fusion.min_confidence
MOST_DIFFERENT = 0.02
FEATURES: Mapping[str, Sequence[str]] = {WORDS: BY_WORDS, EMBED: (*BY_WORDS, *COSINES)}
"""Of a passage, by the kind of search."""
DEFAULTS: Mapping[str, EvidenceModel] = {WORDS: EvidenceModel(), EMBED: WITH_COSINES}


@dataclass(frozen=True, slots=True)
class Row:
    """The features of a question, and those of its best passages with their judgement."""

    question: Features
    passages: Sequence[tuple[Features, bool]]


@dataclass(frozen=True, slots=True)
class Sample:
    """One collection: its own questions (by id), those that it cannot answer, and its null."""

    name: str
    own: dict[str, Row]
    away: list[Row]
    null: Null

    def scores(self, curve: Logistic, rows: Iterable[Row]) -> list[float]:
        """The log-odds of each row."""
        return [curve.logit(row.question, self.null) for row in rows]

    def auroc(self, name: str) -> float:
        """That of one feature by itself."""
        return auroc([row.question[name] for row in self.own.values()], [row.question[name] for row in self.away])


async def sample(found: IndexedCollection, away: Sequence[str], kind: str) -> Sample:
    """Ask an index everything, as a user does."""
    orchestrator, mine = found.asking(kind), found.collection
    nulls: list[Null] = []

    async def ask(text: str, grades: Mapping[str, float]) -> Row:
        results = await orchestrator.query(text, top_n=BEST)
        assert results.evidence is not None, results.degraded
        nulls.append(results.evidence.null)
        judged = results.evidence.passages.items()
        passages = [(features, grades.get(found.document(chunk_id), 0.0) > 0) for chunk_id, features in judged]
        return Row(results.evidence.question, passages)

    by_people = mine.questions if mine.name == UNTUNED else mine.by_hand
    own = {one: await ask(mine.questions[one], mine.grades.get(one, {})) for one in by_people}
    others = [await ask(text, {}) for text in away]
    return Sample(mine.name, own, others, nulls[0])


def model(samples: Sequence[Sample], kind: str) -> EvidenceModel:
    """Both functions, fitted on these collections."""
    answers = fit_logistic(
        (*FEATURES[kind], *QUESTION),
        [(one.null, [row.question for row in rows], own)
         for one in samples for rows, own in ((list(one.own.values()), True), (one.away, False))],
    )  # fmt: skip
    prior = round(math.log(ANSWERABLE / (1 - ANSWERABLE)), DIGITS)
    relevance = fit_logistic(
        (*FEATURES[kind], ATTAINMENT),
        [(one.null, [features for row in one.own.values() for features, good in row.passages if good == label], label)
         for one in samples for label in (True, False)],
    )  # fmt: skip
    return EvidenceModel(
        answers=Logistic(weights=answers.weights, bias=round(answers.bias + prior, DIGITS)), relevance=relevance
    )


def print_model(found: EvidenceModel) -> None:
    """As it stands in `EvidenceModel`."""
    for name, one in (("answers", found.answers), ("relevance", found.relevance)):
        print(f"{name}: weights {dict(one.weights)}, bias {one.bias}")


def judge(held: Sample, others: Sequence[Sample], kind: str) -> tuple[float, float]:
    """Print how weights of the others do on a collection; (kept, accepted) at the shipped threshold.

    Beside what a threshold of its own accepts stands that of weights fitted on itself: no weights would do much better.
    """
    curve = model(others, kind).answers
    own, away = held.scores(curve, held.own.values()), held.scores(curve, held.away)
    threshold, at_95 = math.log(SHIPPED / (1 - SHIPPED)), threshold_keeping(own)
    kept, accepted = (sum(value >= threshold for value in of) / len(of) for of in (own, away))
    mine = sum(value >= at_95 for value in away) / len(away)
    itself = model([held], kind).answers
    at_best = threshold_keeping(held.scores(itself, held.own.values()))
    least = sum(value >= at_best for value in held.scores(itself, held.away)) / len(away)
    best = max(curve.weights, key=lambda name: sum(one.auroc(name) for one in others))
    print(
        f"| {held.name} ({len(own)}, {len(away)}) | {kept:.3f} | {accepted:.3f} | {mine:.3f} ({least:.3f})"
        f" | {auroc(own, away):.3f} | {best} {held.auroc(best):.3f} | {', '.join(held.null.dropped)} |"
    )
    return kept, accepted


def differing(samples: Sequence[Sample], fitted: Logistic, shipped: Logistic) -> float:
    """The share of all questions that one function accepts and the other does not."""
    threshold = math.log(SHIPPED / (1 - SHIPPED))
    decided = [
        [value >= threshold for one in samples for value in one.scores(curve, [*one.own.values(), *one.away])]
        for curve in (fitted, shipped)
    ]
    changed = [one != other for one, other in zip(*decided, strict=True)]
    return changed.count(True) / len(changed)


async def samples_of(folder: Path, kind: str) -> list[Sample]:
    """Each collection that is there."""
    every = collections()
    return [
        await sample(await IndexedCollection.of(one, folder, (EMBED,)), disjoint(one, every), kind) for one in every
    ]


def report(samples: Sequence[Sample], kind: str) -> float:
    """Print what is fitted and how it does; the share of questions that the shipped weights decide otherwise."""
    fitted = model([one for one in samples if one.name != UNTUNED], kind)
    print(f"evidence: {kind}")
    print_model(fitted)
    columns = (
        "kept",
        "accepted",
        "accepted where 95 % are kept (fitted on itself)",
        "AUROC",
        "best feature of the others",
        "dropped",
    )
    print(f"| held out (own, away) | {' | '.join(columns)} |\n|{'---|' * 7}")
    rows = [
        judge(one, [other for other in samples if other is not one and other.name != UNTUNED], kind) for one in samples
    ]
    kept, accepted = (sum(row[at] for row in rows) / len(rows) for at in (0, 1))
    print(f"mean: {kept:.3f} kept, {accepted:.3f} accepted")
    different = differing(samples, fitted.answers, DEFAULTS[kind].answers)
    print(f"decided otherwise by the shipped weights: {different:.1%}", flush=True)
    return different


def main() -> int:
    """Fit, print, judge; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.fit")
    parser.add_argument("--indexes", type=Path)
    parser.add_argument("--check", action="store_true")
    told = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = told.indexes or Path(name)
        different = [report(asyncio.run(samples_of(folder, kind)), kind) for kind in FEATURES]
    return int(told.check and max(different) > MOST_DIFFERENT)


if __name__ == "__main__":
    sys.exit(main())
