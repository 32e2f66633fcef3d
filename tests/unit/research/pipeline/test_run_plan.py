"""The plan of a run: its steps and searches counted, and the gates that its sources cannot pass."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from smart_model_router_research.deep.claims import CitedDocument, SourceTier
from smart_model_router_research.deep.metrics import MetricsConfig
from smart_model_router_research.deep.quality import AuditConfig
from smart_model_router_research.pipeline.opened_corpora import open_corpora
from smart_model_router_research.pipeline.run_inputs import RunInputs
from smart_model_router_research.pipeline.run_plan import plan_of, unreachable_gates
from smart_model_router_research.web.backends import SearchBackend
from smart_model_router_research.web.recorded import RecordedBackend
from smart_model_router_research.web.searxng import SearxngBackend
from tests.research_worlds import ListedSearch

AS_OF = datetime(2026, 3, 31, tzinfo=UTC)
CONFIG = AuditConfig(metrics=MetricsConfig(as_of=AS_OF), min_recent_sources=1)
MATRIX = replace(CONFIG, policy="matrix")


def document(day: str = "2026-03-01", tier: SourceTier = SourceTier.A) -> CitedDocument:
    """Return a document of a day; "" is an unknown one."""
    confidence = "high" if day else "unknown"
    return CitedDocument(id=f"{day}{tier}", title="", tier=tier, published=day, date_confidence=confidence)


def named(documents: list[CitedDocument], config: AuditConfig = CONFIG, others: int = 0) -> list[str]:
    """Return the names of the gates that cannot be passed."""
    return [each.gate for each in unreachable_gates(documents, config, others=others)]


def test_recent_sources_of_tier_a_can_pass_everything() -> None:
    """Both policies."""
    assert named([document()]) == []
    assert named([document()], MATRIX) == []


def test_undated_sources_cannot_be_recent() -> None:
    """Neither their number nor their age passes; the settings are named."""
    found = unreachable_gates([document(""), document("")], CONFIG)

    assert [(each.gate, each.best, each.needed) for each in found] == [
        ("recent_source_count", 0, 1),
        ("recency", 0.25, 0.30),
    ]
    assert [each.setting for each in found] == [
        "--min-recent-sources, or dates in corpus.yaml",
        "evaluation.deep_research.floor_thresholds.recency",
    ]


def test_sources_that_were_not_looked_at_may_pass() -> None:
    """Only their number is certain."""
    assert named([document("")], others=1) == []
    assert named([document("")], replace(CONFIG, min_recent_sources=3), others=1) == ["recent_source_count"]


def test_high_in_each_metric_is_asked_by_matrix() -> None:
    """Tier B is .6, below High; the index is not asked."""
    found = unreachable_gates([document(tier=SourceTier.B)], MATRIX)

    assert [(each.gate, each.setting) for each in found] == [
        ("source_quality", "evaluation.deep_research.tier_thresholds")
    ]
    assert named([document(tier=SourceTier.B)]) == []


def test_the_best_index_is_compared_with_its_target() -> None:
    """An old source of tier B lowers it, however good the answers are."""
    config = replace(CONFIG, min_ci=0.95, min_recent_sources=0, floors={})

    assert named([document("2025-10-01", SourceTier.B)], config) == ["ci_score"]
    assert named([document("2025-10-01", SourceTier.B)], replace(config, min_ci=0.8)) == []


def test_what_is_never_cited_counts_for_nothing() -> None:
    """Tier C alone has no recent source."""
    assert named([document(tier=SourceTier.C)]) == ["recent_source_count"]


@pytest.mark.anyio
async def test_a_plan_counts_steps_and_searches(tmp_path: Path) -> None:
    """As the workflow is: 11 steps when the first round passes, 17 with two, 29 at most; nothing is searched.

    A file without text is no document.
    """
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (tmp_path / "docs" / "tides.md").write_text("# Tides\n\nThe tide rises by four metres.\n")
    inputs = RunInputs(topic="When was it founded? How high is the tide?", as_of="2026-03-31", min_recent_sources=2)
    corpora = await open_corpora([tmp_path / "docs"], as_of=AS_OF, cache=tmp_path / "cache")

    plan = await plan_of(inputs, corpora.searches)
    assert (plan.steps, len(plan.questions), plan.documents, plan.looked_at) == ((11, 17, 29), 2, 1, 1)
    assert [each.gate for each in plan.gates] == ["recent_source_count", "recency"]
    low, likely, cap = plan.searches
    assert (len(plan.questions) <= low < likely, cap) == (True, 60)
    assert plan.kinds[:2] == ("intake_scope", "source_policy")

    once = await plan_of(replace(inputs, max_rounds=1), corpora.searches)
    assert (once.steps, once.searches) == ((11, 11, 11), (low, low, 60))


def test_a_plan_says_what_goes_where_of_the_web() -> None:
    """Back-ends with their hosts, pages that are named, and, beside a corpus, that none of its words do."""
    inputs = RunInputs(
        topic="When was Port Alder founded?",
        as_of="2026-03-31",
        backends=("corpus", "searxng", "recorded"),
        seed_urls=("https://a.example/",),
    )
    backends: list[SearchBackend] = [SearxngBackend(url="http://search.example/"), RecordedBackend(searches={})]
    alone, beside = (asyncio.run(plan_of(inputs, corpora, backends)) for corpora in ([], [ListedSearch()]))

    assert alone.sent == (
        "the questions and what is searched for them, to searxng (search.example)",
        "nothing, to recorded",
        "requests for the pages that you name (1), to their hosts",
        "requests for pages that these find, 120 at most, to their hosts",
    )
    assert "in no words of your documents, to searxng" in beside.sent[0]
    assert alone.gates == ()  # pages that are not known may pass every gate
    assert asyncio.run(plan_of(RunInputs(topic="What is it?", as_of="2026-03-31"), [ListedSearch()])).sent == ()
