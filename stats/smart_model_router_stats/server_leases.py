"""Leases as a server settles them: the question to the rules that run there, and their answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from smart_model_router.domain.shared_state import (
    BucketAsk,
    BucketGrant,
    BudgetAsk,
    ClockReading,
    SlotAsk,
    SlotGrant,
    limits,
    slots,
)
from smart_model_router.domain.shared_state.clocks import CLOCK_ERROR
from smart_model_router_stats.row_server import KEPT_SECONDS, SCHEMA, Leased
from smart_model_router_stats.server_rows import row_id

_TABLES: dict[type, str] = {BucketAsk: "limit", BudgetAsk: "budget", SlotAsk: "slots"}
_CONSTANTS = {
    "clock_error": CLOCK_ERROR,
    "no_room": limits.NO_ROOM,
    "chunk": limits.CHUNK,
    "plenty": limits.PLENTY,
    "under_way": limits.UNDER_WAY,
    "half": limits.HALF,
    "least_share": limits.LEAST_SHARE,
    "settles_soon": limits.SETTLES_SOON,
    "slot_seconds": slots.SLOT_SECONDS,
    "waiting_seconds": slots.WAITING_SECONDS,
    "left_free": slots.LEFT_FREE,
    "kept_for": KEPT_SECONDS,
}


def lease_request(asks: Sequence[BucketAsk | BudgetAsk | SlotAsk], here: ClockReading, epoch: str) -> dict[str, Any]:
    """The question: the asks in their order, and all that the rules go by."""
    reading = {"boot": here.boot, "ticks": here.ticks, "boottime": here.boottime, "wall": here.wall}
    return {"schema": SCHEMA, "epoch": epoch, "terms": reading | _CONSTANTS, "asks": [_asked(ask) for ask in asks]}


def _asked(ask: BucketAsk | BudgetAsk | SlotAsk) -> dict[str, Any]:
    named = {field.name: getattr(ask, field.name) for field in fields(ask)}
    return {"id": row_id(_TABLES[type(ask)], ask.key), **named}


def leased(
    asks: Sequence[BucketAsk | BudgetAsk | SlotAsk], at: float, grants: Sequence[Sequence[Any] | None] | None
) -> Leased:
    """The answer, of the figures of each grant."""
    if grants is None:
        return Leased(at, None)
    return Leased(at, tuple(_granted(ask, figures) for ask, figures in zip(asks, grants, strict=True)))


def _granted(ask: BucketAsk | BudgetAsk | SlotAsk, figures: Sequence[Any] | None) -> BucketGrant | SlotGrant | None:
    if figures is None:
        return None
    granted = [float(figure) for figure in figures]
    if not isinstance(ask, SlotAsk):
        return BucketGrant(ask.key, *granted)
    held, idle, most, others_wait = map(int, granted)
    return SlotGrant(held, idle, most, bool(others_wait))
