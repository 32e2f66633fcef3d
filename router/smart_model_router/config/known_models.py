"""Facts of a target with their source: the configuration, else the table of models, the catalog or the price list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from smart_model_router.config import PriceConfig, TargetConfig
from smart_model_router.domain import pricing
from smart_model_router.domain.outcome import Usage
from smart_model_router.domain.pricing import Price
from smart_model_router.domain.request import NEEDS, Need, Prefill
from smart_model_router_providers import catalog

T = TypeVar("T")
CONFIGURATION = "configuration"
PRICE_LIST = "genai-prices"
FREE = Price(0.0, 0.0, 0.0)
"""The price of the embedded model."""


@dataclass(frozen=True, slots=True)
class Known(Generic[T]):
    """A fact and its source; "" when no source says, then `value` is None."""

    value: T
    source: str


@dataclass(frozen=True, slots=True)
class KnownTarget:
    """A target as it is mentioned, of a provider of `kind`."""

    mention: TargetConfig
    kind: str

    def ability(self, need: Need) -> Known[bool | None]:
        """True when the target can do it, False when it cannot, None when no source says: then it may be asked."""
        said: bool | None = getattr(self.mention, need)
        if said is not None:
            return Known(said, CONFIGURATION)
        return Known(*catalog.ability(self.kind, self.mention.model, need))

    @property
    def lacks(self) -> frozenset[Need]:
        """The abilities that it is known not to have."""
        return frozenset(need for need in NEEDS if self.ability(need).value is False)

    @property
    def reasoning(self) -> Known[bool | None]:
        """True when it thinks first."""
        if self.mention.reasoning is not None:
            return Known(self.mention.reasoning, CONFIGURATION)
        return Known(*catalog.reasoning(self.mention.model))

    @property
    def prefill(self) -> Known[Prefill]:
        """The way it goes on with an answer that has begun."""
        if self.mention.prefill is not None:
            return Known(self.mention.prefill, CONFIGURATION)
        return Known(*catalog.prefill(self.kind, self.mention.model))

    @property
    def media(self) -> str:
        """The family of token rules for its media (core/media_tokens.py)."""
        return catalog.media_family(self.kind, self.mention.model)

    @property
    def context_tokens(self) -> Known[int | None]:
        """The longest prompt it takes, in tokens. The price list is imported at the first look-up (about 0.1 s)."""
        if self.mention.context_tokens is not None:
            return Known(self.mention.context_tokens, CONFIGURATION)
        listed = pricing.context_window(self.kind, self.mention.model)
        return Known(listed, PRICE_LIST if listed is not None else "")

    @property
    def price(self) -> Known[Price | None]:
        """Its price now. Looks at the price list, as above."""
        if self.mention.price is not None:
            return Known(_price(self.mention.price), CONFIGURATION)
        if self.kind == "local":
            return Known(FREE, catalog.CATALOG)
        listed = pricing.price_of(self.kind, self.mention.model)
        return Known(listed, PRICE_LIST if listed is not None else "")

    @property
    def cost_usd(self) -> Callable[[Usage], float | None] | None:
        """The function from the usage of a call to its cost in USD; None when no price is known."""
        if self.mention.price is not None:
            return partial(pricing.cost_at, _price(self.mention.price))
        if self.kind == "local":
            return partial(pricing.cost_at, FREE)
        return partial(pricing.cost_usd, self.kind, self.mention.model) if pricing.has_list(self.kind) else None


def _price(said: PriceConfig) -> Price:
    return Price(said.input, said.cached, said.output)
