"""The verdicts of `make failoverbench`, from what was observed of a row."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smart_model_router.rehearsal.chaos.scenario_context import Verdict
from tests.failover.bench import Result
from tests.failover.report import missing
from tests.failover.rows import RECOVERY_SECONDS, ROWS, Call, End, Judgement, Played, Reply, judge
from tests.failover.script import ANSWER, OK, PREFILL_REFUSED, Answer, in_turn, switch_after

ROW = {row.name: row for row in ROWS}
WHOLE = Reply(End.ANSWER, 1.0, text=ANSWER, model="fb-ok", has_usage=True)
SHORT = replace(WHOLE, text="word01 word02")
ERROR = Reply(End.ERROR, 1.0, error="it failed")
HANG = Reply(End.HANG, 20.0)


def played(*replies: Reply, primary: tuple[float, ...] = (0.0,), next_served: bool = True) -> Played:
    """A row with these replies, and calls to the primary at these instants, all served."""
    return Played(replies, [Call(at, served=True) for at in primary], (), next_served)


OUTAGE = tuple(replace(WHOLE, started=4.0 * number) for number in range(20))
"""The replies of S15, all served."""


@pytest.mark.parametrize(
    ("name", "seen", "verdict"),
    [
        ("S01", played(WHOLE, primary=(0, 2.1)), Verdict.PASS),
        ("S01", played(WHOLE, primary=(0, 1.0)), Verdict.PARTIAL),
        ("S01", played(WHOLE), Verdict.PARTIAL),
        ("S01", played(WHOLE, primary=(0, 1.0, 1.4)), Verdict.FAIL),
        ("S02", played(WHOLE, primary=(0, 1, 2, 3)), Verdict.PASS),
        ("S02", played(WHOLE, primary=(0, 1, 2, 2.5, 3)), Verdict.FAIL),
        ("S02", played(WHOLE, primary=(0, 1, 2, 4, 8, 16, 32)), Verdict.FAIL),
        ("S03", played(WHOLE, primary=(0, 1)), Verdict.PASS),
        ("S03", played(WHOLE), Verdict.PARTIAL),
        ("S04", played(WHOLE, primary=(0,) * 6), Verdict.PASS),
        ("S04", played(WHOLE, primary=(0,) * 7), Verdict.FAIL),
        ("S05", played(WHOLE), Verdict.PASS),
        ("S05", played(ERROR), Verdict.SAFE),
        ("S05", played(SHORT), Verdict.FAIL),
        ("S05", played(HANG), Verdict.FAIL),
        ("S06", played(replace(WHOLE, seconds=100.0)), Verdict.PASS),
        ("S06", played(replace(WHOLE, seconds=101.0)), Verdict.FAIL),
        ("S06", played(WHOLE, primary=(0, 30)), Verdict.PARTIAL),
        ("S07", played(replace(WHOLE, seconds=16.0)), Verdict.PARTIAL),
        ("S09", played(WHOLE, next_served=False), Verdict.FAIL),
        ("S10", played(ERROR, next_served=False), Verdict.FAIL),
        ("S11", played(replace(WHOLE, seconds=8.5)), Verdict.FAIL),
        ("S11", played(replace(WHOLE, has_usage=False)), Verdict.PARTIAL),
        ("S12", played(WHOLE, primary=(0, 1)), Verdict.FAIL),
        ("S13", played(ERROR), Verdict.PASS),
        ("S13", played(WHOLE), Verdict.PARTIAL),
        ("S13", played(ERROR, primary=(0, 1)), Verdict.FAIL),
        ("S14", played(ERROR), Verdict.SAFE),
        ("S14", played(replace(ERROR, error=f"400 {PREFILL_REFUSED}")), Verdict.FAIL),
        ("S15", played(*OUTAGE, primary=(0, 76.1)), Verdict.PASS),
        ("S15", played(replace(ERROR, started=8.0), *OUTAGE, primary=(0, 76.1)), Verdict.FAIL),
        ("S15", played(*OUTAGE, replace(ERROR, started=64.0), primary=(0, 76.1)), Verdict.SAFE),
        ("S16", played(WHOLE), Verdict.PASS),
        ("S16", played(replace(WHOLE, model="S16")), Verdict.FAIL),
    ],
)
def test_a_row_is_judged_by_its_conditions(name: str, seen: Played, verdict: Verdict) -> None:
    """Hang, wrong answer and a missed required condition fail; an error is safe; a missed advisory one is partial."""
    assert judge(ROW[name], seen).verdict is verdict


def test_a_primary_that_is_down_does_not_count_as_back() -> None:
    """S15 needs an answer of the primary after its recovery, not only calls to it."""
    seen = replace(played(*OUTAGE), primary=[Call(0.0), Call(RECOVERY_SECONDS - 5)])
    assert judge(ROW["S15"], seen) == Judgement(Verdict.FAIL, "the primary did not serve within 30 s of its recovery")


def test_a_judgement_names_every_missed_condition() -> None:
    """The report says what is missing."""
    seen = played(replace(WHOLE, model="S16", has_usage=False), primary=(0,) * 7)
    assert judge(ROW["S16"], seen).reason == "`model` does not name the fallback, more than 6 calls to the primary"


def test_a_row_that_is_only_safe_is_missing() -> None:
    """The exit code depends on it: every row is to be served."""
    results = [Result(played(), Judgement(verdict)) for verdict in (Verdict.PASS, Verdict.SAFE, Verdict.PARTIAL)]
    assert missing(ROWS[:3], results) == ["S02", "S03"]


def test_a_script_repeats_its_last_action_or_switches_after_its_time() -> None:
    """`in_turn` counts calls, `switch_after` counts seconds from the first call."""
    cut = Answer(words=40)
    assert [in_turn(cut, OK)(number, 0.0) for number in range(3)] == [cut, OK, OK]
    assert [switch_after(60, cut, OK)(0, seconds) for seconds in (0.0, 59.9, 60.0)] == [cut, cut, OK]
