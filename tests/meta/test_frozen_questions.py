"""The frozen corpus and its questions are as they were when they were frozen, and each question has its proof."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from typing import Any

import pytest

from tests.meta.repository import ROOT

FROZEN = ROOT / "tests" / "fixtures" / "research" / "frozen"
PAGES = {path.name: path.read_text(encoding="utf-8") for path in sorted((FROZEN / "corpus").glob("*.md"))}
QUESTIONS: list[dict[str, Any]] = [
    json.loads(line) for line in (FROZEN / "questions.jsonl").read_text(encoding="utf-8").splitlines()
]
UNANSWERABLE = [question for question in QUESTIONS if question["kind"] == "unanswerable"]
ANSWERABLE = [question for question in QUESTIONS if question["kind"] != "unanswerable"]


def lines(page: str, first: int, last: int) -> str:
    """Return the lines of a page from `first` to `last`, counted from 1, both included."""
    return "\n".join(PAGES[page].split("\n")[first - 1 : last])


def numbers(text: str) -> set[float]:
    """Return the numbers written in `text`, with or without commas between thousands."""
    return {float(found.replace(",", "")) for found in re.findall(r"\d[\d,]*(?:\.\d+)?", text)}


def holds(proof: str, kind: str, answers: Any) -> bool:
    """Return whether the lines of a proof hold an accepted answer: of a list all items, of a number its value."""
    if kind == "number":
        return answers["value"] in numbers(proof)
    return (all if kind == "list" else any)(answer in proof for answer in answers)


def test_the_files_have_their_recorded_hashes() -> None:
    """A later edit of a page or a question shows, and no page came or went."""
    recorded = [line.split("  ") for line in (FROZEN / "SHA256SUMS").read_text(encoding="utf-8").splitlines()]
    found = {name: hashlib.sha256((FROZEN / name).read_bytes()).hexdigest() for _, name in recorded}
    assert found == {name: digest for digest, name in recorded}
    assert set(found) == {"questions.jsonl", *(f"corpus/{name}" for name in PAGES)}


def test_the_mix_of_kinds() -> None:
    """Of 50 questions 10 have no answer, and every other kind occurs three times at least."""
    kinds = Counter(question["kind"] for question in QUESTIONS)
    answerable = ("fact", "number", "date", "version", "comparison", "two_hop", "superlative", "list")
    assert (sum(kinds.values()), kinds["unanswerable"]) == (50, 10)
    assert set(kinds) == {*answerable, "unanswerable"}
    assert min(kinds[kind] for kind in answerable) >= 3


def test_ids_and_questions_are_distinct() -> None:
    """The ids count from q01, and no question is asked twice."""
    assert [question["id"] for question in QUESTIONS] == [f"q{number:02}" for number in range(1, 51)]
    assert len({question["question"] for question in QUESTIONS}) == 50


@pytest.mark.parametrize("question", ANSWERABLE, ids=lambda question: question["id"])
def test_the_proof_holds_the_answer(question: dict[str, Any]) -> None:
    """The line named as proof holds an accepted answer: the number, every item of a list, or one of the texts."""
    proof = lines(question["page"], question["line"], question.get("last_line", question["line"]))
    assert holds(proof, question["kind"], question["answers"])


@pytest.mark.parametrize("question", [row for row in ANSWERABLE if "via" in row], ids=lambda question: question["id"])
def test_each_further_premise_is_there(question: dict[str, Any]) -> None:
    """Each line that an answer needs besides its proof holds the text it is needed for."""
    missing = [need for need in question["via"] if need["holds"] not in lines(need["page"], need["line"], need["line"])]
    assert missing == []


@pytest.mark.parametrize("kind", ["two_hop", "superlative"])
def test_an_answer_over_several_lines_names_them(kind: str) -> None:
    """An answer that follows from several lines names more than one."""
    assert all(question["via"] for question in ANSWERABLE if question["kind"] == kind)


@pytest.mark.parametrize("question", UNANSWERABLE, ids=lambda question: question["id"])
def test_no_page_answers_the_unanswerable(question: dict[str, Any]) -> None:
    """None of the texts that would answer it is on any page, in any case of letters."""
    assert question["answers"] == []
    assert question["absent"]
    everything = "\n".join(PAGES.values()).lower()
    assert [text for text in question["absent"] if text.lower() in everything] == []


def test_links_between_pages_lead_somewhere() -> None:
    """A link to a Markdown page leads to a page of the corpus."""
    targets = {target for text in PAGES.values() for target in re.findall(r"\]\(([\w-]+\.md)\)", text)}
    assert targets <= set(PAGES)
