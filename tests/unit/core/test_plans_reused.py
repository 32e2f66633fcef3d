"""A model route keeps the plans of ordinary requests, and no request ever gets a plan that is not its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

from smart_model_router.core.selection import Candidate
from smart_model_router.core.tiers import ModelRoute, Plan, TargetFacts, Tier, plan
from smart_model_router.domain.request import RouteRequest, Target, peek

WISHES: tuple[dict[str, Any], ...] = (
    {},
    {"tier": "standard"},
    {"avoid": ("a/big",)},
    {"max_cost": 0.01},
    {"priced": True},
)
BODIES: tuple[dict[str, Any], ...] = (
    {},
    {"tools": [{"type": "function"}]},
    {"metadata": {"note": "x" * 5_000}},
    {"container": "made-at-small"},
)
PRICES = {"a/big": 1.0, "b/small": 0.001}
SWITCHES = tuple({"allow_escalation": up, "degrade": down} for up, down in product((False, True), repeat=2))
CASES = [
    (peek("chat", {"model": "m", "messages": [{"role": "user", "content": "hi"}], **body}, **wish), switches)
    for wish, body, switches in product(WISHES, BODIES, SWITCHES)
]


def facts(target: str, **known: Any) -> TargetFacts:
    """Make the facts of a `provider/model` that speaks Chat."""
    provider, model = target.split("/")
    return TargetFacts(Target(target, provider, model), Candidate(target, provider, 0), frozenset({"chat"}), **known)


def new_model_route() -> ModelRoute:
    """Make two tiers whose targets differ in what they can do and in how much they take, and a small last resort."""
    frontier = Tier("frontier", (facts("a/big"), facts("b/blunt", lacks=frozenset({"tools"}))))
    return ModelRoute("m", (frontier, Tier("standard", (facts("b/small", context_tokens=1_000),))), (facts("l/local"),))


def planned(asked: RouteRequest, model_route: ModelRoute, switches: dict[str, bool]) -> Plan:
    """Plan where one target has a price, and one made the container."""
    return plan(
        asked,
        model_route,
        tokens=lambda _, request: request.text_bytes / 4,
        estimate_usd=lambda target, _: PRICES.get(target.id),
        made_by={"made-at-small": Target("b/small", "b", "small")}.get,
        **switches,
    )


def test_whoever_asked_before_every_request_gets_its_own_plan() -> None:
    """Tier, needs, wishes, size, things kept at a provider and switches all decide, as on an unused route."""
    used = new_model_route()
    asked_before = [planned(request, used, switches) for request, switches in CASES]
    asked_again = [planned(request, used, switches) for request, switches in CASES]
    alone = [planned(request, new_model_route(), switches) for request, switches in CASES]
    assert asked_before == alone
    assert asked_again == alone


def sized(prompt_bytes: int) -> RouteRequest:
    """Ask with a body of so many bytes."""
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "user": ""}
    return peek("chat", {**body, "user": "x" * (prompt_bytes - peek("chat", body).prompt_bytes)})


def test_a_request_that_fits_everywhere_to_the_byte_has_another_plan_than_a_longer_one() -> None:
    """Both are kept, each for those of its like: there are as many as ways to be too long."""
    model_route, switches = new_model_route(), CASES[0][1]
    for size in (4_801, 4_800, 9_999, 1_000):
        assert planned(sized(size), model_route, switches) == planned(sized(size), new_model_route(), switches)
    assert len(model_route.plans) == 2


def test_ordinary_requests_share_a_plan_and_others_are_not_kept() -> None:
    """What is kept is bounded by tiers and needs, not by how many callers have wishes of their own."""
    model_route = new_model_route()
    made = planned(CASES[0][0], model_route, CASES[0][1])
    for number in range(100):
        assert planned(CASES[0][0], model_route, CASES[0][1]) is made
        avoiding = peek("chat", CASES[0][0].body, avoid=(f"a/{number}",))
        planned(avoiding, model_route, CASES[0][1])
    named = replace(CASES[0][0], target="b/small")
    assert planned(named, model_route, CASES[0][1]) == planned(named, new_model_route(), CASES[0][1]) != made
    assert len(model_route.plans) == 1
