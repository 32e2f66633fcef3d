"""The session of one topic: its claims, the documents that it met, answers of one claim, and their rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Protocol

from smart_model_router_research.deep.analysts import ClaimDrafter, analyse, answers_of, best_of
from smart_model_router_research.deep.asked_before import answer_of_same_question
from smart_model_router_research.deep.asked_lists import asked_several, listed_answers
from smart_model_router_research.deep.claims import ResearchClaim, SubQuestion
from smart_model_router_research.deep.comparing import is_polar
from smart_model_router_research.deep.corpus_search import HITS
from smart_model_router_research.deep.fitting import said_above
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument, exactly_named, is_longer
from smart_model_router_research.deep.inferences import InferenceError, Operation, infer
from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.deep.nearest_answers import defined_near, nearest_answers
from smart_model_router_research.deep.questions import (
    QuestionPattern,
    Wanted,
    read_question,
)
from smart_model_router_research.deep.rivals import (
    as_one_matter,
    can_be_disputed,
    is_read_by_head,
    property_of,
    rivals_of,
)
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.deep.table_answers import answer_over_table

MANY_HITS = 40
"""Passages that are looked at where an entity has to be found by what is said of it."""
TITLE_HITS = 6
"""Passages that are looked at for the pages of the things that a question names."""


class DocumentSearch(Protocol):
    """A source of documents: a corpus, or the record of what one gave."""

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the documents of the best passages for a text, best first."""
        ...

    async def topics(self) -> frozenset[str]:
        """Return names, in lower case, that all documents are about."""
        ...


class SearchSession:
    """The claims and documents of one topic.

    `extra` are further texts to search for, by the id of the question that they are for.
    """

    def __init__(
        self,
        corpora: Sequence[DocumentSearch],
        drafter: ClaimDrafter | None = None,
        extra: Mapping[str, Sequence[str]] = MappingProxyType({}),
    ) -> None:
        self._corpora = corpora
        self._drafter = drafter or ClaimDrafter()
        self._extra = extra
        self.claims: list[ResearchClaim] = []
        self.documents: dict[str, StoredDocument] = {}
        self._met: dict[str, ReadDocument] = {}
        self.question = SubQuestion(id="", text="")

    async def _read(self, text: str, most: int = HITS) -> list[ReadDocument]:
        found = [document for corpus in self._corpora for document in await corpus.search(text, most)]
        self.documents |= {one.stored.id: one.stored for one in found}
        self._met |= {one.stored.id: one for one in found}
        return found

    def _own(self, pattern: QuestionPattern, documents: Sequence[ReadDocument]) -> list[ReadDocument]:
        """Return documents, marked where they are of a longer name than one that the question names."""
        names = [name for name in pattern.entities if not is_longer(name, pattern.text)]
        return exactly_named(names, documents, self._met.values())

    def _kept(self, claims: Sequence[ResearchClaim]) -> list[ResearchClaim]:
        self.claims += claims
        return list(claims)

    def _drafted(self, found: FoundAnswer, pattern: QuestionPattern) -> ResearchClaim | None:
        claim = self._drafter.draft(found, self.question, pattern.wanted)
        if claim is not None:
            self.claims.append(claim)
        return claim

    async def _direct(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        read = await self._read(pattern.text)
        further = [(entity, TITLE_HITS) for entity in pattern.entities[:2]]
        further += [(text, HITS) for text in self._extra.get(self.question.id, ())]
        for text, most in further:
            known = {one.stored.id for one in read}
            read += [one for one in await self._read(text, most) if one.stored.id not in known]
        read = self._own(pattern, read)
        topics = frozenset[str]().union(*[await corpus.topics() for corpus in self._corpora])
        return self._kept(analyse(self.question, pattern, read, self._drafter, topics).claims)

    async def _defined(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claim that says what a name is."""
        found = defined_near(pattern.entities[0], await self._read(pattern.text, MANY_HITS)) if pattern.entities else []
        return [claim for answer in found if (claim := self._drafted(answer, pattern)) is not None]

    async def _listed(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claims of all items of the one list that a question for several things is about."""
        if not asked_several(pattern.text):
            return []
        before = len(self.claims)
        found = listed_answers(pattern.text, self._own(pattern, await self._read(pattern.text, MANY_HITS)))
        claims = [self._drafted(each, replace(pattern, wanted=Wanted.FACT)) for each in found]
        whole = [claim for claim in claims if claim is not None]
        if len(whole) < len(claims):  # a part of a list is no answer
            del self.claims[before:]
            return []
        return whole

    async def _nearest(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claims of the statements that stand nearest to a question in everyday words."""
        read = self._own(pattern, await self._read(pattern.text, MANY_HITS))
        found = nearest_answers(pattern.text, read)
        return [claim for answer in found if (claim := self._drafted(answer, pattern)) is not None]

    def _inferred(self, operation: Operation, premises: Sequence[ResearchClaim], scope: str) -> list[ResearchClaim]:
        try:
            claim = infer(operation, premises, scope, claim_id=self._drafter.next_id(), question_id=self.question.id)
        except InferenceError:
            return []
        newest = max((premise.as_of for premise in premises), default="")
        return self._kept([replace(claim, as_of=newest)])

    async def _asked_before(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the answer of the document that asks the same question."""
        found = answer_of_same_question(pattern.text, await self._read(pattern.text))
        return [claim for each in found if (claim := self._drafted(each, pattern)) is not None]

    def _over_table(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return what is computed over one table, or its rows that answer."""
        over = answer_over_table(pattern, self._own(pattern, list(self._met.values())))
        if over is None:
            return []
        claims = [self._drafted(cell, replace(pattern, wanted=Wanted.FACT)) for cell in over.cells]
        cells = [claim for claim in claims if claim is not None]
        if len(cells) < len(claims) or over.operation is None:
            return cells if len(cells) == len(claims) else []
        return self._inferred(over.operation, cells, over.scope)

    def _property(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claim of the label or column that has the noun of "Which port does X listen on?"."""
        asked = property_of(pattern)
        met = self._own(pattern, list(self._met.values()))
        found = [each for one in met for each in answers_of(one, asked)] if asked is not None else []
        best = best_of([each for each in found if is_read_by_head(each)], pattern)
        return [claim for each in best if (claim := self._drafted(each, pattern)) is not None]

    def disputed(
        self, question: SubQuestion, claims: list[ResearchClaim], documents: Mapping[str, ReadDocument]
    ) -> list[ResearchClaim]:
        """Return claims that answer a question, with those of documents that say something else about the same."""
        self.question, self._met = question, dict(documents)
        return self._with_rivals(claims, read_question(question.text))

    def _with_rivals(self, claims: list[ResearchClaim], pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return claims with those that say something else about the same, all of them as claims about one matter."""
        if not claims or not can_be_disputed(pattern, claims):
            return claims
        documents = self._own(pattern, list(self._met.values()))
        rivals = [self._drafted(each, pattern) for each in rivals_of(pattern, claims, documents)]
        together = [*claims, *(each for each in rivals if each is not None)]
        if len(together) < 2:
            return claims
        if len({is_polar(claim) for claim in together}) > 1:  # a whole sentence against a value: neither can be shown
            self.claims = [claim for claim in self.claims if claim not in together]
            return []
        said = [self._stems_around(claim) for claim in together]
        known = {claim.id: claim for claim in as_one_matter(pattern.text, together, said)}
        self.claims = [known.get(claim.id, claim) for claim in self.claims]
        return list(known.values())

    def _stems_around(self, claim: ResearchClaim) -> frozenset[str]:
        document = self._met[claim.evidence[0].doc_id]
        quote = claim.evidence[0].quote
        found = next((each for each in document.statements if each.text.startswith(quote[:60])), None)
        return stems_of(claim.text) | (said_above(found, document) if found else frozenset())
