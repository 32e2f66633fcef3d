"""Questions are answered from corpora without a model, as independent scripts computed the answers, or not at all.

Half a minute on a slow machine: the World Factbook is rendered and indexed once.
"""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import pytest

from smart_model_router_research.deep import OfflineAnswer, answer_offline, check_claim
from smart_model_router_research.deep.claims import ClaimKind
from smart_model_router_research.deep.corpus_search import CorpusSearch
from smart_model_router_research.deep.inferences import recompute
from tests.fixtures.research.judging import HERE, Row, ask_all, corpus, factbooks, is_right, rows_of

Judged = list[tuple[Row, OfflineAnswer]]


@pytest.fixture(scope="module")
def countries(tmp_path_factory: pytest.TempPathFactory) -> list[CorpusSearch]:
    """The World Factbook and its extract of 2015."""
    return asyncio.run(factbooks(tmp_path_factory.mktemp("corpora")))


@pytest.fixture(scope="module")
def thirty(countries: list[CorpusSearch]) -> Judged:
    """The 30 questions about countries, answered."""
    return asyncio.run(ask_all(rows_of("factbook"), countries))


@pytest.fixture(scope="module")
def versions(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """Questions about versions, answered from eight files of Python's documentation."""
    folder = tmp_path_factory.mktemp("docs") / "python"
    folder.symlink_to(HERE / "python_docs")
    return asyncio.run(_asked_of(folder))


async def _asked_of(folder: Path) -> Judged:
    return await ask_all(rows_of("version_sample"), [await corpus(folder)])


def test_of_thirty_questions_about_countries_28_are_answered_rightly(thirty: Judged) -> None:
    """Single facts, two steps, contradictions with both values, and the newer of two values that differ in time."""
    wrong = [row["question"] for row, answer in thirty if not is_right(row, answer)]

    assert len(wrong) <= 2, wrong


def test_what_the_sources_do_not_say_is_not_found(thirty: Judged) -> None:
    """All four questions without an answer are given none."""
    unanswerable = [answer for row, answer in thirty if row["kind"] == "unanswerable"]

    assert [answer.not_found for answer in unanswerable] == [("q1",)] * 4


def test_an_older_value_is_kept_and_does_not_answer(thirty: Judged) -> None:
    """Of two values of one thing the newer one answers; the claim of the older one is there to be shown."""
    stale = [(row, answer) for row, answer in thirty if row["kind"] == "stale"]

    assert len(stale) == 4
    for row, answer in stale:
        assert not any(value.startswith(row["old"]) for value in answer.values)
        assert any(claim.value.startswith(row["old"]) for claim in answer.claims)


def test_every_claim_follows_from_its_quote_or_is_computed_again(thirty: Judged) -> None:
    """Quotes stand in the stored documents, are 300 characters at most, and vouch for the claim."""
    for _, answer in thirty:
        documents = {document.id: document for document in answer.documents}
        known = {claim.id: claim for claim in answer.claims}
        for claim in answer.claims:
            if claim.kind is ClaimKind.INFERENCE:
                assert recompute(claim, known).status is claim.status
                continue
            [evidence] = claim.evidence
            document = documents[evidence.doc_id]
            assert len(evidence.quote) <= 300
            assert check_claim(claim.text, evidence.quote, document.text, document.title).status == "supported"


def test_other_questions_of_the_same_kinds_are_answered_too(countries: list[CorpusSearch]) -> None:
    """Of a sample of 212 questions that no rule was written for nine of ten are right, and none is invented."""
    rows = sorted(rows_of("factbook_more"), key=lambda row: hashlib.sha256(row["question"].encode()).digest())
    judged = asyncio.run(ask_all(rows[:40], countries[:1]))

    assert sum(is_right(row, answer) for row, answer in judged) >= 36
    assert not [row for row, answer in judged if row["kind"] == "unanswerable" and answer.answers]


def test_versions_are_told_from_notes_on_them(versions: Judged) -> None:
    """Of 138 questions for a version 65 % are answered, and 96 % of the answers are right."""
    answered = [(row, answer) for row, answer in versions if answer.answers]

    assert len(answered) >= 0.65 * len(versions)
    assert sum(is_right(row, answer) for row, answer in answered) >= 0.96 * len(answered)


def test_the_same_question_has_the_same_answer(countries: list[CorpusSearch]) -> None:
    """Claims, quotes and their order are the same each time."""
    question = "What is the capital of the country that borders Spain and France?"

    async def ask() -> list[OfflineAnswer]:
        return [await answer_offline(question, countries) for _ in range(2)]

    one, other = asyncio.run(ask())

    assert one == other
    assert "Andorra la Vella" in one.values


def test_a_blank_topic_is_refused() -> None:
    """The error says what a topic is for."""
    with pytest.raises(ValueError, match="blank"):
        asyncio.run(answer_offline(" ?! ", []))
