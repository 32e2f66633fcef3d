"""Findings about a configuration that loads and yet cannot do everything that it says.

Pure: a configuration and facts of the environment in, findings out. `smr config check`, `smr doctor` and the gateway
show the same ones. A rule speaks only of what is certain from the configuration; each finding names the key or the
value that ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256
from itertools import groupby
from typing import Literal
from urllib.parse import urlsplit

from smart_model_router.config.aliases import resolve
from smart_model_router.config.conversion import is_quoted, literal_variable
from smart_model_router.config.known_models import KnownTarget
from smart_model_router.config.rules import short_keys
from smart_model_router.config.secret import Secret
from smart_model_router.config.sections import GatewayKeyConfig
from smart_model_router.config.tree import ModelConfig, ProviderConfig, RouterConfig, TargetConfig
from smart_model_router.domain.recovery_policy import CONTINUING, parse_recovery
from smart_model_router.domain.request import CONTINUABLE
from smart_model_router.domain.tree_path import spelled
from smart_model_router_providers.catalog import KINDS, failure_domain, kind_of

SEARCHING = frozenset({"messages", "responses"})
"""The dialects that have a search of the web; it is translated between them."""
_REAL_KINDS = KINDS.keys() - {"scripted"}
"""Kinds of providers of which it is known whether they search: a scripted one stands for any."""
_OWN_SERVERS = frozenset({"openai_compatible", "ollama", "vllm", "llamacpp", "foundry_local", "scripted", "local"})
"""Kinds of which two entries need not be one service: the host decides whether they fail together."""
_ADDED = ("/v1/v1", "/chat/completions", "/messages", "/responses", "/embeddings", "/completions")
"""Ends of a base URL that are a mistake."""
_SHOWN = 4


FindingLevel = Literal["warning", "note"]


@dataclass(frozen=True, slots=True)
class ConfigFinding:
    """One thing that cannot work. A `warning` is about what was configured, a `note` about a limit worth knowing.

    `key` is the place in the configuration, `cannot` says what does not work there, `remedy` what would be right.
    """

    level: FindingLevel
    key: str
    cannot: str
    remedy: str

    @property
    def text(self) -> str:
        """The thing that cannot work and what would be right, in one line."""
        return f"{self.cannot}; {self.remedy}"


@dataclass(frozen=True, slots=True)
class LintEnvironment:
    """The facts beside the configuration. `spans_lost` is why spans are exported nowhere; "" when they are, or may be.

    With the default nothing is known, and nothing is said about it.
    """

    spans_lost: str = ""


def findings_of(config: RouterConfig, environment: LintEnvironment | None = None) -> list[ConfigFinding]:
    """Every finding, in the order of the rules. The kinds of all providers must be known (see `check_kind`).

    What is the same in several places is told once, at the first of them.
    """
    facts = environment or LintEnvironment()
    places: dict[tuple[FindingLevel, str, str], list[str]] = {}
    for finding in (finding for rule in _RULES for finding in rule(config, facts)):
        places.setdefault((finding.level, finding.cannot, finding.remedy), []).append(finding.key)
    return [
        ConfigFinding(level, keys[0], f"{cannot} (also {_listed(keys[1:])})" if keys[1:] else cannot, remedy)
        for (level, cannot, remedy), keys in places.items()
    ]


def _literal_keys(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """A key that is the name of a variable: it is sent as it stands, and refused."""
    for key, secret in _secrets(config):
        name = literal_variable(secret.reveal())
        if not name:
            continue
        if key.startswith("gateway."):  # the text lets clients in, so it is not shown
            cannot = "the name of a variable itself is the key, not the value of the variable: it can be guessed"
            yield ConfigFinding("warning", key, cannot, 'write "${NAME}" and set the variable')
            continue
        cannot = f"the text {secret.reveal().strip()} itself is the key, not the value of the variable"
        yield ConfigFinding("warning", key, cannot, f'write "${{{name}}}" and set {name}')


def _quoted_keys(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """A provider's key in quotation marks, as `docker run --env-file` leaves them. A client may send its own so."""
    for key, secret in _secrets(config):
        if key.startswith("providers.") and is_quoted(secret.reveal()):
            yield ConfigFinding("warning", key, "quotation marks are part of the key", "take them away where it is set")


def _equal_keys(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """One key in two places: the first of two clients is never found; a credential is no fallback for itself."""
    clients: dict[str, str] = {}
    for name, client in config.gateway.keys.items():
        digest = client.sha256 or sha256(client.key.reveal().encode() if client.key else b"").hexdigest()
        if other := clients.get(digest.lower()):
            cannot = f"it has the key of {name}, which requests with that key count for: its own limits never apply"
            yield ConfigFinding("warning", spelled(("gateway", "keys", other)), cannot, "give each a key of its own")
        clients[digest.lower()] = name
    for name, provider in config.providers.items():
        texts = [secret.reveal().strip() for secret in provider.api_key]
        for number, text in enumerate(texts):
            if text in texts[:number]:
                key = spelled(("providers", name, "api_key", number))
                cannot = f"it is the key of api_key[{texts.index(text)}] again: it adds no limit and no fallback"
                yield ConfigFinding("warning", key, cannot, "write each key once")


def _addresses(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """Base URLs that have a part of the paths which the router adds; classes of others read theirs as they like."""
    for name, provider in config.providers.items():
        if provider.kind not in KINDS:
            continue
        path = urlsplit(provider.base_url or "").path.rstrip("/")
        found = next((part for part in _ADDED if path.endswith(part)), "")
        if found:
            cannot = f"it ends in {found}, which no provider has: the router adds /chat/completions and the like"
            end = path.removesuffix(found) + ("/v1" if found == "/v1/v1" else "")
            remedy = f"let it end in {end or '/'}"
            yield ConfigFinding("warning", spelled(("providers", name, "base_url")), cannot, remedy)


def _secrets(config: RouterConfig) -> Iterator[tuple[str, Secret]]:
    for name, provider in config.providers.items():
        several = len(provider.api_key) > 1
        for number, secret in enumerate(provider.api_key):
            yield spelled(("providers", name, "api_key", number) if several else ("providers", name, "api_key")), secret
        for header, secret in provider.headers.items():
            yield spelled(("providers", name, "headers", header)), secret
    for name, key in config.gateway.keys.items():
        if key.key is not None:
            yield spelled(("gateway", "keys", name, "key")), key.key


def _short_keys(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    for key, length in short_keys(config):
        cannot = f"the key has {length} characters and can be guessed"
        yield ConfigFinding("warning", key, cannot, "`smr keys new NAME` makes one that cannot")


def _shared_failures(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """A tier that fails as a whole, where what comes after it fails at the same time."""
    for name, model in config.models.items():
        for number, tier in enumerate(model.tiers):
            after = [mention for lower in model.tiers[number + 1 :] for mention in lower.targets]
            mentions = [*tier.targets, *after, *(model.last_resort or ())]
            place = _common_place(config, mentions)
            if place is None:
                continue
            which = "" if len(model.tiers) == 1 else f" from tier {tier.name} on"
            cannot = f"all {len(mentions)} targets{which} fail together: they share {place}"
            remedy = "add a target elsewhere, or name the providers' `failure_domain` where they are apart"
            # Where there is no other provider, nothing that was written is without effect.
            level: FindingLevel = "warning" if len(config.providers) > 1 else "note"
            yield ConfigFinding(level, spelled(("models", name)), cannot, remedy)
            break  # the lower tiers are part of it


def _common_place(config: RouterConfig, mentions: Sequence[TargetConfig]) -> str | None:
    """The host or the failure domain that several targets have in common; None where there is none."""
    providers = [config.providers[mention.provider] for mention in mentions]
    if len(mentions) < 2 or any(provider.kind == "scripted" for provider in providers):
        return None
    for said, places in (
        ("the host", {_host(provider) for provider in providers}),
        ("the failure domain", {_domain(provider) for provider in providers}),
    ):
        place = places.pop()
        if not places and place:
            return f"{said} {place}"
    return None


def _host(provider: ProviderConfig) -> str:
    """The host of a provider with its region; "" where it is unknown, or where the owner says what fails together."""
    if provider.failure_domain is not None or provider.kind not in KINDS:
        return ""
    url = provider.base_url or kind_of(provider.kind).base_url
    host = urlsplit(url or "").netloc.rpartition("@")[2].lower()
    return f"{host}/{provider.region}" if host and provider.region else host


def _domain(provider: ProviderConfig) -> str:
    """As the router takes it; servers of one's own have their host in the place of their kind."""
    if provider.failure_domain is None and (provider.kind in _OWN_SERVERS or provider.kind not in KINDS):
        return _host(provider) or provider.base_url or provider.kind
    domain = provider.failure_domain or failure_domain(provider.kind)
    return f"{domain}/{provider.region}" if provider.region else domain


def _inert_recovery(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """A policy that lets another target continue a cut stream, where none can."""
    for name, model in _talking(config):
        policy = parse_recovery(config.routing.recovery if model.recovery is None else model.recovery)
        mentions = _all_of(model)
        able = [mention for mention in mentions if _continues(config, mention)]
        # Each credential is a target of its own.
        many = sum(len(config.targets_of(mention)) for mention in able) > 1
        if policy.mode not in CONTINUING or many or len(mentions) == len(able):
            continue
        key = spelled(("models", name) if model.recovery is None else ("models", name, "recovery"))
        one = f"only {able[0].target} can go on with an answer, and" if able else "no target can go on with an answer:"
        why = (
            "nothing continues its own streams while it is down" if able else "`prefill: none`, or no Chat or Messages"
        )
        cannot = f"`recovery: {policy}` cannot work: {one} {why}"
        yield ConfigFinding("warning", key, cannot, "give it a target that can, or `recovery: buffered` or `none`")


def _continues(config: RouterConfig, mention: TargetConfig) -> bool:
    spoken = _wires(config.providers[mention.provider])
    return _known(config, mention).prefill.value != "none" and not CONTINUABLE.isdisjoint(spoken)


def _unpriced_budgets(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """A key with a budget in USD, and targets of unknown price: its requests skip them."""
    if config.routing.unpriced == "allow":
        return
    for name, client in config.gateway.keys.items():
        unpriced = [] if client.usd_per_day is None else _unpriced_for(config, client)
        if unpriced:
            key = spelled(("gateway", "keys", name, "usd_per_day"))
            cannot = f"not spent at {', '.join(unpriced)}: the price is unknown"
            remedy = "give the target its `price` or set `routing.unpriced: allow`"
            yield ConfigFinding("warning", key, cannot, remedy)


def _unpriced_for(config: RouterConfig, client: GatewayKeyConfig) -> list[str]:
    """The targets and routes without a price that a client's key is for. Those of a wildcard are known when asked."""
    mentions = {mention.target: mention for model in _models_for(config, client) for mention in _all_of(model)}
    unpriced = [
        target
        for target, mention in mentions.items()
        if "*" not in target and _known(config, mention).price.value is None
    ]
    routes = config.gateway.passthrough.routes  # no price is known of what passes through
    return unpriced + [route for route in routes if _is_for(client, route)]


def _models_for(config: RouterConfig, client: GatewayKeyConfig) -> list[ModelConfig]:
    """The models that a client's key may name, also by an alias; a name that leads nowhere means the default model."""
    if not client.models:
        return list(config.models.values())
    names = (name for name in (*config.models, *config.aliases, *client.models) if _is_for(client, name))
    found = (resolve(name, config.models, config.aliases) or config.routing.default_model for name in names)
    return [config.models[name] for name in dict.fromkeys(found) if name is not None]


def _is_for(client: GatewayKeyConfig, name: str) -> bool:
    return not client.models or any(fnmatchcase(name, pattern) for pattern in client.models)


def _lost_spans(config: RouterConfig, environment: LintEnvironment) -> Iterator[ConfigFinding]:
    if config.telemetry.traces.enabled and environment.spans_lost:
        remedy = "set OTEL_EXPORTER_OTLP_ENDPOINT for `smr serve`, or set up an SDK in your own application"
        yield ConfigFinding("warning", "telemetry.traces", f"spans go nowhere: {environment.spans_lost}", remedy)


def _unknown_windows(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """Targets without a known window: a prompt that was too long for one of a model is tried at only one more."""
    unknown: dict[str, str] = {}
    for name, model in _talking(config):
        mentions = [
            (mention, spelled(("models", name, "tiers", number, "targets", place)))
            for number, tier in enumerate(model.tiers)
            for place, mention in enumerate(tier.targets)
        ]
        if len(mentions) > 1:
            found = {mention.target: key for mention, key in mentions if _window_is_unknown(config, mention)}
            unknown |= {target: key for target, key in found.items() if target not in unknown}
    if unknown:
        cannot = f"no context window is known of {_listed(unknown)}: only a call shows that a prompt is too long"
        yield ConfigFinding("note", next(iter(unknown.values())), cannot, "set its `context_tokens`")


def _window_is_unknown(config: RouterConfig, mention: TargetConfig) -> bool:
    if config.providers[mention.provider].kind in ("local", "scripted") or "*" in mention.target:
        return False
    return _known(config, mention).context_tokens.value is None


def _searches(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """Models whose requests with a search of the web are refused, or are served at one provider alone."""
    found = [(_search_gap(config, model), name, _remote_providers(model)) for name, model in _talking(config)]
    for said, group in groupby(sorted(each for each in found if each[0]), key=lambda each: each[0]):
        named = list(group)
        dropping = dict.fromkeys(
            f"`providers.{provider}.hosted_tools: drop`"
            for _, _, providers in named
            for provider in providers
            if not _takes_search(config, provider)
        )
        cannot = f"web search and other tools that run at a provider {said} for {_listed(name for _, name, _ in named)}"
        remedy = (
            'Codex CLI sends a web search by default (`web_search = "disabled"` ends that), Claude Code when it '
            f"searches; to be served without: {', '.join(dropping)}"
        )
        yield ConfigFinding("note", "models", cannot, remedy)


def _search_gap(config: RouterConfig, model: ModelConfig) -> str:
    """The words for what is missing; "" where every fallback takes a search, or its provider is not known."""
    providers = _remote_providers(model)
    able = [provider for provider in providers if _takes_search(config, provider)]
    if not providers or any(config.providers[name].kind not in _REAL_KINDS for name in providers):
        return ""
    if not able:
        return "are refused: no target has them,"
    return f"have no fallback: {able[0]} alone has them," if len(able) == 1 and len(providers) > 1 else ""


def _remote_providers(model: ModelConfig) -> list[str]:
    """The providers of a model, but for its last resort."""
    return list(dict.fromkeys(mention.provider for tier in model.tiers for mention in tier.targets))


def _takes_search(config: RouterConfig, name: str) -> bool:
    provider = config.providers[name]
    return provider.hosted_tools == "drop" or not SEARCHING.isdisjoint(_wires(provider))


def _wires(provider: ProviderConfig) -> tuple[str, ...]:
    return provider.wires or kind_of(provider.kind).wires


def _talking(config: RouterConfig) -> Iterator[tuple[str, ModelConfig]]:
    """The models that answer; not those that make vectors."""
    for name, model in config.models.items():
        vectors = name == config.search.embedding_model or all(
            each.embedding_space is not None or "embed" in each.target.lower() for each in _all_of(model)
        )
        if not vectors:
            yield name, model


def _all_of(model: ModelConfig) -> list[TargetConfig]:
    return [*(mention for tier in model.tiers for mention in tier.targets), *(model.last_resort or ())]


def _known(config: RouterConfig, mention: TargetConfig) -> KnownTarget:
    return KnownTarget(mention, config.providers[mention.provider].kind)


def _listed(names: Iterable[str]) -> str:
    shown = list(dict.fromkeys(names))
    more = f" and {len(shown) - _SHOWN} more" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more


def _untooled_resorts(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """Last resorts that take no tools, behind targets that do: they never serve an agent."""
    found: dict[str, list[str]] = {}
    for name, model in _talking(config):
        takes = [_known(config, mention).ability("tools").value is not False for mention in _all_of(model)]
        resorts = model.last_resort or ()
        if resorts and any(takes) and not any(takes[-len(resorts) :]):
            found.setdefault(_listed(mention.target for mention in resorts), []).append(name)
    for listed, names in found.items() if config.last_resort.tools is None else ():
        cannot = f"the last resort {listed} of {_listed(names)} takes no tools: it never answers an agent's request"
        remedy = "`last_resort: {tools: answer_without}` lets it answer without them, `tools: refuse` is as now"
        yield ConfigFinding("note", "last_resort.tools", cannot, remedy)


def _lone_machines(config: RouterConfig, _: LintEnvironment) -> Iterator[ConfigFinding]:
    """Several machines of which none knows of another."""
    store = config.store
    if store.machines > 1 and (store.shared_url is None or not store.shared_state):
        cannot = f"{store.machines} machines share nothing: each probes for itself, and takes the whole of every limit"
        yield ConfigFinding("warning", "store.machines", cannot, "name a server in store.shared_url")


Rule = Callable[[RouterConfig, LintEnvironment], Iterator[ConfigFinding]]
_RULES: tuple[Rule, ...] = (
    _literal_keys,
    _quoted_keys,
    _equal_keys,
    _addresses,
    _short_keys,
    _unpriced_budgets,
    _inert_recovery,
    _shared_failures,
    _lost_spans,
    _unknown_windows,
    _searches,
    _untooled_resorts,
    _lone_machines,
)
