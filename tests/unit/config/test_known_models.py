"""Facts of a target and their sources: the configuration, the table of models, the catalog, the price list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from smart_model_router.cli.app import Models
from smart_model_router.config import PriceConfig, RouterConfig, TargetConfig
from smart_model_router.config.known_models import Known, KnownTarget
from smart_model_router.config.lint import ConfigFinding, findings_of
from smart_model_router.core.media_tokens import FAMILIES
from smart_model_router.domain.outcome import Usage
from smart_model_router.domain.request import NEEDS, Need
from smart_model_router_providers.catalog import KINDS, MODELS, ModelRow, ability, media_family, prefill, reasoning


def known(kind: str, model: str, **said: Any) -> KnownTarget:
    """Make what is known of a model of a kind, when its owner has said so much."""
    return KnownTarget(TargetConfig(target=f"p/{model}", **said), kind)


@pytest.mark.parametrize(
    ("kind", "model", "need", "can"),
    [
        ("openai", "gpt-4o", "images", True),
        ("openai", "gpt-4o", "audio", False),
        ("openai", "gpt-4o-audio-preview", "audio", True),
        ("openai", "gpt-audio-mini", "audio", True),
        ("openai", "gpt-3.5-turbo", "images", False),
        ("openai", "gpt-4", "images", False),
        ("openai", "gpt-4-0613", "pdf", False),
        ("openai", "gpt-9", "pdf", None),
        ("openai", "o3-mini", "images", False),
        ("openai", "o3", "images", True),
        ("anthropic", "claude-2.1", "images", False),
        ("anthropic", "claude-sonnet-4-5", "pdf", True),
        ("anthropic", "claude-unheard-of", "audio", False),
        ("openrouter", "anthropic/claude-opus-5", "images", True),
        ("openrouter", "meta-llama/llama-3.3-70b-instruct", "images", False),
        ("gemini", "gemini-2.5-flash", "audio", True),
        ("groq", "llama-3.3-70b-versatile", "images", False),
        ("groq", "meta-llama/llama-4-scout-17b-16e-instruct", "images", None),
        ("deepseek", "anything", "images", False),
        ("azure", "gpt-4", "images", None),
        ("ollama", "llama3.2-vision", "images", None),
    ],
)
def test_an_ability_is_known_by_name_or_by_kind(kind: str, model: str, need: Need, can: bool | None) -> None:
    """A name says nothing where its owner chose it, and an unknown one is not denied anything that its kind can do."""
    assert ability(kind, model, need)[0] is can


@pytest.mark.parametrize(
    ("kind", "model", "family"),
    [
        ("openai", "gpt-4o-2024-11-20", "gpt-4o"),
        ("openai", "gpt-4o-mini", "gpt-4o-mini"),
        ("openai", "gpt-5-mini", "patches-mini"),
        ("openai", "gpt-5.4-nano", "patches-nano"),
        ("openai", "gpt-5.4", "patches"),
        ("openai", "gpt-5.1", "gpt-5"),
        ("openai", "gpt-5-chat-latest", "gpt-5"),
        ("openai", "o4-mini", "patches-o4-mini"),
        ("openai", "some-new-one", "patches"),
        ("azure", "our-deployment", "gpt-4o"),
        ("anthropic", "claude-opus-4-1", "claude"),
        ("anthropic", "claude-opus-4-7", "claude-wide"),
        ("anthropic", "claude-sonnet-4-20250514", "claude"),
        ("openrouter", "google/gemini-2.5-pro", "gemini"),
        ("gemini", "gemini-3-pro-preview", "gemini-3"),
        ("mistral", "pixtral-large-latest", "pixtral"),
        ("openai_compatible", "whatever", ""),
    ],
)
def test_the_rules_for_media_follow_the_name(kind: str, model: str, family: str) -> None:
    """Wherever a model is served; a name that says nothing has those of its kind."""
    assert media_family(kind, model) == family


def test_thinking_and_prefill_follow_the_name() -> None:
    """With the page that says so."""
    assert reasoning("o3")[0] is reasoning("gpt-5")[0] is reasoning("deepseek-reasoner")[0] is True
    assert reasoning("gpt-5-chat-latest")[0] is False
    assert reasoning("gpt-4o") == (None, "")
    assert prefill("anthropic", "claude-3-haiku")[0] == "plain"
    assert prefill("anthropic", "claude-opus-4-6") == ("asked", "Anthropic, Prefill Claude's response")
    assert prefill("mistral", "mistral-large") == ("prefix", "catalog")


@pytest.mark.parametrize("row", MODELS, ids=lambda row: row.pattern)
def test_a_row_has_a_source_and_contradicts_nothing(row: ModelRow) -> None:
    """A family that there is; no ability both ways."""
    assert row.source
    assert row.media is None or row.media in FAMILIES
    assert not set(row.can) & set(row.cannot)
    assert {*row.can, *row.cannot} <= set(NEEDS)


def test_every_kind_has_rules_for_media() -> None:
    """Those of no family are the default's."""
    assert {kind.media for kind in KINDS.values()} <= set(FAMILIES)


def test_the_configuration_comes_before_every_table() -> None:
    """For each fact, also against what is documented."""
    said = known(
        "openai", "gpt-4", tools=False, images=True, pdf=True, audio=True, schema=True, reasoning=True, prefill="plain",
        context_tokens=5, price=PriceConfig(input=1, output=2),
    )  # fmt: skip
    abilities = [said.ability(need) for need in NEEDS]
    facts: list[Known[Any]] = [*abilities, said.reasoning, said.prefill, said.context_tokens, said.price]
    assert {fact.source for fact in facts} == {"configuration"}
    assert said.lacks == {"tools"}
    cost = said.cost_usd
    assert cost is not None
    assert cost(Usage(1_000_000, 1_000_000)) == pytest.approx(3.0)
    assert cost(Usage(-1, 0)) is None
    assert known("openai_compatible", "gpt-4").cost_usd is None


@pytest.mark.parametrize(
    ("kind", "model"), [("openai", "gpt-4o"), ("anthropic", "claude-sonnet-4-5"), ("ollama", "x"), ("local", "smollm2")]
)
def test_every_fact_has_a_source_or_is_unknown(kind: str, model: str) -> None:
    """And the other way round: nothing is claimed by none."""
    one = known(kind, model)
    facts: list[Known[Any]] = [*(one.ability(need) for need in NEEDS), one.reasoning, one.context_tokens, one.price]
    for fact in facts:
        assert (fact.value is None) == (fact.source == "")


CONFIG = """
version: 1
providers:
  a: {kind: openai, api_key: k}
  own: {kind: openai_compatible, base_url: "http://127.0.0.1:9/v1"}
models:
  smart:
    tiers:
      - targets:
          - a/gpt-4o
          - {target: own/mine, audio: true, price: {input: 1, output: 2}}
          - own/other
    last_resort: []
gateway:
  keys: {team: {key: team-key, usd_per_day: 5}}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Write a configuration."""
    path = tmp_path / "smart-router.yaml"
    path.write_text(CONFIG)
    return path


def test_smr_models_shows_what_each_target_can_do_takes_and_costs(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a table, and with every source in JSON."""
    assert Models(config=file).run() == 0
    table = capsys.readouterr().out
    assert "tools images schema pdf" in table
    assert "128000" in table
    assert "unknown" in table
    assert Models(config=file, as_json=True).run() == 0
    [model] = json.loads(capsys.readouterr().out)["models"]
    listed, mine, other = model["tiers"][0]["targets"]
    assert listed["capabilities"]["images"] == {"value": True, "source": "OpenAI, Models"}
    assert listed["capabilities"]["context_tokens"] == {"value": 128_000, "source": "genai-prices"}
    assert listed["price_source"] == "genai-prices"
    assert listed["media_tokens"]["family"] == "gpt-4o"
    assert mine["capabilities"]["audio"] == {"value": True, "source": "configuration"}
    assert mine["usd_per_million_tokens"] == {"input": 1, "cached": None, "output": 2}
    assert mine["price_source"] == "configuration"
    assert other["capabilities"]["audio"] == {"value": None, "source": None}
    assert other["usd_per_million_tokens"] is other["price_source"] is None


def budget_findings(file: Path) -> list[ConfigFinding]:
    """The findings about budgets in USD."""
    return [finding for finding in findings_of(RouterConfig.load(file)) if finding.key.endswith("usd_per_day")]


def test_a_budget_that_cannot_be_spent_everywhere_is_a_warning(file: Path) -> None:
    """It names the key, the target and what helps; none where it is allowed, and none without a budget."""
    [warning] = budget_findings(file)
    assert warning.key == "gateway.keys.team.usd_per_day"
    assert "own/other:" in warning.text
    assert "own/mine" not in warning.text
    assert "routing.unpriced: allow" in warning.text
    routed = CONFIG.replace("gateway:", "gateway:\n  passthrough: {routes: {/v1/moderations: own}}")
    file.write_text(routed)
    [warning] = budget_findings(file)
    assert "own/other, /v1/moderations:" in warning.text
    for old, new in (("gateway:", "routing: {unpriced: allow}\ngateway:"), (", usd_per_day: 5", "")):
        file.write_text(CONFIG.replace(old, new))
        assert budget_findings(file) == []
