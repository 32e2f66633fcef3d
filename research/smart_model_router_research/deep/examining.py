"""The claims of a run, examined against its documents: every quote again, every status by code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from smart_model_router_research.deep.checking import Support, SupportStatus, check_claim
from smart_model_router_research.deep.claims import (
    ClaimGraph,
    ClaimKind,
    ClaimStatus,
    Contradiction,
    QuotedEvidence,
    ResearchClaim,
    SourceTier,
    SubQuestion,
)
from smart_model_router_research.deep.comparing import is_polar
from smart_model_router_research.deep.contradictions import find_contradictions, settle
from smart_model_router_research.deep.folding import FoldedText, fold, folded_text
from smart_model_router_research.deep.following import unvouched
from smart_model_router_research.deep.inferences import recompute
from smart_model_router_research.deep.matching import any_in, placed_stems
from smart_model_router_research.deep.quantities import Quantity
from smart_model_router_research.deep.repair import quotation
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.deep.statement_stems import senses_of
from smart_model_router_research.deep.words import Item, read_items

_RECOMMENDING = frozenset("should must shall recommend recommends recommended advise advised prefer avoid".split())
_DENYING = frozenset("not no never neither nor without none".split())
_YEAR = re.compile(r"\b[12]\d{3}\b")


class ClaimExaminer:
    """Examines claims against the documents of a run, each of which is read once."""

    def __init__(self, documents: Iterable[StoredDocument]) -> None:
        self.documents: Mapping[str, StoredDocument] = {document.id: document for document in documents}
        self._texts: dict[str, FoldedText] = {}
        self._changed: dict[str, bool] = {}

    def support(self, text: str, evidence: QuotedEvidence) -> Support:
        """Return whether a piece of evidence supports a text (K1 to K5). Never raises."""
        document = self.documents.get(evidence.doc_id)
        if document is None:
            return Support(SupportStatus.UNSUPPORTED, (f"K1: {evidence.doc_id!r} was not retrieved in this run",))
        if document.tier is SourceTier.C:
            return Support(SupportStatus.UNSUPPORTED, (f"K1: {evidence.doc_id!r} is blocked: {document.tier_reason}",))
        if self._changed.setdefault(document.id, not document.is_unchanged):
            return Support(SupportStatus.UNSUPPORTED, (f"K1: {evidence.doc_id!r} is not what was retrieved",))
        return check_claim(text, evidence.quote, self.text_of(document.id), one_part(document.title))

    def text_of(self, doc_id: str) -> FoldedText:
        """Return a document's text, folded."""
        if doc_id not in self._texts:
            document = self.documents[doc_id]
            self._texts[doc_id] = folded_text(document.text, spaces=not document.runs_words_together)
        return self._texts[doc_id]

    def headings_at(self, doc_id: str, position: int) -> tuple[str, ...]:
        """Return the title of a document and the headings above a position in it."""
        return self.text_of(doc_id).path_at(position, one_part(self.documents[doc_id].title))

    def examine(self, claim: ResearchClaim, *, repair: bool = True) -> ResearchClaim:
        """Return the claim with the evidence that supports it, where it stands, and a status by code.

        What no evidence supports is replaced by the sentence of the source where `repair` allows it. A value, date or
        tier that its evidence does not bear out is taken off. Inferences are for `recompute`.
        """
        if not claim.evidence:
            return replace(claim, status=ClaimStatus.UNSUPPORTED, reasons=("it has no evidence",))
        supports = [(each, self.support(claim.text, each)) for each in claim.evidence]
        held = [(each, found) for each, found in supports if found.status is SupportStatus.SUPPORTED]
        if held:
            return self._supported(claim, held, "edited")
        if repair and (repaired := self._repaired(claim)) is not None:
            return repaired
        placed = tuple(replace(each, span=found.span or each.span) for each, found in supports)
        is_partial = any(found.status is SupportStatus.PARTIAL for _, found in supports)
        return replace(
            claim,
            evidence=placed,
            status=ClaimStatus.PARTIAL if is_partial else ClaimStatus.UNSUPPORTED,
            reasons=tuple(dict.fromkeys(reason for _, found in supports for reason in found.reasons)),
        )

    def _repaired(self, claim: ResearchClaim) -> ResearchClaim | None:
        for evidence in claim.evidence:
            if self.support(claim.text, evidence).status is not SupportStatus.PARTIAL:
                continue
            title = one_part(self.documents[evidence.doc_id].title)
            said = quotation(claim.text, evidence.quote, self.text_of(evidence.doc_id), title)
            if said is not None:
                quoted = replace(claim, text=said)
                found = [(each, self.support(said, each)) for each in claim.evidence]
                held = [(each, support) for each, support in found if support.status is SupportStatus.SUPPORTED]
                return self._supported(quoted, held, "quoted")
        return None

    def _supported(
        self, claim: ResearchClaim, held: list[tuple[QuotedEvidence, Support]], method: str
    ) -> ResearchClaim:
        evidence = tuple(
            replace(each, method=self._method(claim, each, method), span=found.span or each.span)
            for each, found in held
        )
        documents = [self.documents[each.doc_id] for each in evidence]
        claim = replace(
            claim,
            evidence=evidence,
            status=ClaimStatus.SUPPORTED,
            reasons=(),
            contradicts=(),
            tier=min((document.tier for document in documents), key=list(SourceTier).index),
            critical=claim.critical or is_critical(claim.text, claim.kind),
        )
        if claim.value and not self._is_stated(claim):
            claim = replace(claim, value="", unit="", attribute="", other="")
        if claim.as_of and not self._is_dated(claim, documents):
            claim = replace(claim, as_of="")
        return claim

    def _method(self, claim: ResearchClaim, evidence: QuotedEvidence, method: str) -> str:
        if method == "edited" and next(self.text_of(evidence.doc_id).spans(claim.text), None) is not None:
            return "quoted"
        return method

    def _is_stated(self, claim: ResearchClaim) -> bool:
        """Return whether value, unit, attribute and both entities stand in the claim, in a quote or in its headings."""
        items = read_items(fold(claim.text))
        stated_numbers = [item for item in read_items(fold(claim.value)) if isinstance(item.key, Quantity)]
        if not is_polar(claim) and (any(item.key in _DENYING for item in items) or _others_in(items, stated_numbers)):
            return False
        texts = [claim.text]
        for each in claim.evidence:
            texts += [each.quote, " ".join(self.headings_at(each.doc_id, each.span[0]))]
        known = [item for text in texts for item in read_items(fold(text))]
        stated = f"{claim.value} {claim.unit}" if claim.unit and claim.unit not in claim.value else claim.value
        said = f"{stated} ; {claim.entity} ; {claim.other}"
        if unvouched([item for item in read_items(fold(said)) if item.kind != "mark"], known):
            return False
        # Without the name itself: `max_size` states no maximum.
        besides = [fold(text).replace(fold(claim.entity), " ") if claim.entity else text for text in texts]
        stems = frozenset(placed.stem for text in besides for placed in placed_stems(text))
        # Of what the question asked for, its stems: a source can have another word of the same meaning.
        return all(any_in(senses_of(placed.stem), stems) for placed in placed_stems(claim.attribute))

    def _is_dated(self, claim: ResearchClaim, documents: list[StoredDocument]) -> bool:
        days = {day.day for document in documents for day in (document.published, document.modified) if day}
        if claim.as_of in days:
            return True
        texts = [claim.text, *(each.quote for each in claim.evidence)]
        return claim.as_of[:4] in {year for text in texts for year in _YEAR.findall(text)}


def examine_claims(
    claims: Iterable[ResearchClaim],
    documents: Iterable[StoredDocument],
    questions: Iterable[SubQuestion] = (),
    *,
    known: Iterable[Contradiction] = (),
    repair: bool = True,
) -> ClaimGraph:
    """Return the graph of these claims: examined, with inferences computed again, and with their contradictions.

    Contradictions `known` from earlier rounds stay. A claim about a critical question is critical. Never raises.
    """
    examiner = ClaimExaminer(documents)
    questions = tuple(questions)
    asked = {question.id for question in questions if question.critical}
    examined = [
        replace(claim, critical=True) if claim.question_id in asked else claim
        for claim in (
            each if each.kind is ClaimKind.INFERENCE else examiner.examine(each, repair=repair) for each in claims
        )
    ]
    contradictions = find_contradictions(examined)
    found = {claim.id: claim for claim in settle(examined, contradictions)}
    for claim in examined:
        if claim.kind is ClaimKind.INFERENCE:
            found[claim.id] = recompute(claim, found)
    pairs = {frozenset((each.one, each.other)) for each in contradictions}
    kept = tuple(each for each in known if frozenset((each.one, each.other)) not in pairs)
    return ClaimGraph(
        questions=questions,
        claims=tuple(found.values()),
        documents={document.id: document.cited() for document in examiner.documents.values()},
        contradictions=(*kept, *contradictions),
    )


def _others_in(items: Sequence[Item], stated: Sequence[Item]) -> bool:
    """Return whether a claim has quantities that its value does not have: which is of the entity is open."""
    quantities = [item for item in items if isinstance(item.key, Quantity) and (item.key.unit or item.key.is_scaled)]
    return any(not any(item.same(mine) for mine in stated) for item in quantities) if stated else False


def one_part(title: str) -> str:
    """Return a title as one part of a context, whatever is in it."""
    return title.replace(" > ", " ")


def is_critical(text: str, kind: ClaimKind) -> bool:
    """Return whether a claim is of the kinds that need two sources: numbers, dates, names and recommendations."""
    if kind in (ClaimKind.NUMBER, ClaimKind.DATE):
        return True
    items = read_items(fold(text))
    names = [item for item in items[1:] if item.kind == "word" and item.written[:1].isupper()]
    telling = [item for item in items if item.kind in ("number", "date", "identifier") or item.key in _RECOMMENDING]
    return bool(names or telling)
