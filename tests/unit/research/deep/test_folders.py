"""Questions on folders that users wrote: a right answer, both sides of a contradiction, or none; never a wrong one."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from smart_model_router_research.deep import OfflineAnswer, answer_offline, find_contradictions
from smart_model_router_research.deep.corpus_search import CorpusSearch
from tests.fixtures.research.judging import FOLDERS, Row, corpus, folder_rows, verdict_of

NAMES = sorted(folder.name for folder in FOLDERS.iterdir() if folder.is_dir())
ROWS = [row | {"folder": name} for name in NAMES for row in folder_rows(name)]
UNANSWERABLE = [row for row in ROWS if row["kind"] == "unanswerable"]
DISPUTED = [row for row in ROWS if row["kind"] == "contradiction"]
ANSWERED = [row for row in ROWS if row["kind"] not in ("contradiction", "unanswerable")]
LEAST_ANSWERED = 0.8
LEAST_SHOWN = 0.75
Judged = dict[str, str]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Judged:
    """The verdict on each question, by its id."""

    async def judge(folder: Path, rows: list[Row]) -> Judged:
        searched: CorpusSearch = await corpus(folder)
        return {row["id"]: verdict_of(row, await answer_offline(row["question"], [searched])) for row in rows}

    found: Judged = {}
    for name in NAMES:
        folder = tmp_path_factory.mktemp("folders") / name
        shutil.copytree(FOLDERS / name, folder, ignore=shutil.ignore_patterns("*.jsonl"))
        found |= asyncio.run(judge(folder, folder_rows(name)))
    return found


@pytest.mark.parametrize("row", UNANSWERABLE, ids=lambda row: row["id"])
def test_another_property_subject_role_or_time_is_no_answer(verdicts: Judged, row: Row) -> None:
    """Weight is not cost, the deputy of Omar is not the one that Omar is deputy of, and a plan is no fact."""
    assert verdicts[row["id"]] == "right"


@pytest.mark.parametrize("row", DISPUTED, ids=lambda row: row["id"])
def test_where_two_notes_disagree_neither_answers_alone(verdicts: Judged, row: Row) -> None:
    """Yes against no, a cell against prose, another wording, words against digits: both are claimed, or neither."""
    assert verdicts[row["id"]] != "wrong"


@pytest.mark.parametrize("row", ANSWERED, ids=lambda row: row["id"])
def test_what_is_answered_is_right(verdicts: Judged, row: Row) -> None:
    """An answer says what was asked, and nothing contradicts it."""
    assert verdicts[row["id"]] != "wrong"


def test_care_does_not_silence_the_answers(verdicts: Judged) -> None:
    """Four of five questions are answered: lists, counts, extremes, two steps, FAQs; most contradictions are shown."""
    answered = [row for row in ANSWERED if verdicts[row["id"]] == "right"]
    shown = [row for row in DISPUTED if verdicts[row["id"]] == "right"]

    assert len(answered) >= LEAST_ANSWERED * len(ANSWERED)
    assert len(shown) >= LEAST_SHOWN * len(DISPUTED)


def test_what_a_list_names_in_several_places_disputes_nothing(tmp_path: Path) -> None:
    """Neighbours that two pages name, each with its own border, are no contradiction."""
    pages = {"arland": "Borland 447 km; Corland 327 km", "borland": "Arland 447 km", "corland": "Arland 327 km"}
    folder = tmp_path / "pages"
    folder.mkdir()
    for name, borders in pages.items():
        (folder / f"{name}.md").write_text(f"# {name.title()}\n\nBorder countries: {borders}\n", encoding="utf-8")

    answer = asyncio.run(ask(folder, "Which countries border Arland?"))

    assert answer.answers
    assert not find_contradictions(answer.claims)


def test_a_page_of_mayors_does_not_make_everyone_on_it_the_mayor(tmp_path: Path) -> None:
    """The mayor of Altona was born when the mayor was, and not when a man born in Altona was."""
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "mayors.md").write_text("# Mayors\n\nJon Pike was born in 1965 in Altona.\n", encoding="utf-8")

    assert not asyncio.run(ask(folder, "When was the mayor of Altona born?")).answers


async def ask(folder: Path, question: str) -> OfflineAnswer:
    """Ask one question of a folder."""
    return await answer_offline(question, [await corpus(folder)])
