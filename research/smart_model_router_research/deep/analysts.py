"""The analysts without a model: draft claims in the source's own words, each with its quote, or "not found".

A claim is drafted only where one statement of a source, with what it stands under, vouches for everything that a
question names, and where code finds that it follows from its quote.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from smart_model_router_research.deep.answers import answer_in
from smart_model_router_research.deep.checking import SupportStatus, check_claim
from smart_model_router_research.deep.claims import (
    ClaimKind,
    ClaimStatus,
    QuotedEvidence,
    Relation,
    ResearchClaim,
    SubQuestion,
)
from smart_model_router_research.deep.comparing import compare_claims
from smart_model_router_research.deep.fitting import is_said
from smart_model_router_research.deep.folding import FoldedText, fold, folded_text
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.matching import any_in, stem_of, stems_of
from smart_model_router_research.deep.naming import is_verbal
from smart_model_router_research.deep.questions import QuestionPattern, Wanted
from smart_model_router_research.deep.readings import is_of_properties
from smart_model_router_research.deep.repair import quotation, stands_alone
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.values import year_of
from smart_model_router_research.deep.vouching import split_entity

MAX_QUOTE = 300
"""Characters of a quote."""
MAX_ANSWERS = 24
"""Claims that one question is answered with at most."""
MARGIN = 0.15
"""Answers whose scores are nearer than this are equally good: when they differ, none is given."""
SWE_KINDS = frozenset([Wanted.NUMBER, Wanted.DATE, Wanted.VERSION])
"""Kinds of answer that the analyst `swe` looks for: quantities, dates and versions; the analyst `ai` has the others."""


@dataclass(frozen=True, slots=True)
class AnalystFindings:
    """The draft claims for one question, those of the best answer first. Without any, the sources do not answer it."""

    question: SubQuestion
    claims: tuple[ResearchClaim, ...] = ()
    analyst: str = "ai"


@dataclass
class ClaimDrafter:
    """Drafts claims with rising ids; folds each document once."""

    prefix: str = "c"
    _count: int = 0
    _folded: dict[str, FoldedText] = field(default_factory=dict)

    def next_id(self) -> str:
        """Return the next id."""
        self._count += 1
        return f"{self.prefix}{self._count}"

    def draft(
        self, found: FoundAnswer, question: SubQuestion, wanted: Wanted, wording: str = ""
    ) -> ResearchClaim | None:
        """Return the claim that an answer makes, checked against its quote; None where it does not follow.

        It is said as `wording` has it, where that follows too.
        """
        stored = found.document.stored
        if stored.id not in self._folded:
            self._folded[stored.id] = folded_text(stored.text)
        folded = self._folded[stored.id]
        quote = _quote(found)
        context = " > ".join(_path(found))
        texts = self._texts(found, quote, folded, context, question.text)
        for text in chain([wording] if wording else [], texts):
            support = check_claim(text, quote, folded, context)
            if support.status is SupportStatus.SUPPORTED and support.span is not None:
                kind = {Wanted.NUMBER: ClaimKind.NUMBER, Wanted.DATE: ClaimKind.DATE}.get(wanted, ClaimKind.FACT)
                verbatim = fold(text) == fold(found.statement.text)
                return ResearchClaim(
                    id=self.next_id(),
                    text=fold(text),
                    question_id=question.id,
                    kind=kind,
                    critical=question.critical,
                    entity=fold(_numbered(found.entity, question.text)),
                    attribute=fold(found.attribute),
                    other=fold(found.other),
                    value=fold(found.value)[:1_000],
                    unit=fold(found.unit),
                    as_of=_as_of(found),
                    tier=stored.tier,
                    evidence=(
                        QuotedEvidence(
                            doc_id=stored.id, quote=quote, span=support.span, method="quoted" if verbatim else "edited"
                        ),
                    ),
                    status=ClaimStatus.SUPPORTED,
                )
        return None

    def _texts(self, found: FoundAnswer, quote: str, folded: FoldedText, context: str, question: str) -> Iterator[str]:
        """Yield the ways to say what was found, at last the source's sentence with what leads to it."""
        yield from _wordings(found, question)
        if (sentence := quotation(found.statement.text, quote, folded, context)) is not None:
            yield sentence


def analyse(
    question: SubQuestion,
    pattern: QuestionPattern,
    documents: Sequence[ReadDocument],
    drafter: ClaimDrafter,
    topics: frozenset[str] = frozenset(),
) -> AnalystFindings:
    """Return what documents, the most relevant first, say to a question; no claims where they do not answer it."""
    analyst = "swe" if pattern.wanted in SWE_KINDS else "ai"
    answers = [answer for document in documents for answer in answers_of(document, pattern, topics)]
    claims = [
        claim for answer in best_of(answers, pattern) if (claim := drafter.draft(answer, question, pattern.wanted))
    ]
    return AnalystFindings(question, tuple(claims[:MAX_ANSWERS]), analyst)


def answers_of(
    document: ReadDocument, pattern: QuestionPattern, topics: frozenset[str] = frozenset()
) -> Iterator[FoundAnswer]:
    """Yield the answers that the statements of a document give."""
    telling = _prefilter(pattern)
    told = telling is None or telling.search(document.stored.text) or pattern.wanted in (Wanted.VERSION, Wanted.DATE)
    if not told or not _mentions(document, pattern, topics):
        return
    for statement in document.statements:
        if statement.kind is StatementKind.VERSION or telling is None or telling.search(_searched(statement)):
            found = answer_in(statement, pattern, document, topics)
            if found is not None and is_said(pattern.text, found):
                yield found


def _searched(statement: Statement) -> str:
    heads = " ".join(head for head, _ in statement.cells)
    return f"{statement.text} {statement.label} {heads} {statement.scope[-1] if statement.scope else ''}"


def _mentions(document: ReadDocument, pattern: QuestionPattern, topics: frozenset[str]) -> bool:
    """Return whether a document has all names and numbers of a question anywhere; else it need not be read."""
    text = f"{document.stored.text}\n{document.path}\n{document.stored.title}".casefold()
    names = [part for entity in pattern.entities for part in split_entity(entity) if part.casefold() not in topics]
    return all(re.split(r"[.:/(\s]", name.casefold())[-1] in text for name in names) and all(
        n in text for n in pattern.numbers
    )


def best_of(answers: Iterable[FoundAnswer], pattern: QuestionPattern) -> list[FoundAnswer]:
    """Return the best answer, with those of other documents that are as good; none where one document gives several."""
    ordered = sorted(answers, key=lambda answer: -answer.score)
    if not ordered:
        return []
    best = ordered[0]
    near = [answer for answer in ordered if best.score - answer.score < MARGIN]
    if pattern.wanted is Wanted.LIST:
        return _listed(best, near)
    if pattern.wanted in (Wanted.DEFINITION, Wanted.OPEN, Wanted.YES_NO):
        return [best]
    kept: dict[str, FoundAnswer] = {}
    for answer in near:
        known = kept.setdefault(answer.document.stored.id, answer)
        if _differs(known, answer) and known.score - answer.score < 0.02:
            return []
    if (
        len({answer.entity.casefold() for answer in kept.values()}) > 1
        and not pattern.entities
        and _all_differ(kept.values())
        and not all(_says_all(answer, pattern) for answer in kept.values())
    ):
        return []
    return list(kept.values())


def _listed(best: FoundAnswer, near: list[FoundAnswer]) -> list[FoundAnswer]:
    """Return the items of the list that the best answer belongs to."""
    statement = best.statement
    if statement.kind is not StatementKind.ITEM:
        return [best]
    together = [
        a
        for a in near
        if a.document is best.document
        and a.statement.scope == statement.scope
        and a.statement.lead_in == statement.lead_in
    ]
    return sorted(together, key=lambda answer: answer.statement.start)


def _differs(one: FoundAnswer, other: FoundAnswer) -> bool:
    mine, its = fold(one.value).casefold(), fold(other.value).casefold()
    return mine != its and mine not in its and its not in mine


def _all_differ(answers: Iterable[FoundAnswer]) -> bool:
    values = [fold(answer.value).casefold() for answer in answers]
    return len(set(values)) > 1


def _says_all(answer: FoundAnswer, pattern: QuestionPattern) -> bool:
    """Return whether a sentence itself has all words of a question: where two such differ, both are shown."""
    said = answer.statement.own
    return answer.statement.kind is StatementKind.SENTENCE and all(any_in(term.others, said) for term in pattern.terms)


def _prefilter(pattern: QuestionPattern) -> re.Pattern[str] | None:
    """Return what a statement has to contain to be looked at; None when anything may do."""
    stems = {stem for term in pattern.terms if term.weight >= 0.6 for stem in term.others}
    if not stems:
        stems = {stem_of(word) for entity in pattern.entities for word in re.findall(r"[^\W_]+", entity)}
    parts = sorted({re.escape(stem[:-1] if len(stem) > 3 else stem) for stem in stems})
    return re.compile("|".join(parts), re.IGNORECASE) if parts else None


def _path(found: FoundAnswer) -> list[str]:
    """Return title and headings above an answer, the title once."""
    title, scope = found.document.stored.title, list(found.statement.scope)
    path = scope if not title or (scope and fold(scope[0]) == fold(title)) else [title, *scope]
    return [part.replace(" > ", " ") for part in path]


def _wordings(found: FoundAnswer, question: str) -> Iterator[str]:
    """Yield the ways to say what was found, the shortest that can be understood by itself first."""
    statement = found.statement
    path = _path(found)
    title = path[0] if path else ""
    if statement.lead_in and not statement.lead_in.endswith(":") and statement.kind is not StatementKind.ROW:
        yield f"{statement.lead_in}: {statement.text}"  # a part of an item says nothing without it
    if statement.kind is StatementKind.LABELLED and title and not found.is_entity:
        if found.item == statement.value and not stems_of(title) & stems_of(question):
            yield f"{statement.label}: {statement.value}"
        for item in dict.fromkeys((found.item, statement.value)):
            if item:
                yield f"{statement.label} of {title}: {item}"
                if len(path) > 1:
                    yield f"{path[-1]}, {statement.label} of {title}: {item}"
    if statement.kind is StatementKind.ROW:
        yield from _of_row(found, path)
    with_path = f"{' > '.join(path)}: {statement.text}" if path else statement.text
    is_above = bool(found.value) and found.value not in statement.text and any(found.value in part for part in path)
    if is_above or (found.names_term and statement.term and statement.kind is not StatementKind.ROW):
        yield with_path
    is_unnamed = bool(found.entity) and found.entity in question and found.entity not in statement.text
    if is_unnamed or not stands_alone(fold(statement.text)):
        yield with_path
    yield statement.text
    if statement.term:
        yield f"{statement.term} {statement.text}"
    yield with_path


def _of_row(found: FoundAnswer, path: list[str]) -> Iterator[str]:
    """Yield what the cell of the column that answers says of its row."""
    cells, head, cell = found.statement.cells, found.attribute, found.item
    if not head or not cell or not cells:
        return
    column, name = cells[0]
    if is_of_properties([each for each, _ in cells]):
        yield f"{' > '.join(path)}: {name}: {cell}" if path else f"{name}: {cell}"
    name = f"{column} {name}" if column and name.isdecimal() else name
    yield f"{name}: {head} {cell}" if is_verbal(head) else f"The {head} of {name} is {cell}"


def _numbered(entity: str, question: str) -> str:
    """Return an entity with the number that the question names it by: what is said of Town 1 is not said of Town 2."""
    named = re.search(rf"(?<!\w){re.escape(entity)} (\d+(?:\.\d+)*)(?![\w.]*\w)", question) if entity else None
    return entity if named is None else named[0]


def _quote(found: FoundAnswer) -> str:
    """Return the quote: the statement, or the piece of a long one with the value in it."""
    text = found.statement.text
    if len(text) <= MAX_QUOTE:
        return text
    anchor = found.item if found.item and found.item in text else found.value
    at = max(0, text.find(anchor))
    start = max(0, min(at - 40, len(text) - MAX_QUOTE))
    if start:
        start = text.find(" ", start) + 1
    end = start + MAX_QUOTE
    return text[start:end] if end >= len(text) else text[start : text.rfind(" ", start, end)]


def _as_of(found: FoundAnswer) -> str:
    """Return the date of a value: its own, else that of its corpus."""
    if year := year_of(found.item or found.statement.value):
        return f"{year}-07-01"
    dated = found.document.stored.published
    return dated.day if dated is not None and dated.signal == "corpus" else ""


def standing(claims: Sequence[ResearchClaim]) -> list[ResearchClaim]:
    """Return the claims that no other one supersedes, the newest first."""
    ordered = sorted(claims, key=lambda claim: claim.as_of, reverse=True)
    return [
        claim for claim in ordered if not any(other is not claim and _supersedes(other, claim) for other in ordered)
    ]


def _supersedes(one: ResearchClaim, other: ResearchClaim) -> bool:
    comparison = compare_claims(one, other)
    return comparison.relation is Relation.SUPERSEDED and comparison.kept == one.id
