"""What the parts of a configuration owe each other: names that exist, no repetitions, no cycles, one truth a target."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from smart_model_router.config import aliases as patterns
from smart_model_router.config.paths import spelled
from smart_model_router.config.secret import masked
from smart_model_router.config.suggest import did_you_mean
from smart_model_router.core.selection import STRATEGIES
from smart_model_router.errors import ConfigurationError

if TYPE_CHECKING:
    from smart_model_router.config.paths import Path
    from smart_model_router.config.tree import ModelConfig, RouterConfig, TargetConfig

DEFAULT_LADDER = ("frontier", "standard", "economy", "local")
"""The names of tiers that were given none, best first."""
FACTS = ("rpm", "tpm", "reasoning", "context_tokens", "tools", "images", "schema", "embedding_space")
"""The fields of TargetConfig that belong to the target and not to the tier."""

_NAME = re.compile(r"[\w.-]+")
_NUMBERED = re.compile(r"#\d+$")
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")


def settled_models(models: Mapping[str, ModelConfig]) -> dict[str, ModelConfig]:
    """The models with names for nameless tiers, and every fact of a target at each of its mentions."""
    facts = _facts(models)

    def whole(mention: TargetConfig) -> TargetConfig:
        known = facts.get(mention.target)
        return replace(mention, **known) if known else mention

    return {
        key: replace(
            model,
            tiers=tuple(
                replace(tier, name=tier.name or _default_name(index), targets=tuple(map(whole, tier.targets)))
                for index, tier in enumerate(model.tiers)
            ),
            last_resort=None if model.last_resort is None else tuple(map(whole, model.last_resort)),
        )
        for key, model in models.items()
    }


def check(config: RouterConfig) -> None:
    """Raise ConfigurationError for the first thing that cannot be."""
    _check_providers(config)
    if not config.models:
        raise ConfigurationError("models", {}, "at least one model is needed")
    for model in config.models.values():
        _check_model(config, model)
    _check_aliases(config)
    _check_strategy(("routing", "strategy"), config.routing.strategy)
    default = config.routing.default_model
    if default is not None and default not in config.models:
        raise _unknown(("routing", "default_model"), default, "a model", config.models)
    local = config.local
    _check_at_most("local", "prompt_cap_tokens", local.prompt_cap_tokens, "context_tokens", local.context_tokens - 1)
    _check_at_most("local", "max_tokens", local.max_tokens, "context_tokens", local.context_tokens)
    _check_at_most("local", "default_max_tokens", local.default_max_tokens, "max_tokens", local.max_tokens)
    _check_keys(config)


def _check_providers(config: RouterConfig) -> None:
    for name, provider in config.providers.items():
        path = ("providers", name)
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                spelled(path), masked(name), "a name of letters, digits, '.', '-' and '_' is needed"
            )
        url = provider.base_url
        if url is None:
            continue
        if "@" in url.partition("://")[2].partition("/")[0]:
            raise ConfigurationError(
                spelled((*path, "base_url")), "***", "a URL without a password (see api_key) is needed"
            )
        if not re.fullmatch(r"https?://[^\s/]+\S*", url):
            raise ConfigurationError(spelled((*path, "base_url")), masked(url), "an http:// or https:// URL is needed")


def _check_model(config: RouterConfig, model: ModelConfig) -> None:
    path: Path = ("models", model.name)
    if not model.name.strip() or "*" in model.name:
        raise ConfigurationError(spelled(path), model.name, "a name without '*' is needed (aliases may have one)")
    if not model.tiers:
        raise ConfigurationError(spelled((*path, "tiers")), [], "at least one tier is needed")
    if model.strategy is not None:
        _check_strategy((*path, "strategy"), model.strategy)
    names: set[str] = set()
    seen: dict[str, str] = {}
    for index, tier in enumerate(model.tiers):
        here: Path = (*path, "tiers", index)
        if tier.name in names:
            raise ConfigurationError(
                spelled((*here, "name")), tier.name, "a name no other tier of the model has is needed"
            )
        names.add(tier.name)
        if not tier.targets:
            raise ConfigurationError(spelled((*here, "targets")), [], "at least one target is needed")
        for number, mention in enumerate(tier.targets):
            _check_target(config, mention, (*here, "targets", number), seen)
    last: dict[str, str] = {}
    for number, mention in enumerate(model.last_resort or ()):
        _check_target(config, mention, (*path, "last_resort", number), last)


def _check_target(config: RouterConfig, mention: TargetConfig, path: Path, seen: dict[str, str]) -> None:
    where, shown = spelled(path), masked(mention.target)
    if not mention.provider or not mention.model.strip():
        raise ConfigurationError(where, shown, "provider/model is needed")
    if _NUMBERED.search(mention.model):
        raise ConfigurationError(where, shown, "provider/model is needed; credentials are numbered by the router")
    if mention.provider not in config.providers:
        hint = did_you_mean(mention.provider, config.providers)
        raise ConfigurationError(where, shown, f"a provider of `providers` is needed before the slash; {hint}")
    if mention.target in seen:
        raise ConfigurationError(where, shown, f"a target not yet in this model is needed (see {seen[mention.target]})")
    seen[mention.target] = where
    both = sorted(set(mention.only) & set(mention.unless))
    if both:
        raise ConfigurationError(f"{where}.unless", both, "needs that `only` does not ask for are needed")


def _check_aliases(config: RouterConfig) -> None:
    for alias, goal in config.aliases.items():
        path: Path = ("aliases", alias)
        if not alias.strip():
            raise ConfigurationError(spelled(path), alias, "a name or a pattern is needed")
        if alias in config.models:
            raise ConfigurationError(spelled(path), alias, "a name that is not yet that of a model is needed")
        passed = patterns.chain(alias, config.models, config.aliases)
        if passed[-1] in config.models:
            continue
        if passed[-1] in passed[:-1]:
            circle = " -> ".join(passed)
            raise ConfigurationError(spelled(path), goal, f"an alias that leads to a model, not in a circle ({circle})")
        raise _unknown(path, passed[-1], "a model or another alias", config.names)


def _check_keys(config: RouterConfig) -> None:
    for name, key in config.gateway.keys.items():
        path: Path = ("gateway", "keys", name)
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                spelled(path), masked(name), "a name of letters, digits, '.', '-' and '_' is needed"
            )
        if (key.key is None) == (key.sha256 is None):
            raise ConfigurationError(spelled(path), "***", "either `key` or `sha256` is needed")
        if key.key is not None and not key.key.reveal():
            raise ConfigurationError(spelled((*path, "key")), "***", "a key that is not empty is needed")
        if key.sha256 is not None and not _SHA256.fullmatch(key.sha256):
            raise ConfigurationError(spelled((*path, "sha256")), "***", "64 hexadecimal digits are needed")


def _check_strategy(path: Path, strategy: str) -> None:
    if strategy not in STRATEGIES:
        raise _unknown(path, strategy, "a strategy", STRATEGIES)


def _check_at_most(section: str, key: str, value: int, other: str, limit: int) -> None:
    if value > limit:
        raise ConfigurationError(f"{section}.{key}", value, f"at most {limit} is needed, by {section}.{other}")


def _unknown(path: Path, value: str, wanted: str, known: Iterable[str]) -> ConfigurationError:
    return ConfigurationError(spelled(path), masked(value), f"{wanted} is needed; {did_you_mean(value, known)}")


def _facts(models: Mapping[str, ModelConfig]) -> dict[str, dict[str, Any]]:
    """Every fact said of each target. Raises ConfigurationError where two mentions disagree."""
    facts: dict[str, dict[str, Any]] = {}
    places: dict[tuple[str, str], str] = {}
    for path, mention in _mentions(models):
        known = facts.setdefault(mention.target, {})
        for name in FACTS:
            said = getattr(mention, name)
            if said is None:
                continue
            where = f"{spelled(path)}.{name}"
            if known.setdefault(name, said) != said:
                other = places[mention.target, name]
                raise ConfigurationError(where, said, f"{known[name]!r} is needed, as {other} says of the same target")
            places.setdefault((mention.target, name), where)
    return facts


def _mentions(models: Mapping[str, ModelConfig]) -> Iterator[tuple[Path, TargetConfig]]:
    for key, model in models.items():
        for index, tier in enumerate(model.tiers):
            for number, mention in enumerate(tier.targets):
                yield ("models", key, "tiers", index, "targets", number), mention
        for number, mention in enumerate(model.last_resort or ()):
            yield ("models", key, "last_resort", number), mention


def _default_name(index: int) -> str:
    return DEFAULT_LADDER[index] if index < len(DEFAULT_LADDER) else f"tier-{index + 1}"
