"""The quality metadata of a result: scoring's own fields and those of research, from graphs and settings alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from smart_model_router_research.deep import AuditConfig, ClaimGraph, MetricsConfig, audits_of, quality_of
from smart_model_router_research.deep.quality import best_of
from smart_model_router_scoring.confidence import Matrix, TwoTier, quality_metadata, sensitivity
from smart_model_router_scoring.options import ConfigError
from tests.research_runs import CONFIG, example

METRICS = ("coverage", "source_quality", "agreement", "verification", "recency")


def audit(number: int = 1, *, passed: bool = True, **metrics: float) -> dict[str, object]:
    """Return an audit with these metrics, the others at 0.80."""
    values = dict.fromkeys(METRICS, 0.80) | metrics
    ci = sensitivity(values).ci
    return {
        "round": number,
        **values,
        "ci_score": ci,
        "ci_geometric": 0.5,
        "gate_passed": passed,
        "floor_violations": ["recency"],
    }


def test_it_has_the_fields_of_scoring_and_ours() -> None:
    """Names, violations of floors, policy, day, reason to stop, both means."""
    found = quality_of([audit(recency=0.6)], CONFIG, "passed")

    wanted = quality_metadata(audit(recency=0.6), best_ci=0.77, gate_passed=True, selected_round=1, rounds_completed=1)
    assert {key: found[key] for key in wanted if key != "best_ci_achieved"} == {
        key: value for key, value in wanted.items() if key != "best_ci_achieved"
    }
    assert found["best_ci_achieved"] == pytest.approx(0.77)
    assert found["failing_metrics"] == [{"recency": 0.6}]
    assert {
        key: found[key] for key in ("floor_violations", "policy", "stop_reason", "aggregation", "ci_geometric")
    } == {
        "floor_violations": ["recency"],
        "policy": "two_tier",
        "stop_reason": "passed",
        "aggregation": "arithmetic",
        "ci_geometric": 0.5,
    }
    assert found["as_of"] == "2026-07-01T00:00:00+00:00"


def test_sensitivity_moves_each_weight_by_five_hundredths() -> None:
    """With coverage alone at 1.0 and the rest at .8: the least and greatest index are those of its weight."""
    found = quality_of([audit(coverage=1.0)], CONFIG, "passed")["sensitivity"]

    assert found["min"] == pytest.approx(0.8 + 0.2 * 0.20 / 0.95)
    assert found["max"] == pytest.approx(0.8 + 0.2 * 0.30 / 1.05)
    assert found["gate_stable"] is True


@pytest.mark.parametrize(
    ("metrics", "passed", "policy", "borderline"),
    [
        ({"coverage": 0.90, "recency": 0.65}, True, "two_tier", True),
        ({"coverage": 0.90, "recency": 0.65}, False, "two_tier", False),
        ({"coverage": 0.90, "recency": 0.65}, True, "matrix", False),
        ({}, True, "two_tier", False),
        ({"coverage": 1.0}, True, "two_tier", False),
    ],
)
def test_a_pass_that_is_not_stable_is_borderline(
    metrics: dict[str, float], passed: bool, policy: str, borderline: bool
) -> None:
    """A gate that other weights would not pass; the policy `matrix` does not look at the index."""
    config = replace(CONFIG, policy=policy)
    assert quality_of([audit(1, passed=passed, **metrics)], config, "")["borderline"] is borderline


def test_the_round_that_is_delivered_is_the_best_one() -> None:
    """A passed gate first, then the index, then the earlier round."""
    audits = [audit(1, passed=False, coverage=1.0), audit(2), audit(3), audit(4, passed=False)]

    assert quality_of(audits, CONFIG, "")["selected_round"] == 2
    assert quality_of(audits, CONFIG, "")["rounds_completed"] == 4


def test_without_a_round_there_is_nothing_to_deliver() -> None:
    """The error says so."""
    with pytest.raises(ValueError, match="there is no round"):
        best_of([])


def test_audits_are_the_metrics_and_what_the_gate_says_of_them() -> None:
    """An empty round fails each floor."""
    run = example()
    first, second, third = audits_of([*(each.graph for each in run.rounds), ClaimGraph()], CONFIG)

    assert (first["round"], second["round"]) == (1, 2)
    assert first["ci_score"] < second["ci_score"]
    assert "critical contradictions: 1" in second["gate_reasons"]
    assert third["floor_violations"] == [
        "source_quality",
        "verification",
        "coverage",
        "agreement",
        "recency",
        "recent_source_count",
    ]


def test_a_round_that_is_worse_than_the_one_before_fails_the_matrix() -> None:
    """The policy `matrix` refuses a regression; the first round has none."""
    config = replace(CONFIG, policy="matrix")
    better, worse = example().rounds[1].graph, ClaimGraph()

    assert "the round is worse than the one before" in audits_of([better, worse], config)[1]["gate_reasons"]
    assert "the round is worse than the one before" not in audits_of([worse, better], config)[1]["gate_reasons"]


def test_settings_make_the_gate() -> None:
    """In an order of their own, which no file can change; the policy `matrix` has its own bounds."""
    given = AuditConfig(
        metrics=replace(CONFIG.metrics, weights={"recency": 1, "coverage": 3}, aggregation="geometric"),
        floors={"recency": 1, "source_quality": 0.5},
        min_ci=0.7,
    )

    assert list(given.floors) == ["source_quality", "recency"]
    assert list(given.weights) == ["coverage", "recency"]
    gate = given.gate()
    assert isinstance(gate, TwoTier)
    assert (gate.target_ci, gate.method, dict(gate.weights)) == (0.7, "geometric", {"coverage": 3, "recency": 1})
    assert isinstance(replace(given, policy="matrix").gate(), Matrix)


def test_thresholds_of_tiers_decide_what_is_high() -> None:
    """For the gate of `matrix`, and for the metrics that are named as failing."""
    run = example()
    strict = replace(CONFIG, policy="matrix", tier_thresholds=(1.0, 0.99, 0.5))
    gate = strict.gate()

    assert isinstance(gate, Matrix)
    assert (gate.high, tuple(gate.tier_thresholds)) == (0.99, (1.0, 0.99, 0.5))
    named = [
        quality_of(audits_of([each.graph for each in run.rounds], config), config, "")["failing_metrics"]
        for config in (CONFIG, strict)
    ]
    assert len(named[0]) < len(named[1])


@pytest.mark.parametrize(
    "wrong",
    [
        {"policy": "none"},
        {"min_ci": 2},
        {"min_recent_sources": -1},
        {"floors": {"recency": 7}},
        {"tier_thresholds": (0.5, 0.7, 0.9)},
    ],
)
def test_settings_that_are_none_are_refused(wrong: dict[str, object]) -> None:
    """The error names the setting."""
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        AuditConfig(metrics=MetricsConfig(as_of=CONFIG.metrics.as_of), **wrong)  # type: ignore[arg-type]
