"""The embedded last-resort model: a small language model in a child process, for when no other target answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from smart_model_router.domain.lazy_names import lazy_names
from smart_model_router_providers.local.model_file import (
    LocalInstallError,
    Readiness,
    install,
    is_loadable,
    is_ready,
    model_path,
)

if TYPE_CHECKING:
    from smart_model_router_providers.local.provider import LocalProvider

__all__ = ["LocalInstallError", "LocalProvider", "Readiness", "install", "is_loadable", "is_ready", "model_path"]

# The provider brings an HTTP client, which those that look at the file do not need.
__getattr__, __dir__ = lazy_names(
    __name__, {"smart_model_router_providers.local.provider": ("LocalProvider",)}, globals()
)
