"""`smr doctor --online`: what a provider's list of models, or its failure, says about a configuration."""

from __future__ import annotations

import asyncio

import pytest

from smart_model_router.cli.doctor_finding import DoctorFinding
from smart_model_router.cli.doctor_online import backend_findings, of_listing
from smart_model_router.config import ResearchConfig
from smart_model_router.config.research_sections import SearchBackendConfig
from smart_model_router.config.secret import Secret
from smart_model_router.domain.outcome import Failure, FailureClass
from smart_model_router.domain.ports import ListedModel
from smart_model_router.domain.report_text import ProviderAdvice
from tests.web_pages import Reply, SmallWeb

ADVICE = ProviderAdvice(("$ACME_KEY",), "providers.acme.base_url")


def test_a_refused_key_is_named_by_its_variable() -> None:
    """And the provider's own words are kept."""
    refused = Failure(FailureClass.AUTH, "HTTP 401: Incorrect API key", 401, code="invalid_api_key")
    text = 'acme refused the key (401 invalid_api_key): check $ACME_KEY. It said: "Incorrect API key"'
    assert [*of_listing("acme", refused, ["big"], ADVICE)] == [DoctorFinding("problem", "online acme", text)]


def test_a_provider_without_a_list_may_answer_all_the_same() -> None:
    """A 404 there is a warning; a provider that cannot be reached is a problem."""
    absent = Failure(FailureClass.MISCONFIGURED, "HTTP 404: no", 404)
    levels = [finding.level for finding in of_listing("acme", absent, ["big"], ADVICE)]
    gone = Failure(FailureClass.TRANSPORT, reason="the connection was refused")
    assert (levels, [one.level for one in of_listing("acme", gone, ["big"], ADVICE)]) == (["warning"], ["problem"])


def test_a_model_that_is_not_listed_is_a_warning_each() -> None:
    """With the nearest name that is."""
    listed = [ListedModel("gpt-6-luna"), ListedModel("gpt-6.1-sol")]
    found = [*of_listing("acme", listed, ["gpt-6.1-sol", "gpt-6-lunar"], ADVICE)]
    told = "it does not list 'gpt-6-lunar': did you mean 'gpt-6-luna'?"
    assert found == [DoctorFinding("warning", "online acme", told)]
    assert [one.level for one in of_listing("azure", [], ["any"], ADVICE)] == ["ok"]


@pytest.mark.loopback
def test_back_ends_are_asked_for_one_hit() -> None:
    """One that answers is ok, one that refuses its key is a problem; one that cannot be made was told before."""
    web = SmallWeb(
        {
            "engine/search": Reply('{"results": []}', headers={"Content-Type": "application/json"}),
            "engine/locked/search": Reply(status=401),
        }
    )

    async def main() -> list[DoctorFinding]:
        async with web.serving():
            backends = (
                SearchBackendConfig(kind="searxng", url=web.engine),
                SearchBackendConfig(kind="tavily", url=f"{web.engine}/locked", api_key=Secret("tvly-canary")),
                SearchBackendConfig(kind="no.such:Class"),
            )
            return await backend_findings(ResearchConfig(backends=backends))

    assert asyncio.run(main()) == [
        DoctorFinding("ok", "online searxng", "answers, with no hit"),
        DoctorFinding("problem", "online tavily", "it refuses the key (401)"),
    ]
    assert len(web.requests) == 2
