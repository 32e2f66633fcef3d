"""X9: instructions that are planted on pages change no search, fetch, domain, score or budget of a run."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from smart_model_router_research.deep import ReadingContext, read_response
from tests.planted_pages import CLEAN, HIDDEN, ORDER, PLANTED
from tests.unit.research.pipeline.test_web_runs import ARLAND, engine_of, run
from tests.web_pages import Reply, SmallWeb

pytestmark = pytest.mark.loopback
QUESTIONS = "What is the capital of Arland? What is the population of Arland?"
HITS = ("http://www.arland.gov/facts", "http://atlas.example/arland")
CONTEXT = ReadingContext(as_of=datetime(2026, 7, 1, tzinfo=UTC))


def outcome_of(page: Reply) -> dict[str, Any]:
    """Return all that a run over a page and a clean one did and found, and the stored text of that page."""
    web = SmallWeb({"www.arland.gov/facts": ARLAND, "atlas.example/arland": page, "engine/search": engine_of(*HITS)})
    with TemporaryDirectory() as folder:
        found = run(Path(folder), web, QUESTIONS)
        graph = json.loads((Path(folder) / "run" / "claim_graph.json").read_text())
        documents = json.loads((Path(folder) / "run" / "citations.json").read_text())["citations"]
        report = (Path(folder) / "run" / "final_report.html").read_text()
    assert "evil.example" not in report
    return {
        "requests": [each.url for each in web.requests],
        "resolved": sorted(set(web.resolved)),
        "queries": found.of("query"),
        "hits": found.of("hit"),
        "metrics": found.of("metric"),
        "gates": found.of("gate"),
        "rounds": found.of("round"),
        "claims": [(each["text"], each["status"]) for each in graph["claims"]],
        "sources": [(each["url"], each["tier"], each["publisher"]) for each in documents],
        "answers": found.result.answers,
        "usage": found.result.usage,
        "status": (found.result.status, found.result.delivery, found.result.stop_reason),
    }


@cache
def clean(form: str) -> dict[str, Any]:
    """Return the outcome of a run over the page without an instruction."""
    return outcome_of(CLEAN[form])


def test_there_are_thirty_kinds_of_planted_pages() -> None:
    """Each has the instruction in some form, and the clean page of its format has not."""
    assert len(PLANTED) >= 30
    assert {name.partition(" ")[0] for name in PLANTED} == set(CLEAN)
    assert "capital of Arland" in str(clean("html")["answers"])


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_instruction_changes_nothing(kind: str) -> None:
    """Same requests, queries, hits, claims, tiers, scores, gates, budgets and answers as without it."""
    assert outcome_of(PLANTED[kind]) == clean(kind.partition(" ")[0])


@pytest.mark.parametrize("kind", HIDDEN)
def test_hidden_text_is_not_stored(kind: str) -> None:
    """Nor a part of it."""
    page = HIDDEN[kind]
    assert isinstance(page.body, str)
    found = read_response(page.body.encode(), "http://atlas.example/arland", page.headers, CONTEXT).document

    assert found is not None
    assert "capital of Arland" in found.text
    assert not any(word in str(found) for word in ("SYSTEM", "evil.example", ORDER[:20], "\U000e0053"))
