"""Citation completeness: each sentence of a report rests on supported claims and says no more than they do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from smart_model_router_research.deep.checking import SupportStatus, check_claim
from smart_model_router_research.deep.claims import ClaimGraph, ClaimStatus, ResearchClaim
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.report import (
    ReportSection,
    ReportSentence,
    ResearchReport,
    SentenceMark,
    sentence_of,
)
from smart_model_router_research.deep.sentences import split_sentences

LEAST_SHARE = 0.95
"""The share of supported sentences that a report needs, critical ones apart: of those it needs all."""
_MARKS: Mapping[ClaimStatus, SentenceMark] = {
    ClaimStatus.CONTRADICTED: SentenceMark.DISPUTED,
    ClaimStatus.SUPERSEDED: SentenceMark.SUPERSEDED,
    ClaimStatus.PARTIAL: SentenceMark.UNVERIFIED,
}
"""The marks of sentences that are kept, by the status of their first claim; what has none is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Offender:
    """A sentence that is not supported: its section and its place there, from 0, and why."""

    section: int
    sentence: int
    critical: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Completeness:
    """Citation completeness: the share (0..1) of critical and of other factual sentences that are supported.

    Without sentences of a kind its share is 1. A sentence that cites no known claim counts as critical: nothing says
    that it is not. A marked one counts as not supported.
    """

    critical: float
    rest: float
    offenders: tuple[Offender, ...] = ()

    @property
    def is_complete(self) -> bool:
        """True when every critical sentence is supported, and 0.95 of the rest."""
        return self.critical == 1.0 and self.rest >= LEAST_SHARE


def completeness(report: ResearchReport, graph: ClaimGraph) -> Completeness:
    """Return how far the sentences of a report are supported by the claims that they cite."""
    claims = {claim.id: claim for claim in graph.claims}
    counts = {True: 0, False: 0}
    offenders: list[Offender] = []
    for number, section in enumerate(report.sections):
        for at, sentence in enumerate(section.sentences):
            critical = _is_critical(sentence, claims)
            counts[critical] += 1
            if reason := _fault(sentence, claims):
                offenders.append(Offender(section=number, sentence=at, critical=critical, reason=reason))
    wrong = {kind: sum(offender.critical is kind for offender in offenders) for kind in counts}
    share = {kind: (counts[kind] - wrong[kind]) / counts[kind] if counts[kind] else 1.0 for kind in counts}
    return Completeness(critical=share[True], rest=share[False], offenders=tuple(offenders))


def mended(report: ResearchReport, graph: ClaimGraph) -> ResearchReport:
    """Return the report without unmarked offenders: each is repaired, marked or removed.

    A sentence with supported claims becomes their texts, word by word. One whose claims are all known, and are
    disputed, superseded or partly supported, is marked. Any other is removed, and so is a section that is empty then.
    """
    claims = {claim.id: claim for claim in graph.claims}
    sections: list[ReportSection] = []
    for section in report.sections:
        kept = [each for sentence in section.sentences for each in _mended(sentence, claims)]
        if kept:
            sections.append(replace(section, sentences=tuple(dict.fromkeys(kept))))
    return ResearchReport(sections=tuple(sections))


def _mended(sentence: ReportSentence, claims: Mapping[str, ResearchClaim]) -> list[ReportSentence]:
    if not _fault(replace(sentence, mark=None), claims):
        return [replace(sentence, mark=None)]
    cited = [claims[each] for each in sentence.claims if each in claims]
    if supported := [claim for claim in cited if claim.status is ClaimStatus.SUPPORTED]:
        return [sentence_of(claim) for claim in supported]
    marks = [_MARKS.get(claim.status) for claim in cited]
    if not cited or len(cited) < len(sentence.claims) or None in marks or _goes_beyond(sentence, cited):
        return []
    return [replace(sentence, mark=marks[0])]


def _is_critical(sentence: ReportSentence, claims: Mapping[str, ResearchClaim]) -> bool:
    cited = [claims[each] for each in sentence.claims if each in claims]
    return not cited or any(claim.critical for claim in cited)


def _fault(sentence: ReportSentence, claims: Mapping[str, ResearchClaim]) -> str:
    """Return why a sentence is not supported; "" where it is."""
    if not sentence.claims:
        return "it cites no claim"
    if unknown := [each for each in sentence.claims if each not in claims]:
        return f"it cites {unknown[0]!r}, which is no claim of the graph"
    cited = [claims[each] for each in sentence.claims]
    if weak := [claim for claim in cited if claim.status is not ClaimStatus.SUPPORTED]:
        return f"{weak[0].id} is {weak[0].status}"
    return f"it is marked {sentence.mark}" if sentence.mark else _goes_beyond(sentence, cited)


def _goes_beyond(sentence: ReportSentence, cited: list[ResearchClaim]) -> str:
    """Return what a sentence says beyond its claims, or which of them it has no need of."""
    if any(sentence.text == claim.text for claim in cited) and len(cited) == 1:
        return ""
    used: set[str] = set()
    for part in split_sentences(fold(sentence.text)) or [""]:
        vouching = [claim.id for claim in cited if _says(claim, part)]
        if not vouching:
            return f"none of its claims says {part[:120]!r}"
        used.update(vouching)
    idle = [claim.id for claim in cited if claim.id not in used]
    return f"{idle[0]} says nothing of it" if idle else ""


def _says(claim: ResearchClaim, part: str) -> bool:
    return check_claim(part, claim.text, claim.text).status is SupportStatus.SUPPORTED or part == fold(claim.text)
