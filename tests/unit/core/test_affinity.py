"""Conversations and their homes, and load among interchangeable targets (routing.md section 2, [v2])."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest

from smart_model_router.core.capacity import AdaptiveConfig
from smart_model_router.core.flow_config import GateConfig
from smart_model_router.core.gate import Gate
from smart_model_router.core.ratelimit import Cost, RateLimitTracker
from smart_model_router.core.selection import STRATEGIES, Candidate, Load, View
from smart_model_router.core.selection.affinity import REMEMBERED, Homes, of_key, rendezvous
from smart_model_router.core.selection.scoring import peers
from smart_model_router.core.selection.strategies import spread
from smart_model_router.core.target_state import Connectivity, ProviderState
from smart_model_router.domain.outcome import Snapshot, Usage

A, B, C = (Candidate(name, name, position, group="g") for position, name in enumerate("abc"))
ALONE = Candidate("d", "d", 3)
WELL = Snapshot(successes=50, outcomes=50, last_success_at=0.0)
ILL = Snapshot(successes=25, outcomes=50, last_success_at=0.0)


def seen(
    loads: Mapping[str, Load] | None = None,
    known: Mapping[str, Snapshot] | None = None,
    *,
    key: str | None = None,
    home: str | None = None,
) -> View:
    """What is known of the targets, and how busy they are."""
    busy = loads or {}
    return View(known or {}, key=key, home=home, load=lambda target: busy.get(target, Load()))


def ids(order: list[Candidate]) -> str:
    """The order as letters."""
    return "".join(c.id for c in order)


# ------------------------------------------------------------------------------------------------ groups


def test_the_less_loaded_of_two_drawn_goes_first() -> None:
    """Never the most loaded of three, and each of the others as often as it is drawn with somebody busier."""
    loads = {"a": Load(0.9), "b": Load(0.5), "c": Load(0.1)}
    dice = Random(1)
    first = Counter(spread([A, B, C], seen(loads), dice.random())[0].id for _ in range(3000))
    assert first["a"] == 0
    assert first["b"] == pytest.approx(1000, abs=100)
    assert first["c"] == pytest.approx(2000, abs=100)


def test_of_equally_loaded_ones_the_least_recently_chosen_goes_first() -> None:
    """Nobody is the first twice while another has waited for longer."""
    loads = {"a": Load(0.5, 3.0), "b": Load(0.5, 2.0), "c": Load(0.5, -math.inf)}
    firsts = {spread([A, B, C], seen(loads), roll / 100)[0].id for roll in range(100)}
    assert firsts == {"b", "c"}


def test_all_but_the_two_that_were_drawn_go_by_their_load() -> None:
    """None of them is left out."""
    five = [Candidate(name, name, place, group="g") for place, name in enumerate("abcde")]
    loads = {"c": Load(0.1), "d": Load(0.9), "e": Load(0.5)}
    assert ids(spread(five, seen(loads), 0.0)) == "abced"


def test_a_key_decides_the_order_of_a_whole_group() -> None:
    """As it does for a session: a target that is lost moves only the keys that it had."""
    for key in "klmnopqrst":
        assert spread([A, B, C], seen(key=key), 0.3) == of_key(key, None, [A, B, C], lambda _: Load())


def test_a_group_stands_where_its_first_member_does() -> None:
    """Others keep their places, before it and behind it."""
    before, between = Candidate("x", "x", 0), Candidate("y", "y", 2)
    order = spread([before, A, between, B, ALONE], seen({"a": Load(0.5)}), 0.0)
    assert ids(order) == "xbayd"


def test_an_ill_member_keeps_the_place_it_has_by_its_health() -> None:
    """Load is shared among those that are as good as the best of the group."""
    known = {"a": ILL, "b": WELL, "c": WELL}
    assert ids(spread([A, ALONE, B, C], seen({"b": Load(1.0)}, known), 0.0)) == "cbad"
    assert ids(spread([B, ALONE, A, C], seen({"b": Load(1.0)}, known), 0.0)) == "cbda"


def test_targets_of_no_group_are_left_alone() -> None:
    """Whatever their load."""
    others = [Candidate(name, name, place) for place, name in enumerate("pqr")]
    assert spread(others, seen({"p": Load(1.0)}), 0.7) == others
    assert spread([], seen(), 0.0) == []


def test_peers_do_not_lose_by_having_been_asked_less() -> None:
    """A target of few outcomes is one; how long ago its last success was does not count."""
    long_ago = Snapshot(successes=50, outcomes=50, last_success_at=-3000.0)
    few = Snapshot(successes=0, outcomes=9)
    known = {"a": WELL, "b": long_ago, "c": few, "d": ILL}
    assert ids(peers([A, B, C, ALONE], seen(known=known))) == "abc"
    assert ids(peers([A, B], seen())) == "ab"


def test_a_target_that_is_slow_or_has_failed_ten_times_is_no_peer() -> None:
    """Unless it is within a twentieth of the best, to the last bit."""
    known = {"a": WELL, "b": Snapshot(successes=0, outcomes=10)}
    assert ids(peers([A, B], seen(known=known))) == "a"
    for seconds, equals in ((9.0, "b"), (2.5, "ab")):
        slow, fast = (Snapshot(successes=0, outcomes=50, ttft_ema=ema) for ema in (seconds, 0.0))
        assert ids(peers([A, B], View({"a": slow, "b": fast}, stream=True))) == equals


# ---------------------------------------------------------------------------------------- power of two


def test_power_of_two_goes_by_load_then_by_health_then_by_turns() -> None:
    """In flight / slots first; of equally loaded ones the healthier; of equals who was chosen longest ago."""
    order = STRATEGIES["power_of_two"].order
    busy = seen({"a": Load(0.2), "b": Load(0.1)}, {"a": WELL, "b": ILL})
    assert ids(order([A, B], busy, 0.0, 0.0)) == "ba"
    idle = seen({"a": Load(0.1, 9.0), "b": Load(0.1, 1.0)}, {"a": WELL, "b": ILL})
    assert ids(order([A, B], idle, 0.0, 0.0)) == "ab"
    equals = seen({"a": Load(0.1, 9.0), "b": Load(0.1, 1.0)}, {"a": WELL, "b": WELL})
    assert ids(order([A, B], equals, 0.0, 0.0)) == "ba"


def test_power_of_two_takes_the_healthier_although_the_other_answered_last() -> None:
    """How long ago an answer came decides the order by health, and not who is healthy."""
    long_ago = Snapshot(successes=50, outcomes=50, last_success_at=-3000.0)
    just_now = Snapshot(successes=44, outcomes=50, last_success_at=0.0)
    known = {"a": long_ago, "b": just_now}
    assert ids(STRATEGIES["health"].order([A, B], seen(known=known), 0.0, 0.0)) == "ba"
    equally_loaded = seen({"a": Load(0.1, 9.0), "b": Load(0.1, 1.0)}, known)
    assert ids(STRATEGIES["power_of_two"].order([A, B], equally_loaded, 0.0, 0.0)) == "ab"


@pytest.mark.parametrize("home", ["a", "c"])
def test_a_session_is_at_home_among_the_healthy(home: str) -> None:
    """By its hash and its home; the ill ones come last."""
    for session in "klmnopqrst":
        view = View({"a": WELL, "b": ILL, "c": WELL}, session=session, home=home)
        order = [*of_key(session, home, [A, C], view.load), B]
        for strategy in ("power_of_two", "health"):
            assert STRATEGIES[strategy].order([A, B, C], view, 0.0, 0.5) == order
        three = View({"a": WELL, "b": WELL, "c": WELL}, session=session)
        order = of_key(session, None, [A, B, C], view.load)
        assert STRATEGIES["power_of_two"].order([A, B, C], three, 0.0, 0.5) == order


# ------------------------------------------------------------------------------------------------ weighted


def weighted(session: str, *candidates: Candidate) -> str:
    """The first choice of the strategy `weighted`, whatever the dice say."""
    orders = {
        ids(STRATEGIES["weighted"].order(candidates, View({}, session=session), 0.0, roll)) for roll in (0.0, 0.9)
    }
    assert len(orders) == 1
    return orders.pop()[0]


def test_sessions_are_shared_out_by_weight() -> None:
    """Of 3,000 sessions each target has its share; one of weight 0 has none."""
    heavy, light, none = (
        Candidate(n, n, p, weight=w) for p, (n, w) in enumerate({"a": 3.0, "b": 1.0, "c": 0.0}.items())
    )
    firsts = Counter(weighted(f"s{n}", heavy, light, none) for n in range(3000))
    assert firsts["a"] / 3000 == pytest.approx(0.75, abs=0.03)
    assert firsts["c"] == 0
    crowd = [Candidate(str(n), "p", n, weight=1.0 if n else 10.0) for n in range(11)]
    assert sum(weighted(f"s{n}", *crowd) == "0" for n in range(1000)) == pytest.approx(500, abs=50)


def test_only_the_sessions_of_a_target_that_goes_move() -> None:
    """And they all come back with it."""
    for n in range(300):
        with_all, without = weighted(f"s{n}", A, B, C), weighted(f"s{n}", A, B)
        assert with_all in ("c", without)


# ------------------------------------------------------------------------------------------------ homes


def test_a_key_has_two_targets_of_which_the_home_goes_first() -> None:
    """Its two highest hashes; the others follow by their hashes, and a third target is never a home."""
    by_hash = sorted([A, B, C], key=lambda c: rendezvous("k", c.id), reverse=True)
    for home in by_hash[:2]:
        assert of_key("k", home.id, [A, B, C], lambda _: Load())[0] is home
    idle_second = {by_hash[0].id: Load(0.5)}
    for unknown in (None, by_hash[2].id):
        assert of_key("k", unknown, [A, B, C], lambda target: idle_second.get(target, Load()))[0] is by_hash[1]
    assert of_key("k", None, [A, B, C], lambda _: Load())[2] is by_hash[2]
    assert ids(spread([A, B, C], seen(key="k", home=by_hash[1].id), 0.3))[0] == by_hash[1].id


def test_a_home_is_where_the_key_was_served_last() -> None:
    """It counts as in use for a minute."""
    homes = Homes()
    assert (homes.of("k"), homes.in_use("a", 0.0), homes.worth("k")) == (None, 0, 0.0)
    homes.served("k", "a", 0.0, None)
    homes.served("l", "a", 10.0, None)
    assert (homes.of("k"), homes.in_use("a", 59.0)) == ("a", 2)
    homes.served("k", "b", 59.5, None)
    assert (homes.of("k"), homes.in_use("a", 59.5), homes.in_use("b", 59.5)) == ("b", 1, 1)
    assert homes.in_use("a", 70.0) == 0
    assert homes.of("l") == "a"
    homes.served("l", "b", 80.0, None)
    assert homes.in_use("b", 80.0) == 2
    assert homes.in_use("b", 120.0) == 1


def test_the_least_recently_used_key_is_forgotten() -> None:
    """What is remembered is bounded."""
    homes = Homes()
    for n in range(REMEMBERED + 5):
        homes.served(f"k{n}", "a", float(n), None)
    assert len(homes) == REMEMBERED
    assert (homes.of("k4"), homes.of("k5")) == (None, "a")


def test_a_wait_is_worth_what_the_cache_saves() -> None:
    """Cached tokens x the seconds that a token takes which is not cached: a moving average of long prompts."""
    homes = Homes()
    homes.served("k", "a", 0.0, Usage(10_000, 50, 8_000))
    assert homes.worth("k") == 0.0
    homes.prefilled("a", 0.4, Usage(10_000, 50, 9_600))
    assert homes.worth("k") == 0.0
    homes.prefilled("a", 1.0, Usage(10_000, 50, 8_000))
    assert homes.worth("k") == pytest.approx(8_000 * 0.0005)
    homes.prefilled("a", 2.0, Usage(2_000, 50, 0))
    assert homes.worth("k") == pytest.approx(8_000 * 0.0006)
    homes.prefilled("b", 0.256, Usage(512, 50, 0))
    homes.served("l", "b", 0.0, Usage(4_000, 50, 1_000))
    homes.served("m", "b", 0.0, None)
    assert (homes.worth("l"), homes.worth("m")) == pytest.approx((1_000 * 0.0005, 0.0))


# ------------------------------------------------------------------------------------------------ load


def test_the_load_of_a_gate_is_the_larger_part_in_use() -> None:
    """Of its slots, or of its requests and tokens a minute."""
    provider = ProviderState("p", slots=4, remote=True, connectivity=Connectivity(1))
    gate = Gate("p/m", provider, limits=RateLimitTracker(rpm=10))
    assert (gate.load(0.0), gate.chosen_at) == (0.0, -math.inf)
    gate.try_admit(Cost(1, 1), 0.0, 0.5)
    assert (gate.load(0.0), gate.chosen_at) == (0.25, 0.0)
    for _ in range(3):
        gate.limits.reserve(Cost(1, 1), 0.0, 9)
    assert gate.load(0.0) == pytest.approx(0.4)
    provider.bulkhead.shrink(0.0)
    assert gate.load(0.0) == 1.0


def test_the_load_of_a_gate_without_a_learned_limit() -> None:
    """Goes by the provider's slots."""
    config = GateConfig(adaptive=AdaptiveConfig(enabled=False))
    provider = ProviderState("p", slots=2, remote=True, connectivity=Connectivity(1), config=config)
    gate = Gate("p/m", provider)
    gate.try_admit(Cost(1, 1), 0.0, 0.5)
    assert gate.load(0.0) == 0.5
