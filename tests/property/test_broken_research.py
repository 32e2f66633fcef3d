"""The tests of research runs are tested: each way to break the pipeline makes one of them fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, seed, settings

from smart_model_router_research.pipeline.run_inputs import ResearchBudget
from tests import research_breaks as breaks
from tests.drawn_research_worlds import LATER, MARKED, DrawnWorld, drawn_worlds, outcome_of
from tests.property import test_research_runs as properties
from tests.unit.research.pipeline import test_limits_of_runs as limits
from tests.unit.research.pipeline import test_runs as runs

Noticing = Callable[[Path], None]


@cache
def worlds() -> list[DrawnWorld]:
    """Return the worlds that the properties are tried with."""
    found: list[DrawnWorld] = []

    @seed(20)
    @settings(max_examples=20, database=None)
    @given(drawn_worlds())
    def collect(world: DrawnWorld) -> None:
        found.append(world)

    collect()
    return [*found, LATER, MARKED]


def in_a_world(test: Any) -> Noticing:
    """Try a property with the drawn worlds, without looking for the smallest one."""

    def tried(_: Path) -> None:
        for world in worlds():
            test.hypothesis.inner_test(engine="kahn", world=world)

    return tried


def on_kahn(test: Callable[..., None], *rest: Any) -> Noticing:
    """Try a test of runs on one engine."""
    return lambda folder: test(folder, "kahn", *rest)


HALF = "Which has the larger population, Arland or Corland?"
NOTHING = ResearchBudget(searches=0)
BEST = properties.test_a_passed_gate_ends_the_rounds_and_the_best_round_is_delivered
NOTICED: list[tuple[breaks.Break, Noticing]] = [
    (breaks.a_passed_gate_goes_on, on_kahn(runs.test_a_round_that_passes_is_the_last_one)),
    (breaks.the_latest_is_delivered, in_a_world(BEST)),
    (breaks.a_repair_is_everything, on_kahn(runs.test_old_sources_are_looked_up_once_more)),
    (breaks.rounds_forget, in_a_world(BEST)),
    (breaks.claims_stay_apart, on_kahn(runs.test_a_border_is_confirmed_from_both_sides)),
    (
        breaks.half_an_answer,
        on_kahn(runs.test_half_of_an_answer_is_none, HALF),
    ),
    (breaks.the_reserve_is_spent, in_a_world(properties.test_limits_hold)),
    (breaks.searches_are_forgotten, in_a_world(properties.test_limits_hold)),
    (
        breaks.limits_are_silent,
        on_kahn(limits.test_a_run_that_may_not_search_is_partial, NOTHING),
    ),
    (breaks.time_is_endless, on_kahn(limits.test_time_ends_searching_before_the_reserve)),
    (breaks.anything_is_cited, on_kahn(runs.test_a_blocked_page_is_not_read)),
    (breaks.another_round_is_forgotten, in_a_world(properties.test_a_contradiction_of_any_round_is_shown)),
    (breaks.nothing_is_marked, in_a_world(properties.test_a_sentence_has_supported_claims_or_a_mark)),
    (
        breaks.anything_was_looked_for,
        on_kahn(
            runs.test_a_question_of_an_analyst_that_fails_is_not_looked_for, {"analysts": (runs.FEW,)}, "no_analyst"
        ),
    ),
]


@pytest.fixture
def fresh() -> Iterator[None]:
    """Runs of a broken pipeline are not remembered, nor are those before it."""
    outcome_of.cache_clear()
    yield
    outcome_of.cache_clear()


@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(("broken", "noticing"), NOTICED, ids=[each.__name__ for each, _ in NOTICED])
def test_what_is_broken_is_noticed(
    broken: breaks.Break, noticing: Noticing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken, a run fails the test that says so."""
    broken(monkeypatch)

    with pytest.raises(AssertionError):
        noticing(tmp_path)


def test_every_way_to_break_is_tried() -> None:
    """Each function of research_breaks.py is in the list."""
    ways = {each for each in vars(breaks).values() if getattr(each, "__module__", "") == breaks.__name__}
    assert ways - {breaks.Break} <= {each for each, _ in NOTICED} | {breaks.audit_rounds}
