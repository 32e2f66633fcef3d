"""Rate-limit signals: what headers and bodies say about when to come back and how much is left."""

from __future__ import annotations

from smart_model_router_providers.signals.families import FAMILIES, read_limits
from smart_model_router_providers.signals.waits import read_wait

__all__ = ["FAMILIES", "read_limits", "read_wait"]
