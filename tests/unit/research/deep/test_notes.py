"""Questions in everyday words, asked of a folder of notes as a user writes them."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from smart_model_router_research.deep import OfflineAnswer, answer_offline, find_contradictions
from smart_model_router_research.deep.corpus_search import CorpusSearch
from tests.fixtures.research.judging import HERE, Row, corpus, says

NOTES = HERE / "notes"
ROWS: list[Row] = [json.loads(line) for line in (NOTES / "questions.jsonl").read_text("utf-8").splitlines()]
ANSWERED = [row for row in ROWS if row["kind"] not in ("contradiction", "unanswerable")]
UNANSWERABLE = [row for row in ROWS if row["kind"] == "unanswerable"]


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> CorpusSearch:
    """The notes, indexed."""
    folder: Path = tmp_path_factory.mktemp("everyday") / "notes"
    shutil.copytree(NOTES, folder, ignore=shutil.ignore_patterns("*.jsonl"))
    return asyncio.run(corpus(folder))


def ask(row: Row, notes: CorpusSearch) -> OfflineAnswer:
    """Ask the question of a row."""
    return asyncio.run(answer_offline(row["question"], [notes]))


@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: row["id"])
def test_a_statement_that_says_it_in_other_words_answers(notes: CorpusSearch, row: Row) -> None:
    """A question is answered by the sentence, item or row that has the answer, or by two of them, and no other."""
    answer = ask(row, notes)

    assert (len(answer.answers["q1"]), says(row, answer)) == (1, True)


def test_two_documents_that_differ_both_answer_and_contradict_each_other(notes: CorpusSearch) -> None:
    """Thirty days in one note and ninety in another are both claimed, and found to be a contradiction."""
    [row] = [row for row in ROWS if row["kind"] == "contradiction"]

    answer = ask(row, notes)

    assert sorted(answer.values) == ["30 days", "90 days"]
    [contradiction] = find_contradictions(answer.claims)
    assert {contradiction.one, contradiction.other} == {claim.id for claim in answer.claims}


@pytest.mark.parametrize("row", UNANSWERABLE, ids=lambda row: row["id"])
def test_what_the_notes_do_not_say_is_not_found(notes: CorpusSearch, row: Row) -> None:
    """A question about another thing, another attribute or another time than the notes have is not answered."""
    assert ask(row, notes).not_found == ("q1",)
