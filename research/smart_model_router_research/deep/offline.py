"""A question answered from corpora without a model: searched, read, joined where it takes two steps, or not found."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from smart_model_router_research.deep.analysts import answers_of, standing
from smart_model_router_research.deep.asked_choices import is_choice
from smart_model_router_research.deep.asked_extremes import (
    can_compare,
    compared_measure,
    name_and_number,
    set_and_measure,
    without_superlative,
)
from smart_model_router_research.deep.asked_relations import (
    AskedRelation,
    asked_relation,
    dates_release,
    is_name,
    is_of_release,
    nested_question,
    release_asked_for,
)
from smart_model_router_research.deep.claims import ClaimKind, ResearchClaim, SubQuestion
from smart_model_router_research.deep.fitting import says, telling_words
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import FoundAnswer
from smart_model_router_research.deep.inferences import Operation
from smart_model_router_research.deep.labels import SYMMETRIC
from smart_model_router_research.deep.listed_pairs import MAX_MEMBERS, best_of_each, mirrored, pairs_in
from smart_model_router_research.deep.matching import stems_of
from smart_model_router_research.deep.naming import is_named_in
from smart_model_router_research.deep.nearest_answers import is_weak, names_near
from smart_model_router_research.deep.questions import (
    GAP,
    QuestionPattern,
    Wanted,
    read_question,
)
from smart_model_router_research.deep.session import MANY_HITS, TITLE_HITS, DocumentSearch, SearchSession
from smart_model_router_research.deep.sources import StoredDocument
from smart_model_router_research.deep.topics import plan_questions
from smart_model_router_research.deep.values import items_of, versions_in
from smart_model_router_research.deep.version_answers import (
    DATE_OF_RELEASE,
    asks_date_of_release,
    dates_of_release,
    is_below_release,
)

AT_ONCE = 0.7
"""The share of the words of a question of two steps that one statement says which answers it."""


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


class OfflineSession(SearchSession):
    """A session that answers: it joins, compares and counts claims where a question takes more than one."""

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
        self._met.clear()
        if asked := await self._asked_before(pattern):
            return asked
        if asks_date_of_release(pattern.text) and (dated := await self._dated(pattern)):
            return dated
        if (in_steps := await self._in_steps(pattern)) is not None:
            return in_steps
        if pattern.rivals:
            return await self._compared(pattern) or (await self._nearest(pattern) if is_choice(pattern.text) else [])
        if pattern.superlative is not None and (found := await self._extreme(pattern)):
            return found
        if pattern.superlative is not None and (found := self._over_table(pattern)):
            return found
        if pattern.superlative is not None and set_and_measure(pattern)[0]:
            return []
        direct = await self._direct(pattern) or await self._counted(pattern)
        if pattern.wanted is Wanted.DEFINITION:
            return direct if _names_entity(direct, pattern) else await self._defined(pattern) or direct
        if direct and not all(is_weak(claim, pattern) for claim in direct):
            return self._with_rivals(direct, pattern)
        if listed := await self._listed(pattern):
            return listed
        near = await self._nearest(pattern)
        found = self._with_rivals(near or self._property(pattern), pattern)
        return found or self._over_table(pattern) or await self._nested(pattern)

    async def _dated(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the date of a release by the heading of a changelog."""
        found = dates_of_release(pattern.text, await self._read(pattern.text, MANY_HITS))
        return [claim for each in found if (claim := self._drafted(each, replace(pattern, wanted=Wanted.DATE)))]

    async def _in_steps(self, pattern: QuestionPattern) -> list[ResearchClaim] | None:
        """Return what is found of a thing that a clause describes, none where nothing is; None without such a clause.

        What a clause without a name describes may also be said in other words: None where it is not found.
        """
        if clause := release_asked_for(pattern.text):
            return await self._release_date(clause)
        if not pattern.clause or pattern.superlative is not None:
            return None
        if pattern.is_named:
            return await self._joined(pattern) or await self._at_once(pattern)
        return await self._joined_by_words(pattern) or None

    async def _release_date(self, clause: str) -> list[ResearchClaim]:
        """Return when the one release came out that did what a clause says."""
        firsts = standing(await self.answer(read_question(f"Which version {clause}")))
        version = next(versions_in(firsts[0].value), None) if len(firsts) == 1 else None
        if version is None or not (
            is_of_release(firsts[0].evidence, version.text) or is_below_release(firsts[0].text, version.text)
        ):
            return []
        seconds = standing(await self.answer(read_question(f"When was version {version.text} released")))
        if len(seconds) != 1 or not (
            seconds[0].attribute == DATE_OF_RELEASE or dates_release(seconds[0].evidence, version.text)
        ):
            return []
        first = replace(firsts[0], value=version.text, entity=f"the release that {clause}", attribute="version")
        second = replace(seconds[0], entity=version.text, attribute="date", other="")
        known = {first.id: first, second.id: second}
        self.claims = [known.get(claim.id, claim) for claim in self.claims]
        return self._inferred(Operation.JOIN, [first, second], f"version that {clause} in these sources")

    async def _nested(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return what is said of "the captain of X", asked for first, where that is one thing that nothing disputes."""
        if (nested := nested_question(pattern.text)) is None:
            return []
        for word in ("Who", "What"):
            inner = standing(await self.answer(read_question(f"{word} is {nested.inner}")))
            if len(inner) > 1:
                return []
            if not inner or inner[0].kind is ClaimKind.INFERENCE or not is_name(inner[0].value):
                continue
            outer = await self.answer(read_question(nested.outer.replace(GAP, inner[0].value)))
            seconds = [claim for claim in standing(outer) if claim.kind is not ClaimKind.INFERENCE]
            if len(seconds) != 1:
                return []
            relation = asked_relation(f"What is {nested.inner}") or AskedRelation(nested.inner.removeprefix("the "))
            holder = f"the {relation.holder}" if f" the {relation.holder}" in nested.inner else relation.holder
            first = replace(inner[0], entity=holder or inner[0].value, attribute=relation.property)
            said = seconds[0].attribute or " ".join(telling_words(nested.outer.replace(GAP, "")))
            second = replace(seconds[0], entity=inner[0].value, attribute=said, other="")
            known = {first.id: first, second.id: second}
            self.claims = [known.get(claim.id, claim) for claim in self.claims]
            return self._inferred(Operation.JOIN, [first, second], f"{nested.inner} in these sources")
        return []

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

    async def _at_once(self, pattern: QuestionPattern) -> list[ResearchClaim]:
        """Return the claims that say by themselves what a question of two steps asks, with those that dispute them."""
        claims = await self._nearest(pattern)
        words = telling_words(pattern.text)
        said = [(claim, stems_of(claim.text)) for claim in claims]
        found = [claim for claim, stems in said if sum(says(word, stems) for word in words) >= AT_ONCE * len(words)]
        self.claims = [claim for claim in self.claims if claim not in claims or claim in found]
        return self._with_rivals(found, pattern)

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
