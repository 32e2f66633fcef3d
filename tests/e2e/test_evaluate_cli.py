"""`smr evaluate` as a person meets it: figures of a run, of two beside each other, and where they are kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.command import Smr, one_line

QRELS = "q1 0 a 2\nq1 0 b 1\nq2 0 c 1\nq3 0 d 1\n"
BEFORE = "q1 Q0 x 1 9 old\nq1 Q0 a 2 8 old\nq2 Q0 c 1 9 old\nq3 Q0 d 1 9 old\n"
AFTER = "q1 Q0 a 1 9 new\nq1 Q0 b 2 8 new\nq2 Q0 c 1 9 new\nq3 Q0 x 1 9 new\nq3 Q0 d 2 8 new\nq9 Q0 a 1 1 new\n"


@pytest.fixture
def smr(tmp_path: Path) -> Smr:
    """The installed command beside two runs and their judgements."""
    for name, text in {"judged.qrels": QRELS, "before.run": BEFORE, "after.run": AFTER}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return Smr(tmp_path)


def test_a_run_is_measured(smr: Smr) -> None:
    """Means with intervals, what was measured and when, on stdout."""
    done = smr("evaluate", "before.run", "judged.qrels")
    assert done.returncode == 0
    assert "mrr@10       0.8333 [" in done.stdout
    assert "queries: 3; seed: 0; resamples: 1000; A: before.run; qrels: judged.qrels; updated_at: 20" in done.stdout
    assert done.stderr == ""


def test_ab_counts_wins_and_losses_and_tests_them(smr: Smr) -> None:
    """By metric: q1 is won, q3 lost, q2 a tie; queries that nobody judged are named."""
    told = json.loads(smr("evaluate", "before.run", "judged.qrels", "--ab", "after.run", "--json").stdout)
    found = told["ab"]["mrr@10"]
    assert (found["wins"], found["losses"], found["ties"]) == (["q1"], ["q3"], 1)
    assert (found["difference"]["mean"], found["p"]) == (pytest.approx(0.0), 1.0)
    assert told["ab"]["recall@100"]["wins"] == ["q1"]
    assert told["unjudged"] == {"A": [], "B": ["q9"]}
    assert told["metadata"]["B"] == "after.run"
    shown = smr("evaluate", "before.run", "judged.qrels", "--ab", "after.run")
    assert "B wins" in shown.stdout
    assert "1 queries of B have no relevant id" in shown.stderr


def test_figures_are_kept_as_markdown(smr: Smr) -> None:
    """Each time one section more, with its date; what is there stays."""
    kept = smr.folder / "experiments.md"
    kept.write_text("# Experiments\n")
    for _ in range(2):
        assert smr("evaluate", "before.run", "judged.qrels", "--ab", "after.run", "--keep", str(kept)).returncode == 0
    text = kept.read_text()
    assert text.startswith("# Experiments\n\n## `before.run` and `after.run`\n\nqueries: 3; ")
    assert text.count("| metric | A | B | B less A | B wins | B loses | ties | p |") == 2
    assert text.count("updated_at: 20") == 2
    assert text.count("| mrr@10 | 0.8333 [") == 2


def test_files_that_say_nothing_are_refused(smr: Smr) -> None:
    """3 for judgements where a run is expected, for no relevant id and for no file; what is left out is told."""
    swapped = smr("evaluate", "judged.qrels", "judged.qrels")
    assert (swapped.returncode, swapped.stdout) == (3, "")
    assert "judged.qrels, line 1: left out" in swapped.stderr
    assert "1 more lines left out" in swapped.stderr
    (smr.folder / "zero.qrels").write_text("q1 0 a 0\n")
    zero = smr("evaluate", "before.run", "zero.qrels")
    assert (zero.returncode, one_line(zero.stderr)) == (3, True)
    for arguments, said in {
        ("none.run", "judged.qrels"): "RUN: 'none.run' - No such file",
        ("before.run", "none.qrels"): "QRELS: 'none.qrels' - No such file",
        ("before.run", "judged.qrels", "--ab", "none.run"): "--ab: 'none.run' - No such file",
        ("before.run", "judged.qrels", "--keep", "."): "--keep: '.' - Is a directory",
    }.items():
        missing = smr("evaluate", *arguments)
        assert (missing.returncode, one_line(missing.stderr), said in missing.stderr) == (3, True, True)
