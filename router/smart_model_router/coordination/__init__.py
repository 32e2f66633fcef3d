"""What this process tells the others of its host, and what it hears from them; the state that survives a restart."""

from smart_model_router.coordination.owners import Owners
from smart_model_router.coordination.sharing import Sharing

__all__ = ["Owners", "Sharing"]
