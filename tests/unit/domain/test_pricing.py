"""Prices: as the list has them, and unknown where it has none."""

from __future__ import annotations

import subprocess
import sys
from datetime import datetime, tzinfo

import pytest
from genai_prices import Usage as ListUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot

from smart_model_router.domain.outcome import Usage
from smart_model_router.domain.pricing import cost_usd, price_of

LISTS = {
    "openai": "openai",
    "azure": "azure",
    "anthropic": "anthropic",
    "gemini": "google",
    "groq": "groq",
    "mistral": "mistral",
    "deepseek": "deepseek",
    "xai": "x-ai",
    "cerebras": "cerebras",
    "together": "together",
    "openrouter": "openrouter",
}
USAGES = [
    Usage(1_000, 500),
    Usage(1_000, 500, 300),
    Usage(1_000, 500, 1_000),
    Usage(200_000, 1),
    Usage(200_001, 1, 1),
    Usage(900_000, 10_000, 1_000),
    Usage(10, 0),
]


@pytest.mark.parametrize("kind", LISTS)
def test_our_reckoning_is_the_lists(kind: str) -> None:
    """For every model of a provider and all kinds of usage, a known cost is what the price list itself reckons."""
    [provider] = [p for p in get_snapshot().providers if p.id == LISTS[kind]]
    known = 0
    for model in provider.models:
        for usage in USAGES:
            cost = cost_usd(kind, model.id, usage)
            theirs = ListUsage(
                input_tokens=usage.prompt_tokens,
                cache_read_tokens=usage.cached_prompt_tokens or None,
                output_tokens=usage.completion_tokens,
            )
            if cost is not None:
                known += 1
                total = calc_price(theirs, model.id, provider_id=LISTS[kind]).total_price
                assert cost == pytest.approx(float(total), abs=1e-12)
    assert known > len(provider.models)


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("openai", "no-such-model"),
        ("openai", ""),
        ("no-such-kind", "gpt-4o"),
        ("openai_compatible", "gpt-4o"),
        ("local", "smollm2"),
        ("github", "openai/gpt-4o"),
        ("groq", "whisper-large-v3"),
    ],
)
def test_an_unknown_price_is_unknown(kind: str, model: str) -> None:
    """A model the list does not have, or has no token price for, costs None and not 0."""
    assert price_of(kind, model) is None
    assert cost_usd(kind, model, Usage(10, 10)) is None


def test_a_known_price_is_per_million_tokens() -> None:
    """A million tokens each way cost what the price says."""
    price = price_of("openai", "gpt-4o-mini")
    assert price is not None
    assert (price.input, price.output) == (0.15, 0.6)
    assert cost_usd("openai", "gpt-4o-mini", Usage(1_000_000, 1_000_000)) == pytest.approx(0.75)


def test_a_price_that_depends_on_the_hour_is_not_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same call costs more at a provider's busy hours, also when it was priced in the quiet ones before."""

    def cost_at(hour: int) -> float | None:
        class Then(datetime):
            @classmethod
            def now(cls, tz: tzinfo | None = None) -> Then:
                return cls(2026, 11, 21, hour, tzinfo=tz)

        monkeypatch.setattr("genai_prices.types.datetime", Then)
        return cost_usd("deepseek", "deepseek-chat", Usage(1_000_000, 0))

    assert (cost_at(20), cost_at(12), cost_at(20)) == (0.135, 0.27, 0.135)


def test_a_missing_part_of_a_price_makes_the_cost_unknown() -> None:
    """An embedding has no price for answers: with an answer the cost is unknown, without one it is known."""
    assert cost_usd("openai", "text-embedding-3-small", Usage(1_000_000, 0)) == pytest.approx(0.02)
    assert cost_usd("openai", "text-embedding-3-small", Usage(1_000_000, 1)) is None


@pytest.mark.parametrize("usage", [Usage(-1, 5), Usage(5, -1), Usage(5, 5, -1)])
def test_nonsense_usage_costs_nothing_we_know(usage: Usage) -> None:
    """A provider that counts below zero gets no price."""
    assert cost_usd("openai", "gpt-4o-mini", usage) is None


def test_more_cached_than_sent_is_all_cached() -> None:
    """A provider that counts more cached tokens than the prompt has is taken to mean all of it."""
    assert cost_usd("openai", "gpt-4o-mini", Usage(100, 0, 500)) == cost_usd(
        "openai", "gpt-4o-mini", Usage(100, 0, 100)
    )


_SILENT = """
import socket, sys, threading
def no(*arguments, **keywords): raise AssertionError("the network")
socket.socket.connect = socket.getaddrinfo = no
from smart_model_router.domain.pricing import cost_usd
from smart_model_router.domain.outcome import Usage
assert "genai_prices" not in sys.modules
assert cost_usd("openai_compatible", "gpt-4o", Usage(1, 1)) is None
assert "genai_prices" not in sys.modules
assert cost_usd("openai", "gpt-4o", Usage(1, 1)) > 0
assert threading.active_count() == 1
"""


def test_prices_come_late_and_without_the_network() -> None:
    """The list is imported with the first price that needs it, asks nobody, and leaves no thread behind."""
    subprocess.run([sys.executable, "-c", _SILENT], check=True, capture_output=True)
