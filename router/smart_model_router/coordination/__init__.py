"""Exchanges state with the other processes of the host, and keeps the state that survives a restart."""

from smart_model_router.coordination.coordinator import Coordinator
from smart_model_router.domain.shared_state import SharedKeys

__all__ = ["Coordinator", "SharedKeys"]
