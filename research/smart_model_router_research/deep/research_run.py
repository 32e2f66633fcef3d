"""A finished run as artefacts keep it: rounds, documents, report. All else that they hold is computed from these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from smart_model_router_research.deep.citation_completeness import Completeness, completeness
from smart_model_router_research.deep.claims import ClaimGraph, ClaimStatus, Contradiction, ResearchClaim
from smart_model_router_research.deep.lookups import QuestionLookup, furthest
from smart_model_router_research.deep.quality import AuditConfig, audits_of, best_of, quality_of
from smart_model_router_research.deep.report import ResearchReport
from smart_model_router_research.deep.rounds import Delivery, delivery_of
from smart_model_router_research.deep.sources import StoredDocument


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchFacts:
    """The facts about a run that nothing else tells. All are texts of the run's own words; "" where there are none.

    `finished_at` is a moment, ISO 8601. `prompts` are the SHA-256 of prompts by name, `models` the names of the models
    that answered, `usage` what was spent, by unit (`usd`, `input_tokens`, ...). `accepted_by` is the person who had a
    withheld report shown. `model_notes` are sentences about the calls of models: what stood in for what, and why.
    """

    run_id: str
    topic: str
    goal: str = ""
    finished_at: str = ""
    workflow: str = ""
    workflow_hash: str = ""
    engine: str = ""
    config_hash: str = ""
    prompts: Mapping[str, str] = field(default_factory=dict)
    models: tuple[str, ...] = ()
    model_notes: tuple[str, ...] = ()
    usage: Mapping[str, float] = field(default_factory=dict)
    stop_reason: str = ""
    accepted_by: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRound:
    """A round: the graph as its audit saw it, its mode and steps, and the counts that the next round is decided by.

    `lookups` say how far it looked for each of its questions.
    """

    graph: ClaimGraph
    mode: str = "full"
    steps: tuple[str, ...] = ()
    new_documents: int = 0
    changed_claims: int = 0
    lookups: tuple[QuestionLookup, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ResearchRun:
    """A finished run. There is at least one round; `documents` are all that it stored, by id.

    The documents of the round that is delivered are in its graph as `StoredDocument.cited` gives them.
    """

    facts: ResearchFacts
    config: AuditConfig
    rounds: tuple[ResearchRound, ...]
    documents: Mapping[str, StoredDocument]
    report: ResearchReport

    @cached_property
    def audits(self) -> list[dict[str, Any]]:
        """The audit of each round."""
        return audits_of([each.graph for each in self.rounds], self.config)

    @cached_property
    def quality(self) -> dict[str, Any]:
        """The quality metadata of what is delivered."""
        return quality_of(self.audits, self.config, self.facts.stop_reason)

    @cached_property
    def graph(self) -> ClaimGraph:
        """The graph of the round that is delivered."""
        return self.rounds[int(best_of(self.audits)["round"]) - 1].graph

    @cached_property
    def completeness(self) -> Completeness:
        """The citation completeness of the report."""
        return completeness(self.report, self.graph)

    @cached_property
    def delivery(self) -> Delivery:
        """The level of delivery."""
        best = best_of(self.audits)
        return delivery_of(
            best["ci_score"], gate_passed=best["gate_passed"], citations_complete=self.completeness.is_complete
        )

    @property
    def is_shown(self) -> bool:
        """True when the report has its findings: one that is withheld has them once a person accepted it."""
        return self.delivery is not Delivery.WITHHELD or bool(self.facts.accepted_by)

    @cached_property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """The contradictions of all rounds, each as the latest round has it, in the order in which they were found."""
        found = {frozenset((each.one, each.other)): each for part in self.rounds for each in part.graph.contradictions}
        return tuple(found.values())

    @cached_property
    def lookups(self) -> Mapping[str, QuestionLookup]:
        """The extent to which each question was looked for, by its id."""
        return furthest(each.lookups for each in self.rounds)

    @cached_property
    def graph_claims(self) -> Mapping[str, ResearchClaim]:
        """The claims of the delivered round by id."""
        return {claim.id: claim for claim in self.graph.claims}

    @cached_property
    def claims(self) -> Mapping[str, ResearchClaim]:
        """All claims by id: those of the delivered round as it has them, others as the latest round has them."""
        return {claim.id: claim for part in self.rounds for claim in part.graph.claims} | dict(self.graph_claims)

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """The number of each document: those that the report cites first, in its order, then those that claims cite.

        The rest follows by id.
        """
        cited = [claim for sentence in self.report.sentences for claim in sentence.claims]
        disputed = [claim for each in self.contradictions for claim in (each.one, each.other)]
        others = [claim.id for claim in self.graph.claims if claim.status is ClaimStatus.SUPPORTED]
        ids = [
            evidence.doc_id
            for claim in dict.fromkeys([*cited, *disputed, *others])
            if claim in self.claims
            for evidence in self.claims[claim].evidence
        ]
        known = [each for each in dict.fromkeys([*ids, *sorted(self.documents)]) if each in self.documents]
        return {each: number for number, each in enumerate(known, start=1)}
