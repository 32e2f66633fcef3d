"""Runs of research over small worlds, on both engines: the steps that run, what is delivered, and what is left."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.testing import LoopClock
from smart_model_router_research.deep import SourceTier, verify
from smart_model_router_research.engine import MemoryRunStore, StepState
from smart_model_router_research.pipeline.analyst_step import analyse_documents
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_research.pipeline.recorded_search import RecordingSearch, SearchLedger
from smart_model_router_research.pipeline.research_events import ResearchEvent
from smart_model_router_research.pipeline.run_inputs import AnalystRole, ResearchBudget
from smart_model_router_research.pipeline.search_time import SearchTime
from smart_model_router_research.pipeline.step_kinds import RESEARCH_KINDS
from smart_model_router_research.pipeline.tools import tools_of
from smart_model_router_research.pipeline.workflow_file import workflow_text
from smart_model_router_research.workflow import StepInput, StepKind, parse_workflow
from tests.research_worlds import ENGINES, PAGES, EndlessSearch, ListedSearch, comparable, inputs, lie, page, research

pytestmark = pytest.mark.parametrize("engine", ENGINES)


def run(folder: Path, engine: str, topic: str, search: Any = None, **others: Any) -> tuple[ResearchResult, set[str]]:
    """Return the result of a run, and the steps that ran."""

    async def main() -> tuple[ResearchResult, set[str]]:
        store = MemoryRunStore()
        found = await research(folder, engine, search, store, others.pop("workflow", None)).run(
            inputs(topic, **others), "run"
        )
        steps = (await store.load("run")).steps
        return found, {name for name, step in steps.items() if step.result.state is StepState.SUCCEEDED}

    return asyncio.run(main())


def said(found: ResearchResult) -> list[str]:
    """Return what a result says of the questions that it does not answer."""
    return [each.sentence for each in found.unanswered]


def test_a_round_that_passes_is_the_last_one(tmp_path: Path, engine: str) -> None:
    """11 steps: planning, one round, the end."""
    found, ran = run(tmp_path, engine, "What is the capital of Arland?")

    assert (found.status, found.delivery, found.stop_reason) == ("completed", "full", "passed")
    assert found.answers == ("Capital of Arland: Arville",)
    assert len(ran) == 11
    assert verify(tmp_path / "run").is_sound


def test_a_question_that_is_not_found_is_asked_twice(tmp_path: Path, engine: str) -> None:
    """17 steps: the second round, in other words, brings nothing new."""
    found, ran = run(tmp_path, engine, "What is the currency of Arland?")

    assert (found.status, found.delivery, found.stop_reason) == ("completed", "withheld", "no_progress")
    assert said(found) == ["Not found in these sources: What is the currency of Arland?"]
    assert "Not found in these sources." in found.report
    assert len(ran) == 17
    assert verify(tmp_path / "run").is_sound


def test_undated_sources_are_named_as_the_reason_for_less(tmp_path: Path, engine: str) -> None:
    """Above the answer, with what would change it; what a person reads of method comes after the sources."""
    undated = ListedSearch([page(path, text, "") for path, text in PAGES.items()])
    found, _ = run(tmp_path, engine, "Which countries border Corland?", undated)
    above, _, below = found.report.partition("## Answer")

    assert found.delivery == "moderate"
    assert "None of its sources has a known date" in above
    assert below.index("## Sources") < below.index("## Confidence and method")
    assert below.count("Confidence: moderate") == 1


def test_a_finding_says_nothing_twice(tmp_path: Path, engine: str) -> None:
    """An answer, or a finding under another question, is not repeated."""
    run(tmp_path, engine, "Which countries border Corland? How many countries border Corland?")
    report = json.loads((tmp_path / "run" / "claim_graph.json").read_text("utf-8"))["report"]
    texts = [each["text"].casefold().rstrip(".") for section in report["sections"] for each in section["sentences"]]

    assert len(texts) > 1
    assert len(set(texts)) == len(texts)


def test_a_claim_is_an_event_when_it_is_new_or_changed(tmp_path: Path, engine: str) -> None:
    """A second round, in which nothing happens to it, does not tell it again."""

    async def main() -> list[ResearchEvent]:
        topic = "What is the capital of Arland? What is the currency of Arland?"
        return [each async for each in research(tmp_path, engine).stream(inputs(topic), "run")]

    events = asyncio.run(main())
    claims = [each.data["id"] for each in events if each.kind == "claim"]

    assert [each.data["round"] for each in events if each.kind == "round"] == [1, 2]
    assert claims
    assert len(set(claims)) == len(claims)


def test_old_sources_are_looked_up_once_more(tmp_path: Path, engine: str) -> None:
    """14 steps: to repair recency a second round searches and verifies, and finds nothing of the last half year."""
    old = ListedSearch([page(path, text, "2024-06-01") for path, text in PAGES.items()])
    found, ran = run(tmp_path, engine, "Which countries border Corland?", old)

    assert (found.delivery, found.stop_reason) == ("moderate", "no_progress")
    assert len(ran) == 14
    assert "retrieval_react_r2" in ran
    assert "analyst_ai_r2" not in ran
    assert verify(tmp_path / "run").is_sound


def test_a_recent_source_behind_old_ones_is_found(tmp_path: Path, engine: str) -> None:
    """To repair recency the second round looks deeper, for recent documents alone, and the claim cites them."""
    known = [page(path, text, "2024-06-01") for path, text in PAGES.items()]
    told = "Countries with a border: see Corland."
    old = [*known, *(page(f"{at}.md", f"# Page {at}\n\n{told}\n", "2024-06-01") for at in range(14))]
    new = page("new/corland.md", PAGES["corland.md"], "2026-06-20")
    found, ran = run(tmp_path, engine, "Which countries border Corland?", ListedSearch([*old, new]), max_rounds=2)
    audits = json.loads((tmp_path / "run" / "claim_graph.json").read_text("utf-8"))["rounds"]

    assert "analyst_ai_r2" not in ran
    assert [each["audit"]["recent_source_count"] for each in audits] == [0, 1]
    assert "2026-06-20 (corpus, high)" in found.report
    assert verify(tmp_path / "run").is_sound


def test_a_filtered_search_is_not_the_same_as_one_of_all(tmp_path: Path, engine: str) -> None:
    """A remediation that wants one kind of documents hides the others from no search after it."""
    search = ListedSearch([page("b.md", "# Borland\n\nCapital: Bortown\n", tier=SourceTier.B)])

    async def main() -> list[int]:
        clock = LoopClock()
        record = SearchLedger(10, 10, SearchTime(clock, clock.now() + 9.0, clock.now() + 9.0))
        only = RecordingSearch(0, search, record, "tier_a", lambda document: document.stored.tier is SourceTier.A)
        return [len(await each.search("Capital Borland")) for each in (only, RecordingSearch(0, search, record))]

    assert asyncio.run(main()) == [0, 1]


def test_four_full_rounds_are_the_most(tmp_path: Path, engine: str) -> None:
    """29 steps: each round brings documents, and none of them answers."""
    found, ran = run(tmp_path, engine, "What is the capital of Arland?", EndlessSearch())

    assert (found.status, found.delivery, found.stop_reason) == ("completed", "withheld", "max_rounds")
    assert len(ran) == 29
    assert verify(tmp_path / "run").is_sound


@pytest.mark.parametrize("most", [1, 2, 3])
def test_there_are_no_more_rounds_than_are_allowed(tmp_path: Path, engine: str, most: int) -> None:
    """Each round has 6 steps."""
    found, ran = run(tmp_path, engine, "What is the capital of Arland?", EndlessSearch(), max_rounds=most)

    assert found.stop_reason == "max_rounds"
    assert len(ran) == 5 + 6 * most


def test_a_border_is_confirmed_from_both_sides(tmp_path: Path, engine: str) -> None:
    """The list is taken apart; a pair that both pages tell alike has both as its sources."""
    found, _ = run(tmp_path, engine, "Which countries border Corland?")

    assert found.delivery == "full"
    assert "Border countries of Corland: Arland 120 km [S1] [S2]" in found.report
    assert "Border countries of Arland: Corland" not in found.report


def test_a_contradiction_is_shown_with_both_values(tmp_path: Path, engine: str) -> None:
    """Neither counts, so the question is disputed and not answered."""
    found, _ = run(tmp_path, engine, "How long is the border between Arland and Borland?")

    assert found.delivery == "withheld"
    assert found.answers == ()
    assert said(found) == ["The sources disagree: How long is the border between Arland and Borland?"]
    assert "The sources disagree, and nothing decides between them: see Contradictions." in found.report
    for value in ("447 km", "467 km"):
        assert value in found.report


def test_a_blocked_page_is_not_read(tmp_path: Path, engine: str) -> None:
    """X2: only the other page is; what the page of tier C tells is not found."""
    pages = [page("arland.md", PAGES["arland.md"], tier=SourceTier.C), page("notes.md", PAGES["notes.md"])]
    found, _ = run(tmp_path, engine, "What is the capital of Arland?", ListedSearch(pages))

    assert (found.delivery, found.answers, found.usage["documents"]) == ("withheld", (), 1.0)
    assert "Arville" not in found.report


def test_two_steps_are_joined(tmp_path: Path, engine: str) -> None:
    """The answer is what the second step says, and both claims that it rests on are cited."""
    found, _ = run(tmp_path, engine, "What is the population of the country whose capital is Bortown?")

    assert found.answers
    assert "2,000,000" in found.answers[0]


@pytest.mark.parametrize(
    "topic",
    [
        "What is the population of the country whose capital is Corport?",
        "Which has the larger population, Corland or Arland?",
        "Which country that borders Arland has the largest population?",
    ],
)
def test_half_of_an_answer_is_none(tmp_path: Path, engine: str, topic: str) -> None:
    """The population of Corland is not told: what is told of others on the way to it is not given as the answer."""
    found, _ = run(tmp_path, engine, topic)

    assert found.answers == ()
    assert said(found) == [f"Not found in these sources: {topic}"]


@pytest.mark.parametrize(
    ("limit", "problem"), [("searches", "budget.searches is 1"), ("fetches", "budget.fetches is 1")]
)
def test_a_budget_that_is_used_up_leaves_a_partial_report(
    tmp_path: Path, engine: str, limit: str, problem: str
) -> None:
    """The findings so far are delivered, and the report says which work was not done."""
    topic = "What is the capital of Arland? What is the capital of Borland? What is the capital of Corland?"
    found, _ = run(tmp_path, engine, topic, budget=replace(ResearchBudget(reserve=0.0), **{limit: 1}))

    assert (found.status, found.stop_reason) == ("partial", "budget")
    assert any(problem in each for each in found.problems)
    assert found.report
    assert verify(tmp_path / "run").is_sound


def test_the_engines_write_the_same_bytes(tmp_path: Path, engine: str) -> None:
    """X7: a second run, on the other engine, has the same artefacts but for ids, times and the engine's name."""
    topic = "Which countries border Arland? What is the capital of Borland? What is the currency of Corland?"
    run(tmp_path / "one", engine, topic)
    run(tmp_path / "other", next(each for each in ENGINES if each != engine), topic)

    assert comparable(tmp_path / "one" / "run") == comparable(tmp_path / "other" / "run")


def test_a_run_is_kept_with_its_inputs(tmp_path: Path, engine: str) -> None:
    """The manifest names workflow, engine and stop reason; a person who asks again gets the same result."""

    async def main() -> tuple[ResearchResult, ResearchResult]:
        store = MemoryRunStore()
        runs = research(tmp_path, engine, store=store)
        first = await runs.run(inputs("What is the capital of Arland?"), "run")
        return first, await research(tmp_path, engine, store=store).resume("run")

    first, again = asyncio.run(main())
    facts = json.loads((tmp_path / "run" / "rag_manifest.json").read_text("utf-8"))["run"]

    assert first == again
    assert (facts["workflow"], facts["engine"], facts["stop_reason"]) == ("deep_research", engine, "passed")
    assert facts["usage"] == {"documents": 4.0, "searches": 2.0}


async def fail(step: StepInput) -> Mapping[str, Any]:
    """Draft what the sources say; the analyst of quantities raises."""
    if step.inputs["name"] == "swe":
        raise RuntimeError("the analyst has gone")
    return await analyse_documents(step, tools_of(step, frozenset()))


FAILING = parse_workflow(workflow_text(), "failing.yaml", kinds={**RESEARCH_KINDS, "analyst": StepKind(run=fail)})


def test_an_analyst_that_fails_leaves_a_partial_report(tmp_path: Path, engine: str) -> None:
    """X4: what the other one found is delivered; the error is a problem of the run, and no part of its report."""
    found, _ = run(tmp_path, engine, "What is the capital of Arland?", workflow=FAILING)

    assert (found.status, found.delivery) == ("partial", "full")
    assert found.answers == ("Capital of Arland: Arville",)
    assert found.problems == ("analyst_swe_r1: RuntimeError: the analyst has gone",)
    assert "has gone" not in found.report


NUMBERS = "How many schools are in Arland?"
THREE = "What is the capital of Arland? What is the currency of Borland? What is the capital of Corland?"
FEW = AnalystRole(name="ai", lens="evidence")


@pytest.mark.parametrize(
    ("given", "obstacle"), [({"workflow": FAILING}, "analyst_failed"), ({"analysts": (FEW,)}, "no_analyst")]
)
def test_a_question_of_an_analyst_that_fails_is_not_looked_for(
    tmp_path: Path, engine: str, given: dict[str, Any], obstacle: str
) -> None:
    """Nor is one for which there is no analyst: the source has it, and nothing says that it has not."""
    search = ListedSearch([page("arland.md", "# Arland\n\nNumber of schools: 340\n")])
    found, _ = run(tmp_path, engine, NUMBERS, search, **given)

    assert found.status == "partial"
    assert [(each.openness, each.obstacles) for each in found.unanswered] == [("not_looked_for", (obstacle,))]
    assert said(found)[0] in found.problems
    assert "## Not looked for" in found.report
    assert "Not found" not in found.report
    assert verify(tmp_path / "run").is_sound


@pytest.mark.parametrize(
    ("budget", "ways"),
    [
        ({"searches": 3}, [("looked_for_in_part", ("budget.searches",)), ("not_looked_for", ("budget.searches",))]),
        ({"fetches": 1}, [("looked_for_in_part", ("budget.fetches",)), ("looked_for_in_part", ("budget.fetches",))]),
    ],
)
def test_a_question_that_a_budget_kept_away_is_not_said_to_be_missing(
    tmp_path: Path, engine: str, budget: dict[str, int], ways: list[Any]
) -> None:
    """In the report, in the result and in the folder: one that was searched for in part, one that was not at all."""
    pages = [page(f"{name}.md", PAGES[f"{name}.md"]) for name in ("arland", "corland", "borland")]
    given = {"budget": replace(ResearchBudget(reserve=0.0), **budget), "max_rounds": 1}
    found, _ = run(tmp_path, engine, THREE, ListedSearch(pages), **given)
    graph = json.loads((tmp_path / "run" / "claim_graph.json").read_text("utf-8"))

    assert [(each.openness, each.obstacles) for each in found.unanswered] == ways
    assert "Not found" not in found.report
    assert "Looked for in part, and not found" in found.report
    assert graph["rounds"][0]["lookups"][1]["extent"] == "part"
    assert verify(tmp_path / "run").is_sound


def test_what_an_earlier_round_looked_for_is_not_found(tmp_path: Path, engine: str) -> None:
    """A budget that ends with the first round keeps away other words for what was looked for before."""
    found, _ = run(tmp_path, engine, "What is the currency of Arland?", budget=ResearchBudget(searches=3, reserve=0.0))

    assert found.stop_reason == "budget"
    assert [each.openness for each in found.unanswered] == ["not_found"]


LYING = parse_workflow(workflow_text(), "lying.yaml", kinds={**RESEARCH_KINDS, "analyst": StepKind(run=lie)})


@pytest.mark.parametrize(("most", "count"), [(2, 13), (4, 16)])
def test_what_nothing_bears_out_is_verified_again(tmp_path: Path, engine: str, most: int, count: int) -> None:
    """13 steps: to repair verification the second round verifies, and does nothing else; the third one searches.

    What an analyst made up is in no report.
    """
    given = {"workflow": LYING, "min_ci": 0.6, "max_rounds": most}
    found, ran = run(tmp_path, engine, "What is the capital of Arland?", **given)

    assert {name for name in ran if name.endswith("_r2")} == {"cove_verify_r2", "coverage_confidence_audit_r2"}
    assert {name for name in ran if name.endswith("_r3")} <= {
        "retrieval_react_r3", "cove_verify_r3", "coverage_confidence_audit_r3",
    }  # fmt: skip
    assert len(ran) == count
    assert found.quality_metadata["floor_violations"] == ["verification"]
    assert found.answers == ("Capital of Arland: Arville",)
    assert "others" not in found.report
    assert verify(tmp_path / "run").is_sound


def test_a_premise_answers_nothing_when_its_inference_falls(tmp_path: Path, engine: str) -> None:
    """The second step is disputed: the first one, which is supported, is no answer to the question."""
    other = page("census.md", "# Borland\n\nPopulation: 2,600,000\n")
    search = ListedSearch([*(page(path, text) for path, text in PAGES.items()), other])
    found, _ = run(tmp_path, engine, "What is the population of the country whose capital is Bortown?", search)

    assert not any("Capital" in answer for answer in found.answers)


def test_a_rounded_value_hides_no_contradiction(tmp_path: Path, engine: str) -> None:
    """84 million agrees with both of two figures that contradict each other: they still do."""
    pages = [
        page(f"{name}.md", f"# Arland\n\nPopulation: {value}\n")
        for name, value in (("a", "84 million"), ("b", "84,012,284"), ("c", "83,600,000"))
    ]
    found, _ = run(tmp_path, engine, "What is the population of Arland?", ListedSearch(pages))

    assert "## Contradictions" in found.report
    assert found.delivery != "full"
