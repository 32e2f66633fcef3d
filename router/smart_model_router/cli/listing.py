"""`smr models`: the names callers may use, and what stands behind each."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from smart_model_router import pricing
from smart_model_router.cli.configured import configured
from smart_model_router.cli.ending import ExitCode
from smart_model_router.cli.printing import print_json, print_line, print_table
from smart_model_router.config import RouterConfig, TargetConfig
from smart_model_router.pricing import Price


def run(*, config: Path | None, as_json: bool) -> int:
    """Print every model; the exit code. Raises ConfigurationError."""
    found = configured(config)
    if as_json:
        print_json(_as_dict(found.config, found.default_model))
        return ExitCode.OK
    print_table(("model", "tier", "target", "USD per million tokens"), _rows(found.config), sys.stdout)
    for alias, goal in found.config.aliases.items():
        print_line(f"{alias} is another name for {goal}")
    print_line(f"without --model: {found.default_model}; configuration: {found.source}")
    return ExitCode.OK


def _rows(config: RouterConfig) -> Iterator[tuple[str, str, str, str]]:
    for model in config.models.values():
        tiers = [(tier.name, tier.targets) for tier in model.tiers]
        for tier, mentions in [*tiers, ("last_resort", model.last_resort or ())]:
            for target, price in _targets(config, mentions):
                yield model.name, tier, target, _shown(price)


def _targets(config: RouterConfig, mentions: Iterable[TargetConfig]) -> Iterator[tuple[str, Price | None]]:
    for mention in mentions:
        kind = config.providers[mention.provider].kind
        for target in config.targets_of(mention):
            yield target.id, pricing.price_of(kind, target.model)


def _shown(price: Price | None) -> str:
    if price is None:
        return "unknown"
    figures = [(price.input, "in"), (price.cached, "cached"), (price.output, "out")]
    return ", ".join(f"{figure:g} {what}" for figure, what in figures if figure is not None)


def _as_dict(config: RouterConfig, default_model: str) -> dict[str, Any]:
    def listed(mentions: Iterable[TargetConfig]) -> list[dict[str, Any]]:
        return [{"target": target, "usd_per_million_tokens": _figures(p)} for target, p in _targets(config, mentions)]

    return {
        "default_model": default_model,
        "models": [
            {
                "name": model.name,
                "strategy": model.strategy or config.routing.strategy,
                "tiers": [{"name": tier.name, "targets": listed(tier.targets)} for tier in model.tiers],
                "last_resort": listed(model.last_resort or ()),
            }
            for model in config.models.values()
        ],
        "aliases": dict(config.aliases),
    }


def _figures(price: Price | None) -> dict[str, float | None] | None:
    return None if price is None else {"input": price.input, "cached": price.cached, "output": price.output}
