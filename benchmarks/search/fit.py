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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from benchmarks.search.__main__ import EMBED, WORDS, Indexed
from benchmarks.search.collections import UNTUNED, collections, disjoint
from benchmarks.search.measures import auroc, keeping

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
from smart_model_router_scoring.retrieval import RetrievalConfig, SearchIndex

if TYPE_CHECKING:
    from numpy.typing import NDArray

RIDGE = 0.02
ANSWERABLE = 0.57
"""The share of questions that are asked of an index which can answer them. It moves the score, not the order."""
STEPS = 20_000
DIGITS = 3
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


@dataclass(frozen=True, kw_only=True)
class Recorder(Logistic):
    """A function that remembers the features it was given."""

    seen: list[Features] = field(default_factory=list)

    def score(self, features: Features, null: Null) -> float:
        """See `Logistic`."""
        self.seen.append(features)
        return super().score(features, null)


async def sample(found: Indexed, away: Sequence[str], kind: str) -> Sample:
    """Ask an index everything, as a user does."""
    asked, passages = (Recorder(weights=dict.fromkeys(FEATURES[kind], 1.0), bias=0.0) for _ in range(2))
    orchestrator = found.asking(kind, model=EvidenceModel(answers=asked, relevance=passages))
    mine = found.collection

    async def ask(text: str, grades: Mapping[str, float]) -> Row:
        asked.seen.clear()
        passages.seen.clear()
        results = await orchestrator.query(text, top_n=BEST)
        relevant = (grades.get(found.document(chunk_id), 0.0) > 0 for chunk_id, _ in results)
        return Row(asked.seen[0], list(zip(passages.seen, relevant, strict=True)))

    by_people = mine.questions if mine.name == UNTUNED else mine.by_hand
    own = {one: await ask(mine.questions[one], mine.grades.get(one, {})) for one in by_people}
    facts = SearchIndex(found.db(kind)).facts()
    null = facts.null_with_cosines if kind == EMBED else facts.null
    assert null is not None
    return Sample(mine.name, own, [await ask(text, {}) for text in away], null)


def logistic(names: Sequence[str], kinds: Sequence[tuple[Null, Sequence[Features], bool]]) -> Logistic:
    """The function of least loss over kinds of rows (their null, their features, their label), each kind counting 1."""
    rows, labels, weights = [], [], []
    for null, found, label in kinds:
        rows += [[*(null.above(name, one[name]) for name in names), 1.0] for one in found]
        labels += [1.0 if label else -1.0] * len(found)
        weights += [1 / len(found)] * len(found)
    x, y, w = (np.array(of, dtype=np.float64) for of in (rows, labels, weights))
    w /= w.sum()
    penalty = np.append(np.full(len(names), 2 * RIDGE), 0.0)
    step = 1 / (0.25 * float(np.linalg.eigvalsh((x * w[:, None]).T @ x)[-1]) + 2 * RIDGE)
    at = momentum = np.zeros(len(names) + 1)
    for turn in range(STEPS):  # Nesterov's method, projected
        slope: NDArray[np.float64] = -(x.T @ (w * y / (1 + np.exp(y * (x @ momentum))))) + penalty * momentum
        new = momentum - step * slope
        new[:-1] = np.maximum(new[:-1], 0.0)
        momentum = new + turn / (turn + 3) * (new - at)
        at = new
    found_weights = {name: round(float(value), DIGITS) for name, value in zip(names, at, strict=False)}
    return Logistic(weights=found_weights, bias=round(float(at[-1]), DIGITS))


def model(samples: Sequence[Sample], kind: str) -> EvidenceModel:
    """Both functions, fitted on these collections."""
    answers = logistic(
        (*FEATURES[kind], *QUESTION),
        [(one.null, [row.question for row in rows], own)
         for one in samples for rows, own in ((list(one.own.values()), True), (one.away, False))],
    )  # fmt: skip
    prior = round(math.log(ANSWERABLE / (1 - ANSWERABLE)), DIGITS)
    relevance = logistic(
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
    """Print how weights of the others do on a collection; (kept, accepted) at the shipped threshold."""
    curve = model(others, kind).answers
    own, away = held.scores(curve, held.own.values()), held.scores(curve, held.away)
    threshold, at_95 = math.log(SHIPPED / (1 - SHIPPED)), keeping(own)
    kept, accepted = (sum(value >= threshold for value in of) / len(of) for of in (own, away))
    mine = sum(value >= at_95 for value in away) / len(away)
    best = max(curve.weights, key=lambda name: sum(one.auroc(name) for one in others))
    print(
        f"| {held.name} ({len(own)}, {len(away)}) | {kept:.3f} | {accepted:.3f} | {mine:.3f} | {auroc(own, away):.3f}"
        f" | {best} {held.auroc(best):.3f} | {', '.join(held.null.dropped)} |"
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
    return [await sample(await Indexed.of(one, folder, (EMBED,)), disjoint(one, every), kind) for one in every]


def report(samples: Sequence[Sample], kind: str) -> float:
    """Print what is fitted and how it does; the share of questions that the shipped weights decide otherwise."""
    fitted = model([one for one in samples if one.name != UNTUNED], kind)
    print(f"evidence: {kind}")
    print_model(fitted)
    columns = ("kept", "accepted", "accepted where 95 % are kept", "AUROC", "best feature of the others", "dropped")
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
