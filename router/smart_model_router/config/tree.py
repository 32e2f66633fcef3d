"""The configuration tree: frozen, keyword-only, and checked: a tree that contradicts itself cannot be made."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from smart_model_router.config import aliases as patterns
from smart_model_router.config import retired, rules
from smart_model_router.config.files import read_file
from smart_model_router.config.hints import FROM_KEY
from smart_model_router.config.research_sections import EvaluationConfig, ResearchConfig
from smart_model_router.config.secret import Secret
from smart_model_router.config.sections import GatewayConfig, SearchConfig, TelemetryConfig, WorkflowsConfig
from smart_model_router.core.breaker import BreakerConfig
from smart_model_router.core.capacity import AdaptiveConfig, ThrottleConfig
from smart_model_router.core.checked_options import Count, Interval, Options, Seconds, Unit
from smart_model_router.core.cooldown import CooldownConfig
from smart_model_router.core.fallback import BackoffConfig, HedgeConfig, RetryBudgetConfig, SheddingConfig
from smart_model_router.core.flow_config import GateConfig, Measures, PatienceConfig, RoutingConfig, TimeoutConfig
from smart_model_router.domain.errors import ModelNotFound
from smart_model_router.domain.request import Dialect, HostedTools, Need, Prefill, Target
from smart_model_router.domain.suggest import unknown_model

if TYPE_CHECKING:
    from pathlib import Path

Usd = Annotated[float, Interval(ge=0, le=1_000_000)]
# No slots here: there is one tree a process, and making a class with slots doubles what importing it costs.


@dataclass(frozen=True, kw_only=True)
class ProviderConfig(Options):
    """One provider and the way to reach it. None means: as the catalog has it for the kind.

    `kind` is a row of the catalog, or a provider class: `package.module:Class`, or an entry point in
    `smart_model_router.providers`. Each key in `api_key` is a credential, and each credential makes a target of its
    own. `drop_params` are fields of the body that this provider does not take. `wires` are the dialects it speaks;
    requests in another one are translated. `hosted_tools` is what becomes of a request with tools that run at a
    provider (web search) and that cannot be translated: `refuse` asks another target, `drop` sends it without them.
    `bulkhead` is how many calls may be in flight: of each `process`, of all processes of the `host` that share
    state, or of the whole `fleet` on one server (`bulkhead_scope`; None: see `slot_scope`). `rpm` and `tpm` are
    requests and tokens a minute of each target.
    """

    kind: str
    base_url: str | None = None
    api_key: tuple[Secret, ...] = ()
    api_version: str | None = None
    headers: Mapping[str, Secret] = field(default_factory=dict)
    drop_params: tuple[str, ...] = ()
    wires: tuple[Dialect, ...] = ()
    hosted_tools: HostedTools = "refuse"
    bulkhead: Annotated[int, Unit("count"), Interval(ge=1, le=100_000)] | None = None
    bulkhead_scope: Literal["process", "host", "fleet"] | None = None
    failure_domain: str | None = None
    region: str | None = None
    rpm: Count | None = None
    tpm: Count | None = None


@dataclass(frozen=True, kw_only=True)
class PriceConfig(Options):
    """USD per million tokens of prompts, of their cached part (None: the price of prompts), and of answers."""

    input: Usd
    cached: Usd | None = None
    output: Usd


@dataclass(frozen=True, kw_only=True)
class ThinkingConfig(Options):
    """Anthropic's `thinking`: whether a model thinks first, and for how many tokens at most."""

    type: Literal["enabled", "disabled", "adaptive"]
    budget_tokens: Count | None = None


@dataclass(frozen=True, kw_only=True)
class DefaultsConfig(Options):
    """Parameters that requests to a target have when their callers gave none. None adds nothing."""

    temperature: Annotated[float, Interval(ge=0, le=2)] | None = None
    max_tokens: Count | None = None
    thinking: ThinkingConfig | None = None


@dataclass(frozen=True, kw_only=True)
class TargetConfig(Options):
    """One target of a tier, `provider/model`, with its facts. None means: as the catalog has it.

    Facts (from `rpm` on) belong to the target: given at one mention, they hold for all of them. `price` takes the
    place of the price list's. The rest belongs to the tier: `timeout`
    (seconds) replaces the attempt's; `weight` is a share; `group` names the targets of the tier that it is
    interchangeable with; `only` keeps it for requests with all of these needs, `unless` from requests with any of them;
    `defaults` are parameters for requests that come without.
    """

    target: str
    timeout: Seconds | None = None
    weight: Annotated[float, Interval(ge=0, le=1_000_000)] = 1.0
    group: str | None = None
    only: tuple[Need, ...] = ()
    unless: tuple[Need, ...] = ()
    defaults: DefaultsConfig | None = None
    rpm: Count | None = None
    tpm: Count | None = None
    reasoning: bool | None = None
    context_tokens: Count | None = None
    tools: bool | None = None
    images: bool | None = None
    schema: bool | None = None
    pdf: bool | None = None
    audio: bool | None = None
    price: PriceConfig | None = None
    embedding_space: str | None = None
    prefill: Prefill | None = None

    @staticmethod
    def written_out(given: object) -> object:
        """The mapping that a short form stands for: text is the target itself."""
        return {"target": given} if isinstance(given, str) else given

    @property
    def provider(self) -> str:
        """The name of the provider."""
        return self.target.partition("/")[0]

    @property
    def model(self) -> str:
        """The provider's name of the model; it may contain slashes."""
        return self.target.partition("/")[2]


@dataclass(frozen=True, kw_only=True)
class TierConfig:
    """Targets of one capability. Tiers without a name take those of `DEFAULT_LADDER` in order."""

    name: str = ""
    targets: tuple[TargetConfig, ...]


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """A public model name's tiers, best first. `name` is its key in `models`.

    A name with one `*` is a wildcard: it stands for every name that fits, and the `*` in its targets for the same
    text. `last_resort` None is the embedded model when it is installed; `()` is none. `strategy` None is that of
    `routing`. `recovery` is the policy for streams that are cut after content
    (recovery_policy.py), None: that of `routing`.
    """

    name: str = field(metadata={FROM_KEY: True})
    tiers: tuple[TierConfig, ...]
    last_resort: tuple[TargetConfig, ...] | None = None
    strategy: str | None = None
    recovery: str | None = None

    @staticmethod
    def written_out(given: object) -> object:
        """The mapping that a short form stands for: `targets` are those of a single tier."""
        if not isinstance(given, Mapping) or "tiers" in given or "targets" not in given:
            return given
        rest = {key: member for key, member in given.items() if key != "targets"}
        return {**rest, "tiers": [{"targets": given["targets"]}]}


def expanded(wildcard: ModelConfig, name: str) -> ModelConfig:
    """The model that `wildcard` is for `name`, which fits it. A target that comes twice stays in its first place."""
    text, seen = patterns.text_of(wildcard.name, name) or "", set[str]()

    def targets(mentions: Iterable[TargetConfig]) -> tuple[TargetConfig, ...]:
        made = [replace(mention, target=mention.target.replace("*", text)) for mention in mentions]
        new = {mention.target: mention for mention in reversed(made) if mention.target not in seen}
        seen.update(new)
        return tuple(mention for mention in made if new.get(mention.target) is mention)

    tiers = ((tier, targets(tier.targets)) for tier in wildcard.tiers)
    return replace(wildcard, name=name, tiers=tuple(replace(tier, targets=found) for tier, found in tiers if found))


@dataclass(frozen=True, kw_only=True)
class ResilienceConfig(Options):
    """Every number of the resilience rules (routing.md). `slow_start` is in seconds."""

    breaker: BreakerConfig = field(default_factory=BreakerConfig)
    cooldown: CooldownConfig = field(default_factory=CooldownConfig)
    throttle: ThrottleConfig = field(default_factory=ThrottleConfig)
    adaptive: AdaptiveConfig = field(default_factory=AdaptiveConfig)
    retry_budget: RetryBudgetConfig = field(default_factory=RetryBudgetConfig)
    hedging: HedgeConfig = field(default_factory=HedgeConfig)
    backoff: BackoffConfig = field(default_factory=BackoffConfig)
    shedding: SheddingConfig = field(default_factory=SheddingConfig)
    slow_start: Seconds = 10.0
    timeouts: TimeoutConfig = field(default_factory=TimeoutConfig)
    patience: PatienceConfig = field(default_factory=PatienceConfig)
    measures: Measures = field(default_factory=Measures)

    @property
    def gate(self) -> GateConfig:
        """The part that the gates decide by."""
        serialized = self.breaker.serialized_probes and self.measures.serialized_probes
        return GateConfig(
            breaker=replace(self.breaker, serialized_probes=serialized),
            cooldown=self.cooldown,
            throttle=self.throttle,
            adaptive=self.adaptive,
            slow_start=self.slow_start,
            measures=self.measures,
        )


@dataclass(frozen=True, kw_only=True)
class LocalConfig(Options):
    """The embedded model. `prompt_cap_tokens` is the longest prompt it takes; `start_timeout` is in seconds.

    `default_max_tokens` is the length of an answer when the caller names none, `max_tokens` the most one gets.
    """

    context_tokens: Annotated[int, Unit("count"), Interval(ge=256, le=8192)] = 4096
    prompt_cap_tokens: Annotated[int, Unit("count"), Interval(ge=1, le=8191)] = 1500
    default_max_tokens: Annotated[int, Unit("count"), Interval(ge=1, le=8192)] = 256
    max_tokens: Annotated[int, Unit("count"), Interval(ge=1, le=8192)] = 1024
    threads: Annotated[int, Unit("count"), Interval(ge=1, le=256)] = 2
    start_timeout: Annotated[float, Unit("seconds"), Interval(ge=0.1, le=600)] = 30.0


@dataclass(frozen=True, kw_only=True)
class LastResortConfig(Options):
    """The rules for last resorts of all models. `tools` is what becomes of a request with tools there.

    A last resort that takes none, as the embedded model, is passed over (`refuse`), or answers in words without them
    (`answer_without`), and the report's losses say so. None refuses, too, and is pointed out by `smr doctor`.
    """

    tools: Literal["refuse", "answer_without"] | None = None


@dataclass(frozen=True, kw_only=True)
class StoreConfig(Options):
    """The file that statistics outlive the process in; None keeps them in memory alone. Processes may share one.

    `url` is a PostgreSQL database for everything that follows, and for runs of workflows, as far as it is not named
    apart. `stats_url` is one that the processes of any number of machines keep their statistics in, instead.
    `shared_url` is a server on which they share their state, as one fleet for each `namespace`. There are as many
    `machines` as are counted (0), which matters while it cannot be asked.

    Data older than `retention_days` is deleted, and so are the oldest minutes beyond `size_limit_mb` mebibytes. With
    `shared_state` breakers, cooldowns and limits are shared by these processes, and survive a restart, in `state.db`
    beside it; without it each of `processes` uses its part of every limit. Answers of Responses that the router made by
    translation are kept for `response_ttl`, 0 keeps none, in `responses.db` beside it (without a file in memory), and
    the oldest beyond `response_limit_mb` mebibytes go.
    """

    path: str | None = None
    url: Secret | None = None
    stats_url: Secret | None = None
    shared_url: Secret | None = None
    namespace: str = "smr"
    machines: Annotated[int, Unit("count"), Interval(ge=0, le=10_000)] = 0
    shared_state: bool = True
    processes: Annotated[int, Unit("count"), Interval(ge=1, le=10_000)] = 1
    retention_days: Annotated[int, Unit("count"), Interval(ge=1, le=3650)] = 14
    size_limit_mb: Annotated[int, Unit("count"), Interval(ge=8, le=1_000_000)] = 512
    response_ttl: Annotated[float, Unit("seconds"), Interval(ge=0, le=30 * 86_400)] = 86_400.0
    response_limit_mb: Annotated[int, Unit("count"), Interval(ge=1, le=1_000_000)] = 256

    @property
    def shares_state(self) -> bool:
        """True when breakers, cooldowns and limits are shared with other processes."""
        return self.shared_state and (self.path is not None or self.shared_url is not None)


@dataclass(frozen=True, kw_only=True)
class RouterConfig:
    """Everything a router is made from. Raises ConfigurationError that names key, value and what would be right.

    `models` are the names callers use; `aliases` are further names for them, `*` standing for any text.
    """

    __pydantic_config__: ClassVar[dict[str, Any]] = {"extra": "forbid"}  # holds for every section below

    version: Literal[1]
    providers: Mapping[str, ProviderConfig]
    models: Mapping[str, ModelConfig]
    aliases: Mapping[str, str] = field(default_factory=dict)
    routing: RoutingConfig = field(default_factory=RoutingConfig)
    resilience: ResilienceConfig = field(default_factory=ResilienceConfig)
    local: LocalConfig = field(default_factory=LocalConfig)
    last_resort: LastResortConfig = field(default_factory=LastResortConfig)
    gateway: GatewayConfig = field(default_factory=GatewayConfig)
    store: StoreConfig = field(default_factory=StoreConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    telemetry: TelemetryConfig = field(default_factory=TelemetryConfig)
    workflows: WorkflowsConfig = field(default_factory=WorkflowsConfig)
    research: ResearchConfig = field(default_factory=ResearchConfig)

    def __post_init__(self) -> None:
        object.__setattr__(self, "models", rules.settled_models(self.models))
        store, runs = self.store, self.workflows.store_url
        if store.url is not None:  # of all three; what is named apart stays
            shared, stats = store.shared_url or store.url, store.stats_url or store.url
            object.__setattr__(self, "store", replace(store, shared_url=shared, stats_url=stats))
            object.__setattr__(self, "workflows", replace(self.workflows, store_url=runs or store.url))
        rules.check(self)

    @classmethod
    def from_mapping(cls, mapping: object, *, environ: Mapping[str, str] | None = None) -> RouterConfig:
        """Read plain data (what YAML or JSON hold). `environ` answers `${VAR}`; None is the process's own.

        Raises ConfigurationError, and nothing else. A key that is no longer used is a ConfigurationWarning.
        """
        from smart_model_router.config.parsing import read_mapping  # noqa: PLC0415 - brings pydantic

        config, gone = read_mapping(cls, mapping, os.environ if environ is None else environ)
        retired.warn(gone)
        return config

    @classmethod
    def load(cls, path: str | Path | None = None, *, environ: Mapping[str, str] | None = None) -> RouterConfig:
        """Read a YAML file; None looks in the default places (`default_file`). Errors name file and line.

        Raises ConfigurationError, and nothing else; so, too, when there is no file in the default places. A key that
        is no longer used is a ConfigurationWarning.
        """
        return read_file(cls, path, os.environ if environ is None else environ)

    def locate(self, name: str) -> tuple[str, str]:
        """The key in `models` that `name` leads to, and the name it is known by there: differs for a wildcard.

        A model goes before an alias, that before the longest pattern that fits, that before `routing.default_model`.
        Raises ModelNotFound with the nearest known name.
        """
        found, known_by = patterns.lookup(name, self.models, self.aliases)
        if found is not None:
            return found, known_by
        default = self.routing.default_model
        if default is None:
            raise ModelNotFound(unknown_model(name, self.names), model=name)
        return default, default

    def resolve(self, name: str) -> ModelConfig:
        """The model that `name` leads to (see `locate`), of a wildcard with the `*` of its targets replaced."""
        found, known_by = self.locate(name)
        return expanded(self.models[found], known_by) if "*" in found else self.models[found]

    @property
    def default_name(self) -> str | None:
        """The model that stands for none: `routing.default_model`, else the first; None when all are wildcards."""
        return self.routing.default_model or next((name for name in self.models if "*" not in name), None)

    @property
    def wildcard_mentions(self) -> tuple[tuple[str, TargetConfig], ...]:
        """Every target with a `*`, with the wildcard whose target it is."""
        return tuple(
            (name, mention)
            for name, model in self.models.items()
            for tier in model.tiers
            for mention in tier.targets
            if "*" in mention.target
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Every model name a caller may use: models, then aliases (patterns as they are written)."""
        return (*self.models, *self.aliases)

    def targets_of(self, mention: TargetConfig) -> tuple[Target, ...]:
        """The targets a mention in a tier stands for, one for each credential; the first keeps the bare id."""
        credentials = max(1, len(self.providers[mention.provider].api_key))
        return tuple(
            Target(
                mention.target if number == 0 else f"{mention.target}#{number + 1}",
                mention.provider,
                mention.model,
                number,
            )
            for number in range(credentials)
        )
