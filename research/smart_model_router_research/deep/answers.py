"""The answer to a question that one statement gives, if any. Everything that the question names has to be there."""

from __future__ import annotations

from smart_model_router_research.deep.found_answers import FoundAnswer, ReadDocument
from smart_model_router_research.deep.labelled_answers import answer_by_label, answer_by_row, says_label
from smart_model_router_research.deep.questions import QuestionPattern, Wanted
from smart_model_router_research.deep.sentence_answers import answer_by_sentence
from smart_model_router_research.deep.statements import Statement, StatementKind
from smart_model_router_research.deep.version_answers import answer_by_version
from smart_model_router_research.deep.vouching import Vouching, vouching_of

LEAST_COVERAGE = 0.8
"""The share of a question's words, by weight, that a statement and what it stands under have to vouch for."""


def answer_in(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, topics: frozenset[str] = frozenset()
) -> FoundAnswer | None:
    """Return the answer that a statement gives, with a score that compares with those of other statements.

    `topics` are names, in lower case, that all documents are about: they need no mention.
    """
    match = vouching_of(statement, pattern, document, topics)
    if match is None or match.coverage < LEAST_COVERAGE:
        return None
    if pattern.wanted is Wanted.VERSION:
        return answer_by_version(statement, pattern, document, match, topics)
    if statement.kind is StatementKind.VERSION:
        return _dated(statement, pattern, document, match, topics)
    if statement.kind is StatementKind.ROW:
        return answer_by_row(statement, pattern, document, match)
    if statement.kind is StatementKind.LABELLED:
        found = answer_by_label(statement, pattern, document, match)
        # What a label says of its page is not said of whatever else the value names.
        if found is not None or (match.inner and says_label(statement, pattern)):
            return found
    return answer_by_sentence(statement, pattern, document, match)


def _dated(
    statement: Statement, pattern: QuestionPattern, document: ReadDocument, match: Vouching, topics: frozenset[str]
) -> FoundAnswer | None:
    """A note on a version read as a sentence, for "when was X added"."""
    if pattern.wanted is not Wanted.DATE:
        return None
    return answer_by_version(statement, pattern, document, match, topics)
