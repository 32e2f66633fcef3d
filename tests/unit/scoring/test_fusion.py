"""Fusion by example: sums, weights, repetitions, recency, evidence, ties, the cut, and what it says of itself."""

from __future__ import annotations

import math
import pickle
import warnings
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import partial
from typing import Any
from zlib import crc32

import pytest

from smart_model_router_scoring.calibration import Isotonic, Sigmoid
from smart_model_router_scoring.decay import epoch_seconds
from smart_model_router_scoring.fusion import (
    EvidenceGate,
    Fusion,
    FusionConfig,
    UnreachableConfidence,
    best_evidence,
    fuse_results,
    minmax,
    normalize_scores,
    recency_multiplier,
    retrieval_depth,
)
from smart_model_router_scoring.options import ConfigError, Note
from tests.unit.scoring import exact

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ALL = FusionConfig(min_confidence=0)


def days_ago(days: float) -> datetime:
    """The instant so many days before NOW."""
    return NOW - timedelta(days=days)


def test_the_sum_of_two_ranks_is_that_of_the_founding_example() -> None:
    """Rank 1 and rank 3, five days old: (1/61 + 1/63) * 1.2, 0.0387."""
    lists = {"semantic": ["a", "x", "y"], "keyword": ["p", "q", "a"]}
    [(best, score), *_] = fuse_results(lists, modified_times={"a": days_ago(5)}, now=NOW)
    assert best == "a"
    assert score == pytest.approx(float((Fraction(1, 61) + Fraction(1, 63)) * Fraction(6, 5)), rel=1e-15)
    assert score == pytest.approx(0.038720, abs=1e-6)


def test_ranks_weigh_as_told_and_linearly() -> None:
    """A strategy of weight 2.5 counts two and a half times one of weight 1, which is that of an unnamed one."""
    lists = {"vector": ["a", "b"], "keyword": ["b", "a", "c"]}
    found = dict(fuse_results(lists, weights={"keyword": 2.5}))
    wanted = exact.rrf(lists, {"keyword": Fraction(5, 2)})
    assert found == pytest.approx({key: float(value) for key, value in wanted.items()}, rel=1e-15)


def test_k_is_added_to_each_rank() -> None:
    """With k = 0 the first rank counts 1 and the second a half."""
    assert fuse_results({"vector": ["a", "b"]}, k=0) == [("a", 1.0), ("b", 0.5)]
    with pytest.raises(ConfigError, match=r"^k: -1 - a number from 0 to 1000000 is needed$"):
        fuse_results({"vector": ["a"]}, k=-1)


def test_a_strategy_of_weight_zero_is_switched_off() -> None:
    """It brings no id, and it is no part of what could be attained."""
    lists = {"vector": ["a"], "graph": ["z", "a"]}
    assert fuse_results(lists, weights={"graph": 0}) == fuse_results({"vector": ["a"]})
    off = Fusion(FusionConfig(weights={"graph": 0}, min_confidence=0)).fuse(lists)
    assert off.pairs == Fusion(ALL).fuse({"vector": ["a"]}).pairs
    assert off.considered == 1
    assert off.degraded == ()


def test_a_repeated_id_counts_once_at_its_best_rank_and_takes_no_rank() -> None:
    """[a, a, b] is [a, b]."""
    assert fuse_results({"vector": ["a", "a", "b", "a"]}) == [("a", 1 / 61), ("b", 1 / 62)]


def test_equal_scores_are_ordered_by_id() -> None:
    """Not by the order of strategies, nor by the order of arrival."""
    assert [key for key, _ in fuse_results({"x": ["b"], "y": ["a"], "w": ["c"]})] == ["a", "b", "c"]
    assert [key for key, _ in fuse_results({"x": [10], "y": [9]})] == [9, 10]


def test_ids_of_both_kinds_are_numbers_before_text() -> None:
    """A mixture has an order too, and raises nothing."""
    mixed: dict[str, list[Any]] = {"x": ["b"], "y": [2], "z": ["a"], "w": [1]}
    assert [key for key, _ in fuse_results(mixed)] == [1, 2, "a", "b"]
    assert [hit.id for hit in Fusion(ALL).fuse(mixed, top_n=2).hits] == [1, 2]


@pytest.mark.parametrize(
    ("age_days", "multiplier"),
    [(0, 1.2), (6.999999, 1.2), (7, 1.1), (29.999999, 1.1), (30, 1.0), (4000, 1.0), (-3, 1.2)],
)
def test_recency_multiplies_strictly_below_its_limits(age_days: float, multiplier: float) -> None:
    """1.2 below 7 days, 1.1 below 30, else 1.0; a time to come counts as now."""
    assert recency_multiplier(days_ago(age_days), NOW) == multiplier


@pytest.mark.parametrize("time", [None, "last week", math.nan, math.inf, True, "", [], 10**400])
def test_what_is_no_time_multiplies_by_one(time: object) -> None:
    """It never raises."""
    assert recency_multiplier(time, NOW) == 1.0


def test_times_come_as_numbers_text_and_naive_datetimes() -> None:
    """Epoch seconds, ISO text and datetimes say the same instant; naive ones are UTC."""
    instant = days_ago(6.99)
    forms = [
        instant,
        instant.timestamp(),
        instant.isoformat(),
        instant.replace(tzinfo=None),
        f" {instant.isoformat()} ",
    ]
    assert [recency_multiplier(form, NOW) for form in forms] == [1.2] * 5
    assert recency_multiplier(instant, NOW.replace(tzinfo=None)) == 1.2


@pytest.mark.parametrize(
    ("time", "same"),
    [
        (1_700_000_000_000, datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (-100_000_000_000.0, datetime(1966, 10, 31, 14, 13, 20, tzinfo=UTC)),
        (99_999_999_999, datetime(5138, 11, 16, 9, 46, 39, tzinfo=UTC)),
        ("2023/5/2", datetime(2023, 5, 2, tzinfo=UTC)),
        ("2023/05/20 (Sat) 2:21", datetime(2023, 5, 20, 2, 21, tzinfo=UTC)),
        ("2023/12/31 23:59:58", datetime(2023, 12, 31, 23, 59, 58, tzinfo=UTC)),
        (253_402_300_799_000, datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_milliseconds_and_dates_with_slashes_are_times(time: object, same: datetime) -> None:
    """A number of eleven zeros or more is milliseconds: as seconds it would be of the year 5138."""
    assert epoch_seconds(time) == same.timestamp()


@pytest.mark.parametrize("time", [253_402_300_800_000, 1.7e18, -62_135_596_801, -1e15, "2023/13/1", "2023/5", "23/5/2"])
def test_what_is_outside_the_years_1_to_9999_is_no_time(time: object) -> None:
    """Nor is a date that the calendar does not have."""
    assert epoch_seconds(time) is None


def test_times_need_a_present() -> None:
    """Nothing here looks at a clock."""
    words = r"^now: None - the present time, where modified_times are given, is needed$"
    with pytest.raises(ConfigError, match=words):
        fuse_results({"vector": ["a"]}, modified_times={"a": NOW})
    with pytest.raises(ConfigError, match=words):
        Fusion().fuse({"vector": ["a"]}, modified_times={"a": NOW})


def test_what_is_wrong_with_a_time_is_noted_at_its_hit() -> None:
    """Missing, unreadable and future times are told apart, and cost nobody the answer."""
    times: dict[str, object] = {"b": "soon", "c": NOW + timedelta(days=1), "d": days_ago(3)}
    fused = Fusion(ALL).fuse({"vector": ["a", "b", "c", "d"]}, modified_times=times, now=NOW)
    assert {hit.id: (hit.notes, hit.recency, hit.age_days) for hit in fused.hits} == {
        "a": ((Note("missing_time", "a"),), 1.0, None),
        "b": ((Note("bad_time", "b", "'soon'"),), 1.0, None),
        "c": ((Note("future_time", "c", repr(times["c"])),), 1.2, 0.0),
        "d": ((), 1.2, 3.0),
    }
    assert sorted(note.code for note in fused.notes) == ["bad_time", "future_time", "missing_time"]


def test_a_time_that_is_now_is_not_of_the_future() -> None:
    """The very instant is age 0 without a note."""
    fused = Fusion(ALL).fuse({"vector": ["a"]}, modified_times={"a": NOW}, now=NOW)
    assert (fused.hits[0].age_days, fused.notes) == (0.0, ())


def test_without_times_nothing_is_said_of_them() -> None:
    """No multiplier and no note when nobody asked for recency."""
    [hit] = Fusion(ALL).fuse({"vector": ["a"]}, now=NOW).hits
    assert (hit.recency, hit.age_days, hit.notes) == (1.0, None, ())


def test_one_strategy_alone_can_convince() -> None:
    """On the scale of what can be attained, first in the only list is as good as first in all three."""
    one = Fusion().fuse({"keyword": ["a"]})
    three = Fusion().fuse({"keyword": ["a"], "vector": ["a"], "graph": ["a"]})
    assert one.hits[0].score == pytest.approx(0.8935045513930535, abs=1e-12)
    assert three.hits[0].score == pytest.approx(one.hits[0].score, abs=1e-12)


def test_a_strategy_without_an_answer_leaves_the_scale() -> None:
    """A keyword-only hour still answers: what timed out is listed and expected of nobody."""
    fused = Fusion().fuse({"vector": None, "keyword": ["a"], "graph": None})
    assert fused.pairs == Fusion().fuse({"keyword": ["a"]}).pairs
    assert fused.degraded == ("graph", "vector")


def test_a_strategy_that_found_nothing_stays_on_the_scale() -> None:
    """An empty answer is an answer: to be first in one of two lists is half of what could be."""
    fused = Fusion(ALL).fuse({"keyword": ["a"], "vector": []})
    x = Fraction(1, 2)
    steepness, threshold = 150 * Fraction(3, 61), Fraction(35, 1000) / Fraction(3, 61)
    assert fused.hits[0].score == pytest.approx(exact.sigmoid(steepness * (x - threshold)), abs=1e-12)
    assert fused.degraded == ()


def test_what_is_below_min_confidence_is_left_out_and_what_is_at_it_is_not() -> None:
    """The bound is inclusive."""
    lists = {"keyword": ["a", "b"]}
    [first, second] = Fusion(ALL).fuse(lists).pairs
    assert Fusion(FusionConfig(min_confidence=second[1])).fuse(lists).pairs == [first, second]
    assert Fusion(FusionConfig(min_confidence=math.nextafter(second[1], 1))).fuse(lists).pairs == [first]


def test_hits_are_cut_after_they_are_ordered() -> None:
    """Ten lists that agree on nothing: nobody is above 0.3, and the answer is empty."""
    fused = Fusion().fuse({f"s{number}": [f"id{number}"] for number in range(10)})
    assert fused.hits == ()
    assert fused.considered == 10


def test_nothing_found_is_an_empty_answer() -> None:
    """No list, empty lists and lists of nobody raise nothing."""
    empty: dict[str, list[str]] = {}
    assert Fusion().fuse(empty).hits == ()
    assert Fusion().fuse({"vector": [], "keyword": None}).hits == ()
    assert fuse_results(empty) == []


def test_five_results_unless_told() -> None:
    """top_n is 5, and fewer are the first of more."""
    lists = {"vector": [f"id{number:03}" for number in range(200)]}
    more = Fusion(ALL).fuse(lists, top_n=100)
    assert len(Fusion(ALL).fuse(lists).hits) == 5
    assert len(more.hits) == 100
    assert Fusion(ALL).fuse(lists).hits == more.hits[:5]
    assert more.considered == 200


@pytest.mark.parametrize("top_n", [0, -1, 101, 2.0, True, "5", None])
def test_a_number_of_results_that_cannot_be_is_refused(top_n: Any) -> None:
    """1..100, a ValueError otherwise."""
    with pytest.raises(ValueError, match=r"top_n: .* a whole number from 1 to 100 is needed"):
        Fusion().fuse({"vector": ["a"]}, top_n=top_n)


@pytest.mark.parametrize(("top_k", "top_n", "depth"), [(10, 5, 10), (10, 20, 20), (10, 10, 10)])
def test_strategies_are_asked_for_enough(top_k: int, top_n: int, depth: int) -> None:
    """Never for fewer than are to be returned."""
    assert retrieval_depth(top_k, top_n) == depth


@pytest.mark.parametrize(
    ("settings", "field", "allowed"),
    [
        ({"k": -1}, "k", "a number from 0 to 1000000"),
        ({"k": math.nan}, "k", "a number from 0 to 1000000"),
        ({"k": 1_000_001}, "k", "a number from 0 to 1000000"),
        ({"k": 10**400}, "k", "a number from 0 to 1000000"),
        ({"weights": {"vector": -0.1}}, "weights.vector", "a number from 0 to 1000000"),
        ({"weights": {"vector": math.nan}}, "weights.vector", "a number from 0 to 1000000"),
        ({"weights": {"vector": math.inf}}, "weights.vector", "a number from 0 to 1000000"),
        ({"weights": {"vector": "2"}}, "weights.vector", "a number from 0 to 1000000"),
        ({"weights": {"vector": True}}, "weights.vector", "a number from 0 to 1000000"),
        ({"min_confidence": 1.01}, "min_confidence", "a number from 0 to 1"),
        ({"min_confidence": -0.01}, "min_confidence", "a number from 0 to 1"),
        ({"tie_breaks": ("oldest",)}, "tie_breaks", "one of agreement, best_rank, newest"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(settings: dict[str, Any], field: str, allowed: str) -> None:
    """ConfigError says which field, which value, what would be right."""
    with pytest.raises(ConfigError) as refused:
        FusionConfig(**settings)
    assert (refused.value.field, refused.value.allowed) == (field, allowed)
    assert str(refused.value) == f"{field}: {refused.value.value!r} - {allowed} is needed"


def test_the_limits_of_settings_are_allowed() -> None:
    """Both ends of every range."""
    config = FusionConfig(k=0, weights={"a": 0, "b": 1_000_000}, min_confidence=1)
    assert (config.weight("a"), config.weight("b"), config.weight("c")) == (0, 1_000_000, 1.0)
    assert FusionConfig(k=1_000_000, min_confidence=0).k == 1_000_000


def test_a_configuration_keeps_its_own_weights() -> None:
    """What the caller does to his dictionary afterwards changes nothing, and nobody can write to ours."""
    weights = {"vector": 2.0}
    config = FusionConfig(weights=weights)
    weights["vector"] = 3.0
    assert config.weight("vector") == 2.0
    with pytest.raises(TypeError):
        config.weights["vector"] = 4.0  # type: ignore[index]


def test_a_confidence_that_nobody_can_reach_is_warned_of() -> None:
    """With the founding scale one strategy alone never passes 0.3, and whoever builds it so is told at once."""
    raw = FusionConfig(calibration=Sigmoid(scale="raw"))
    with pytest.warns(UnreachableConfidence, match=r"min_confidence 0\.3 cannot be reached: the best score is 0\.0912"):
        Fusion(raw, strategies=["keyword"])
    with pytest.warns(UnreachableConfidence):
        Fusion(FusionConfig(weights={"keyword": 0}), strategies=["keyword"])
    with pytest.warns(UnreachableConfidence):
        Fusion(FusionConfig(min_confidence=1.0))
    with pytest.warns(UnreachableConfidence):
        Fusion(
            FusionConfig(calibration=Sigmoid(scale="raw"), weights=dict.fromkeys(("vector", "keyword", "graph"), 0.2))
        )


def test_a_confidence_that_can_be_reached_is_not_warned_of() -> None:
    """The default, two strategies on the founding scale, three unnamed ones, a fourth with a weight."""
    raw = Sigmoid(scale="raw")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Fusion()
        Fusion(FusionConfig(calibration=raw), strategies=["keyword", "vector"])
        Fusion(FusionConfig(calibration=raw, min_confidence=0.9))
        Fusion(FusionConfig(calibration=raw, min_confidence=0.99, weights={"tags": 1}))
        attainable = math.fsum([1 / 61] * 3)
        Fusion(FusionConfig(min_confidence=Sigmoid().calibrate(attainable * 1.2, attainable)))


def test_the_warning_points_at_whoever_built_it() -> None:
    """Its line is that of the caller."""
    with pytest.warns(UnreachableConfidence) as caught:
        Fusion(FusionConfig(min_confidence=1.0))
    assert caught[0].filename == __file__


EVIDENCE = {"a": 0.2, "b": 0.4, "c": 0.8, "d": math.nan, "f": -0.5}
LISTS = {"vector": ["a", "b", "c", "d", "e", "f"]}


def test_the_evidence_gate_scales_what_is_off_topic() -> None:
    """Relevance over threshold, below the gate; 1 at it, above it, and where nothing is known."""
    config = FusionConfig(min_confidence=0, evidence_gate=EvidenceGate(threshold=0.4))
    fused = Fusion(config).fuse(LISTS, evidence=EVIDENCE, top_n=6)
    assert {hit.id: hit.evidence for hit in fused.hits} == {"a": 0.5, "b": 1, "c": 1, "d": 1, "e": 1, "f": 0}
    assert {hit.id: hit.fused for hit in fused.hits} == pytest.approx(
        {"a": 0.5 / 61, "b": 1 / 62, "c": 1 / 63, "d": 1 / 64, "e": 1 / 65, "f": 0.0}
    )
    assert [hit.id for hit in fused.hits] == ["b", "c", "d", "e", "a", "f"]
    assert fused.notes == (Note("bad_evidence", "d", "nan"), Note("bad_evidence", "f", "-0.5"))


def test_the_evidence_gate_drops_what_is_off_topic() -> None:
    """The other action leaves it out."""
    config = FusionConfig(min_confidence=0, evidence_gate=EvidenceGate(threshold=0.4, action="drop"))
    fused = Fusion(config).fuse(LISTS, evidence=EVIDENCE, top_n=6)
    assert [hit.id for hit in fused.hits] == ["b", "c", "d", "e"]
    assert fused.considered == 6


def test_the_evidence_gate_is_off_unless_set() -> None:
    """Evidence alone changes no score, not even that of an opposite."""
    assert Fusion(ALL).fuse(LISTS, evidence=EVIDENCE, top_n=6).pairs == Fusion(ALL).fuse(LISTS, top_n=6).pairs


@pytest.mark.parametrize("probe", range(24))
def test_with_every_opt_in_off_the_scores_are_the_founding_ones(probe: int) -> None:
    """Zero delta, two dozen times: neither the gate nor a tie break nor evidence moves a score or a place."""
    names = [f"d{number}" for number in range(12)]
    lists = {
        name: sorted(names, key=lambda key: crc32(f"{probe}{name}{key}".encode())) for name in ("vector", "keyword")
    }
    evidence = {key: (crc32(key.encode()) + probe) % 11 / 10 for key in names}
    ages = {key: NOW - timedelta(days=probe * place) for place, key in enumerate(names)}
    fused = Fusion(ALL).fuse(lists, evidence=evidence, modified_times=ages, now=NOW, top_n=12)
    founding = fuse_results(lists, modified_times=ages, now=NOW)
    assert [(hit.id, hit.fused) for hit in fused.hits] == founding
    assert [hit.score for hit in fused.hits] == pytest.approx(
        [1 / (1 + math.exp(-150 * (3 / 2) * (raw - 0.035 * 2 / 3))) for _, raw in founding], abs=1e-9
    )


@pytest.mark.parametrize("settings", [{"threshold": -0.1}, {"threshold": 1.1}, {"action": "hide"}])
def test_an_evidence_gate_that_cannot_be_is_refused(settings: dict[str, Any]) -> None:
    """A threshold of 0..1 and one of two actions."""
    with pytest.raises(ConfigError) as refused:
        EvidenceGate(**settings)
    assert refused.value.field == f"evidence_gate.{next(iter(settings))}"


@pytest.mark.parametrize("value", [1.0000001, -0.1, 57.0, math.nan])
def test_evidence_outside_0_to_1_is_noted(value: float) -> None:
    """A score of BM25 is no relevance: it costs no answer, and is told."""
    fused = Fusion(ALL).fuse({"vector": ["a", "b", "c"]}, evidence={"a": value, "b": 1.0, "c": 0.0})
    assert fused.notes == (Note("bad_evidence", "a", repr(value)),)


@pytest.mark.parametrize("pair", [tuple, list])
def test_pairs_are_ids_with_scores(pair: Callable[[tuple[str, float]], Any]) -> None:
    """They rank like their ids alone; each hit has the scores that it was found with, and explains them."""
    plain = {"keyword": ["b", "a", "b"], "vector": ["a"]}
    pairs = {"keyword": [pair(one) for one in (("b", 7.5), ("a", 3.0), ("b", 1.0))], "vector": ["a"]}
    assert fuse_results(pairs) == fuse_results(plain)
    fused = Fusion(ALL).fuse(pairs)
    assert fused.pairs == Fusion(ALL).fuse(plain).pairs
    assert {hit.id: hit.scores for hit in fused.hits} == {"a": {"keyword": 3.0}, "b": {"keyword": 7.5}}
    assert any("score: 7.5" in line for line in fused.hits[1].explain().lines())
    assert fused.hits[1].explain().recompose() == fused.hits[1].score


def test_a_score_that_is_no_number_is_noted() -> None:
    """The rank stands; the score is not shown."""
    [hit] = Fusion(ALL).fuse({"keyword": [("a", math.nan)]}).hits
    assert (hit.scores, hit.notes) == ({}, (Note("bad_score", "a", "keyword: nan"),))


@pytest.mark.parametrize(
    ("found", "field"),
    [
        ({"a", "b"}, "results.keyword"),
        (frozenset("ab"), "results.keyword"),
        ("ab", "results.keyword"),
        ([("a", 1.0), "b"], "results.keyword[1]"),
        ([("a", 1.0), ("b", 2.0, 3.0)], "results.keyword[1]"),
    ],
)
def test_results_without_an_order_or_half_of_pairs_are_refused(found: Any, field: str) -> None:
    """The order of a set is another one in every process."""
    for fuse in (fuse_results, Fusion(ALL).fuse):
        with pytest.raises(ConfigError) as caught:
            fuse({"keyword": found})
        assert caught.value.field == field


def test_a_weight_of_no_strategy_is_refused() -> None:
    """A misspelt name would be ignored; names of ours, of the lists and of the strategies that will run are known."""
    lists = {"keyword": ["a"], "tags": ["b"]}
    wanted = "the name of a strategy (graph, keyword, tags, vector)"
    typo = {"keywrd": 2.0}
    for fuse in (partial(fuse_results, weights=typo), Fusion(FusionConfig(weights=typo)).fuse):
        with pytest.raises(ConfigError) as caught:
            fuse(lists)
        assert (caught.value.field, caught.value.allowed) == ("weights.keywrd", wanted)
    fine = FusionConfig(weights={"tags": 2, "graph": 0.1, "later": 1}, min_confidence=0)
    assert Fusion(fine, strategies=["later"]).fuse(lists).pairs[0][0] == "b"


def test_the_best_evidence_is_that_of_any_strategy() -> None:
    """The greatest number of each id; what is no number is skipped."""
    found = {"vector": {"a": 0.3, "b": math.nan}, "keyword": {"a": 0.7, "c": -2.0}, "tags": {"a": 0.5}}
    assert best_evidence(found) == {"a": 0.7, "c": -2.0}


@pytest.mark.parametrize(
    ("tie_breaks", "wanted"),
    [((), ["a", "b"]), (("agreement",), ["b", "a"]), (("best_rank",), ["a", "b"]), (("newest",), ["b", "a"])],
)
def test_ties_are_broken_as_configured(tie_breaks: tuple[str, ...], wanted: list[str]) -> None:
    """a: first in one list of weight 2. b: first in two lists of weight 1, and younger. By default the id decides."""
    config = FusionConfig(min_confidence=0, weights={"one": 2}, tie_breaks=tie_breaks)
    lists = {"one": ["a"], "two": ["b"], "three": ["b"]}
    times = {"a": days_ago(50), "b": days_ago(40)}
    assert [hit.id for hit in Fusion(config).fuse(lists, modified_times=times, now=NOW).hits] == wanted


def test_the_better_rank_breaks_a_tie() -> None:
    """z: second in one list. a: twenty-second in a list of weight 82/62, the same sum, and a worse rank."""
    lists = {"x": ["p", "z"], "y": [f"q{number:02}" for number in range(21)] + ["a"]}
    config = FusionConfig(min_confidence=0, weights={"y": 82 / 62}, tie_breaks=("best_rank",))
    hits = Fusion(config).fuse(lists, top_n=100).hits
    by_id = {hit.id: hit for hit in hits}
    assert by_id["a"].fused == by_id["z"].fused
    order = [hit.id for hit in hits]
    assert order.index("z") < order.index("a")


def test_the_unknown_age_is_the_oldest() -> None:
    """Among equals, what has no time comes after what has one."""
    config = FusionConfig(min_confidence=0, tie_breaks=("newest",))
    fused = Fusion(config).fuse({"x": ["a"], "y": ["b"]}, modified_times={"b": days_ago(900)}, now=NOW)
    assert [hit.id for hit in fused.hits] == ["b", "a"]


def test_a_hit_explains_its_score_to_a_person() -> None:
    """Every number that went in is there by name, and the tree gives the score again."""
    config = FusionConfig(weights={"vector": 2}, evidence_gate=EvidenceGate(threshold=0.8))
    lists = {"vector": ["b", "a"], "keyword": ["a"], "graph": ["c"]}
    fused = Fusion(config).fuse(lists, modified_times={"a": days_ago(8.26)}, now=NOW, evidence={"a": 0.6})
    hit = next(hit for hit in fused.hits if hit.id == "a")
    assert hit.ranks == {"vector": 2, "keyword": 1}
    assert list(hit.explain().lines()) == [
        f"score = {hit.score:.6g} (sigmoid; meaning: confidence index)",
        f"  exponent = {7.377049180327869 * (hit.fused / (4 / 61) - 0.7116666666666667):.6g} (product)",
        "    steepness = 7.37705",
        f"    above threshold = {hit.fused / (4 / 61) - 0.7116666666666667:.6g} (sum)",
        f"      attainment = {hit.fused / (4 / 61):.6g} (ratio)",
        f"        fused = {hit.fused:.6g} (product)",
        f"          reciprocal ranks = {2 / 62 + 1 / 61:.6g} (sum)",
        "            keyword = 0.0163934 (ratio)",
        "              weight = 1",
        "              k + rank = 61 (sum)",
        "                k = 60",
        "                rank = 1",
        "            vector = 0.0322581 (ratio)",
        "              weight = 2",
        "              k + rank = 62 (sum)",
        "                k = 60",
        "                rank = 2",
        "          recency = 1.1 (age in days: 8.3)",
        "          evidence = 0.75",
        "        attainable = 0.0655738",
        "      -threshold = -0.711667",
    ]
    assert hit.explain().recompose() == pytest.approx(hit.score, abs=1e-12)
    assert hit.fused == pytest.approx((2 / 62 + 1 / 61) * 1.1 * 0.75)
    assert hit.total == pytest.approx(2 / 62 + 1 / 61)


@pytest.mark.parametrize(
    "curve",
    [Sigmoid(scale="raw"), Isotonic(knots=((0.2, 0.1), (0.8, 0.9))), Isotonic(knots=((0.0, 0.4),), scale="raw")],
)
def test_every_curve_explains_itself(curve: Sigmoid | Isotonic) -> None:
    """The explanation recomposes whatever the calibration is."""
    fused = Fusion(FusionConfig(calibration=curve, min_confidence=0)).fuse({"x": ["a", "b"], "y": ["b"]})
    for hit in fused.hits:
        assert hit.explain().recompose() == pytest.approx(hit.score, abs=1e-12)
        assert hit.explain().value == hit.score


def test_a_result_can_be_pickled() -> None:
    """Hits travel between processes with their explanations."""
    fused = Fusion().fuse({"vector": ["a"]})
    assert pickle.loads(pickle.dumps(fused)) == fused


def test_inputs_are_left_as_they_were() -> None:
    """Lists, weights, times and evidence are only read."""
    lists = {"vector": ["b", "a", "b"], "keyword": ["a"]}
    times, evidence = {"a": days_ago(1)}, {"a": 0.1}
    Fusion(FusionConfig(evidence_gate=EvidenceGate(threshold=0.5))).fuse(
        lists, modified_times=times, now=NOW, evidence=evidence
    )
    assert lists == {"vector": ["b", "a", "b"], "keyword": ["a"]}
    assert (times, evidence) == ({"a": days_ago(1)}, {"a": 0.1})


def test_normalised_scores_are_calibrated_ones() -> None:
    """One result is not 1.0 for being alone: rank 1 of one strategy is 0.0578 on the founding scale."""
    assert dict(normalize_scores([("a", 1 / 61)])) == pytest.approx({"a": 0.0578133540}, abs=1e-9)
    assert normalize_scores([("a", 0.5)], threshold=0.5, steepness=10) == [("a", 0.5)]
    steeper = normalize_scores([("a", 0.6)], threshold=0.5, steepness=20)
    assert dict(steeper) == pytest.approx({"a": exact.sigmoid(Fraction(2))}, abs=1e-12)
    assert normalize_scores([]) == []


def test_minmax_stretches_between_the_least_and_the_greatest() -> None:
    """Its own helper: 1.0 and 0.0 at the ends, linear between."""
    stretched = minmax([("a", 0.75), ("b", 0.5), ("c", 0.25)])
    assert stretched == [("a", 1.0), ("b", 0.5), ("c", 0.0)]


def test_minmax_of_equals_is_one() -> None:
    """So is that of a single result."""
    assert minmax([("a", 0.2), ("b", 0.2)]) == [("a", 1.0), ("b", 1.0)]
    assert minmax([("a", 0.0)]) == [("a", 1.0)]
    assert minmax([]) == []


def test_minmax_survives_what_is_no_number() -> None:
    """It is 0.0, and the others are stretched as if it were not there; the largest numbers overflow nothing."""
    assert minmax([("a", math.nan), ("b", 2.0), ("c", math.inf), ("d", 1.0)]) == [
        ("a", 0.0),
        ("b", 1.0),
        ("c", 0.0),
        ("d", 0.0),
    ]
    assert minmax([("a", math.nan)]) == [("a", 0.0)]
    assert minmax([("a", 1.7e308), ("b", 0.0), ("c", -1.7e308)]) == [("a", 1.0), ("b", 0.5), ("c", 0.0)]


PROBES = [
    {
        "vector": [f"d{(seed * 7 + rank * 3) % 11}" for rank in range(8)],
        "keyword": [f"d{(seed + rank) % 13}" for rank in range(9)],
    }
    for seed in range(24)
]


@pytest.mark.parametrize("lists", PROBES)
def test_what_ships_off_changes_nothing(lists: dict[str, list[str]]) -> None:
    """Zero delta: with every opt-in at its default, the answer is that of the plain formula, computed in fractions."""
    plain = sorted(exact.rrf(lists).items(), key=lambda item: (-item[1], item[0]))
    attainable = Fraction(2, 61)
    steepness, threshold = 150 * Fraction(3, 61), Fraction(35, 1000) / Fraction(3, 61)
    scored = [(key, exact.sigmoid(steepness * (value / attainable - threshold))) for key, value in plain]
    fused = Fusion().fuse(lists, evidence=dict.fromkeys(lists["vector"], 0.01))
    wanted = [(key, score) for key, score in scored if score >= 0.3][:5]
    assert [key for key, _ in fused.pairs] == [key for key, _ in wanted]
    assert dict(fused.pairs) == pytest.approx(dict(wanted), abs=1e-9)
