"""The notice of `smr serve` about tools that run at a provider: which models refuse requests that bring them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from smart_model_router_providers.catalog import KINDS

if TYPE_CHECKING:
    from smart_model_router.config import ModelConfig, RouterConfig

SEARCHING = frozenset({"messages", "responses"})
"""The dialects that have a search of the web; it is translated between them."""


def refusing(config: RouterConfig) -> dict[str, list[str]]:
    """Models of which no target takes a request with hosted tools -> the providers that could be told to drop them."""
    found: dict[str, list[str]] = {}
    for name, model in config.models.items():
        providers = _providers(model)
        if providers and not any(_takes(config, provider) for provider in providers):
            found[name] = providers
    return found


def notice(refused: Mapping[str, list[str]]) -> str:
    """The notice for people; "" where there is nothing to say."""
    if not refused:
        return ""
    keys = ", ".join(
        dict.fromkeys(f"providers.{name}.hosted_tools: drop" for names in refused.values() for name in names)
    )
    return (
        f"Web search and other tools that run at a provider are refused for {', '.join(refused)}: no target has them. "
        'Codex CLI sends a web search by default (web_search = "disabled" in its configuration ends that), Claude Code '
        f"when it searches. To be served without: {keys}"
    )


def _providers(model: ModelConfig) -> list[str]:
    """The providers of a model, but for its last resort."""
    return list(dict.fromkeys(target.provider for tier in model.tiers for target in tier.targets))


def _takes(config: RouterConfig, name: str) -> bool:
    provider = config.providers[name]
    spoken = provider.wires or (KINDS[provider.kind].wires if provider.kind in KINDS else ())
    return provider.hosted_tools == "drop" or not SEARCHING.isdisjoint(spoken)
