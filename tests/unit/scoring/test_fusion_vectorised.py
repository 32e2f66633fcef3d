"""The vectorised twins give what the plain code gives: fusion to the bit, calibration to 1e-12."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import warnings
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from smart_model_router_scoring import vectorised
from smart_model_router_scoring.calibration import Isotonic, Sigmoid
from smart_model_router_scoring.fusion import EvidenceGate, Fusion, FusionConfig
from smart_model_router_scoring.options import ConfigError
from smart_model_router_scoring.vectorised import calibrate_scores

NOW = datetime(2026, 3, 1, tzinfo=UTC)
ALL = FusionConfig(min_confidence=0)
STRATEGIES = ("vector", "keyword", "graph")


def lists(count: int, seed: int, spread: float = 1.5) -> dict[str, list[int]]:
    """Three lists of `count` of the numbers up to `spread` times as many, with repetitions."""
    chance = random.Random(seed)
    return {name: chance.choices(range(int(count * spread)), k=count) for name in STRATEGIES}


@pytest.mark.parametrize("config", [ALL, FusionConfig(), FusionConfig(weights={"graph": 0, "vector": 2.5}, k=3)])
@pytest.mark.parametrize("seed", range(3))
def test_the_twins_agree_to_the_bit(config: FusionConfig, seed: int) -> None:
    """Numbers as lists and as arrays, sparse numbers, negative ones, text: one answer, whatever the form."""
    fusion, given = Fusion(config), lists(3_000, seed)
    plain = fusion.fuse(given, top_n=40)
    assert vectorised.fuse(fusion, given, top_n=40) == plain
    arrays: dict[str, Any] = {name: np.array(ids) for name, ids in given.items()}
    assert vectorised.fuse(fusion, arrays, top_n=40) == plain
    far: dict[str, Any] = {name: [10**15 * number - 7 for number in ids] for name, ids in given.items()}
    text: dict[str, Any] = {name: [f"d{number}" for number in ids] for name, ids in given.items()}
    huge: dict[str, Any] = {name: [2**70 + number for number in ids] for name, ids in given.items()}
    above: dict[str, Any] = {name: [10**15 * number + 1 for number in ids] for name, ids in given.items()}
    around: dict[str, Any] = {name: [number - 1_000 for number in ids] for name, ids in given.items()}
    words: dict[str, Any] = {name: np.array(ids) for name, ids in text.items()}
    assert vectorised.fuse(fusion, words, top_n=40) == fusion.fuse(text, top_n=40)
    for form in (far, text, huge, above, around):
        assert vectorised.fuse(fusion, form, top_n=40) == fusion.fuse(form, top_n=40)


def test_ids_of_an_array_come_back_as_numbers() -> None:
    """An id is an int of Python, as the caller's own dictionaries have it; unsigned and mixed lists work too."""
    numbers: dict[str, Any] = {"vector": np.array([3, 1], dtype=np.int64)}
    fused = vectorised.fuse(Fusion(ALL), numbers)
    assert [type(hit.id) for hit in fused.hits] == [int, int]
    assert [type(hit.ranks["vector"]) for hit in fused.hits] == [int, int]
    mixed: dict[str, Any] = {"vector": np.array([3, 1], dtype=np.uint8), "keyword": ["a", 1]}
    same: dict[str, Any] = {"vector": [3, 1], "keyword": ["a", 1]}
    fused = vectorised.fuse(Fusion(ALL), mixed)
    assert fused.pairs == Fusion(ALL).fuse(same).pairs
    assert {type(hit.id) for hit in fused.hits} == {int, str}


def test_the_twins_agree_about_recency_and_evidence() -> None:
    """A shortlist that is too short for what recency and evidence make of it grows until it is not."""
    given = lists(4_000, 5)
    evidence = {number: 0.001 * (number % 7) for number in range(5_900)}
    times: dict[int, object] = {number: NOW - timedelta(days=number % 45) for number in range(0, 6_000, 2)}
    for action in ("scale", "drop"):
        gate = EvidenceGate(threshold=0.006, action=action)
        fusion = Fusion(FusionConfig(min_confidence=0, evidence_gate=gate, tie_breaks=("newest", "agreement")))
        facts: dict[str, Any] = {"modified_times": times, "now": NOW, "evidence": evidence, "top_n": 100}
        assert vectorised.fuse(fusion, given, **facts) == fusion.fuse(given, **facts)


def test_the_shortlist_grows_when_its_best_are_dropped() -> None:
    """Were the first 3,000 all off topic, the answer would still be found behind them."""
    config = FusionConfig(min_confidence=0, evidence_gate=EvidenceGate(threshold=0.5, action="drop"))
    given = {"vector": list(range(5_000))}
    evidence = dict.fromkeys(range(3_000), 0.1)
    fused = vectorised.fuse(Fusion(config), given, evidence=evidence, top_n=3)
    assert [hit.id for hit in fused.hits] == [3_000, 3_001, 3_002]
    assert fused == Fusion(config).fuse(given, evidence=evidence, top_n=3)


def test_recency_may_lift_what_is_outside_the_first_shortlist() -> None:
    """A young id at rank 270 beats old ones before it, though 256 are looked at first."""
    given = {"vector": list(range(2_000))}
    times: dict[int, object] = {269: NOW}
    config = FusionConfig(min_confidence=0, k=1_000)
    fused = vectorised.fuse(Fusion(config), given, modified_times=times, now=NOW, top_n=100)
    assert fused.hits[57].id == Fusion(config).fuse(given, modified_times=times, now=NOW, top_n=100).hits[57].id
    assert 269 in [hit.id for hit in fused.hits]
    assert fused == Fusion(config).fuse(given, modified_times=times, now=NOW, top_n=100)


def test_equal_scores_across_the_edge_of_the_shortlist_are_ordered_by_id() -> None:
    """A thousand lists of one id each: all equal, and the answer is the smallest ids."""
    given: dict[str, list[int]] = {f"s{number}": [999 - number] for number in range(1_000)}
    fused = vectorised.fuse(Fusion(ALL), given, top_n=4)
    assert [hit.id for hit in fused.hits] == [0, 1, 2, 3]


def test_lists_without_answers_are_as_plain_ones() -> None:
    """None, empty lists and no list at all."""
    empty: dict[str, list[int]] = {}
    every: list[Any] = [empty, {"vector": []}, {"vector": None, "keyword": [1]}, {"vector": None}]
    for given in every:
        assert vectorised.fuse(Fusion(ALL), given) == Fusion(ALL).fuse(given)


def test_arguments_that_cannot_be_are_refused_alike() -> None:
    """A number of results out of range, and times without a present."""
    with pytest.raises(ConfigError, match=r"^top_n"):
        vectorised.fuse(Fusion(ALL), {"vector": [1]}, top_n=101)
    with pytest.raises(ConfigError, match=r"^now"):
        vectorised.fuse(Fusion(ALL), {"vector": [1]}, modified_times={})


def test_arrays_are_left_as_they_were() -> None:
    """Only read."""
    given = np.array([5, 3, 5, 1])
    vectorised.fuse(Fusion(ALL), {"vector": given})
    scores = np.array([0.01, math.nan])
    calibrate_scores(Sigmoid(), scores, 0.05)
    assert given.tolist() == [5, 3, 5, 1]
    assert scores[0] == 0.01


@pytest.mark.parametrize(
    "curve",
    [
        Sigmoid(),
        Sigmoid(scale="raw"),
        Sigmoid(steepness=1e300),
        Isotonic(knots=((0.1, 0.2), (0.1, 0.3), (0.7, 0.95))),
        Isotonic(knots=((0.01, 0.2), (0.04, 0.9)), scale="raw"),
    ],
)
@pytest.mark.parametrize("attainable", [3 / 61, 0.0])
def test_many_scores_are_calibrated_as_one(curve: Sigmoid | Isotonic, attainable: float) -> None:
    """Every curve on both scales, with the ends of what a float can be."""
    raw = [number / 1_000 for number in range(-20, 80)] + [math.nan, math.inf, -math.inf, 1e308, -1e308, 0.0]
    found = calibrate_scores(curve, raw, attainable)
    assert found.tolist() == pytest.approx([curve.calibrate(score, attainable) for score in raw], abs=1e-12)


def test_numpy_is_imported_only_by_whoever_asks() -> None:
    """The plain modules need nothing that is not in Python."""
    names = "fusion calibration confidence decay evaluate explain notes times tools recall".split()
    program = f"import sys\nfor name in {names!r}: __import__('smart_model_router_scoring.' + name)\n"
    program += "print(sorted({'numpy', 'scipy', 'pydantic', 'asyncio', 'smart_model_router'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_many_scores_are_calibrated_as_double_precision() -> None:
    """Half as many bits that come in lose nothing more on the way."""
    single = np.array([0.0333], dtype=np.float32)
    [found] = calibrate_scores(Sigmoid(scale="raw"), single)
    assert found == pytest.approx(Sigmoid(scale="raw").calibrate(float(single[0]), 0.0), abs=1e-12)


def test_nothing_is_attainable_unless_it_is_said() -> None:
    """As for one score where no strategy answered."""
    assert calibrate_scores(Sigmoid(), [0.5]).tolist() == pytest.approx([Sigmoid().calibrate(0.5, 0.0)], abs=1e-12)


class Asked(dict[int, float]):
    """A mapping that counts how often it was asked."""

    times = 0

    def get(self, key: int, default: Any = None) -> Any:
        """As any mapping, and one more."""
        self.times += 1
        return super().get(key, default)


@pytest.mark.parametrize("config", [ALL, FusionConfig(weights={"graph": 0.001, "keyword": 0.001}, min_confidence=0.99)])
def test_only_a_shortlist_is_looked_at(config: FusionConfig) -> None:
    """Where its answers cannot be beaten, and where nothing beyond it can be confident enough."""
    evidence = Asked()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fusion = Fusion(config)
    vectorised.fuse(fusion, lists(20_000, 3), evidence=evidence)
    assert 0 < evidence.times < 1_000


def test_the_shortlist_grows_for_what_is_just_confident_enough() -> None:
    """Of 5,000 the first 3,000 are off topic; what comes then has 0.00604, and 0.006 is wanted."""
    config = FusionConfig(min_confidence=0.006, evidence_gate=EvidenceGate(threshold=0.5, action="drop"))
    given = {"vector": list(range(5_000))}
    fused = vectorised.fuse(Fusion(config), given, evidence=dict.fromkeys(range(3_000), 0.1), top_n=2)
    assert [hit.id for hit in fused.hits] == [3_000, 3_001]
    assert fused.hits[0].score == pytest.approx(0.00604, abs=1e-5)


def test_every_place_of_the_answer_must_be_safe() -> None:
    """The first cannot be beaten, the second is by a young one far behind: ranks hardly count where k is a million."""
    config = FusionConfig(min_confidence=0, k=1_000_000)
    times: dict[int, object] = {0: NOW, 1_500: NOW}
    fused = vectorised.fuse(Fusion(config), {"vector": list(range(2_000))}, modified_times=times, now=NOW, top_n=2)
    assert [hit.id for hit in fused.hits] == [0, 1_500]


def test_pairs_are_ids_with_scores_here_too() -> None:
    """The same hits with the same scores; a set is refused, and a weight of no strategy."""
    pairs: dict[str, Any] = {"keyword": [("b", 7.5), ("a", math.nan)], "vector": ["a"]}
    assert vectorised.fuse(Fusion(ALL), pairs) == Fusion(ALL).fuse(pairs)
    assert vectorised.fuse(Fusion(ALL), pairs).hits[1].scores == {"keyword": 7.5}
    with pytest.raises(ConfigError, match=r"results\.keyword"):
        vectorised.fuse(Fusion(ALL), {"keyword": {"a", "b"}})  # type: ignore[dict-item]  # what an unchecked caller does
    with pytest.raises(ConfigError, match=r"weights\.keywrd"):
        vectorised.fuse(Fusion(FusionConfig(weights={"keywrd": 1})), pairs)
