"""The targets, gates and routes of a configuration."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from smart_model_router.config.known_models import KnownTarget
from smart_model_router.config.provider_loading import keys_of
from smart_model_router.config.rules import FACTS, strategy_named
from smart_model_router.config.secret import Secret
from smart_model_router.config.tree import DefaultsConfig, ModelConfig, ProviderConfig, RouterConfig, TargetConfig
from smart_model_router.core.gate import Gate
from smart_model_router.core.gate_registry import GateRegistry
from smart_model_router.core.passthrough_rules import Route, RouteTarget, by_path
from smart_model_router.core.ratelimit import RateLimitTracker, TokenFactor
from smart_model_router.core.selection import Candidate
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.core.tiers import ModelRoute, TargetFacts, Tier
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.ports import (
    Provider,
    SupportsDialects,
    SupportsOperations,
    SupportsPassthrough,
)
from smart_model_router.domain.recovery_policy import parse_recovery
from smart_model_router.domain.request import Dialect, Operation, Target
from smart_model_router.domain.shared_state import SharedKeys, slot_scope
from smart_model_router.domain.tree_path import spelled
from smart_model_router.wires.translate import reachable
from smart_model_router_providers.catalog import KINDS, Kind, failure_domain, kind_of, limit_pool, resolve
from smart_model_router_providers.signals import FAMILIES

LOCAL_QUEUE = 8
"""The number of requests that may wait for the embedded model; each answer takes it seconds."""
_PROMPT_SHARE = 3
"""Tokens of prompt to one of answer, for the one figure targets are compared by."""
_ANYTHING = frozenset({"openai_compatible", "scripted", "local"})
"""Kinds of provider of which two with one model's name need not have the same model."""


def _given(defaults: DefaultsConfig | None) -> dict[str, Any]:
    """The parameters that a target has a default for, as they stand in a body."""
    if defaults is None:
        return {}
    thinking = defaults.thinking
    found = {"temperature": defaults.temperature, "max_tokens": defaults.max_tokens}
    made: dict[str, Any] = {name: value for name, value in found.items() if value is not None}
    if thinking is not None:
        budget = {} if thinking.budget_tokens is None else {"budget_tokens": thinking.budget_tokens}
        made["thinking"] = {"type": thinking.type, **budget}
    return made


def _origin(provider: ProviderConfig) -> ProviderConfig:
    """Return the entry without its keys, its limits and its place: equal for entries that are asked in the same way."""
    return replace(
        provider,
        api_key=(),
        bulkhead=None,
        bulkhead_scope=None,
        rpm=None,
        tpm=None,
        failure_domain=None,
        region=None,
    )


class TargetParts:
    """Targets, gates and model routes of a configuration; each target once, however often it is named."""

    def __init__(self, config: RouterConfig, given: Mapping[str, Provider]) -> None:
        self._config = config
        self._given = given
        self._gate_config = config.resilience.gate
        everyone = [m for model in config.models.values() for tier in model.tiers for m in tier.targets]
        in_tiers = [mention for mention in everyone if "*" not in mention.target]
        resorts = [m for model in config.models.values() for m in model.last_resort or ()]
        mentions = [*in_tiers, *resorts]
        self._used = tuple(dict.fromkeys(mention.provider for mention in (*everyone, *resorts)))
        named = (name.partition("/")[0] for names in config.gateway.passthrough.routes.values() for name in names)
        self.called = tuple(dict.fromkeys((*self._used, *named)))
        """Every provider that is used."""
        remotes = sum(self._kind(name).remote for name in self._used)
        self._connectivity = Connectivity(remotes)
        self._pools: dict[tuple[str, int, str], str] = {}
        """One of the targets whose limits a provider counts together, by provider, credential and pool."""
        self._made: dict[str, Gate] = {}
        self.windows: dict[str, int] = {}
        """Context windows that targets named themselves."""
        self._factors: dict[tuple[str, str], TokenFactor] = {}
        self._states = {name: self._provider_state(name) for name in self.called}
        self.targets: dict[str, Target] = {t.id: t for m in mentions for t in config.targets_of(m)}
        self.known = {
            t.id: KnownTarget(m, config.providers[m.provider].kind) for m in mentions for t in config.targets_of(m)
        }
        gates = self._gates(mentions)
        self.passing: list[Target] = []
        """Providers on the paths of `gateway.passthrough`, as targets of their own."""
        self.routes = self._routes()
        uncounted = {*(self._ids(resorts) - self._ids(in_tiers)), *(target.id for target in self.passing)}
        passing = [self._made[target.id] for target in self.passing]
        self.fleet = GateRegistry((*gates, *passing), self._connectivity, uncounted=uncounted)
        self._written = frozenset(self.targets)
        self.owners = {target.id: self._owners_of(target) for target in self.targets.values()}
        """The shared keys of every target, by its id."""
        self.model_routes = {
            name: self._model_route(name, model) for name, model in config.models.items() if "*" not in name
        }

    def extend(self, configured: str, model: ModelConfig) -> tuple[ModelRoute, tuple[Gate, ...]]:
        """The route of a model that a wildcard stands for, and the gates of its targets that are new."""
        mentions = [self._as_written(mention) for tier in model.tiers for mention in tier.targets]
        found = {mention.target: mention for mention in mentions}
        new = [mention for mention in mentions if mention.target not in self.targets]
        gates = tuple(self._gates(new))
        for mention in new:
            for target in self._config.targets_of(mention):
                self.targets[target.id] = target
                self.known[target.id] = KnownTarget(mention, self._config.providers[mention.provider].kind)
        for gate in gates:
            self.owners[gate.id] = self._owners_of(self.targets[gate.id])
        tiers = tuple(replace(t, targets=tuple(found[m.target] for m in t.targets)) for t in model.tiers)
        return self._model_route(configured, replace(model, tiers=tiers), name=model.name), gates

    def drop(self, target: str) -> None:
        """Forget how a target that `extend` made is configured."""
        gone = self._made.pop(target, None)
        for known in (self.targets, self.known, self.owners, self.windows):
            known.pop(target, None)
        for key, first in tuple(self._pools.items()):
            if first == target and gone is not None:
                heir = next((name for name, gate in self._made.items() if gate.limits is gone.limits), None)
                _ = self._pools.pop(key) if heir is None else self._pools.update({key: heir})

    def is_written(self, target: str) -> bool:
        """True for a target that the configuration names without a `*`."""
        return target in self._written

    def _as_written(self, mention: TargetConfig) -> TargetConfig:
        """The mention with the facts that the configuration gives where it names the target without a `*`."""
        if mention.target not in self._written:
            return mention
        said = self.known[mention.target].mention
        return replace(mention, **{fact: getattr(said, fact) for fact in FACTS if getattr(said, fact) is not None})

    def _kind(self, provider: str) -> Kind:
        return kind_of(self._config.providers[provider].kind)

    def _operations(self, name: str) -> frozenset[Operation]:
        """The operations of a provider beside creating."""
        adapter = self._adapter(name)
        return adapter.operations if isinstance(adapter, SupportsOperations) else frozenset()

    def _adapter(self, name: str) -> object:
        """The provider object that was given, else the class of the configured kind, which has the same members."""
        return self._given.get(name) or resolve(self._config.providers[name].kind)

    def _dialects(self, name: str) -> frozenset[Dialect]:
        """Return the dialects of a provider: from the object itself, else the configuration, else the catalog."""
        provider, known = self._config.providers[name], frozenset(self._kind(name).wires)
        own = self._adapter(name) if name in self._given or provider.kind not in KINDS else None
        if isinstance(own, SupportsDialects) and isinstance(own.dialects, frozenset):  # of a class it may be a property
            return own.dialects
        if provider.kind == "local" and not known.issuperset(provider.wires):
            raise ConfigurationError(f"providers.{name}.wires", list(provider.wires), f"of {', '.join(sorted(known))}")
        return frozenset(provider.wires) or known

    def _ids(self, mentions: Iterable[TargetConfig]) -> set[str]:
        return {target.id for mention in mentions for target in self._config.targets_of(mention)}

    def _provider_state(self, name: str) -> ProviderState:
        provider, kind = self._config.providers[name], self._kind(name)
        return ProviderState(
            name,
            slots=provider.bulkhead or kind.bulkhead,
            remote=kind.remote and name in self._used,
            connectivity=self._connectivity,
            config=self._gate_config,
            queue=LOCAL_QUEUE if provider.kind == "local" else None,
            origin=(_origin(provider), self._config.local if provider.kind == "local" else None),
            keys=tuple(Secret(key) for key in keys_of(provider)),
        )

    def _gates(self, mentions: Iterable[TargetConfig]) -> list[Gate]:
        found: list[Gate] = []
        for mention in mentions:
            for target in self._config.targets_of(mention):
                if target.id not in self._made:
                    made = Gate(
                        target.id,
                        self._state_of(target.provider),
                        limits=self._limits(mention, target),
                        credential=target.credential,
                    )
                    self._made[target.id] = made
                    found.append(made)
        return found

    def _state_of(self, provider: str) -> ProviderState:
        """The state that the provider's targets share: that of before a reload, where it went on."""
        going_on = (gate.provider for gate in self._made.values() if gate.provider.name == provider)
        return next(going_on, self._states[provider])

    def _limits(self, mention: TargetConfig, target: Target) -> RateLimitTracker:
        """The limits of a target; targets whose provider counts them together share theirs."""
        if not self._gate_config.measures.rate_limit_awareness:
            return RateLimitTracker(learns=False)
        provider, kind = self._config.providers[mention.provider], self._kind(mention.provider)
        pool = limit_pool(provider.kind, target.model)
        factor = self._factors.setdefault((provider.kind, pool), TokenFactor())
        rpm, tpm = mention.rpm or provider.rpm or kind.rpm, mention.tpm or provider.tpm or kind.tpm
        alone = not self._config.store.shares_state
        share = 1 / self._config.store.processes if alone else 1.0
        made = RateLimitTracker(rpm, tpm, refill=FAMILIES[kind.header_family].refill, factor=factor, share=share)
        if mention.rpm or mention.tpm:  # the owner's figures are about this target alone
            return made
        first = self._pools.setdefault((target.provider, target.credential, pool), target.id)
        return made if first == target.id else self._made[first].limits

    def _routes(self) -> dict[str, Route]:
        """The routes of `gateway.passthrough` by the paths that have a state of their own."""
        found = dict[str, Route]()
        for path, (name, providers) in by_path(self._config.gateway.passthrough.routes).items():
            targets = tuple(made for one in providers for made in self._route_targets(name, path, one))
            found[path] = Route(name, known=not path.endswith("*"), targets=targets)
        return found

    def _route_targets(self, route: str, path: str, named: str) -> Iterator[RouteTarget]:
        """A provider, or one with a model, on a path: one for each of its credentials."""
        mention = TargetConfig(target=f"{named}{path}")
        provider, deployment = mention.provider, named.partition("/")[2]
        if not isinstance(self._adapter(provider), SupportsPassthrough):
            key = spelled(("gateway", "passthrough", "routes", route))
            raise ConfigurationError(key, named, "a provider is needed that is called over HTTP by its own URL")
        for target in self._config.targets_of(mention):
            plain = named + target.id.removeprefix(mention.target)
            beside = replace(target, id=plain, model=deployment or path)
            chats = self._made.get(beside.id)
            limits = self._limits(mention, replace(beside, id=target.id)) if chats is None else chats.limits
            state, number = self._state_of(provider), target.credential
            self._made[target.id] = Gate(target.id, state, limits=limits, credential=number, alone=True)
            self.passing.append(target)
            yield RouteTarget(target.id, provider, number, deployment, beside.id if deployment else "")

    def _owners_of(self, target: Target) -> SharedKeys:
        keys = keys_of(self._config.providers[target.provider])
        key = keys[target.credential] if target.credential < len(keys) else ""
        mark = f"@{hashlib.sha256(key.encode()).hexdigest()[:8]}" if key else ""
        # A key is known by its mark, in whichever place it is written.
        name = f"{target.provider}/{target.model}" if keys.count(key) == 1 else target.id
        mention = self.known[target.id].mention
        pool = limit_pool(self._config.providers[target.provider].kind, target.model)
        alone = mention.rpm or mention.tpm or not self._gate_config.measures.rate_limit_awareness
        limits = name if alone else f"{target.provider}/{pool}"
        return SharedKeys(
            f"{name}{mark}",
            f"{target.provider}{mark}",
            f"{limits}{mark}",
            slots=self._slots_of(target.provider),
            slots_of_fleet=self._config.providers[target.provider].bulkhead_scope == "fleet",
        )

    def _slots_of(self, name: str) -> str:
        """The name that processes have for a provider's bulkhead: another server, or other keys, have another one."""
        provider = self._config.providers[name]
        embedded = provider.kind == "local"
        scope = slot_scope(provider.bulkhead_scope, written=provider.bulkhead is not None, embedded=embedded)
        if scope == "process" or not self._gate_config.measures.cascade_prevention:
            return ""
        whose = json.dumps([provider.kind, provider.base_url, sorted(keys_of(provider))])
        return f"{name}@{hashlib.sha256(whose.encode()).hexdigest()[:8]}"

    def _model_route(self, configured: str, model: ModelConfig, *, name: str = "") -> ModelRoute:
        strategy = model.strategy or self._config.routing.strategy
        return ModelRoute(
            configured,
            tuple(Tier(tier.name, self._facts(tier.targets, strategy)) for tier in model.tiers),
            tuple(self._as_last_resort(facts) for facts in self._facts(model.last_resort or (), "ordered")),
            strategy,
            parse_recovery(self._config.routing.recovery if model.recovery is None else model.recovery),
            name,
            strategy_named(strategy, f"models.{configured}.strategy"),
        )

    def _as_last_resort(self, facts: TargetFacts) -> TargetFacts:
        """The facts of a target behind all others: it may answer requests with tools without them."""
        if self._config.last_resort.tools != "answer_without" or "tools" not in facts.lacks:
            return facts
        return replace(facts, lacks=facts.lacks - {"tools"}, leaves_tools=True)

    def _facts(self, mentions: Iterable[TargetConfig], strategy: str) -> tuple[TargetFacts, ...]:
        pairs = [(mention, target) for mention in mentions for target in self._config.targets_of(mention)]
        return tuple(self._facts_of(mention, target, place, strategy) for place, (mention, target) in enumerate(pairs))

    def _facts_of(self, mention: TargetConfig, target: Target, place: int, strategy: str) -> TargetFacts:
        provider, kind = self._config.providers[target.provider], self._kind(target.provider)
        domain = provider.failure_domain or failure_domain(provider.kind)
        is_local = provider.kind == "local"
        dialects = self._dialects(target.provider)
        known = self.known[target.id]
        return TargetFacts(
            target,
            Candidate(
                target.id,
                target.provider,
                place,
                domain=f"{domain}/{provider.region}" if provider.region else domain,
                weight=mention.weight,
                price=self._price(known),
                group=self._group(mention, target, strategy),
            ),
            dialects,
            lacks=known.lacks,
            context_tokens=mention.context_tokens or (self._config.local.prompt_cap_tokens if is_local else None),
            embedding_space=mention.embedding_space or target.model,
            reasoning=bool(known.reasoning.value),
            timeout=mention.timeout,
            only=frozenset(mention.only),
            unless=frozenset(mention.unless),
            counts_max_tokens=kind.counts_max_tokens,
            translated=reachable(dialects),
            newest_chat=kind.newest_chat,
            hosted_tools=provider.hosted_tools,
            prefill=known.prefill.value,
            media=known.media,
            operations=self._operations(target.provider),
            defaults=_given(mention.defaults),
            cost_usd=known.cost_usd,
            listed_context=lambda: self.windows.get(target.id) or known.context_tokens.value,
        )

    def _group(self, mention: TargetConfig, target: Target, strategy: str) -> str:
        """Return what interchangeable targets have in common: the configured group, else all but the key.

        Servers that speak OpenAI's dialect may differ: only the keys of one entry are interchangeable. `weighted` sets
        the shares itself, and so does `ordered` where no group is configured.
        """
        if strategy == "weighted":
            return ""
        if mention.group is not None:
            return mention.group
        if strategy == "ordered":
            return ""
        provider, kind = self._config.providers[target.provider], self._kind(target.provider)
        host = urlsplit(provider.base_url or kind.base_url or "").hostname
        of_one_entry = provider.kind in _ANYTHING or not host
        return f"{provider.kind} {target.provider if of_one_entry else host} {target.model}"

    def _price(self, known: KnownTarget) -> float | None:
        """USD per million tokens, looked up only where a strategy orders by it; unknown for the embedded model."""
        strategies = {model.strategy or self._config.routing.strategy for model in self._config.models.values()}
        price = known.price.value if "cheapest" in strategies and known.kind != "local" else None
        if price is None or price.input is None or price.output is None:
            return None
        return (_PROMPT_SHARE * price.input + price.output) / (_PROMPT_SHARE + 1)
