"""The page of a report as blocks, the same for Markdown and HTML: what stands where, before anything is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from smart_model_router_research.deep.claims import ClaimKind, ClaimStatus, Relation, ResearchClaim
from smart_model_router_research.deep.lookups import HEADINGS, Openness
from smart_model_router_research.deep.metrics import is_single_source
from smart_model_router_research.deep.page_notes import (
    confidence_line,
    confidence_lines,
    method_lines,
    nothing_found,
    open_questions,
    warning_of,
    weakness_lines,
)
from smart_model_router_research.deep.report import ReportPart, ReportSentence, SentenceMark
from smart_model_router_research.deep.research_run import ResearchRun
from smart_model_router_research.deep.rounds import Delivery
from smart_model_router_research.deep.sources import StoredDocument


@dataclass(frozen=True, slots=True)
class PlainText:
    """A text as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Mark:
    """A word about a sentence in brackets. A `strong` one warns."""

    text: str
    strong: bool = False


@dataclass(frozen=True, slots=True)
class SourceLink:
    """The title of a source, which leads to its address where that is one of the web; else the address is a text."""

    title: str
    url: str


@dataclass(frozen=True, slots=True)
class CitedSource:
    """A citation: the number of a document and the quotes in it."""

    number: int
    title: str
    quotes: tuple[str, ...]


Inline = PlainText | Mark | SourceLink | CitedSource
Line = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class PageHeading:
    """A heading; level 1 is the title of the page."""

    level: int
    text: str


@dataclass(frozen=True, slots=True)
class PageLines:
    """Lines: of a list, or each a paragraph of its own. A `warning` stands out."""

    lines: tuple[Line, ...]
    is_list: bool = True
    is_warning: bool = False


@dataclass(frozen=True, slots=True)
class PageTable:
    """A table; the cells of its head are ours."""

    head: tuple[str, ...]
    rows: tuple[tuple[Line, ...], ...]


PageBlock = PageHeading | PageLines | PageTable
_HEADINGS = {
    ReportPart.ANSWER: "Answer",
    ReportPart.SUMMARY: "Summary",
    ReportPart.BEST_PRACTICES: "Best practices",
    ReportPart.LIMITATIONS: "Limitations",
}
ALONE = "chosen by one model alone"
"""The mark of a sentence of which neither code nor another provider's model finds that it answers the question."""
_RELATIONS = {
    Relation.RECONCILED: "reconciled: both hold",
    Relation.SUPERSEDED: "superseded: the newer one counts",
    Relation.RESOLVED: "resolved: the better source counts",
    Relation.UNRESOLVED: "unresolved",
}


def page_of_run(run: ResearchRun) -> list[PageBlock]:
    """Return the blocks of the page of a run."""
    return list(_blocks(run))


def _blocks(run: ResearchRun) -> Iterator[PageBlock]:
    yield PageHeading(1, run.facts.topic or "Untitled")
    if warning := warning_of(run):
        yield PageLines(_lines(warning), is_list=False, is_warning=True)
    if run.is_shown:
        yield from _sections(run)
    yield from _contradictions(run)
    yield from _leads(run)
    yield from _open_questions(run)
    yield from _sources(run)
    yield PageHeading(2, "Confidence and method")
    yield PageLines(_lines([*confidence_lines(run), *weakness_lines(run), *method_lines(run)]))


def _sections(run: ResearchRun) -> Iterator[PageBlock]:
    questions = {question.id: question.text for question in run.graph.questions}
    if not run.report.sections:
        yield PageHeading(2, _HEADINGS[ReportPart.ANSWER])
        yield PageLines(_lines([nothing_found(run)]), is_list=False)
    in_findings = False
    faults = {(offender.section, offender.sentence) for offender in run.completeness.offenders}
    for number, section in enumerate(run.report.sections):
        if section.part is ReportPart.FINDINGS:
            if not in_findings:
                yield PageHeading(2, "Findings")
            in_findings = True
            yield PageHeading(3, questions.get(section.question_id) or "Further findings")
        else:
            in_findings = False
            yield PageHeading(2, _HEADINGS[section.part])
        yield PageLines(
            tuple(
                _sentence(sentence, run, is_faulty=(number, at) in faults)
                for at, sentence in enumerate(section.sentences)
            )
        )
        if section.part is ReportPart.ANSWER:
            yield PageLines(_lines([confidence_line(run)]), is_list=False)


def _sentence(sentence: ReportSentence, run: ResearchRun, *, is_faulty: bool) -> Line:
    claims = [run.graph_claims[each] for each in sentence.claims if each in run.graph_claims]
    mark = sentence.mark or (SentenceMark.UNVERIFIED if is_faulty else None)
    marks = [Mark(mark, strong=True)] if mark else []
    return (PlainText(sentence.text), *_citations(claims, run), *marks, *_marks(claims, run))


def _marks(claims: Sequence[ResearchClaim], run: ResearchRun) -> Iterator[Mark]:
    if any(claim.kind is ClaimKind.INFERENCE for claim in claims):
        yield Mark("computed")
    quoted = [claim.kind is not ClaimKind.INFERENCE and _is_quoted(claim) for claim in claims]
    if any(quoted):
        yield Mark("quoted")
    if any(claim.chosen_by for claim in claims):
        yield Mark("chosen by a model") if all(claim.is_counted for claim in claims) else Mark(ALONE, strong=True)
    known = {claim.id: claim for claim in run.graph.claims}
    if any(is_single_source(claim, run.graph.documents, known) for claim in claims):
        yield Mark("single source")


def _is_quoted(claim: ResearchClaim) -> bool:
    return any(evidence.method == "quoted" for evidence in claim.evidence)


def _citations(claims: Iterable[ResearchClaim], run: ResearchRun) -> list[CitedSource]:
    quotes: dict[str, list[str]] = {}
    for claim in claims:
        for evidence in claim.evidence:
            if evidence.doc_id in run.numbers:
                quotes.setdefault(evidence.doc_id, []).append(evidence.quote)
    return [
        CitedSource(run.numbers[each], _title(run.documents[each]), tuple(dict.fromkeys(found)))
        for each, found in sorted(quotes.items(), key=lambda pair: run.numbers[pair[0]])
    ]


def _contradictions(run: ResearchRun) -> Iterator[PageBlock]:
    if not run.contradictions:
        return
    yield PageHeading(2, "Contradictions")
    rows = [
        (
            _claim_line(each.one, run),
            _claim_line(each.other, run),
            (PlainText(_RELATIONS.get(each.relation, each.relation)),),
            (PlainText(each.note),),
        )
        for each in run.contradictions
    ]
    yield PageTable(("one source says", "another says", "result", "why"), tuple(rows))


def _claim_line(claim_id: str, run: ResearchRun) -> Line:
    claim = run.claims.get(claim_id)
    return (PlainText(claim.text), *_citations([claim], run)) if claim else (PlainText(claim_id),)


def _open_questions(run: ResearchRun) -> Iterator[PageBlock]:
    """Yield the questions without a supported claim, under a heading for each way in which they are open."""
    for openness in Openness:
        if found := [each for each in open_questions(run) if each.openness is openness]:
            yield PageHeading(2, HEADINGS[openness])
            yield PageLines(
                tuple((PlainText(each.text), *([Mark(each.why, strong=True)] if each.why else [])) for each in found)
            )


def _leads(run: ResearchRun) -> Iterator[PageBlock]:
    """Yield what sources say in part, where there is too little else; each line is marked."""
    leads = [claim for claim in run.graph.claims if claim.status is ClaimStatus.PARTIAL]
    if leads and run.is_shown and run.delivery in (Delivery.LOW, Delivery.WITHHELD):
        yield PageHeading(2, "Unverified")
        mark = Mark(SentenceMark.UNVERIFIED, strong=True)
        yield PageLines(tuple((PlainText(claim.text), *_citations([claim], run), mark) for claim in leads))


def _sources(run: ResearchRun) -> Iterator[PageBlock]:
    yield PageHeading(2, "Sources")
    if not run.documents:
        yield PageLines(_lines(["No source is cited."]), is_list=False)
        return
    documents = [run.documents[each] for each in run.numbers]
    rows = [
        (
            (PlainText(f"S{run.numbers[each.id]}"),),
            (SourceLink(_title(each), each.url),),
            (PlainText(each.publisher),),
            (PlainText(f"{each.tier}: {each.tier_reason}" if each.tier_reason else each.tier),),
            (PlainText(_date(each)),),
        )
        for each in documents
    ]
    yield PageTable(("source", "title", "publisher", "tier", "date"), tuple(rows))


def _title(document: StoredDocument) -> str:
    return document.title or document.id


def _date(document: StoredDocument) -> str:
    dated = document.dated
    return f"{dated.day} ({dated.signal}, {dated.confidence})" if dated else "unknown"


def _lines(texts: Iterable[str]) -> tuple[Line, ...]:
    return tuple((PlainText(text),) for text in texts)
