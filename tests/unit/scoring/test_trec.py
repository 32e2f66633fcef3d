"""Runs and judgements as TREC's text: what a line means, and what becomes of one that is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smart_model_router_scoring.evaluate import METRICS, evaluate, parse_qrels, parse_run
from smart_model_router_scoring.options import Note, Notes


def test_judgements_are_grades_by_query_and_id() -> None:
    """Any white space separates; of a repeated pair the last line counts."""
    text = "q1 0 a 2\nq1\t0\tb\t0\n\n q2 0 a -1 \nq1 0 a 3.5\n"
    assert parse_qrels(text) == {"q1": {"a": 3.5, "b": 0.0}, "q2": {"a": -1.0}}


def test_a_run_is_ordered_by_score_and_then_by_id() -> None:
    """Neither the rank that a line claims nor the order of lines is asked."""
    text = "q1 Q0 c 1 0.5 me\nq1 Q0 b 2 0.9 me\nq2 Q0 z 1 1 me\nq1 Q0 a 3 0.5 me\nq1 Q0 d 9 10 me\n"
    assert parse_run(text) == {"q1": ["d", "b", "a", "c"], "q2": ["z"]}


@pytest.mark.parametrize("line", ["q1 0 a", "q1 0 a 1 x", "q1 0 a high", "q1 0 a nan", "q1 0 a inf", "q1 0 a 1_0"])
def test_a_line_that_is_no_judgement_is_noted_and_left_out(line: str) -> None:
    """The others count."""
    notes = Notes()
    assert parse_qrels(f"q0 0 a 1\n{line}\n", notes) == {"q0": {"a": 1.0}}
    assert notes.kept == (Note("bad_line", "line 2", "not `query 0 id grade`"),)


def test_a_line_that_is_no_result_is_noted_and_left_out() -> None:
    """Judgements are no run; without notes to tell, it is left out all the same."""
    notes = Notes()
    assert parse_run("q1 0 a 1\nq1 Q0 a 1 best me\n", notes) == {}
    assert [note.subject for note in notes.kept] == ["line 1", "line 2"]
    assert notes.kept[0].detail == "not `query Q0 id rank score tag`"
    assert parse_run("q1 0 a 1") == {}


@pytest.mark.parametrize("metric", sorted(METRICS))
def test_the_metrics_are_those_of_trec_eval(metric: str) -> None:
    """To 1e-9, on forty random rankings that trec_eval judged (`benchmarks/search/oracle.py` wrote its figures)."""
    told = json.loads(Path(__file__).with_name("trec_figures.json").read_text("utf-8"))
    ours = evaluate(told["run"], told["grades"]).per_query[metric]
    assert len(ours) > 30
    assert ours == pytest.approx({query: told["trec_eval"][query][metric] for query in ours}, abs=1e-9)
