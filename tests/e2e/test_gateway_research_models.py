"""Research with models through the gateway: its calls are the key's, and it goes on where the key may ask no more."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.model_provider import ModelProvider
from tests.e2e.research_gateway import OTHER, TEAM, ResearchGateway, research_gateway
from tests.e2e.test_research_models import KILN_DAY, KNOWN, LOAN, PAGES
from tests.scripted_models import competent

TOPIC = f"{KILN_DAY} {LOAN}"
KEYS: dict[str, Any] = {
    "team": {"key": "team-key"},
    "other": {"key": "other-key", "rpm": 3},
    "plain": {"key": "plain-key", "models": ["fast"]},
}
PLAIN = {"authorization": "Bearer plain-key"}


@pytest.fixture
def providers() -> Iterator[list[ModelProvider]]:
    """Two providers whose models know the answer."""
    with ModelProvider(competent(KNOWN)) as one, ModelProvider(competent(KNOWN)) as two:
        yield [one, two]


@pytest.fixture
def gateway(tmp_path: Path, providers: list[ModelProvider]) -> Iterator[ResearchGateway]:
    """A gateway whose runs ask the model `smart`, over a small library."""
    docs = tmp_path / "docs"
    docs.mkdir()
    for name, text in PAGES.items():
        (docs / name).write_text(text, encoding="utf-8")
    names = [f"p{at}" for at in range(len(providers))]
    kinds = {
        name: {"kind": "openai_compatible", "base_url": each.base_url, "api_key": "k"}
        for name, each in zip(names, providers, strict=True)
    }
    price = {"input": 1, "output": 1}
    tiers = [{"targets": [{"target": f"{name}/m", "price": price}]} for name in names]
    models = {"smart": {"tiers": tiers, "last_resort": []}}
    research = {"model": "smart", "corpora": [str(docs)]}
    with research_gateway(tmp_path, research=research, keys=KEYS, providers=kinds, models=models) as running:
        yield running


def test_calls_of_a_run_count_against_its_key(gateway: ResearchGateway, providers: list[ModelProvider]) -> None:
    """A key with room gets what the model finds; one with three requests a minute the rest by code, and is told."""
    run = gateway.begin(TOPIC)
    told = gateway.ended(run)
    assert "Loans last three weeks." in told["answers"]
    asked = sum(len(each.asked) for each in providers)
    assert told["spent"]["model_calls"] == asked > 3

    limited = gateway.begin(TOPIC, OTHER)
    ended = gateway.ended(limited, OTHER)
    assert sum(len(each.asked) for each in providers) - asked == 2  # the run itself was the first request
    assert ended["state"] == "completed"
    assert "The kiln is fired on Mondays." in ended["answers"]
    assert "the key 'other' has used up its requests a minute" in str(ended["model_notes"])


def test_a_model_that_a_key_may_not_use_is_no_run_of_it(
    gateway: ResearchGateway, providers: list[ModelProvider]
) -> None:
    """403 with the way out, 404 for one that is not there; without a model nothing is asked."""
    refused = gateway.ask("POST", "/research", PLAIN, json={"topic": TOPIC})
    assert refused.status_code == 403
    said = "model: the key 'plain' may not use 'smart'; with `model` \"\" a run asks none"
    assert refused.json()["error"]["message"] == said
    unknown = gateway.ask("POST", "/research", TEAM, json={"topic": TOPIC, "model": "smrat"})
    assert (unknown.status_code, "smart" in unknown.json()["error"]["message"]) == (404, True)
    assert gateway.ended(gateway.begin(TOPIC, PLAIN, model=""), PLAIN)["spent"]["model_calls"] == 0
    assert [each.asked for each in providers] == [[], []]
