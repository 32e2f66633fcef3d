"""Rules between the parts of a configuration: names exist, nothing is repeated or circular, facts of a target agree."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from smart_model_router.config import aliases as patterns
from smart_model_router.config.egress import elsewhere_text, targets_elsewhere
from smart_model_router.config.secret import MASK, masked, masked_urls
from smart_model_router.config.server_urls import POSTGRES_SCHEMES, VALKEY_SCHEMES, server_fault
from smart_model_router.core.passthrough_rules import KNOWN, is_route
from smart_model_router.core.selection import STRATEGIES, Selector
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.import_path import imported, reference_of
from smart_model_router.domain.recovery_policy import parse_recovery
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.domain.tree_path import spelled

if TYPE_CHECKING:
    from smart_model_router.config.sections import ContentConfig
    from smart_model_router.config.tree import ModelConfig, RouterConfig, TargetConfig
    from smart_model_router.domain.tree_path import Path

STRATEGY_GROUP = "smart_model_router.strategies"
"""The group of entry points."""
DEFAULT_LADDER = ("frontier", "standard", "economy", "local")
"""The names of tiers that were given none, best first."""
FACTS = (
    "rpm", "tpm", "reasoning", "context_tokens", "tools", "images", "schema", "pdf", "audio", "price",
    "embedding_space", "prefill",
)  # fmt: skip
"""The fields of TargetConfig that describe the target and not its place in the tier."""

NAME = re.compile(r"[\w.-]+")
NAME_NEEDED = "a name of letters, digits, '.', '-' and '_' is needed"
_NUMBERED = re.compile(r"#\d+$")
_USUAL_PORT = r"(?!https://[^/]+:443\Z|http://[^/]+:80\Z)"
_ORIGIN = re.compile(rf"null|{_USUAL_PORT}[a-z][a-z0-9+.-]*://(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d{{1,5}})?")
"""An origin as browsers write it: in small letters, without a port that its scheme has anyway."""
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_DIGESTS_OF_NOTHING = frozenset(sha256(text).hexdigest() for text in (b"", b" ", b"\n", b"\r\n"))
_SENDABLE = re.compile(r"[!-~](?:[ -~]*[!-~])?")
_KEY_NEEDED = "a key of ASCII letters, digits and signs is needed, neither empty nor blank: no client can send another"
SHORT_KEY = 16
"""Characters. A shorter key of a gateway can be guessed."""


def short_keys(config: RouterConfig) -> Iterator[tuple[str, int]]:
    """Each key of the gateway that is short: its path, and its characters."""
    for name, key in config.gateway.keys.items():
        if key.key is not None and len(key.key.reveal()) < SHORT_KEY:
            yield spelled(("gateway", "keys", name, "key")), len(key.key.reveal())


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
    """Raise ConfigurationError for the first thing that cannot be; the others are in its `others`."""
    found = list(_faults(config))
    if found:
        raise found[0].with_others(found[1:])


def _faults(config: RouterConfig) -> Iterator[ConfigurationError]:
    yield from _of_providers(config)
    if not config.models:
        yield ConfigurationError("models", {}, "at least one model is needed")
    for model in config.models.values():
        yield from _of_model(config, model)
    yield from _of_aliases(config)
    yield from _of_strategy(("routing", "strategy"), config.routing.strategy)
    yield from _of_recovery(("routing", "recovery"), config.routing.recovery)
    default = config.routing.default_model
    if default is not None and (default not in config.models or "*" in default):
        yield _unknown(("routing", "default_model"), default, "a model without '*'", plain(config.models))
    for section, key, named in (
        ("search", "model", config.search.model),
        ("search", "embedding_model", config.search.embedding_model),
        ("research", "model", config.research.model),
    ):
        if named is not None and patterns.resolve(named, config.models, config.aliases) is None:
            yield _unknown((section, key), named, "a model", config.names)
    if config.search.embedding_model is not None and config.search.embedder != "auto":
        wanted = "'auto' is needed beside `search.embedding_model`, which makes the vectors"
        yield ConfigurationError("search.embedder", config.search.embedder, wanted)
    local = config.local
    yield from _at_most("prompt_cap_tokens", local.prompt_cap_tokens, "context_tokens", local.context_tokens - 1)
    yield from _at_most("max_tokens", local.max_tokens, "context_tokens", local.context_tokens)
    yield from _at_most("default_max_tokens", local.default_max_tokens, "max_tokens", local.max_tokens)
    if config.workflows.heartbeat > config.workflows.lease / 2:
        wanted = f"at most half of `workflows.lease`, {config.workflows.lease:g}, is needed: one may come late"
        yield ConfigurationError("workflows.heartbeat", config.workflows.heartbeat, wanted)
    yield from _of_keys(config)
    yield from _of_cors(config)
    yield from _of_passthrough(config)
    yield from _of_content(config.telemetry.content)
    yield from config.evaluation.faults()
    yield from config.research.faults()
    yield from _of_egress(config)
    yield from _of_parts(config)
    yield from _of_servers(config)


def _of_egress(config: RouterConfig) -> Iterator[ConfigurationError]:
    """Research that may not leave this machine has a model of this machine."""
    model = config.research.model
    if config.research.egress != "local_only" or model is None:
        return
    if patterns.resolve(model, config.models, config.aliases) is not None and (
        away := targets_elsewhere(config, model)
    ):
        yield ConfigurationError("research.model", model, elsewhere_text(away))


def _of_servers(config: RouterConfig) -> Iterator[ConfigurationError]:
    store = config.store
    for key, url, schemes in (
        ("store.url", store.url, POSTGRES_SCHEMES),
        ("store.stats_url", store.stats_url, POSTGRES_SCHEMES),
        ("store.shared_url", store.shared_url, VALKEY_SCHEMES + POSTGRES_SCHEMES),
        ("workflows.store_url", config.workflows.store_url, POSTGRES_SCHEMES),
    ):
        of_all = url == store.url and key != "store.url"
        if url is not None and not of_all and (fault := server_fault(url.reveal(), schemes)):
            yield ConfigurationError(key, MASK, fault)
    if not NAME.fullmatch(store.namespace):
        yield ConfigurationError("store.namespace", store.namespace, NAME_NEEDED)


def _of_parts(config: RouterConfig) -> Iterator[ConfigurationError]:
    """Processes that share no state have equal parts of each limit; a part below one request a minute is useless."""
    store = config.store
    if store.shares_state:
        return
    mentions = (mention for model in config.models.values() for tier in model.tiers for mention in tier.targets)
    limits = {spelled(("providers", name, "rpm")): provider.rpm for name, provider in config.providers.items()}
    limits |= {f"rpm of {mention.target}": mention.rpm for mention in mentions}
    for name, rpm in limits.items():
        if rpm is not None and rpm < store.processes:
            needed = f"at most {rpm} without a store that shares its state: each may use its part of {name}"
            yield ConfigurationError("store.processes", store.processes, f"{needed}, less than one request a minute")


def _of_content(content: ContentConfig) -> Iterator[ConfigurationError]:
    key = "telemetry.content.until"
    if content.mode == "full" and content.until is None:
        yield ConfigurationError(key, None, "an instant is needed: full ends")
    try:
        content.ends_at  # noqa: B018 - read for its error
    except ValueError:
        yield ConfigurationError(key, content.until, "an instant with its zone (2026-01-31T18:00:00Z) is needed")


def _of_providers(config: RouterConfig) -> Iterator[ConfigurationError]:
    for name, provider in config.providers.items():
        path = ("providers", name)
        if not NAME.fullmatch(name):
            yield ConfigurationError(spelled(path), masked(name), NAME_NEEDED)
        url = provider.base_url
        if url is None:
            continue
        here = spelled((*path, "base_url"))
        if "@" in url.partition("://")[2].partition("/")[0]:
            yield ConfigurationError(here, "***", "a URL without a password (see api_key) is needed")
        elif not re.fullmatch(r"https?://[^\s/]+\S*", url):
            yield ConfigurationError(here, masked_urls(url), "an http:// or https:// URL is needed")


def _of_model(config: RouterConfig, model: ModelConfig) -> Iterator[ConfigurationError]:
    path: Path = ("models", model.name)
    if not model.name.strip() or model.name.count("*") > 1:
        yield ConfigurationError(spelled(path), model.name, "a name with at most one '*' is needed")
    if not model.tiers:
        yield ConfigurationError(spelled((*path, "tiers")), [], "at least one tier is needed")
    if model.strategy is not None:
        yield from _of_strategy((*path, "strategy"), model.strategy)
    if model.recovery is not None:
        yield from _of_recovery((*path, "recovery"), model.recovery)
    names: set[str] = set()
    seen: dict[str, str] = {}
    for index, tier in enumerate(model.tiers):
        here: Path = (*path, "tiers", index)
        if tier.name in names:
            wanted = "a name no other tier of the model has is needed"
            yield ConfigurationError(spelled((*here, "name")), tier.name, wanted)
        names.add(tier.name)
        if not tier.targets:
            yield ConfigurationError(spelled((*here, "targets")), [], "at least one target is needed")
        for number, mention in enumerate(tier.targets):
            yield from _of_target(config, mention, (*here, "targets", number), seen)
            yield from _of_star(mention, (*here, "targets", number), stars=model.name.count("*"))
    last: dict[str, str] = {}
    for number, mention in enumerate(model.last_resort or ()):
        yield from _of_target(config, mention, (*path, "last_resort", number), last)
        yield from _of_star(mention, (*path, "last_resort", number), stars=0)


def _of_target(
    config: RouterConfig, mention: TargetConfig, path: Path, seen: dict[str, str]
) -> Iterator[ConfigurationError]:
    where = spelled(path)
    if (wanted := _wanted_of_target(config, mention, seen)) is not None:
        yield ConfigurationError(where, masked(mention.target), wanted)
    seen.setdefault(mention.target, where)
    both = sorted(set(mention.only) & set(mention.unless))
    if both:
        yield ConfigurationError(f"{where}.unless", both, "needs that `only` does not ask for are needed")


def _of_star(mention: TargetConfig, path: Path, *, stars: int) -> Iterator[ConfigurationError]:
    """Only the targets of a wildcard have a `*`, one at most, in the name of the model."""
    if "*" in mention.provider or mention.model.count("*") > stars:
        wanted = "at most one '*', after the slash," if stars else "a target without '*' (only wildcards have one)"
        yield ConfigurationError(spelled(path), masked(mention.target), f"{wanted} is needed")


def _wanted_of_target(config: RouterConfig, mention: TargetConfig, seen: Mapping[str, str]) -> str | None:
    if not mention.provider or not mention.model.strip():
        return "provider/model is needed"
    if _NUMBERED.search(mention.model):
        return "provider/model is needed; credentials are numbered by the router"
    if mention.provider not in config.providers:
        hint = did_you_mean(mention.provider, config.providers)
        return f"a provider of `providers` is needed before the slash; {hint}"
    if mention.target in seen:
        return f"a target not yet in this model is needed (see {seen[mention.target]})"
    return None


def _of_aliases(config: RouterConfig) -> Iterator[ConfigurationError]:
    for alias, goal in config.aliases.items():
        path: Path = ("aliases", alias)
        if not alias.strip():
            yield ConfigurationError(spelled(path), alias, "a name or a pattern is needed")
            continue
        if alias in config.models:
            yield ConfigurationError(spelled(path), alias, "a name that is not yet that of a model is needed")
            continue
        passed = patterns.chain(alias, config.models, config.aliases)
        if patterns.resolve(alias, config.models, config.aliases) is not None:
            continue
        if passed[-1] in passed[:-1]:
            circle = " -> ".join(passed)
            wanted = f"an alias that leads to a model, not in a circle ({circle})"
            yield ConfigurationError(spelled(path), goal, wanted)
        else:
            yield _unknown(path, passed[-1], "a model or another alias", config.names)


def _of_keys(config: RouterConfig) -> Iterator[ConfigurationError]:
    for name, key in config.gateway.keys.items():
        path: Path = ("gateway", "keys", name)
        if not NAME.fullmatch(name):
            yield ConfigurationError(spelled(path), masked(name), NAME_NEEDED)
        if (key.key is None) == (key.sha256 is None):
            yield ConfigurationError(spelled(path), "***", "either `key` or `sha256` is needed")
        if key.key is not None and not _SENDABLE.fullmatch(key.key.reveal()):
            yield ConfigurationError(spelled((*path, "key")), "***", _KEY_NEEDED)
        if key.sha256 is not None and not _SHA256.fullmatch(key.sha256):
            yield ConfigurationError(spelled((*path, "sha256")), "***", "64 hexadecimal digits are needed")
        elif key.sha256 is not None and key.sha256.lower() in _DIGESTS_OF_NOTHING:
            yield ConfigurationError(spelled((*path, "sha256")), "***", "the digest of a key is needed, not of no text")


def _of_cors(config: RouterConfig) -> Iterator[ConfigurationError]:
    for number, origin in enumerate(config.gateway.cors):
        where = spelled(("gateway", "cors", number))
        if origin in ("*", "null") and not config.gateway.keys:  # any page may have a frame whose origin is `null`
            wanted = "origins by name are needed without `gateway.keys`: any web page could spend your money"
            yield ConfigurationError(where, origin, wanted)
        elif origin != "*" and not _ORIGIN.fullmatch(origin):
            wanted = "an origin is needed as browsers send it, or '*' (https://app.example.com: no path, no pattern, "
            wanted += "small letters, and no port that goes without saying)"
            yield ConfigurationError(where, masked(origin), wanted)


def _of_passthrough(config: RouterConfig) -> Iterator[ConfigurationError]:
    targets = {mention.target for _, mention in mentions_of(config.models)}
    for route, named in config.gateway.passthrough.routes.items():
        path: Path = ("gateway", "passthrough", "routes", route)
        if not is_route(route):
            wanted = "a path is needed that may pass through: one of these, or one below /v1/audio/ or /v1/images/"
            yield ConfigurationError(spelled(path), route, f"{wanted}; {did_you_mean(route, KNOWN)}")
            continue
        if not named:
            yield ConfigurationError(spelled(path), [], "at least one provider is needed")
        for number, name in enumerate(named):
            provider, slash, model = name.partition("/")
            wanted = ""
            if provider not in config.providers:
                hint = did_you_mean(provider, config.providers)
                wanted = f"a provider of `providers`, or one with a model after a slash, is needed; {hint}"
            elif slash and (not model.strip() or "*" in model or _NUMBERED.search(model)):
                wanted = "a model is needed after the slash: no '*', no number of a credential"
            elif name in named[:number]:
                wanted = "a target not yet in this route is needed"
            elif f"{name}{route}" in targets:
                wanted = f"another name is needed: {name}{route} is a target of a model"
            if wanted:
                yield ConfigurationError(spelled((*path, number)), masked(name), wanted)


def _of_strategy(path: Path, strategy: str) -> Iterator[ConfigurationError]:
    try:
        strategy_named(strategy, spelled(path))
    except ConfigurationError as error:
        yield error


def _of_recovery(path: Path, recovery: str) -> Iterator[ConfigurationError]:
    try:
        parse_recovery(recovery)
    except ValueError as error:
        yield ConfigurationError(spelled(path), masked(recovery), str(error))


def _at_most(key: str, value: int, other: str, limit: int) -> Iterator[ConfigurationError]:
    if value > limit:
        yield ConfigurationError(f"local.{key}", value, f"at most {limit} is needed, by local.{other}")


def _unknown(path: Path, value: str, wanted: str, known: Iterable[str]) -> ConfigurationError:
    return ConfigurationError(spelled(path), masked(value), f"{wanted} is needed; {did_you_mean(value, known)}")


def _facts(models: Mapping[str, ModelConfig]) -> dict[str, dict[str, Any]]:
    """Return every fact of each target. Raises ConfigurationError where two mentions disagree."""
    facts: dict[str, dict[str, Any]] = {}
    places: dict[tuple[str, str], str] = {}
    for path, mention in mentions_of(models):
        known = facts.setdefault(mention.target, {})
        for name in FACTS:
            said = getattr(mention, name)
            if said is None:
                continue
            where = f"{spelled(path)}.{name}"
            if known.setdefault(name, said) != said:
                other = places[mention.target, name]
                raise ConfigurationError(where, said, f"{known[name]!r} is needed, as {other} has for the same target")
            places.setdefault((mention.target, name), where)
    return facts


def plain(names: Iterable[str]) -> tuple[str, ...]:
    """The names that are no patterns."""
    return tuple(name for name in names if "*" not in name)


def mentions_of(models: Mapping[str, ModelConfig]) -> Iterator[tuple[Path, TargetConfig]]:
    """Yield every mention of a target with its path."""
    for key, model in models.items():
        for index, tier in enumerate(model.tiers):
            for number, mention in enumerate(tier.targets):
                yield ("models", key, "tiers", index, "targets", number), mention
        for number, mention in enumerate(model.last_resort or ()):
            yield ("models", key, "last_resort", number), mention


def _default_name(index: int) -> str:
    return DEFAULT_LADDER[index] if index < len(DEFAULT_LADDER) else f"tier-{index + 1}"


def strategy_named(name: str, key: str) -> Selector:
    """Return the strategy that a configuration names at `key`.

    An attribute is a Selector, or a class that makes one without arguments. Raises ConfigurationError with the key,
    the name and the reason.
    """
    if name in STRATEGIES:
        return STRATEGIES[name]
    reference = reference_of(name, STRATEGY_GROUP)
    if reference is None:
        raise ConfigurationError(key, name, f"a strategy is needed; {did_you_mean(name, STRATEGIES)}")
    try:
        found = imported(reference)
        made = found() if isinstance(found, type) else found
    except Exception as error:  # foreign code: whatever it raises is the reason
        reason = f"a strategy that can be imported is needed ({type(error).__name__}: {error})"
        raise ConfigurationError(key, name, reason) from error
    if not isinstance(made, Selector) or not callable(made.order):
        raise ConfigurationError(key, name, "a Selector is needed: an object with `order` and `redistributes`")
    return made
