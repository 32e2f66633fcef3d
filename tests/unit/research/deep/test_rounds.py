"""The next round follows from the audits so far, and from nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from smart_model_router_research.deep.rounds import (
    VIOLATIONS,
    Delivery,
    Mode,
    RoundsConfig,
    RoundStep,
    delivery_of,
    next_round,
    remediation,
)
from smart_model_router_scoring.options import ConfigError

RETRIEVAL, VERIFICATION = RoundStep.RETRIEVAL, RoundStep.VERIFICATION


def audit(ci: float, **rest: Any) -> dict[str, Any]:
    """Return the audit of a round that found something new and failed its gate."""
    return {
        "ci_score": ci,
        "gate_passed": False,
        "floor_violations": [],
        "critical_contradictions": 0,
        "new_documents": 1,
        "changed_claims": 1,
        "steps": tuple(RoundStep),
        **rest,
    }


def test_the_first_round_is_a_full_one() -> None:
    """Without a history every kind of step runs."""
    assert next_round([], RoundsConfig()).mode is Mode.FULL


@pytest.mark.parametrize(
    ("history", "config", "reason"),
    [
        ([audit(0.9, gate_passed=True)], RoundsConfig(), "passed"),
        ([audit(0.9, gate_passed="True")], RoundsConfig(), "passed"),
        ([audit(0.5)] * 4, RoundsConfig(), "max_rounds"),
        ([audit(0.7), audit(0.6), audit(0.5)], RoundsConfig(), "regression"),
        ([audit(0.7), audit(0.6)], RoundsConfig(policy="matrix"), "regression"),
        ([audit(0.7), audit(0.6)], RoundsConfig(patience=1), "regression"),
        ([audit(0.7, critical_contradictions=1)], RoundsConfig(policy="matrix"), "contradiction"),
        ([audit(0.7, critical_contradictions=1)], RoundsConfig(halts_on_contradiction=True), "contradiction"),
        ([audit(0.7), audit(0.7, new_documents=0, changed_claims=0)], RoundsConfig(), "no_progress"),
    ],
)
def test_rounds_end(history: list[dict[str, Any]], config: RoundsConfig, reason: str) -> None:
    """A passed gate, the last round, falls in a row, a contradiction that halts, or nothing new: no further round."""
    found = next_round(history, config)

    assert (found.mode, found.steps, found.reason) == (Mode.STOP, (), reason)


@pytest.mark.parametrize("halt", ["budget", "deadline", "cancelled"])
def test_a_halt_from_outside_ends_the_rounds(halt: str) -> None:
    """Budget, deadline and cancel stop, before the first round and after any other."""
    assert next_round([], RoundsConfig(), halt=halt).reason == halt
    assert next_round([audit(0.5)], RoundsConfig(), halt=halt).reason == halt


@pytest.mark.parametrize(
    "history",
    [
        [audit(0.5)],
        [audit(0.79, floor_violations=["recency"])],
        [audit(0.7), audit(0.6)],
        [audit(0.7, critical_contradictions=1)],
        [audit(float("nan"), floor_violations=["recency"])],
        [audit(0.7, new_documents=0, changed_claims=0, steps=(VERIFICATION,))],
    ],
)
def test_a_low_index_takes_a_full_round(history: list[dict[str, Any]]) -> None:
    """Below its target, or unreadable, everything runs again."""
    found = next_round(history, RoundsConfig())

    assert (found.mode, found.steps) == (Mode.FULL, tuple(RoundStep))


@pytest.mark.parametrize(
    ("violation", "steps", "retrieval", "thorough"),
    [
        ("coverage", tuple(RoundStep), ("open_questions",), False),
        ("source_quality", (RETRIEVAL, VERIFICATION), ("tier_a",), False),
        ("agreement", (RETRIEVAL, VERIFICATION), ("conflicts",), False),
        ("critical_contradictions", (RETRIEVAL, VERIFICATION), ("conflicts",), False),
        ("verification", (VERIFICATION,), (), True),
        ("recency", (RETRIEVAL, VERIFICATION), ("recent",), False),
        ("recent_source_count", (RETRIEVAL, VERIFICATION), ("recent",), False),
    ],
)
def test_each_violation_has_its_repair(
    violation: str, steps: tuple[RoundStep, ...], retrieval: tuple[str, ...], thorough: bool
) -> None:
    """With an index at its target a round repairs what is too low, and runs nothing else."""
    counted = violation == "critical_contradictions"
    last = audit(0.8, floor_violations=[] if counted else [violation], critical_contradictions=int(counted))

    found = next_round([last], RoundsConfig())

    assert (found.mode, found.steps) == (Mode.REMEDIATION, steps)
    assert found.remediation is not None
    assert (found.remediation.retrieval, found.remediation.thorough) == (retrieval, thorough)


def test_repairs_are_joined() -> None:
    """Several violations need the union of their steps, each once, in their order."""
    found = remediation(["recency", "verification", "agreement", "recent_source_count"])

    assert found.steps == (RETRIEVAL, VERIFICATION)
    assert found.retrieval == ("recent", "conflicts")
    assert found.thorough


def test_verification_that_stays_low_looks_for_sources() -> None:
    """After a round that only verified, the next one also retrieves for what is unsupported."""
    history = [audit(0.8, floor_violations=["verification"], steps=(VERIFICATION,), new_documents=0, changed_claims=0)]

    found = next_round(history, RoundsConfig())

    assert found.steps == (RETRIEVAL, VERIFICATION)
    assert found.remediation is not None
    assert found.remediation.retrieval == ("unsupported",)


def test_an_unknown_violation_is_refused() -> None:
    """The error names those that there are."""
    with pytest.raises(ConfigError, match=VIOLATIONS[0]):
        remediation(["luck"])


@pytest.mark.parametrize(
    "wrong", [{"policy": "dice"}, {"max_rounds": 0}, {"max_rounds": 5}, {"min_ci": 1.5}, {"patience": 0}]
)
def test_a_configuration_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    """Each number has its range."""
    with pytest.raises(ConfigError):
        RoundsConfig(**wrong)


@pytest.mark.parametrize(
    ("ci", "passed", "complete", "delivery"),
    [
        (0.80, True, True, Delivery.FULL),
        (0.80, True, False, Delivery.MODERATE),
        (0.95, False, True, Delivery.MODERATE),
        (0.65, False, True, Delivery.MODERATE),
        (0.64, False, True, Delivery.LOW),
        (0.50, False, False, Delivery.WITHHELD),
        (0.49, False, True, Delivery.WITHHELD),
        (0.49, False, False, Delivery.WITHHELD),
        (None, True, True, Delivery.WITHHELD),
    ],
)
def test_delivery_has_four_levels(ci: float | None, passed: bool, complete: bool, delivery: Delivery) -> None:
    """The level is that of the confidence, and one lower with incomplete citations."""
    assert delivery_of(ci, gate_passed=passed, citations_complete=complete) is delivery
