"""Evaluation by example: metrics worked out by hand, intervals, tests, reliability, tuning, diagnosis."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime
from typing import Any

import pytest

from smart_model_router_scoring.evaluate import (
    METRICS,
    Delta,
    Dice,
    Finding,
    Interval,
    bootstrap,
    brier_score,
    choose,
    compare,
    diagnose,
    diff,
    evaluate,
    expected_calibration_error,
    false_accept_rate,
    ndcg,
    recall,
    reciprocal_rank,
    sign_flip_test,
    tune,
)
from smart_model_router_scoring.fusion import Fusion, FusionConfig
from smart_model_router_scoring.options import ConfigError, Note, Notes

GRADES = {"a": 3, "b": 2, "c": 1, "z": 0, "n": -1}


def test_ndcg_is_gain_over_the_best_gain() -> None:
    """Found b, nothing, a: (2/log2(2) + 3/log2(4)) / (3/log2(2) + 2/log2(3) + 1/log2(4))."""
    wanted = (2 + 3 / 2) / (3 + 2 / math.log2(3) + 1 / 2)
    assert ndcg(["b", "x", "a"], GRADES) == pytest.approx(wanted, abs=1e-12)
    assert ndcg(["a", "b", "c"], GRADES) == 1.0
    assert ndcg(["b", "b", "x", "a"], GRADES) == pytest.approx(wanted, abs=1e-12)
    assert ndcg(["n", "z", "a"], GRADES) == pytest.approx((3 / 2) / (3 + 2 / math.log2(3) + 1 / 2))


def test_ndcg_looks_at_the_first_ten() -> None:
    """What is at rank 11 counts for nothing, and the best is that of ten."""
    before = [f"x{number}" for number in range(9)]
    assert ndcg([*before, "a"], {"a": 1}) == pytest.approx(1 / math.log2(11))
    assert ndcg([*before, "y", "a"], {"a": 1}) == 0.0
    assert ndcg(["a"], {"a": 1, "b": 1}, at=1) == 1.0
    assert ndcg([], GRADES) == 0.0
    assert ndcg(["a"], {"a": 0}) == 0.0


def test_the_reciprocal_rank_is_that_of_the_first_relevant_id() -> None:
    """Among the first ten; a grade of 0 is not relevant."""
    assert reciprocal_rank(["z", "x", "b", "a"], GRADES) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x", "x", "a"], GRADES) == 0.5
    assert reciprocal_rank([f"x{number}" for number in range(9)] + ["a"], GRADES) == 0.1
    assert reciprocal_rank([f"x{number}" for number in range(10)] + ["a"], GRADES) == 0.0
    assert reciprocal_rank(["x", "a"], GRADES, at=1) == 0.0


def test_recall_is_the_share_that_was_found() -> None:
    """Of the relevant ids, within the first hundred."""
    assert recall(["a", "z", "a", "c"], GRADES) == pytest.approx(2 / 3)
    before = [f"x{number}" for number in range(99)]
    assert recall([*before, "a"], {"a": 1}) == 1.0
    assert recall([*before, "y", "a"], {"a": 1}) == 0.0
    assert recall(["x", "a"], {"a": 1}, at=1) == 0.0
    assert recall(["a"], {}) == 0.0
    assert list(METRICS) == ["ndcg@10", "mrr@10", "recall@100"]


def test_a_run_is_evaluated_by_query_and_in_the_mean() -> None:
    """A judged query that the run lacks counts 0; one without relevant ids is named and left out."""
    qrels = {"q1": {"a": 1}, "q2": {"b": 1}, "q3": {"c": 0}}
    run = {"q1": ["x", "a"], "q3": ["c"], "q4": ["a"]}
    now = datetime(2026, 3, 1, tzinfo=UTC)
    found = evaluate(run, qrels, metadata={"index": "small"}, now=now, seed=3, resamples=50)
    assert found.per_query["mrr@10"] == {"q1": 0.5, "q2": 0.0}
    assert found.metrics["mrr@10"].mean == 0.25
    assert found.metrics["mrr@10"] == bootstrap([0.5, 0.0], seed=3, resamples=50)
    assert found.unjudged == ("q3", "q4")
    assert found.metadata == {"queries": 2, "seed": 3, "resamples": 50, "index": "small"}
    assert found.updated_at == "2026-03-01T00:00:00+00:00"
    assert set(found.metrics) == set(METRICS)


def test_an_interval_is_drawn_with_the_seed_and_as_often_as_told() -> None:
    """For every metric; other seeds and numbers of draws give other intervals."""
    qrels = {f"q{number:02}": {"a": 1} for number in range(12)}
    run = {query: [f"x{place}" for place in range(number % 4)] + ["a"] for number, query in enumerate(qrels)}
    values = [1 / (1 + number % 4) for number in range(12)]
    found = evaluate(run, qrels, seed=3, resamples=50).metrics["mrr@10"]
    assert found == bootstrap(values, seed=3, resamples=50)
    assert found not in [bootstrap(values, resamples=50), bootstrap(values, seed=3)]


def test_nothing_to_evaluate_is_nothing() -> None:
    """No query, no number, no error; nobody said when."""
    found = evaluate({}, {})
    assert found.metrics["ndcg@10"] == Interval(0.0, 0.0, 0.0, 0.95)
    assert (found.unjudged, found.updated_at) == ((), "")
    assert found.metadata == {"queries": 0, "seed": 0, "resamples": 1_000}


def test_the_order_of_queries_changes_no_bit() -> None:
    """Neither that of the run nor that of the judgements."""
    qrels = {f"q{number}": {f"d{number % 3}": 1.0, "d4": 0.5} for number in range(30)}
    run = {f"q{number}": [f"d{place}" for place in range(number % 5)] for number in range(30)}
    turned = evaluate(dict(reversed(run.items())), dict(reversed(qrels.items())), resamples=50)
    assert turned == evaluate(run, qrels, resamples=50)


def test_dice_are_splitmix64() -> None:
    """The published first numbers of seed 1234567; a seed gives the same row again."""
    dice = Dice(1234567)
    assert [dice.roll() for _ in range(5)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]
    assert Dice(1 << 64).roll() == Dice(0).roll()


def test_dice_below_a_count_reach_every_number_alike() -> None:
    """6,000 throws of six: each near a thousand."""
    dice = Dice(1)
    thrown = [dice.below(6) for _ in range(6_000)]
    assert {number: abs(thrown.count(number) - 1_000) < 120 for number in range(6)} == dict.fromkeys(range(6), True)
    assert set(thrown) == set(range(6))


def test_a_shuffle_keeps_every_item_and_reaches_every_order() -> None:
    """Each of the six orders of three about as often; the input stays."""
    items = ["a", "b", "c"]
    orders = ["".join(Dice(seed).shuffled(items)) for seed in range(1_200)]
    assert set(orders) == {"".join(order) for order in itertools.permutations("abc")}
    assert min(orders.count(order) for order in set(orders)) > 140
    assert items == ["a", "b", "c"]


def test_a_bootstrap_interval_holds_the_mean_and_shrinks_with_numbers() -> None:
    """Of coin throws: about 1.96 standard errors to each side."""
    few, many = bootstrap([0.0, 1.0] * 10, seed=1), bootstrap([0.0, 1.0] * 80, seed=1)
    assert (few.mean, many.mean, few.level) == (0.5, 0.5, 0.95)
    for interval, count in ((few, 20), (many, 160)):
        width = 1.96 * 0.5 / math.sqrt(count)
        assert 0.5 - interval.low == pytest.approx(width, rel=0.15)
        assert interval.high - 0.5 == pytest.approx(width, rel=0.15)
    narrow = bootstrap([0.0, 1.0] * 10, seed=1, level=0.5)
    assert few.low < narrow.low < 0.5 < narrow.high < few.high


def test_a_bootstrap_is_decided_by_its_seed() -> None:
    """Equal seeds, equal bits; values that are equal have no width."""
    values = [0.1, 0.7, 0.4, 0.9]
    assert bootstrap(values, seed=5) == bootstrap(values, seed=5)
    assert bootstrap(values, seed=5) != bootstrap(values, seed=6)
    assert bootstrap([0.25] * 4) == Interval(0.25, 0.25, 0.25, 0.95)
    assert bootstrap([], level=0.9) == Interval(0.0, 0.0, 0.0, 0.9)
    assert bootstrap([0.0, 1.0], resamples=1).low == bootstrap([0.0, 1.0], resamples=1).high
    # Of five sorted means a level of one half keeps the second to the fourth: quarters of the way from end to end.
    values = [number**2 / 64 for number in range(9)]
    five = sorted(_means(values, seed=8, resamples=5))
    half = bootstrap(values, seed=8, resamples=5, level=0.5)
    assert (half.low, half.high) == (five[1], five[3])
    roots = [math.sqrt(number) for number in range(9)]
    thousand = sorted(_means(roots, seed=0, resamples=1_000))
    assert len({*thousand[23:27], *thousand[974:978]}) == 8
    assert bootstrap(roots) == Interval(math.fsum(roots) / 9, thousand[24], thousand[975], 0.95)
    whole = bootstrap([0.0, 1.0], level=1.0)
    assert (whole.low, whole.high) == (0.0, 1.0)


def _means(values: list[float], seed: int, resamples: int) -> list[float]:
    """The means of the draws that the seed decides."""
    dice = Dice(seed)
    return [math.fsum(values[dice.below(len(values))] for _ in values) / len(values) for _ in range(resamples)]


@pytest.mark.parametrize("settings", [{"resamples": 0}, {"level": -0.1}, {"level": 1.1}])
def test_a_bootstrap_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    """By name."""
    with pytest.raises(ConfigError, match=rf"^{next(iter(settings))}"):
        bootstrap([1.0], **settings)


@pytest.mark.parametrize(
    ("differences", "p"),
    [([], 1.0), ([0.0, 0.0], 1.0), ([0.3], 1.0), ([1.0] * 5, 2 / 32), ([1.0, 1.0, -1.0], 1.0), ([3.0, 2.0, -1.0], 0.5)],
)
def test_the_sign_flip_test_is_exact_for_few(differences: list[float], p: float) -> None:
    """Counted by hand: of the sign assignments, those whose sum is as far from 0. (3, 2, -1): 4 of 8."""
    assert sign_flip_test(differences) == p


def test_the_sign_flip_test_samples_for_many() -> None:
    """Thirteen equal differences: 2 / 8192, give or take; the observed one counts. Even ones are no difference."""
    p = sign_flip_test([1.0] * 13, seed=2)
    assert 1 / 10_001 <= p < 8 / 10_001
    assert sign_flip_test([1.0, -1.0] * 40, seed=2) == 1.0
    assert sign_flip_test([0.1] * 70 + [-0.1] * 58, resamples=2_000, seed=1) == pytest.approx(0.33, abs=0.05)
    assert sign_flip_test([1.0] * 200, resamples=10) == 1 / 11
    assert sign_flip_test([1.0] * 12, resamples=10) == 2 / 4096
    assert sign_flip_test([1.0] * 13, resamples=1) in {0.5, 1.0}
    with pytest.raises(ConfigError, match=r"^resamples"):
        sign_flip_test([1.0], resamples=0)


def test_the_sign_flip_test_throws_ten_thousand_times_from_seed_0() -> None:
    """Unless it is told otherwise."""
    differences = [number / 10 - 0.45 for number in range(14)]
    p = sign_flip_test(differences)
    assert p == sign_flip_test(differences, seed=0, resamples=10_000)
    assert p not in [sign_flip_test(differences, seed=1), sign_flip_test(differences, resamples=10_001)]


def test_each_of_many_differences_has_a_sign_of_its_own() -> None:
    """Three that matter, in places that one, two and three numbers of chance decide: alike in a quarter of all throws.

    The others are a billionth and sum to 0: with the three alike, half of the throws are as far out as what was seen.
    """
    small = [2e-9, -1e-9, -1e-9] + [1e-9, -1e-9] * 62
    differences = [*small[:64], 1.0, *small[64:], 1.0, 1.0]
    assert [place for place, value in enumerate(differences) if value == 1.0] == [64, 128, 129]
    assert sign_flip_test(differences, seed=3) == pytest.approx(1 / 8, abs=0.02)


def test_a_difference_names_what_came_went_and_moved() -> None:
    """Only queries that changed are there; a repetition is no change."""
    before = {"q1": ["a", "b", "c"], "q2": ["a", "a"], "q3": ["a"]}
    after = {"q1": ["b", "a", "d"], "q2": ["a"], "q4": ["x"]}
    assert diff(before, after) == {
        "q1": Delta(("d",), ("c",), {"a": (1, 2), "b": (2, 1)}),
        "q3": Delta((), ("a",), {}),
        "q4": Delta(("x",), (), {}),
    }
    assert diff(before, before) == {}


def test_two_runs_are_compared_in_pairs() -> None:
    """B wins q1, loses q2, ties q3; unjudged queries are not looked at."""
    qrels = {"q1": {"a": 1}, "q2": {"a": 1}, "q3": {"a": 1}, "q4": {"a": 0}}
    run_a = {"q1": ["x", "a"], "q2": ["a"], "q3": ["a"], "q4": ["a"]}
    run_b = {"q1": ["a"], "q2": ["x", "x2", "a"], "q3": ["a"], "q4": []}
    found = compare(run_a, run_b, qrels, metric="mrr@10", seed=4)
    assert (found.metric, found.wins, found.losses, found.ties) == ("mrr@10", ("q1",), ("q2",), 1)
    assert found.difference.mean == pytest.approx((0.5 - 2 / 3) / 3)
    assert found.difference == bootstrap([0.5, 1 / 3 - 1, 0.0], seed=4)
    assert found.p == sign_flip_test([0.5, 1 / 3 - 1]) == 1.0
    assert compare(run_a, run_b, qrels).metric == "ndcg@10"


def test_a_comparison_is_drawn_with_its_seed() -> None:
    """Interval and p; the seed is 0 unless given."""
    qrels = {f"q{number:02}": {"a": 1} for number in range(20)}
    run_a = {query: [f"x{place}" for place in range(number % 3)] + ["a"] for number, query in enumerate(qrels)}
    run_b = {query: [f"x{place}" for place in range(number % 4)] + ["a"] for number, query in enumerate(qrels)}
    values = [1 / (1 + number % 4) - 1 / (1 + number % 3) for number in range(20)]
    drawn = {
        seed: (found.difference, found.p)
        for seed in (0, 4)
        for found in [compare(run_a, run_b, qrels, metric="mrr@10", seed=seed)]
    }
    assert drawn == {seed: (bootstrap(values, seed=seed), sign_flip_test(values, seed=seed)) for seed in (0, 4)}
    assert drawn[0][0] != drawn[4][0]
    assert drawn[0][1] != drawn[4][1]
    assert compare(run_a, run_b, qrels, metric="mrr@10") == compare(run_a, run_b, qrels, metric="mrr@10", seed=0)


def test_the_calibration_error_is_the_mean_gap_by_count() -> None:
    """Bins .2 (3 of 4 relevant) and 1.0 (2 of 2): (4 * |.2 - .75| + 2 * 0) / 6."""
    judged = [(0.2, True), (0.2, True), (0.2, True), (0.2, False), (1.0, True), (1.0, True)]
    assert expected_calibration_error(judged) == pytest.approx(4 * 0.55 / 6, abs=1e-12)
    assert expected_calibration_error([]) == 0.0


def test_confidences_are_binned_by_width() -> None:
    """In one bin opposite gaps cancel, in two they do not; 1.0 belongs to the last."""
    judged = [(0.4, True), (0.6, False)]
    assert expected_calibration_error(judged, bins=1) == pytest.approx(0.0, abs=1e-12)
    assert expected_calibration_error(judged, bins=2) == pytest.approx(0.6)
    assert expected_calibration_error([(0.95, True), (1.0, False)], bins=10) == pytest.approx(0.95 / 2)
    assert expected_calibration_error([(0.1, True), (0.099, False)]) == pytest.approx((0.9 + 0.099) / 2)
    with pytest.raises(ConfigError, match=r"^bins"):
        expected_calibration_error(judged, bins=0)


def test_the_brier_score_is_the_mean_square() -> None:
    """(.5 ** 2 + .2 ** 2) / 2."""
    assert brier_score([(0.5, True), (0.2, False)]) == pytest.approx((0.25 + 0.04) / 2)
    assert brier_score([(1.0, True), (0.0, False)]) == 0.0
    assert brier_score([(0.0, True), (1.0, False), (0.0, False)]) == pytest.approx(2 / 3)
    assert brier_score([]) == 0.0


def test_a_confidence_that_is_none_is_noted_and_skipped() -> None:
    """NaN, and what is outside 0..1."""
    notes = Notes()
    judged = [(math.nan, True), (1.1, True), (-0.1, False), (0.5, True)]
    assert brier_score(judged, notes=notes) == 0.25
    assert notes.kept == tuple(Note("bad_confidence", "", repr(value)) for value in (math.nan, 1.1, -0.1))
    assert expected_calibration_error(judged, notes=notes) == 0.5
    assert notes.counts == {"bad_confidence": 6}
    assert brier_score(judged) == 0.25


def test_false_accepts_are_what_reaches_the_threshold() -> None:
    """Inclusive, as min_confidence is."""
    assert false_accept_rate([0.1, 0.3, 0.9, 0.0], 0.3) == 0.5
    assert false_accept_rate([], 0.3) == 0.0


# The keyword list is right, the vector list is wrong, in each of twenty queries.
TUNED_LISTS = {
    f"q{number:02}": {"vector": [f"wrong{number}", f"right{number}"], "keyword": [f"right{number}", "x"]}
    for number in range(20)
}
TUNED_QRELS = {f"q{number:02}": {f"right{number}": 1.0} for number in range(20)}
MISLEADING = {
    query: {"keyword": lists["keyword"], **dict.fromkeys(("vector", "graph", "tags"), lists["vector"][:1])}
    for query, lists in TUNED_LISTS.items()
}


def test_tuning_finds_what_helps_and_says_what_it_does_to_others() -> None:
    """Three strategies agree on the wrong one; the weights that trust the keyword list win, on held-out queries too."""
    found = tune(MISLEADING, TUNED_QRELS, weights=[{}, {"keyword": 5}, {"vector": 9}], ks=[60, 0], metric="mrr@10")
    assert (found.weights, found.k, found.training) == ({"keyword": 5}, 60, 1.0)
    assert len(found.holdout.wins) == 6
    assert (found.holdout.losses, found.holdout.ties) == ((), 0)
    assert found.holdout.difference.mean == 0.5
    assert found.holdout.metric == "mrr@10"
    assert found.holdout.p == 2 / 64


def test_tuning_keeps_the_first_of_equals() -> None:
    """When nothing helps, nothing changes."""
    found = tune(TUNED_LISTS, TUNED_QRELS, weights=[{}, {"keyword": 5}, {"keyword": 7}], metric="recall@100")
    assert (found.weights, found.k) == ({}, 60)
    assert found.holdout.ties == 6
    assert found.holdout.p == 1.0


def test_tuning_holds_out_the_share_it_is_told_and_one_at_least() -> None:
    """Of judged queries with lists; one remains to train on."""

    def held(share: float, queries: int = 20) -> int:
        qrels = dict(list(TUNED_QRELS.items())[:queries])
        outcome = tune(TUNED_LISTS, {**qrels, "unseen": {"a": 1}}, holdout=share).holdout
        return len(outcome.wins) + len(outcome.losses) + outcome.ties

    assert [held(share) for share in (0.0, 0.3, 0.31, 1.0)] == [1, 6, 7, 19]
    assert held(0.5, queries=2) == 1


def test_tuning_splits_by_its_seed() -> None:
    """The same seed holds out the same queries."""
    wins = [tune(MISLEADING, TUNED_QRELS, weights=[{"keyword": 5}], seed=seed).holdout.wins for seed in (1, 1, 2)]
    assert wins[0] == wins[1] != wins[2]
    assert tune(MISLEADING, TUNED_QRELS, weights=[{"keyword": 5}]).holdout.wins not in wins
    assert tune(MISLEADING, TUNED_QRELS, weights=[{"keyword": 5}]) == tune(
        MISLEADING, TUNED_QRELS, weights=[{"keyword": 5}], seed=0
    )


def test_what_is_held_out_is_compared_with_the_same_seed() -> None:
    """The right one has up to six before it in the one list that knows it, and one more unless that list is trusted."""
    keywords = {query: [f"k{place}" for place in range(number % 7)] for number, query in enumerate(TUNED_QRELS)}
    lists = {
        query: {"keyword": [*keywords[query], *right], "vector": ["w"], "graph": ["w"], "tags": ["w"]}
        for query, right in TUNED_QRELS.items()
    }
    found = tune(lists, TUNED_QRELS, weights=[{"keyword": 5}], metric="mrr@10", holdout=1.0, seed=3).holdout
    assert len(found.wins) == 19
    values = [1 / (1 + len(keywords[query])) - 1 / (2 + len(keywords[query])) for query in found.wins]
    assert found.difference == bootstrap(values, seed=3) != bootstrap(values, seed=0)


def test_tuning_that_cannot_be_is_refused() -> None:
    """One query, no candidate, a share that is none."""
    with pytest.raises(ConfigError, match="qrels: 1 - at least two queries with lists is needed"):
        tune(TUNED_LISTS, {"q01": {"a": 1}})
    with pytest.raises(ConfigError, match=r"weights: \(\) - at least one candidate is needed"):
        tune(TUNED_LISTS, TUNED_QRELS, weights=[])
    with pytest.raises(ConfigError, match=r"^holdout"):
        tune(TUNED_LISTS, TUNED_QRELS, holdout=1.5)


def test_what_was_retrieved_and_lost_is_diagnosed() -> None:
    """Outranked, unconfident, only found by a disabled strategy; never retrieved and well placed are no findings."""
    fusion = Fusion(FusionConfig(weights={"tags": 0}))
    lists: dict[str, dict[str, list[str] | None]] = {
        "q1": {"vector": ["a", "b", "c"], "keyword": ["a", "b", "c"], "tags": ["aside"]},
        "q2": {"vector": ["e"], "keyword": ["x"], "graph": None},
    }
    qrels = {"q1": {"a": 1, "absent": 1, "aside": 1, "b": 1, "c": 2}, "q2": {"e": 1, "x": 0}, "q3": {"a": 1}}
    found = diagnose(lists, qrels, fusion, top_n=1)
    places = {hit.id: hit.score for hit in fusion.fuse(lists["q1"], top_n=100).hits}
    [lost] = Fusion(FusionConfig(min_confidence=0)).fuse(lists["q2"], top_n=1).hits
    assert found == [
        Finding("q1", "b", "outranked", {"vector": 2, "keyword": 2}, 2, places["b"]),
        Finding("q1", "c", "outranked", {"vector": 3, "keyword": 3}, 3, places["c"]),
        Finding("q1", "aside", "disabled", {"tags": 1}, None, None),
        Finding("q2", "e", "unconfident", {"vector": 1}, 1, lost.score),
    ]
    assert [finding.id for finding in diagnose(lists, qrels, fusion, top_n=2)] == ["c", "aside", "e"]
    assert diagnose({}, qrels, fusion) == []
    with pytest.raises(ConfigError, match=r"^top_n"):
        diagnose(lists, qrels, fusion, top_n=0)


def test_what_is_at_min_confidence_is_not_lost() -> None:
    """The bound is inclusive here too."""
    [hit] = Fusion(FusionConfig(min_confidence=0)).fuse({"vector": ["a"], "keyword": []}).hits
    fusion = Fusion(FusionConfig(min_confidence=hit.score))
    assert diagnose({"q": {"vector": ["a"], "keyword": []}}, {"q": {"a": 1}}, fusion) == []


def test_ids_of_both_kinds_are_diagnosed() -> None:
    """Numbers and text in one list have an order, that of their places."""
    lists: dict[str, dict[str, list[str | int] | None]] = {"q": {"vector": ["x", 2, "a"]}}
    found = diagnose(lists, {"q": {"a": 1, 2: 1}}, Fusion(FusionConfig(min_confidence=0)), top_n=1)
    assert [(finding.id, finding.place) for finding in found] == [(2, 2), ("a", 3)]


def test_the_signs_of_a_throw_are_the_bits_of_the_dice() -> None:
    """64 of each number, the latest number's first: with one seed anybody can throw the same again."""
    differences = [math.sqrt(number) * (-1 if number % 7 < 3 else 1) for number in range(1, 71)]
    observed, dice, far = abs(math.fsum(differences)), Dice(9), 0
    for _ in range(500):
        earlier, latest = dice.roll(), dice.roll()
        bits = [number >> place & 1 for number in (latest, earlier) for place in range(64)]
        far += abs(math.fsum(value * (1 - 2 * bit) for value, bit in zip(differences, bits, strict=False))) >= observed
    assert sign_flip_test(differences, seed=9, resamples=500) == (far + 1) / 501
    assert 20 < far < 480


CHOICES = {f"q{number:02}": {"a": 1} for number in range(40)}
FIRST, LAST = (dict.fromkeys(CHOICES, order) for order in (["a", "b"], ["b", "a"]))


def test_what_gains_by_more_than_chance_is_better() -> None:
    """On queries that did not choose it; the first of equals is chosen, and both means of the others are told."""
    choice = choose([("last", LAST), ("first", FIRST), ("again", FIRST)], LAST, CHOICES, holdout=0.5)
    assert (choice.candidate, choice.better, choice.training) == ("first", True, 1.0)
    assert choice.default == pytest.approx(1 / math.log2(3))
    assert len(choice.holdout.wins) == 20


def test_what_chance_could_give_is_no_better() -> None:
    """No gain, a loss, and a gain on one query of many."""
    assert not choose([("same", LAST)], LAST, CHOICES).better
    assert not choose([("worse", LAST)], FIRST, CHOICES).better
    for query in CHOICES:
        assert not choose([("one", {**LAST, query: ["a"]})], LAST, CHOICES, holdout=0.5).better


def test_the_fusion_is_tuned_too() -> None:
    """Ranks tie where scores do not: by `relative` the list that is surer decides."""
    pairs = {"x": [("a", 9.0), ("b", 8.9), ("c", 0.0)], "y": [("b", 0.9), ("a", 0.1), ("c", 0.0)]}
    qrels = {query: {"b": 1} for query in CHOICES}
    found = tune(dict.fromkeys(CHOICES, pairs), qrels, fusions=["rrf", "relative"], metric="mrr@10")
    assert (found.fusion, found.training) == ("relative", 1.0)
    assert len(found.holdout.wins) == 12
