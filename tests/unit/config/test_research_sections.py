"""The sections `research` and `evaluation`: mistakes are named at load, with their place in a file of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from smart_model_router.config import EvaluationConfig, ResearchConfig, RouterConfig
from smart_model_router.config.research_sections import load_evaluation
from smart_model_router.domain.errors import ConfigurationError


def read(**sections: Any) -> RouterConfig:
    """A configuration with these sections."""
    model = {"tiers": [{"targets": ["s/m"]}]}
    return RouterConfig.from_mapping(
        {"version": 1, "providers": {"s": {"kind": "scripted"}}, "models": {"smart": model}, **sections}
    )


def test_numbers_are_written_with_units() -> None:
    """As everywhere: 15m, 400k, 20%."""
    budget = read(research={"budget": {"seconds": "15m", "tokens": "400k", "reserve": "20%"}}).research.budget

    assert (budget.seconds, budget.tokens, budget.reserve) == (900, 400_000, 0.2)


def test_nothing_given_is_the_defaults() -> None:
    """Of both sections."""
    assert (read().research, read().evaluation) == (ResearchConfig(), EvaluationConfig())


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ({"research": {"corpus": ["docs"]}}, "research.corpus"),
        ({"research": {"rounds": 5}}, "research.rounds"),
        ({"research": {"backends": ["tavily"]}}, "research.backends[0].api_key"),
        ({"research": {"backends": ["searxng"]}}, "research.backends[0].url"),
        ({"research": {"backends": ["recorded"]}}, "research.backends[0].file"),
        ({"research": {"backends": ["corpus", {"name": "a"}]}}, "research.backends[1].kind"),
        ({"research": {"backends": [{"kind": "arxiv", "depth": 2}]}}, "research.backends[0].depth"),
        ({"research": {"backends": ["arxiv", "arxiv"]}}, "research.backends[1].name"),
        ({"research": {"backends": [{"kind": "arxiv", "name": "a b"}]}}, "research.backends[0].name"),
        ({"research": {"backends": [{"kind": "searxng", "url": "localhost"}]}}, "research.backends[0].url"),
        ({"research": {"backends": [{"kind": "searxng", "url": "http://a:b@c/"}]}}, "research.backends[0].url"),
        ({"research": {"backends": [{"kind": "tavily", "api_key": "tvly-written"}]}}, "research.backends[0].api_key"),
        ({"research": {"egress": "local"}}, "research.egress"),
        ({"research": {"egress": "local_only", "backends": ["corpus", "arxiv"]}}, "research.backends[1]"),
        ({"research": {"allow": ["https://example.org/"]}}, "research.allow[0]"),
        ({"research": {"block": ["example.org", "a b"]}}, "research.block[1]"),
        ({"research": {"source_tiers": {"a b": "A"}}}, "research.source_tiers['a b']"),
        ({"research": {"source_tiers": {"example.org": "D"}}}, "research.source_tiers['example.org']"),
        ({"research": {"analysts": [{"name": "A b"}]}}, "research.analysts[0].name"),
        ({"research": {"analysts": [{"name": "a"}, {"name": "a"}]}}, "research.analysts[1].name"),
        ({"research": {"budget": {"reserve": 0.6}}}, "research.budget.reserve"),
        ({"evaluation": {"deep_research": {"min_ci": 80}}}, "evaluation.deep_research.min_ci"),
        (
            {"evaluation": {"deep_research": {"tier_thresholds": [0.9, 0.5]}}},
            "evaluation.deep_research.tier_thresholds",
        ),
        (
            {"evaluation": {"deep_research": {"tier_thresholds": [0.5, 0.7, 0.9]}}},
            "evaluation.deep_research.tier_thresholds",
        ),
        (
            {"evaluation": {"deep_research": {"floor_thresholds": {"coverge": 0.5}}}},
            "evaluation.deep_research.floor_thresholds.coverge",
        ),
        (
            {
                "evaluation": {
                    "deep_research": {
                        "tiebreaker_weights": dict.fromkeys(
                            ("coverage", "source_quality", "agreement", "verification", "recency"), 0
                        )
                    }
                }
            },
            "evaluation.deep_research.tiebreaker_weights",
        ),
    ],
)
def test_a_mistake_is_refused_by_name(section: dict[str, Any], key: str) -> None:
    """When the configuration is read, not when a run begins."""
    with pytest.raises(ConfigurationError) as caught:
        read(**section)
    assert caught.value.key == key


def test_a_key_of_a_back_end_is_named_and_never_written() -> None:
    """By a variable, or a file; a key that stands in the file itself is refused, and not shown."""
    environ = {"TAVILY_API_KEY": "tvly-canary"}
    mapping = {"version": 1, "providers": {"s": {"kind": "scripted"}}, "models": {"m": {"targets": ["s/m"]}}}
    section = {"backends": ["corpus", {"kind": "tavily", "api_key": "${TAVILY_API_KEY}"}]}
    found = RouterConfig.from_mapping({**mapping, "research": section}, environ=environ).research

    assert [each.label for each in found.backends] == ["corpus", "tavily"]
    assert found.backends[1].api_key is not None
    assert found.backends[1].api_key.reveal() == "tvly-canary"
    assert "canary" not in repr(found)
    with pytest.raises(ConfigurationError) as caught:
        read(research={"backends": [{"kind": "tavily", "api_key": "tvly-canary"}]})
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("provider", "is_here"),
    [
        ({"kind": "ollama"}, True),
        ({"kind": "scripted"}, True),
        ({"kind": "openai_compatible", "base_url": "http://127.0.0.1:8000/v1"}, True),
        ({"kind": "openai_compatible", "base_url": "http://localhost:8000/v1"}, True),
        ({"kind": "openai_compatible", "base_url": "http://[::1]:8000/v1"}, True),
        ({"kind": "openai_compatible", "base_url": "http://10.0.0.5:8000/v1"}, False),
        ({"kind": "ollama", "base_url": "https://ollama.example/v1"}, False),
        ({"kind": "openai", "api_key": "k"}, False),
    ],
)
def test_under_local_only_a_model_is_of_this_machine(provider: dict[str, str], is_here: bool) -> None:
    """One with any target elsewhere is refused by name, whichever tier has it."""
    sections = {
        "providers": {"s": {"kind": "scripted"}, "p": provider},
        "models": {"smart": {"tiers": [{"targets": ["s/m"]}, {"targets": ["p/m"]}], "last_resort": []}},
    }
    allowed = {"version": 1, **sections, "research": {"model": "smart"}}
    refused = {**allowed, "research": {"model": "smart", "egress": "local_only"}}

    assert RouterConfig.from_mapping(allowed).research.model == "smart"
    if is_here:
        assert RouterConfig.from_mapping(refused).research.egress == "local_only"
    else:
        with pytest.raises(ConfigurationError, match="p/m is elsewhere") as caught:
            RouterConfig.from_mapping(refused)
        assert caught.value.key == "research.model"


def test_a_file_of_its_own_has_the_same_tree(tmp_path: Path) -> None:
    """`evaluation:` is its only key."""
    file = tmp_path / "evaluation.yaml"
    file.write_text("evaluation:\n  deep_research:\n    min_ci: ${CI:-85%}\n")

    assert load_evaluation(file, environ={}).deep_research.min_ci == 0.85


def test_mistakes_in_a_file_of_its_own_have_line_and_column(tmp_path: Path) -> None:
    """All at once: unknown keys, wrong values, and what no single key shows."""
    file = tmp_path / "evaluation.yaml"
    deep = "    min_cii: 1\n    patience: never\n    tier_thresholds: [0.1, 0.2, 0.3]\n"
    file.write_text(f"evaluation:\n  deep_research:\n{deep}")
    with pytest.raises(ConfigurationError) as caught:
        load_evaluation(file)

    found = {fault.key.rpartition(".")[2]: fault.expected for fault in (caught.value, *caught.value.others)}
    assert set(found) == {"min_cii", "patience", "tier_thresholds"}
    assert found["min_cii"].startswith("no such key; did you mean 'min_ci'")
    places = {key: expected.rpartition(" ")[2] for key, expected in found.items()}
    assert places == {"min_cii": f"({file}:3:5)", "patience": f"({file}:4:5)", "tier_thresholds": f"({file}:5:5)"}


@pytest.mark.parametrize("text", ["min_ci: 0.5\n", "deep_research: {}\n", "- 1\n"])
def test_a_file_of_another_tree_is_refused(tmp_path: Path, text: str) -> None:
    """A key beside `evaluation:` would have no effect: it is refused."""
    file = tmp_path / "evaluation.yaml"
    file.write_text(text)
    with pytest.raises(ConfigurationError, match=r"evaluation\.yaml"):
        load_evaluation(file)
