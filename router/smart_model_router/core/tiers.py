"""The plan of a request: its targets by tiers, in order, and the reason for each target that is left out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

from smart_model_router.core.limit_bucket import ESTIMATES_ERR
from smart_model_router.core.selection import STRATEGIES, Candidate, Selector
from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.outcome import Refusal, Usage
from smart_model_router.domain.recovery_policy import NO_RECOVERY, Recovery
from smart_model_router.domain.request import (
    CONTINUABLE,
    NEEDS,
    Dialect,
    HostedTools,
    Need,
    Operation,
    Prefill,
    RouteRequest,
    Target,
)


def _unknown() -> None:
    return None


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """A target as configured in one tier. `timeout` (seconds) replaces the default attempt timeout.

    `lacks` are its missing abilities; `context_tokens` the prompt it can take, None when unknown. `only` keeps it for
    requests that need all of these, `unless` from requests that need any of them. It speaks `dialects`, and can be
    asked in those of `translated` by translation; `newest_chat`: OpenAI's newest Chat parameters are taken there;
    `hosted_tools` that cannot be translated are dropped there, or the target is not asked.
    `prefill` is how it goes on with an answer that another target began; `media` names its family of token rules
    (core/media_tokens.py); `operations` are those of Responses that it has beside answering. `listed_context` looks up
    the context window in a public list, for when `context_tokens` is None: it decides where a prompt that was too long
    goes next, and refuses nothing by itself. `leaves_tools`: a request with tools is answered there without them.
    `cost_usd` gives the cost of a call in USD; None where no price is known. `defaults` are parameters for requests
    that come without them.
    """

    target: Target
    candidate: Candidate
    dialects: frozenset[Dialect]
    lacks: frozenset[Need] = frozenset()
    context_tokens: int | None = None
    embedding_space: str = ""
    reasoning: bool = False
    timeout: float | None = None
    only: frozenset[Need] = frozenset()
    unless: frozenset[Need] = frozenset()
    counts_max_tokens: bool = False
    translated: frozenset[Dialect] = frozenset()
    newest_chat: bool = False
    hosted_tools: HostedTools = "refuse"
    prefill: Prefill = "asked"
    media: str = ""
    operations: frozenset[Operation] = frozenset()
    leaves_tools: bool = False
    defaults: Mapping[str, Any] = field(default_factory=dict)
    listed_context: Callable[[], int | None] = field(default=_unknown, repr=False, compare=False)
    cost_usd: Callable[[Usage], float | None] | None = field(default=None, repr=False, compare=False)
    id: str = field(init=False)
    """The target's id. Kept, as a request asks for it twenty times."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "id", self.target.id)

    @property
    def continues_answers(self) -> bool:
        """True when it can go on with an answer that another target began."""
        return self.prefill != "none" and not CONTINUABLE.isdisjoint(self.dialects)

    @property
    def context(self) -> int:
        """The longest prompt it takes, in tokens; 0 when unknown."""
        return (self.context_tokens if self.context_tokens is not None else self.listed_context()) or 0


@dataclass(frozen=True, slots=True)
class Tier:
    """Targets of one capability. Tiers are ordered best first."""

    name: str
    targets: tuple[TargetFacts, ...]
    grouped: bool = field(init=False)
    """True when some of them are interchangeable."""

    def __post_init__(self) -> None:
        groups = [facts.candidate.group for facts in self.targets if facts.candidate.group]
        object.__setattr__(self, "grouped", len(set(groups)) < len(groups))

    def conversation(self, request: RouteRequest) -> str | None:
        """The key that keeps a conversation on one target: its session; in a group without one, its beginning."""
        session = request.session_key
        return request.prompt_key if session is None and self.grouped else session


@dataclass(frozen=True)
class ModelRoute:
    """The route of one public model name. `recovery` is its policy for streams that are cut after content.

    `selector` orders the targets of a tier; `strategy` is its configured name.

    `name` is what it was asked by where `model` is a wildcard; empty for a model without one.
    """

    model: str
    tiers: tuple[Tier, ...]
    last_resort: tuple[TargetFacts, ...] = ()
    strategy: str = "health"
    recovery: Recovery = NO_RECOVERY
    name: str = ""
    selector: Selector = STRATEGIES["health"]
    plans: dict[_Shape, Plan] = field(default_factory=dict, init=False, repr=False, compare=False)
    """Plans made before, by everything they depend on: most requests are like another one (see `_shape`)."""

    def home_name(self, tier: str, conversation: str) -> str:
        """The key of a conversation's home: in each tier of each model it has one."""
        return f"{conversation}\x00{self.name or self.model}\x00{tier}"

    @cached_property
    def least_context(self) -> float:
        """Tokens of prompt that every target takes; infinity when none is known to have a limit."""
        return min((limit for _, limit in self._limited), default=math.inf)

    @cached_property
    def _limited(self) -> tuple[tuple[TargetFacts, int], ...]:
        everyone = [*(facts for tier in self.tiers for facts in tier.targets), *self.last_resort]
        return tuple((facts, facts.context_tokens) for facts in everyone if facts.context_tokens is not None)

    def too_long_for(self, request: RouteRequest, tokens: Weigh) -> frozenset[str]:
        """The targets whose context window is too small for the text, beyond the error of an estimate.

        A prompt with media is too long for none: its tokens are a guess, and the provider's word decides.
        """
        if request.media or request.text_bytes <= ESTIMATES_ERR * self.least_context:  # a token is a byte at least
            return _NONE
        return frozenset(f.id for f, limit in self._limited if tokens(f, request) > ESTIMATES_ERR * limit)


@dataclass(frozen=True)
class Plan:
    """The tiers to try: the asked one, then lower ones (then higher ones, when escalation is allowed).

    `left_out` names each target that cannot serve this request, with the reason.
    """

    asked: str
    tiers: tuple[Tier, ...]
    last_resort: tuple[TargetFacts, ...]
    left_out: tuple[tuple[str, Refusal], ...] = ()
    first: str | None = None
    escalations: frozenset[str] = field(default_factory=frozenset)

    @cached_property
    def by_id(self) -> Mapping[str, TargetFacts]:
        """Every target of the plan."""
        everyone = chain(*(tier.targets for tier in self.tiers), self.last_resort)
        return {facts.id: facts for facts in everyone}

    @cached_property
    def in_asked_tier(self) -> frozenset[str]:
        """The targets of the asked tier."""
        return frozenset(facts.id for facts in self.tiers[0].targets)

    @cached_property
    def providers(self) -> frozenset[str]:
        """The providers of its targets, but for the last resort's."""
        return frozenset(facts.target.provider for tier in self.tiers for facts in tier.targets)

    @cached_property
    def tier_of(self) -> Mapping[str, str]:
        """The name of each target's tier, but for the last resort's."""
        return {facts.id: tier.name for tier in self.tiers for facts in tier.targets}

    def is_fallback(self, target: str, strategy: str) -> bool:
        """True for a target that serves in the place of another: a lower tier's, a last resort, or behind the first.

        The targets of the first one's group are as good as it. Only `ordered` and `health` have a first: whichever
        target of the asked tier another strategy picks is its choice.
        """
        if target == self.first:
            return False
        if self.tier_of.get(target) != self.asked:
            return True
        group = self.by_id[target].candidate.group
        siblings = bool(group) and self.first is not None and group == self.by_id[self.first].candidate.group
        return strategy in _WRITTEN_ORDER and not siblings

    @property
    def empty(self) -> bool:
        """True when no target at all can serve the request."""
        return not self.last_resort and not any(tier.targets for tier in self.tiers)


Weigh = Callable[[TargetFacts, RouteRequest], float]
"""The probable tokens of a prompt at a target."""


EstimateUsd = Callable[[TargetFacts, RouteRequest], float | None]
"""The cost of a request at a target in USD; None when its price is unknown."""


MadeBy = Callable[[str], Target | None]
"""The target that made a thing kept at a provider, by the thing's id; None when it is not known."""


def plan(
    request: RouteRequest,
    model_route: ModelRoute,
    *,
    tokens: Weigh,
    estimate_usd: EstimateUsd,
    made_by: MadeBy,
    unpriced: bool = False,
    allow_escalation: bool = False,
    degrade: bool = True,
) -> Plan:
    """The targets that may serve `request`. Raises InvalidRequest for a tier the route does not have.

    With `unpriced`, a budget in USD may be spent at targets of unknown price.
    """
    too_long = model_route.too_long_for(request, tokens)
    shape = _shape(request, too_long, allow_escalation, degrade)
    if shape is not None and (known := model_route.plans.get(shape)) is not None:
        return known
    names = [tier.name for tier in model_route.tiers]
    asked = request.tier if request.tier is not None else names[0]
    if asked not in names:
        raise InvalidRequest(f"tier: {asked!r} is none of {', '.join(names)}")
    at = names.index(asked)
    higher = tuple(reversed(model_route.tiers[:at])) if allow_escalation else ()
    tiers = (model_route.tiers[at], *model_route.tiers[at + 1 :], *higher) if degrade else (model_route.tiers[at],)
    space = model_route.tiers[at].targets[0].embedding_space
    makers = _makers(request, model_route, made_by)
    wanted = _Wanted(request, request.needs, space, makers, too_long, estimate_usd, unpriced)
    left_out: list[tuple[str, Refusal]] = []
    kept = []
    for tier in tiers:
        able, out = _able(tier.targets, wanted)
        left_out += out
        kept.append(Tier(tier.name, able))
    resort, out = _able(model_route.last_resort, wanted) if degrade else ((), [])
    left_out += out
    first = next((facts.id for tier in kept for facts in tier.targets), None)
    made = Plan(asked, tuple(kept), resort, tuple(left_out), first, frozenset(tier.name for tier in higher))
    if shape is not None:
        model_route.plans[shape] = made
    return made


_WRITTEN_ORDER = frozenset({"ordered", "health"})
"""Strategies for which the order of a tier's targets is a preference."""
_Shape = tuple[Dialect, str | None, frozenset[Need], frozenset[str], bool, bool]
_NONE: frozenset[str] = frozenset()


def _shape(request: RouteRequest, too_long: frozenset[str], allow_escalation: bool, degrade: bool) -> _Shape | None:
    """Everything that the plan of an ordinary request depends on; None for a request with options of its own."""
    special = request.avoid or request.state_ids or request.target or request.operation != "create"
    if special or request.priced or request.max_cost is not None:
        return None
    return request.dialect, request.tier, request.needs, too_long, allow_escalation, degrade


@dataclass(frozen=True, slots=True)
class _Wanted:
    request: RouteRequest
    needs: frozenset[Need]
    embedding_space: str
    makers: frozenset[str] | None
    too_long: frozenset[str]
    estimate_usd: EstimateUsd
    unpriced: bool


def _makers(request: RouteRequest, model_route: ModelRoute, made_by: MadeBy) -> frozenset[str] | None:
    """The targets that know the things that the request refers to; None when any may be called.

    The caller's own `target` counts first. Other targets of the maker's account know the thing too: they are called
    where the maker is no target of the model. A thing of unknown maker is taken to belong to the only account there is,
    or to the only one that speaks the dialect.
    """
    if request.target is not None:
        return frozenset((request.target,))
    if not request.state_ids:
        return None
    everyone = [facts for tier in model_route.tiers for facts in tier.targets]
    makers = {maker for thing in request.state_ids if (maker := made_by(thing)) is not None}
    if not makers:
        native = [facts for facts in everyone if request.dialect in facts.dialects]
        alone = next((some for some in (everyone, native) if len({_account(f.target) for f in some}) == 1), ())
        return frozenset(facts.id for facts in alone)
    accounts = {_account(maker) for maker in makers}
    knowing = frozenset(facts.id for facts in everyone if accounts == {_account(facts.target)})
    return knowing if len(knowing) == len(everyone) else knowing & {maker.id for maker in makers} or knowing


def _account(target: Target) -> tuple[str, int]:
    """The account that owns the things which a target's provider keeps."""
    return target.provider, target.credential


def _able(
    targets: tuple[TargetFacts, ...], wanted: _Wanted
) -> tuple[tuple[TargetFacts, ...], list[tuple[str, Refusal]]]:
    out = [(f.id, Refusal(f"filtered:{need}")) for f in targets if (need := _unmet(f, wanted)) is not None]
    if not out:
        return targets, out
    refused = {target for target, _ in out}
    return tuple(f for f in targets if f.id not in refused), out


def _speaks(facts: TargetFacts, request: RouteRequest) -> bool:
    native = request.dialect in facts.dialects
    if request.operation == "compact":
        return native and "compact" in facts.operations
    return native or request.dialect in facts.translated


def _unmet(facts: TargetFacts, wanted: _Wanted) -> str | None:
    """The first need of the request that the target does not meet; None when it can serve."""
    request, needs = wanted.request, wanted.needs
    if not _speaks(facts, request):
        return "wire"
    if request.avoid and (facts.id in request.avoid or facts.target.provider in request.avoid):
        return "avoid"
    if lacking := facts.lacks & needs:
        return next(need for need in NEEDS if need in lacking)
    if not facts.only <= needs:
        return "only"
    if facts.unless & needs:
        return "unless"
    if request.dialect == "embeddings" and facts.embedding_space != wanted.embedding_space:
        return "embedding_space"
    if wanted.makers is not None and facts.id not in wanted.makers:
        return "pinned"
    # Without its tools the prompt is shorter, and the target itself counts what is left.
    if facts.id in wanted.too_long and not (facts.leaves_tools and "tools" in needs):
        return "context"
    if request.max_cost is not None or request.priced:
        cost = wanted.estimate_usd(facts, request)
        if cost is None:
            return None if wanted.unpriced else "unpriced"  # an unknown price is not known to be low enough
        if request.max_cost is not None and cost > request.max_cost:
            return "max_cost"
    return None


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """The target that would serve now. `degraded` is True below the requested tier."""

    target: str
    requested_tier: str
    actual_tier: str
    degraded: bool
    reasons: Mapping[str, str] = field(default_factory=dict)

    @property
    def degraded_mode(self) -> bool:
        """The founding documents' name of `degraded`."""
        return self.degraded
