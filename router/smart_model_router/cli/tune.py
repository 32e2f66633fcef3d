"""`smr evaluate --tune` and `--fit`: search tuned on the user's own questions, written where the router reads it."""

from __future__ import annotations

import asyncio
import math
import sys
import time
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from smart_model_router.cli.input_files import opening
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_table
from smart_model_router.cli.search_index import Indexed, embeddings, indexed
from smart_model_router.cli.tuning_files import Material, read_material
from smart_model_router.config import SearchConfig
from smart_model_router.config.editing import section, set_keys
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.flow import search_service
from smart_model_router.flow.search_service import EmbedCall
from smart_model_router_scoring.evaluate import Choice, auroc, choose, false_accept_rate, threshold_keeping
from smart_model_router_scoring.evidence import Features, Logistic, Null
from smart_model_router_scoring.fitting import LEAST, Refit, refit
from smart_model_router_scoring.fusion import TOP_N
from smart_model_router_scoring.retrieval import IndexNotReady, QueryResults, SearchIndex

if TYPE_CHECKING:
    from smart_model_router.cli.commands import Evaluate

LEAST_TUNED = 20
"""Judged questions for --tune: half of them choose, half of them confirm."""
LEAST_OWN = 20
"""Questions for a threshold: one of them may be lost."""
HOLDOUT = 0.5
KEPT = 0.95
SHOWN = 50
"""Passages of a question of which documents are judged."""
VECTOR_WEIGHTS = (0.05, 0.25, 1.0)
GRAPH_WEIGHTS = (0.0, 0.05, 0.25)
_DIGITS = 3
FUSIONS: tuple[Literal["rrf", "relative", "distribution"], ...] = ("rrf", "relative", "distribution")


def run(asked: Evaluate) -> int:
    """Tune, fit, print and write; the exit code. Raises ConfigurationError, also without an index."""
    questions = asked.questions
    if questions is None:
        raise ConfigurationError("--questions", None, "a file of your questions is needed, `id question` a line")
    if asked.tune and asked.judgements is None:
        raise ConfigurationError("--qrels", None, "a file of judgements is needed to tune, `question 0 document grade`")
    found = indexed(asked.db, asked.config if asked.config is not None else asked.write)
    if found.search.scale != "evidence":
        key = "search.score_calibration_scale"
        raise ConfigurationError(key, found.search.scale, "'evidence' is needed: a founding scale has no confidence")
    try:
        material = read_material(SearchIndex(found.file), questions, asked.judgements, asked.away)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a weight that is only tried needs no advice
            told = asyncio.run(_measure(found, material, tune=asked.tune, fit=asked.fit, seed=asked.seed))
    except IndexNotReady as error:
        wanted = f"{error.reason}; `smr index DIR` makes an index of a folder"
        raise ConfigurationError("the index", str(error.path), wanted) from None
    backup = None
    try:
        if asked.write is not None and told.search:
            with opening("--write", asked.write):
                backup = set_keys(asked.write, {"search": told.search})
    finally:  # a file that cannot be written loses no measurement
        _tell(asked, told, backup)
    return ExitCode.OK


def _tell(asked: Evaluate, told: TuningReport, backup: Path | None) -> None:
    """Print what was measured and what follows. `backup` is the file before it was written."""
    if asked.as_json:
        written = None if backup is None else {"file": str(asked.write), "before": str(backup)}
        print_json({**told.as_dict(), "search": told.search, "written": written})
        return
    told.show()
    if not told.search:
        print_answer("nothing is better than what is configured: nothing to write\n")
    elif backup is None:
        print_answer(f"--write FILE sets this in a configuration:\n{section({'search': told.search})}")
    else:
        print_answer(f"{asked.write} is changed; {backup} is what it was\n")


@dataclass(frozen=True, slots=True)
class Threshold:
    """A `min_confidence`, the shares of the user's questions and of others that it accepts, and the AUROC of both.

    The latter two are None without other questions.
    """

    min_confidence: float
    kept: float
    accepted: float | None
    auroc: float | None

    def is_as_good(self, other: Threshold) -> bool:
        """True when it is known to keep as many of the user's questions and to accept no more of the others."""
        if self.accepted is None or other.accepted is None:
            return False
        return self.kept >= other.kept and self.accepted <= other.accepted

    def row(self, name: str) -> tuple[str, ...]:
        """A row of the table."""
        others = ("" if value is None else f"{value:.3f}" for value in (self.accepted, self.auroc))
        return name, f"{self.min_confidence:g}", f"{self.kept:.3f}", *others


@dataclass(frozen=True, slots=True)
class Fitted:
    """The threshold as configured, that of the user's questions, and fitted functions where there are rows enough."""

    before: Threshold
    after: Threshold
    curves: Mapping[str, Refit]

    def search(self) -> dict[str, Any]:
        """The keys of `search` that follow."""
        taken = {name: _written(one.fitted) for name, one in self.curves.items() if one.better}
        stays = "answers" not in taken and self.before.is_as_good(self.after)
        threshold = {} if stays else {"min_confidence": self.after.min_confidence}
        return {**threshold, **({"evidence": taken} if taken else {})}

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        curves = {
            name: {
                "ece": list(one.ece),
                "brier": list(one.brier),
                "rows": [one.positive, one.negative],
                "better": one.better,
                **_written(one.fitted),
            }
            for name, one in self.curves.items()
        }
        return {"before": asdict(self.before), "after": asdict(self.after), "curves": curves}

    def show(self) -> None:
        """Print it as text."""
        rows = [self.before.row("as configured"), self.after.row("fitted")]
        print_table(("", "min_confidence", "own kept", "others accepted", "AUROC"), rows, sys.stdout)
        if self.after.accepted is None:
            print_answer("--away FILE, questions that these documents do not answer, shows how many of those pass\n")
        for name in ("answers", "relevance"):
            print_answer(f"{name}: {_told(self.curves.get(name))}\n")


def _told(curve: Refit | None) -> str:
    if curve is None:
        return f"unchanged (a fit needs {LEAST} rows of each kind: --away questions, judged passages)"
    errors = (
        f"ECE {curve.ece[0]:.3f}, fitted {curve.ece[1]:.3f}; Brier {curve.brier[0]:.3f}, fitted {curve.brier[1]:.3f}"
    )
    return errors if curve.better else f"{errors}: no better, unchanged"


@dataclass(frozen=True, slots=True)
class TuningReport:
    """The results, and the keys of `search` that follow from them."""

    tuned: Choice[SearchConfig] | None
    fitted: Fitted | None
    search: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        tuned = self.tuned and {
            "chosen": _changed(self.tuned.candidate),
            "training": {"before": self.tuned.default, "after": self.tuned.training},
            "holdout": asdict(self.tuned.holdout),
            "better": self.tuned.better,
        }
        return {"tune": tuned, "fit": self.fitted and self.fitted.as_dict()}

    def show(self) -> None:
        """Print both as text."""
        if (tuned := self.tuned) is not None:
            gap = tuned.holdout.difference
            print_answer(f"best of what was tried: {_flat(_changed(tuned.candidate))}\n")
            rows = [
                ("the questions that chose", f"{tuned.default:.3f}", f"{tuned.training:.3f}", ""),
                ("the others", "", "", f"{gap.mean:+.3f} [{gap.low:+.3f}, {gap.high:+.3f}], p {tuned.holdout.p:.3f}"),
            ]
            print_table(("nDCG@10", "as configured", "tuned", "gain"), rows, sys.stdout)
            print_answer(("better on the others" if tuned.better else "no better on the others: not taken") + "\n")
        if self.fitted is not None:
            self.fitted.show()


async def _measure(found: Indexed, material: Material, *, tune: bool, fit: bool, seed: int) -> TuningReport:
    search: dict[str, Any] = {}
    tuned = fitted = None
    chosen = found.search
    async with AsyncExitStack() as stack:
        bench = _Bench(found.file, await embeddings(found, stack))
        if tune:
            tuned = await _tune(bench, chosen, material, seed)
            if tuned.better:
                chosen = tuned.candidate
                search |= _changed(chosen)
        if fit:
            fitted = await _fit(bench, chosen, material)
            search |= fitted.search()
    return TuningReport(tuned, fitted, search)


@dataclass(frozen=True, slots=True)
class _Bench:
    """Asks the index under any settings."""

    file: Path
    embed: EmbedCall | None

    async def ask(self, search: SearchConfig, questions: Iterable[str], top_n: int = TOP_N) -> list[QueryResults]:
        """The results of each question, whatever the confidence."""
        patient = replace(search.timeouts, **dict.fromkeys(("vector", "keyword", "graph"), 60.0))
        everything = replace(search, min_confidence=0.0, timeouts=patient)
        asked = search_service.orchestrator(everything, self.file, now=time.time, embed=self.embed)
        return [await asked.query(text, top_n=top_n) for text in questions]

    async def rank(self, search: SearchConfig, questions: Mapping[str, str]) -> dict[str, list[str]]:
        """The documents of each question, each at the place of its best passage."""
        results = await self.ask(search, questions.values(), SHOWN)
        ranked = ([passage.path for passage in one.passages] for one in results)
        return {name: list(dict.fromkeys(paths)) for name, paths in zip(questions, ranked, strict=True)}


async def _tune(bench: _Bench, search: SearchConfig, material: Material, seed: int) -> Choice[SearchConfig]:
    """Choose fusion and weights on one half of the judged questions, compare on the other."""
    judged = {name for name, of in material.grades.items() if any(grade > 0 for grade in of.values())}
    questions = {name: text for name, text in material.questions.items() if name in judged}
    if len(questions) < LEAST_TUNED:
        wanted = f"at least {LEAST_TUNED} questions with a relevant document are needed to tune"
        raise ConfigurationError("--qrels", f"{len(questions)} judged questions", wanted)
    first, *_ = await bench.ask(search, list(questions.values())[:1])
    has_vectors = search_service.embedder(search, bench.embed) is not None and "vector" not in first.degraded
    runs = [(one, await bench.rank(one, questions)) for one in _candidates(search, has_vectors, first.facts.links > 0)]
    default = await bench.rank(search, questions)
    grades = {name: material.grades[name] for name in questions}
    return choose([(search, default), *runs], default, grades, holdout=HOLDOUT, seed=seed)


def _candidates(search: SearchConfig, has_vectors: bool, has_links: bool) -> Iterator[SearchConfig]:
    """Fusion and weights of the strategies that the index has; the weight of keywords is the measure of the others."""
    vectors = (
        [share * (search.weights.keyword or 1.0) for share in VECTOR_WEIGHTS]
        if has_vectors
        else [search.weights.vector]
    )
    graphs = GRAPH_WEIGHTS if has_links else (search.weights.graph,)
    for fusion, vector, graph in product(FUSIONS, vectors, graphs):
        yield replace(search, fusion=fusion, weights=replace(search.weights, vector=vector, graph=graph))


def _changed(search: SearchConfig) -> dict[str, Any]:
    """The keys that tuning sets."""
    weights = {name: weight for name in ("vector", "graph") if (weight := getattr(search.weights, name)) is not None}
    return {"fusion": search.fusion, "weights": weights}


async def _fit(bench: _Bench, search: SearchConfig, material: Material) -> Fitted:
    """A threshold for these questions and, where there are enough, functions of evidence."""
    if len(material.questions) < LEAST_OWN:
        wanted = f"at least {LEAST_OWN} questions are needed to fit"
        raise ConfigurationError("--questions", f"{len(material.questions)} questions", wanted)
    results = await bench.ask(search, material.questions.values())
    asked = [*results, *await bench.ask(search, material.away)]
    first = asked[0].evidence
    known = [one.evidence for one in asked if one.evidence is not None and first is not None]
    if first is None or len(known) < len(asked) or any(one.null != first.null for one in known):
        wanted = "the same strategies are needed for every question, keyword search among them: else nothing compares"
        raise ConfigurationError("search", next((dict(one.degraded) for one in asked if one.degraded), {}), wanted)
    rows = [(one.question, at < len(results)) for at, one in enumerate(known)]
    tried = {
        "answers": refit(first.model.answers, first.null, rows),
        "relevance": refit(first.model.relevance, first.null, list(_passages(material, results))),
    }
    curves = {name: one for name, one in tried.items() if one is not None}
    answers = curves["answers"].fitted if "answers" in curves and curves["answers"].better else first.model.answers
    before, after = (_Confidences.of(curve, first.null, rows) for curve in (first.model.answers, answers))
    threshold = math.floor(threshold_keeping(after.own, KEPT, after.away) * 10**_DIGITS) / 10**_DIGITS
    return Fitted(before.accepting(search.min_confidence), after.accepting(threshold), curves)


@dataclass(frozen=True, slots=True)
class _Confidences:
    """Those of the user's questions and of others."""

    own: list[float]
    away: list[float]

    @classmethod
    def of(cls, curve: Logistic, null: Null, rows: Sequence[tuple[Features, bool]]) -> Self:
        """By this function."""
        own, away = ([curve.score(of, null) for of, mine in rows if mine == kind] for kind in (True, False))
        return cls(own, away)

    def accepting(self, threshold: float) -> Threshold:
        """The shares at or above a threshold."""
        kept, accepted = (false_accept_rate(of, threshold) for of in (self.own, self.away))
        return Threshold(threshold, kept, *((accepted, auroc(self.own, self.away)) if self.away else (None, None)))


def _passages(material: Material, own: Sequence[QueryResults]) -> Iterator[tuple[Features, bool]]:
    """The features of each passage that was found for a judged question, and the relevance of its document."""
    for name, results in zip(material.questions, own, strict=True):
        if results.evidence is not None and name in material.grades:
            for passage in results.passages:
                relevant = material.grades[name].get(passage.path, 0.0) > 0
                yield results.evidence.passages[passage.chunk_id], relevant


def _written(curve: Logistic) -> dict[str, Any]:
    return {"bias": curve.bias, "weights": dict(curve.weights)}


def _flat(values: Mapping[str, Any], above: str = "search") -> str:
    """`search.fusion: rrf, search.weights.vector: 0.25`."""
    parts = (
        _flat(value, f"{above}.{key}") if isinstance(value, Mapping) else f"{above}.{key}: {value}"
        for key, value in values.items()
    )
    return ", ".join(part for part in parts if part)
