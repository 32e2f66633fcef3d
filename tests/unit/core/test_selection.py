"""Selection against routing.md section 2: health, ties, sessions, strategies, redistribution, shared causes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest

from smart_model_router.core.selection import STRATEGIES, Candidate, View
from smart_model_router.core.selection.affinity import rendezvous
from smart_model_router.core.selection.scoring import health, latency_of, median, ranked, scores
from smart_model_router.core.selection.strategies import draw, elsewhere_first, redistribute
from smart_model_router.domain.outcome import EMPTY_SNAPSHOT, FailureClass, Snapshot

A, B, C = (Candidate(name, name, position) for position, name in enumerate("abc"))
ABC = [A, B, C]
PROVEN = Snapshot(successes=50, outcomes=50, last_success_at=0.0)
SHAKY = Snapshot(successes=30, outcomes=50, last_success_at=0.0)


def ids(candidates: Sequence[Candidate]) -> str:
    """The order as letters."""
    return "".join(c.id for c in candidates)


def view(session: str | None = None, *, stream: bool = False, **snapshots: Snapshot) -> View:
    """Make a view of the snapshots by target."""
    return View(snapshots, stream=stream, session=session)


# ------------------------------------------------------------------------------------------------ health


@pytest.mark.parametrize(
    ("snapshot", "latency", "now", "expected"),
    [
        (EMPTY_SNAPSHOT, None, 0.0, 0.6 * 0.8 + 0.2 * 0.5),
        (PROVEN, 0.0, 0.0, 0.6 * 54 / 55 + 0.2 + 0.2),
        (PROVEN, 5.0, 1800.0, 0.6 * 54 / 55 + 0.1 + 0.1),
        (PROVEN, 10.0, 3600.0, 0.6 * 54 / 55),
        (PROVEN, 1e9, 1e9, 0.6 * 54 / 55),
        (PROVEN, 0.0, -5.0, 0.6 * 54 / 55 + 0.2 + 0.2),
        (Snapshot(successes=50, outcomes=50, last_success_at=900.0), 0.0, 2700.0, 0.6 * 54 / 55 + 0.2 + 0.1),
        (Snapshot(successes=0, outcomes=50), 0.0, 0.0, 0.6 * 4 / 55 + 0.2),
    ],
)
def test_health_is_rate_speed_and_recency(
    snapshot: Snapshot, latency: float | None, now: float, expected: float
) -> None:
    """0.6 x success rate + 0.2 x (1 - latency / 10) + 0.2 x (1 - since success / 3600), none below 0."""
    assert health(snapshot, latency, now) == pytest.approx(expected)


def test_speed_is_judged_by_the_kind_asked_for() -> None:
    """Streams by the time to first content, whole answers by seconds per 100 tokens; a true 0 is a figure."""
    snapshot = Snapshot(ttft_ema=1.0, seconds_per_100_tokens=2.0, latency_ema=9.0)
    assert latency_of(snapshot, stream=True) == 1.0
    assert latency_of(snapshot, stream=False) == 2.0
    assert latency_of(EMPTY_SNAPSHOT, stream=True) is None


def test_an_unknown_latency_counts_as_the_median_of_the_tier() -> None:
    """Two known ones at 0 and 4 s: the third is taken for 2 s; a known 0 is not unknown."""
    fast, slow = Snapshot(ttft_ema=0.0), Snapshot(ttft_ema=4.0)
    score = scores(ABC, view(a=fast, b=slow, stream=True), 0.0)
    assert score["a"] - score["c"] == pytest.approx(0.2 * 0.2)
    assert score["c"] - score["b"] == pytest.approx(0.2 * 0.2)


@pytest.mark.parametrize(("values", "middle"), [([3.0], 3.0), ([9.0, 1.0, 2.0], 2.0), ([4.0, 1.0, 9.0, 2.0], 3.0)])
def test_the_median_is_the_middle(values: list[float], middle: float) -> None:
    """Of an even number the mean of the two in the middle, in whatever order they come."""
    assert median(values) == middle


@pytest.mark.parametrize(("roll", "order"), [(0.0, "abc"), (0.4, "bac"), (0.5, "bca"), (0.9, "cba")])
def test_a_roll_falls_into_one_candidates_share(roll: float, order: str) -> None:
    """Thirds of equal weight, one after the other; what is left of the roll draws the next."""
    assert ids(draw(ABC, [1.0, 1.0, 1.0], roll)) == order


def test_what_is_left_of_a_roll_is_measured_by_the_share_it_fell_into() -> None:
    """0.4 lies at four fifths of a half: the next draw falls into the second of two quarters."""
    assert ids(draw(ABC, [0.5, 0.25, 0.25], 0.4)) == "acb"


def test_every_candidate_needs_a_weight() -> None:
    """A missing one is a mistake, and nobody is left out for it."""
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        draw(ABC, [1.0, 1.0], 0.5)


def test_what_is_free_is_the_cheapest_and_what_takes_no_time_the_fastest() -> None:
    """A true 0 is a figure, and less than a half."""
    dear, free = Candidate("dear", "p", 0, price=0.5), Candidate("free", "p", 1, price=0.0)
    assert STRATEGIES["cheapest"].order([dear, free], view(), 0.0, 0.0) == [free, dear]
    known = view(a=Snapshot(ttft_p95=0.5), b=Snapshot(ttft_p95=0.0))
    assert ids(STRATEGIES["fastest"].order([A, B], known, 0.0, 0.0)) == "ba"


def test_an_untried_target_does_not_outrank_a_proven_one() -> None:
    """Configured first or not."""
    assert ids(ranked(ABC, view(b=PROVEN), 0.0))[0] == "b"


def test_near_equals_keep_the_configured_order() -> None:
    """Within 0.05 of the best is a tie, however the list comes."""
    better = Snapshot(successes=50, outcomes=50, last_success_at=0.0, ttft_ema=1.0)
    tied = Snapshot(successes=50, outcomes=50, last_success_at=0.0, ttft_ema=3.4)
    worse = Snapshot(successes=50, outcomes=50, last_success_at=0.0, ttft_ema=3.6)
    assert ids(ranked([C, B, A], view(a=tied, b=better, c=tied, stream=True), 0.0)) == "abc"
    assert ids(ranked([C, B, A], view(a=worse, b=better, c=tied, stream=True), 0.0)) == "bca"


def test_a_twentieth_behind_the_best_is_still_a_tie() -> None:
    """To the last bit: two and a half seconds slower, and equal in all else."""
    slow, fast = (Snapshot(successes=0, outcomes=50, ttft_ema=seconds) for seconds in (2.5, 0.0))
    seen = view(a=slow, b=fast, stream=True)
    score = scores([A, B], seen, 0.0)
    assert score["a"] == score["b"] - 0.05
    assert ids(ranked([A, B], seen, 0.0)) == "ab"


def test_outside_the_tie_the_healthier_is_first() -> None:
    """By score, equals among them by position."""
    bad = Snapshot(successes=10, outcomes=50, last_success_at=0.0)
    order = [C, B, A, Candidate("d", "d", 3)]
    assert ids(ranked(order, view(a=bad, b=SHAKY, c=bad, d=PROVEN), 0.0)) == "dbac"


@pytest.mark.parametrize(
    ("recovering", "order"),
    [
        (Snapshot(successes=1, outcomes=9, last_success_at=0.0), "abc"),
        (Snapshot(successes=1, outcomes=10, last_success_at=0.0), "bca"),
        (Snapshot(successes=0, outcomes=9), "bca"),
    ],
)
def test_a_recovered_target_keeps_its_place_until_ten_outcomes(recovering: Snapshot, order: str) -> None:
    """It ever succeeded and has fewer than ten outcomes: the configuration decides, not a handful of samples."""
    assert ids(ranked(ABC, view(a=recovering, b=PROVEN, c=PROVEN), 0.0)) == order


def test_a_session_stays_with_one_target_of_the_tie() -> None:
    """The same session the same order, different sessions different targets, nobody outside the tie."""
    firsts = Counter(ranked(ABC, view(f"s{n}", a=PROVEN, b=PROVEN, c=SHAKY), 0.0)[0].id for n in range(400))
    assert set(firsts) == {"a", "b"}
    assert min(firsts.values()) > 140
    one = view("s1", a=PROVEN, b=PROVEN, c=PROVEN)
    assert ranked(ABC, one, 0.0)[0] == max(ABC, key=lambda c: rendezvous("s1", c.id))
    assert ranked(ABC, one, 0.0) == ranked([C, A, B], one, 0.0)


def test_a_session_moves_only_when_its_target_leaves() -> None:
    """Without C only those who were with C are elsewhere."""
    proven = view(a=PROVEN, b=PROVEN, c=PROVEN).snapshots
    for n in range(100):
        with_c = ranked(ABC, View(proven, session=f"s{n}"), 0.0)
        without = ranked([A, B], View(proven, session=f"s{n}"), 0.0)
        assert ids(without) == ids(with_c).replace("c", "")


def test_a_rendezvous_weight_is_stable_over_processes() -> None:
    """No seeded hash: every process sends a session to the same target; odd names do not crash it."""
    assert rendezvous("s", "a").hex() == "697113b519b1e4a8"
    assert rendezvous("s", "a") != rendezvous("s", "b") != rendezvous("t", "b")
    assert len(rendezvous("\ud83d", "a")) == 8


# ------------------------------------------------------------------------------------------------ strategies


def test_the_table_has_the_strategies_of_the_specification() -> None:
    """Six names; those that spread load draw the rest anew when their first choice refuses."""
    assert set(STRATEGIES) == {"health", "ordered", "cheapest", "fastest", "power_of_two", "weighted"}
    assert {name for name, s in STRATEGIES.items() if s.redistributes} == {"health", "weighted", "power_of_two"}


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("roll", [0.0, 0.3, 0.999999])
def test_every_strategy_orders_all_candidates(name: str, roll: float) -> None:
    """None is lost and none comes twice, whatever is known of them."""
    order = STRATEGIES[name].order(ABC, view(a=PROVEN, b=SHAKY), 0.0, roll)
    assert sorted(ids(order)) == ["a", "b", "c"]


def test_health_is_the_ranking() -> None:
    """The default strategy."""
    seen = view(a=SHAKY, b=PROVEN)
    assert STRATEGIES["health"].order(ABC, seen, 0.0, 0.5) == ranked(ABC, seen, 0.0)


def test_ordered_is_as_written() -> None:
    """Whatever is known."""
    assert ids(STRATEGIES["ordered"].order([C, A, B], view(c=PROVEN), 0.0, 0.5)) == "abc"


def test_cheapest_puts_an_unknown_price_last() -> None:
    """Unknown is unknown, never 0; a true 0 is the cheapest; equals by position."""
    prices = {"a": None, "b": 2.0, "c": 0.0, "d": 2.0, "e": None}
    candidates = [Candidate(name, name, n, price=price) for n, (name, price) in enumerate(prices.items())]
    assert ids(STRATEGIES["cheapest"].order(candidates[::-1], view(), 0.0, 0.5)) == "cbdae"


def test_fastest_goes_by_the_95th_percentile() -> None:
    """Unknown ones after the known, by position."""
    seen = view(b=Snapshot(ttft_p95=2.0), c=Snapshot(ttft_p95=0.0), d=Snapshot(ttft_ema=0.1))
    order = STRATEGIES["fastest"].order([Candidate("d", "d", 3), C, B, A], seen, 0.0, 0.5)
    assert ids(order) == "cbad"


def test_power_of_two_prefers_the_healthier_of_two() -> None:
    """The best wins every pair it is in: two of three; the worst none; the rest follows by health."""
    seen = view(a=Snapshot(outcomes=50), b=SHAKY, c=PROVEN)
    orders = [ids(STRATEGIES["power_of_two"].order(ABC, seen, 0.0, n / 300)) for n in range(300)]
    firsts = Counter(order[0] for order in orders)
    assert firsts["c"] == pytest.approx(200, abs=3)
    assert firsts["b"] == pytest.approx(100, abs=3)
    assert set(orders) == {"cba", "bca"}


def test_power_of_two_of_one_is_that_one() -> None:
    """A lone candidate needs no draw."""
    assert STRATEGIES["power_of_two"].order([A], view(), 0.0, 0.999) == [A]


def test_weighted_draws_by_the_configured_share() -> None:
    """Three to one; weight 0 only last."""
    heavy, light, none = Candidate("a", "a", 0, weight=3.0), Candidate("b", "b", 1), Candidate("c", "c", 2, weight=0.0)
    orders = [ids(STRATEGIES["weighted"].order([none, light, heavy], view(), 0.0, n / 400)) for n in range(400)]
    assert Counter(orders) == {"abc": 300, "bac": 100}


# ------------------------------------------------------------------------------------------------ drawing


def test_a_draw_takes_each_with_its_chance() -> None:
    """One roll is enough for all places: every order of three equals is equally likely."""
    orders = Counter(ids(draw(ABC, [1.0, 1.0, 1.0], (n + 0.5) / 600)) for n in range(600))
    assert set(orders.values()) == {100}
    assert len(orders) == 6


def test_the_first_place_goes_by_weight() -> None:
    """1 : 2 : 5."""
    firsts = Counter(draw(ABC, [1.0, 2.0, 5.0], (n + 0.5) / 800)[0].id for n in range(800))
    assert firsts == {"a": 100, "b": 200, "c": 500}


def test_weight_nothing_comes_last_in_the_configured_order() -> None:
    """Also when all have none; and no roll loses anybody."""
    assert ids(draw([C, B, A], [0.0, 1.0, 0.0], 0.999)) == "bac"
    assert ids(draw([C, B, A], [0.0, 0.0, 0.0], 0.5)) == "abc"
    assert draw([], [], 0.5) == []
    assert len(draw(ABC, [0.1, 0.2, 0.3], 1 - 2**-53)) == 3


def test_the_rest_is_drawn_by_health_and_free_capacity() -> None:
    """Health 1 and half free against health 0.5 and all free: evenly; nothing free: last."""
    firsts = Counter(
        redistribute(ABC, {"a": 1.0, "b": 0.5, "c": 1.0}, {"a": 0.5, "b": 1.0, "c": 0.0}, (n + 0.5) / 100)[0].id
        for n in range(100)
    )
    assert firsts == {"a": 50, "b": 50}


def test_targets_of_one_provider_share_its_free_capacity() -> None:
    """Two names of one provider draw together what one name of another does."""
    one, two, other = Candidate("a", "p", 0), Candidate("b", "p", 1), Candidate("c", "q", 2)
    equal = {"a": 1.0, "b": 1.0, "c": 1.0}
    firsts = Counter(redistribute([one, two, other], equal, equal, (n + 0.5) / 400)[0].id for n in range(400))
    assert firsts == {"a": 100, "b": 100, "c": 200}


def test_configured_weights_count_in_the_redistribution() -> None:
    """Three to one, all else equal."""
    heavy, light = Candidate("a", "p", 0, weight=3.0), Candidate("b", "q", 1)
    equal = {"a": 1.0, "b": 1.0}
    firsts = Counter(redistribute([heavy, light], equal, equal, (n + 0.5) / 400)[0].id for n in range(400))
    assert firsts == {"a": 300, "b": 100}


# ------------------------------------------------------------------------------------------------ shared causes

EAST, WEST = (
    Candidate("failed", "p", 0, domain="east"),
    Candidate("w", "q", 2, domain="west"),
)
SIBLING = Candidate("s", "r", 1, domain="east")
OTHER_KEY = Candidate("k", "p", 3, domain="north")


@pytest.mark.parametrize(
    ("cause", "elsewhere"),
    [
        (FailureClass.SERVER_ERROR, True),
        (FailureClass.OVERLOADED, True),
        (FailureClass.TRANSPORT, True),
        (FailureClass.TIMEOUT, True),
        (FailureClass.RATE_LIMITED, False),
        (FailureClass.AUTH, False),
        (FailureClass.TRUNCATED, False),
    ],
)
def test_a_cause_that_neighbours_share_goes_elsewhere_first(cause: FailureClass, elsewhere: bool) -> None:
    """Another failure domain comes first when it is nearly as healthy; other causes change nothing."""
    order = elsewhere_first([SIBLING, WEST], EAST, cause, {"s": 0.9, "w": 0.85})
    assert ids(order) == ("ws" if elsewhere else "sw")


@pytest.mark.parametrize(("west", "order"), [(0.8, "ws"), (0.79, "sw")])
def test_elsewhere_must_be_nearly_as_healthy(west: float, order: str) -> None:
    """Within 0.1 of the best, not below."""
    assert ids(elsewhere_first([SIBLING, WEST], EAST, FailureClass.TIMEOUT, {"s": 0.9, "w": west})) == order


@pytest.mark.parametrize(
    ("cause", "order"),
    [(FailureClass.OVERLOADED, "wk"), (FailureClass.TRANSPORT, "wk"), (FailureClass.TIMEOUT, "kw")],
)
def test_overload_and_transport_try_other_keys_of_the_provider_last(cause: FailureClass, order: str) -> None:
    """529 is capacity across all callers: another key gains nothing."""
    assert ids(elsewhere_first([OTHER_KEY, WEST], EAST, cause, {"k": 0.9, "w": 0.5})) == order


def test_nobody_left_is_nobody_left() -> None:
    """An empty list stays one, and the list given is not changed."""
    assert elsewhere_first([], EAST, FailureClass.TIMEOUT, {}) == []
    given = [SIBLING, WEST]
    elsewhere_first(given, EAST, FailureClass.TIMEOUT, {"s": 0.9, "w": 0.9})
    assert given == [SIBLING, WEST]


def test_after_eight_draws_the_rest_keeps_the_configured_order() -> None:
    """What is left of the roll is no chance any more."""
    twelve = [Candidate(str(n), "p", n) for n in range(12)]
    order = [c.position for c in draw(twelve[::-1], [1.0] * 12, 0.0)]
    assert order == [11, 10, 9, 8, 7, 6, 5, 4, 0, 1, 2, 3]
