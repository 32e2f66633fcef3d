"""Models, routers and documents that are worse than wrong: a run with them has what it has without a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

import pytest

from smart_model_router import RequestOptions, RouterReply
from smart_model_router_research.deep.claims import SourceTier
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.model_forms.proposals import MOST_STATEMENTS, statements_with
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_research.pipeline.run_inputs import ResearchBudget
from tests.drawn_research_worlds import FewPages
from tests.research_worlds import page
from tests.scripted_models import EMPTY, Reply, ScriptedRouter, Shown, competent
from tests.unit.research.pipeline.test_model_runs import KILN, KILN_DAY, KNOWN, LOAN, PAGES, run

TOPIC = f"{KILN_DAY} {LOAN}"


class RaisingRouter:
    """A router that raises what no router of ours raises."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    async def chat(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
        """Raise the error."""
        del body, options
        raise self.error


@pytest.mark.parametrize("error", [RuntimeError("it is closed"), KeyError("x"), OSError(5, "no"), ValueError("\ud800")])
def test_a_router_that_raises_anything_loses_no_answer(tmp_path: Path, error: Exception) -> None:
    """The router of a program may be closed, or be of another make: each step goes on without it, and says so."""
    without, found = run(tmp_path / "a", TOPIC, None), run(tmp_path / "b", TOPIC, RaisingRouter(error))

    assert (found.answers, found.status, found.delivery) == (without.answers, without.status, without.delivery)
    assert any(type(error).__name__ in note for note in found.model_notes)


def test_a_router_that_keeps_no_time_leaves_its_time_to_the_others(tmp_path: Path) -> None:
    """Its timeout is not all that ends a call: one that never returns is broken off."""

    class Hanging(ScriptedRouter):
        async def chat(self, body: Mapping[str, Any], **options: Unpack[RequestOptions]) -> RouterReply:
            options["timeout"] = 1e9
            return await super().chat(body, **options)

    without = run(tmp_path / "a", TOPIC, None)
    found = run(tmp_path / "b", TOPIC, Hanging(competent(KNOWN), seconds=1e8))

    assert (found.answers, found.stop_reason) == (without.answers, without.stop_reason)


def test_half_a_character_in_a_document_stops_no_verification(tmp_path: Path) -> None:
    """A document of a broken charset is shown to the verifier beside others."""
    broken = page("broken.md", "# Bro\ud800ken\n\nThe oven \ud800 is lit at noon by hand.\n")
    pages = [broken, *PAGES]
    without = run(tmp_path / "a", TOPIC, None, pages)
    found = run(tmp_path / "b", TOPIC, ScriptedRouter(competent(KNOWN), other="q/v"), pages)

    assert set(found.answers) == {*without.answers, "Loans last three weeks."}


@pytest.mark.parametrize(
    ("kiln", "library", "tier"),
    [("2026-06-01", "2019-01-01", SourceTier.B), ("2019-06-01", "2026-06-01", SourceTier.A)],
    ids=["an old page of tier B", "a recent page"],
)
def test_the_source_of_what_one_model_alone_chose_counts_nowhere(
    tmp_path: Path, kiln: str, library: str, tier: SourceTier
) -> None:
    """It makes no report older, and none more recent: tier and date of that source are in no metric."""
    pages = [
        page("kiln.md", KILN, kiln),
        page("library.md", "# Library\n\nLoans last three weeks.\n", library, tier=tier),
    ]
    without = run(tmp_path / "a", TOPIC, None, pages)
    found = run(tmp_path / "b", TOPIC, ScriptedRouter(competent(KNOWN)), pages)

    assert "Loans last three weeks." in found.answers
    assert found.quality_metadata["best_ci_achieved"] == without.quality_metadata["best_ci_achieved"]
    assert found.quality_metadata["failing_metrics"] == without.quality_metadata["failing_metrics"]


def test_a_quote_of_one_letter_is_looked_for_in_few_statements() -> None:
    """It is a part of every statement: each would be read as an answer to each part of the question."""
    text = "# Road\n\n" + "\n\n".join(f"Stone {at} stands at the road." for at in range(100))
    document = ReadDocument(page("road.md", text).stored, "road.md")

    assert len(statements_with("s", document)) == MOST_STATEMENTS
    assert [each.text for each in statements_with("Stone 73 stands at the road.", document)] == [
        "Stone 73 stands at the road."
    ]


def test_code_agrees_with_no_statement_that_says_less_of_the_question_than_another(tmp_path: Path) -> None:
    """The word of the question stands in the heading alone: one model's choice of that statement answers nothing."""
    pages = [page("fees.md", "# Fees\n\nThe yearly fee is 85 euros.\n\nChildren pay 20 euros.\n")]
    question = "How much is the fee of a year?"
    topic = f"How much is the yearly fee? {question}"
    router = ScriptedRouter(competent({question: ["Children pay 20 euros."]}))
    without, found = run(tmp_path / "a", topic, None, pages), run(tmp_path / "b", topic, router, pages)

    assert "Children pay 20 euros." in found.answers
    assert found.delivery == without.delivery != "full"
    assert [each.openness for each in found.unanswered] == ["judged_by_a_model"]


def test_a_heading_without_an_end_uses_up_no_budget(tmp_path: Path) -> None:
    """Of titles and headings a model sees their beginning."""
    pages = [page("long.md", f"# {'T' * 3_000_000}\n\nThe oven is lit at noon.\n"), *PAGES]
    found = run(tmp_path, TOPIC, ScriptedRouter(competent(KNOWN), other="q/v"), pages)

    assert found.status == "completed"


def _searching(name: str, shown: Shown, number: int) -> Reply:
    """Search for something new with every call, and claim nothing."""
    if name == "tree.v1":
        to = shown["questions"][0]["id"]
        queries = [{"question": to, "text": f"note word{number * 20 + at}", "purpose": "background"} for at in range(6)]
        return {"branches": [{"hypothesis": "h", "queries": queries, "evidence": 1, "novelty": 1, "cost": 0}]}
    if name == "reader.v1":
        return {"thought": "More.", "action": "search", "argument": f"note word{number + 100}"}
    return EMPTY[name]


@pytest.mark.parametrize(
    "budget", [ResearchBudget(), ResearchBudget(searches=54), ResearchBudget(fetches=6)], ids=["default", "few", "read"]
)
def test_a_model_that_searches_without_an_end_takes_no_search_away(tmp_path: Path, budget: ResearchBudget) -> None:
    """Twelve questions, of which other words in later rounds answer one: the model has limits of its own."""
    topic = " ".join(f"What is the population of {letter}land?" for letter in "ABCDEFGHIJKL")
    pages = [
        page("aland.md", "# Aland\n\nThe population of Aland is told elsewhere.\n"),
        page("people.md", "# Aland people\n\nAland: inhabitants, residents.\n\nPopulation: 2,000,000\n"),
        *(page(f"n{at}.md", f"# Note {at}\n\nThis note has word{at} in it.\n") for at in range(200)),
    ]

    def runs(folder: Path, router: ScriptedRouter | None) -> ResearchResult:
        search = FewPages(pages, hits=1)
        return run(folder, topic, router, pages, budget=budget, search=search)

    without, found = runs(tmp_path / "a", None), runs(tmp_path / "b", ScriptedRouter(_searching))

    assert len(without.answers) == 1
    assert (found.answers, found.status, found.stop_reason) == (without.answers, without.status, without.stop_reason)
    assert without.usage["searches"] < found.usage["searches"] <= budget.searches
    assert without.usage["documents"] < found.usage["documents"] <= budget.fetches
