"""The claims that models propose: each is one statement of a source, found again by code and checked as every claim.

A model chooses the statement and may say it in its words; value, entity, tier and date are read by code. It answers a
question only where it says the names and numbers of the question, and has a value of the kind that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from smart_model_router_research.deep.analysts import ClaimDrafter, answers_of
from smart_model_router_research.deep.asked_values import AskedKind, asked_value
from smart_model_router_research.deep.claims import ResearchClaim, SourceTier
from smart_model_router_research.deep.fitting import is_said, telling_words
from smart_model_router_research.deep.folding import fold
from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument, exactly_named, is_longer
from smart_model_router_research.deep.naming import is_named_in
from smart_model_router_research.deep.nearest_answers import chosen_answer
from smart_model_router_research.deep.questions import QuestionPattern, read_question
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.vouching import split_entity
from smart_model_router_research.model_forms.passages import SourcePassage
from smart_model_router_research.model_forms.questions_asked import AskedQuestion
from smart_model_router_research.model_forms.replies import DraftedClaim

_ACTIVE = re.compile(r"://|</?[a-z!]", re.IGNORECASE)
_LABELLED = (StatementKind.LABELLED, StatementKind.ROW)
"""Statements that name what they say."""
MOST_QUOTE = 600
"""Characters of a quote that are looked for: a model may copy more than it was asked for."""

MOST_COMPARED = 60
"""Statements that say more of a question than a proposed one, of which none may answer it."""
MOST_STATEMENTS = 6
"""Statements that a quote is looked for in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedClaim:
    """A claim that a model proposes for a question, whose id it has; `asked` is that question, or a part of it.

    `headings` stand above the statement. `is_said` says that code finds all that is asked in it, too. A label or a row
    (`is_label`) of which it does not needs a second provider to be shown at all: each would fit some question.
    """

    claim: ResearchClaim
    asked: str
    headings: str
    is_said: bool
    is_label: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedClaims:
    """The claims that a model proposes in one step."""

    claims: tuple[ProposedClaim, ...] = ()


def proposed(
    drafted: DraftedClaim,
    passage: SourcePassage | None,
    asked: AskedQuestion,
    drafter: ClaimDrafter,
    documents: Sequence[ReadDocument],
) -> ProposedClaim | None:
    """Return the claim of a reply; None where code refuses it.

    `passage` is the one that it names, None where that was not shown. `documents` are all that were read.
    """
    if passage is None or passage.document.stored.tier is SourceTier.C:
        return None
    for text in asked.texts:
        pattern = read_question(text)
        names = [name for name in pattern.entities if not is_longer(name, text)]
        [document] = exactly_named(names, [passage.document], documents)
        for statement in statements_with(drafted.quote, document):
            found = chosen_answer(text, document, document.place_of(statement), documents, drafted.text)
            if found is None or not _names_all(pattern, found) or _is_active(statement, text):
                continue
            is_label = statement.kind in _LABELLED
            by_code = any(one.statement is statement for one in answers_of(document, pattern)) if is_label else None
            if by_code is None:
                by_code = is_said(text, found) and _says_most(text, statement, documents)
            claim = drafter.draft(found, asked.question, pattern.wanted, drafted.text)
            if claim is not None:
                above = " > ".join(dict.fromkeys((document.stored.title, *statement.scope)))
                return ProposedClaim(claim=claim, asked=text, headings=above, is_said=by_code, is_label=is_label)
    return None


def _says_most(question: str, statement: Statement, documents: Sequence[ReadDocument]) -> bool:
    """Return whether no other statement that may answer says more words of a question than this one does itself."""
    words = telling_words(question)
    mine = sum(word in statement.own for word in words)
    better = (
        (document, at)
        for document in documents
        for at, each in enumerate(document.statements)
        if sum(word in each.own for word in words) > mine
    )
    others = (chosen_answer(question, document, at, documents) for document, at in islice(better, MOST_COMPARED))
    return not any(found is not None and is_said(question, found) for found in others)


def statements_with(quote: str, document: ReadDocument) -> Sequence[Statement]:
    """Return the statements of a document that a quote is a part of, or that are a part of it, the longest first.

    No more than a few: a quote of one letter is a part of them all.
    """
    wanted = _letters(quote[:MOST_QUOTE])
    if not wanted:
        return []
    found = [(each, _letters(each.text)) for each in document.statements]
    fitting = [(each, said) for each, said in found if said and (wanted in said or said in wanted)]
    fitting.sort(key=lambda pair: -min(len(pair[1]), len(wanted)))
    return [each for each, _ in fitting[:MOST_STATEMENTS]]


def _is_active(statement: Statement, question: str) -> bool:
    """Return whether a statement has an address or a tag that the question does not ask for: it may be planted."""
    return _ACTIVE.search(statement.text) is not None and asked_value(question).kind is not AskedKind.ADDRESS


def _letters(text: str) -> str:
    return "".join(character for character in fold(text).casefold() if character.isalnum())


def _names_all(pattern: QuestionPattern, found: FoundAnswer) -> bool:
    """Return whether a statement, or what it stands under, has the names and numbers of a question.

    The value of a label names what it is about only by chance: its neighbours, say.
    """
    statement, document = found.statement, found.document
    said = " ; ".join(
        (
            "" if statement.kind is StatementKind.LABELLED else statement.text,
            statement.label,
            statement.term,
            statement.lead_in,
            statement.before,
            *statement.scope,
            *document.names,
        )
    )
    if any(name not in statement.text or is_longer(name, statement.text) for name in document.longer_than):
        return False
    names = [part for entity in pattern.entities for part in split_entity(entity)]
    return all(is_named_in(name, said) for name in names) and all(number in said for number in pattern.numbers)
