"""A report as data: sentences with the ids of their claims. Addresses, titles and dates are added by code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from smart_model_router_research.deep.claims import ClaimGraph, ClaimKind, ClaimStatus, ResearchClaim, SubQuestion
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.metrics import covers


class ReportPart(StrEnum):
    """The parts of a report that have sentences; their headings are ours."""

    ANSWER = "answer"
    SUMMARY = "summary"
    FINDINGS = "findings"
    """The findings about one question."""
    BEST_PRACTICES = "best_practices"
    LIMITATIONS = "limitations"


class SentenceMark(StrEnum):
    """The marks of sentences that not all of their claims support."""

    UNVERIFIED = "unverified"
    DISPUTED = "disputed"
    SUPERSEDED = "superseded"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSentence:
    """A factual sentence (there is no other kind) and the ids of the claims that it rests on."""

    text: str
    claims: tuple[str, ...]
    mark: SentenceMark | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """Sentences under one heading; that of findings is the text of the question."""

    part: ReportPart
    question_id: str = ""
    sentences: tuple[ReportSentence, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchReport:
    """The sentences of a report. All else of its text is written by code from the run."""

    sections: tuple[ReportSection, ...] = ()

    @property
    def sentences(self) -> Iterator[ReportSentence]:
        """All sentences, in their order."""
        return (sentence for section in self.sections for sentence in section.sentences)


def report_of(graph: ClaimGraph) -> ResearchReport:
    """Return the report that needs no model: supported claims, word by word, the answer of each question first.

    The answer is the first claim that covers its question, else the first one that is supported; what an inference is
    computed from comes after it. Further claims of a question are findings, each text once in the whole report.
    Questions are in the order of their priority.
    """
    known = {claim.id: claim for claim in graph.claims}
    answers: list[ReportSentence] = []
    findings: list[ReportSection] = []
    later: list[tuple[SubQuestion, list[ResearchClaim]]] = []
    for question in in_order(graph.questions):
        claims = supported_for(question, graph)
        if not claims:
            continue
        premises = {premise for claim in claims for premise in claim.premises}
        claims.sort(key=lambda claim: (claim.id in premises, claim.kind is not ClaimKind.INFERENCE))
        first = next((claim for claim in claims if covers(claim, graph.documents, known)), claims[0])
        used = [known[each] for claim in claims for each in claim.premises if each in known]
        others = [claim for claim in claims if claim is not first]
        others += [claim for claim in used if claim.status is ClaimStatus.SUPPORTED and claim not in claims]
        answers.append(sentence_of(first))
        later.append((question, others))
    said = {_folded(each.text) for each in answers}
    for question, others in later:
        rest = {_folded(claim.text): sentence_of(claim) for claim in reversed(others)}
        new = tuple(rest[key] for key in dict.fromkeys(_folded(each.text) for each in others) if key not in said)
        said |= rest.keys()
        if new:
            findings.append(ReportSection(part=ReportPart.FINDINGS, question_id=question.id, sentences=new))
    answer = ReportSection(part=ReportPart.ANSWER, sentences=tuple(answers))
    return ResearchReport(sections=(answer, *findings) if answers else ())


def _folded(text: str) -> str:
    """Return a text without what makes no other sentence of it: case, typography, the full stop."""
    return fold(text).casefold().rstrip(". ")


def sentence_of(claim: ResearchClaim) -> ReportSentence:
    """Return the sentence that a claim is, word by word."""
    return ReportSentence(text=claim.text, claims=(claim.id,))


def supported_for(question: SubQuestion, graph: ClaimGraph) -> list[ResearchClaim]:
    """Return the supported claims about a question."""
    return [
        claim for claim in graph.claims if claim.question_id == question.id and claim.status is ClaimStatus.SUPPORTED
    ]


def in_order(questions: Iterable[SubQuestion]) -> list[SubQuestion]:
    """Return questions by priority, those of the same priority as they were asked."""
    return sorted(questions, key=lambda question: question.priority)
