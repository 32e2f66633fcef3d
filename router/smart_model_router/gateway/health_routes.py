"""Health: whether the process lives, whether it can serve, and everything for those with a key. It spends no token."""

from __future__ import annotations

import logging
from contextlib import suppress
from ctypes import c_bool
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from smart_model_router.domain.errors import AllTargetsFailed
from smart_model_router.gateway.endpoint import ORDER_BYTES, GatewayRequest
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import ProblemError
from smart_model_router.http_api.api_errors import BAD_REQUEST, FORBIDDEN
from smart_model_router.http_api.http import json_reply
from smart_model_router.wires.values import decode_object

log = logging.getLogger("smart_model_router.gateway")


async def liveness(arrival: GatewayRequest) -> None:
    """The loop turns. Never bad because providers are down."""
    await arrival.reply(json_reply({"status": "ok"}))


class HealthRoutes:
    """What a load balancer and a person ask. `draining` is the operator's word: this server wants no more requests.

    Its value is in memory that all workers of the server share, and ends with the server.
    """

    def __init__(self, draining: c_bool) -> None:
        self._draining = draining

    @property
    def draining(self) -> bool:
        """Whether the server drains."""
        return self._draining.value

    async def readiness(self, arrival: GatewayRequest) -> None:
        """Whether each model has somebody to serve it now, and nobody drains us; 503 with reasons when not.

        A store that cannot be written is told, and is no reason: requests are served from memory as before. Where
        there are keys, the reasons are for those who show one.
        """
        house = arrival.house
        reasons = _unserved(house)
        ready = not reasons and not self.draining
        told: dict[str, Any] = {"status": "draining" if self.draining else "ok" if ready else "unavailable"}
        with suppress(ProblemError):  # a load balancer has no key, and needs none
            visible = house.visible(arrival.headers) if house.config.gateway.keys else house.everything
            told["models"] = {name: why for name, why in reasons.items() if visible.model(name)}
            told["store"] = visible.state(house.router.monitor.store_problem)
        await arrival.reply(json_reply(told, 200 if ready else 503))

    async def health(self, arrival: GatewayRequest) -> None:
        """All that a key may know of the fleet."""
        house = arrival.house
        visible, monitor = house.visible(arrival.headers), house.router.monitor
        told: dict[str, Any] = {
            "version": version("smart-model-router"),
            "draining": self.draining,
            "models": {name: why for name, why in _unserved(house).items() if visible.model(name)},
            "store": visible.state(monitor.store_problem),
            "shared_state": visible.state(monitor.shared_problem),
            "kept_responses": visible.state(monitor.kept_problem),
            "targets": [asdict(status) for status in house.router.targets() if visible.target(status.id)],
        }
        if visible.everything:
            told["system"] = asdict(house.router.system_health())
            told["in_flight"] = house.in_flight - 1  # but for this one
            told["sinks"] = [asdict(sink) for sink in monitor.sinks()]
        await arrival.reply(json_reply(told))

    async def drain(self, arrival: GatewayRequest) -> None:
        """Be ready or not, as an operator says (`{"on": true}`), in every worker; requests are served all the same."""
        guest = arrival.house.ring.guest(arrival.headers)
        if not guest.admin:
            raise ProblemError(FORBIDDEN, "a key with `admin: true` is needed")
        wanted: Any = (decode_object(await arrival.body(ORDER_BYTES)) or {}).get("on")
        if not isinstance(wanted, bool):
            raise ProblemError(BAD_REQUEST, "on: true or false is needed")
        self._draining.value = wanted
        log.warning("the server %s, as %s says", "drains" if wanted else "is ready again", guest.name)
        await arrival.reply(json_reply({"draining": wanted}))


def _unserved(house: RouterGeneration) -> dict[str, str]:
    """Models that nobody could serve now, and why. Those of wildcards do not count: clients choose their names."""
    reasons: dict[str, str] = {}
    for name, model in house.config.models.items():
        if "*" in name:
            continue
        try:
            house.router.get_model_for_tier(model.tiers[0].name, name)
        except AllTargetsFailed as error:
            reasons[name] = error.message
    return reasons
