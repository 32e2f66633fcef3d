"""The invariants of routing.md section 0 that can be seen at every step. I7, I8 and I14 are looked at after the run."""

from __future__ import annotations

from smart_model_router.rehearsal.simulation.checkers.breaker_checks import OneOpening, OpenTime
from smart_model_router.rehearsal.simulation.checkers.checker import Checker
from smart_model_router.rehearsal.simulation.checkers.cooldown_checks import Deadlines
from smart_model_router.rehearsal.simulation.checkers.lease_checks import (
    FirstComeFirstServed,
    OneProbe,
    OwnGeneration,
    OwnRefusals,
    SettledOnce,
    Slots,
)
from smart_model_router.rehearsal.simulation.checkers.limit_checks import Buckets
from smart_model_router.rehearsal.simulation.checkers.request_checks import Endings, PaidRetries
from smart_model_router.rehearsal.simulation.checkers.return_checks import Returns

CHECKERS: tuple[type[Checker], ...] = (
    OneProbe,
    SettledOnce,
    OwnGeneration,
    OneOpening,
    OpenTime,
    Deadlines,
    Returns,
    PaidRetries,
    Slots,
    FirstComeFirstServed,
    Buckets,
    OwnRefusals,
    Endings,
)
