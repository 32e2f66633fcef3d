"""What this process tells the others of its host, and what it hears from them; the state that survives a restart."""

from smart_model_router.coordination.coordinator import Coordinator
from smart_model_router.domain.shared_state import SharedKeys

__all__ = ["Coordinator", "SharedKeys"]
