"""The invariants of docs/design/routing.md section 0 that show at every step; I7, I8 and I14 show after the run."""

from __future__ import annotations

from smart_model_router.rehearsal.simulation.checkers.breaker_checks import Deadlines, OneOpening, OpenTime
from smart_model_router.rehearsal.simulation.checkers.lease_checks import (
    Buckets,
    FirstComeFirstServed,
    OneProbe,
    OwnGeneration,
    OwnRefusals,
    SettledOnce,
    Slots,
)
from smart_model_router.rehearsal.simulation.checkers.request_checks import Endings, PaidRetries
from smart_model_router.rehearsal.simulation.checkers.return_checks import Returns
from smart_model_router.rehearsal.simulation.scenario import Checker

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
