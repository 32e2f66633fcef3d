"""A share, a similarity, a component: a number of [0, 1], whatever the data says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router_scoring.options import is_number

if TYPE_CHECKING:
    from smart_model_router_scoring.notes import Notes


def unit(value: object, subject: str, notes: Notes) -> float:
    """`value` within [0, 1]: 0.0 for what is no finite number, else the nearer end. Both are noted."""
    if not is_number(value):
        notes.add("not_a_number", subject, value)
        return 0.0
    if not 0.0 <= value <= 1.0:
        notes.add("outside_0_to_1", subject, value)
    return min(max(float(value), 0.0), 1.0)
