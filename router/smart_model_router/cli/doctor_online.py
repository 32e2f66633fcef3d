"""`smr doctor --online`: each provider is asked for its list of models, which costs no token."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress

from smart_model_router.cli.doctor_finding import DoctorFinding
from smart_model_router.config import ResearchConfig, RouterConfig
from smart_model_router.config.provider_loading import advice_of, make_provider
from smart_model_router.config.rules import mentions_of
from smart_model_router.domain.errors import ConfigurationError
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.ports import ListedModel, Provider, SupportsModels
from smart_model_router.domain.report import Attempt, failure_facts
from smart_model_router.domain.report_text import ProviderAdvice, attempt_text
from smart_model_router.domain.suggest import did_you_mean
from smart_model_router.flow.clock import WallClock

_NOT_THE_LIST = frozenset({FailureClass.MISCONFIGURED, FailureClass.MODEL_GONE})
"""Failures of a provider that may have no list of models, and answer all the same."""


async def online_findings(config: RouterConfig) -> list[DoctorFinding]:
    """One finding for each provider that can be asked, and one for each configured model that it does not list.

    Asked at once, each for 5 s at most; with several keys the first is used.
    """
    advice = advice_of(config)
    searching = asyncio.ensure_future(backend_findings(config.research))
    found = await asyncio.gather(
        *(
            _asked(name, make_provider(config, name), _models_of(config, name), advice[name])
            for name in config.providers
        )
    )
    return [finding for findings in (*found, await searching) for finding in findings]


async def backend_findings(research: ResearchConfig) -> list[DoctorFinding]:
    """One finding for each search back-end that can be made: it is asked for one hit of one word."""
    if not research.backends:
        return []
    # Imported when asked: requests and most commands do without research.
    from smart_model_router_research.assembly import research_backends  # noqa: PLC0415
    from smart_model_router_research.web.backends import SearchBackend, SearchFailed, SearchQuery  # noqa: PLC0415

    async def ask(backend: SearchBackend) -> DoctorFinding:
        try:
            hits = await backend.search(SearchQuery(text="encyclopedia", k=1))
        except SearchFailed as error:
            return DoctorFinding("problem", f"online {backend.name}", error.reason)
        return DoctorFinding("ok", f"online {backend.name}", "answers" if hits else "answers, with no hit")

    found: list[SearchBackend] = []
    for each in research.backends:
        with suppress(ConfigurationError):  # told without --online
            found += research_backends(research, os.environ, [each.label])
    return list(await asyncio.gather(*map(ask, found)))


def _models_of(config: RouterConfig, provider: str) -> list[str]:
    """The models of a provider that the configuration names, wildcards left out."""
    mentions = (mention for _, mention in mentions_of(config.models) if mention.provider == provider)
    return [name for name in dict.fromkeys(mention.model for mention in mentions) if "*" not in name]


async def _asked(name: str, provider: Provider, wanted: Collection[str], advice: ProviderAdvice) -> list[DoctorFinding]:
    if not isinstance(provider, SupportsModels):
        return []
    try:
        listed = await provider.models()
    finally:
        await provider.aclose()
    return list(of_listing(name, listed, wanted, advice))


def of_listing(
    name: str, listed: Sequence[ListedModel] | Failure, wanted: Collection[str], advice: ProviderAdvice
) -> Iterator[DoctorFinding]:
    """The models that the configuration names, beside those that the provider lists; Azure lists none."""
    topic = f"online {name}"
    if isinstance(listed, Failure):
        text = attempt_text(Attempt(f"{name}/", 0.0, **failure_facts(listed, WallClock.now)), advice)
        if listed.status is not None and listed.failure_class in _NOT_THE_LIST:
            yield DoctorFinding("warning", topic, f"{text}. It may be right and have no list of models")
        else:
            yield DoctorFinding("problem", topic, text)
        return
    known = [model.id for model in listed]
    missing = [model for model in wanted if known and model not in known]
    for model in missing:
        yield DoctorFinding("warning", topic, f"it does not list {model!r}: {did_you_mean(model, known)}")
    if not missing:
        many = f"{len(known)} model{'' if len(known) == 1 else 's'}"
        yield DoctorFinding("ok", topic, f"answers; it lists {many}, and all of yours" if known else "answers")
