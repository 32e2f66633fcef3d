"""The next round of research, by the audits so far; the repair of a weak metric; how far a result is delivered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from smart_model_router_scoring.confidence import as_flag, as_number, confidence_level, regression
from smart_model_router_scoring.confidence.gates import MATRIX_PATIENCE, PATIENCE
from smart_model_router_scoring.options import check_choice, check_count, check_number

MAX_ROUNDS = 4
STOP_POLICIES = ("two_tier", "matrix")
PATIENCE_OF: Mapping[str, int] = MappingProxyType({"two_tier": PATIENCE, "matrix": MATRIX_PATIENCE})
"""The falls in a row that end the rounds, by policy. Read-only."""
_ROUNDING = 1e-12


class RoundStep(StrEnum):
    """The kinds of step of a round that work can be left out of, in the order in which they run."""

    HYPOTHESES = "hypothesis_tree_tot"
    RETRIEVAL = "retrieval_react"
    ANALYSTS = "analysts"
    VERIFICATION = "cove_verify"


class Mode(StrEnum):
    """The kinds of next round."""

    FULL = "full"
    REMEDIATION = "remediation"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundsConfig:
    """The limits of rounds. Raises ConfigError.

    `patience` is how many falls in a row stop it: 2, in the policy `matrix` 1. `halts_on_contradiction` ends it at an
    unresolved critical contradiction with the best round before; by default `matrix` does.
    """

    policy: str = "two_tier"
    max_rounds: int = MAX_ROUNDS
    min_ci: float = 0.80
    patience: int | None = None
    halts_on_contradiction: bool | None = None

    def __post_init__(self) -> None:
        check_choice("policy", self.policy, STOP_POLICIES)
        check_count("max_rounds", self.max_rounds, 1)
        check_number("min_ci", self.min_ci, 0, 1)
        check_number("max_rounds", self.max_rounds, 1, MAX_ROUNDS)
        if self.patience is not None:
            check_count("patience", self.patience, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remediation:
    """The repairs of a round: its kinds of step, what retrieval looks for, and how hard verification tries.

    `retrieval` are reasons: `open_questions`, `tier_a`, `conflicts`, `recent`, `unsupported`. Audits always run.
    """

    steps: tuple[RoundStep, ...]
    retrieval: tuple[str, ...] = ()
    thorough: bool = False
    """Verification looks in the whole store, not in the cited spans alone."""


@dataclass(frozen=True, slots=True)
class Next:
    """The next round: its mode, its steps, and in one sentence why."""

    mode: Mode
    steps: tuple[RoundStep, ...]
    reason: str
    remediation: Remediation | None = None


_NEEDS: Mapping[str, tuple[tuple[RoundStep, ...], str]] = {
    "coverage": (tuple(RoundStep), "open_questions"),
    "source_quality": ((RoundStep.RETRIEVAL, RoundStep.VERIFICATION), "tier_a"),
    "agreement": ((RoundStep.RETRIEVAL, RoundStep.VERIFICATION), "conflicts"),
    "critical_contradictions": ((RoundStep.RETRIEVAL, RoundStep.VERIFICATION), "conflicts"),
    "verification": ((RoundStep.VERIFICATION,), ""),
    "recency": ((RoundStep.RETRIEVAL, RoundStep.VERIFICATION), "recent"),
    "recent_source_count": ((RoundStep.RETRIEVAL, RoundStep.VERIFICATION), "recent"),
}
VIOLATIONS = tuple(_NEEDS)
"""The names of what can be repaired."""


def remediation(violations: Iterable[str], *, verified_before: bool = False) -> Remediation:
    """Return what repairs these violations: the union of what each needs.

    `verified_before` says that a round has verified thoroughly already, and verification is still low: it now looks for
    further sources of what is unsupported. A name that is no violation raises ConfigError.
    """
    steps: set[RoundStep] = set()
    wanted: list[str] = []
    thorough = False
    for violation in violations:
        check_choice("violation", violation, VIOLATIONS)
        needed, purpose = _NEEDS[violation]
        steps.update(needed)
        wanted += [purpose] if purpose else []
        if violation == "verification":
            thorough = True
            if verified_before:
                steps.add(RoundStep.RETRIEVAL)
                wanted.append("unsupported")
    return Remediation(
        steps=tuple(kind for kind in RoundStep if kind in steps),
        retrieval=tuple(dict.fromkeys(wanted)),
        thorough=thorough,
    )


def next_round(history: Sequence[Mapping[str, Any]], config: RoundsConfig, *, halt: str = "") -> Next:
    """Return what follows the rounds so far.

    Each round has the outputs of its audit (`ci_score`, `gate_passed`, `floor_violations`, `critical_contradictions`)
    and `steps` (the kinds that ran), `new_documents` and `changed_claims` (counts). `halt` is a reason from outside to
    stop: `budget`, `deadline`, `failed` or `cancelled`. It goes before `no_progress`, which it explains.
    """
    if not history:
        return _stop(halt) if halt else Next(Mode.FULL, tuple(RoundStep), "the first round")
    last = history[-1]
    if (stopped := _stopped(history, config, halt)) is not None:
        return stopped
    violations = [name for name in last.get("floor_violations", ()) if name in VIOLATIONS]
    if last.get("critical_contradictions"):
        violations.append("critical_contradictions")
    ci = as_number(last.get("ci_score"))
    if ci is None or ci < config.min_ci - _ROUNDING or not violations:
        return Next(Mode.FULL, tuple(RoundStep), "the index is below its target")
    repair = remediation(violations, verified_before=_only_verified(last))
    return Next(Mode.REMEDIATION, repair.steps, f"to repair: {', '.join(dict.fromkeys(violations))}", repair)


def _stopped(history: Sequence[Mapping[str, Any]], config: RoundsConfig, halt: str) -> Next | None:
    last = history[-1]
    if as_flag(last.get("gate_passed")) is True:
        return _stop("passed")
    if len(history) >= config.max_rounds:
        return _stop("max_rounds")
    patience = config.patience or PATIENCE_OF[config.policy]
    if regression([found.get("ci_score") for found in history], patience=patience).stop:
        return _stop("regression")
    halts = config.policy == "matrix" if config.halts_on_contradiction is None else config.halts_on_contradiction
    if halts and last.get("critical_contradictions"):
        return _stop("contradiction")
    if halt:
        return _stop(halt)
    nothing_new = not last.get("new_documents") and not last.get("changed_claims")
    return _stop("no_progress") if nothing_new and not _only_verified(last) else None


def _only_verified(found: Mapping[str, Any]) -> bool:
    return tuple(found.get("steps", ())) == (RoundStep.VERIFICATION,)


def _stop(reason: str) -> Next:
    return Next(Mode.STOP, (), reason)


class Delivery(StrEnum):
    """The levels of delivery, the best first."""

    FULL = "full"
    MODERATE = "moderate"
    LOW = "low"
    WITHHELD = "withheld"


def delivery_of(best_ci: float | None, *, gate_passed: bool, citations_complete: bool = True) -> Delivery:
    """Return how a result is delivered: as its confidence is, one level lower with incomplete citations.

    `full` needs an index of .80 and a passed gate, `moderate` .65, `low` .50; the rest is withheld until a person
    accepts it.
    """
    level = confidence_level(best_ci, gate_passed)
    found = Delivery.WITHHELD if level == "insufficient" else Delivery(level)
    levels = list(Delivery)
    return found if citations_complete else levels[min(levels.index(found) + 1, len(levels) - 1)]
