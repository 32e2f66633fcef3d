"""The cost of a call in USD, from the price list that genai-prices ships. An unknown price is None, never 0.

Nothing here touches the network; the first use of a price imports the list (about 0.1 s).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from smart_model_router.domain.outcome import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from decimal import Decimal

    from genai_prices.types import ModelInfo, ModelPrice, Provider, TieredPrices

# Our kinds by the names of the list. Kinds that are missing have no list price; their operators configure one.
_LISTS: Mapping[str, str] = MappingProxyType(
    {
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
)
_MILLION = 1_000_000

Steps = tuple[tuple[int, float], ...]
"""USD per million tokens, by prompts longer than so many tokens; the longest prompt first."""


@dataclass(frozen=True, slots=True)
class Price:
    """USD per million tokens of a short prompt, of what the provider had cached of it, and of the answer."""

    input: float | None
    cached: float | None
    output: float | None


@dataclass(frozen=True, slots=True)
class _Rates:
    """A price that depends on nothing but tokens: reckoned here, in a microsecond instead of seventy."""

    input: Steps | None
    cached: Steps | None
    output: Steps | None

    def cost(self, usage: Usage) -> float | None:
        prompt, cached = usage.prompt_tokens, min(usage.cached_prompt_tokens, usage.prompt_tokens)
        parts = (
            (prompt - cached, self.input),
            (cached, self.cached or self.input),
            (usage.completion_tokens, self.output),
        )
        total = 0.0
        for tokens, steps in parts:
            if tokens and steps is None:
                return None
            if tokens and steps is not None:
                total += tokens * next(rate for start, rate in steps if prompt > start or start == 0)
        return total / _MILLION


def has_list(kind: str) -> bool:
    """Return whether the price list has models of this kind."""
    return kind in _LISTS


def cost_usd(kind: str, model: str, usage: Usage) -> float | None:
    """The cost of a call to `model` at a provider of `kind`; None when the list does not say."""
    found = _listed(kind, model)
    if found is None or min(usage.prompt_tokens, usage.completion_tokens, usage.cached_prompt_tokens) < 0:
        return None
    rates = _constant_rates(kind, model)
    return (rates or _rates_now(*found)).cost(usage)


def cost_at(price: Price, usage: Usage) -> float | None:
    """The cost of a call at a given price; None for negative usage."""
    if min(usage.prompt_tokens, usage.completion_tokens, usage.cached_prompt_tokens) < 0:
        return None
    steps = (None if rate is None else ((0, rate),) for rate in (price.input, price.cached, price.output))
    return _Rates(*steps).cost(usage)


def context_window(kind: str, model: str) -> int | None:
    """The longest prompt of a model in tokens; None when the list does not say."""
    found = _found(kind, model)
    return None if found is None else found[1].context_window


def price_of(kind: str, model: str) -> Price | None:
    """The list price of a model as it is now; None when the list has none."""
    found = _listed(kind, model)
    if found is None:
        return None
    rates = _constant_rates(kind, model) or _rates_now(*found)
    return Price(*(steps[-1][1] if steps else None for steps in (rates.input, rates.cached, rates.output)))


@lru_cache(maxsize=4096)
def _listed(kind: str, model: str) -> tuple[Provider, ModelInfo] | None:
    """The model in the list, when it is there and has a price for tokens."""
    found = _found(kind, model)
    if found is None:
        return None
    rates = _rates_now(*found)
    return found if rates.input is not None or rates.output is not None else None


@lru_cache(maxsize=4096)
def _found(kind: str, model: str) -> tuple[Provider, ModelInfo] | None:
    """The model in the list, when it is there."""
    provider_id = _LISTS.get(kind)
    if provider_id is None or not model:
        return None
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415 - 0.1 s that only prices need

    try:
        return get_snapshot().find_provider_model(model, None, provider_id, None)
    except LookupError:
        return None


@lru_cache(maxsize=4096)
def _constant_rates(kind: str, model: str) -> _Rates | None:
    """The rates of a model whose price does not depend on the date or the hour."""
    found = _listed(kind, model)
    return None if found is None or isinstance(found[1].prices, list) else _rates_now(*found)


def _rates_now(provider: Provider, info: ModelInfo) -> _Rates:
    from genai_prices import Usage as ListUsage  # noqa: PLC0415 - as above

    # The list's own reckoning of nothing: it knows which of several prices holds at this hour.
    price: ModelPrice = info.calc_price(ListUsage(), provider).model_price
    return _Rates(_steps(price.input_mtok), _steps(price.cache_read_mtok), _steps(price.output_mtok))


def _steps(price: Decimal | TieredPrices | None) -> Steps | None:
    from genai_prices.types import TieredPrices as Tiered  # noqa: PLC0415 - as above

    if price is None:
        return None
    if not isinstance(price, Tiered):
        return ((0, float(price)),)
    longer = sorted(((tier.start, float(tier.price)) for tier in price.tiers), reverse=True)
    return (*longer, (0, float(price.base)))
