"""The fields of a state change without its instant, as plain values."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from smart_model_router.domain.events import Event


def details_of(event: Event) -> dict[str, Any]:
    """An event's fields, but for `at`; an instant of this process's clock is given as the seconds until then."""
    details = asdict(event)
    del details["at"]
    open_until = details.pop("open_until", None)
    if open_until is not None:
        details["open_seconds"] = open_until - event.at
    return details
