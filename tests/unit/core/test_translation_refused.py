"""Targets that speak another dialect: planned when translation reaches them, ruled out when it would lie."""

from __future__ import annotations

import pytest

from smart_model_router.core.fallback import AttemptHistory
from smart_model_router.core.final_error import final_error
from smart_model_router.core.flow_config import RoutingConfig
from smart_model_router.core.selection import Candidate
from smart_model_router.core.tiers import ModelRoute, Plan, TargetFacts, Tier, plan
from smart_model_router.domain.errors import AllTargetsFailed, InvalidRequest, SmartRouterError, TranslationRefused
from smart_model_router.domain.outcome import Failure, FailureClass, Refusal
from smart_model_router.domain.report import Attempt, RouteReport
from smart_model_router.domain.request import Dialect, Target, peek


def facts(provider: str, native: Dialect, *translated: Dialect) -> TargetFacts:
    """A target of a provider that speaks one dialect and can be asked in others."""
    target = Target(f"{provider}/m", provider, "m")
    return TargetFacts(target, Candidate(target.id, provider, 0), frozenset({native}), translated=frozenset(translated))


CHAT, MESSAGES, MUTE = facts("c", "chat"), facts("m", "messages", "chat"), facts("e", "embeddings")
PLAN = Plan("frontier", (Tier("frontier", (MESSAGES,)), Tier("standard", (CHAT,))), (MUTE,), first="m/m")


def test_a_target_that_translation_reaches_is_planned() -> None:
    """Speaking another dialect is no reason to be left out; having no translation is."""
    request = peek("chat", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})
    model_route = ModelRoute("m", (Tier("frontier", (MESSAGES, CHAT, MUTE)),))
    made = plan(request, model_route, tokens=lambda f, r: 0, estimate_usd=lambda f, r: None, made_by=lambda thing: None)
    assert made.tiers[0].targets == (MESSAGES, CHAT)
    assert made.left_out == (("e/m", Refusal("filtered:wire")),)


def test_who_is_ruled_out_is_not_asked() -> None:
    """It counts as tried: nobody waits for it and no time is kept for it."""
    progress = AttemptHistory(RoutingConfig(), PLAN)
    assert (progress.refusal(MESSAGES, 0.0), progress.untried()) == (None, 2)
    assert progress.rule_out("m/m", "tools: x") == Refusal("filtered:translation")
    assert progress.refusal(MESSAGES, 0.0) == Refusal("filtered:translation")
    assert (progress.refusal(CHAT, 0.0), progress.tried("m/m"), progress.untried()) == (None, True, 1)


def ended(*ruled_out: str, failure: Failure | None = None) -> SmartRouterError:
    """How a request ends that could not be sent to these, and failed at `c/m`."""
    progress = AttemptHistory(RoutingConfig(), PLAN)
    report = RouteReport("id", "smart", "frontier")
    for target in ruled_out:
        progress.rule_out(target, f"tools: {target} has none")
    if failure is not None:
        progress.note(CHAT, "standard", failure, 0.0)
        report.attempts.append(Attempt("c/m", 1.0, failure.failure_class))
    return final_error(PLAN, progress, report, late_after=None, retry_after=1.0)


def test_a_request_that_nobody_can_be_sent_is_the_requests_fault() -> None:
    """When it would mean something else everywhere, the exception says why, for each target."""
    error = ended("m/m", "c/m", "e/m")
    assert type(error) is TranslationRefused
    assert "m/m: tools: m/m has none; c/m: tools: c/m has none" in str(error)


@pytest.mark.parametrize("ruled_out", [(), ("m/m",), ("m/m", "e/m")])
def test_one_target_that_could_be_sent_it_decides(ruled_out: tuple[str, ...]) -> None:
    """As long as somebody could serve, it is the fleet that failed."""
    error = ended(*ruled_out, failure=Failure(FailureClass.SERVER_ERROR, "no"))
    assert type(error) is AllTargetsFailed


def test_the_most_native_rejection_is_handed_back() -> None:
    """Of several 400s the one in the caller's own dialect is shown: it is the one that has a body."""
    progress = AttemptHistory(RoutingConfig(), PLAN)
    rejected = Failure(FailureClass.REJECTED_BY_FALLBACK, "translated", 400)
    progress.note(MESSAGES, "frontier", rejected, 0.0)
    progress.note(CHAT, "standard", Failure(FailureClass.REJECTED_BY_FALLBACK, "native", 422, raw=b"body"), 0.0)
    error = final_error(PLAN, progress, RouteReport("id", "smart", "frontier"), late_after=None, retry_after=None)
    assert isinstance(error, InvalidRequest)
    assert (str(error), error.status, error.body) == (
        "c/m did not take the request as it was translated (422): native",
        422,
        b"body",
    )
