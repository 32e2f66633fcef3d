"""A question answered from corpora without a model: searched, read, joined where it takes two steps, or not found."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Protocol

from smart_model_router_research.deep.analysts import ClaimDrafter, analyse, answers_of, best_of, standing
from smart_model_router_research.deep.asked_extremes import (
    can_compare,
    compared_measure,
    name_and_number,
    set_and_measure,
    without_superlative,
)
from smart_model_router_research.deep.claims import ClaimKind, ResearchClaim, SubQuestion
from smart_model_router_research.deep.corpus_search import HITS
from smart_model_router_research.deep.fitting import said_above
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.inferences import InferenceError, Operation, infer
from smart_model_router_research.deep.listed_pairs import MAX_MEMBERS, best_of_each, mirrored, pairs_in
from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.deep.naming import is_named_in
from smart_model_router_research.deep.nearest_answers import defined_near, is_weak, names_near, nearest_answers
from smart_model_router_research.deep.questions import (
    GAP,
    QuestionPattern,
    Wanted,
    read_question,
)
from smart_model_router_research.deep.readings import SYMMETRIC
from smart_model_router_research.deep.rivals import as_one_matter, is_read_by_head, property_of, rivals_of
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.deep.topics import plan_questions
from smart_model_router_research.deep.values import items_of

MANY_HITS = 40
"""Passages that are looked at where an entity has to be found by what is said of it."""
TITLE_HITS = 6
"""Passages that are looked at for the pages of the things that a question names."""


@dataclass(frozen=True, slots=True)
class OfflineAnswer:
    """An answer of corpora to a topic: questions, draft claims, the documents they cite, and what was not found.

    `answers` are, for each question that is answered, the ids of the claims that answer it, the newest first; other
    claims are premises, or superseded.
    """

    questions: tuple[SubQuestion, ...]
    claims: tuple[ResearchClaim, ...]
    answers: dict[str, tuple[str, ...]]
    documents: tuple[StoredDocument, ...]

    @property
    def not_found(self) -> tuple[str, ...]:
        """The ids of questions that these sources do not answer."""
        return tuple(question.id for question in self.questions if question.id not in self.answers)

    @property
    def values(self) -> tuple[str, ...]:
        """The values of the claims that answer, in the order of the questions."""
        known = {claim.id: claim for claim in self.claims}
        return tuple(known[each].value for ids in self.answers.values() for each in ids)


async def answer_offline(topic: str, corpora: Sequence[DocumentSearch]) -> OfflineAnswer:
    """Return what corpora say to a topic. Raises ValueError for a blank topic, IndexNotReady without an index."""
    questions = plan_questions(topic)
    session = OfflineSession(corpora)
    answers: dict[str, tuple[str, ...]] = {}
    for question in questions:
        session.question = question
        found = standing(await session.answer(read_question(question.text)))
        if found:
            answers[question.id] = tuple(claim.id for claim in found)
    cited = {evidence.doc_id for claim in session.claims for evidence in claim.evidence}
    documents = tuple(document for key, document in session.documents.items() if key in cited)
    return OfflineAnswer(tuple(questions), tuple(session.claims), answers, documents)


class DocumentSearch(Protocol):
    """A source of documents: a corpus, or the record of what one gave."""

    async def search(self, text: str, most: int = HITS) -> list[ReadDocument]:
        """Return the documents of the best passages for a text, best first."""
        ...

    async def topics(self) -> frozenset[str]:
        """Return names, in lower case, that all documents are about."""
        ...


class OfflineSession:
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

    async def ask(self, question: SubQuestion) -> list[ResearchClaim]:
        """Return the claims that answer a question. Of a list of pairs each is claimed, with both sides of it."""
        self.question = question
        pattern = read_question(question.text)
        found = await self.answer(pattern)
        if pattern.wanted is not Wanted.NUMBER and any(claim.attribute.casefold() in SYMMETRIC for claim in found):
            confirmed = await self.confirm(pattern)
            pairs = {claim.text: claim for claim in reversed(confirmed)}
            self.claims = [claim for claim in self.claims if claim not in found or claim.text not in pairs]
            return list(dict.fromkeys([*(pairs.get(claim.text, claim) for claim in found), *confirmed]))
        return found

    async def answer(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claims that answer a question; none where the corpora do not."""
        if pattern.clause and pattern.superlative is None:
            if pattern.is_named:
                return await self._joined(pattern)
            if found := await self._joined_by_words(pattern):
                return found
        if pattern.rivals:
            return await self._compared(pattern)
        if pattern.superlative is not None and (found := await self._extreme(pattern)):
            return found
        if pattern.superlative is not None and set_and_measure(pattern)[0]:
            return []
        self._met.clear()
        direct = await self._direct(pattern) or await self._counted(pattern)
        if pattern.wanted is Wanted.DEFINITION:
            return direct if _names_entity(direct, pattern) else await self._defined(pattern) or direct
        if direct and not all(is_weak(claim, pattern) for claim in direct):
            return self._with_rivals(direct, pattern)
        near = await self._nearest(pattern)
        return self._with_rivals(near or self._property(pattern), pattern)

    def _property(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claim of the label or column that has the noun of "Which port does X listen on?"."""
        asked = property_of(pattern)
        found = [each for one in self._met.values() for each in answers_of(one, asked)] if asked is not None else []
        best = best_of([each for each in found if is_read_by_head(each)], pattern)
        return [claim for each in best if (claim := self._drafted(each, pattern)) is not None]

    def _with_rivals(self, claims: list[ResearchClaim], pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return claims with those that say something else about the same, all of them as claims about one matter."""
        if not claims or any(claim.kind is ClaimKind.INFERENCE for claim in claims):
            return claims
        documents = list(self._met.values())
        rivals = [self._drafted(each, pattern) for each in rivals_of(pattern, claims, documents)]
        together = [*claims, *(each for each in rivals if each is not None)]
        if len(together) < 2:
            return claims
        said = [self._stems_around(claim) for claim in together]
        known = {claim.id: claim for claim in as_one_matter(pattern.text, together, said)}
        self.claims = [known.get(claim.id, claim) for claim in self.claims]
        return list(known.values())

    def _stems_around(self, claim: ResearchClaim) -> frozenset[str]:
        document = self._met[claim.evidence[0].doc_id]
        quote = claim.evidence[0].quote
        found = next((each for each in document.statements if each.text.startswith(quote[:60])), None)
        return stems_of(claim.text) | (said_above(found, document) if found else frozenset())

    async def _read(self, text: str, most: int = HITS) -> list[ReadDocument]:
        found = [document for corpus in self._corpora for document in await corpus.search(text, most)]
        self.documents |= {one.stored.id: one.stored for one in found}
        self._met |= {one.stored.id: one for one in found}
        return found

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
        topics = frozenset[str]().union(*[await corpus.topics() for corpus in self._corpora])
        return self._kept(analyse(self.question, pattern, read, self._drafter, topics).claims)

    async def _defined(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claim that says what a name is."""
        found = defined_near(pattern.entities[0], await self._read(pattern.text, MANY_HITS)) if pattern.entities else []
        return [claim for answer in found if (claim := self._drafted(answer, pattern)) is not None]

    async def _nearest(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claims of the statements that stand nearest to a question in everyday words."""
        found = nearest_answers(pattern.text, await self._read(pattern.text, MANY_HITS))
        return [claim for answer in found if (claim := self._drafted(answer, pattern)) is not None]

    def _inferred(self, operation: Operation, premises: Sequence[ResearchClaim], scope: str) -> list[ResearchClaim]:
        try:
            claim = infer(operation, premises, scope, claim_id=self._drafter.next_id(), question_id=self.question.id)
        except InferenceError:
            return []
        newest = max((premise.as_of for premise in premises), default="")
        return self._kept([replace(claim, as_of=newest)])

    # -------------------------------------------------------------------------------------------- both sides of a pair

    async def confirm(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Claim each pair of a list of what things have in common, and what the page of each second thing says of it.

        "Border countries of China" has a pair for each neighbour, and each neighbour has its own word on its border.
        """
        asked = {fold(name).casefold() for name in pattern.entities}
        pairs = replace(pattern, wanted=Wanted.NUMBER)
        claims: list[ResearchClaim] = []
        for found in await self._lists(pattern, least=1):
            names = {fold(name).casefold() for name in found.document.names}
            if found.statement.label.casefold() not in SYMMETRIC or not names & asked:
                continue
            for one in pairs_in(found):
                if (claim := self._drafted(one, pairs)) is None:
                    continue
                claims.append(claim)
                for document in await self._read(claim.other, TITLE_HITS):
                    of_other = mirrored(one, document)
                    drafted = of_other and self._drafted(of_other, pairs)
                    claims += [drafted] if drafted else []
        return claims

    # -------------------------------------------------------------------------------------------- two steps

    async def _joined(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Find the entity that a clause describes, ask the rest of the question of it, and join both claims."""
        first = await self._described(pattern.clause)
        if first is None:
            return []
        outer = read_question(pattern.outer.replace(GAP, first.entity))
        found: list[ResearchClaim] = []
        for second in standing(await self.answer(outer)):
            scope = f"{pattern.clause} in these sources"
            found += self._inferred(Operation.JOIN, [first, second], scope)
        return found

    async def _joined_by_words(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Find the one name near what a clause says of which the rest of the question is known, and join both."""
        read = await self._read(pattern.clause, MANY_HITS)
        found: dict[str, list[ResearchClaim]] = {}
        for named in names_near(pattern.clause, read):
            outer = read_question(pattern.outer.replace(GAP, named.value))
            seconds = [claim for claim in standing(await self._direct(outer)) if claim.entity == named.entity]
            if seconds and (first := self._drafted(named, pattern)) is not None:
                scope = f"{pattern.clause} in these sources"
                found[named.value] = [
                    joined for second in seconds for joined in self._inferred(Operation.JOIN, [first, second], scope)
                ]
        return next(iter(found.values())) if len(found) == 1 else []

    async def _described(self, clause: str) -> ResearchClaim | None:
        """Return a claim about the one entity that a clause describes; None for none, and for several."""
        pattern = replace(read_question(f"which thing {clause}"), wanted=Wanted.FACT)
        read = await self._read(clause, MANY_HITS)
        found = [answer for document in read for answer in answers_of(document, pattern) if answer.is_entity]
        best = max((answer.score for answer in found), default=0.0)
        found = [answer for answer in found if best - answer.score < 0.5]
        if len({answer.entity.casefold() for answer in found}) != 1:
            return None
        for answer in found:
            value = answer.statement.value or answer.value
            if (claim := self._drafted(replace(answer, value=value, is_entity=False), pattern)) is not None:
                return claim
        return None

    # -------------------------------------------------------------------------------------------- extremes, counts

    async def _extreme(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Compare the items of a list, or one attribute of all things of a set."""
        word = pattern.superlative
        assert word is not None  # noqa: S101 - `answer` asks for those that have one
        operation = Operation(word)
        plain = without_superlative(pattern)
        members, measure = set_and_measure(pattern)
        if members:
            listed = await self._members(members)
            return await self._measured(operation, measure, listed, members) if listed else []
        for found in await self._lists(plain):
            claims = self._items_with_numbers(found, plain)
            if (
                len(claims) > 1
                and can_compare(pattern, claims[0].value)
                and (
                    inferred := self._inferred(
                        operation, claims, f"{found.attribute} of {found.entity} in these sources"
                    )
                )
            ):
                return inferred
        return []

    async def _lists(self, pattern: QuestionPattern, least: int = 2) -> list[FoundAnswer]:
        """Return the values, of so many items at least, of the label that a question names."""
        wanted = replace(pattern, wanted=Wanted.LIST, text=f"which {pattern.text}")
        read = await self._read(pattern.text)
        found = [
            a
            for document in read
            for a in answers_of(document, wanted)
            if len(items_of(a.statement.value)) >= least and a.statement.label
        ]
        newest = sorted(best_of_each(found), key=lambda answer: -answer.score)
        return newest[:2]

    def _items_with_numbers(self, found: FoundAnswer, pattern: QuestionPattern) -> list[ResearchClaim]:
        claims = []
        for item in items_of(found.statement.value)[:MAX_MEMBERS]:
            name, number = name_and_number(item)
            if not name or not number:
                return []
            one = replace(found, value=number, item=item, other=name, unit="")
            if (claim := self._drafted(one, replace(pattern, wanted=Wanted.NUMBER))) is None:
                return []
            claims.append(claim)
        return claims

    async def _members(self, described: str) -> list[str]:
        """Return the names of a set that a clause describes, "border Latvia"."""
        pattern = read_question(f"Which {described}")
        for found in await self._lists(pattern):
            names = [name_and_number(item)[0] for item in items_of(found.statement.value)]
            if all(names):
                return names[:MAX_MEMBERS]
        return []

    async def _measured(
        self, operation: Operation, measure: str, members: Sequence[str], described: str
    ) -> list[ResearchClaim]:
        """Compare one attribute of things that are named; nothing where it is not known of each."""
        claims = []
        for name in members:
            found = standing(await self.answer(read_question(f"What is the {measure} of {name}?")))
            if not found:
                return []
            claims.append(found[0])
        shared = {claim.attribute.casefold() for claim in claims}
        return self._inferred(operation, claims, f"{described} in these sources") if len(shared) == 1 else []

    async def _compared(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Ask one attribute of both things that are compared, and compare."""
        measure = compared_measure(pattern)
        if not measure:
            return []
        lower = pattern.text.lower()
        operation = Operation.LARGEST
        if "difference" in lower or re.search(r"\bhow much (?:more|less|larger|longer|higher)\b", lower):
            operation = Operation.DIFFERENCE
        elif re.search(r"\b(?:smaller|shorter|lower|fewer|less|lighter|younger|slower)\b", lower):
            operation = Operation.SMALLEST
        elif re.search(r"\b(?:earlier|older|first|before)\b", lower):
            operation = Operation.EARLIEST
        elif re.search(r"\b(?:later|newer|last|after)\b", lower):
            operation = Operation.LATEST
        return await self._measured(operation, measure, pattern.rivals, " and ".join(pattern.rivals))

    async def _counted(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Count the items of the list that "how many" asks for."""
        if pattern.wanted is not Wanted.NUMBER or not pattern.text.lower().startswith("how many"):
            return []
        for found in await self._lists(pattern):
            if not stems_of(pattern.asked_noun) & stems_of(found.statement.label):
                continue
            claims = []
            for item in items_of(found.statement.value)[:MAX_MEMBERS]:
                name = name_and_number(item)[0] or item
                if (
                    claim := self._drafted(replace(found, value=item, item=item, other=name, unit=""), pattern)
                ) is None:
                    break
                claims.append(claim)
            else:
                return self._inferred(Operation.COUNT, claims, f"{found.attribute} of {found.entity} in these sources")
        return []


def _names_entity(claims: Sequence[ResearchClaim], pattern: QuestionPattern) -> bool:
    """Return whether claims say the name whose meaning is asked for."""
    return any(is_named_in(name, claim.text) for claim in claims for name in pattern.entities)
