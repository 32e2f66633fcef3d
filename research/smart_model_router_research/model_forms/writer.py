"""The model form of the report: a summary in which every sentence is checked against the claims that it names."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router_research.deep.citation_completeness import mended
from smart_model_router_research.deep.claims import ClaimGraph, ClaimStatus
from smart_model_router_research.deep.report import ReportPart, ReportSection, ReportSentence, ResearchReport
from smart_model_router_research.model_forms.model_calls import FormFailed, ModelCaller, ModelForm
from smart_model_router_research.model_forms.replies import WriterReply

WRITER = ModelForm("writer.v1", WriterReply, "frontier")
LEAST_CLAIMS = 3
"""Claims from which a report is worth a summary: fewer are read as fast."""
_MOST_CLAIMS = 60


async def summarised(caller: ModelCaller, report: ResearchReport, graph: ClaimGraph, certainty: str) -> ResearchReport:
    """Return the report with a summary behind its answers; as it is where the model form failed.

    A sentence that goes beyond its claims is refused. The summary says nothing that the answers say word by word.
    """
    questions = {each.id: each.text for each in graph.questions}
    used = {claim for sentence in report.sentences for claim in sentence.claims}
    claims = [each for each in graph.claims if each.status is ClaimStatus.SUPPORTED and each.id in used][:_MOST_CLAIMS]
    if len(claims) < LEAST_CLAIMS:
        return report
    shown = [{"id": each.id, "text": each.text, "question": questions.get(each.question_id, "")} for each in claims]
    try:
        reply = await caller.ask(WRITER, {"claims": shown, "certainty": certainty}, is_last=True)
    except FormFailed as error:
        caller.degrade(error)
        return report
    said = {sentence.text for section in report.sections for sentence in section.sentences}
    kept = [
        sentence
        for each in reply.summary
        for sentence in _checked(ReportSentence(text=" ".join(each.text.split()), claims=each.claims), graph)
    ]
    caller.refuse(len(reply.summary) - len(kept))
    new = tuple(dict.fromkeys(sentence for sentence in kept if sentence.text not in said))
    return _with_summary(report, new)


def _checked(sentence: ReportSentence, graph: ClaimGraph) -> Sequence[ReportSentence]:
    """Return a sentence that says no more than its claims do; nothing for another."""
    one = ResearchReport(sections=(ReportSection(part=ReportPart.SUMMARY, sentences=(sentence,)),))
    return [each for each in mended(one, graph).sentences if each == sentence]


def _with_summary(report: ResearchReport, sentences: tuple[ReportSentence, ...]) -> ResearchReport:
    if not sentences:
        return report
    answer, *others = report.sections
    summary = ReportSection(part=ReportPart.SUMMARY, sentences=sentences)
    return ResearchReport(sections=(answer, summary, *others))
