"""The invariants of routing.md section 0 that can be seen at every step. I7, I8 and I14 are looked at after the run."""

from __future__ import annotations

from smart_model_router.rehearsal.simulation.checkers.base import Checker
from smart_model_router.rehearsal.simulation.checkers.breakers import OneOpening, OpenTime
from smart_model_router.rehearsal.simulation.checkers.leases import (
    FirstComeFirstServed,
    OneProbe,
    OwnGeneration,
    OwnRefusals,
    SettledOnce,
    Slots,
)
from smart_model_router.rehearsal.simulation.checkers.limits import Buckets
from smart_model_router.rehearsal.simulation.checkers.requests import Endings, PaidRetries
from smart_model_router.rehearsal.simulation.checkers.rests import Deadlines
from smart_model_router.rehearsal.simulation.checkers.returns import Returns

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
