"""`smr models`, `smr explain` and `smr local install`: the models there are, and which would serve a prompt."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from smart_model_router.cli.configured import configured
from smart_model_router.cli.output import ExitCode, print_answer, print_json, print_line, print_table
from smart_model_router.config import RouterConfig, TargetConfig
from smart_model_router.config.known_models import Known, KnownTarget
from smart_model_router.core.media_tokens import FAMILIES
from smart_model_router.domain.pricing import Price
from smart_model_router.domain.request import NEEDS
from smart_model_router.flow.inspection import Explanation
from smart_model_router.router import SmartModelRouter
from smart_model_router_providers.local import install, is_loadable

if TYPE_CHECKING:
    from smart_model_router.cli.app import Explain, Install, Models

_COLUMNS = ("model", "tier", "target", "can", "cannot", "context", "USD per million tokens")


def run_models(asked: Models) -> int:
    """Print every model; the exit code. Raises ConfigurationError."""
    found = configured(asked.config)
    if asked.as_json:
        print_json(_as_dict(found.config))
        return ExitCode.OK
    print_table(_COLUMNS, _rows(found.config), sys.stdout)
    for alias, goal in found.config.aliases.items():
        print_line(f"{alias} is another name for {goal}")
    default = found.config.default_name or "none, as all models are wildcards"
    print_line(f"without --model: {default}; configuration: {found.source}; sources: smr models --json")
    return ExitCode.OK


def _rows(config: RouterConfig) -> Iterator[tuple[str, ...]]:
    for model in config.models.values():
        tiers = [(tier.name, tier.targets) for tier in model.tiers]
        for tier, mentions in [*tiers, ("last_resort", model.last_resort or ())]:
            for target, known in _targets(config, mentions):
                context = known.context_tokens.value
                told = "unknown" if context is None else f"{context}"
                able, unable = _able(known, True), _able(known, False)
                yield model.name, tier, target, able, unable, told, _shown(known.price.value)


def _targets(config: RouterConfig, mentions: Iterable[TargetConfig]) -> Iterator[tuple[str, KnownTarget]]:
    for mention in mentions:
        kind = config.providers[mention.provider].kind
        for target in config.targets_of(mention):
            yield target.id, KnownTarget(mention, kind)


def _able(known: KnownTarget, can: bool) -> str:
    found: list[str] = [need for need in NEEDS if known.ability(need).value is can]
    if can and known.reasoning.value:
        found.append("reasoning")
    return " ".join(found) or "-"


def _shown(price: Price | None) -> str:
    if price is None:
        return "unknown"
    figures = [(price.input, "in"), (price.cached, "cached"), (price.output, "out")]
    return ", ".join(f"{figure:g} {what}" for figure, what in figures if figure is not None)


def _as_dict(config: RouterConfig) -> dict[str, Any]:
    def listed(mentions: Iterable[TargetConfig]) -> list[dict[str, Any]]:
        return [_told(target, known) for target, known in _targets(config, mentions)]

    return {
        "default_model": config.default_name,
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


def _told(target: str, known: KnownTarget) -> dict[str, Any]:
    """A target with every fact and its source; both are null when no source says."""
    facts: dict[str, Known[Any]] = {need: known.ability(need) for need in NEEDS}
    facts |= {"reasoning": known.reasoning, "prefill": known.prefill, "context_tokens": known.context_tokens}
    price = known.price
    return {
        "target": target,
        "usd_per_million_tokens": _figures(price.value),
        "price_source": price.source or None,
        "capabilities": {name: {"value": fact.value, "source": fact.source or None} for name, fact in facts.items()},
        "media_tokens": {"family": known.media or None, "source": FAMILIES[known.media].source},
    }


def _figures(price: Price | None) -> dict[str, float | None] | None:
    return None if price is None else {"input": price.input, "cached": price.cached, "output": price.output}


def run_explain(asked: Explain) -> int:
    """Print the plan; the exit code. Raises SmartRouterError."""
    plan = asyncio.run(_plan(asked))
    if asked.as_json:
        print_json(plan.to_dict())
        return ExitCode.OK
    rows = [
        (
            "" if line.rank is None else str(line.rank),
            line.tier,
            line.target,
            "" if line.health is None else f"{line.health:.2f}",
            line.refusal or "would be asked",
        )
        for line in plan.targets
    ]
    print_table(("rank", "tier", "target", "health", "now"), rows, sys.stdout)
    degraded = " (degraded)" if plan.degraded else ""
    print_line(f"{plan.model}, tier {plan.requested_tier}, by {plan.strategy}: {plan.serves or 'no target'}{degraded}")
    return ExitCode.OK


async def _plan(asked: Explain) -> Explanation:
    found = configured(asked.config)
    body = {"model": asked.model or found.default_model, "messages": [{"role": "user", "content": asked.prompt}]}
    async with SmartModelRouter.from_config(found.config) as router:
        return router.explain(body, tier=asked.tier)


def run_install(asked: Install) -> int:
    """Install the model and print where it is; the exit code. Raises LocalInstallError."""
    path = install(print_line)
    readiness = is_loadable()
    if asked.as_json:
        print_json({"path": str(path), "ready": readiness.ready, "reason": readiness.reason})
    else:
        print_answer(f"{path}\n")
    if not readiness.ready:
        print_line(readiness.reason)
    return ExitCode.OK
