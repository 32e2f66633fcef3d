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
from tests.research_worlds import page
from tests.scripted_models import ScriptedRouter, competent
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
