"""Models that lie, loop, refuse or obey a page, in runs over drawn worlds: style and cost change, and no truth does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, seed, settings
from hypothesis import strategies as st

from smart_model_router_research.deep.artefact_records import CITATIONS, GRAPH, MANIFEST
from smart_model_router_research.deep.rounds import Delivery
from tests.drawn_research_worlds import DrawnWorld, RunOutcome, drawn_worlds, outcome_of
from tests.research_worlds import ENGINES
from tests.scripted_models import LIARS

PROFILE = settings()
WORLDS = settings(max_examples=56 if PROFILE.max_examples > 100 else 3)
"""With nine liars 27 runs, or 504."""


@pytest.mark.parametrize("liar", sorted(LIARS))
@seed(25)
@WORLDS
@given(world=drawn_worlds(), engine=st.sampled_from(ENGINES))
def test_a_lying_model_takes_nothing_away_and_adds_nothing_untrue(engine: str, liar: str, world: DrawnWorld) -> None:
    """Claims without a model are kept, what is added passes all checks, no citation is made up, no report is worse."""
    without, found = outcome_of(world, engine), outcome_of(world, engine, liar=liar)

    assert found.asked
    assert found.verified.problems == ()
    assert found.differing == []
    assert _answered(found) >= _answered(without)
    assert set(found.result.answers) >= set(without.result.answers)
    assert _level(found) <= _level(without)
    for cited in found.read(CITATIONS)["citations"]:
        text = found.documents[cited["doc_id"]].stored.text
        assert all(text[slice(*each["span"])] == each["quote"] for each in cited["quotes"])
    complete = found.read(MANIFEST)["completeness"]
    assert world.says_all or (complete["critical"] == 1.0 and complete["rest"] >= 0.95)
    added = _added(found, without)
    assert not any("evil" in text for text in added)
    assert liar == "colludes" or not any("password" in text for text in added)  # it is what the page says of itself


def _level(found: RunOutcome) -> int:
    """Return the rank of a delivery, 0 the best."""
    return list(Delivery).index(Delivery(found.result.delivery))


def _answered(found: RunOutcome) -> set[tuple[str, str]]:
    """Return the supported claims of the delivered round, with the questions that they answer."""
    return {(each["question_id"], each["text"]) for each in _claims(found) if each["status"] == "supported"}


def _claims(found: RunOutcome) -> Iterator[Any]:
    graph = found.read(GRAPH)
    selected = graph["rounds"][found.result.quality_metadata["selected_round"] - 1]
    return (graph["claims"][at] for at in selected["claims"])


def _added(found: RunOutcome, without: RunOutcome) -> set[str]:
    return {text for _, text in _answered(found) - _answered(without)}
