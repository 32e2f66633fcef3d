"""Runs of research as clients ask for them: anything is an answer of 400 or a run within the operator's limits."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smart_model_router.config import EvaluationConfig, ResearchConfig
from smart_model_router.config.research_sections import ResearchBudgetConfig, SearchBackendConfig
from smart_model_router.gateway.research.research_request import OPERATORS, AskedRun, read_run
from smart_model_router.http_api import Problem, ProblemError
from smart_model_router_research.pipeline.run_inputs import RunInputs

NOW = datetime(2026, 7, 1, tzinfo=UTC)
RESEARCH = ResearchConfig(
    corpora=("/srv/atlas", "/srv/laws", "/old/laws"), rounds=3, budget=ResearchBudgetConfig(usd=1.5, searches=10)
)
CORPORA = {"atlas": ["/srv/atlas"], "laws": ["/srv/laws", "/old/laws"]}
NAMES = (*(AskedRun.__dataclass_fields__), *OPERATORS, "owner", "")
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["matrix", "always"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["usd", "seconds", "name", "lens", "coverage"]) | st.text(max_size=3), inner)
    ),
    max_leaves=6,
)


def read(body: Any, *, usd_left: float = 100.0) -> RunInputs:
    """Return the inputs of a body."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return read_run(
        content, research=RESEARCH, evaluation=EvaluationConfig(), corpora=CORPORA, usd_left=usd_left, now=NOW
    )


@given(st.dictionaries(st.sampled_from(NAMES), VALUES, max_size=4), st.booleans())
def test_whatever_is_asked_is_a_run_within_limits_or_a_clear_no(asked: dict[str, Any], has_topic: bool) -> None:
    """No value is an error of another kind, reads a path that it names, or raises a limit of the operator."""
    body = {**asked, "topic": "x"} if has_topic else asked
    refused: Problem | None = None
    found: RunInputs | None = None
    try:
        found = read(body)
    except ProblemError as error:
        refused = error.problem
    if found is None:
        assert refused is not None
        assert (refused.kind.status, 0 < len(refused.message) < 1_000) == (400, True)
        return
    assert set(found.corpora) <= {"/srv/atlas", "/srv/laws", "/old/laws"}
    assert found.max_rounds <= RESEARCH.rounds
    limits = asdict(RESEARCH.budget)
    assert all(value <= limits[name] for name, value in asdict(found.budget).items())
    assert (found.allow, found.block, found.tiers) == ((), (), {})


@given(st.binary(max_size=40))
def test_a_body_that_is_no_object_is_told(body: bytes) -> None:
    """Whatever its bytes are."""
    with pytest.raises(ProblemError):
        read(body)


def test_a_run_costs_no_more_than_its_key_has_left() -> None:
    """Of the operator's limit, the client's and the rest of the key the least counts."""
    assert read({"topic": "x"}).budget.usd == 1.5
    assert read({"topic": "x"}, usd_left=0.25).budget.usd == 0.25
    assert read({"topic": "x", "budget": {"usd": 0.1}}, usd_left=0.25).budget.usd == 0.1
    assert read({"topic": "x", "budget": {"usd": 1}}, usd_left=0.0).budget.usd == 0.0
    with pytest.raises(ProblemError, match=r"budget\.usd: 2\.0 - at most 1\.5 is needed \(research\.budget\.usd\)"):
        read({"topic": "x", "budget": {"usd": 2}})


def test_corpora_are_chosen_by_their_names() -> None:
    """Each once, in the order asked for; corpora of one name go by it together; all without names."""
    assert read({"topic": "x"}).corpora == ("/srv/atlas", "/srv/laws", "/old/laws")
    assert read({"topic": "x", "corpora": ["laws", "atlas", "laws"]}).corpora == (
        "/srv/laws",
        "/old/laws",
        "/srv/atlas",
    )
    for named in ("/srv/atlas", "../laws", "Atlas"):
        with pytest.raises(ProblemError, match="a corpus of this gateway is needed: atlas, laws"):
            read({"topic": "x", "corpora": [named]})


def test_a_gateway_without_research_imports_nothing_of_it() -> None:
    """Neither its package nor its routes."""
    program = (
        "import sys; from smart_model_router.config import RouterConfig;"
        "from smart_model_router.gateway import Gateway;"
        "Gateway(lambda: RouterConfig.from_mapping({'version': 1, 'providers': {'p': {'kind': 'openai_compatible',"
        "'base_url': 'http://127.0.0.1:9/v1', 'api_key': 'k'}}, 'models': {'m': {'targets': ['p/m']}}}));"
        "print([name for name in sys.modules if name.startswith('smart_model_router_research')"
        " or name.startswith('smart_model_router.gateway.research.') and not name.endswith('research_door')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_gateway_without_corpora_may_search_the_web() -> None:
    """As its operator configured; a client names neither back-ends nor pages, and no corpus that is not there."""
    web = ResearchConfig(backends=(SearchBackendConfig(kind="arxiv"),))

    def asked(body: dict[str, Any], research: ResearchConfig) -> RunInputs:
        content = json.dumps({"topic": "What is it?", **body}).encode()
        return read_run(content, research=research, evaluation=EvaluationConfig(), corpora={}, usd_left=1.0, now=NOW)

    found = asked({}, web)
    assert (found.corpora, found.backends, found.min_recent_sources) == ((), ("arxiv",), 10)
    for body, research in (
        ({}, ResearchConfig()),
        ({"corpora": ["atlas"]}, web),
        ({"seed_urls": ["http://a.example/"]}, web),
        ({"egress": "public"}, web),
    ):
        with pytest.raises(ProblemError):
            asked(body, research)
