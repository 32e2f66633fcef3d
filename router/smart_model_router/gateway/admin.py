"""The operator's hand: every target as it stands, and a yes or a no to one, for keys that are marked `admin`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from types import MappingProxyType
from typing import Any, Protocol

from smart_model_router.gateway.endpoint import ORDER_BYTES, GatewayRequest, Walk
from smart_model_router.gateway.router_generation import RouterGeneration
from smart_model_router.http_api import ProblemError
from smart_model_router.http_api.api_errors import BAD_REQUEST, FORBIDDEN
from smart_model_router.http_api.http import json_reply
from smart_model_router.router import SmartModelRouter
from smart_model_router.wires.values import decode_object, text


class Action(Protocol):
    """Something to do to a target."""

    def __call__(self, router: SmartModelRouter, target: str, /, *, by: str, why: str) -> None:
        """Do it. Raises InvalidRequest."""
        ...


ACTIONS: Mapping[str, Action] = MappingProxyType(
    {"enable": SmartModelRouter.close, "isolate": SmartModelRouter.isolate}
)
"""What an operator may do to a target: `enable` forgets every rest and breaker, `isolate` sends it nothing more."""


async def targets(arrival: GatewayRequest) -> None:
    """Every target that a key may see, as it stands."""
    visible = arrival.house.visible(arrival.headers)
    statuses = [status for status in arrival.house.router.targets() if visible.target(status.id)]
    await arrival.reply(json_reply({"targets": [asdict(status) for status in statuses]}))


def acting(action: str) -> Walk:
    """The walk that does one of ACTIONS to what the body names: `{"name": a target or a provider}`.

    The body may say `why`, and `by` whom beside the key's name. The reply says how far the word reaches: `scope` is
    `host` once every process of the host can hear it, else `process`, and `note` says why.
    """
    act = ACTIONS[action]

    async def walk(arrival: GatewayRequest) -> None:
        house = arrival.house
        guest = house.ring.guest(arrival.headers)
        if not guest.admin:
            raise ProblemError(FORBIDDEN, "a key with `admin: true` is needed")
        said = decode_object(await arrival.body(ORDER_BYTES)) or {}
        chosen = _chosen(house, text(said.get("name")))
        by, why = _line(said, "by"), _line(said, "why")
        for target in chosen:
            act(house.router, target, by=f"{by} ({guest.name})" if by else guest.name, why=why)
        note = await house.router.publish_word()
        told = [asdict(status) for status in house.router.targets() if status.id in chosen]
        await arrival.reply(json_reply({"targets": told, "scope": "process" if note else "host", "note": note}))

    return walk


def _line(said: Mapping[str, Any], key: str) -> str:
    """An optional text. Raises ProblemError."""
    given = said.get(key, "")
    if not isinstance(given, str):
        raise ProblemError(BAD_REQUEST, f"{key}: a text is needed")
    return given


def _chosen(house: RouterGeneration, name: str) -> frozenset[str]:
    """The ids that a name stands for: its own, or all of a provider's. Raises ProblemError."""
    statuses = house.router.targets()
    chosen = frozenset(status.id for status in statuses if name in (status.id, status.provider))
    if not chosen:
        known = ", ".join(status.id for status in statuses)
        raise ProblemError(BAD_REQUEST, f"name: {name[:100]!r} is no target and no provider; there are {known}")
    return chosen
