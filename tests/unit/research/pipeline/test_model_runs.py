"""Runs of research with models: they add what code can check, count where two agree, and fall back visibly."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.testing import LoopClock, run_virtual
from smart_model_router_research.deep.artefact_records import GRAPH, MANIFEST
from smart_model_router_research.deep.found_answers import ReadDocument
from smart_model_router_research.deep.report_page import ALONE
from smart_model_router_research.engine import MemoryRunStore
from smart_model_router_research.model_forms.model_calls import AT_ONCE, ChatRouter, prompt_hash
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_research.pipeline.run_inputs import AnalystRole, ResearchBudget
from tests.fixtures.research.judging import FOLDERS
from tests.research_worlds import ENGINES, ListedSearch, comparable, inputs, page, research
from tests.scripted_models import EMPTY, Reply, ScriptedRouter, Shown, competent

LIBRARY = (
    "# Library\n\nReaders bring a card. Loans last three weeks.\n\nThe building opened in 1931 and has four floors.\n\n"
    "The cellar is closed. Dogs wait outside. Tea is sold at noon. The roof leaks in March. Maps hang upstairs.\n"
)
KILN = "# Kiln\n\nThe kiln is fired on Mondays.\n"
LOAN, KILN_DAY = "How long may I borrow a book?", "On which day is the kiln fired?"
KNOWN = {LOAN: ["Loans last three weeks."]}
Pages = Sequence[ReadDocument]
PAGES: Pages = (page("library.md", LIBRARY), page("kiln.md", KILN))


def run(
    folder: Path, topic: str, router: ChatRouter | None, pages: Pages = PAGES, seconds: float = 900, **others: Any
) -> ResearchResult:
    """Run a topic in virtual time, with a model where there is a router."""
    budget = others.pop("budget", ResearchBudget(seconds=seconds))
    search = others.pop("search", None) or ListedSearch(pages)

    async def main() -> ResearchResult:
        runs = research(folder, "kahn", search, router=router, clock=LoopClock())
        model = "smart" if router else ""
        return await runs.run(inputs(topic, model=model, budget=budget, **others), "run")

    return run_virtual(main())


def claims_of(result: ResearchResult) -> dict[str, Any]:
    """Return the claims of the graph of a run by their text."""
    assert result.artefacts is not None
    graph = json.loads((result.artefacts / GRAPH).read_text("utf-8"))
    return {each["text"]: each for each in graph["claims"]}


def manifest_of(result: ResearchResult) -> dict[str, Any]:
    """Return the facts of the manifest of a run."""
    assert result.artefacts is not None
    return dict(json.loads((result.artefacts / MANIFEST).read_text("utf-8"))["run"])


def test_what_two_providers_choose_counts_as_an_answer(tmp_path: Path) -> None:
    """No word of the question stands in the sentence: code does not find it, and checks it when a model does."""
    without = run(tmp_path / "a", LOAN, None)
    found = run(tmp_path / "b", LOAN, ScriptedRouter(competent(KNOWN), other="q/verifier"))

    assert without.answers == ()
    assert found.answers == ("Loans last three weeks.",)
    assert found.unanswered == ()
    claim = claims_of(found)["Loans last three weeks."]
    assert (claim["chosen_by"], claim["agreed_by"], claim["value"]) == ("p/analyst", "q/verifier", "three weeks")
    assert "(chosen by a model)" in found.report
    assert found.quality_metadata["best_ci_achieved"] > without.quality_metadata["best_ci_achieved"]


def test_what_one_model_alone_chooses_is_shown_and_counts_nowhere(tmp_path: Path) -> None:
    """It checks itself: the sentence is true of its source, and nothing else says that it answers."""
    without = run(tmp_path / "a", f"{KILN_DAY} {LOAN}", None)
    found = run(tmp_path / "b", f"{KILN_DAY} {LOAN}", ScriptedRouter(competent(KNOWN)))

    assert found.answers == (*without.answers, "Loans last three weeks.")
    assert ALONE in found.report
    assert [each.openness for each in found.unanswered] == ["judged_by_a_model"]
    assert found.quality_metadata["best_ci_achieved"] == without.quality_metadata["best_ci_achieved"]
    assert found.delivery == without.delivery


@pytest.mark.parametrize(("other", "answers"), [("q/verifier", ("Term: three weeks",)), ("", ())])
def test_a_label_in_other_words_needs_two_providers(tmp_path: Path, other: str, answers: tuple[str, ...]) -> None:
    """Nearly every label would fit a question for a number: one model alone shows none."""
    pages = [
        page("library.md", "# Library\n\nTerm: three weeks\n\nFloors: four\n\nStaff: Ada, Bo and Cy\n\nTea: at noon\n")
    ]
    router = ScriptedRouter(competent({LOAN: ["Term: three weeks"]}), other=other)

    assert run(tmp_path, LOAN, router, pages).answers == answers


def test_what_code_would_take_too_counts_though_one_model_chose_it(tmp_path: Path) -> None:
    """Two sentences say enough of the question for code to choose neither; the model chooses, and code agrees."""
    text = "# Pass\n\nThe pass road is closed for snow in January.\n\nThe pass road is closed for repairs in June.\n"
    question = "In which month is the pass road closed for snow?"
    found = run(
        tmp_path,
        question,
        ScriptedRouter(competent({question: ["The pass road is closed for snow in January."]})),
        [page("pass.md", text)],
    )

    assert found.answers[:1] == ("The pass road is closed for snow in January.",)
    assert found.unanswered == ()


def test_a_question_that_sources_dispute_gets_no_choice(tmp_path: Path) -> None:
    """Both fees are shown as a contradiction; the model that prefers one of them hides neither."""
    pages = [
        page("a.md", "# Fees\n\nThe yearly fee is 85 euros.\n"),
        page("b.md", "# Board\n\nThe yearly fee is 95 euros.\n"),
    ]
    question = "How much is the yearly fee?"
    router = ScriptedRouter(competent({question: ["The yearly fee is 85 euros."]}), other="q/v")
    without, found = run(tmp_path / "a", question, None, pages), run(tmp_path / "b", question, router, pages)

    assert "## Contradictions" in without.report
    assert found.answers == without.answers == ()


@pytest.mark.parametrize(
    ("budget", "cap"),
    [
        (ResearchBudget(model_calls=4), "budget.model_calls is 4"),
        (ResearchBudget(tokens=3_600), "budget.tokens is 3600"),
        (ResearchBudget(usd=0.004), "budget.usd is 0.004"),
    ],
    ids=["calls", "tokens", "usd"],
)
def test_a_cap_on_models_delivers_a_partial_report(tmp_path: Path, budget: ResearchBudget, cap: str) -> None:
    """The steps behind it go on without the model, and say so; what code finds is not lost."""
    router, uncapped = ScriptedRouter(competent(KNOWN)), ScriptedRouter(competent(KNOWN))
    run(tmp_path / "uncapped", f"{KILN_DAY} {LOAN}", uncapped)
    found = run(tmp_path / "capped", f"{KILN_DAY} {LOAN}", router, budget=budget)

    assert found.status == "partial"
    assert found.answers[0] == "The kiln is fired on Mondays."
    assert any(cap in problem for problem in found.problems)
    assert any(cap in note and "went on without its model" in note for note in manifest_of(found)["model_notes"])
    assert found.usage["model_calls"] == len(router.asked) < len(uncapped.asked)


def _replies(**given: Reply) -> Callable[[str, Shown, int], Reply]:
    """Return a model that gives one reply to each prompt, by the first word of its name."""
    return lambda name, shown, number: given.get(name.partition(".")[0], EMPTY[name])


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (lambda *_: "The answer is 42.", "3 replies did not fit their schema: it has no JSON object"),
        (lambda *_: None, "the model refused to answer"),
        (lambda *_: "", "the answer had no text"),
        (_replies(tree={"branches": [{"hypothesis": "h"}]}), "the key 'queries' is missing"),
        (_replies(reader={"thought": "t", "action": "rm -rf", "argument": "/"}), "one of think, search, read, finish"),
    ],
    ids=["prose", "refusal", "empty", "key", "action"],
)
def test_a_model_that_does_not_answer_its_form_changes_nothing(
    tmp_path: Path, answer: Callable[[str, Shown, int], Reply], why: str
) -> None:
    """Two repairs, then the form without a model, with the reason in the report."""
    without = run(tmp_path / "a", f"{KILN_DAY} {LOAN}", None)
    found = run(tmp_path / "b", f"{KILN_DAY} {LOAN}", ScriptedRouter(answer))

    assert (found.answers, found.delivery, found.status) == (without.answers, without.delivery, without.status)
    assert any(why in note for note in found.model_notes)
    assert any(why in line for line in found.report.replace("\\", "").splitlines())


def test_a_reply_is_repaired_with_what_was_wrong(tmp_path: Path) -> None:
    """The second try says which key is missing, and its reply counts."""
    replies: list[Reply] = [{"branches": [{}]}, {"branches": []}]
    router = ScriptedRouter(lambda name, _, number: replies[number] if number < 2 else EMPTY[name])

    found = run(tmp_path, LOAN, router)

    assert router.asked[0][0] == router.asked[1][0] == "tree.v1"
    assert "the key 'hypothesis' is missing" in router.repairs[1]
    assert not any("hypothesis_tree_tot_r1" in note for note in found.model_notes)


def test_a_model_that_hangs_leaves_its_time_to_the_others(tmp_path: Path) -> None:
    """Every call waits until its time is over; the run ends in time, with all that it finds without the model."""
    without = run(tmp_path / "a", f"{KILN_DAY} {LOAN}", None)
    found = run(tmp_path / "b", f"{KILN_DAY} {LOAN}", ScriptedRouter(competent(KNOWN), seconds=1e9), seconds=60)

    assert (found.answers, found.delivery) == (without.answers, without.delivery)
    assert found.stop_reason == without.stop_reason


def test_a_run_that_goes_on_without_a_router_says_so(tmp_path: Path) -> None:
    """A process without one takes the run over: it ends as without a model, visibly."""

    async def main() -> ResearchResult:
        runs = research(tmp_path, "kahn", ListedSearch(PAGES), MemoryRunStore(), clock=LoopClock())
        return await runs.run(inputs(KILN_DAY, model="smart"), "run")

    found = run_virtual(main())

    assert found.answers == ("The kiln is fired on Mondays.",)
    assert any("this process has no router" in note for note in found.model_notes)


def test_the_last_resort_is_not_asked_for_more_than_it_can(tmp_path: Path) -> None:
    """One answer of it is enough to know: the embedded model would fill minutes with what no check lets pass."""
    router = ScriptedRouter(competent(KNOWN), last_resort=True)

    found = run(tmp_path, LOAN, router)

    assert len(router.asked) == 1
    assert any("only the last resort answer" in note for note in found.model_notes)


def test_the_report_says_what_stood_in_for_what(tmp_path: Path) -> None:
    """A provider that dies in the middle of a run is named, with the reason, and what served in its place."""
    found = run(tmp_path, LOAN, ScriptedRouter(competent(KNOWN), stood_in_for="dead/model"))

    assert any("p/analyst stood in for dead/model: it answered 503" in note for note in found.model_notes)
    assert "stood in for dead/model" in found.report


def test_calls_have_the_session_the_limits_and_the_tiers_of_the_run(tmp_path: Path) -> None:
    """The verifier avoids the provider of the analysts; a tier is asked for where the configuration names one."""
    router = ScriptedRouter(competent(KNOWN), other="q/verifier")
    run(tmp_path, LOAN, router, model_tiers={"economy": "small"}, criticality="sheddable")
    by_name = {name: options for (name, _), options in zip(router.asked, router.options, strict=True)}

    assert {options["session"] for options in router.options} == {"run"}
    assert {options["criticality"] for options in router.options} == {"sheddable"}
    assert all(0 < options["timeout"] <= 120 for options in router.options)
    assert all(0 < options["max_cost"] <= 2 for options in router.options)
    assert by_name["reader.v1"]["tier"] == "small"
    assert "tier" not in by_name["analyst.v2"]
    assert by_name["verifier.v1"]["avoid"] == ("p",)


def test_no_more_calls_than_four_are_under_way(tmp_path: Path) -> None:
    """Six analysts ask at the same time."""
    router = ScriptedRouter(competent(KNOWN), seconds=1.0)
    run(tmp_path, LOAN, router, analysts=tuple(AnalystRole(name=f"a{at}") for at in range(6)), max_rounds=1)

    assert router.most_under_way == AT_ONCE


def test_the_manifest_has_prompts_models_and_calls(tmp_path: Path) -> None:
    """Each prompt that was sent with its hash; nothing of them in a run without a model."""
    facts = manifest_of(run(tmp_path / "a", LOAN, ScriptedRouter(competent(KNOWN), other="q/verifier")))

    assert facts["models"] == ["p/analyst", "q/verifier"]
    assert facts["prompts"]["analyst.v2"] == prompt_hash("analyst.v2")
    assert facts["usage"]["model_calls"] > 4
    assert manifest_of(run(tmp_path / "b", LOAN, None))["prompts"] == {}


LENT = "Volumes come home within twenty nights."
DEEP: Pages = (page("library.md", "# Library\n\nA book is a book.\n"), page("rules.md", f"# Rules\n\n{LENT}\n"))


def _reader(*turns: tuple[str, str]) -> Callable[[str, Shown, int], Reply]:
    """Return a model that reads as told, and claims what is shown it."""
    known = {LOAN: [LENT]}

    def answer(name: str, shown: Shown, number: int) -> Reply:
        if name != "reader.v1":
            return EMPTY[name] if name == "tree.v1" else competent(known)(name, shown, number)
        done: Sequence[Mapping[str, Any]] = shown["done"]
        act, argument = turns[min(len(done), len(turns) - 1)]
        return {"thought": "Look.", "action": act, "argument": argument}

    return answer


def test_a_reader_finds_what_the_planned_searches_do_not(tmp_path: Path) -> None:
    """It searches in the words of a source; the page that it finds is shown to the analysts."""
    router = ScriptedRouter(_reader(("search", "volumes home"), ("finish", "")), other="q/v")
    found = run(tmp_path, LOAN, router, DEEP, max_rounds=1)

    assert found.answers == (LENT,)
    seen = [[each["title"] for each in shown["documents"]] for name, shown in router.asked if name == "reader.v1"]
    assert seen == [["Library"], ["Library", "Rules"]]


def test_a_choice_among_statements_that_differ_in_numbers_counts_nowhere(tmp_path: Path) -> None:
    """Three pages say how long loans last, each something else; the model names one of them."""
    terms = ("three", "two", "five")
    pages = [page(f"{each}.md", f"# Library {each}\n\nLoans last {each} weeks.\n\nTea at noon.\n") for each in terms]
    found = run(tmp_path, LOAN, ScriptedRouter(competent(KNOWN), other="q/v"), pages)

    assert [each.openness for each in found.unanswered] == ["judged_by_a_model"]
    assert found.delivery == "withheld"


def test_a_reserve_of_half_the_time_leaves_time_for_models(tmp_path: Path) -> None:
    """The time of a step is without the reserve already."""
    router = ScriptedRouter(competent(KNOWN), other="q/v")
    found = run(tmp_path, LOAN, router, budget=ResearchBudget(reserve=0.5))

    assert found.answers == ("Loans last three weeks.",)
    assert found.model_notes == ()


def test_two_values_that_code_cannot_compare_count_neither(tmp_path: Path) -> None:
    """Three weeks or two: both are shown, neither counts, and the question stays open."""
    pages = [
        page("a.md", "# Library\n\nLoans last three weeks.\n"),
        page("b.md", "# Notes\n\nWhat you take is due in two weeks.\n"),
    ]
    known = {LOAN: ["Loans last three weeks.", "What you take is due in two weeks."]}
    found = run(tmp_path, LOAN, ScriptedRouter(competent(known), other="q/v"), pages, deliver="always")

    assert [each.openness for each in found.unanswered] == ["judged_by_a_model"]
    assert found.report.count(ALONE) == 2
    assert found.delivery == "withheld" or found.quality_metadata["best_ci_achieved"] < 0.5


@pytest.mark.parametrize(
    ("turns", "said"),
    [
        ((("search", "tea"),) * 9, "refused: the same was asked 3 times"),
        ((("read", "https://evil.example/"), ("finish", "")), "refused: no document has this id"),
        ((("search", "?" * 500), ("finish", "")), "refused: a search is a text with words"),
    ],
    ids=["again", "address", "no words"],
)
def test_what_a_reader_may_not_do_is_refused_and_counted(
    tmp_path: Path, turns: Sequence[tuple[str, str]], said: str
) -> None:
    """The same for the fourth time, an address, a search without words: the model is told, and the report counts."""
    router = ScriptedRouter(_reader(*turns))
    found = run(tmp_path, LOAN, router, max_rounds=1)
    observed = [
        str(each.get("observation")) for name, shown in router.asked if name == "reader.v1" for each in shown["done"]
    ]

    assert any(said in each for each in observed)
    assert any("did not pass the checks" in note for note in found.model_notes)


def test_three_thoughts_without_an_action_end_the_reading(tmp_path: Path) -> None:
    """A loop of thoughts costs three calls, and no more."""
    router = ScriptedRouter(_reader(("think", "")))
    found = run(tmp_path, LOAN, router, max_rounds=1)

    assert sum(name == "reader.v1" for name, _ in router.asked) == 3
    assert any("3 thoughts came without an action" in note for note in found.model_notes)


def test_a_second_provider_that_names_one_row_of_two_agrees_to_nothing(tmp_path: Path) -> None:
    """The first row was named by the provider that made the choice."""
    known, rows = competent(KNOWN), list[int]()

    def answer(name: str, shown: Shown, number: int) -> Reply:
        rows.extend([number] * (name == "verifier.v1"))
        router.other = "q/verifier" if len(rows) % 2 else ""
        return known(name, shown, number)

    router = ScriptedRouter(answer)
    found = run(tmp_path, LOAN, router)

    assert rows
    assert [each.openness for each in found.unanswered] == ["judged_by_a_model"]


def test_a_choice_that_did_not_count_is_confirmed_by_a_later_round(tmp_path: Path) -> None:
    """The second provider is away in the first round: its word in the second one makes the answer count."""
    known, asked = competent(KNOWN), list[int]()

    def answer(name: str, shown: Shown, number: int) -> Reply:
        asked.extend([number] * (name == "analyst.v2"))
        router.other = "q/verifier" if len(asked) > 1 else ""
        return known(name, shown, number)

    router = ScriptedRouter(answer)
    found = run(tmp_path, LOAN, router)

    assert len(asked) > 1
    assert (found.answers, found.unanswered) == (("Loans last three weeks.",), ())


def test_a_summary_says_only_what_its_claims_say(tmp_path: Path) -> None:
    """A sentence that changes a number, cites nothing, or cites what is not there, is left out and counted."""
    topic = f"{KILN_DAY} When did the building open? How many floors has the building?"

    def answer(name: str, shown: Shown, number: int) -> Reply:
        if name != "writer.v1":
            return competent({})(name, shown, number)
        claims = shown["claims"]
        kiln = next(each for each in claims if "kiln" in each["text"])
        said = [
            ("On Mondays, the kiln is fired.", [kiln["id"]]),
            ("The kiln is fired on Tuesdays.", [kiln["id"]]),
            ("All of this is certain.", []),
            ("The kiln is old.", ["c99"]),
        ]
        return {"summary": [{"text": text, "claims": ids} for text, ids in said]}

    found = run(tmp_path, topic, ScriptedRouter(answer))

    assert "## Summary" in found.report
    assert "On Mondays, the kiln is fired." in found.report
    assert "Tuesdays" not in found.report
    assert "certain" not in found.report.partition("## Summary")[2].partition("##")[0]
    assert any("final_synthesis: 3 of what the model wrote" in note for note in found.model_notes)


def test_a_model_that_writes_no_json_is_asked_for_a_summary_alone(tmp_path: Path) -> None:
    """A sentence of its own is kept where it says the same as a claim; the last resort may write it, too."""
    topic = f"{KILN_DAY} When did the building open? How many floors has the building?"
    text = "On Mondays, the kiln is fired. The kiln is fired on Sundays. What a kiln!"
    router = ScriptedRouter(lambda *_: text, last_resort=True)

    found = run(tmp_path, topic, router, model_forms="prose")

    assert [name for name, _ in router.asked] == ["prose"]
    assert "- The kiln is fired on Mondays." in str(router.asked[0][1]["text"])
    assert "On Mondays, the kiln is fired." in found.report
    assert "Sundays" not in found.report
    assert found.model_notes == (
        "final_synthesis: 2 of what the model wrote did not pass the checks, and is not used.",
    )


@pytest.mark.parametrize(
    ("folder", "question", "quote"),
    [
        ("bakery", "Whose apprentice is Jonas Pohl?", "Marta Lind's apprentice is Jonas Pohl."),
        ("harbour", "What was the Petrel called before?", "Until 2004 the Petrel was called Northern Light."),
        ("region", "How much does entry to the park of Selm cost?", "Entry costs 12 euros, in Selm 8 euros."),
        ("services", "What language is Mailer written in?", "Mailer is written in Go."),
    ],
)
def test_a_competent_model_answers_more_than_code(tmp_path: Path, folder: str, question: str, quote: str) -> None:
    """Questions on folders that users wrote, of which code finds no answer that it can tell from its neighbours."""
    files = sorted((FOLDERS / folder).glob("*.md"))
    pages = [page(file.name, file.read_text("utf-8")) for file in files]
    router = ScriptedRouter(competent({question: [quote]}), other="q/verifier")

    without, found = run(tmp_path / "a", question, None, pages), run(tmp_path / "b", question, router, pages)

    assert without.answers == ()
    assert (found.answers, found.unanswered) == ((quote,), ())


def test_both_engines_write_the_same_with_the_same_model(tmp_path: Path) -> None:
    """X7: the same inputs and the same replies give the same bytes."""

    async def main(engine: str) -> Mapping[str, bytes]:
        router = ScriptedRouter(competent(KNOWN), other="q/verifier")
        runs = research(tmp_path / engine, engine, ListedSearch(PAGES), router=router, clock=LoopClock())
        await runs.run(inputs(f"{KILN_DAY} {LOAN}", model="smart"), "run")
        return comparable(tmp_path / engine / "run")

    one, other = (run_virtual(main(engine)) for engine in ENGINES)
    assert one == other
