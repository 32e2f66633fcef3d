"""Fusion of scores by example: the scale of each list, lists without scores, bad scores, explanations."""

from __future__ import annotations

import math
from typing import Any

import pytest

from smart_model_router_scoring.calibration import Sigmoid
from smart_model_router_scoring.evaluate import diagnose
from smart_model_router_scoring.fusion import Fused, Fusion, FusionConfig, UnreachableConfidence, fuse_results
from smart_model_router_scoring.fusion.scales import distribution, relative
from smart_model_router_scoring.options import ConfigError, Note

KEYWORD = [("a", 12.0), ("b", 6.0), ("c", 2.0)]
VECTOR = [("c", 0.9), ("a", 0.5), ("d", 0.4)]


def fused(results: dict[str, Any], **settings: Any) -> Fused[Any]:
    """All hits of these lists under these settings."""
    return Fusion(FusionConfig(min_confidence=0.0, **settings), strategies=results).fuse(results)


def totals(results: dict[str, Any], **settings: Any) -> dict[Any, float]:
    """Id -> total, in order."""
    return {hit.id: hit.total for hit in fused(results, **settings).hits}


def test_relative_scores_are_shares_of_the_way_from_the_lowest_to_the_highest() -> None:
    """Each list on its own: 12, 6, 2 are 1, 0.4 and 0, whatever the other list has."""
    found = totals({"keyword": KEYWORD, "vector": VECTOR}, fusion="relative", weights={"vector": 0.5})
    assert found == pytest.approx({"a": 1.0 + 0.5 * 0.2, "c": 0.5, "b": 0.4, "d": 0.0})
    assert list(found) == ["a", "c", "b", "d"]


def test_distribution_based_scores_are_deviations_from_the_mean() -> None:
    """The mean is 0.5, three standard deviations below it 0, three above it 1."""
    mean, deviation = 20 / 3, math.sqrt(((12 - 20 / 3) ** 2 + (6 - 20 / 3) ** 2 + (2 - 20 / 3) ** 2) / 3)
    found = totals({"keyword": KEYWORD}, fusion="distribution")
    assert found == pytest.approx({key: 0.5 + (score - mean) / (6 * deviation) for key, score in KEYWORD})


def test_an_outlier_is_above_one_and_never_below_zero() -> None:
    """Of a hundred scores one stands far out: it keeps its distance; on the other side it counts as not found."""
    above = totals({"keyword": [("far", 100.0), *((f"n{n}", 1.0) for n in range(99))]}, fusion="distribution")
    assert above["far"] == pytest.approx(0.5 + math.sqrt(99) / 6)
    below = [(f"n{n}", 1.0) for n in range(20)] + [("far", -100.0)]
    assert relative(score for _, score in below) is not None
    scale = distribution(score for _, score in below)
    assert scale is not None
    assert scale.share(-100.0) == 0.0
    assert scale.explain(-100.0).recompose() == 0.0


@pytest.mark.parametrize(("fusion", "each"), [("relative", 1.0), ("distribution", 0.5)])
@pytest.mark.parametrize("scores", [[7.5], [0.0, 0.0], [-3.0] * 4, [1e308, 1e308]])
def test_equal_scores_say_nothing_of_each_other(fusion: str, each: float, scores: list[float]) -> None:
    """One hit, or several of one score, have one share each: 1.0, or 0.5 as the mean itself."""
    found = totals({"keyword": [(n, score) for n, score in enumerate(scores)]}, fusion=fusion)
    assert found == dict.fromkeys(range(len(scores)), each)


@pytest.mark.parametrize("fusion", ["relative", "distribution"])
@pytest.mark.parametrize("bad", [None, math.nan, math.inf, -math.inf, True, "7", 10**400])
def test_a_score_that_is_no_finite_number_counts_nothing_and_is_noted(fusion: str, bad: Any) -> None:
    """The id was found, so it is a hit; the scale is that of the others."""
    results = {"keyword": [*KEYWORD, ("x", bad)]}
    found = {hit.id: hit for hit in fused(results, fusion=fusion).hits}
    assert found["x"].total == 0.0
    assert [note.code for note in found["x"].notes] == ["bad_score"]
    assert found["x"].explain_total().recompose() == 0.0
    assert {key: found[key].total for key in "abc"} == totals({"keyword": KEYWORD}, fusion=fusion)


@pytest.mark.parametrize("fusion", ["relative", "distribution"])
@pytest.mark.parametrize("listed", [["a", "b", "c"], [("a", None), ("b", math.nan), ("c", None)]])
def test_a_list_without_scores_counts_by_its_ranks(fusion: str, listed: list[Any]) -> None:
    """The first has 1.0, rank r has (k + 1) / (k + r): plain ids, and pairs of which none has a number."""
    found = fused({"graph": listed}, fusion=fusion, k=4, weights={"graph": 2.0}).hits
    assert {hit.id: hit.total for hit in found} == {"a": 2.0, "b": 2.0 * 5 / 6, "c": 2.0 * 5 / 7}
    assert all(hit.explain().recompose() == pytest.approx(hit.score, abs=1e-12) for hit in found)


@pytest.mark.parametrize("fusion", ["relative", "distribution"])
def test_scores_count_and_not_the_order_of_the_list(fusion: str) -> None:
    """A list in another order is the same list; its ranks are told and decide nothing."""
    turned = {"keyword": KEYWORD[::-1], "vector": VECTOR}
    assert totals(turned, fusion=fusion) == totals({"keyword": KEYWORD, "vector": VECTOR}, fusion=fusion)


@pytest.mark.parametrize("fusion", ["relative", "distribution"])
def test_the_first_of_repeated_ids_counts(fusion: str) -> None:
    """As in fusion by ranks."""
    assert totals({"keyword": [*KEYWORD, ("a", 1.0)]}, fusion=fusion) == totals({"keyword": KEYWORD}, fusion=fusion)


@pytest.mark.parametrize("fusion", ["rrf", "relative", "distribution"])
def test_first_everywhere_attains_everything(fusion: str) -> None:
    """Attainment is 1 there, whatever is fused, and so the calibrated score is that of one convincing strategy."""
    results = {"keyword": KEYWORD, "vector": [("a", 0.9), ("b", 0.1)], "graph": ["a"]}
    best, *others = fused(results, fusion=fusion).hits
    assert best.id == "a"
    assert best.attainment == pytest.approx(1.0, abs=1e-15)
    assert best.score == pytest.approx(Sigmoid().calibrate(1.0, 1.0), abs=1e-12)
    assert all(0.0 <= hit.attainment < 1.0 for hit in others)
    assert best.explain_attainment().recompose() == pytest.approx(best.attainment, abs=1e-12)


@pytest.mark.parametrize("fusion", ["relative", "distribution"])
def test_an_empty_answer_stays_on_the_scale(fusion: str) -> None:
    """It could have had a first; a strategy without an answer could not."""
    alone = fused({"keyword": KEYWORD, "vector": None}, fusion=fusion).hits[0]
    beside = fused({"keyword": KEYWORD, "vector": []}, fusion=fusion).hits[0]
    assert alone.attainment == 1.0
    assert beside.attainment < 1.0


@pytest.mark.parametrize("exponent", [-1000, -300, 300, 1000])
@pytest.mark.parametrize("scale", [relative, distribution])
def test_scores_of_any_size_are_scaled(scale: Any, exponent: int) -> None:
    """Neither overflow nor underflow: the shares are those of ordinary numbers."""
    usual = [3.0, 1.0, -1.5]
    extreme = [math.ldexp(score, exponent) for score in usual]
    made, wanted = scale(extreme), scale(usual)
    shares = [made.share(score) for score in extreme]
    assert shares == pytest.approx([wanted.share(score) for score in usual], rel=1e-12)
    assert [made.explain(score).recompose() for score in extreme] == shares


def test_the_greatest_difference_of_floats_is_scaled() -> None:
    """It is itself no float."""
    assert totals({"x": [("a", 1.7e308), ("b", 0.0), ("c", -1.7e308)]}, fusion="relative") == {"a": 1, "b": 0.5, "c": 0}


def test_fusion_by_ranks_ignores_scores() -> None:
    """Also of scores that say otherwise; they are told in the explanation."""
    assert fuse_results({"keyword": KEYWORD}) == fuse_results({"keyword": ["a", "b", "c"]})
    assert fuse_results({"keyword": KEYWORD}, fusion="relative") == [("a", 1.0), ("b", 0.4), ("c", 0.0)]


def test_a_method_that_does_not_exist_is_refused() -> None:
    """With the ones that do."""
    with pytest.raises(ConfigError, match=r"^fusion: 'borda' - one of rrf, relative, distribution is needed$"):
        FusionConfig(fusion="borda")


@pytest.mark.parametrize("given", [{}, {"threshold": 0.5}, {"steepness": 5.0}])
def test_the_founding_scale_is_for_reciprocal_ranks(given: dict[str, Any]) -> None:
    """Its threshold is 0.035 and its best sum 0.05: a sum of shares is far above, and everything would be excellent."""
    with pytest.raises(ConfigError, match=r"^score_calibration_scale: 'raw' - a threshold and a steepness of the sums"):
        FusionConfig(fusion="relative", calibration=Sigmoid(scale="raw", **given))
    assert FusionConfig(calibration=Sigmoid(scale="raw", **given)).fusion == "rrf"
    own = Sigmoid(scale="raw", threshold=0.5, steepness=5.0)
    assert FusionConfig(fusion="relative", calibration=own).calibration is own


def test_a_confidence_that_cannot_be_reached_is_warned_of_by_what_is_attainable() -> None:
    """The share of the attainable sum is at most 1 by every method."""
    with pytest.warns(UnreachableConfidence):
        Fusion(FusionConfig(fusion="relative", min_confidence=1.0), strategies=["keyword"])


def test_a_relevant_hit_that_scores_outranked_is_diagnosed_by_its_scores() -> None:
    """By ranks b is second and fifth, by scores last: the finding says its place in the fusion that is used."""
    lists = {"q": {"keyword": [("a", 10.0), ("b", 0.5), ("c", 0.4)], "vector": [("c", 0.9), ("a", 0.8), ("b", 0.1)]}}
    [finding] = diagnose(lists, {"q": {"b": 1}}, Fusion(FusionConfig(fusion="relative", min_confidence=0.0)), top_n=2)
    assert (finding.reason, finding.place, dict(finding.ranks)) == ("outranked", 3, {"keyword": 2, "vector": 3})


def test_notes_are_of_the_hits_that_are_shown() -> None:
    """The strategy and the score are named."""
    [hit] = fused({"keyword": [("a", math.nan)]}, fusion="relative").hits
    assert hit.notes == (Note("bad_score", "a", "keyword: nan"),)
