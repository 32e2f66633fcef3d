"""The model form of the report: a summary in which every sentence is checked against the claims that it names."""

from __future__ import annotations

from collections.abc import Sequence

from smart_model_router_research.deep.citation_completeness import mended
from smart_model_router_research.deep.claims import ClaimGraph, ClaimStatus, ResearchClaim
from smart_model_router_research.deep.report import ReportPart, ReportSection, ReportSentence, ResearchReport
from smart_model_router_research.deep.sentences import split_sentences
from smart_model_router_research.model_forms.model_calls import FormFailed, ModelCaller, ModelForm
from smart_model_router_research.model_forms.replies import MOST_SENTENCES, WriterReply

WRITER = ModelForm("writer.v1", WriterReply, "frontier")
PROSE = "prose.v1"
LEAST_CLAIMS = 3
"""Claims from which a report is worth a summary: fewer are read as fast."""
_MOST_CLAIMS = 60
MOST_TOLD = 4
"""Claims, the shortest, that a model which writes prose alone is shown."""


async def summarised(caller: ModelCaller, report: ResearchReport, graph: ClaimGraph, certainty: str) -> ResearchReport:
    """Return the report with a summary behind its answers; as it is where the model form failed.

    A sentence that goes beyond its claims is refused. The summary says nothing that the answers say word by word.
    """
    questions = {each.id: each.text for each in graph.questions}
    used = {claim for sentence in report.sentences for claim in sentence.claims}
    claims = [each for each in graph.claims if each.status is ClaimStatus.SUPPORTED and each.id in used][:_MOST_CLAIMS]
    if len(claims) < LEAST_CLAIMS:
        return report
    if not caller.settings.writes_json:
        return await _told(caller, report, graph, claims)
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


async def _told(
    caller: ModelCaller, report: ResearchReport, graph: ClaimGraph, claims: Sequence[ResearchClaim]
) -> ResearchReport:
    """Return the report with those sentences of a model's prose that say what one of the claims says."""
    claims = sorted(claims, key=lambda each: len(each.text))[:MOST_TOLD]
    try:
        text = await caller.prose(PROSE, "\n".join(f"- {each.text}" for each in claims), WRITER.tier)
    except FormFailed as error:
        caller.degrade(error)
        return report
    said = {sentence.text for sentence in report.sentences}
    kept: list[ReportSentence] = []
    for told in split_sentences(text)[:MOST_SENTENCES]:
        sentence = " ".join(told.split()).lstrip("-*# ")
        of = (ReportSentence(text=sentence, claims=(each.id,)) for each in claims)
        found = next((one for each in of for one in _checked(each, graph)), None)
        if found is None:
            caller.refuse()
        elif found.text not in said:
            kept.append(found)
    return _with_summary(report, tuple(dict.fromkeys(kept)))


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
