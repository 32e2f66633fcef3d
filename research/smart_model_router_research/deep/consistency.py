"""A run against itself: ids lead somewhere, spans lie in their documents, documents are what was stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from smart_model_router_research.deep.claims import ClaimGraph, ResearchClaim
from smart_model_router_research.deep.research_run import ResearchRun
from smart_model_router_research.deep.sources import StoredDocument


@dataclass(frozen=True, slots=True)
class ArtefactFault:
    """A fault of a run or of its artefacts: where it is, and what is wrong."""

    place: str
    problem: str


def faults_of(run: ResearchRun) -> list[ArtefactFault]:
    """Return everything in a run that does not hold together; artefacts are not written then."""
    return list(_faults(run))


def _faults(run: ResearchRun) -> Iterator[ArtefactFault]:
    if not run.rounds:
        yield ArtefactFault("rounds", "a run has a round at least")
        return
    for key, document in run.documents.items():
        if key != document.id:
            yield ArtefactFault(f"document {key!r}", f"its id is {document.id!r}")
        if not document.is_unchanged:
            yield ArtefactFault(f"document {key!r}", "K1: its text is not the one whose SHA-256 it has")
    for number, each in enumerate(run.rounds, start=1):
        yield from _graph_faults(each.graph, run.documents, f"round {number}")
        known = {question.id for question in each.graph.questions}
        for lookup in each.lookups:
            if lookup.question_id not in known:
                place = f"round {number}, lookup of {lookup.question_id!r}"
                yield ArtefactFault(place, "it is no question of its round")
    for key, cited in run.graph.documents.items():
        if key in run.documents and cited.origin != run.documents[key].origin:
            yield ArtefactFault(f"document {key!r}", "the delivered round has another origin of it than is stored")
    yield from _contradiction_faults(run)


def _graph_faults(graph: ClaimGraph, documents: Mapping[str, StoredDocument], place: str) -> Iterator[ArtefactFault]:
    for key, cited in graph.documents.items():
        if key != cited.id or key not in documents:
            yield ArtefactFault(f"{place}, document {key!r}", "no document of this id is stored")
        elif replace(cited, origin="") != replace(documents[key].cited(), origin=""):
            yield ArtefactFault(f"{place}, document {key!r}", "the graph has other facts about it than are stored")
    for kind, ids in (
        ("question", [each.id for each in graph.questions]),
        ("claim", [each.id for each in graph.claims]),
    ):
        if len(set(ids)) < len(ids):
            double = next(each for each in ids if ids.count(each) > 1)
            yield ArtefactFault(f"{place}, {kind} {double!r}", "its id is there twice")
    known = {question.id for question in graph.questions}
    for claim in graph.claims:
        at = f"{place}, claim {claim.id!r}"
        if claim.question_id and claim.question_id not in known:
            yield ArtefactFault(at, f"{claim.question_id!r} is no question of its round")
        yield from _evidence_faults(claim, graph, documents, at)


def _evidence_faults(
    claim: ResearchClaim, graph: ClaimGraph, documents: Mapping[str, StoredDocument], place: str
) -> Iterator[ArtefactFault]:
    for evidence in claim.evidence:
        document = documents.get(evidence.doc_id)
        start, end = evidence.span
        if document is None or evidence.doc_id not in graph.documents:
            yield ArtefactFault(place, f"K1: {evidence.doc_id!r} is no document of its round")
        elif not 0 <= start < end <= len(document.text):
            yield ArtefactFault(place, f"K2: {start} to {end} are no characters of {evidence.doc_id!r}")


def _contradiction_faults(run: ResearchRun) -> Iterator[ArtefactFault]:
    for each in run.contradictions:
        for claim_id in (each.one, each.other):
            if claim_id not in run.claims:
                yield ArtefactFault(f"contradiction of {each.one!r} and {each.other!r}", f"{claim_id!r} is no claim")
