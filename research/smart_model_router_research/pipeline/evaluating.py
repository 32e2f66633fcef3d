"""Research measured on questions with known answers: how many are answered, rightly, and with which citations."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from time import process_time
from typing import Any, cast

from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.deep.artefact_files import run_of
from smart_model_router_research.deep.checking import SupportStatus
from smart_model_router_research.deep.claims import ClaimKind, ClaimStatus
from smart_model_router_research.deep.examining import ClaimExaminer
from smart_model_router_research.deep.research_run import ResearchRun
from smart_model_router_research.deep.verifying import read_folder
from smart_model_router_research.pipeline.deep_research import DeepResearch, ResearchResult
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_scoring.evaluate import Interval, bootstrap

SETS = {"factbook": "factbook.json", "versions": "versions.json"}
"""The sets of questions that come with the package."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownQuestion:
    """A question whose answer is known.

    One of `answers` has to be in the first answer, before `old` where that is there, too. `values` have to be claimed,
    all of them: sources differ. Without answers and values the sources do not answer it. `kind` groups questions.
    """

    question: str
    kind: str = "question"
    answers: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    old: str = ""

    @property
    def is_answerable(self) -> bool:
        """True where the sources have the answer."""
        return bool(self.answers or self.values)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedAnswer:
    """The judgement of one run. `seconds` is CPU; the counts are of its report."""

    question: KnownQuestion
    is_answered: bool
    is_right: bool
    statements: int = 0
    """Pairs of a statement of the report and a source that it cites."""
    supported: int = 0
    """Those that the stored page supports."""
    fabricated: int = 0
    """Citations of what was never retrieved."""
    sources: int = 0
    completeness: float = 1.0
    contradictions: int = 0
    searches: float = 0.0
    documents: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ResearchEvaluation:
    """The figures of a set of questions, each a mean with its 95 % bootstrap interval, and the answers judged."""

    answers: tuple[JudgedAnswer, ...]
    figures: Mapping[str, Interval] = field(default_factory=dict)


def known_questions(name: str) -> list[KnownQuestion]:
    """Return the questions of a set that comes with the package, or of a JSON file.

    A file is a list of objects with `question` and `kind`, `answers`, `all`, `old` as far as there are some. Raises
    ConfigurationError.
    """
    if name in SETS:
        content = files("smart_model_router_research.pipeline").joinpath("questions", SETS[name]).read_text("utf-8")
    else:
        try:
            content = Path(name).read_text(encoding="utf-8")
        except (OSError, ValueError) as error:
            expected = f"one of {', '.join(SETS)}, or a readable JSON file, is needed"
            raise ConfigurationError("--set", name, f"{expected} ({error})") from None
    try:
        rows: object = json.loads(content)
    except ValueError as error:
        raise ConfigurationError("--set", name, f"JSON is needed ({error})") from None
    if not isinstance(rows, list) or not rows:
        raise ConfigurationError("--set", name, "a list of questions is needed")
    return [_question(name, at, row) for at, row in enumerate(cast("list[object]", rows))]


def _question(name: str, at: int, row: object) -> KnownQuestion:
    found: dict[str, Any] = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    lists = {key: found.get(key, []) for key in ("answers", "all")}
    if not isinstance(found.get("question"), str) or not all(isinstance(each, list) for each in lists.values()):
        expected = 'an object such as {"question": "...", "answers": ["..."]} is needed'
        raise ConfigurationError(f"--set {name}[{at}]", row, expected)
    return KnownQuestion(
        question=found["question"],
        kind=str(found.get("kind", "question")),
        answers=tuple(map(str, lists["answers"])),
        values=tuple(map(str, lists["all"])),
        old=str(found.get("old", "")),
    )


async def evaluate_research(
    questions: Sequence[KnownQuestion],
    runs: DeepResearch,
    inputs: Callable[[str], RunInputs],
    tell: Callable[[JudgedAnswer], object] = lambda _: None,
) -> ResearchEvaluation:
    """Run each question on its own, judge it, and return the figures. `inputs` makes those of a run from its topic."""
    judged: list[JudgedAnswer] = []
    for number, question in enumerate(questions, start=1):
        begun = process_time()
        result = await runs.run(inputs(question.question), f"eval-{number}")
        answer = judge(question, result, process_time() - begun)
        tell(answer)
        judged.append(answer)
    return ResearchEvaluation(tuple(judged), dict(_figures(judged)))


def judge(question: KnownQuestion, result: ResearchResult, seconds: float = 0.0) -> JudgedAnswer:
    """Return the judgement of a run: its answer by the known one, its citations by what it stored."""
    if result.artefacts is None:
        return JudgedAnswer(question=question, is_answered=False, is_right=False, seconds=seconds)
    run = run_of(read_folder(result.artefacts))
    pairs = list(_pairs(run))
    return JudgedAnswer(
        question=question,
        is_answered=bool(result.answers) or bool(run.graph.unresolved),
        is_right=_is_right(question, result, run),
        statements=len(pairs),
        supported=sum(supports for _, supports in pairs),
        fabricated=sum(not is_stored for is_stored, _ in pairs),
        sources=len({evidence.doc_id for claim in run.graph.claims for evidence in claim.evidence}),
        completeness=min(run.completeness.critical, run.completeness.rest),
        contradictions=len(run.graph.unresolved),
        searches=result.usage.get("searches", 0.0),
        documents=result.usage.get("documents", 0.0),
        seconds=seconds,
    )


def _is_right(question: KnownQuestion, result: ResearchResult, run: ResearchRun) -> bool:
    if question.values:
        said = [claim.value for claim in run.graph.claims]
        return bool(run.contradictions) and all(any(value in each for each in said) for value in question.values)
    if not question.answers:
        return not result.answers and not run.graph.unresolved
    first = result.answers[0].casefold() if result.answers else ""
    current, _, _ = first.partition(question.old.casefold()) if question.old else (first, "", "")
    return any(_stands_in(answer.casefold(), current) for answer in question.answers)


def _stands_in(answer: str, text: str) -> bool:
    """Return whether an answer stands in a text as whole words and numbers: 3.1 is not in 3.10."""
    return re.search(rf"(?<![\w.,]){re.escape(answer)}(?!\w|[.,]\d)", text) is not None


def _pairs(run: ResearchRun) -> Iterator[tuple[bool, bool]]:
    """Yield for each citation of the report whether its source is stored, and whether that supports the statement."""
    examiner = ClaimExaminer(run.documents.values())
    for sentence in run.report.sentences:
        for claim in (run.claims[each] for each in sentence.claims if each in run.claims):
            if claim.kind is ClaimKind.INFERENCE:  # its premises are claims of the graph, and cited by themselves
                yield True, claim.status is ClaimStatus.SUPPORTED
                continue
            for evidence in claim.evidence:
                found = examiner.support(claim.text, evidence).status is SupportStatus.SUPPORTED
                yield evidence.doc_id in run.documents, found


def _figures(judged: Sequence[JudgedAnswer]) -> Iterator[tuple[str, Interval]]:
    """Yield each figure; one that has nothing to be taken from is left out."""
    answerable = [each for each in judged if each.question.is_answerable]
    answered = [each for each in answerable if each.is_answered]
    unanswerable = [each for each in judged if not each.question.is_answerable]
    abstained = [each for each in judged if not each.is_answered]
    disputed = [each for each in judged if each.question.values]
    cited = [each for each in judged if each.statements]
    rows = {
        "answered": [float(each.is_answered) for each in answerable],
        "right of answered": [float(each.is_right) for each in answered],
        "right of all": [float(each.is_right) for each in judged],
        "abstention recall": [float(not each.is_answered) for each in unanswerable],
        "abstention precision": [float(not each.question.is_answerable) for each in abstained],
        "contradictions found": [float(each.contradictions > 0 or each.is_right) for each in disputed],
        "false contradictions": [float(each.contradictions > 0) for each in judged if not each.question.values],
        "citation accuracy": [each.supported / each.statements for each in cited],
        "fabricated citations": [each.fabricated / each.statements for each in cited],
        "effective citations": [float(each.supported) for each in judged],
        "citation completeness": [each.completeness for each in cited],
        "sources": [float(each.sources) for each in answered],
        "searches": [each.searches for each in judged],
        "documents read": [each.documents for each in judged],
        "CPU seconds": [each.seconds for each in judged],
    }
    for name, values in rows.items():
        if values:
            yield name, bootstrap(values)
