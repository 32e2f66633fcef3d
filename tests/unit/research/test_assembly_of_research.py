"""The inputs of a run of research by the configuration: every key reaches them, and nothing is left for later."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import smart_model_router
import smart_model_router_research
from smart_model_router.config.research_sections import (
    AnalystConfig,
    EvaluationConfig,
    FloorThresholdsConfig,
    ResearchConfig,
    SearchBackendConfig,
    TiebreakerWeightsConfig,
)
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router_research.assembly import research_backends, research_inputs
from smart_model_router_research.pipeline.run_inputs import ANALYSTS, ResearchBudget, RunInputs
from smart_model_router_research.web.backends import BackendCaps, SearchHit, SearchQuery
from smart_model_router_scoring.confidence import DEFAULT_WEIGHTS
from smart_model_router_scoring.confidence.gates import FLOORS, TIER_THRESHOLDS
from smart_model_router_scoring.decay import DOMAIN_RECENCY_DAYS
from smart_model_router_scoring.options import ConfigError

NOW = datetime(2026, 3, 31, 23, 30, tzinfo=UTC)
OTHERS: dict[str, Any] = {
    "seconds": 60.0,
    "scoring_engine": "matrix",
    "min_recent_sources": 7,
    "tier_thresholds": (0.9, 0.8, 0.5),
    "recency_windows": {"zoology": 7},
    "recency_mode": "binary",
    "aggregation": "geometric",
    "patience": 5,
    "on_contradiction": "halt",
    "corpora": ("/a",),
    "backends": (SearchBackendConfig(kind="arxiv"),),
    "egress": "local_only",
    "allow": ("example.org",),
    "block": ("example.net",),
    "source_tiers": {"example.org": "B"},
    "analysts": (AnalystConfig(name="one"),),
    "rounds": 2,
    "delivery": "always",
    "model": "smart",
    "tiers": {"economy": "small"},
    "criticality": "sheddable",
}
"""Another value than the default, where that is not 0."""


def leaves(section: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key that is no section."""
    for field in fields(section):
        value = getattr(section, field.name)
        yield from leaves(value, (*path, field.name)) if is_dataclass(value) else [(*path, field.name)]


def changed(section: Any, path: tuple[str, ...]) -> Any:
    """Return the section with another value of a key."""
    name, *rest = path
    value = getattr(section, name)
    other = changed(value, tuple(rest)) if rest else OTHERS.get(name, value if isinstance(value, tuple) else 0)
    return replace(section, **{name: other})


def made(**given: Any) -> RunInputs:
    """Return inputs with the defaults of the configuration."""
    return research_inputs("What is it?", now=NOW, **given)


OF_THE_GATEWAY = {("gateway",), ("runs_per_key",), ("keep_days",)}
"""Keys about runs that the gateway performs, which change none."""
KEYS = [
    *[("evaluation", key) for key in leaves(EvaluationConfig())],
    *[("research", key) for key in leaves(ResearchConfig()) if key not in OF_THE_GATEWAY],
]


@pytest.mark.parametrize(("section", "key"), KEYS, ids=lambda each: ".".join(each) if isinstance(each, tuple) else each)
def test_every_key_reaches_the_inputs_of_a_run(section: str, key: tuple[str, ...]) -> None:
    """Another value of a key is another run: no key sets nothing."""
    default = {"evaluation": EvaluationConfig(), "research": ResearchConfig()}[section]

    assert made(**{section: changed(default, key)}) != made()


def test_every_input_is_read_by_some_code() -> None:
    """An input that nothing reads would be a setting that sets nothing."""
    research = Path(smart_model_router_research.__file__).parent
    commands = Path(smart_model_router.__file__).parent / "cli"
    files = [*research.rglob("*.py"), *commands.glob("research_*.py")]
    read = {
        node.attr
        for file in files
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    }
    assert {each.name for each in fields(RunInputs)} - read == set()


def test_the_defaults_are_those_of_the_mathematics() -> None:
    """The configuration says them once more, as it loads without scoring."""
    assert vars(FloorThresholdsConfig()) == FLOORS
    assert vars(TiebreakerWeightsConfig()) == DEFAULT_WEIGHTS
    assert made().tier_thresholds == TIER_THRESHOLDS
    assert made().budget == ResearchBudget()
    assert made().analysts == ANALYSTS
    plain = RunInputs(topic="What is it?", as_of="2026-03-31", min_recent_sources=1)
    assert (
        made().audit_config()
        == replace(plain, recency_window_days=183, recency_windows=made().recency_windows).audit_config()
    )


def test_computed_defaults_are_fixed() -> None:
    """Nothing is left that a later version, day or folder could decide otherwise."""
    found = made(corpora=["docs", "./docs"])

    assert found.as_of == "2026-03-31"
    assert (found.min_recent_sources, found.patience, found.on_contradiction) == (1, 2, "continue")
    assert (found.recency_window_days, found.recency_windows) == (183, dict(DOMAIN_RECENCY_DAYS))
    assert found.corpora == (str(Path.cwd() / "docs"),)


def test_the_window_is_that_of_the_domain() -> None:
    """As configured, else the built-in one."""
    evaluation = changed(EvaluationConfig(), ("deep_research", "recency_windows"))

    assert made(domain="ai_ml").recency_window_days == 90
    assert made(domain="zoology", evaluation=evaluation).recency_window_days == 7


def test_the_old_name_of_matrix_is_known() -> None:
    """`multidimensional` is `matrix`, which is patient once and halts at a contradiction."""
    deep = replace(EvaluationConfig().deep_research, scoring_engine="multidimensional")
    found = made(evaluation=EvaluationConfig(deep_research=deep))

    assert (found.stop_policy, found.patience, found.on_contradiction) == ("matrix", 1, "halt")


def test_what_is_given_for_a_run_goes_before_the_configuration() -> None:
    """None is as configured; a budget is given number by number."""
    config = ResearchConfig(corpora=("/a",), rounds=2)
    found = made(research=config, corpora=None, max_rounds=3, goal="to know", budget={"seconds": 5.0, "usd": None})

    assert (found.corpora, found.max_rounds, found.goal) == (("/a",), 3, "to know")
    assert found.budget == ResearchBudget(seconds=5.0)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"domain": "ai_lm"}, "domain"),
        ({"as_of": "2026-04-01"}, "as_of"),
        ({"as_of": "soon"}, "as_of"),
        ({"max_rounds": 0}, "max_rounds"),
        ({"max_rounds": 5}, "max_rounds"),
        ({"min_ci": 1.1}, "min_ci"),
        ({"min_recent_sources": -1}, "min_recent_sources"),
        ({"budget": {"seconds": 0.0}}, "budget.seconds"),
        ({"stop_policy": "none"}, "policy"),
    ],
)
def test_an_input_that_is_none_is_refused_by_name(given: dict[str, Any], field: str) -> None:
    """The error has the input, its value and what would be right."""
    with pytest.raises(ConfigError) as caught:
        made(**given)
    assert caught.value.field == field


def test_the_back_ends_of_a_run_are_made_by_their_names() -> None:
    """Those of the configuration first; arXiv, and Tavily where its key is in the environment, need none."""
    config = ResearchConfig(
        backends=(
            SearchBackendConfig(kind="corpus"),
            SearchBackendConfig(kind="searxng", name="mine", url="http://search.example/"),
            SearchBackendConfig(kind="recorded", file="/a/searches.json"),
        )
    )

    def names(*wanted: str, environ: dict[str, str] | None = None, research: ResearchConfig = config) -> list[str]:
        return [each.name for each in research_backends(research, environ or {}, wanted)]

    assert names("corpus", "mine", "recorded") == ["mine", "recorded"]
    assert names("mine") == ["mine"]
    assert names("arxiv", "tavily") == ["arxiv"]
    assert names("arxiv", "tavily", environ={"TAVILY_API_KEY": "tvly-x"}, research=ResearchConfig()) == [
        "arxiv",
        "tavily",
    ]
    assert names("nowhere") == []


def test_a_back_end_of_others_is_made_with_its_options() -> None:
    """And with a name only where one is given; what is wrong is told with its place."""
    module = f"{__name__}:OwnBackend"
    config = ResearchConfig(
        backends=(SearchBackendConfig(kind=module, options={"depth": "2"}), SearchBackendConfig(kind=f"{module}s"))
    )
    [found] = research_backends(config, {}, [module])

    assert isinstance(found, OwnBackend)
    assert found.depth == "2"
    with pytest.raises(ConfigurationError) as caught:
        research_backends(config, {}, [f"{module}s"])
    assert caught.value.key == "research.backends[1].kind"


def test_the_web_asks_for_ten_recent_sources() -> None:
    """A corpus for one; what is written or given counts."""
    web = ResearchConfig(backends=(SearchBackendConfig(kind="corpus"), SearchBackendConfig(kind="arxiv")))

    assert (made(research=web).backends, made(research=web).min_recent_sources) == (("corpus", "arxiv"), 10)
    assert made(research=web, backends=("corpus",)).min_recent_sources == 1
    assert made(research=web, min_recent_sources=3).min_recent_sources == 3
    assert made(seed_urls=("https://a.example/",)).min_recent_sources == 1


class OwnBackend:
    """A back-end of a user's own."""

    name = "own"
    caps = BackendCaps()

    def __init__(self, depth: str) -> None:
        self.depth = depth

    async def search(self, query: SearchQuery) -> list[SearchHit]:
        """Return nothing."""
        del query
        return []
