"""Runs of research in words: exit codes, progress, the options that errors name."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from smart_model_router.cli.output import ExitCode, print_report
from smart_model_router.cli.research_text import (
    end_of,
    exit_code_of,
    fault_of_input,
    withheld_line,
)
from smart_model_router_research.pipeline.deep_research import ResearchResult
from smart_model_router_research.pipeline.progress_lines import ProgressLines
from smart_model_router_research.pipeline.research_events import ResearchEvent, ResearchEventKind
from smart_model_router_research.pipeline.run_inputs import ResearchBudget
from smart_model_router_research.pipeline.told_runs import result_as_json
from smart_model_router_scoring.options import ConfigError


def result(status: str = "completed", delivery: str = "full", **more: Any) -> ResearchResult:
    """Return a result."""
    return ResearchResult(run_id="r", status=status, delivery=delivery, **more)


def said(*events: tuple[str, str, dict[str, Any]]) -> list[str]:
    """Return the lines of events: kind, step, data."""
    progress = ProgressLines(ResearchBudget(searches=60, fetches=120))
    made = [
        ResearchEvent(seq=at, run_id="r", kind=ResearchEventKind(kind), time=0.0, step=step, data=data)
        for at, (kind, step, data) in enumerate(events)
    ]
    return [line for event in made for line in progress.of(event)]


@pytest.mark.parametrize(
    ("status", "delivery", "fail_below", "is_shown", "code"),
    [
        ("completed", "full", None, False, ExitCode.OK),
        ("completed", "low", None, False, ExitCode.OK),
        ("partial", "moderate", None, False, ExitCode.OK),
        ("completed", "withheld", None, False, ExitCode.WITHHELD),
        ("completed", "withheld", None, True, ExitCode.OK),
        ("completed", "withheld", "low", True, ExitCode.WITHHELD),
        ("completed", "moderate", "full", False, ExitCode.WITHHELD),
        ("completed", "moderate", "moderate", False, ExitCode.OK),
        ("partial", "low", "moderate", False, ExitCode.WITHHELD),
        ("failed", "", None, False, ExitCode.FAILED),
        ("failed", "full", None, False, ExitCode.FAILED),
        ("cancelled", "", "low", False, ExitCode.FAILED),
        ("completed", "", None, False, ExitCode.FAILED),
        ("paused", "", None, False, ExitCode.PAUSED),
    ],
)
def test_the_exit_code_says_what_became_of_a_run(
    status: str, delivery: str, fail_below: str | None, is_shown: bool, code: ExitCode
) -> None:
    """A run in part is a success; one without a report never is."""
    assert exit_code_of(result(status, delivery), fail_below=fail_below, is_shown=is_shown) == code


def test_an_input_is_named_by_its_option() -> None:
    """One that no option gives keeps its name."""
    assert fault_of_input(ConfigError("as_of", "soon", "a day")).message == "--as-of: 'soon' - a day is needed"
    assert fault_of_input(ConfigError("budget.seconds", 0, "more than 0")).key == "--timeout"
    assert fault_of_input(ConfigError("allow[0]", "a b", "a domain,")).key == "allow[0]"


def test_the_end_of_a_run_is_one_line() -> None:
    """Its delivery with the index, why it stopped, what it used, and where its folder is."""
    found = result(
        delivery="moderate",
        quality_metadata={"best_ci_achieved": 0.7612},
        stop_reason="no_progress",
        usage={"searches": 5.0, "model_calls": 0.0},
    )
    assert end_of(found) == "run r completed; delivery moderate (index 0.76); stopped: no progress; 5 searches"
    assert end_of(result(usage={"searches": 1.0, "documents": 1.0})).endswith("1 search; 1 document")
    assert end_of(result("failed", "")) == "run r failed"


def test_a_withheld_report_says_how_it_is_read_all_the_same() -> None:
    """Unless it is shown, or has nothing more to show."""
    found = result(delivery="withheld", answers=("It is so.",))
    assert withheld_line(found, is_shown=False).endswith("smr research report r --accept")
    assert withheld_line(found, is_shown=True) == ""
    assert withheld_line(result(delivery="withheld"), is_shown=False) == ""
    assert withheld_line(result(answers=("It is so.",)), is_shown=False) == ""


def test_a_result_as_json_has_every_field() -> None:
    """And what of the corpora could not be read."""
    found = result_as_json(result(problems=("p",)), ("a.pdf: broken",))
    assert (found["status"], found["delivery"], found["problems"], found["skipped"]) == (
        "completed", "full", ["p"], ["a.pdf: broken"],
    )  # fmt: skip


QUESTION = {"id": "q1", "text": "When?", "kind": "date", "priority": 1, "critical": True}


def test_a_plan_is_a_line_for_each_question() -> None:
    """And for what is not asked."""
    lines = said(("plan", "intake_scope", {"questions": [QUESTION], "out_of_scope": ["too long"]}))
    assert lines == ["  q1 (date, critical): When?", "  not asked: too long"]


def test_a_round_is_told_with_what_it_found_and_what_follows() -> None:
    """Searches and documents are those of the run so far, documents by tier."""
    query: dict[str, Any] = {"text": "x", "source": 0, "hits": []}
    document: dict[str, Any] = {"id": "a.md", "title": "A", "tier": "A"}
    retrieved: list[tuple[str, str, dict[str, Any]]] = [
        ("query", "retrieval_react_r1", query),
        ("fetched", "retrieval_react_r1", document),
        ("query", "retrieval_react_r2", query),
        ("fetched", "retrieval_react_r2", {**document, "id": "b.md", "tier": "B"}),
        ("claim", "cove_verify_r2", {"id": "c", "status": "supported"}),
        ("metric", "audit_r2", {"ci_score": 0.755}),
    ]
    lines = said(
        *retrieved,
        ("gate", "audit_r2", {"passed": False, "reasons": ["coverage is low", "recency is low"]}),
        ("round", "audit_r2", {"round": 2, "next": "remediation", "reason": "to repair: recency"}),
        ("gate", "audit_r3", {"passed": True, "reasons": []}),
        ("round", "audit_r3", {"round": 3, "next": "stop", "reason": "no_progress"}),
    )
    spent = "2 of 60 searches, 2 of 120 documents (1 of tier A, 1 of tier B)"
    assert lines == [
        f"  round 2: index 0.76, 1 supported; {spent}",
        "    gate not passed: coverage is low; recency is low",
        "    next: remediation: to repair: recency",
        f"  round 3: index 0.76, 1 supported; {spent}",
        "    it ends: no progress",
    ]


def test_a_round_without_anything_is_told() -> None:
    """No source had a word of it."""
    lines = said(("round", "audit_r1", {"round": 1, "next": "stop", "reason": "budget"}))
    assert lines == ["  round 1: no claims; 0 of 60 searches, 0 of 120 documents", "    it ends: budget"]


def test_what_goes_wrong_is_told_at_once() -> None:
    """Failed steps, limits, and documents that may not be cited."""
    lines = said(
        ("run", "", {"state": "run_started"}),
        ("run", "", {"state": "run_resumed"}),
        ("step", "retrieval_react_r1", {"event": "step_started", "attempt": 1}),
        ("step", "retrieval_react_r1", {"event": "step_settled", "state": "failed", "error": "disk full"}),
        ("refused", "retrieval_react_r1", {"id": "x.md", "reason": "blocked"}),
        ("budget", "retrieval_react_r1", {"gap": "5 documents were not read"}),
        ("finished", "", {"state": "partial"}),
    )
    assert lines == [
        "  it goes on",
        "  retrieval_react_r1: failed: disk full",
        "  not used: x.md: blocked",
        "  limit: 5 documents were not read",
    ]


@pytest.mark.parametrize(
    ("is_terminal", "shown"), [(True, "The well > a_b: 3*4.\n"), (False, "The well \\> a\\_b: 3\\*4.\n")]
)
def test_a_report_has_no_backslashes_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, is_terminal: bool, shown: str
) -> None:
    """A reader sees the signs of a source; a file stays Markdown, in which they mean nothing."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    print_report("The well \\> a\\_b: 3\\*4.\n")
    assert capsys.readouterr().out == shown
