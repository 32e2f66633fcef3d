"""Rate-limit signals: what headers and bodies say about when to come back and how much is left."""

from __future__ import annotations

from smart_model_router_providers.signals.families import FAMILIES, family_of, read_limits
from smart_model_router_providers.signals.waits import headers_inside, read_wait

__all__ = ["FAMILIES", "family_of", "headers_inside", "read_limits", "read_wait"]
