"""A run of research as a client asks for it: the names of run inputs, within what the operator and the key allow."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import datetime
from functools import cache
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from smart_model_router.config import EvaluationConfig, ResearchConfig
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.http_api import ProblemError
from smart_model_router.http_api.api_errors import BAD_REQUEST
from smart_model_router.http_api.http_reply import encoded
from smart_model_router.wires.values import decode_any, is_object
from smart_model_router_research.assembly import research_inputs
from smart_model_router_research.pipeline.run_inputs import CORPUS, AnalystRole, RunInputs
from smart_model_router_scoring.options import ConfigError

_STRICT = ConfigDict(extra="forbid", strict=True)
Number = Annotated[float, Field(allow_inf_nan=False)]
Whole = Annotated[int, Field(ge=-1_000_000_000, le=1_000_000_000)]


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class AskedBudget:
    """The most that a run may use, as far as its client bounds it."""

    seconds: Number | None = None
    searches: Whole | None = None
    fetches: Whole | None = None
    tokens: Whole | None = None
    usd: Number | None = None
    model_calls: Whole | None = None


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class AskedAnalyst:
    """An analyst, as a run has it."""

    name: str
    lens: str = "any"


@dataclass(frozen=True, kw_only=True, config=_STRICT)
class AskedRun:
    """The inputs that a client may give; None is as configured. `corpora` are names of those of the configuration.

    `model` is a public name, "" for research without one.
    """

    topic: str
    goal: str | None = None
    domain: str | None = None
    corpora: list[str] | None = None
    as_of: str | None = None
    max_rounds: Whole | None = None
    min_ci: Number | None = None
    min_recent_sources: Whole | None = None
    recency_window_days: Whole | None = None
    recency_mode: str | None = None
    floor_thresholds: dict[str, Number] | None = None
    tier_thresholds: list[Number] | None = None
    tiebreaker_weights: dict[str, Number] | None = None
    stop_policy: str | None = None
    aggregation: str | None = None
    patience: Whole | None = None
    on_contradiction: str | None = None
    analysts: list[AskedAnalyst] | None = None
    deliver: str | None = None
    model: str | None = None
    budget: AskedBudget | None = None


OPERATORS = (
    "allow",
    "block",
    "tiers",
    "recency_windows",
    "backends",
    "seed_urls",
    "egress",
    "model_tiers",
    "criticality",
)
"""The inputs of runs that are the operator's to decide: a client cannot give them."""


def read_run(
    body: bytes,
    *,
    research: ResearchConfig,
    evaluation: EvaluationConfig,
    corpora: Mapping[str, Sequence[str]],
    usd_left: float,
    now: datetime,
) -> RunInputs:
    """Return the inputs of the run that a body asks for. Raises ProblemError, which names the input (400).

    `corpora` are paths by name, `usd_left` what its key has left: a run may cost no more. The limits of the
    configuration are the most that a client may ask for.
    """
    return inputs_of(_asked(body), research, evaluation, corpora, usd_left, now)


def inputs_of(
    asked: AskedRun,
    research: ResearchConfig,
    evaluation: EvaluationConfig,
    corpora: Mapping[str, Sequence[str]],
    usd_left: float,
    now: datetime,
) -> RunInputs:
    """Return the inputs of a run that is asked for; see `read_run`."""
    bounds = {} if asked.budget is None else asdict(asked.budget)
    budget = {key: each for key, each in bounds.items() if each is not None}
    for name, value in budget.items():
        _check_most(f"budget.{name}", value, getattr(research.budget, name), f"research.budget.{name}")
    if asked.max_rounds is not None:
        _check_most("max_rounds", asked.max_rounds, research.rounds, "research.rounds")
    budget["usd"] = min(budget.get("usd", research.budget.usd), usd_left)
    named = ("corpora", "analysts", "budget", "topic")
    given = {each.name: getattr(asked, each.name) for each in fields(asked) if each.name not in named}
    if asked.analysts is not None:
        given["analysts"] = tuple(_analyst(each) for each in asked.analysts)
    if asked.tier_thresholds is not None:
        given["tier_thresholds"] = tuple(asked.tier_thresholds)
    try:
        return research_inputs(
            asked.topic,
            now=now,
            research=research,
            evaluation=evaluation,
            corpora=_paths(asked.corpora, corpora, has_web=any(each.kind != CORPUS for each in research.backends)),
            budget=budget,
            **given,
        )
    except ConfigError as error:
        raise _bad(error.field, error.value, f"{error.allowed.rstrip(',')} is needed") from None


def _asked(body: bytes) -> AskedRun:
    found = decode_any(body)
    if not is_object(found):
        raise ProblemError(BAD_REQUEST, 'a JSON object with the key "topic" is needed')
    names = [each.name for each in fields(AskedRun)]
    for key in found:
        if key in OPERATORS:
            raise ProblemError(BAD_REQUEST, f"{key}: it is the operator's to decide; a run cannot change it")
        if key not in names:
            raise ProblemError(BAD_REQUEST, f"{key[:100]}: the key is unknown; {did_you_mean(key[:100], names)}")
    try:
        return _reader().validate_json(encoded(found))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, first["loc"])) or "the body"
        if first["type"] == "missing":
            raise ProblemError(BAD_REQUEST, f"{place}: missing - a value is needed") from None
        raise ProblemError(BAD_REQUEST, f"{place[:200]}: {first['msg']}") from None


@cache
def _reader() -> TypeAdapter[AskedRun]:
    return TypeAdapter(AskedRun)


def _analyst(asked: AskedAnalyst) -> AnalystRole:
    try:
        return AnalystRole(name=asked.name, lens=asked.lens)
    except ConfigError as error:
        raise _bad(error.field, error.value, f"{error.allowed} is needed") from None


def _paths(names: Sequence[str] | None, corpora: Mapping[str, Sequence[str]], *, has_web: bool) -> list[str]:
    """Return the paths of corpora by their names; of all without names. With the web there may be none."""
    if not corpora and not (has_web and names is None):
        raise ProblemError(
            BAD_REQUEST, "corpora: the configuration has none (research.corpora), so nothing can be read"
        )
    if names is not None and not names:
        raise _bad("corpora", [], f"at least one is needed, of {', '.join(corpora)}")
    for name in names or ():
        if name not in corpora:
            raise _bad("corpora", name, f"a corpus of this gateway is needed: {', '.join(corpora)}")
    return [path for name in (corpora if names is None else dict.fromkeys(names)) for path in corpora[name]]


def _check_most(name: str, value: float, most: float, key: str) -> None:
    if math.isnan(value) or value > most:
        raise _bad(name, value, f"at most {most:g} is needed ({key})")


def _bad(name: str, value: object, wanted: str) -> ProblemError:
    shown = repr(value)
    return ProblemError(BAD_REQUEST, f"{name}: {shown if len(shown) <= 120 else f'{shown[:117]}...'} - {wanted}")
