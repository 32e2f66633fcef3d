"""The plan: which tiers in which order, who is left out and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from smart_model_router.core.selection import Candidate
from smart_model_router.core.tiers import ModelRoute, ModelSelection, Plan, TargetFacts, Tier, plan
from smart_model_router.domain.errors import InvalidRequest
from smart_model_router.domain.outcome import Refusal
from smart_model_router.domain.request import RouteRequest, Target, peek

CHAT = frozenset({"chat", "messages"})


def facts(target: str, **more: Any) -> TargetFacts:
    """Make the facts of a `provider/model[#credential]` that speaks Chat and Messages, but for what is given."""
    name, _, credential = target.partition("#")
    provider, model = name.split("/")
    known: dict[str, Any] = {"dialects": CHAT, **more}
    return TargetFacts(Target(target, provider, model, int(credential or 0)), Candidate(target, provider, 0), **known)


def request(
    tier: str | None = None, avoid: tuple[str, ...] = (), max_cost: float | None = None, **body: Any
) -> RouteRequest:
    """Make a chat request with more in its body."""
    message = {"role": "user", "content": "hi"}
    return peek("chat", {"model": "m", "messages": [message], **body}, tier=tier, avoid=avoid, max_cost=max_cost)


def planned(
    asked: RouteRequest,
    model_route: ModelRoute,
    prices: Callable[[TargetFacts, RouteRequest], float | None] = lambda f, r: None,
    made_by: Callable[[str], str | None] = lambda thing: None,
    **options: bool,
) -> Plan:
    """Plan on a route that keeps no plan yet, with nobody's price and nobody's things known but for what is given."""

    def maker(thing: str) -> Target | None:
        found = made_by(thing)
        return None if found is None else facts(found).target

    return plan(asked, replace(model_route), tokens=in_fours, estimate_usd=prices, made_by=maker, **options)


def in_fours(_: TargetFacts, asked: RouteRequest) -> float:
    """Weigh a prompt: a token for four bytes of text."""
    return asked.text_bytes / 4


def one_tier(*targets: TargetFacts, last_resort: tuple[TargetFacts, ...] = ()) -> ModelRoute:
    """Make a route of one tier."""
    return ModelRoute("m", (Tier("frontier", targets),), last_resort)


BIG, SMALL, TINY, LOCAL = facts("a/big"), facts("a/small"), facts("b/tiny"), facts("l/local")
LADDER = ModelRoute("m", (Tier("frontier", (BIG,)), Tier("standard", (SMALL,)), Tier("economy", (TINY,))), (LOCAL,))


def names(made: Plan) -> list[str]:
    """The tiers in the order they are tried."""
    return [tier.name for tier in made.tiers]


def test_without_a_tier_the_first_is_asked_and_the_others_follow() -> None:
    """The written order is the ladder; the first target that can is the native one."""
    made = planned(request(), LADDER)
    assert (made.asked, names(made)) == ("frontier", ["frontier", "standard", "economy"])
    assert (made.first, made.last_resort, made.left_out) == ("a/big", (LOCAL,), ())
    assert made.escalations == frozenset()
    assert not made.empty


def test_a_named_tier_begins_there_and_goes_down_only() -> None:
    """Nobody is given a better model unasked."""
    made = planned(request("standard"), LADDER)
    assert (made.asked, names(made), made.first) == ("standard", ["standard", "economy"], "a/small")


def test_escalation_goes_up_last_and_nearest_first() -> None:
    """Where allowed, better tiers come after the lower ones, and are marked."""
    made = planned(request("economy"), LADDER, allow_escalation=True)
    assert names(made) == ["economy", "standard", "frontier"]
    assert made.escalations == {"standard", "frontier"}


def test_an_unknown_tier_is_refused_by_name() -> None:
    """The tiers there are, are told."""
    with pytest.raises(InvalidRequest, match="tier: 'best' is none of frontier, standard, economy"):
        planned(request("best"), LADDER)


def test_without_degradation_there_is_the_asked_tier_and_nothing_else() -> None:
    """The founding measure switched off: no lower tier, no last resort."""
    made = planned(request("standard"), LADDER, degrade=False)
    assert (names(made), made.last_resort) == (["standard"], ())


IMAGE = [{"role": "user", "content": [{"type": "image_url"}]}]


@pytest.mark.parametrize(
    ("target", "body", "reason"),
    [
        (facts("a/big", dialects=frozenset({"messages"})), {}, "wire"),
        (facts("a/big", lacks=frozenset({"tools"})), {"tools": [{}]}, "tools"),
        (facts("a/big", lacks=frozenset({"images"})), {"messages": IMAGE}, "images"),
        (facts("a/big", lacks=frozenset({"schema"})), {"response_format": {"type": "json_schema"}}, "schema"),
        (facts("a/big", only=frozenset({"images"})), {}, "only"),
        (facts("a/big", unless=frozenset({"tools"})), {"tools": [{}]}, "unless"),
        (facts("a/big", context_tokens=10), {"user": "x" * 100}, "context"),
    ],
    ids=["wire", "tools", "images", "schema", "only", "unless", "context"],
)
def test_a_target_that_cannot_is_left_out_with_the_reason(
    target: TargetFacts, body: dict[str, Any], reason: str
) -> None:
    """The next of its tier is the first then; a last resort is judged by the same needs."""
    made = planned(request(**body), one_tier(target, SMALL, last_resort=(target,)))
    assert made.tiers == (Tier("frontier", (SMALL,)),)
    assert made.first == "a/small"
    assert made.last_resort == ()
    assert made.left_out == (("a/big", Refusal(f"filtered:{reason}")),) * 2


@pytest.mark.parametrize(
    ("target", "body"),
    [
        (facts("a/big", lacks=frozenset({"tools", "images", "schema"})), {}),
        (facts("a/big", only=frozenset({"images"})), {"messages": IMAGE}),
        (facts("a/big", unless=frozenset({"tools"})), {"messages": IMAGE}),
    ],
    ids=["lacks", "only", "unless"],
)
def test_a_target_that_can_is_kept(target: TargetFacts, body: dict[str, Any]) -> None:
    """What it lacks and nobody needs is no reason."""
    assert planned(request(**body), one_tier(target)).tiers[0].targets == (target,)


def test_only_a_text_of_more_bytes_than_tokens_fit_is_weighed() -> None:
    """And by each target in its own way: a token is a byte at least."""
    weighed: list[str] = []

    def weigh(target: TargetFacts, _: RouteRequest) -> float:
        weighed.append(target.id)
        return 1_201 if target.id == "a/big" else 1_200

    model_route = one_tier(*(facts(name, context_tokens=1_000) for name in ("a/big", "a/small")))
    fitting = request(user="x" * (1_200 - request(user="").text_bytes))
    assert (model_route.too_long_for(fitting, weigh), weighed) == (frozenset(), [])
    longer = request(user="x" * (1_201 - request(user="").text_bytes))
    assert (model_route.too_long_for(longer, weigh), weighed) == (frozenset(("a/big",)), ["a/big", "a/small"])


@pytest.mark.parametrize(("more", "fits"), [("", True), ("x", False)])
def test_the_context_is_measured_in_fours_of_bytes(more: str, fits: bool) -> None:
    """A text estimated at a fifth more than the context is sent, as estimates err; a byte more is not."""
    padding = "x" * (480 - request(user="").prompt_bytes)
    made = planned(request(user=padding + more), one_tier(facts("a/big", context_tokens=100)))
    assert made.empty is not fits


def test_what_media_cost_is_no_reason_to_be_left_out() -> None:
    """A guess: the provider knows. So it is with the text beside them."""
    asked = request(messages=IMAGE, user="x" * 10_000)
    assert planned(asked, one_tier(facts("a/big", context_tokens=10))).first == "a/big"
    assert planned(request(user="x" * 10_000), one_tier(facts("a/big", context_tokens=10))).empty


@pytest.mark.parametrize("avoid", ["a/big", "a"])
def test_an_avoided_target_or_provider_is_left_out(avoid: str) -> None:
    """By its id or its provider's name."""
    made = planned(request(avoid=(avoid,)), one_tier(BIG, TINY))
    assert made.left_out == (("a/big", Refusal("filtered:avoid")),)
    assert made.first == "b/tiny"


@pytest.mark.parametrize(
    ("cost", "kept"), [(0.01, True), (0.0100001, False), (None, False)], ids=["equal", "dearer", "unknown"]
)
def test_a_price_above_the_limit_or_unknown_is_left_out(cost: float | None, kept: bool) -> None:
    """A price nobody knows is not known to be low enough; unless its owner allows it."""
    asked = request(max_cost=0.01)
    made = planned(asked, one_tier(BIG), prices=lambda f, r: cost if f is BIG and r is asked else 0.0)
    assert (made.first == "a/big") is kept
    reason = "unpriced" if cost is None else "max_cost"
    assert made.left_out == (() if kept else (("a/big", Refusal(f"filtered:{reason}")),))


@pytest.mark.parametrize(("unpriced", "kept"), [(False, []), (True, ["a/big"])])
def test_a_budget_is_spent_where_the_price_is_known(unpriced: bool, kept: list[str]) -> None:
    """However high it is; where it is unknown only if the owner allows it. Without a budget it makes no difference."""
    asked = peek("chat", {"model": "m", "messages": [{"role": "user", "content": "hi"}]}, priced=True)
    model_route = one_tier(BIG, TINY)
    made = planned(asked, model_route, prices=lambda f, r: None if f is BIG else 1e6, unpriced=unpriced)
    assert [f.id for f in made.tiers[0].targets] == [*kept, "b/tiny"]
    assert planned(request(), model_route).tiers[0].targets == (BIG, TINY)


def test_embeddings_stay_in_the_space_of_the_asked_tier() -> None:
    """Vectors of another model are no answer."""
    both = frozenset({"embeddings"})
    here, there = facts("a/e", dialects=both, embedding_space="x"), facts("b/e", dialects=both, embedding_space="y")
    made = planned(peek("embeddings", {"model": "m", "input": "hi"}), one_tier(here, there))
    assert made.tiers[0].targets == (here,)
    assert made.left_out == (("b/e", Refusal("filtered:embedding_space")),)


def test_the_space_says_nothing_about_chat() -> None:
    """Only embeddings are compared by it."""
    assert len(planned(request(), one_tier(facts("a/x", embedding_space="x"), BIG)).tiers[0].targets) == 2


def test_a_request_that_refers_to_a_providers_things_goes_to_who_made_them() -> None:
    """The container of b/tiny: everybody else is left out, and so is everybody when nobody knows it."""
    asked = request(container="c1")
    known = planned(asked, LADDER, made_by={"c1": "b/tiny"}.get)
    assert known.first == "b/tiny"
    assert known.left_out[0] == ("a/big", Refusal("filtered:pinned"))
    assert planned(asked, LADDER).empty


def test_things_of_two_makers_can_be_served_by_nobody() -> None:
    """There is no target that knows both; when one made both, it is asked."""
    files = [{"role": "user", "content": [{"type": "file", "file": {"file_id": f}} for f in ("f1", "f2")]}]
    asked = request(messages=files)
    assert planned(asked, LADDER, made_by={"f1": "a/big", "f2": "b/tiny"}.get).empty
    assert planned(asked, LADDER, made_by={"f1": "b/tiny", "f2": "b/tiny"}.get).first == "b/tiny"


def test_what_one_target_made_others_of_its_account_know_where_it_is_none_of_the_models() -> None:
    """The maker itself where it is there; targets of another account never."""
    asked = request(container="c1")
    model_route = one_tier(BIG, SMALL, TINY)
    assert planned(asked, model_route, made_by={"c1": "a/small"}.get).tiers[0].targets == (SMALL,)
    assert planned(asked, model_route, made_by={"c1": "a/elsewhere"}.get).tiers[0].targets == (BIG, SMALL)
    assert planned(asked, model_route, made_by={"c1": "c/elsewhere"}.get).empty
    assert planned(asked, one_tier(BIG, SMALL), made_by={"c1": "b/tiny"}.get).empty


def test_a_single_capable_target_takes_a_thing_of_unknown_making() -> None:
    """One that speaks the dialect: translation has no word for such a thing. Of two such accounts none is taken."""
    asked = request(container="c1")
    foreign = facts("c/foreign", dialects=frozenset({"responses"}), translated=CHAT)
    assert planned(asked, one_tier(foreign, BIG)).tiers[0].targets == (BIG,)
    assert planned(asked, one_tier(foreign, facts("d/foreign", dialects=frozenset({"responses"})))).empty
    assert planned(asked, one_tier(foreign, BIG, TINY)).empty


def test_a_conversation_is_made_shorter_by_targets_that_can_and_speak_responses() -> None:
    """Not by one that would be asked in translation, and no plan of an ordinary request is taken."""
    responses = frozenset({"responses"})
    able = facts("a/big", dialects=responses, operations=frozenset({"compact"}))
    blunt = facts("a/small", dialects=responses)
    foreign = facts("b/tiny", translated=responses, operations=frozenset({"compact"}))
    model_route = one_tier(able, blunt, foreign)
    body = {"model": "m", "input": "hi"}
    assert planned(peek("responses", body), model_route).tiers[0].targets == (able, blunt, foreign)
    made = planned(peek("responses", body, operation="compact"), model_route)
    assert made.tiers[0].targets == (able,)
    assert {refusal for _, refusal in made.left_out} == {Refusal("filtered:wire")}


def test_a_caller_may_name_the_one_target_to_be_asked() -> None:
    """Whoever made the thing, and where the request refers to nothing; no plan of an ordinary request is taken."""
    model_route = one_tier(BIG, SMALL, TINY)
    for asked in (request(container="c1"), request()):
        named = replace(asked, target="b/tiny")
        assert planned(named, model_route, made_by={"c1": "a/big"}.get).tiers[0].targets == (TINY,)
        assert planned(named, model_route).left_out[0] == ("a/big", Refusal("filtered:pinned"))


def test_where_all_targets_are_one_account_nobody_need_be_known() -> None:
    """Whoever made it, every target of the account knows it; another credential is another account."""
    asked = request(container="c1")
    assert planned(asked, one_tier(BIG, SMALL)).tiers[0].targets == (BIG, SMALL)
    assert planned(asked, one_tier(BIG, SMALL), made_by={"c1": "a/big"}.get).tiers[0].targets == (BIG, SMALL)
    assert planned(asked, one_tier(BIG, facts("a/big#1"))).empty


def test_a_plan_is_empty_without_any_target() -> None:
    """A last resort alone is still somebody."""
    asked = request(avoid=("a",))
    assert planned(asked, one_tier(BIG)).empty
    assert not planned(asked, one_tier(BIG, last_resort=(LOCAL,))).empty


def test_degraded_mode_is_the_founding_name_of_degraded() -> None:
    """Both say whether it is below the requested tier."""
    assert ModelSelection("a/big", "frontier", "standard", degraded=True).degraded_mode
    assert not ModelSelection("a/big", "frontier", "frontier", degraded=False).degraded_mode


def test_a_plan_knows_its_targets_by_id() -> None:
    """Those of every tier, and of the last resort."""
    assert dict(planned(request(), LADDER).by_id) == {"a/big": BIG, "a/small": SMALL, "b/tiny": TINY, "l/local": LOCAL}


def test_a_plan_knows_the_tier_of_each_target() -> None:
    """But for those of the last resort, whose turn no request waits for in a tier."""
    assert planned(request(), LADDER).tier_of == {"a/big": "frontier", "a/small": "standard", "b/tiny": "economy"}


def test_a_plan_knows_its_asked_tier_and_the_providers_it_may_ask() -> None:
    """A fleet that is full is recognised by its providers, not by asking all targets."""
    made = planned(request(), LADDER)
    assert made.in_asked_tier == {"a/big"}
    assert made.providers == {"a", "b"}


# Conversations ----------------------------------------------------------------------------------------


def test_among_equals_a_conversation_is_known_by_how_it_begins() -> None:
    """A session always counts; without one a long prompt does, where targets are interchangeable."""
    equal, other = (replace(facts(f"p/{name}"), candidate=Candidate(f"p/{name}", "p", 0, group="g")) for name in "ab")
    long = peek("chat", {"model": "m", "messages": [{"role": "user", "content": "word " * 1000}]})
    with_session = replace(long, session="s")
    assert long.prompt_key is not None
    assert [Tier("t", members).grouped for members in ((equal,), (equal, facts("p/c")), (equal, other))] == [
        False,
        False,
        True,
    ]
    assert Tier("t", (equal,)).conversation(long) is None
    assert Tier("t", (equal, other)).conversation(long) == long.prompt_key
    assert Tier("t", (equal,)).conversation(with_session) == Tier("t", (equal, other)).conversation(with_session) == "s"


def test_a_conversation_has_a_home_in_each_tier_of_each_model() -> None:
    """The same session may use several models."""
    names = {ModelRoute(model, ()).home_name(tier, "s") for model in ("x", "y") for tier in ("t", "u")}
    assert len(names) == 4


@pytest.mark.parametrize(
    ("target", "written", "other"),
    [
        ("a/first", False, False),  # the first choice
        ("b/equal", False, False),  # of its group
        ("c/behind", True, False),  # of its tier
        ("d/alone", True, False),  # as well, of another group
        ("e/lower", True, True),
        ("l/local", True, True),
    ],
)
def test_a_fallback_serves_in_the_place_of_the_first_choice(target: str, written: bool, other: bool) -> None:
    """Only where the written order is a preference a target of the asked tier stands in for another one."""

    def grouped(name: str, group: str) -> TargetFacts:
        made = facts(name)
        return replace(made, candidate=replace(made.candidate, group=group))

    tier = (grouped("a/first", "g"), grouped("b/equal", "g"), facts("c/behind"), grouped("d/alone", "h"))
    model_route = ModelRoute("m", (Tier("frontier", tier), Tier("standard", (facts("e/lower"),))), (LOCAL,))
    made = planned(request(), model_route)
    assert [made.is_fallback(target, strategy) for strategy in ("ordered", "health")] == [written, written]
    assert [made.is_fallback(target, strategy) for strategy in ("weighted", "cheapest")] == [other, other]


def test_equals_without_a_group_are_not_siblings() -> None:
    """Two targets that name no group have none in common."""
    made = planned(request(), one_tier(facts("a/x"), facts("b/x")))
    assert made.is_fallback("b/x", "ordered")


def test_the_window_of_a_target_that_leaves_tools_counts_for_requests_without_them() -> None:
    """With tools, which it does not get, the prompt is shorter than it is here: the target itself counts."""
    resort = facts("l/local", context_tokens=10, leaves_tools=True)
    route = one_tier(facts("a/big"), last_resort=(resort,))
    long = "x" * 100
    assert planned(request(user=long), route).last_resort == ()
    tools = [{"type": "function", "function": {"name": "f"}}]
    assert planned(request(tools=tools, user=long), route).last_resort == (resort,)


@pytest.mark.parametrize(
    ("known", "goes_on"),
    [
        ({}, True),
        ({"prefill": "none"}, False),
        ({"dialects": frozenset({"responses"})}, False),
        ({"prefill": "prefix", "dialects": frozenset({"responses", "chat"})}, True),
    ],
)
def test_a_target_goes_on_with_an_answer_in_two_dialects_unless_it_never_does(
    known: dict[str, Any], goes_on: bool
) -> None:
    """Chat and Messages can ask for it; `prefill: none` says that it does not."""
    assert facts("a/big", **known).continues_answers is goes_on
