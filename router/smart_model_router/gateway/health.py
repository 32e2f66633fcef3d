"""Health: whether the process lives, whether it can serve, and everything for those with a key. It spends no token."""

from __future__ import annotations

from dataclasses import asdict

from smart_model_router.edge.http import json_reply
from smart_model_router.errors import AllTargetsFailed
from smart_model_router.gateway.exchange import Arrival


async def liveness(arrival: Arrival) -> None:
    """The loop turns. Never bad because providers are down."""
    await arrival.reply(json_reply({"status": "ok"}))


async def readiness(arrival: Arrival) -> None:
    """Whether each model has somebody to serve it now; 503 with reasons when one has not."""
    house = arrival.house
    reasons: dict[str, str] = {}
    for name, model in house.config.models.items():
        try:
            house.router.get_model_for_tier(model.tiers[0].name, name)
        except AllTargetsFailed as error:
            reasons[name] = error.message
    status = "ok" if not reasons else "unavailable"
    await arrival.reply(json_reply({"status": status, "models": reasons}, 200 if not reasons else 503))


async def health(arrival: Arrival) -> None:
    """Everything there is to know of the fleet, for those who may call."""
    house = arrival.house
    house.ring.guest(arrival.headers)
    told = {
        "system": asdict(house.router.system_health()),
        "in_flight": house.in_flight - 1,  # but for this one
        "targets": [asdict(status) for status in house.router.targets()],
    }
    await arrival.reply(json_reply(told))
